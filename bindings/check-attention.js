// Turns a call of attention into one plain, complete description. Backends take that and decide nothing.

import { finite, flag, integers, isAbsent, operand, optionsOf, outputOf, vector } from './check.js';
import { lengthsOf, maskOf, positionsOf, publishedSlopes } from './check-visibility.js';
import { refuse } from './errors.js';

/** @import { Context, Operand, Output } from './check.js' */
/** @import { CachePart } from './check-cache.js' */
/** @import { Mask } from './check-visibility.js' */

/**
 * Letters as in src/attention.h. Strides are in elements.
 * @typedef {object} AttentionCall
 * @property {string} fn
 * @property {number} B
 * @property {number} H
 * @property {number} Hkv
 * @property {number} Tq
 * @property {number} Tk
 * @property {number} D
 * @property {number} Dv
 * @property {Operand} q
 * @property {Operand} k
 * @property {Operand} v
 * @property {Output | null} out
 * @property {Strides} qStrides
 * @property {Strides} kStrides
 * @property {Strides} vStrides
 * @property {Strides} outStrides
 * @property {Int32Array | null} qStart first tokens of packed sequences
 * @property {Int32Array | null} kStart
 * @property {Int32Array | null} qLength
 * @property {Int32Array | null} kLength
 * @property {Shared} shared
 * @property {Lse | null} lse
 * @property {Weights | null} weights
 * @property {CachePart | null} cache where k and v are those of a cache
 */

/** @typedef {{ batch: number, head: number, token: number }} Strides */
/** @typedef {{ shape: readonly number[], count: number, batch: number, head: number }} Lse */

/**
 * Which attention weights are returned. `heads`, `rows`: null for all.
 * @typedef {object} Weights
 * @property {readonly number[]} shape
 * @property {number} count
 * @property {boolean} mean
 * @property {number} stage as `Stage` of attention.h
 * @property {Int32Array | null} heads @property {Int32Array | null} rows
 * @property {number} numHeads @property {number} numRows
 */

/** Options that attention over a batch and over packed sequences share. */
export const kShared = [
  'isCausal',
  'queryOffset',
  'attnMask',
  'precision',
  'scale',
  'softcap',
  'windowSize',
  'alibiSlopes',
  'sinks',
];
export const kResults = ['needWeights', 'returnLse', 'out'];
export const kOptions = [...kShared, 'queryLengths', 'keyLengths', ...kResults, 'layout'];
const kWeightOptions = ['heads', 'rows', 'mean', 'stage'];
const kStages = ['scores', 'capped', 'masked', 'weights'];

/**
 * @param {Context} context
 * @param {unknown} q @param {unknown} k @param {unknown} v @param {unknown} given the options
 * @returns {AttentionCall}
 */
export function describeAttention(context, q, k, v, given) {
  const options = optionsOf(context.fn, given, kOptions);
  const operands = { q: operand(context, 'q', q), k: operand(context, 'k', k), v: operand(context, 'v', v) };
  return describeOperands(context, operands, options);
}

/**
 * The same for operands that are checked, and options whose names are.
 * @param {Context} context
 * @param {{ q: Operand, k: Operand, v: Operand }} operands @param {Record<string, any>} options
 * @returns {AttentionCall}
 */
export function describeOperands(context, { q, k, v }, options) {
  const { fn } = context;
  const layout = layoutOf(fn, options.layout, q);
  const qAxes = axesOf(fn, 'q', q, layout);
  const kAxes = axesOf(fn, 'k', k, layout);
  const vAxes = axesOf(fn, 'v', v, layout);
  checkSizes(fn, { q, k, v }, qAxes, kAxes, vAxes);
  const { B, H, T: Tq, D } = qAxes;
  const { H: Hkv, T: Tk } = kAxes;
  const qLength = lengthsOf(fn, 'queryLengths', options.queryLengths, B, Tq);
  const kLength = lengthsOf(fn, 'keyLengths', options.keyLengths, B, Tk);
  const rank = q.shape.length;
  const shared = describeShared(context, options, { B, H, Tq, Tk, D }, qLength, kLength, false);
  const outShape = q.shape.slice();
  outShape[rank - 1] = vAxes.D;
  const out = outputOf(context, options.out, outShape, q, inputsOf({ q, k, v }, shared));
  return {
    fn,
    B,
    H,
    Hkv,
    Tq,
    Tk,
    D,
    Dv: vAxes.D,
    q,
    k,
    v,
    out,
    qStrides: qAxes.strides,
    kStrides: kAxes.strides,
    vStrides: vAxes.strides,
    outStrides: axes(outShape, layout).strides,
    qStart: null,
    kStart: null,
    qLength,
    kLength,
    shared,
    lse: flag(fn, 'returnLse', options.returnLse, false)
      ? { shape: [B, H, Tq].slice(4 - rank), count: B * H * Tq, batch: H * Tq, head: Tq }
      : null,
    weights: weightsOf(fn, options.needWeights, { B, H, Tq, Tk }, rank),
    cache: null,
  };
}

