// What a query row may see: lengths, causal alignment, window, masks; and ALiBi, which needs the same positions.

import { integer, integers, isAbsent, isList, list, operand, product, typedArrayName } from './check.js';
import { refuse } from './errors.js';

/** @import { Context, Operand } from './check.js' */

/** Positions stay far from the ends of 32-bit integers, so that position ± window can be formed in them. */
const kMostOffset = 2 ** 29;

/** @typedef {{ B: number, H: number, Tq: number, Tk: number }} Sizes */

/**
 * How positions limit what is seen, in the terms of attention.h.
 * @typedef {object} Positions
 * @property {Int32Array | null} offset position of row 0 for each batch item; null: 0, or not asked for
 * @property {number} left
 * @property {number} right
 */

/**
 * @param {string} fn @param {Record<string, any>} options @param {Sizes} sizes
 * @param {Int32Array | null} qLength @param {Int32Array | null} kLength valid tokens of each item, or null for all
 * @param {boolean} isPacked lengths are those of sequences: whether they agree decides, not whether Tq = Tk
 * @returns {Positions}
 */
export function positionsOf(fn, options, sizes, qLength, kLength, isPacked) {
  const { B, Tq, Tk } = sizes;
  const causal = causalOf(fn, options.isCausal);
  let [left, right] = windowOf(fn, options.windowSize);
  if (causal !== false) right = 0;
  const given = queryOffsetOf(fn, options.queryOffset, B);
  if (given && typeof causal === 'string') {
    refuse('INVALID_OPTION', fn, `isCausal must be true or false beside queryOffset`, causal);
  }
  const hasAlibi = !isAbsent(options.alibiSlopes) && options.alibiSlopes !== false;
  if (left < 0 && right < 0 && !hasAlibi) return { offset: null, left, right };

  const lengthsAgree = agree(B, Tq, Tk, qLength, kLength);
  if (!given && causal === true && !(lengthsAgree && (isPacked || Tq === Tk))) {
    const rule = `isCausal must be 'top-left' or 'bottom-right' (or queryOffset given) where query and key lengths differ`;
    refuse('INVALID_OPTION', fn, rule, true);
  }
  if (!given && causal === false && !(isPacked ? lengthsAgree : Tq === Tk)) {
    const name = hasAlibi ? 'alibiSlopes' : 'windowSize';
    const rule = `${name} must come with queryOffset or isCausal 'top-left' or 'bottom-right' where query and key lengths differ`;
    refuse('INVALID_OPTION', fn, rule, options[name]);
  }
  const offset = given ?? new Int32Array(B);
  if (causal === 'bottom-right') {
    for (let b = 0; b < B; ++b) offset[b] = (kLength ? kLength[b] : Tk) - (qLength ? qLength[b] : Tq);
  }
  return openWhereAllIsSeen({ offset, left, right }, Tq, Tk, hasAlibi);
}

/**
 * A side of the window that hides nothing is the same as an open one, and cheaper.
 * @param {{ offset: Int32Array, left: number, right: number }} positions
 * @param {number} Tq @param {number} Tk @param {boolean} hasAlibi
 * @returns {Positions}
 */
function openWhereAllIsSeen({ offset, left, right }, Tq, Tk, hasAlibi) {
  const least = offset.reduce((a, b) => Math.min(a, b), kMostOffset);
  const most = offset.reduce((a, b) => Math.max(a, b), -kMostOffset);
  if (left >= most + Tq - 1) left = -1;
  if (right >= Tk - 1 - least) right = -1;
  const isNeeded = left >= 0 || right >= 0 || hasAlibi;
  return { offset: isNeeded && (least !== 0 || most !== 0) ? offset : null, left, right };
}

/** @param {number} B @param {number} Tq @param {number} Tk @param {Int32Array | null} qLength @param {Int32Array | null} kLength */
function agree(B, Tq, Tk, qLength, kLength) {
  if (!qLength && !kLength) return Tq === Tk;
  for (let b = 0; b < B; ++b) {
    if ((qLength ? qLength[b] : Tq) !== (kLength ? kLength[b] : Tk)) return false;
  }
  return true;
}

/** @param {string} fn @param {unknown} value @returns {boolean | 'top-left' | 'bottom-right'} */
export function causalOf(fn, value) {
  if (isAbsent(value)) return false;
  if (typeof value === 'boolean' || value === 'top-left' || value === 'bottom-right') return value;
  return refuse('INVALID_OPTION', fn, `isCausal must be true, false, 'top-left' or 'bottom-right'`, value);
}

/** @param {string} fn @param {unknown} value @returns {[number, number]} */
export function windowOf(fn, value) {
  if (isAbsent(value)) return [-1, -1];
  if (!Array.isArray(value) || value.length !== 2) {
    refuse('INVALID_OPTION', fn, 'windowSize must be [left, right]', value);
  }
  return [
    integer(fn, 'windowSize[0]', value[0], -1, Number.MAX_SAFE_INTEGER),
    integer(fn, 'windowSize[1]', value[1], -1, Number.MAX_SAFE_INTEGER),
  ];
}

