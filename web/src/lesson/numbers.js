// Numbers as the lesson writes them, and small arithmetic on tensors.

import { visibleKeys } from '../engine/rules.js';

/** @import { Rule, Tensor } from '../types.js' */
/** @import { Drawable } from './engine/ranges.js' */

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

/** The same with −∞ where a row doesn't see the key. @param {Drawable} tensor [T, T] @param {Rule} rule @returns {Drawable} */
export const masked = (tensor, rule) => ({ ...tensor, rule, range: tensor.seen ?? tensor.range });

/** Of a row of a tensor, with what is hidden from it as −∞. @param {Drawable} tensor @param {number} row @param {number} count @returns {number[]} */
export function firstOf(tensor, row, count) {
  const [first, last] = tensor.rule ? visibleKeys(tensor.rule, row, tensor.shape[1]) : [0, tensor.shape[1] - 1];
  return Array.from(rowOf(tensor, row).slice(0, count), (value, i) =>
    i < first || i > last ? Number.NEGATIVE_INFINITY : value,
  );
}
