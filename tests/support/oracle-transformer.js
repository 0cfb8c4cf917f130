// A decoder in float64, every step spelled out: from a config.json and weights by Hugging Face's names to logits,
// attention weights and hidden states. Shares no code with the package.
import { ropeFrequencies } from './oracle-rope.js';
import { valuesOf } from './tensors.js';

/**
 * `attention`: another one than the model was trained with, in the names of forward().
 * @returns {{ logits: number[][], attention: number[][][][], scores: number[][][][], hidden: number[][][],
 *   projected: { q: number[][][], k: number[][][], v: number[][][] }[] }} attention and scores [layer][head][row][key],
 *   the scores before any mask; projected by layer, [token][head]
 */
export function transformer(config, weights, tokens, { disabledHeads = [], attention: change = {} } = {}) {
  const model = config.model_type === 'gpt2' ? gpt2(config, weights) : llama(config, weights, change);
  let x = tokens.map((token, t) => add(row(weights[model.embedding], token), model.position(t)));
  const hidden = [x];
  const attention = [];
  const scores = [];
  const projected = [];
  for (let l = 0; l < model.layers; ++l) {
    const layer = model.layer(l);
    const { q, k, v } = layer.project(x.map(layer.norm1), tokens.length);
    const mixed = attend(model, { ...layer, ...change }, { q, k, v });
    attention.push(mixed.weights);
    scores.push(mixed.scores);
    projected.push({ q, k, v });
    for (const [offLayer, head] of disabledHeads) {
      if (offLayer === l) for (const token of mixed.out) token[head].fill(0);
    }
    x = x.map((token, t) => add(token, layer.out(mixed.out[t].flat())));
    x = x.map((token) => add(token, layer.mlp(layer.norm2(token))));
    hidden.push(x);
  }
  const table = weights[model.head];
  const logits = x.map((token) => times(table, model.norm(token)));
  return { logits, attention, scores, hidden, projected };
}

/** Heads of each token: q[t][h], k[t][g], v[t][g]. */
function attend(
  { heads, kvHeads },
  { scale, window, windowSize, isCausal = true, softcap, temperature = 1 },
  { q, k, v },
) {
  const [left, right] = windowSize ?? [window ? window - 1 : -1, -1];
  const isVisible = (t, j) =>
    (!isCausal || j <= t) && (left < 0 || t - j <= left) && (right < 0 || isCausal || j - t <= right);
  const scores = Array.from({ length: heads }, (_, h) => {
    const g = Math.floor(h / (heads / kvHeads));
    return q.map((token) =>
      k.map((key) => {
        const x = scale * dot(token[h], key[g]);
        return (softcap ? softcap * Math.tanh(x / softcap) : x) / temperature;
      }),
    );
  });
  const weights = scores.map((rows) =>
    rows.map((row, t) => softmax(row.map((x, j) => (isVisible(t, j) ? x : Number.NEGATIVE_INFINITY)))),
  );
  const out = q.map((_, t) =>
    weights.map((rows, h) => {
      const g = Math.floor(h / (heads / kvHeads));
      return v[0][g].map((_, c) => v.reduce((sum, value, j) => sum + rows[t][j] * value[g][c], 0));
    }),
  );
  return { weights, scores, out };
}

function llama(config, weights, { rope = true } = {}) {
  const { num_attention_heads: heads, num_key_value_heads: kvHeads = heads, rms_norm_eps: epsilon } = config;
  const D = config.head_dim ?? config.hidden_size / heads;
  const linear = (prefix, x) => add(times(weights[`${prefix}.weight`], x), vector(weights[`${prefix}.bias`]));
  const norm = (name) => (x) => rmsNorm(x, vector(weights[name]), epsilon);
  const turn = rope ? rotation(config, D) : (x) => x;
  const layer = (l) => {
    const at = `model.layers.${l}`;
    return {
      ...{ norm1: norm(`${at}.input_layernorm.weight`), norm2: norm(`${at}.post_attention_layernorm.weight`) },
      ...{ scale: 1 / Math.sqrt(D), window: windowOf(config, l) },
      project(x, length) {
        const split = (name) => x.map((token) => chunks(linear(`${at}.self_attn.${name}_proj`, token), D));
        const head = (name) => (weights[name] ? norm(name) : (values) => values);
        const turned = (name) =>
          split(name).map((token, t) =>
            token.map((values) => turn(head(`${at}.self_attn.${name}_norm.weight`)(values), t, length)),
          );
        return { q: turned('q'), k: turned('k'), v: split('v') };
      },
      out: (x) => linear(`${at}.self_attn.o_proj`, x),
      mlp(x) {
        const gate = linear(`${at}.mlp.gate_proj`, x).map(kActivations[config.hidden_act]);
        const up = linear(`${at}.mlp.up_proj`, x);
        const product = gate.map((value, i) => value * up[i]);
        return linear(`${at}.mlp.down_proj`, product);
      },
    };
  };
  return {
    ...{ heads, kvHeads, layers: config.num_hidden_layers, layer },
    ...{ embedding: 'model.embed_tokens.weight', position: () => null, norm: norm('model.norm.weight') },
    head: config.tie_word_embeddings ? 'model.embed_tokens.weight' : 'lm_head.weight',
  };
}

