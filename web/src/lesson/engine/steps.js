// One head at work, step by step: every tensor between the hidden states and what the head adds to them.
import { readSafetensors } from 'attention-wasm/safetensors';
import { kindsOf } from '../../engine/rules.js';
import { drawable, drawableSquare } from './ranges.js';
import { ropeOf } from './rope-of.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { LanguageModel } from '../../engine/language-model.js' */
/** @import { HeadName, Rule, Run, Tensor, WhatIf } from '../../types.js' */
/** @import { Drawable } from './ranges.js' */
/** @import { RopeSettings } from './rope-of.js' */

/** Files that a model was made from; the weights of a model of the reader's own aren't kept. @typedef {{ config: Record<string, any>, weights: Uint8Array | null }} Origin */

/**
 * @typedef {object} HeadSteps
 * @property {string[]} tokens
 * @property {HeadName} at
 * @property {number} heads @property {number} kvHeads @property {number} kvHead @property {number} D @property {number} width
 * @property {number} scale what products are multiplied by @property {number} softcap 0: off
 * @property {Rule} rule what a row sees
 * @property {RopeSettings | null} rope
 * @property {Drawable | null} x [T, width] what the projections take
 * @property {Drawable} q [T, D] of this head, not yet turned @property {Drawable} k @property {Drawable} v
 * @property {{ q: Drawable, k: Drawable }} turned by RoPE; the same as q and k without it
 * @property {Drawable} products [T, T] q·k
 * @property {Drawable} scores [T, T] times the scale
 * @property {Drawable} weights [T, T]
 * @property {Drawable} mixed [T, D] weights times values
 * @property {Drawable} joined [T, H·D] of all heads
 * @property {Drawable | null} output [T, width]
 * @property {{ q: Tensor, k: Tensor, v: Tensor, out: Tensor } | null} parameters of this head's projections, [D, width];
 *   out [width, H·D]
 */

/** @param {Tensor} tensor [H, T, D] @param {number} head @returns {Tensor} [T, D] */
function headOf({ data, shape: [, T, D] }, head) {
  return { data: data.slice(head * T * D, (head + 1) * T * D), shape: [T, D] };
}

/** @param {Tensor} tensor [H, T, D] @returns {Tensor} [T, H·D] */
function join({ data, shape: [H, T, D] }) {
  const joined = new Float32Array(data.length);
  for (let h = 0; h < H; h++) {
    for (let t = 0; t < T; t++) {
      joined.set(data.subarray((h * T + t) * D, (h * T + t + 1) * D), t * H * D + h * D);
    }
  }
  return { data: joined, shape: [T, H * D] };
}

/** @param {Tensor} tensor [T, H·D] @param {number} H @returns {Tensor} [H, T, D] */
function split({ data, shape: [T, all] }, H) {
  const D = all / H;
  const heads = new Float32Array(data.length);
  for (let h = 0; h < H; h++) {
    for (let t = 0; t < T; t++) heads.set(data.subarray(t * all + h * D, t * all + (h + 1) * D), (h * T + t) * D);
  }
  return { data: heads, shape: [H, T, D] };
}

/** Rows of a weight. @param {Tensor} weight @param {number} from @param {number} count @returns {Tensor} */
function rowsOf({ data, shape: [, K] }, from, count) {
  return { data: data.slice(from * K, (from + count) * K), shape: [count, K] };
}

/**
 * From queries, keys and values as the scores take them.
 * @param {Attention} attention @param {{ q: Tensor, k: Tensor, v: Tensor }} all [H, T, D] and [Hkv, T, D]
 * @param {number} head @param {{ scale: number, softcap: number, rule: Rule }} kind
 */
function mix(attention, { q, k, v }, head, { scale, softcap, rule }) {
  const windowSize = /** @type {const} */ ([rule.left, rule.right]);
  const options = { scale, softcap, isCausal: rule.causal, windowSize };
  const kvHead = Math.floor((head * k.shape[0]) / q.shape[0]);
  const [one, key, value] = [headOf(q, head), headOf(k, kvHead), headOf(v, kvHead)];
  const stage = (/** @type {object} */ how, /** @type {'scores' | 'capped'} */ name) =>
    attention.scaledDotProductAttention(one, key, value, { ...how, needWeights: { stage: name } }).weights;
  const { output, weights } = attention.scaledDotProductAttention(one, key, value, { ...options, needWeights: true });
  const { output: every } = attention.scaledDotProductAttention(q, k, v, options);
  return {
    ...{ kvHead, v: drawable(value), turned: { q: drawable(one), k: drawable(key) } },
    products: drawable(plain(stage({ scale: 1 }, 'scores'))),
    scores: drawableSquare(plain(stage({ scale, softcap }, 'capped')), rule),
    weights: drawableSquare(plain(weights), rule),
    ...{ mixed: drawable(plain(output)), joined: drawable(join(/** @type {Tensor} */ (every))) },
  };
}

/** @param {{ data: Float32Array, shape: readonly number[] } | undefined} tensor @returns {Tensor} */
function plain(tensor) {
  if (!tensor) throw new Error('the kernel gave no weights');
  return { data: tensor.data, shape: [...tensor.shape] };
}

