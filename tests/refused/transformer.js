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
