// Caches and uses of them that are refused.
import { f32 } from './zeros.js';

const sizes = { batch: 2, numKvHeads: 2, headDim: 6, valueDim: 7, capacity: 8 };
const k = f32(2, 2, 5, 6);
const v = f32(2, 2, 5, 7);
const ring = { window: 3, sinkTokens: 2, capacity: 6 };

/** Caches: name, options, code, message. */
export const kCaches = [
  [
    'no options',
    undefined,
    'INVALID_OPTION',
    /^keyValueCache: numKvHeads must be an integer of 1 to \d+, got undefined/,
  ],
  ['no heads', { ...sizes, numKvHeads: 0 }, 'INVALID_OPTION', /numKvHeads must be an integer of 1/],
  ['no capacity', { numKvHeads: 1, headDim: 4 }, 'INVALID_OPTION', /capacity must be an integer of 1/],
  ['a fractional capacity', { ...sizes, capacity: 1.5 }, 'INVALID_OPTION', /capacity must be an integer .* got 1\.5/],
  ['no batch', { ...sizes, batch: 0 }, 'INVALID_OPTION', /batch must be an integer of 1/],
  ['an unknown option', { ...sizes, heads: 2 }, 'INVALID_OPTION', /options must be among batch, .* got 'heads'/],
  ['an unknown dtype', { ...sizes, dtype: 'q5_0' }, 'INVALID_DTYPE', /dtype must be among float32, .* got 'q5_0'/],
  [
    'blocks that headDim does not fill',
    { ...sizes, valueDim: 32, dtype: 'q8_0' },
    'INVALID_OPTION',
    /headDim must be a multiple of 32 for dtype 'q8_0', got 6/,
  ],
  [
    'blocks that valueDim does not fill',
    { ...sizes, headDim: 32, dtype: 'q4_0' },
    'INVALID_OPTION',
    /valueDim must be a multiple of 32 for dtype 'q4_0', got 7/,
  ],
  ['a window of 0', { ...sizes, window: 0 }, 'INVALID_OPTION', /window must be an integer of 1/],
  [
    'first tokens without a window',
    { ...sizes, sinkTokens: 1 },
    'INVALID_OPTION',
    /sinkTokens must be an integer of 0 to 0/,
  ],
  [
    'less capacity than the window',
    { ...sizes, ...ring, capacity: 4 },
    'INVALID_OPTION',
    /capacity must be at least sinkTokens \+ window = 5, got 4/,
  ],
  [
    'more than there is memory',
    { ...sizes, capacity: 2 ** 29 },
    'INVALID_OPTION',
    /batch · numKvHeads · capacity · width must be at most 2147483647/,
  ],
  [
    'more than can be had',
    { numKvHeads: 1, headDim: 512, valueDim: 512, capacity: 2 ** 21 },
    'OUT_OF_MEMORY',
    /^keyValueCache: memory must be had for the call, got no room for 8589934592 bytes/,
  ],
];

const used = (a, make, more) => {
  const cache = make(a.keyValueCache({ ...sizes, ...more }));
  cache.append(k, v);
  return cache;
};

const x = f32(2, 1, 12);

const layerOf = (a, make) => {
  const mha = make(a.multiHeadAttention({ dModel: 12, numHeads: 2 }));
  const weights = ['q', 'k', 'v', 'out'].map((name) => [`${name}_proj.weight`, f32(12, 12)]);
  mha.loadStateDict(Object.fromEntries(weights));
  return mha;
};