/** A weight of any type as float32. @param {Attention} attention @param {any} weight [N, K] @returns {Tensor} */
function asFloats(attention, weight) {
  const K = weight.shape[1];
  const one = new Float32Array(K * K);
  for (let i = 0; i < K; i++) one[i * K + i] = 1;
  const { data } = attention.linear({ data: one, shape: [K, K] }, weight); // the transpose
  const [N] = weight.shape;
  const rows = new Float32Array(N * K);
  for (let n = 0; n < N; n++) for (let i = 0; i < K; i++) rows[n * K + i] = data[i * N + n];
  return { data: rows, shape: [N, K] };
}

/**
 * @param {Attention} attention @param {LanguageModel} model @param {Origin} origin
 * @param {{ text: string, added: readonly number[], off: HeadName[], change: WhatIf, at: HeadName }} wanted
 * @returns {HeadSteps | null} null where the head isn't there
 */
export function languageSteps(attention, model, origin, { text, added, off, change, at }) {
  const { heads, kvHeads, layers, width, attention: trained } = model.info;
  const [layer, head] = at;
  const { ids, tokens } = model.tokensOf(text, added);
  if (layer >= layers || head >= heads || ids.length === 0) return null;
  const capture = { queries: true, keys: true, values: true, hidden: true };
  const { queries, keys, values, hidden } = model.forward(ids, off, capture, 'last', change);
  if (!queries || !keys || !values || !hidden) throw new Error('the model gave no queries');
  const all = { q: plain(queries[layer]), k: plain(keys[layer]), v: plain(values[layer]) };
  const D = all.q.shape[2];
  const kind = kindsOf(change, trained)[layer];
  const rope = change.rotary ? ropeOf(origin.config, D) : null;
  const back = (/** @type {Tensor} */ x) =>
    drawable(plain(attention.rope(x, { .../** @type {RopeSettings} */ (rope), inverse: true })));
  const rest = mix(attention, all, head, kind);
  const { turned, joined } = rest;
  return {
    ...{ tokens, at, heads, kvHeads, D, width, rope, ...kind },
    ...{ q: rope ? back(turned.q) : turned.q, k: rope ? back(turned.k) : turned.k },
    ...rest,
    ...projections(attention, origin, { layer, head, kvHead: rest.kvHead, D }, hidden[layer], joined),
  };
}

/**
 * @param {Attention} attention @param {Origin} origin @param {{ layer: number, head: number, kvHead: number, D: number }} place
 * @param {{ data: Float32Array, shape: readonly number[] }} hidden @param {Tensor} joined
 * @returns {Pick<HeadSteps, 'x' | 'output' | 'parameters'>}
 */
function projections(attention, { config, weights }, { layer, head, kvHead, D }, hidden, joined) {
  if (!weights) return { x: null, output: null, parameters: null };
  const named = readSafetensors(weights);
  const of = (/** @type {string} */ name) => named[`model.layers.${layer}.${name}.weight`];
  const norm = of('input_layernorm');
  const x = attention.rmsNorm(hidden, { weight: norm, epsilon: config.rms_norm_eps });
  const [q, k, v, out] = ['q', 'k', 'v', 'o'].map((name) => asFloats(attention, of(`self_attn.${name}_proj`)));
  return {
    x: drawable(plain(x)),
    output: drawable(plain(attention.linear(joined, out))),
    parameters: { q: rowsOf(q, head * D, D), k: rowsOf(k, kvHead * D, D), v: rowsOf(v, kvHead * D, D), out },
  };
}

/**
 * The same for the layer that is not trained.
 * @param {Attention} attention @param {Run} run @param {HeadName} at
 * @returns {HeadSteps | null}
 */
export function layerSteps(attention, { tokens, heads, rules: [rule], layer }, at) {
  const head = at[1];
  if (!layer || head >= heads || tokens.length === 0) return null;
  const width = layer.x.shape[2];
  const D = width / heads;
  const x = { data: layer.x.data, shape: [tokens.length, width] };
  const weight = (/** @type {string} */ name) => layer.stateDict[`${name}_proj.weight`];
  const [q, k, v] = ['q', 'k', 'v'].map((name) => split(plain(attention.linear(x, weight(name))), heads));
  const rope = layer.config.rope ? { .../** @type {RopeSettings} */ (layer.config.rope), base: 10000 } : null;
  const turn = (/** @type {Tensor} */ each) => (rope ? plain(attention.rope(each, rope)) : each);
  const scale = 1 / Math.sqrt(D);
  const rest = mix(attention, { q: turn(q), k: turn(k), v }, head, { scale, softcap: 0, rule });
  const part = (/** @type {string} */ name) => rowsOf(weight(name), head * D, D);
  return {
    ...{ tokens, at: [0, head], heads, kvHeads: heads, D, width, scale, softcap: 0, rule, rope },
    ...{ x: drawable(x), q: drawable(headOf(q, head)), k: drawable(headOf(k, head)) },
    ...rest,
    output: drawable(plain(attention.linear(rest.joined, weight('out')))),
    parameters: { q: part('q'), k: part('k'), v: part('v'), out: weight('out') },
  };
}
