// Tables of cos and sin. Angles are formed in float64, so that position 131,071 is as exact as position 1; the kernels
// take the result in float32. What was computed for a configuration is kept and extended.
import { frequenciesOf } from './rope-frequencies.js';

/** @import { RopeConfig } from './rope-config.js' */
/** @import { RopeFrequencies } from './rope-frequencies.js' */

/** Floats that one table may hold, and how many configurations are kept. */
const kMostKept = 2 ** 20;
const kMostTables = 8;

/**
 * Positions of a call: streams (one, or three or four for multimodal models) of rows.
 * @typedef {object} Positions
 * @property {number} items 1, or B where every item has its own
 * @property {number} T
 * @property {(stream: number, item: number, t: number) => number} at
 * @property {boolean} isRange `at` counts on by one from `at(0, 0, 0)`, the same in every stream
 */

/** Tables [items, T, rotaryDim / 2]. @typedef {{ cos: Float32Array, sin: Float32Array }} Tables */

/** Positions 0, 1, 2, … of one configuration. */
class Kept {
  cos = new Float32Array(0);
  sin = new Float32Array(0);

  /** @param {RopeFrequencies} frequencies */
  constructor(frequencies) {
    this.source = frequencies;
    this.pairs = frequencies.frequencies.length;
  }

  /** Rows start … start + T − 1, or null where they are too far out to be kept. @param {number} start @param {number} T @returns {Tables | null} */
  rows(start, T) {
    const end = start + T;
    if (start < 0 || end * this.pairs > kMostKept) return null;
    const have = this.cos.length / this.pairs;
    // A far start would compute all that lies before it.
    if (start > 2 * have + 64) return null;
    if (end > have) this.#grow(have, Math.min(Math.max(end, 2 * have), Math.floor(kMostKept / this.pairs)));
    return {
      cos: this.cos.subarray(start * this.pairs, end * this.pairs),
      sin: this.sin.subarray(start * this.pairs, end * this.pairs),
    };
  }

  /** @param {number} from @param {number} to */
  #grow(from, to) {
    const cos = new Float32Array(to * this.pairs);
    const sin = new Float32Array(to * this.pairs);
    cos.set(this.cos);
    sin.set(this.sin);
    for (let p = from; p < to; ++p) fillRow({ cos, sin }, p * this.pairs, this.source, () => p);
    this.cos = cos;
    this.sin = sin;
  }
}

/**
 * @param {Tables} tables @param {number} at the row's first element @param {RopeFrequencies} source
 * @param {(pair: number) => number} position
 */
function fillRow({ cos, sin }, at, { frequencies, attentionFactor }, position) {
  for (let i = 0; i < frequencies.length; ++i) {
    const angle = position(i) * frequencies[i];
    cos[at + i] = attentionFactor * Math.cos(angle);
    sin[at + i] = attentionFactor * Math.sin(angle);
  }
}

export class RopeTables {
  /** @type {Map<string, Kept>} */
  #kept = new Map();

  /**
   * @param {RopeConfig} config @param {Positions} positions
   * @param {Uint8Array | null} streams the position stream of each pair; null: one stream for all
   * @param {number | null} sequenceLength what the caller says; null: the largest position of each item, plus one
   * @returns {Tables} which belong to the cache: not to be changed
   */
  get(config, positions, streams, sequenceLength) {
    const { items, T, at, isRange } = positions;
    if (isRange) {
      const start = T === 0 ? 0 : at(0, 0, 0);
      const kept = this.#keptFor(config, sequenceLength ?? start + T, sequenceLength !== null)?.rows(start, T);
      if (kept) return kept;
    }
    const pairs = config.rotaryDim / 2;
    const tables = { cos: new Float32Array(items * T * pairs), sin: new Float32Array(items * T * pairs) };
    for (let b = 0; b < items; ++b) {
      const seen = config.dependsOnLength ? (sequenceLength ?? largest(positions, streams, b) + 1) : 0;
      const source = frequenciesOf(config, seen);
      for (let t = 0; t < T; ++t) {
        fillRow(tables, (b * T + t) * pairs, source, (pair) => at(streams ? streams[pair] : 0, b, t));
      }
    }
    return tables;
  }

  /**
   * @param {RopeConfig} config @param {number} seen @param {boolean} isFixed by the caller, so it will come again
   * @returns {Kept | null} null for frequencies that hold for one length only
   */
  #keptFor(config, seen, isFixed) {
    const { type, L0, Lmax, dependsOnLength } = config;
    const isLong = dependsOnLength && seen > /** @type {number} */ (L0 ?? Lmax);
    if (isLong && type === 'dynamic' && !isFixed) return null;
    const key = `${config.key} ${isLong ? (type === 'dynamic' ? seen : 'long') : ''}`;
    let kept = this.#kept.get(key);
    if (kept) return kept;
    kept = new Kept(frequenciesOf(config, seen));
    if (this.#kept.size === kMostTables) this.#kept.delete(/** @type {string} */ (this.#kept.keys().next().value));
    this.#kept.set(key, kept);
    return kept;
  }
}

/** @param {Positions} positions @param {Uint8Array | null} streams @param {number} item */
function largest({ T, at }, streams, item) {
  const count = streams ? Math.max(...streams) + 1 : 1;
  let result = -1;
  for (let s = 0; s < count; ++s) for (let t = 0; t < T; ++t) result = Math.max(result, at(s, item, t));
  return result;
}
