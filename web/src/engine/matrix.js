// From heads to the one matrix that is shown: combined, thresholded, pooled. No kernel is called here; a source has them,
// and what it gives may be promises: `yield` waits for those.
//
//   mean, max   over heads, element by element
//   rollout     R = Ā_L ⋯ Ā_1 with Ā = ½·(mean of the layer's heads) + ½·I, each row divided by its sum (Abnar & Zuidema,
//               2020): how much of each token's beginning is in a row behind the last layer, if attention mixed alone
import { ruleOf, visibleKeys, widest } from './rules.js';
import { done } from './waiting.js';

/** @import { HeadName, Matrix, MatrixView, Rule, Thumbnails } from '../types.js' */

/**
 * Where weights come from: at once, or as promises. Rows from `from` on, each of T keys.
 * @typedef {object} Source
 * @property {number} T @property {number} layers @property {number} heads
 * @property {readonly Rule[]} rules
 * @property {(head: HeadName, from: number) => Float32Array} weights
 * @property {(head: HeadName, from: number) => Float32Array} scores
 * @property {(a: Float32Array, b: Float32Array) => Float32Array} timesTransposed a·bᵀ, both [T, T]
 */

/**
 * @param {MatrixView} view @param {Source} source @param {Source | null} before for a change: as the model was trained
 * @returns {Matrix} a promise of it where the source gives promises
 */
export const matrixOf = (view, source, before) => done(matrixSteps(view, source, before));

/** @param {MatrixView} view @param {Source} source @param {Source | null} before @returns {Generator<any, Matrix, any>} */
function* matrixSteps(view, source, before) {
  const { show, from, hideFirst, mass } = view;
  const columns = source.T;
  const data = yield* combined(view, source);
  let rule = ruleOf(source.rules, view);
  if (show === 'change' && before) {
    const other = yield* combined(view, before);
    for (let i = 0; i < data.length; i++) data[i] -= other[i];
    rule = widest([rule, ruleOf(before.rules, view)]);
  }
  hide(data, columns, from, rule);
  if (show === 'weights' && hideFirst) leaveFirstOut(data, columns);
  if (show === 'weights' && mass < 1) keepMass(data, columns, mass);
  return { data, from, columns, rule, extreme: largest(data.map(Math.abs)) };
}

/** The largest number, whatever else there is; 0 where all are smaller. @param {Float32Array} values */
export function largest(values) {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}

/** @param {Float32Array} data @param {number} columns @param {number} from @param {Rule} rule */
function hide(data, columns, from, rule) {
  for (let at = 0, row = from; at < data.length; at += columns, row++) {
    const [first, last] = visibleKeys(rule, row, columns);
    data.fill(Number.NaN, at, at + first);
    data.fill(Number.NaN, at + last + 1, at + columns);
  }
}

/** A copy that may be written to. @param {MatrixView} view @param {Source} source @returns {Generator<any, Float32Array, any>} */
function* combined({ combine, of, show, from }, source) {
  if (combine === 'rollout') return (yield* rollout(source)).slice(from * source.T);
  const one = (/** @type {HeadName} */ head) =>
    show === 'scores' ? source.scores(head, from) : source.weights(head, from);
  if (combine === 'one' || of.length === 1) return (yield one(of[0])).slice();
  const sum = (yield one(of[0])).slice();
  for (const head of of.slice(1)) {
    const values = yield one(head);
    if (combine === 'max') for (let i = 0; i < sum.length; i++) sum[i] = Math.max(sum[i], values[i]);
    else for (let i = 0; i < sum.length; i++) sum[i] += values[i];
  }
  if (combine === 'mean') for (let i = 0; i < sum.length; i++) sum[i] /= of.length;
  return sum;
}

/** @param {Source} source @returns {Generator<any, Float32Array, any>} [T, T] */
function* rollout(source) {
  const { T, layers, heads } = source;
  // Transposed all the way, because a product with a transposed matrix is what the kernels have: (Ā·R)ᵀ = Rᵀ·Āᵀ.
  /** @type {Float32Array} */
  let product = identity(T);
  for (let layer = 0; layer < layers; layer++) {
    const mixed = identity(T).map((value) => value / 2);
    for (let head = 0; head < heads; head++) {
      const values = yield source.weights([layer, head], 0);
      for (let i = 0; i < mixed.length; i++) mixed[i] += values[i] / (2 * heads);
    }
    for (let row = 0; row < T; row++) {
      const part = mixed.subarray(row * T, (row + 1) * T);
      const sum = part.reduce((total, value) => total + value, 0);
      for (let i = 0; i < T; i++) part[i] /= sum;
    }
    product = yield source.timesTransposed(product, mixed);
  }
  return transposed(product, T);
}

