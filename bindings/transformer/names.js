// The tensors of a model by the names that Hugging Face gives them, and the shapes that they must have.

/** @import { ModelConfig } from './config.js' */

/**
 * A tensor that the weights must hold.
 * @typedef {object} Slot
 * @property {string} name in full
 * @property {readonly number[]} shape as it is stored
 * @property {boolean} isTransposed [in, out] in place of [out, in], as GPT-2 has its projections
 */

/** A linear layer: its rows are those of the weights, one below the other. @typedef {{ weights: Slot[], biases: Slot[] }} Projection */

/** @typedef {{ weight: Slot, bias: Slot | null }} Norm */

/**
 * @typedef {object} LayerSlots
 * @property {Norm} attentionNorm
 * @property {Projection} qkv
 * @property {Slot | null} qNorm @property {Slot | null} kNorm
 * @property {Projection} out
 * @property {Norm} mlpNorm
 * @property {Projection | null} gate @property {Projection} up @property {Projection} down
 */

/**
 * @typedef {object} ModelSlots
 * @property {Slot} embedding
 * @property {Slot | null} positions
 * @property {LayerSlots[]} layers
 * @property {Norm} norm
 * @property {Projection | null} head null where the embedding is used for it
 */

/** Before the names of the inner model; checkpoints come with it and without. */
const kPrefixes = { llama: 'model.', gpt2: 'transformer.' };

/**
 * Tensors that checkpoints carry along and nothing needs: masks, and frequencies that the config says better.
 * @type {Readonly<Record<ModelConfig['names'], RegExp>>}
 */
const kIgnored = {
  llama: /(^|\.)rotary_emb\.inv_freq$/,
  gpt2: /(^|\.)h\.\d+\.attn\.(bias|masked_bias)$/,
};

/** A name as it stands below the prefix. @param {ModelConfig} config @param {string} name */
export function shortName({ names }, name) {
  const prefix = kPrefixes[names];
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

/** @param {ModelConfig} config @param {string} name a short one */
export function isIgnored({ names, isTied }, name) {
  return kIgnored[names].test(name) || (isTied && name === 'lm_head.weight');
}

/** @param {ModelConfig} config @returns {ModelSlots} */
export const modelSlots = (config) => (config.names === 'gpt2' ? gpt2Slots(config) : llamaSlots(config));

/** @param {string} name @param {readonly number[]} shape @returns {Slot} */
const slot = (name, shape) => ({ name, shape, isTransposed: false });

/**
 * @param {string} prefix @param {number} N @param {number} K @param {boolean} hasBias
 * @returns {Projection}
 */
const projection = (prefix, N, K, hasBias) => ({
  weights: [slot(`${prefix}.weight`, [N, K])],
  biases: hasBias ? [slot(`${prefix}.bias`, [N])] : [],
});

/** @param {ModelConfig} config @returns {ModelSlots} */
function llamaSlots(config) {
  const { vocabulary, width, layers, heads, kvHeads, headDim, inner, biases, hasQkNorm, isTied } = config;
  /** @param {string} prefix @returns {Norm} */
  const norm = (prefix) => ({ weight: slot(`${prefix}.weight`, [width]), bias: null });
  /** @param {number} l @returns {LayerSlots} */
  const layer = (l) => {
    const prefix = `model.layers.${l}`;
    const qkv = [
      projection(`${prefix}.self_attn.q_proj`, heads * headDim, width, biases.qkv),
      projection(`${prefix}.self_attn.k_proj`, kvHeads * headDim, width, biases.qkv),
      projection(`${prefix}.self_attn.v_proj`, kvHeads * headDim, width, biases.qkv),
    ];
    return {
      attentionNorm: norm(`${prefix}.input_layernorm`),
      qkv: { weights: qkv.flatMap(({ weights }) => weights), biases: qkv.flatMap((part) => part.biases) },
      qNorm: hasQkNorm ? slot(`${prefix}.self_attn.q_norm.weight`, [headDim]) : null,
      kNorm: hasQkNorm ? slot(`${prefix}.self_attn.k_norm.weight`, [headDim]) : null,
      out: projection(`${prefix}.self_attn.o_proj`, width, heads * headDim, biases.out),
      mlpNorm: norm(`${prefix}.post_attention_layernorm`),
      gate: projection(`${prefix}.mlp.gate_proj`, inner, width, biases.mlp),
      up: projection(`${prefix}.mlp.up_proj`, inner, width, biases.mlp),
      down: projection(`${prefix}.mlp.down_proj`, width, inner, biases.mlp),
    };
  };
  return {
    embedding: slot('model.embed_tokens.weight', [vocabulary, width]),
    positions: null,
    layers: Array.from({ length: layers }, (_, l) => layer(l)),
    norm: norm('model.norm'),
    head: isTied ? null : projection('lm_head', vocabulary, width, false),
  };
}

/** @param {ModelConfig} config @returns {ModelSlots} */
function gpt2Slots({ vocabulary, width, layers, inner, positions, isTied }) {
  /** @param {string} prefix @returns {Norm} */
  const norm = (prefix) => ({ weight: slot(`${prefix}.weight`, [width]), bias: slot(`${prefix}.bias`, [width]) });
  /** @param {string} prefix @param {number} N @param {number} K @returns {Projection} */
  const transposed = (prefix, N, K) => ({
    weights: [{ name: `${prefix}.weight`, shape: [K, N], isTransposed: true }],
    biases: [slot(`${prefix}.bias`, [N])],
  });
  /** @param {number} l @returns {LayerSlots} */
  const layer = (l) => {
    const prefix = `transformer.h.${l}`;
    return {
      attentionNorm: norm(`${prefix}.ln_1`),
      qkv: transposed(`${prefix}.attn.c_attn`, 3 * width, width),
      ...{ qNorm: null, kNorm: null },
      out: transposed(`${prefix}.attn.c_proj`, width, width),
      mlpNorm: norm(`${prefix}.ln_2`),
      gate: null,
      up: transposed(`${prefix}.mlp.c_fc`, inner, width),
      down: transposed(`${prefix}.mlp.c_proj`, width, inner),
    };
  };
  return {
    embedding: slot('transformer.wte.weight', [vocabulary, width]),
    positions: slot('transformer.wpe.weight', [positions, width]),
    layers: Array.from({ length: layers }, (_, l) => layer(l)),
    norm: norm('transformer.ln_f'),
    head: isTied ? null : projection('lm_head', vocabulary, width, false),
  };
}
