// A decoder of the package with its tokenizer: a text in; what its heads attend to and what comes next out.
import { Tokenizer } from '@huggingface/tokenizers';
import { Transformer } from 'attention-wasm/transformer';
import { attentionOptions, isAsTrained, kAsTrained, kindsOf } from './rules.js';
import { KernelSource } from './source.js';
import { tokenText } from './token-text.js';
import { Writing } from './writing.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { CaptureOptions, Captured } from 'attention-wasm/transformer' */
/** @import { Candidate, HeadName, LensLayer, ModelInfo, Progress, Run, WhatIf } from '../types.js' */
/** @import { ModelFiles } from './files.js' */
/** @import { WritingSettings } from './writing.js' */

/** What is asked of the model: a text, tokens behind it, heads that are off, and another attention. @typedef {{ text: string, added: readonly number[], off: readonly HeadName[], change: WhatIf }} Wanted */
/** What the page needs of a pass. @typedef {{ hidden: Float32Array[], source: KernelSource }} Pass hidden: layer by layer, [T, width] */

/** Above this the page would compute for seconds. */
const kLongest = 2048;
const kCandidates = 10;
const kLensTokens = 5;
const kKept = { hidden: true, queries: true, keys: true };

/** @param {Float32Array} logits @returns {Float32Array} */
export function softmax(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

export class LanguageModel {
  #attention;
  #model;
  #tokenizer;
  #info;
  /** The run that is shown; `before`: of the model as it was trained, where that is another one. @type {{ before: Pass, after: Pass } | null} */
  #shown = null;
  /** @type {Writing | null} */
  #writing = null;

  /** On the GPU kernels and model give promises. @param {Attention} attention @param {Transformer} model @param {Tokenizer} tokenizer @param {ModelInfo} info */
  constructor(attention, model, tokenizer, info) {
    this.#attention = attention;
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
    const { layers, heads, kvHeads, headDim, width, vocabulary, parameters, trainedLength, positions } = model.info;
    return new LanguageModel(attention, model, words, {
      ...{ name, layers, heads, kvHeads, headDim, width, vocabulary, parameters, trainedLength },
      ...{ longest: Math.min(kLongest, positions ?? kLongest), hasRope: positions === null },
      attention: model.info.attention.map(({ scale, windowSize }) => ({ scale, windowSize })),
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

  /** @param {number} id */
  #name(id) {
    return tokenText(this.#tokenizer.id_to_token(id) ?? `#${id}`);
  }

  /** The ids of a text and those behind it, as far as there is room. @param {string} text @param {readonly number[]} added */
  #idsOf(text, added) {
    const all = this.encode(text);
    const { longest, vocabulary } = this.#info;
    const ids = [...all.ids.slice(0, longest), ...added.filter((id) => id < vocabulary)].slice(0, longest);
    return { ids, prompt: Math.min(all.ids.length, longest), total: all.ids.length };
  }

  /** The tokens that a run has. @param {string} text @param {readonly number[]} added */
  tokensOf(text, added) {
    const { ids } = this.#idsOf(text, added);
    return { ids, tokens: ids.map((id) => this.#name(id)) };
  }

  /** @param {Wanted} wanted @returns {Promise<Run>} */
  async run({ text, added, off, change }) {
    const { ids, prompt, total } = this.#idsOf(text, added);
    const changed = off.length > 0 || !isAsTrained(change);
    let milliseconds = 0;
    this.#shown = null;
    if (ids.length > 0) {
      const start = performance.now();
      const result = await this.forward(ids, off, kKept, 'last', change);
      milliseconds = performance.now() - start;
      const after = this.passOf(result, change);
      const before = changed ? this.passOf(await this.forward(ids, [], kKept), kAsTrained) : after;
      this.#shown = { before, after };
    }
    return this.#runOf(ids, { prompt, total, change, changed, milliseconds });
  }

  /** @param {readonly number[]} ids @param {{ prompt: number, total: number, change: WhatIf, changed: boolean, milliseconds: number }} more @returns {Run} */
  #runOf(ids, { change, ...more }) {
    const { layers, heads, attention } = this.#info;
    const rules = kindsOf(change, attention).map(({ rule }) => rule);
    const causal = rules.every((rule) => rule.causal);
    return { tokens: ids.map((id) => this.#name(id)), ids: [...ids], ...{ layers, heads, causal, rules }, ...more };
  }

  /**
   * @param {number[]} ids @param {readonly HeadName[]} off @param {CaptureOptions} capture
   * @param {'all' | 'last'} [logits] @param {WhatIf} [change]
   */
  forward(ids, off, capture, logits = 'last', change = kAsTrained) {
    const former = this.#model.disabledHeads; // of a text that is being written meanwhile
    this.#model.disabledHeads = off.map(([layer, head]) => [layer, head]);
    try {
      const attention = attentionOptions(change, this.#info.attention);
      return this.#model.forward(ids, { capture, logits, attention });
    } finally {
      this.#model.disabledHeads = former;
    }
  }

  /** @param {Captured} captured @param {WhatIf} change @returns {Pass} */
  passOf({ hidden = [], queries = [], keys = [] }, change) {
    const kinds = kindsOf(change, this.#info.attention);
    return {
      hidden: hidden.map(({ data }) => data),
      source: new KernelSource(this.#attention, { queries, keys, kinds }),
    };
  }

  /** Where the weights of the last run come from. */
  get sources() {
    return this.#shown && { source: this.#shown.after.source, before: this.#shown.before.source };
  }

  /** @param {Float32Array} states [rows, width] @returns {Promise<Float32Array[]>} probabilities of each row */
  async #probabilities(states) {
    const { width, vocabulary } = this.#info;
    const rows = states.length / width;
    const { data } = await this.#model.logitLens({ data: states, shape: [rows, width] });
    return Array.from({ length: rows }, (_, row) => softmax(data.subarray(row * vocabulary, (row + 1) * vocabulary)));
  }

  /**
   * The tokens that are likeliest after a row of the last run, of the model as it was trained and as it was changed.
   * @param {number} row @returns {Promise<Candidate[]>}
   */
  async predict(row) {
    const { width, layers } = this.#info;
    const shown = this.#shown;
    if (!shown || (row + 1) * width > shown.after.hidden[layers].length) return [];
    const rowOf = (/** @type {Pass} */ { hidden }) => hidden[layers].slice(row * width, (row + 1) * width);
    const [after] = await this.#probabilities(rowOf(shown.after));
    const [before] = shown.before === shown.after ? [after] : await this.#probabilities(rowOf(shown.before));
    const weight = (/** @type {number} */ id) => Math.max(before[id], after[id]);
    return likeliest(after, kCandidates, weight).map((id) => ({
      ...{ token: this.#name(id), id },
      ...{ before: before[id], after: after[id] },
    }));
  }

  /** The logit lens on a row of the last run. @param {number} row @returns {Promise<LensLayer[]>} */
  async lens(row) {
    const { width } = this.#info;
    const { hidden } = this.#shown?.after ?? { hidden: [] };
    if (hidden.length === 0 || (row + 1) * width > hidden[0].length) return [];
    const states = new Float32Array(hidden.length * width);
    hidden.forEach((layer, l) => {
      states.set(layer.subarray(row * width, (row + 1) * width), l * width);
    });
    return (await this.#probabilities(states)).map((probabilities, layer) => ({
      layer,
      tokens: likeliest(probabilities, kLensTokens).map((id) => ({
        ...{ token: this.#name(id), id, probability: probabilities[id] },
      })),
    }));
  }

  /** Begins to write behind the text. @param {Wanted & { settings: WritingSettings }} wanted */
  async startWriting({ settings, ...wanted }) {
    await this.stopWriting();
    const { ids, prompt, total } = this.#idsOf(wanted.text, wanted.added);
    this.#model.disabledHeads = wanted.off.map(([layer, head]) => [layer, head]);
    const names = settings.stop ? Array.from({ length: this.#info.vocabulary }, (_, id) => this.#name(id)) : null;
    this.#writing = await Writing.begin(this, this.#model, { ids, prompt, total, names }, wanted, settings);
  }

  /**
   * One token more: the run that led to it, with a row for each token that was read, and the token.
   * @returns {Promise<{ run: Run, id: number, token: string } | null>} null at the end
   */
  async writeNext() {
    const step = await this.#writing?.next();
    if (!step) {
      await this.stopWriting();
      return null;
    }
    const { read, id, pass, milliseconds, prompt, total, change, changed } = step;
    this.#shown = { before: pass, after: pass };
    return { run: this.#runOf(read, { prompt, total, change, changed, milliseconds }), id, token: this.#name(id) };
  }

  async stopWriting() {
    const writing = this.#writing;
    this.#writing = null;
    await writing?.end();
    this.#model.disabledHeads = [];
  }

  dispose() {
    this.#model.dispose();
  }
}

/** @param {Float32Array} probabilities @param {number} count @param {(id: number) => number} [weight] @returns {number[]} */
function likeliest(probabilities, count, weight = (id) => probabilities[id]) {
  return [...probabilities.keys()].sort((a, b) => weight(b) - weight(a) || a - b).slice(0, count);
}
