// Turns calls of linear, packLinear and mergeAttention into plain, complete descriptions.

import { isAbsent, list, operand, optionsOf, outputOf, product, sameShape, vector } from './check.js';
import { refuse } from './errors.js';
import { PackedLinear, Resident } from './tensor.js';

/** @import { Context, Operand, Output } from './check.js' */
/** @import { Storage } from './tensor.js' */

/**
 * out [M, N] = x [M, K] · weight [N, K]ᵀ + bias + residual [M, N]
 * @typedef {object} LinearCall
 * @property {string} fn
 * @property {number} M @property {number} N @property {number} K
 * @property {Operand} x
 * @property {Operand | null} weight null where it is packed
 * @property {Operand | null} bias
 * @property {Storage | null} packed
 * @property {Operand | null} residual
 * @property {Output} out
 */

const kOptions = ['residual', 'out'];

/**
 * @param {Context} context @param {unknown} x @param {unknown} weight @param {unknown} bias @param {unknown} given
 * @returns {LinearCall}
 */
export function describeLinear(context, x, weight, bias, given) {
  const { fn } = context;
  const options = optionsOf(fn, given, kOptions);
  const source = operand(context, 'x', x);
  if (source.shape.length < 1) refuse('INVALID_SHAPE', fn, 'x must have shape [..., K]', source.shape);
  if (!(weight instanceof PackedLinear)) {
    return linearCall(context, source, describeParameters(context, weight, bias), null, options);
  }
  if (!isAbsent(bias)) {
    refuse('INVALID_OPTION', fn, 'bias must be given to packLinear where the weight is packed', bias);
  }
  const [N, K] = weight.shape;
  const packed = Resident.storageOf(weight, context.backend, fn, 'weight');
  return linearCall(context, source, { N, K, weight: null, bias: null }, packed, options);
}

/**
 * @param {Context} context @param {Operand} x
 * @param {{ N: number, K: number, weight: Operand | null, bias: Operand | null }} layer
 * @param {Storage | null} packed in place of weight and bias
 * @param {Readonly<Record<string, any>>} options
 * @returns {LinearCall}
 */
export function linearCall(context, x, { N, K, weight, bias }, packed, options) {
  const { fn } = context;
  const lead = x.shape.slice(0, -1);
  const width = x.shape[x.shape.length - 1];
  if (width !== K) refuse('INVALID_SHAPE', fn, `x must have a last axis of K = ${K}, as the weight has`, x.shape);
  const M = product(lead);
  const shape = [...lead, N];
  const hasResidual = options.residual !== undefined && options.residual !== null;
  const residual = hasResidual ? operand(context, 'residual', options.residual) : null;
  if (residual && !sameShape(residual.shape, shape)) {
    refuse('INVALID_SHAPE', fn, `residual must have the shape of the result, ${list(shape)}`, residual.shape);
  }
  // The residual itself may be `out`: each element is read before it is written.
  const out = outputOf(context, options.out, shape, x, [x, weight, bias]);
  return { fn, M, N, K, x, weight, bias, packed, residual, out };
}

/** @typedef {{ N: number, K: number, weight: Operand, bias: Operand | null }} Parameters */

/**
 * The parameters of a linear layer.
 * @param {Context} context @param {unknown} weight @param {unknown} bias
 * @returns {Parameters}
 */
export function describeParameters(context, weight, bias) {
  const matrix = operand(context, 'weight', weight);
  const [N, K] = matrix.shape;
  if (matrix.shape.length !== 2) refuse('INVALID_SHAPE', context.fn, 'weight must have shape [N, K]', matrix.shape);
  return { N, K, weight: matrix, bias: isAbsent(bias) ? null : vector(context, 'bias', bias, N, 'N') };
}

/**
 * @typedef {object} MergeCall
 * @property {string} fn
 * @property {number} parts
 * @property {number} B @property {number} H @property {number} Tq @property {number} Dv
 * @property {Operand[]} outs @property {Operand[]} lses
 * @property {Operand | null} sinks
 * @property {Output} out
 * @property {readonly number[]} lseShape
 */

const kMergeOptions = ['sinks', 'out'];

/** @param {Context} context @param {unknown} parts @param {unknown} given @returns {MergeCall} */
export function describeMerge(context, parts, given) {
  const { fn } = context;
  const options = optionsOf(fn, given, kMergeOptions);
  if (!Array.isArray(parts) || parts.length === 0) {
    refuse('INVALID_OPTION', fn, 'parts must be a list of at least one { output, lse }', parts);
  }
  const outs = parts.map((part, i) => operand(context, `parts[${i}].output`, part?.output));
  const lses = parts.map((part, i) => operand(context, `parts[${i}].lse`, part?.lse));
  const { shape } = outs[0];
  const rank = shape.length;
  if (rank < 2 || rank > 4) {
    refuse('INVALID_SHAPE', fn, 'parts[0].output must have shape [B,H,Tq,Dv], [H,Tq,Dv] or [Tq,Dv]', shape);
  }
  outs.forEach((out, i) => {
    if (!sameShape(out.shape, shape)) {
      refuse('INVALID_SHAPE', fn, `parts[${i}].output must have the shape of the first, ${list(shape)}`, out.shape);
    }
  });
  const lseShape = shape.slice(0, -1);
  lses.forEach((lse, i) => {
    if (!sameShape(lse.shape, lseShape)) {
      refuse('INVALID_SHAPE', fn, `parts[${i}].lse must have shape ${list(lseShape)}`, lse.shape);
    }
  });
  const [B, H, Tq, Dv] = [...Array(4 - rank).fill(1), ...shape];
  const hasSinks = !isAbsent(options.sinks);
  const sinks = hasSinks ? vector(context, 'sinks', options.sinks, H, 'H') : null;
  const out = outputOf(context, options.out, shape, outs[0], [...outs, ...lses, sinks]);
  return { fn, parts: parts.length, B, H, Tq, Dv, outs, lses, sinks, out, lseShape };
}
