// Calls of the other functions that are refused.
import { f32, k, q } from './zeros.js';

const x3 = f32(3, 4, 6);
const packedOptions = { cuSeqlensQ: [0, 1, 3], cuSeqlensK: [0, 2, 5] };
const pq = f32(3, 4, 6);
const pk = f32(5, 2, 6);
const pv = f32(5, 2, 7);
const weight = f32(5, 6);

/** Calls of the other functions: name, call, code, message. */
export const kCalls = [
  [
    'bthd of rank 3',
    (a) => a.scaledDotProductAttention(x3, x3, x3, { layout: 'bthd' }),
    'INVALID_OPTION',
    /layout 'bthd' must come with rank 4, got \[3, 4, 6\]/,
  ],
  [
    'causal true with lengths that differ',
    (a) => a.scaledDotProductAttention(q, f32(2, 2, 3, 6), f32(2, 2, 3, 7), { isCausal: true, keyLengths: [3, 2] }),
    'INVALID_OPTION',
    /isCausal must be 'top-left' or 'bottom-right'/,
  ],
  [
    'weights that cannot fit',
    (a) => a.scaledDotProductAttention(f32(40000, 1), f32(40000, 1), f32(40000, 1), { needWeights: true }),
    'OUT_OF_MEMORY',
    /^scaledDotProductAttention: memory must be had for the call, got no room for 6400\d{6} bytes$/,
  ],

  [
    'varlen without sequences',
    (a) => a.varlenAttention(pq, pk, pv),
    'INVALID_DTYPE',
    /^varlenAttention: cuSeqlensQ must be an Int32Array or an array of integers, got undefined/,
  ],
  [
    'varlen of rank 4',
    (a) => a.varlenAttention(q, pk, pv, packedOptions),
    'INVALID_SHAPE',
    /q must have shape \[ΣT, H, D\] with D of at least 1, got \[2, 4, 3, 6\]/,
  ],
  [
    'varlen k of another head size',
    (a) => a.varlenAttention(pq, f32(5, 2, 7), pv, packedOptions),
    'INVALID_SHAPE',
    /k must have the head size of q, D = 6/,
  ],
  [
    'varlen heads that do not divide',
    (a) => a.varlenAttention(pq, f32(5, 3, 6), f32(5, 3, 7), packedOptions),
    'INVALID_SHAPE',
    /k must have a number of heads that divides/,
  ],
  [
    'varlen v of other heads',
    (a) => a.varlenAttention(pq, pk, f32(5, 4, 7), packedOptions),
    'INVALID_SHAPE',
    /v must have the heads of k/,
  ],
  [
    'varlen v of other tokens',
    (a) => a.varlenAttention(pq, pk, f32(4, 2, 7), packedOptions),
    'INVALID_SHAPE',
    /v must have the tokens of k, ΣTk = 5/,
  ],
  [
    'cuSeqlens that do not begin with 0',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, cuSeqlensQ: [1, 2, 3] }),
    'INVALID_OPTION',
    /cuSeqlensQ must begin with 0, got \[1, 2, 3\]/,
  ],
  [
    'cuSeqlens without an element',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, cuSeqlensQ: [] }),
    'INVALID_OPTION',
    /cuSeqlensQ must begin with 0/,
  ],
  [
    'cuSeqlens that fall',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, cuSeqlensQ: [0, 4, 3] }),
    'INVALID_OPTION',
    /cuSeqlensQ\[2\] must not be less than the one before, got 3/,
  ],
  [
    'cuSeqlens with a wrong end',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, cuSeqlensK: [0, 2, 4] }),
    'INVALID_OPTION',
    /cuSeqlensK must end with the number of tokens, 5, got 4/,
  ],
  [
    'cuSeqlens of two lengths',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, cuSeqlensK: [0, 5] }),
    'INVALID_SHAPE',
    /cuSeqlensK must have 3 elements, got 2/,
  ],
  [
    'cuSeqlens with a fraction',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, cuSeqlensK: [0, 2.5, 5] }),
    'INVALID_OPTION',
    /cuSeqlensK\[1\] must be an integer/,
  ],
  [
    'varlen causal true where a sequence has two lengths',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, isCausal: true }),
    'INVALID_OPTION',
    /isCausal must be 'top-left' or 'bottom-right'/,
  ],
  [
    'varlen with rows of weights',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, needWeights: { rows: [0] } }),
    'INVALID_OPTION',
    /needWeights\.rows must not be given for packed sequences/,
  ],
  [
    'varlen with a layout',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, layout: 'bhtd' }),
    'INVALID_OPTION',
    /got 'layout'/,
  ],
  [
    'varlen with keyLengths',
    (a) => a.varlenAttention(pq, pk, pv, { ...packedOptions, keyLengths: [1, 1] }),
    'INVALID_OPTION',
    /got 'keyLengths'/,
  ],

  [
    'merging nothing',
    (a) => a.mergeAttention([]),
    'INVALID_OPTION',
    /^mergeAttention: parts must be a list of at least one \{ output, lse \}, got \[\]/,
  ],
  ['merging no list', (a) => a.mergeAttention({ output: q, lse: q }), 'INVALID_OPTION', /parts must be a list/],
  [
    'merging without lse',
    (a) => a.mergeAttention([{ output: q }]),
    'INVALID_SHAPE',
    /parts\[0\]\.lse must be a Tensor or an object/,
  ],
  [
    'merging outputs of two shapes',
    (a) =>
      a.mergeAttention([
        { output: q, lse: f32(2, 4, 3) },
        { output: k, lse: f32(2, 2, 5) },
      ]),
    'INVALID_SHAPE',
    /parts\[1\]\.output must have the shape of the first, \[2, 4, 3, 6\], got \[2, 2, 5, 6\]/,
  ],
  [
    'merging an lse of another shape',
    (a) => a.mergeAttention([{ output: q, lse: f32(2, 3, 4) }]),
    'INVALID_SHAPE',
    /parts\[0\]\.lse must have shape \[2, 4, 3\], got \[2, 3, 4\]/,
  ],
  [
    'merging rank 1',
    (a) => a.mergeAttention([{ output: f32(6), lse: f32(1) }]),
    'INVALID_SHAPE',
    /parts\[0\]\.output must have shape/,
  ],
  [
    'merging with sinks of other heads',
    (a) => a.mergeAttention([{ output: q, lse: f32(2, 4, 3) }], { sinks: new Float32Array(2) }),
    'INVALID_SHAPE',
    /sinks must have shape \[H\] = \[4\]/,
  ],
  [
    'merging with an unknown option',
    (a) => a.mergeAttention([{ output: q, lse: f32(2, 4, 3) }], { layout: 'bthd' }),
    'INVALID_OPTION',
    /options must be among sinks, out, got 'layout'/,
  ],

  [
    'linear of rank 0',
    (a) => a.linear({ data: new Float32Array(1), shape: [] }, weight),
    'INVALID_SHAPE',
    /^linear: x must have shape \[\.\.\., K\], got \[\]/,
  ],
  [
    'linear of another width',
    (a) => a.linear(f32(2, 7), weight),
    'INVALID_SHAPE',
    /x must have a last axis of K = 6, as the weight has, got \[2, 7\]/,
  ],
  [
    'a weight of rank 1',
    (a) => a.linear(f32(2, 6), f32(6)),
    'INVALID_SHAPE',
    /weight must have shape \[N, K\], got \[6\]/,
  ],
  [
    'a bias of another length',
    (a) => a.linear(f32(2, 6), weight, new Float32Array(6)),
    'INVALID_SHAPE',
    /bias must have shape \[N\] = \[5\], got \[6\]/,
  ],
  [
    'a bias of another type',
    (a) => a.linear(f32(2, 6), weight, new Int32Array(5)),
    'INVALID_DTYPE',
    /bias must be a Float32Array/,
  ],
  [
    'linear with a residual of another shape',
    (a) => a.linear(f32(2, 6), weight, null, { residual: f32(6, 2) }),
    'INVALID_SHAPE',
    /^linear: residual must have the shape of the result, \[2, \d+\], got \[6, 2\]/,
  ],
  [
    'linear with an unknown option',
    (a) => a.linear(f32(2, 6), weight, null, { relu: true }),
    'INVALID_OPTION',
    /options must be among residual, out, got 'relu'/,
  ],
  [
    'packing rank 3',
    (a) => a.packLinear(f32(1, 5, 6)),
    'INVALID_SHAPE',
    /^packLinear: weight must have shape \[N, K\], got \[1, 5, 6\]/,
  ],
  [
    'packing a bias of another length',
    (a) => a.packLinear(weight, new Float32Array(6)),
    'INVALID_SHAPE',
    /bias must have shape \[N\] = \[5\]/,
  ],

  [
    'a tensor without shape',
    (a) => a.tensor(new Float32Array(3)),
    'INVALID_SHAPE',
    /^tensor: shape must be an array of dimensions, got undefined/,
  ],
  [
    'a tensor of another length',
    (a) => a.tensor(new Float32Array(3), [2, 2]),
    'INVALID_SHAPE',
    /data must have the 4 elements of shape \[2, 2\], got 3/,
  ],
  ['a tensor of doubles', (a) => a.tensor(new Float64Array(4), [2, 2]), 'INVALID_DTYPE', /data must be a Float32Array/],
  [
    'a tensor of an unknown dtype',
    (a) => a.tensor(null, [2, 2], 'int8'),
    'INVALID_DTYPE',
    /dtype must be 'float32', 'float16' or 'bfloat16', got 'int8'/,
  ],
  [
    'a tensor of too many elements',
    (a) => a.tensor(null, [65536, 65536]),
    'INVALID_SHAPE',
    /shape must hold at most 2147483647 elements/,
  ],
  [
    'a tensor of too many bytes',
    (a) => a.tensor(null, [32768, 65535]),
    'OUT_OF_MEMORY',
    /^tensor: memory must be had for the call, got no room for 8589803520 bytes$/,
  ],
];
