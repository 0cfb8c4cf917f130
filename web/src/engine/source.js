// Attention weights of any head on request. What is kept of a run are its queries and keys, which grow with T; matrices,
// which grow with its square, are computed when one is asked for, by the same kernels: on the GPU, where those run, what
// is given here are promises.
import { after } from './waiting.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { HeadName, Rule } from '../types.js' */
/** @import { Source } from './matrix.js' */

/**
 * How a layer's logits come about.
 * @typedef {{ scale: number, softcap: number, rule: Rule }} Kind
 */
/** @typedef {{ data: Float32Array, shape: readonly number[] }} Heads [heads, T, D] */

/** @implements {Source} */
export class KernelSource {
  #attention;
  #queries;
  #keys;
  #kinds;

  /**
   * @param {Attention} attention
   * @param {{ queries: Heads[], keys: Heads[], kinds: Kind[] }} run layer by layer, turned by RoPE
   */
  constructor(attention, { queries, keys, kinds }) {
    this.#attention = attention;
    this.#queries = queries;
    this.#keys = keys;
    this.#kinds = kinds;
    /** @type {number} */
    this.layers = kinds.length;
    this.rules = kinds.map(({ rule }) => rule);
    /** @type {number} */
    this.heads = queries[0].shape[0];
    /** @type {number} */
    this.T = queries[0].shape[1];
  }

  /** @param {HeadName} head @param {number} from @returns {{ q: Heads, k: Heads, kind: Kind }} one head each */
  #operands([layer, head], from) {
    const { [layer]: queries } = this.#queries;
    const { [layer]: keys } = this.#keys;
    const [heads, T, D] = queries.shape;
    const group = Math.floor((head * keys.shape[0]) / heads);
    return {
      q: { data: queries.data.subarray((head * T + from) * D, (head + 1) * T * D), shape: [T - from, D] },
      k: { data: keys.data.subarray(group * T * D, (group + 1) * T * D), shape: [T, D] },
      kind: this.#kinds[layer],
    };
  }

  /** @param {HeadName} head @param {number} from the first row @returns {Float32Array} [T − from, T] */
  weights(head, from) {
    const { q, k, kind } = this.#operands(head, from);
    const { scale, softcap, rule } = kind;
    const v = { data: new Float32Array(this.T), shape: [this.T, 1] };
    const result = this.#attention.scaledDotProductAttention(q, k, v, {
      ...{ isCausal: rule.causal, windowSize: [rule.left, rule.right], queryOffset: from },
      ...{ scale, softcap, needWeights: true },
    });
    return after(result, ({ weights }) => /** @type {Heads} */ (weights).data);
  }

  /** The logits before any mask. @param {HeadName} head @param {number} from @returns {Float32Array} [T − from, T] */
  scores(head, from) {
    const { q, k, kind } = this.#operands(head, from);
    const { scale, softcap } = kind;
    const products = this.#attention.linear(q, k); // q·kᵀ
    return after(products, ({ data }) => {
      for (let i = 0; i < data.length; i++) {
        data[i] *= scale;
        if (softcap) data[i] = softcap * Math.tanh(data[i] / softcap);
      }
      return data;
    });
  }

  /** @param {Float32Array} a @param {Float32Array} b @returns {Float32Array} */
  timesTransposed(a, b) {
    const shape = [this.T, this.T];
    return after(this.#attention.linear({ data: a, shape }, { data: b, shape }), ({ data }) => data);
  }

  /** The same with rows behind it: what a cached step has read. @param {{ queries: Heads[], keys: Heads[] }} step */
  extended({ queries, keys }) {
    return new KernelSource(this.#attention, {
      queries: this.#queries.map((part, layer) => joined(part, queries[layer])),
      keys: this.#keys.map((part, layer) => joined(part, keys[layer])),
      kinds: this.#kinds,
    });
  }
}

/** @param {Heads} a @param {Heads} b @returns {Heads} */
function joined(a, b) {
  const [heads, Ta, D] = a.shape;
  const Tb = b.shape[1];
  const data = new Float32Array(heads * (Ta + Tb) * D);
  for (let head = 0; head < heads; head++) {
    data.set(a.data.subarray(head * Ta * D, (head + 1) * Ta * D), head * (Ta + Tb) * D);
    data.set(b.data.subarray(head * Tb * D, (head + 1) * Tb * D), (head * (Ta + Tb) + Ta) * D);
  }
  return { data, shape: [heads, Ta + Tb, D] };
}
