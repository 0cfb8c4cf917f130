// A model's config.json in one plain form, the same for all families: what the names of weights and the steps of a
// forward pass come from.
import { finite, flag, integer, integers } from '../check.js';
import { describeRotation } from '../check-rope.js';
import { refuse } from '../errors.js';

/** @import { RopeConfig } from '../rope-config.js' */

/**
 * @typedef {object} ModelConfig
 * @property {'llama' | 'gpt2'} names whose tensor names the weights have
 * @property {string} modelType
 * @property {number} vocabulary
 * @property {number} width of the hidden states
 * @property {number} layers
 * @property {number} heads
 * @property {number} kvHeads
 * @property {number} headDim
 * @property {number} inner width between the two ends of the MLP
 * @property {number} norm as `NormKind` of attention.h: RMSNorm, or LayerNorm with a bias
 * @property {number} epsilon
 * @property {number} activation as `ActivationKind` of attention.h
 * @property {boolean} isGated the MLP has a gate
 * @property {{ qkv: boolean, out: boolean, mlp: boolean }} biases which projections have one
 * @property {boolean} hasQkNorm queries and keys are normalised head by head
 * @property {boolean} isTied the embedding is the last projection too
 * @property {RopeConfig | null} rope
 * @property {number} positions learned positions; 0: none
 * @property {number | null} trainedLength
 * @property {readonly LayerAttention[]} attention of each layer; layers with the same options share one object
 * @property {readonly number[]} stopTokens
 */

/** @typedef {{ scale: number, window: number }} LayerAttention window: keys that a row sees, its own among them; 0: all */

const kMost = 2 ** 24;

/** `ActivationKind` of attention.h by the names of Hugging Face. @type {Readonly<Record<string, number>>} */
const kActivations = { silu: 0, swish: 0, gelu: 1, gelu_new: 2, gelu_fast: 2, gelu_pytorch_tanh: 2 };

/** What the families leave unsaid in config.json. */
const kLlamas = {
  llama: { attentionBias: false, hasQkNorm: false },
  mistral: { attentionBias: false, hasQkNorm: false },
  qwen2: { attentionBias: false, hasQkNorm: false },
  qwen3: { attentionBias: false, hasQkNorm: true },
};

/** What would be computed wrongly without a word. */
const kRefused = ['quantization_config', 'num_local_experts', 'num_experts', 'add_cross_attention'];

/** @typedef {Readonly<Record<string, any>>} Json */

/** @param {string} fn @param {unknown} given @returns {ModelConfig} */
export function modelConfig(fn, given) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    refuse('INVALID_OPTION', fn, "config must be the object of a model's config.json", given);
  }
  const config = /** @type {Json} */ (given);
  const type = config.model_type;
  const known = [...Object.keys(kLlamas), 'gpt2'];
  if (!known.includes(type)) refuse('UNSUPPORTED', fn, `config.model_type must be among ${known.join(', ')}`, type);
  for (const name of kRefused) {
    if (config[name]) refuse('UNSUPPORTED', fn, `config.${name} must not be there`, config[name]);
  }
  return type === 'gpt2' ? gpt2Config(fn, config) : llamaConfig(fn, config);
}

/** @param {string} fn @param {Json} config @param {string} name @param {number | null} [byDefault] */
const size = (fn, config, name, byDefault) => integer(fn, `config.${name}`, config[name] ?? byDefault, 1, kMost);

/** @param {string} fn @param {Json} config @param {string} name @param {boolean} byDefault */
const switched = (fn, config, name, byDefault) => flag(fn, `config.${name}`, config[name], byDefault);

/** @param {string} fn @param {Json} config @returns {ModelConfig} */
function llamaConfig(fn, config) {
  const type = /** @type {keyof typeof kLlamas} */ (config.model_type);
  const family = kLlamas[type];
  const width = size(fn, config, 'hidden_size');
  const layers = size(fn, config, 'num_hidden_layers');
  const heads = size(fn, config, 'num_attention_heads');
  const kvHeads = size(fn, config, 'num_key_value_heads', heads);
  if (heads % kvHeads !== 0) {
    refuse('INVALID_OPTION', fn, `config.num_key_value_heads must divide num_attention_heads = ${heads}`, kvHeads);
  }
  const headDim = headDimOf(fn, 'hidden_size', width, heads, config.head_dim);
  const attentionBias = switched(fn, config, 'attention_bias', family.attentionBias);
  const scale = 1 / Math.sqrt(headDim);
  return {
    names: 'llama',
    modelType: type,
    vocabulary: size(fn, config, 'vocab_size'),
    ...{ width, layers, heads, kvHeads, headDim },
    inner: size(fn, config, 'intermediate_size'),
    norm: 0,
    epsilon: positive(fn, 'rms_norm_eps', config.rms_norm_eps ?? 1e-6),
    activation: activationOf(fn, 'hidden_act', config.hidden_act ?? 'silu'),
    isGated: true,
    biases: {
      qkv: type === 'qwen2' || attentionBias,
      out: type !== 'qwen2' && attentionBias,
      mlp: switched(fn, config, 'mlp_bias', false),
    },
    hasQkNorm: family.hasQkNorm,
    isTied: switched(fn, config, 'tie_word_embeddings', false),
    rope: ropeOf(fn, config, headDim),
    positions: 0,
    trainedLength: lengthOf(fn, config, 'max_position_embeddings'),
    attention: shared(windowsOf(fn, config, layers).map((window) => ({ scale, window }))),
    stopTokens: stopTokensOf(fn, config),
  };
}

