// Uses of resident tensors and packed weights that are refused.
import { f32, k, q, v } from './zeros.js';

const weight = f32(5, 6);

/** Calls of (instance, make, another instance): name, call, code, message. What `make` is given is disposed of afterwards. */
export const kResidents = [
  [
    'out of another shape',
    (a, make) => a.scaledDotProductAttention(q, k, v, { out: make(a.tensor(null, [2, 4, 3, 6])) }),
    'INVALID_SHAPE',
    /out must have shape \[2, 4, 3, 7\], got \[2, 4, 3, 6\]/,
  ],
  [
    'out that is an input',
    (a, make) => {
      const x = make(a.tensor(null, [3, 4]));
      a.scaledDotProductAttention(x, f32(3, 4), f32(3, 4), { out: x });
    },
    'INVALID_OPTION',
    /out must not be one of the inputs/,
  ],
  [
    'out that is the mask',
    (a, make) => {
      const mask = make(a.tensor(null, [3, 3]));
      a.scaledDotProductAttention(f32(3, 3), f32(3, 3), f32(3, 3), { attnMask: mask, out: mask });
    },
    'INVALID_OPTION',
    /out must not be one of the inputs/,
  ],
  [
    'out that is the weight',
    (a, make) => {
      const w = make(a.tensor(null, [4, 4]));
      a.linear(f32(4, 4), w, null, { out: w });
    },
    'INVALID_OPTION',
    /^linear: out must not be one of the inputs/,
  ],
  [
    'out of another type in rope',
    (a, make) => a.rope(q, { style: 'half', out: make(a.tensor(null, [2, 4, 3, 6], 'float16')) }),
    'INVALID_DTYPE',
    /out must have the type of x, float32, got 'float16'/,
  ],
  [
    'a tensor of another instance',
    (a, make, other) => a.scaledDotProductAttention(make(other.tensor(null, [3, 4])), f32(3, 4), f32(3, 4)),
    'INVALID_OPTION',
    /q must be of this instance, got an object of type Tensor/,
  ],
  [
    'out of another instance',
    (a, make, other) => a.linear(f32(2, 6), weight, null, { out: make(other.tensor(null, [2, 5])) }),
    'INVALID_OPTION',
    /out must be of this instance/,
  ],
  [
    'a packed weight of another instance',
    (a, make, other) => a.linear(f32(2, 6), make(other.packLinear(weight))),
    'INVALID_OPTION',
    /weight must be of this instance, got an object of type PackedLinear/,
  ],
  [
    'a bias beside a packed weight',
    (a, make) => a.linear(f32(2, 6), make(a.packLinear(weight)), new Float32Array(5)),
    'INVALID_OPTION',
    /bias must be given to packLinear where the weight is packed/,
  ],
];
