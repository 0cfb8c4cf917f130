// What the decoder refuses: name, what is given, code, message.
import { configs, weightsFor } from '../support/models.js';
import { safetensorsOf } from '../support/safetensors.js';

export const llama = configs['LLaMA, grouped heads, tied'];
const qwen = { ...llama, model_type: 'qwen3' };
export const gpt2 = configs['GPT-2'];
export const weights = weightsFor(llama);
const zeros = (...shape) => ({ data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape });

/** What load() refuses: a config. */
export const kConfigs = [
  ['no config', null, 'INVALID_OPTION', /config must be the object of a model's config.json, got null/],
  ['a list', [], 'INVALID_OPTION', /config must be the object/],
  [
    'no model type',
    { ...llama, model_type: undefined },
    'UNSUPPORTED',
    /config.model_type must be among llama, mistral, qwen2, qwen3, gpt2, got undefined/,
  ],
  [
    'another model type',
    { ...llama, model_type: 'mamba' },
    'UNSUPPORTED',
    /config.model_type must be among .*, got 'mamba'/,
  ],
  ['a name of Object', { ...llama, model_type: 'toString' }, 'UNSUPPORTED', /config.model_type must be among/],
  [
    'quantised weights',
    { ...llama, quantization_config: { bits: 4 } },
    'UNSUPPORTED',
    /config.quantization_config must not be there, got an object/,
  ],
  [
    'no width',
    { ...llama, hidden_size: undefined },
    'INVALID_OPTION',
    /config.hidden_size must be an integer of 1 to \d+, got undefined/,
  ],
  [
    'a fraction of layers',
    { ...llama, num_hidden_layers: 1.5 },
    'INVALID_OPTION',
    /config.num_hidden_layers must be an integer/,
  ],
  [
    'no heads',
    { ...llama, num_attention_heads: 0 },
    'INVALID_OPTION',
    /config.num_attention_heads must be an integer of 1 to \d+, got 0/,
  ],
  [
    'heads that the key/value heads do not divide',
    { ...llama, num_key_value_heads: 3 },
    'INVALID_OPTION',
    /config.num_key_value_heads must divide num_attention_heads = 4, got 3/,
  ],
  [
    'a width that the heads do not divide',
    { ...llama, hidden_size: 26 },
    'INVALID_OPTION',
    /config.hidden_size must be a multiple of the number of heads, 4, got 26/,
  ],
  ['an odd head size', { ...llama, head_dim: 5 }, 'INVALID_OPTION', /rotaryDim must be an even integer/],
  ['a head size as text', { ...llama, head_dim: '8' }, 'INVALID_OPTION', /config.head_dim must be an integer/],
  [
    'an activation',
    { ...llama, hidden_act: 'relu' },
    'UNSUPPORTED',
    /config.hidden_act must be among silu, swish, gelu, .*, got 'relu'/,
  ],
  [
    'an activation of GPT-2',
    { ...gpt2, activation_function: 'relu' },
    'UNSUPPORTED',
    /config.activation_function must be among/,
  ],
  ['an epsilon', { ...llama, rms_norm_eps: 0 }, 'INVALID_OPTION', /config.rms_norm_eps must be positive, got 0/],
  [
    'an epsilon as text',
    { ...gpt2, layer_norm_epsilon: '1e-5' },
    'INVALID_OPTION',
    /config.layer_norm_epsilon must be a finite number/,
  ],
  [
    'a switch as a number',
    { ...llama, tie_word_embeddings: 1 },
    'INVALID_OPTION',
    /config.tie_word_embeddings must be true or false, got 1/,
  ],
  [
    'a rotation that there is not',
    { ...llama, rope_scaling: { rope_type: 'spiral' } },
    'INVALID_OPTION',
    /scaling.rope_type must be among default, .*, got 'spiral'/,
  ],
  [
    'a rotation as text',
    { ...llama, rope_scaling: 'linear' },
    'INVALID_OPTION',
    /config.rope_scaling must be an object, got 'linear'/,
  ],
  [
    'a rotation without its factor',
    { ...llama, rope_scaling: { type: 'linear' } },
    'INVALID_OPTION',
    /scaling of type 'linear' must have factor/,
  ],
  ['a negative base', { ...llama, rope_theta: -1 }, 'INVALID_OPTION', /base must be a positive number, got -1/],
  [
    'types of some layers',
    { ...qwen, layer_types: ['full_attention'] },
    'INVALID_SHAPE',
    /config.layer_types must have 3 elements, one for each layer/,
  ],
  [
    'a type of layer',
    { ...qwen, layer_types: ['full_attention', 'linear_attention', 'full_attention'] },
    'UNSUPPORTED',
    /config.layer_types\[1\] must be full_attention or sliding_attention, got 'linear_attention'/,
  ],
  [
    'a window without its size',
    { ...qwen, layer_types: Array(3).fill('sliding_attention') },
    'INVALID_OPTION',
    /config.sliding_window must be an integer/,
  ],
  [
    'a window of nothing',
    { ...llama, model_type: 'mistral', sliding_window: 0 },
    'INVALID_OPTION',
    /config.sliding_window must be an integer of 1/,
  ],
  [
    'a width of GPT-2',
    { ...gpt2, n_head: 3 },
    'INVALID_OPTION',
    /config.n_embd must be a multiple of the number of heads, 3, got 20/,
  ],
];

const without = (name) => {
  const { [name]: _, ...rest } = weights;
  return rest;
};

/** What load() refuses: weights. */
export const kWeights = [
  [
    'none',
    undefined,
    'INVALID_OPTION',
    /weights must be tensors by name, or the bytes of safetensors files, got undefined/,
  ],
  ['text', 'model.safetensors', 'INVALID_OPTION', /weights must be tensors by name/],
  ['a list in a list', [[weights]], 'INVALID_OPTION', /weights must be tensors by name/],
  ['nothing', {}, 'INVALID_OPTION', /weights must hold model.embed_tokens.weight of shape \[37, 24\], got \[\]/],
  [
    'a missing tensor',
    without('model.layers.1.self_attn.k_proj.weight'),
    'INVALID_OPTION',
    /weights must hold model.layers.1.self_attn.k_proj.weight of shape \[12, 24\], got \['model.norm.weight', /,
  ],
  [
    'a tensor too many',
    { ...weights, 'model.layers.1.self_attn.k_proj.bias': zeros(12) },
    'INVALID_OPTION',
    /weights must hold the tensors that config asks for alone, got 'model.layers.1.self_attn.k_proj.bias'/,
  ],
  [
    'a layer too many',
    { ...weights, 'model.layers.3.input_layernorm.weight': zeros(24) },
    'INVALID_OPTION',
    /got 'model.layers.3.input_layernorm.weight'/,
  ],
  [
    'a tensor of the wrong size',
    { ...weights, 'model.layers.2.mlp.up_proj.weight': zeros(24, 20) },
    'INVALID_SHAPE',
    /model.layers.2.mlp.up_proj.weight must have shape \[20, 24\], got \[24, 20\]/,
  ],
  [
    'a tensor whose data do not fit',
    { ...weights, 'model.norm.weight': { data: new Float32Array(23), shape: [24] } },
    'INVALID_SHAPE',
    /model.norm.weight.data must have the 24 elements/,
  ],
  [
    'a tensor of a wrong type',
    { ...weights, 'model.norm.weight': { data: new Float64Array(24), shape: [24] } },
    'INVALID_DTYPE',
    /model.norm.weight.data must be a Float32Array/,
  ],
  [
    'a tensor twice',
    [weights, { 'norm.weight': zeros(24) }],
    'INVALID_OPTION',
    /weights must hold each tensor once, got 'norm.weight'/,
  ],
  ['a file cut short', safetensorsOf(weights).subarray(0, 5000), 'INVALID_SHAPE', /readSafetensors: /],
  [
    'a file of another type',
    safetensorsOf({ ...weights, 'model.norm.weight': { data: new Float64Array(24), shape: [24], dtype: 'F64' } }),
    'UNSUPPORTED',
    /model.norm.weight must have one of the dtypes/,
  ],
];

/** What load() refuses: the rest. */
export const kLoads = [
  ['options that are none', 5, 'INVALID_OPTION', /options must be an object/],
  [
    'an unknown option',
    { wights: weights },
    'INVALID_OPTION',
    /options must be among config, weights, onProgress, signal, got 'wights'/,
  ],
  [
    'a listener that is none',
    { config: llama, weights, onProgress: 1 },
    'INVALID_OPTION',
    /onProgress must be a function, got 1/,
  ],
  ['a signal that is none', { config: llama, weights, signal: {} }, 'INVALID_OPTION', /signal must be an AbortSignal/],
];

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
