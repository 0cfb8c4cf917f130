// A text that is being written, token by token, with the cache of keys and values: each step reads one token, so its
// attention is one row over all tokens so far.
import { attentionOptions, isAsTrained } from './rules.js';

/** @import { GeneratedToken, Transformer, TransformerCache } from 'attention-wasm/transformer' */
/** @import { LanguageModel, Pass, Wanted } from './language-model.js' */

/**
 * @typedef {object} WritingSettings
 * @property {number} count tokens at most
 * @property {number} temperature @property {number} topK 0: all @property {number} topP @property {number} seed
 * @property {boolean} stop at the end of a sentence
 */

/** `names`: of all tokens, to tell which of them end a sentence. @typedef {{ ids: number[], prompt: number, total: number, names: string[] | null }} Text */

const kSentenceEnd = /[.!?]["'”’]?$/;

export class Writing {
  #owner;
  #wanted;
  #text;
  #cache;
  #stream;
  /** @type {Pass | null} */
  #pass = null;
  /** Tokens that were read, and the one that was written last. @type {number[]} */
  #read = [];
  /** @type {number[]} */
  #next;

  /**
   * @param {LanguageModel} owner @param {Transformer} model @param {Text} text @param {Wanted} wanted
   * @param {WritingSettings} settings
   */
  static async begin(owner, model, text, wanted, settings) {
    const capacity = Math.min(text.ids.length + settings.count, owner.info.longest);
    const cache = await model.createCache({ capacity }); // a promise on the GPU
    return new Writing(owner, model, text, wanted, settings, cache);
  }

  /**
   * @param {LanguageModel} owner @param {Transformer} model @param {Text} text @param {Wanted} wanted
   * @param {WritingSettings} settings @param {TransformerCache} cache
   */
  constructor(owner, model, text, wanted, { count, temperature, topK, topP, seed }, cache) {
    const { attention } = owner.info;
    this.#owner = owner;
    this.#wanted = wanted;
    this.#text = text;
    this.#next = text.ids;
    this.#cache = cache;
    this.#stream = model.generate(text.ids, {
      maxTokens: Math.max(0, Math.min(count, cache.capacity - text.ids.length)),
      ...{ temperature, topP, seed, topK: topK || null },
      stopTokens: text.names ? text.names.flatMap((name, id) => (kSentenceEnd.test(name) ? [id] : [])) : [],
      ...{ cache: this.#cache, capture: { hidden: true, queries: true, keys: true } },
      attention: attentionOptions(wanted.change, attention),
    });
  }

  async next() {
    const start = performance.now();
    const { value, done } = await this.#stream.next();
    if (done || !value) return null;
    const milliseconds = performance.now() - start;
    this.#pass = this.#extended(value);
    this.#read = [...this.#read, ...this.#next];
    this.#next = [value.token];
    const { off, change } = this.#wanted;
    const { prompt, total } = this.#text;
    const changed = off.length > 0 || !isAsTrained(change);
    return { read: this.#read, id: value.token, pass: this.#pass, milliseconds, prompt, total, change, changed };
  }

  /** @param {GeneratedToken} step @returns {Pass} */
  #extended({ hidden = [], queries = [], keys = [], ...step }) {
    if (!this.#pass) return this.#owner.passOf({ hidden, queries, keys, ...step }, this.#wanted.change);
    return {
      source: this.#pass.source.extended({ queries, keys }),
      hidden: this.#pass.hidden.map((states, layer) => joined(states, hidden[layer].data)),
    };
  }

  async end() {
    await this.#stream.return();
    this.#cache.dispose();
  }
}

/** @param {Float32Array} a @param {Float32Array} b */
function joined(a, b) {
  const both = new Float32Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
