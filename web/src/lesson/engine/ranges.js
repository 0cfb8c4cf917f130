// The ends of the scales, found where the tensors are made: in a thousand rows of a thousand they take the page too long.
import { visibleKeys } from '../../engine/rules.js';

/** @import { Rule, Tensor } from '../../types.js' */

/** @typedef {readonly [low: number, high: number]} Range */
/** @typedef {Tensor & { range: Range, seen?: Range, rule?: Rule }} Drawable `seen`: what the rows see of it under their rule; with a `rule`, the rest is hidden */

/** @param {Float32Array} data @param {Range} [so] far @returns {Range} */
function rangeOf(data, [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
  let [least, most] = [low, high];
  for (let i = 0; i < data.length; i++) {
    const value = data[i];
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return [least, most];
}

/** @param {Range} range @returns {Range} */
const orNothing = ([low, high]) => (low <= high ? [low, high] : [0, 0]);

/** @param {Tensor} tensor of finite numbers @returns {Drawable} */
export const drawable = (tensor) => ({ ...tensor, range: orNothing(rangeOf(tensor.data)) });

/** @param {Tensor} tensor [T, T] @param {Rule} rule @returns {Drawable} */
export function drawableSquare(tensor, rule) {
  const [T] = tensor.shape;
  let seen = rangeOf(new Float32Array());
  for (let row = 0; row < T; row++) {
    const [first, last] = visibleKeys(rule, row, T);
    seen = rangeOf(tensor.data.subarray(row * T + first, row * T + last + 1), seen);
  }
  return { ...drawable(tensor), seen: orNothing(seen) };
}
