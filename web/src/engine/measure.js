// What the heads of a model do on average, and what the model can still do with some of them off: measured on seeded
// random runs that come twice, and on pieces of prose that the shipped model was not trained on.
import heldOut from '../../model/held-out.json' with { type: 'json' };
import { softmax } from './language-model.js';
import { uniform } from './random.js';

/** @import { Effect, HeadName, HeadScores } from '../types.js' */
/** @import { LanguageModel } from './language-model.js' */

const kSeed = 1811;
const kRuns = 24;
const kLongestProbe = 256;
/** Above so many parameters a forward takes seconds: fewer probes then. */
const kLarge = 2e7;
const kRunsOfLarge = 2;

/** @typedef {{ ids: number[], first: number, second: number, length: number }} Repeat `first` and `second` are where the runs begin */

/** Tokens of the longest probe of random runs, and how many of them are different. */
const kProbe = { tokens: 200, different: 147 };

/**
 * The model's first token, filler, a run of distinct random tokens, filler, the run again.
 * @param {LanguageModel} model @returns {Repeat[]}
 */
function repeats(model) {
  const { vocabulary, longest, parameters } = model.info;
  const scale = Math.min(1, longest / kProbe.tokens, (vocabulary - 1) / kProbe.different); // short texts, few tokens
  const next = uniform(kSeed);
  const integer = (/** @type {number} */ low, /** @type {number} */ high) =>
    low + Math.floor(next() * (high - low + 1));
  const start = model.encode('').ids;
  return Array.from({ length: parameters > kLarge ? kRunsOfLarge : kRuns }, () => {
    const [before, length, between] = [integer(0, 39), integer(8, 48), integer(0, 59)].map((n) =>
      Math.floor(scale * n),
    );
    /** @type {Set<number>} */
    const different = new Set();
    while (different.size < before + length + between) different.add(integer(1, vocabulary - 1));
    const once = [...start, ...different];
    const first = start.length + before;
    return { ids: [...once, ...once.slice(first, first + length)], first, second: once.length, length };
  });
}

/** @param {LanguageModel} model @returns {number[][]} */
function prose(model) {
  const { longest, parameters } = model.info;
  const texts = parameters > kLarge ? heldOut.texts.slice(0, 1) : heldOut.texts;
  return texts.map(({ text }) => model.encode(text).ids.slice(0, Math.min(longest, kLongestProbe)));
}

/** Lets the messages in that have come meanwhile: a run for the reader goes first. */
function otherWork() {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}

/**
 * Copying and loss.
 * @param {LanguageModel} model @param {readonly HeadName[]} off
 * @returns {Promise<Effect>}
 */
export async function effectOf(model, off) {
  const { vocabulary } = model.info;
  const counts = { hits: 0, copied: 0, loss: 0, lossTokens: 0 };
  for (const { ids, second, length } of repeats(model)) {
    await otherWork();
    const { data } = model.forward(ids, off, {}, 'all').logits;
    for (let t = second; t < second + length - 1; t++) {
      const row = data.subarray(t * vocabulary, (t + 1) * vocabulary);
      counts.hits += row.indexOf(row.reduce((a, b) => Math.max(a, b))) === ids[t + 1] ? 1 : 0;
      counts.copied++;
    }
  }
  for (const ids of prose(model)) {
    await otherWork();
    const { data } = model.forward(ids, off, {}, 'all').logits;
    for (let t = 0; t + 1 < ids.length; t++) {
      counts.loss -= Math.log(softmax(data.subarray(t * vocabulary, (t + 1) * vocabulary))[ids[t + 1]]);
      counts.lossTokens++;
    }
  }
  return {
    copying: counts.hits / Math.max(1, counts.copied),
    copied: counts.copied,
    loss: counts.lossTokens ? counts.loss / counts.lossTokens : null,
    lossTokens: counts.lossTokens,
  };
}

/** @param {LanguageModel} model @returns {Promise<HeadScores>} */
export async function headScores(model) {
  const sums = new Sums(model);
  for (const { ids, first, second, length } of repeats(model)) {
    await otherWork();
    sums.read(ids);
    for (let i = 2; i < ids.length; i++) sums.add('previous', i, i - 1);
    for (let k = 0; k < length - 1; k++) sums.add('induction', second + k, first + k + 1);
  }
  for (const ids of prose(model)) {
    await otherWork();
    sums.read(ids);
    for (let i = 2; i < ids.length; i++) sums.add('itself', i, i);
    for (let i = 8; i < ids.length; i++) sums.add('first', i, 0);
  }
  return sums.means();
}

/** Sums of single weights over rows, for every head. */
class Sums {
  #model;
  #T = 0;
  /** @type {readonly { weights: { data: Float32Array } }[]} */
  #attention = [];
  /** @type {Record<keyof HeadScores, { count: number, sums: number[][] }>} */
  #kinds;

  /** @param {LanguageModel} model */
  constructor(model) {
    this.#model = model;
    const { layers, heads } = model.info;
    const empty = () => ({ count: 0, sums: Array.from({ length: layers }, () => new Array(heads).fill(0)) });
    this.#kinds = { previous: empty(), induction: empty(), itself: empty(), first: empty() };
  }

  /** @param {number[]} ids */
  read(ids) {
    this.#T = ids.length;
    this.#attention = this.#model.forward(ids, [], { attention: true }).attention ?? [];
  }

  /** @param {keyof HeadScores} kind @param {number} row @param {number} key */
  add(kind, row, key) {
    const { sums } = this.#kinds[kind];
    this.#kinds[kind].count++;
    this.#attention.forEach(({ weights: { data } }, layer) => {
      for (let head = 0; head < sums[layer].length; head++) {
        sums[layer][head] += data[(head * this.#T + row) * this.#T + key];
      }
    });
  }

  /** @returns {HeadScores} */
  means() {
    const mean = (/** @type {keyof HeadScores} */ kind) => {
      const { count, sums } = this.#kinds[kind];
      return sums.map((layer) => layer.map((sum) => sum / Math.max(1, count)));
    };
    return { previous: mean('previous'), induction: mean('induction'), itself: mean('itself'), first: mean('first') };
  }
}
