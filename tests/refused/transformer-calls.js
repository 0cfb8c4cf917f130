// What a model refuses: name, call, code, message.

const zeros = (...shape) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });

/** What a model refuses; a call may need a cache that is made before. */
export const kCalls = [
  [
    'no tokens',
    (m) => m.forward([]),
    'INVALID_SHAPE',
    /forward: tokens must hold at least one token, got Int32Array\(0\)/,
  ],
  [
    'a token out of range',
    (m) => m.forward([1, 2, 37]),
    'INVALID_OPTION',
    /forward: tokens\[2\] must be an integer of 0 to 36, got 37/,
  ],
  [
    'a negative token',
    (m) => m.forward([-1]),
    'INVALID_OPTION',
    /forward: tokens\[0\] must be an integer of 0 to 36, got -1/,
  ],
  [
    'tokens as text',
    (m) => m.forward('hello'),
    'INVALID_DTYPE',
    /forward: tokens must be an Int32Array or an array of integers, got 'hello'/,
  ],
  [
    'an unknown option',
    (m) => m.forward([1], { caches: 1 }),
    'INVALID_OPTION',
    /options must be among cache, logits, capture, attention, got 'caches'/,
  ],
  [
    'logits of the first',
    (m) => m.forward([1], { logits: 'first' }),
    'INVALID_OPTION',
    /logits must be 'last' or 'all', got 'first'/,
  ],
  [
    'an unknown capture',
    (m) => m.forward([1], { capture: { weights: true } }),
    'INVALID_OPTION',
    /options must be among attention, hidden, queries, keys, values, got 'weights'/,
  ],
  [
    'hidden states by number',
    (m) => m.forward([1], { capture: { hidden: 1 } }),
    'INVALID_OPTION',
    /capture.hidden must be true or false, got 1/,
  ],
  [
    'keys by name',
    (m) => m.forward([1], { capture: { keys: 'all' } }),
    'INVALID_OPTION',
    /capture.keys must be true or false, got 'all'/,
  ],
  [
    'an unknown change of the attention',
    (m) => m.forward([1], { attention: { causal: false } }),
    'INVALID_OPTION',
    /forward: attention: options must be among isCausal, scale, temperature, softcap, windowSize, rope, got 'causal'/,
  ],
  [
    'a causal mask by name',
    (m) => m.forward([1], { attention: { isCausal: 'top-left' } }),
    'INVALID_OPTION',
    /attention.isCausal must be true or false, got 'top-left'/,
  ],
  [
    'a scale that is no number',
    (m) => m.forward([1], { attention: { scale: Number.NaN } }),
    'INVALID_OPTION',
    /attention.scale must be a finite number in the range of float32, got NaN/,
  ],
  [
    'a temperature of attention of 0',
    (m) => m.forward([1], { attention: { temperature: 0 } }),
    'INVALID_OPTION',
    /attention.temperature must be positive, got 0/,
  ],
  [
    'a negative cap',
    (m) => m.forward([1], { attention: { softcap: -2 } }),
    'INVALID_OPTION',
    /attention.softcap must be 0 \(off\) or positive, got -2/,
  ],
  [
    'a window of one side',
    (m) => m.forward([1], { attention: { windowSize: [3] } }),
    'INVALID_OPTION',
    /forward: attention: windowSize must be \[left, right\], got/,
  ],
  [
    'a window of half a token',
    (m) => m.forward([1], { attention: { windowSize: [0.5, -1] } }),
    'INVALID_OPTION',
    /forward: attention: windowSize\[0\] must be an integer of -1 to \d+, got 0.5/,
  ],
  [
    'a rotation by number',
    (m) => m.forward([1], { attention: { rope: 0 } }),
    'INVALID_OPTION',
    /attention.rope must be true or false, got 0/,
  ],
  [
    'an unknown choice',
    (m) => m.forward([1], { capture: { attention: { layer: 1 } } }),
    'INVALID_OPTION',
    /options must be among layers, heads, rows, got 'layer'/,
  ],
  [
    'a layer out of range',
    (m) => m.forward([1], { capture: { attention: { layers: [3] } } }),
    'INVALID_OPTION',
    /capture.attention.layers\[0\] must be an integer of 0 to 2, got 3/,
  ],
  [
    'a head twice',
    (m) => m.forward([1], { capture: { attention: { heads: [1, 1] } } }),
    'INVALID_OPTION',
    /capture.attention.heads must hold at least one number, and none twice, got \[1, 1\]/,
  ],
  [
    'no rows',
    (m) => m.forward([1], { capture: { attention: { rows: [] } } }),
    'INVALID_OPTION',
    /capture.attention.rows must hold at least one number/,
  ],
  [
    'a row out of range',
    (m) => m.forward([1, 2], { capture: { attention: { rows: [2] } } }),
    'INVALID_OPTION',
    /capture.attention.rows\[0\] must be an integer of 0 to 1, got 2/,
  ],
  [
    'a cache that is none',
    (m) => m.forward([1], { cache: {} }),
    'INVALID_OPTION',
    /cache must be one that createCache\(\) of this model made/,
  ],
  [
    'a cache of another model',
    (m, { other }) => m.forward([1], { cache: other }),
    'INVALID_OPTION',
    /cache must be one that createCache\(\) of this model made/,
  ],
  [
    'a cache that is gone',
    (m, { gone }) => m.forward([1], { cache: gone }),
    'DISPOSED',
    /cache must not be used after dispose/,
  ],
  [
    'more tokens than room',
    (m, { cache }) => m.forward([1, 2, 3, 4], { cache }),
    'CAPACITY',
    /forward: tokens must fit into 5 positions, of which 2 are taken, got 4/,
  ],
  [
    'a cache without a size',
    (m) => m.createCache({}),
    'INVALID_OPTION',
    /createCache: capacity must be an integer of 1/,
  ],
  [
    'a cache of another type',
    (m) => m.createCache({ capacity: 4, dtype: 'int4' }),
    'INVALID_DTYPE',
    /createCache: dtype must be among/,
  ],
  [
    'a cache with an unknown option',
    (m) => m.createCache({ capacity: 4, window: 2 }),
    'INVALID_OPTION',
    /options must be among capacity, dtype, got 'window'/,
  ],
  [
    'a snapshot that is none',
    (_, { cache }) => cache.restore({}),
    'INVALID_OPTION',
    /TransformerCache.restore: snapshot must be one of this cache/,
  ],
  [
    'a snapshot of another cache',
    (_, { cache, other }) => cache.restore(other.snapshot()),
    'INVALID_OPTION',
    /snapshot must be one of this cache/,
  ],
  [
    'more tokens kept than there are',
    (_, { cache }) => cache.truncate(3),
    'INVALID_OPTION',
    /truncate: n must be an integer of 0 to 2, got 3/,
  ],
  ['no number of tokens', (m) => m.generate([1], {}), 'INVALID_OPTION', /generate: maxTokens must be an integer of 0/],
  [
    'a negative temperature',
    (m) => m.generate([1], { maxTokens: 1, temperature: -1 }),
    'INVALID_OPTION',
    /temperature must be 0 or positive, got -1/,
  ],
  [
    'a temperature that is no number',
    (m) => m.generate([1], { maxTokens: 1, temperature: Number.NaN }),
    'INVALID_OPTION',
    /temperature must be a finite number/,
  ],
  [
    'topP of 0',
    (m) => m.generate([1], { maxTokens: 1, topP: 0 }),
    'INVALID_OPTION',
    /topP must be above 0 and at most 1, got 0/,
  ],
  ['topK of 0', (m) => m.generate([1], { maxTokens: 1, topK: 0 }), 'INVALID_OPTION', /topK must be an integer of 1/],
  [
    'a seed of 33 bits',
    (m) => m.generate([1], { maxTokens: 1, seed: 2 ** 32 }),
    'INVALID_OPTION',
    /seed must be an integer of 0 to 4294967295/,
  ],
  [
    'a listener that is none',
    (m) => m.generate([1], { maxTokens: 1, onToken: 'x' }),
    'INVALID_OPTION',
    /onToken must be a function, got 'x'/,
  ],
  [
    'a signal that is none',
    (m) => m.generate([1], { maxTokens: 1, signal: true }),
    'INVALID_OPTION',
    /generate: signal must be an AbortSignal/,
  ],
  [
    'a stop token out of range',
    (m) => m.generate([1], { maxTokens: 1, stopTokens: [99] }),
    'INVALID_OPTION',
    /stopTokens\[0\] must be an integer of 0 to 36/,
  ],
  [
    'an unknown option of generate',
    (m) => m.generate([1], { maxTokens: 1, topk: 3 }),
    'INVALID_OPTION',
    /options must be among maxTokens, .*, got 'topk'/,
  ],
  [
    'a token of generate out of range',
    (m) => m.generate([40], { maxTokens: 1 }),
    'INVALID_OPTION',
    /generate: tokens\[0\] must be an integer of 0 to 36, got 40/,
  ],
  [
    'heads that are no list',
    (m) => {
      m.disabledHeads = 3;
    },
    'INVALID_OPTION',
    /disabledHeads: heads must be a list of \[layer, head\], got 3/,
  ],
  [
    'a head that is no pair',
    (m) => {
      m.disabledHeads = [[1]];
    },
    'INVALID_OPTION',
    /disabledHeads: heads must be a list of \[layer, head\], got \[1\]/,
  ],
  [
    'a head out of range',
    (m) => {
      m.disabledHeads = [[1, 4]];
    },
    'INVALID_OPTION',
    /disabledHeads: head must be an integer of 0 to 3, got 4/,
  ],
  [
    'a layer of a head out of range',
    (m) => {
      m.disabledHeads = [[3, 0]];
    },
    'INVALID_OPTION',
    /disabledHeads: layer must be an integer of 0 to 2, got 3/,
  ],
  [
    'hidden states of another width',
    (m) => m.logitLens(zeros(2, 23)),
    'INVALID_SHAPE',
    /logitLens: hidden must have a last axis of the width, 24, got \[2, 23\]/,
  ],
  [
    'hidden states that are no tensor',
    (m) => m.logitLens([1]),
    'INVALID_SHAPE',
    /logitLens: hidden must be a Tensor or an object/,
  ],
];
