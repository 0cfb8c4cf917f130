// Numbers as the lesson writes them, and small arithmetic on tensors.

import { visibleKeys } from '../engine/rules.js';

/** @import { Rule, Tensor } from '../types.js' */

/** With a real minus sign. @param {number} value @param {number} [digits] */
export function fixed(value, digits = 3) {
  if (value === Number.NEGATIVE_INFINITY) return '−∞';
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace('-', '') : text.replace('-', '−');
}

/** In parentheses where it is negative. @param {number} value @param {number} [digits] */
export const factor = (value, digits = 2) => (value < 0 ? `(${fixed(value, digits)})` : fixed(value, digits));

const kPowers = ['', ' k', ' M', ' G', ' T', ' P'];

/** Such as 1.2 M. @param {number} count */
export function short(count) {
  let power = 0;
  let value = count;
  while (value >= 999.5 && power < kPowers.length - 1) {
    value /= 1000;
    power++;
  }
  return `${power === 0 || value >= 99.5 ? Math.round(value) : Number(value.toPrecision(3))}${kPowers[power]}`;
}

/** @param {number} bytes */
export function bytesText(bytes) {
  const text = short(bytes);
  return text.includes(' ') ? `${text}B` : `${text} B`;
}

/** @param {Tensor} tensor [R, C] @param {number} row */
export function rowOf({ data, shape: [, C] }, row) {
  return data.subarray(row * C, (row + 1) * C);
}

/** @param {Tensor} tensor [R, C] @param {number} row @param {number} column */
export const at = ({ data, shape: [, C] }, row, column) => data[row * C + column];

/** @param {Tensor} tensor */
export const sizeText = ({ shape }) => `[${shape.join(', ')}]`;

/** @type {WeakMap<Float32Array, [number, number]>} */
const ranges = new WeakMap();

/** Lowest and highest of the numbers that are finite. @param {Float32Array} data @returns {[number, number]} */
export function range(data) {
  const known = ranges.get(data) ?? rangeOf(data);
  ranges.set(data, known);
  return known;
}

/** @param {Float32Array} data @returns {[number, number]} */
function rangeOf(data) {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of data) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 0] : [low, high];
}

/** @type {WeakMap<Tensor, Tensor>} */
const masks = new WeakMap();

/** The same with −∞ where a row doesn't see the key; a tensor has one rule. @param {Tensor} tensor [T, T] @param {Rule} rule @returns {Tensor} */
export function masked(tensor, rule) {
  const known = masks.get(tensor) ?? hide(tensor, rule);
  masks.set(tensor, known);
  return known;
}

/** @param {Tensor} tensor @param {Rule} rule @returns {Tensor} */
function hide({ data, shape }, rule) {
  const [T] = shape;
  const hidden = new Float32Array(data.length).fill(Number.NEGATIVE_INFINITY);
  for (let i = 0; i < T; i++) {
    const [first, last] = visibleKeys(rule, i, T);
    hidden.set(data.subarray(i * T + first, i * T + last + 1), i * T + first);
  }
  return { data: hidden, shape };
}