/**
 * What attention over a batch and over packed sequences have in common.
 * @typedef {object} Shared
 * @property {Int32Array | null} offset position of row 0 for each item; null: 0
 * @property {number} left
 * @property {number} right
 * @property {number} scale
 * @property {boolean} int8 products of queries and keys in bytes
 * @property {number} softcap
 * @property {Mask | null} mask
 * @property {Operand | null} alibi
 * @property {Operand | null} sinks
 */

/**
 * @param {Context} context @param {Record<string, any>} options
 * @param {{ B: number, H: number, Tq: number, Tk: number, D: number }} sizes
 * @param {Int32Array | null} qLength @param {Int32Array | null} kLength @param {boolean} isPacked
 * @returns {Shared}
 */
export function describeShared(context, options, sizes, qLength, kLength, isPacked) {
  const { fn } = context;
  const { H, D } = sizes;
  const { offset, left, right } = positionsOf(fn, options, sizes, qLength, kLength, isPacked);
  return {
    offset,
    left,
    right,
    int8: precisionOf(context, options.precision),
    scale: isAbsent(options.scale) ? 1 / Math.sqrt(D) : finite(fn, 'scale', options.scale),
    softcap: softcapOf(fn, options.softcap),
    mask: maskOf(context, options.attnMask, sizes),
    alibi: alibiOf(context, options.alibiSlopes, H),
    sinks: isAbsent(options.sinks) ? null : vector(context, 'sinks', options.sinks, H, 'H'),
  };
}

/** @param {{ q: Operand, k: Operand, v: Operand }} operands @param {Shared} shared */
export const inputsOf = ({ q, k, v }, { mask, alibi, sinks }) => [q, k, v, mask ? mask.added : null, alibi, sinks];

/** @param {string} fn @param {unknown} value @param {Operand} q @returns {'bhtd' | 'bthd'} */
export function layoutOf(fn, value, q) {
  if (isAbsent(value) || value === 'bhtd') return 'bhtd';
  if (value !== 'bthd') refuse('INVALID_OPTION', fn, `layout must be 'bhtd' or 'bthd'`, value);
  if (q.shape.length !== 4) refuse('INVALID_OPTION', fn, `layout 'bthd' must come with rank 4`, q.shape);
  return 'bthd';
}

/** @typedef {{ B: number, H: number, T: number, D: number, strides: Strides }} Axes */

/**
 * A tensor of attention by its axes: [B,H,T,D], [H,T,D], [T,D], or [B,T,H,D].
 * @param {string} fn @param {string} name @param {Operand} operand @param {'bhtd' | 'bthd'} layout
 * @returns {Axes}
 */
export function axesOf(fn, name, { shape }, layout) {
  if (shape.length < 2 || shape.length > 4) {
    refuse('INVALID_SHAPE', fn, `${name} must have shape [B,H,T,D], [H,T,D] or [T,D]`, shape);
  }
  if (shape[shape.length - 1] < 1) refuse('INVALID_SHAPE', fn, `${name} must have a last axis of at least 1`, shape);
  return axes(shape, layout);
}

/** @param {readonly number[]} shape @param {'bhtd' | 'bthd'} layout @returns {Axes} */
function axes(shape, layout) {
  const rank = shape.length;
  const B = rank === 4 ? shape[0] : 1;
  const D = shape[rank - 1];
  if (layout === 'bthd') {
    const [, T, H] = shape;
    return { B, H, T, D, strides: { batch: T * H * D, head: D, token: H * D } };
  }
  const H = rank === 2 ? 1 : shape[rank - 3];
  const T = shape[rank - 2];
  return { B, H, T, D, strides: { batch: H * T * D, head: T * D, token: D } };
}

/**
 * @param {string} fn @param {{ q: Operand, k: Operand, v: Operand }} operands @param {Axes} q @param {Axes} k @param {Axes} v
 */
