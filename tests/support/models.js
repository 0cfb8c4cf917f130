// Random tiny models in the layout of Hugging Face checkpoints.
import { random, seedOf } from './random.js';
import { cast } from './tensors.js';

const kLlama = {
  ...{ model_type: 'llama', vocab_size: 37, hidden_size: 24, intermediate_size: 20, num_hidden_layers: 3 },
  ...{ num_attention_heads: 4, num_key_value_heads: 2, hidden_act: 'silu', rms_norm_eps: 1e-5 },
  ...{ rope_theta: 300, max_position_embeddings: 64, tie_word_embeddings: true },
};

const kGpt2 = {
  ...{ model_type: 'gpt2', vocab_size: 35, n_embd: 20, n_layer: 3, n_head: 5, n_positions: 50, n_inner: null },
  ...{ activation_function: 'gelu_new', layer_norm_epsilon: 1e-5 },
};

const scaled = (rope_scaling, more = {}) => ({ ...kLlama, rope_scaling, ...more });
const factors = (first, step, count) => Array.from({ length: count }, (_, i) => first + step * i);

/** Configs by name; `trained` in a scaling is shorter than the texts of the tests. */
export const configs = {
  'LLaMA, grouped heads, tied': kLlama,
  'LLaMA, all biases, untied, own head size': {
    ...kLlama,
    ...{ attention_bias: true, mlp_bias: true, tie_word_embeddings: false, head_dim: 10, hidden_act: 'gelu' },
  },
  'LLaMA, one key/value head': { ...kLlama, num_key_value_heads: 1, hidden_act: 'gelu_pytorch_tanh' },
  'Mistral, a window': { ...kLlama, model_type: 'mistral', sliding_window: 5, tie_word_embeddings: false },
  Qwen2: { ...kLlama, model_type: 'qwen2', sliding_window: 4, use_sliding_window: false },
  'Qwen2, a window from the second layer on': {
    ...kLlama,
    ...{ model_type: 'qwen2', sliding_window: 4, use_sliding_window: true, max_window_layers: 1 },
  },
  'Qwen3, norms of queries and keys': { ...kLlama, model_type: 'qwen3', head_dim: 8, tie_word_embeddings: false },
  'Qwen3, windows by layer': {
    ...kLlama,
    ...{ model_type: 'qwen3', head_dim: 8, sliding_window: 3, use_sliding_window: true, attention_bias: true },
    layer_types: ['sliding_attention', 'full_attention', 'sliding_attention'],
  },
  'RoPE of a part of the head': { ...kLlama, head_dim: 12, partial_rotary_factor: 0.5 },
  'RoPE, linear': scaled({ type: 'linear', factor: 3 }),
  'RoPE, dynamic': scaled({ rope_type: 'dynamic', factor: 2 }, { max_position_embeddings: 12 }),
  'RoPE, yarn': scaled({ rope_type: 'yarn', factor: 4, original_max_position_embeddings: 16, beta_fast: 8 }),
  'RoPE, yarn in rope_parameters': {
    ...kLlama,
    ...{ rope_theta: undefined, head_dim: 16 },
    rope_parameters: { rope_type: 'yarn', rope_theta: 500, factor: 8, original_max_position_embeddings: 8 },
  },
  'RoPE, longrope': scaled(
    {
      ...{ rope_type: 'longrope', original_max_position_embeddings: 12 },
      ...{ short_factor: factors(1, 0.1, 3), long_factor: factors(2, 1, 3) },
    },
    { max_position_embeddings: 48 },
  ),
  'RoPE, llama3': scaled({
    ...{ rope_type: 'llama3', factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
    original_max_position_embeddings: 32,
  }),
  'RoPE, proportional': scaled({ rope_type: 'proportional', factor: 2, partial_rotary_factor: 0.5 }, { head_dim: 8 }),
  'GPT-2': kGpt2,
  'GPT-2, untied, scaled by layer, own inner width': {
    ...kGpt2,
    ...{ tie_word_embeddings: false, scale_attn_by_inverse_layer_idx: true, n_inner: 33 },
    activation_function: 'gelu',
  },
  'GPT-2 without a scale': { ...kGpt2, scale_attn_weights: false },
};

/** Whether the rotation of a text depends on its length, so that reading it in parts gives something else. */
export const dependsOnLength = ({ rope_scaling }) => ['dynamic', 'longrope'].includes(rope_scaling?.rope_type);

/** Weights by name. */
export function weightsFor(config, { dtype = 'float32', seed = JSON.stringify(config) } = {}) {
  const generator = random(seedOf(seed));
  const shapes = config.model_type === 'gpt2' ? gpt2Shapes(config) : llamaShapes(config);
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => {
      const isNorm = /norm|ln_/.test(name) && name.endsWith('.weight');
      const tensor = generator.tensor(shape, 0.2);
      if (isNorm) tensor.data.set(tensor.data.map((value) => 1 + value));
      return [name, cast(tensor, dtype)];
    }),
  );
}

