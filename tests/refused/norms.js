// Calls of normalisations and activation functions that are refused.
import { f32 } from './zeros.js';

const x = f32(2, 3, 6);

/** Calls: name, call, code, message. */
export const kNorms = [
  ['rmsNorm of nothing', (a) => a.rmsNorm(), 'INVALID_SHAPE', /^rmsNorm: x must be a Tensor or an object/],
  ['rmsNorm of a number', (a) => a.rmsNorm(f32()), 'INVALID_SHAPE', /x must have at least one axis, got \[\]/],
  [
    'rmsNorm with a weight of another width',
    (a) => a.rmsNorm(x, { weight: new Float32Array(3) }),
    'INVALID_SHAPE',
    /weight must have shape \[width\] = \[6\], got \[3\]/,
  ],
  ['rmsNorm with a bias', (a) => a.rmsNorm(x, { bias: new Float32Array(6) }), 'INVALID_OPTION', /got 'bias'/],
  ['rmsNorm with a weight in its place', (a) => a.rmsNorm(x, f32(6)), 'INVALID_OPTION', /options must be among weight/],
  [
    'a negative epsilon',
    (a) => a.rmsNorm(x, { epsilon: -1 }),
    'INVALID_OPTION',
    /epsilon must be 0 or positive, got -1/,
  ],
  ['epsilon NaN', (a) => a.layerNorm(x, { epsilon: Number.NaN }), 'INVALID_OPTION', /epsilon must be a finite number/],
  [
    'layerNorm with a bias of another type',
    (a) => a.layerNorm(x, { bias: new Float64Array(6) }),
    'INVALID_DTYPE',
    /^layerNorm: bias must be a Float32Array/,
  ],
  ['softmax with an axis', (a) => a.softmax(x, { axis: 0 }), 'INVALID_OPTION', /options must be among out, got 'axis'/],
  [
    'gelu of an unknown form',
    (a) => a.gelu(x, { approximate: 'erf' }),
    'INVALID_OPTION',
    /approximate must be 'none' or 'tanh', got 'erf'/,
  ],
  ['gelu with a gate', (a) => a.gelu(x, { gate: x }), 'INVALID_OPTION', /got 'gate'/],
  [
    'silu with a gate of another shape',
    (a) => a.silu(x, { gate: f32(2, 6, 3) }),
    'INVALID_SHAPE',
    /gate must have the shape of x, \[2, 3, 6\], got \[2, 6, 3\]/,
  ],
  ['out that is no tensor', (a) => a.softmax(x, { out: x }), 'INVALID_OPTION', /out must be a Tensor of this instance/],
];

/** The same with tensors: name, call of (instance, make), code, message. */
export const kNormResidents = [
  [
    'out of another shape',
    (a, make) => a.silu(x, { out: make(a.tensor(null, [3, 2, 6])) }),
    'INVALID_SHAPE',
    /out must have shape \[2, 3, 6\], got \[3, 2, 6\]/,
  ],
  [
    'out that is the weight',
    (a, make) => {
      const weight = make(a.tensor(null, [6]));
      a.rmsNorm(f32(6), { weight, out: weight });
    },
    'INVALID_OPTION',
    /^rmsNorm: out must not be one of the inputs/,
  ],
];