function checkSizes(fn, operands, q, k, v) {
  const rank = operands.q.shape.length;
  /** @param {boolean} holds @param {'k' | 'v'} name @param {string} rule */
  const check = (holds, name, rule) => {
    if (!holds) refuse('INVALID_SHAPE', fn, `${name} must have ${rule}`, operands[name].shape);
  };
  check(operands.k.shape.length === rank, 'k', `the rank of q, ${rank}`);
  check(operands.v.shape.length === rank, 'v', `the rank of q, ${rank}`);
  check(k.B === q.B, 'k', `the batch of q, B = ${q.B}`);
  check(v.B === q.B, 'v', `the batch of q, B = ${q.B}`);
  check(k.D === q.D, 'k', `the head size of q, D = ${q.D}`);
  checkHeads(fn, operands, q.H, k.H, v.H);
  check(v.T === k.T, 'v', `the length of k, Tk = ${k.T}`);
}

/** @param {string} fn @param {{ k: Operand, v: Operand }} operands @param {number} H @param {number} Hkv @param {number} Hv */
export function checkHeads(fn, { k, v }, H, Hkv, Hv) {
  if (Hkv === 0 ? H !== 0 : H % Hkv !== 0) {
    refuse('INVALID_SHAPE', fn, `k must have a number of heads that divides that of q, H = ${H}`, k.shape);
  }
  if (Hv !== Hkv) refuse('INVALID_SHAPE', fn, `v must have the heads of k, Hkv = ${Hkv}`, v.shape);
}

/** @param {Context} context @param {unknown} value @returns {boolean} whether it is 'int8' */
function precisionOf({ fn, backend }, value) {
  if (isAbsent(value) || value === 'float32') return false;
  if (value !== 'int8') refuse('INVALID_OPTION', fn, `precision must be 'float32' or 'int8'`, value);
  if (!backend.multipliesBytes) {
    refuse(
      'UNSUPPORTED',
      fn,
      `precision must be 'float32' in builds without relaxed SIMD and on webgpu, where bytes are no faster`,
      value,
    );
  }
  return true;
}

/** @param {string} fn @param {unknown} value */
function softcapOf(fn, value) {
  if (isAbsent(value)) return 0;
  const softcap = finite(fn, 'softcap', value);
  if (softcap < 0) refuse('INVALID_OPTION', fn, 'softcap must be 0 (off) or positive', value);
  return softcap;
}

/** @param {Context} context @param {unknown} value @param {number} H @returns {Operand | null} */
function alibiOf(context, value, H) {
  if (isAbsent(value) || value === false) return null;
  return vector(context, 'alibiSlopes', value === true ? publishedSlopes(H) : value, H, 'H');
}

/**
 * @param {string} fn @param {unknown} value @param {{ B: number, H: number, Tq: number, Tk: number }} sizes
 * @param {number} rank of the output: leading axes that it lacks are dropped here too
 * @returns {Weights | null}
 */
export function weightsOf(fn, value, { B, H, Tq, Tk }, rank) {
  if (isAbsent(value) || value === false) return null;
  const isChoice = typeof value === 'object' && !Array.isArray(value);
  if (value !== true && value !== 'mean' && !isChoice) {
    refuse('INVALID_OPTION', fn, `needWeights must be true, false, 'mean' or { heads, rows, mean, stage }`, value);
  }
  const choice = isChoice ? optionsOf(`${fn}: needWeights`, value, kWeightOptions) : {};
  const mean = value === 'mean' || flag(fn, 'needWeights.mean', choice.mean, false);
  const stage = isAbsent(choice.stage) ? 3 : kStages.indexOf(choice.stage);
  if (stage < 0) refuse('INVALID_OPTION', fn, `needWeights.stage must be among ${kStages.join(', ')}`, choice.stage);
  const heads = chosen(fn, 'needWeights.heads', choice.heads, H);
  const rows = chosen(fn, 'needWeights.rows', choice.rows, Tq);
  if (heads?.length === 0) refuse('INVALID_OPTION', fn, 'needWeights.heads must name at least one head', heads);
  const numHeads = heads ? heads.length : H;
  const numRows = rows ? rows.length : Tq;
  const lead = mean ? [B].slice(rank === 4 ? 0 : 1) : [B, numHeads].slice(4 - rank);
  const shape = [...lead, numRows, Tk];
  const count = B * (mean ? 1 : numHeads) * numRows * Tk;
  return { shape, count, mean, stage, heads, rows, numHeads, numRows };
}

/** @param {string} fn @param {string} name @param {unknown} value @param {number} size @returns {Int32Array | null} */
function chosen(fn, name, value, size) {
  if (isAbsent(value)) return null;
  const numbers = integers(fn, name, value, -1, 0, size - 1);
  if (new Set(numbers).size !== numbers.length) refuse('INVALID_OPTION', fn, `${name} must not repeat a number`, value);
  return numbers;
}