function llamaShapes(config) {
  const { hidden_size: width, num_attention_heads: heads, intermediate_size: inner, vocab_size, model_type } = config;
  const D = config.head_dim ?? width / heads;
  const shapes = { 'model.embed_tokens.weight': [vocab_size, width], 'model.norm.weight': [width] };
  const linear = (prefix, N, K, hasBias) => {
    shapes[`${prefix}.weight`] = [N, K];
    if (hasBias) shapes[`${prefix}.bias`] = [N];
  };
  for (let l = 0; l < config.num_hidden_layers; ++l) {
    const at = `model.layers.${l}`;
    for (const [name, count] of [
      ['q', heads],
      ['k', config.num_key_value_heads],
      ['v', config.num_key_value_heads],
    ]) {
      linear(`${at}.self_attn.${name}_proj`, count * D, width, config.attention_bias || model_type === 'qwen2');
    }
    linear(`${at}.self_attn.o_proj`, width, heads * D, config.attention_bias);
    linear(`${at}.mlp.gate_proj`, inner, width, config.mlp_bias);
    linear(`${at}.mlp.up_proj`, inner, width, config.mlp_bias);
    linear(`${at}.mlp.down_proj`, width, inner, config.mlp_bias);
    shapes[`${at}.input_layernorm.weight`] = shapes[`${at}.post_attention_layernorm.weight`] = [width];
    if (model_type === 'qwen3') {
      shapes[`${at}.self_attn.q_norm.weight`] = shapes[`${at}.self_attn.k_norm.weight`] = [D];
    }
  }
  if (!config.tie_word_embeddings) linear('lm_head', vocab_size, width, false);
  return shapes;
}

function gpt2Shapes({ n_embd: width, n_inner, n_layer, vocab_size, n_positions, tie_word_embeddings }) {
  const inner = n_inner ?? 4 * width;
  const shapes = { 'transformer.wte.weight': [vocab_size, width], 'transformer.wpe.weight': [n_positions, width] };
  const linear = (prefix, N, K) => {
    shapes[`${prefix}.weight`] = [K, N];
    shapes[`${prefix}.bias`] = [N];
  };
  const norm = (prefix) => {
    shapes[`${prefix}.weight`] = shapes[`${prefix}.bias`] = [width];
  };
  for (let l = 0; l < n_layer; ++l) {
    const at = `transformer.h.${l}`;
    norm(`${at}.ln_1`);
    linear(`${at}.attn.c_attn`, 3 * width, width);
    linear(`${at}.attn.c_proj`, width, width);
    norm(`${at}.ln_2`);
    linear(`${at}.mlp.c_fc`, inner, width);
    linear(`${at}.mlp.c_proj`, width, inner);
  }
  norm('transformer.ln_f');
  if (tie_word_embeddings === false) shapes['lm_head.weight'] = [vocab_size, width];
  return shapes;
}