/** @param {string} fn @param {Json} config @returns {ModelConfig} */
function gpt2Config(fn, config) {
  const width = size(fn, config, 'n_embd');
  const layers = size(fn, config, 'n_layer');
  const heads = size(fn, config, 'n_head');
  const headDim = headDimOf(fn, 'n_embd', width, heads, null);
  const positions = size(fn, config, 'n_positions');
  const scale = switched(fn, config, 'scale_attn_weights', true) ? 1 / Math.sqrt(headDim) : 1;
  const byLayer = switched(fn, config, 'scale_attn_by_inverse_layer_idx', false);
  return {
    names: 'gpt2',
    modelType: 'gpt2',
    vocabulary: size(fn, config, 'vocab_size'),
    ...{ width, layers, heads, kvHeads: heads, headDim },
    inner: size(fn, config, 'n_inner', 4 * width),
    norm: 1,
    epsilon: positive(fn, 'layer_norm_epsilon', config.layer_norm_epsilon ?? 1e-5),
    activation: activationOf(fn, 'activation_function', config.activation_function ?? 'gelu_new'),
    isGated: false,
    biases: { qkv: true, out: true, mlp: true },
    hasQkNorm: false,
    isTied: switched(fn, config, 'tie_word_embeddings', true),
    rope: null,
    positions,
    trainedLength: positions,
    attention: shared(
      Array.from({ length: layers }, (_, l) => ({ scale: byLayer ? scale / (l + 1) : scale, window: 0 })),
    ),
    stopTokens: stopTokensOf(fn, config),
  };
}

/** One object for layers with the same options. @param {LayerAttention[]} layers */
function shared(layers) {
  return layers.map(
    ({ scale, window }) =>
      /** @type {LayerAttention} */ (layers.find((other) => other.scale === scale && other.window === window)),
  );
}

/** @param {string} fn @param {string} name @param {number} width @param {number} heads @param {unknown} given */
function headDimOf(fn, name, width, heads, given) {
  if ((given ?? null) !== null) return integer(fn, 'config.head_dim', given, 1, kMost);
  if (width % heads !== 0) {
    refuse('INVALID_OPTION', fn, `config.${name} must be a multiple of the number of heads, ${heads}`, width);
  }
  return width / heads;
}

/** @param {string} fn @param {string} name @param {unknown} value */
function positive(fn, name, value) {
  if (finite(fn, `config.${name}`, value) <= 0) refuse('INVALID_OPTION', fn, `config.${name} must be positive`, value);
  return /** @type {number} */ (value);
}

/** @param {string} fn @param {string} name @param {unknown} value */
function activationOf(fn, name, value) {
  if (typeof value !== 'string' || !Object.hasOwn(kActivations, value)) {
    refuse('UNSUPPORTED', fn, `config.${name} must be among ${Object.keys(kActivations).join(', ')}`, value);
  }
  return kActivations[value];
}

/** @param {string} fn @param {Json} config @param {string} name @returns {number | null} */
const lengthOf = (fn, config, name) => ((config[name] ?? null) === null ? null : size(fn, config, name));

/**
 * Both forms: `rope_scaling` beside `rope_theta`, or everything in `rope_parameters`.
 * @param {string} fn @param {Json} config @param {number} headDim @returns {RopeConfig}
 */
function ropeOf(fn, config, headDim) {
  const given = config.rope_parameters ?? config.rope_scaling ?? {};
  if (typeof given !== 'object') refuse('INVALID_OPTION', fn, 'config.rope_scaling must be an object', given);
  /** @type {Record<string, unknown>} */
  const scaling = { ...given };
  scaling.partial_rotary_factor ??= config.partial_rotary_factor;
  if (scaling.rope_type ?? scaling.type) {
    scaling.original_max_position_embeddings ??= config.original_max_position_embeddings;
  }
  const options = { base: config.rope_theta, scaling, maxPositionEmbeddings: config.max_position_embeddings };
  return describeRotation(fn, options, headDim, 1, 0).config;
}

/**
 * Layer by layer: from `layer_types` where it is there, else by the rules of the families.
 * @param {string} fn @param {Json} config @param {number} layers
 */
function windowsOf(fn, config, layers) {
  const isQwen = config.model_type.startsWith('qwen');
  const isOn = (config.sliding_window ?? null) !== null && switched(fn, config, 'use_sliding_window', !isQwen);
  const types = config.layer_types ?? null;
  if (types !== null && !(Array.isArray(types) && types.length === layers)) {
    refuse('INVALID_SHAPE', fn, `config.layer_types must have ${layers} elements, one for each layer`, types);
  }
  const first = isQwen ? integer(fn, 'config.max_window_layers', config.max_window_layers ?? 0, 0, kMost) : 0;
  return Array.from({ length: layers }, (_, l) => {
    const layerType = types ? types[l] : isOn && l >= first ? 'sliding_attention' : 'full_attention';
    if (layerType === 'full_attention') return 0;
    if (layerType === 'sliding_attention') return size(fn, config, 'sliding_window');
    return refuse('UNSUPPORTED', fn, `config.layer_types[${l}] must be full_attention or sliding_attention`, layerType);
  });
}

/** @param {string} fn @param {Json} config */
function stopTokensOf(fn, config) {
  const given = config.eos_token_id ?? [];
  return [...integers(fn, 'config.eos_token_id', Array.isArray(given) ? given : [given], -1, 0, kMost)];
}