function gpt2(config, weights) {
  const { n_head: heads, n_embd: width, layer_norm_epsilon: epsilon } = config;
  const D = width / heads;
  // Stored [in, out].
  const linear = (prefix, x) => add(timesTransposed(weights[`${prefix}.weight`], x), vector(weights[`${prefix}.bias`]));
  const norm = (prefix) => (x) =>
    layerNorm(x, vector(weights[`${prefix}.weight`]), vector(weights[`${prefix}.bias`]), epsilon);
  const layer = (l) => {
    const at = `transformer.h.${l}`;
    const inverse = config.scale_attn_by_inverse_layer_idx ? l + 1 : 1;
    return {
      ...{ norm1: norm(`${at}.ln_1`), norm2: norm(`${at}.ln_2`) },
      ...{ scale: (config.scale_attn_weights === false ? 1 : 1 / Math.sqrt(D)) / inverse, window: 0 },
      project(x) {
        const packed = x.map((token) => linear(`${at}.attn.c_attn`, token));
        const part = (n) => packed.map((token) => chunks(token.slice(n * width, (n + 1) * width), D));
        return { q: part(0), k: part(1), v: part(2) };
      },
      out: (x) => linear(`${at}.attn.c_proj`, x),
      mlp: (x) => linear(`${at}.mlp.c_proj`, linear(`${at}.mlp.c_fc`, x).map(kActivations[config.activation_function])),
    };
  };
  return {
    ...{ heads, kvHeads: heads, layers: config.n_layer, layer },
    embedding: 'transformer.wte.weight',
    position: (t) => row(weights['transformer.wpe.weight'], t),
    norm: norm('transformer.ln_f'),
    head: config.tie_word_embeddings === false ? 'lm_head.weight' : 'transformer.wte.weight',
  };
}

/** Keys that a layer's rows see, their own among them; 0: all. */
function windowOf(config, l) {
  if (config.layer_types) return config.layer_types[l] === 'sliding_attention' ? config.sliding_window : 0;
  if (!config.model_type.startsWith('qwen')) return config.sliding_window ?? 0;
  return config.use_sliding_window && l >= config.max_window_layers ? config.sliding_window : 0;
}

/** Turns a head by its position, half-split. */
function rotation(config, D) {
  const given = config.rope_parameters ?? config.rope_scaling ?? {};
  const part = given.partial_rotary_factor ?? config.partial_rotary_factor ?? 1;
  const isWhole = given.rope_type === 'proportional';
  const d = isWhole ? D : Math.floor(D * part);
  const max_position_embeddings = config.max_position_embeddings;
  const scaling = { max_position_embeddings, original_max_position_embeddings: undefined, ...given };
  scaling.original_max_position_embeddings ??= max_position_embeddings;
  const base = given.rope_theta ?? config.rope_theta;
  return (x, position, sequenceLength) => {
    const { frequencies, attentionFactor } = ropeFrequencies({ rotaryDim: d, base, scaling, sequenceLength });
    const y = [...x];
    frequencies.forEach((frequency, i) => {
      const [cos, sin] = [Math.cos(position * frequency), Math.sin(position * frequency)];
      y[i] = attentionFactor * (x[i] * cos - x[i + d / 2] * sin);
      y[i + d / 2] = attentionFactor * (x[i + d / 2] * cos + x[i] * sin);
    });
    return y;
  };
}

const tanhGelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
const kActivations = {
  silu: (x) => x / (1 + Math.exp(-x)),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_new: tanhGelu,
  gelu_pytorch_tanh: tanhGelu,
};

/** By its series: the terms of x up to 6 or so lose no more than a few digits of the sixteen. */
function erf(x) {
  let term = x;
  let sum = x;
  for (let n = 1; n < 200; ++n) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

function rmsNorm(x, weight, epsilon) {
  const mean = x.reduce((sum, value) => sum + value * value, 0) / x.length;
  return x.map((value, i) => (value / Math.sqrt(mean + epsilon)) * weight[i]);
}

function layerNorm(x, weight, bias, epsilon) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
  return x.map((value, i) => ((value - mean) / Math.sqrt(variance + epsilon)) * weight[i] + bias[i]);
}

function softmax(logits) {
  const most = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - most));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const add = (a, b) => (b ? a.map((value, i) => value + b[i]) : a);
const chunks = (x, size) => Array.from({ length: x.length / size }, (_, i) => x.slice(i * size, (i + 1) * size));

/** The elements of a vector, or null for one that isn't there. */
const vector = (tensor) => (tensor ? [...valuesOf(tensor)] : null);

function row(tensor, n) {
  const width = tensor.shape[1];
  return [...valuesOf({ ...tensor, data: tensor.data.subarray(n * width, (n + 1) * width) })];
}

/** W x for W [out, in]. */
const times = (weight, x) => Array.from({ length: weight.shape[0] }, (_, n) => dot(row(weight, n), x));

/** Wᵀ x for W [in, out]. */
function timesTransposed(weight, x) {
  const sums = new Array(weight.shape[1]).fill(0);
  x.forEach((value, k) => {
    row(weight, k).forEach((entry, n) => {
      sums[n] += value * entry;
    });
  });
  return sums;
}