/** Uses of caches: name, call of (instance, make, another instance), code, message. */
export const kCacheUses = [
  [
    'k of another batch',
    (a, make) => used(a, make).append(f32(1, 2, 1, 6), v),
    'INVALID_SHAPE',
    /^KeyValueCache\.append: k must have B = 2, Hkv = 2, T = 1, D = 6, got \[1, 2, 1, 6\]/,
  ],
  [
    'k of another width',
    (a, make) => used(a, make).append(f32(2, 2, 1, 5), v),
    'INVALID_SHAPE',
    /k must have B = 2, .* D = 6/,
  ],
  [
    'k of other heads',
    (a, make) => used(a, make).append(f32(2, 4, 1, 6), v),
    'INVALID_SHAPE',
    /k must have B = 2, Hkv = 2/,
  ],
  [
    'v of another length',
    (a, make) => used(a, make).append(f32(2, 2, 1, 6), v),
    'INVALID_SHAPE',
    /v must have .* T = 1, Dv = 7, got \[2, 2, 5, 7\]/,
  ],
  [
    'v of another width',
    (a, make) => used(a, make).append(k, f32(2, 2, 5, 6)),
    'INVALID_SHAPE',
    /v must have .* Dv = 7/,
  ],
  [
    'k of rank 3 for a batch',
    (a, make) => used(a, make).append(f32(2, 1, 6), f32(2, 1, 7)),
    'INVALID_SHAPE',
    /k must have B = 2/,
  ],
  [
    'k of a type that is not accepted',
    (a, make) => used(a, make).append({ data: new Float64Array(24), shape: [2, 2, 1, 6] }, v),
    'INVALID_DTYPE',
    /k\.data must be a Float32Array/,
  ],
  ['no tokens', (a, make) => used(a, make).append(), 'INVALID_SHAPE', /k must be a Tensor or an object/],
  [
    'lengths beyond T',
    (a, make) => used(a, make).append(f32(2, 2, 1, 6), f32(2, 2, 1, 7), { lengths: [0, 2] }),
    'INVALID_OPTION',
    /lengths\[1\] must be an integer of 0 to 1, got 2/,
  ],
  [
    'lengths of another batch',
    (a, make) => used(a, make).append(f32(2, 2, 1, 6), f32(2, 2, 1, 7), { lengths: [1] }),
    'INVALID_SHAPE',
    /lengths must have 2 elements/,
  ],
  [
    'an unknown option of append',
    (a, make) => used(a, make).append(k, v, { keyLengths: [1, 1] }),
    'INVALID_OPTION',
    /options must be among lengths, layout, got 'keyLengths'/,
  ],
  [
    'no room',
    (a, make) => used(a, make).append(k, v),
    'CAPACITY',
    /k must fit into the capacity of 8 beside 5 tokens, got 5/,
  ],
  [
    'no room in a ring',
    (a, make) => used(a, make, ring).append(k, v),
    'CAPACITY',
    /k must have at most 2 tokens at once, so that capacity ≥ sinkTokens \+ window \+ tokens − 1, got 5/,
  ],
  [
    'tokens of another instance',
    (a, make, other) => used(a, make).append(make(other.tensor(null, [2, 2, 1, 6])), v),
    'INVALID_OPTION',
    /k must be of this instance/,
  ],
  [
    'q of another batch',
    (a, make) => used(a, make).attend(f32(2, 3, 6)),
    'INVALID_SHAPE',
    /^KeyValueCache\.attend: q must have the batch of the cache, B = 2, .* got \[2, 3, 6\]/,
  ],
  [
    'q of heads that do not divide',
    (a, make) => used(a, make).attend(f32(2, 3, 1, 6)),
    'INVALID_SHAPE',
    /k must have a number of heads that divides that of q, H = 3/,
  ],
  [
    'q of another width',
    (a, make) => used(a, make).attend(f32(2, 2, 1, 5)),
    'INVALID_SHAPE',
    /k must have the head size of q, D = 5/,
  ],
  [
    'key lengths of the caller',
    (a, make) => used(a, make).attend(f32(2, 2, 1, 6), { keyLengths: [1, 1] }),
    'INVALID_OPTION',
    /options must be among .* got 'keyLengths'/,
  ],
  [
    'two alignments',
    (a, make) => used(a, make).attend(f32(2, 2, 1, 6), { isCausal: 'bottom-right', queryOffset: 1 }),
    'INVALID_OPTION',
    /isCausal must be true or false beside queryOffset/,
  ],
  [
    'an unknown alignment',
    (a, make) => used(a, make).attend(f32(2, 2, 1, 6), { isCausal: 'end' }),
    'INVALID_OPTION',
    /isCausal must be true, false/,
  ],
  [
    'a mask of the capacity',
    (a, make) => used(a, make).attend(f32(2, 2, 1, 6), { attnMask: new Uint8Array(8) }),
    'INVALID_SHAPE',
    /attnMask must have Tq·Tk = 5 elements/,
  ],
  [
    'a window beside first tokens',
    (a, make) => used(a, make, ring).attend(f32(2, 2, 1, 6), { windowSize: [1, 0] }),
    'INVALID_OPTION',
    /windowSize\[0\] must be -1 where the cache keeps first tokens, got 1/,
  ],
  [
    'a wrong window',
    (a, make) => used(a, make, ring).attend(f32(2, 2, 1, 6), { windowSize: 3 }),
    'INVALID_OPTION',
    /windowSize must be \[left, right\], got 3/,
  ],
  [
    'rows whose window a ring let go',
    (a, make) => {
      const cache = used(a, make, ring);
      for (let n = 0; n < 4; ++n) cache.append(f32(2, 2, 1, 6), f32(2, 2, 1, 7));
      cache.attend(f32(2, 2, 3, 6));
    },
    'CAPACITY',
    /^KeyValueCache\.attend: q must have rows whose whole window is still held, from key 4 on, got 3/,
  ],
  [
    'tokens that a ring let go',
    (a, make) => {
      const cache = used(a, make, ring);
      for (let n = 0; n < 4; ++n) cache.append(f32(2, 2, 1, 6), f32(2, 2, 1, 7));
      cache.truncate(3);
    },
    'CAPACITY',
    /^KeyValueCache\.truncate: n must be at least sinkTokens \+ window − 1 = 4 where a ring let tokens go, got 3/,
  ],
  [
    'more than there are',
    (a, make) => used(a, make).truncate(6),
    'INVALID_OPTION',
    /^KeyValueCache\.truncate: n must be an integer of 0 to 5, got 6/,
  ],
  [
    'no number',
    (a, make) => used(a, make).truncate(),
    'INVALID_DTYPE',
    /n must be an Int32Array or an array of integers, got undefined/,
  ],
  ['numbers of another batch', (a, make) => used(a, make).truncate([1]), 'INVALID_SHAPE', /n must have 2 elements/],
  [
    'a snapshot of another cache',
    (a, make) => used(a, make).restore(used(a, make).snapshot()),
    'INVALID_OPTION',
    /^KeyValueCache\.restore: snapshot must be one of this cache, got an object of type CacheSnapshot/,
  ],
  [
    'a cache of another instance',
    (a, make, other) => layerOf(a, make).forward(x, { cache: make(other.keyValueCache({ ...sizes, valueDim: 6 })) }),
    'INVALID_OPTION',
    /^MultiHeadAttention\.forward: cache must be of this instance, got an object of type KeyValueCache/,
  ],
  [
    'a cache beside a context',
    (a, make) => layerOf(a, make).forward(x, { context: f32(2, 4, 12), cache: used(a, make) }),
    'INVALID_OPTION',
    /cache must not be given beside context, got an object of type KeyValueCache/,
  ],
  [
    'a cache of other sizes than the layer',
    (a, make) => layerOf(a, make).forward(x, { cache: used(a, make) }),
    'INVALID_OPTION',
    /cache must be made with batch 2, numKvHeads 2, headDim and valueDim 6, got \[2, 2, 6, 7\]/,
  ],
];