/** @param {string} fn @param {unknown} value @param {number} B */
export function queryOffsetOf(fn, value, B) {
  if (isAbsent(value)) return null;
  if (typeof value !== 'number') return integers(fn, 'queryOffset', value, B, -kMostOffset, kMostOffset);
  return new Int32Array(B).fill(integer(fn, 'queryOffset', value, -kMostOffset, kMostOffset));
}

/**
 * @param {string} fn @param {string} name @param {unknown} value @param {number} B @param {number} most
 * @returns {Int32Array | null}
 */
export function lengthsOf(fn, name, value, B, most) {
  return isAbsent(value) ? null : integers(fn, name, value, B, 0, most);
}

/**
 * A mask with the stride of each axis of [B, H, Tq, Tk], in elements; 0 where it is broadcast.
 * @typedef {object} Mask
 * @property {Uint8Array | null} allowed boolean masks: non-zero = attend
 * @property {Operand | null} added additive masks
 * @property {readonly number[]} strides
 */

/**
 * @param {Context} context @param {unknown} value @param {Sizes} sizes
 * @returns {Mask | null}
 */
export function maskOf(context, value, { B, H, Tq, Tk }) {
  const { fn } = context;
  if (isAbsent(value)) return null;
  const isBare = isList(value);
  const mask = /** @type {any} */ (isBare ? { data: value, shape: [Tq, Tk] } : value);
  if (isBare && mask.data.length !== Tq * Tk) {
    const rule = `attnMask must have Tq·Tk = ${Tq * Tk} elements, or be { data, shape }`;
    refuse('INVALID_SHAPE', fn, rule, mask.data.length);
  }
  const allowed = booleansOf(fn, mask.data);
  const added = allowed ? null : additiveOf(context, mask, isBare);
  const shape = added ? added.shape : mask.shape;
  if (allowed) checkBooleans(context, mask, allowed);
  return { allowed, added, strides: broadcast(fn, shape, [B, H, Tq, Tk]) };
}

/** @param {string} fn @param {unknown} data @returns {Uint8Array | null} */
function booleansOf(fn, data) {
  if (typedArrayName(data) === 'Uint8Array') return /** @type {Uint8Array} */ (data);
  if (!Array.isArray(data)) return null;
  const wrong = data.findIndex((value) => typeof value !== 'boolean');
  if (wrong >= 0) refuse('INVALID_DTYPE', fn, `attnMask[${wrong}] of an array must be true or false`, data[wrong]);
  return Uint8Array.from(data, Number);
}

/** @param {Context} context @param {any} mask @param {Uint8Array} allowed */
function checkBooleans({ fn }, mask, allowed) {
  if (!isAbsent(mask.dtype)) {
    refuse('INVALID_DTYPE', fn, 'attnMask.dtype must not be given for boolean data', mask.dtype);
  }
  const { count } = shaped(fn, mask.shape);
  if (allowed.length !== count) {
    refuse(
      'INVALID_SHAPE',
      fn,
      `attnMask.data must have the ${count} elements of shape ${list(mask.shape)}`,
      allowed.length,
    );
  }
}

/** @param {string} fn @param {unknown} shape */
function shaped(fn, shape) {
  if (!Array.isArray(shape) || shape.some((size) => !Number.isInteger(size) || size < 0)) {
    refuse('INVALID_SHAPE', fn, 'attnMask.shape must be an array of dimensions', shape);
  }
  return { count: product(shape) };
}

/** @param {Context} context @param {any} mask @param {boolean} isBare @returns {Operand} */
function additiveOf(context, mask, isBare) {
  const data = isBare ? mask.data : mask?.data;
  if (ArrayBuffer.isView(data) && !/^(Float32|Float16|Uint16)Array$/.test(typedArrayName(data))) {
    const rule = 'attnMask must hold booleans (Uint8Array or boolean[]: non-zero = attend) or floats to be added';
    refuse('INVALID_DTYPE', context.fn, rule, data);
  }
  return operand(context, 'attnMask', mask);
}

/**
 * Strides of `shape` stretched over `target`, aligned from the right.
 * @param {string} fn @param {readonly number[]} shape @param {readonly number[]} target
 */
function broadcast(fn, shape, target) {
  const missing = target.length - shape.length;
  const strides = [0, 0, 0, 0];
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    const size = shape[axis];
    if (missing < 0 || (size !== 1 && size !== target[axis + missing])) {
      refuse('INVALID_SHAPE', fn, `attnMask must broadcast to [B, H, Tq, Tk] = ${list(target)}`, shape);
    }
    if (size !== 1) strides[axis + missing] = stride;
    stride *= size;
  }
  return strides;
}

/**
 * The slopes as published: for n heads, k the largest power of two that is at most n, the first k are
 * 2^(−8(h+1)/k), the others 2^(−4(2(h−k)+1)/k).
 * Source: Press et al., Train Short, Test Long (https://arxiv.org/abs/2108.12409), and the authors' code.
 * @param {number} heads
 */
export function publishedSlopes(heads) {
  const k = 2 ** Math.floor(Math.log2(Math.max(heads, 1)));
  return Float32Array.from({ length: heads }, (_, h) =>
    h < k ? 2 ** ((-8 * (h + 1)) / k) : 2 ** ((-4 * (2 * (h - k) + 1)) / k),
  );
}