/** @param {number} T */
function identity(T) {
  const data = new Float32Array(T * T);
  for (let i = 0; i < T; i++) data[i * T + i] = 1;
  return data;
}

/** @param {Float32Array} data @param {number} T */
function transposed(data, T) {
  const turned = new Float32Array(T * T);
  for (let row = 0; row < T; row++)
    for (let column = 0; column < T; column++) turned[column * T + row] = data[row * T + column];
  return turned;
}

/** A row that sees the first token alone keeps nothing. @param {Float32Array} data @param {number} columns */
function leaveFirstOut(data, columns) {
  for (let at = 0; at < data.length; at += columns) {
    const row = data.subarray(at, at + columns);
    row[0] = Number.NaN;
    const rest = row.reduce((sum, value) => (value > 0 ? sum + value : sum), 0);
    if (rest > 0) for (let i = 1; i < columns; i++) row[i] /= rest;
  }
}

/** @param {Float32Array} data @param {number} columns @param {number} mass of each row's sum */
function keepMass(data, columns, mass) {
  for (let at = 0; at < data.length; at += columns) {
    const row = data.subarray(at, at + columns);
    const least = leastKept(row, mass);
    for (let i = 0; i < columns; i++) if (!(row[i] >= least)) row[i] = Number.NaN;
  }
}

/** The smallest weight that is needed to reach the share, the largest first. @param {Float32Array} values @param {number} mass */
function leastKept(values, mass) {
  const sorted = values.filter((value) => value > 0).sort();
  const aim = mass * sorted.reduce((sum, value) => sum + value, 0);
  let reached = 0;
  for (let i = sorted.length - 1; i >= 0; i--) {
    reached += sorted[i];
    if (reached >= aim) return sorted[i];
  }
  return sorted[0] ?? 0;
}

/**
 * The largest value of each tile: a thin diagonal stays in sight.
 * @param {Float32Array} data [rows, columns] @param {number} columns @param {number} high @param {number} wide tiles
 * @returns {Float32Array} [high, wide], by magnitude, with the sign; no number where a tile has none
 */
export function pooled(data, columns, high, wide) {
  const rows = data.length / columns;
  if (rows === high && columns === wide) return data;
  const tiles = new Float32Array(high * wide).fill(Number.NaN);
  const place = Int32Array.from({ length: columns }, (_, i) => Math.floor((i * wide) / columns));
  for (let row = 0; row < rows; row++) {
    const base = Math.floor((row * high) / rows) * wide;
    for (let column = 0, at = row * columns; column < columns; column++, at++) {
      const value = data[at];
      const tile = base + place[column];
      // Written so that any number wins over none.
      if (!(Math.abs(value) <= Math.abs(tiles[tile])) && !Number.isNaN(value)) tiles[tile] = value;
    }
  }
  return tiles;
}

/**
 * @param {Source} source @param {number} layer @param {number} side at most @param {boolean} hideFirst
 * @returns {Thumbnails} a promise of them where the source gives promises
 */
export const thumbnailsOf = (source, layer, side, hideFirst) => done(thumbnailSteps(source, layer, side, hideFirst));

/** @param {Source} source @param {number} layer @param {number} side @param {boolean} hideFirst @returns {Generator<any, Thumbnails, any>} */
function* thumbnailSteps(source, layer, side, hideFirst) {
  const tiles = Math.min(side, source.T);
  const data = new Float32Array(source.heads * tiles * tiles);
  for (let head = 0; head < source.heads; head++) {
    const view = /** @type {MatrixView} */ ({
      ...{ combine: 'one', of: [[layer, head]], show: 'weights', hideFirst, mass: 1, from: 0 },
    });
    const { data: whole, columns } = yield* matrixSteps(view, source, null);
    data.set(pooled(whole, columns, tiles, tiles), head * tiles * tiles);
  }
  return { layer, side: tiles, data };
}
