// A decoder of the package with its tokenizer: a text in, every attention weight and the next token's probabilities out.
import { Tokenizer } from '@huggingface/tokenizers';
import { Transformer } from 'attention-wasm/transformer';
import { tokenText } from './token-text.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { CaptureOptions } from 'attention-wasm/transformer' */
/** @import { Candidate, HeadName, ModelInfo, Progress, Run } from '../types.js' */
/** @import { ModelFiles } from './files.js' */

/** Attention weights that one run may keep, in bytes: what a phone can hold besides a model. */
const kMostWeightBytes = 64 * 2 ** 20;
const kLongest = 1024;
const kCandidates = 10;

/** @param {Float32Array} logits @returns {Float32Array} */
export function softmax(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

export class LanguageModel {
  #model;
  #tokenizer;
  /**
   * Last hidden states of the run that is shown, [T, width]: with all heads, and with those that are on.
   * @type {{ before: Float32Array, after: Float32Array }}
   */
  #hidden = { before: new Float32Array(), after: new Float32Array() };
  #info;

  /** @param {Transformer} model @param {Tokenizer} tokenizer @param {ModelInfo} info */
  constructor(model, tokenizer, info) {
    this.#model = model;
    this.#tokenizer = tokenizer;
    this.#info = info;
  }

  /**
   * @param {Attention} attention @param {ModelFiles} files @param {(progress: Progress) => void} onProgress
   * @returns {Promise<LanguageModel>}
   */
  static async load(attention, { name, config, tokenizer, tokenizerConfig, weights }, onProgress) {
    const words = new Tokenizer(tokenizer, tokenizerConfig); // refused before any memory is taken
    const model = await Transformer.load(attention, {
      config,
      weights,
      onProgress: ({ loaded, total }) => onProgress({ stage: 'Packing the weights', loaded, total }),
    });
    const { layers, heads, kvHeads, width, vocabulary, parameters, trainedLength } = model.info;
    const fits = Math.floor(Math.sqrt(kMostWeightBytes / 4 / (layers * heads)));
    const longest = Math.min(fits, kLongest, trainedLength ?? kLongest);
    return new LanguageModel(model, words, {
      ...{ name, layers, heads, kvHeads, width, vocabulary, parameters, longest, trainedLength },
      fileBytes: weights.reduce((sum, { byteLength }) => sum + byteLength, 0),
      memoryBytes: 4 * parameters,
    });
  }

  get info() {
    return this.#info;
  }

  /** Sizes as the package has them. */
  get sizes() {
    return this.#model.info;
  }

  /** Tokens of a text, the model's own first token before them. @param {string} text */
  encode(text) {
    const { ids, tokens } = this.#tokenizer.encode(text);
    return { ids, tokens: tokens.map(tokenText) };
  }

  /** @param {string} text @param {readonly HeadName[]} off @returns {Run} */
  run(text, off) {
    const all = this.encode(text);
    const { longest, layers, heads } = this.#info;
    const [ids, tokens] = [all.ids.slice(0, longest), all.tokens.slice(0, longest)];
    const T = ids.length;
    const weights = new Float32Array(layers * heads * T * T);
    let milliseconds = 0;
    if (T > 0) {
      const start = performance.now();
      const { attention = [], hidden = [] } = this.forward(ids, off, { attention: true, hidden: true });
      milliseconds = performance.now() - start;
      attention.forEach(({ weights: kept }, layer) => {
        weights.set(kept.data, layer * heads * T * T);
      });
      const after = hidden[layers].data;
      const before = off.length ? this.forward(ids, [], { hidden: true }).hidden?.[layers].data : after;
      this.#hidden = { before: before ?? after, after };
    }
    return { tokens, ids, total: all.ids.length, layers, heads, causal: true, weights, milliseconds };
  }

  /** @param {number[]} ids @param {readonly HeadName[]} off @param {CaptureOptions} capture @param {'all' | 'last'} [logits] */
  forward(ids, off, capture, logits = 'last') {
    this.#model.disabledHeads = off.map(([layer, head]) => [layer, head]);
    return this.#model.forward(ids, { capture, logits });
  }

  /**
   * The tokens that are likeliest after a row of the last run: the most probable ones with all heads and with those that
   * are on.
   * @param {number} row @returns {Candidate[]}
   */
  predict(row) {
    const { width } = this.#info;
    if ((row + 1) * width > this.#hidden.after.length) return [];
    const rowOf = (/** @type {Float32Array} */ states) => {
      const data = states.slice(row * width, (row + 1) * width);
      return softmax(this.#model.logitLens({ data, shape: [1, width] }).data);
    };
    const after = rowOf(this.#hidden.after);
    const isSame = this.#hidden.after === this.#hidden.before;
    const before = isSame ? after : rowOf(this.#hidden.before);
    const weight = (/** @type {number} */ id) => Math.max(before[id], after[id]);
    return [...after.keys()]
      .sort((a, b) => weight(b) - weight(a) || a - b)
      .slice(0, kCandidates)
      .map((id) => ({
        token: tokenText(this.#tokenizer.id_to_token(id) ?? `#${id}`),
        ...{ id, before: before[id], after: after[id] },
      }));
  }

  dispose() {
    this.#model.dispose();
  }
}
