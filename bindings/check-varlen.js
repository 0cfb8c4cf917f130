// Turns attention over packed sequences into plain, complete descriptions.
import { flag, integers, isAbsent, kMostElements, operand, optionsOf, outputOf } from './check.js';
import { checkHeads, describeShared, inputsOf, kResults, kShared, weightsOf } from './check-attention.js';
import { refuse } from './errors.js';

/** @import { AttentionCall, Strides } from './check-attention.js' */
/** @import { Context, Operand } from './check.js' */
/** @import { Mask } from './check-visibility.js' */

const kOptions = ['cuSeqlensQ', 'cuSeqlensK', ...kShared, ...kResults];

/**
 * Attention over packed sequences. `perSequence`: one call for each sequence's weights, whose lengths all differ.
 * @param {Context} context
 * @param {unknown} q @param {unknown} k @param {unknown} v @param {unknown} given the options
 * @returns {{ call: AttentionCall, perSequence: AttentionCall[] | null }}
 */
export function describeVarlen(context, q, k, v, given) {
  const { fn } = context;
  const options = optionsOf(fn, given, kOptions);
  const operands = { q: operand(context, 'q', q), k: operand(context, 'k', k), v: operand(context, 'v', v) };
  checkPacked(fn, operands);
  const [totalQ, H, D] = operands.q.shape;
  const [totalK, Hkv] = operands.k.shape;
  const Dv = operands.v.shape[2];
  const cuQ = boundsOf(fn, 'cuSeqlensQ', options.cuSeqlensQ, totalQ, -1);
  const cuK = boundsOf(fn, 'cuSeqlensK', options.cuSeqlensK, totalK, cuQ.length);
  const B = cuQ.length - 1;
  const qLength = differences(cuQ);
  const kLength = differences(cuK);
  const Tq = qLength.reduce((a, b) => Math.max(a, b), 0);
  const Tk = kLength.reduce((a, b) => Math.max(a, b), 0);
  const shared = describeShared(context, options, { B, H, Tq, Tk, D }, qLength, kLength, true);
  const out = outputOf(context, options.out, [totalQ, H, Dv], operands.q, inputsOf(operands, shared));
  const strides = { q: packed(H, D), k: packed(Hkv, D), v: packed(Hkv, Dv), out: packed(H, Dv) };
  /** @type {AttentionCall} */
  const call = {
    ...{ fn, B, H, Hkv, Tq, Tk, D, Dv, ...operands, out },
    ...{ qStrides: strides.q, kStrides: strides.k, vStrides: strides.v, outStrides: strides.out },
    ...{ qStart: cuQ.slice(0, B), kStart: cuK.slice(0, B), qLength, kLength, shared },
    lse: flag(fn, 'returnLse', options.returnLse, false)
      ? { shape: [H, totalQ], count: H * totalQ, batch: 0, head: totalQ }
      : null,
    weights: null,
    cache: null,
  };
  return { call, perSequence: weightCalls(fn, call, options.needWeights) };
}

/** @param {number} H @param {number} D @returns {Strides} */
const packed = (H, D) => ({ batch: 0, head: D, token: H * D });

/** @param {string} fn @param {{ q: Operand, k: Operand, v: Operand }} operands */
function checkPacked(fn, operands) {
  for (const [name, { shape }] of Object.entries(operands)) {
    if (shape.length !== 3 || shape[2] < 1) {
      refuse('INVALID_SHAPE', fn, `${name} must have shape [ΣT, H, D] with D of at least 1`, shape);
    }
  }
  const { q, k, v } = operands;
  if (k.shape[2] !== q.shape[2])
    refuse('INVALID_SHAPE', fn, `k must have the head size of q, D = ${q.shape[2]}`, k.shape);
  checkHeads(fn, operands, q.shape[1], k.shape[1], v.shape[1]);
  if (v.shape[0] !== k.shape[0])
    refuse('INVALID_SHAPE', fn, `v must have the tokens of k, ΣTk = ${k.shape[0]}`, v.shape);
}

/** @param {string} fn @param {string} name @param {unknown} value @param {number} total @param {number} count */
function boundsOf(fn, name, value, total, count) {
  const bounds = integers(fn, name, value, count, 0, kMostElements);
  if (bounds.length === 0 || bounds[0] !== 0) refuse('INVALID_OPTION', fn, `${name} must begin with 0`, value);
  const falls = bounds.findIndex((bound, s) => s > 0 && bound < bounds[s - 1]);
  if (falls > 0) refuse('INVALID_OPTION', fn, `${name}[${falls}] must not be less than the one before`, bounds[falls]);
  const last = bounds[bounds.length - 1];
  if (last !== total) refuse('INVALID_OPTION', fn, `${name} must end with the number of tokens, ${total}`, last);
  return bounds;
}

/** @param {Int32Array} bounds */
const differences = (bounds) => Int32Array.from({ length: bounds.length - 1 }, (_, s) => bounds[s + 1] - bounds[s]);

/** @param {string} fn @param {AttentionCall} call @param {unknown} needWeights @returns {AttentionCall[] | null} */
function weightCalls(fn, call, needWeights) {
  const { B, H, Hkv, D, Dv, qLength, kLength, qStart, kStart, shared } = call;
  if (isAbsent(needWeights) || needWeights === false) return null;
  if (/** @type {any} */ (needWeights).rows) {
    refuse('INVALID_OPTION', fn, 'needWeights.rows must not be given for packed sequences', needWeights);
  }
  weightsOf(fn, needWeights, call, 3); // refuses what is wrong even where there is no sequence
  return Array.from({ length: B }, (_, s) => {
    const Tq = /** @type {Int32Array} */ (qLength)[s];
    const Tk = /** @type {Int32Array} */ (kLength)[s];
    /** @param {Operand} operand @param {Int32Array | null} starts @param {number} T @param {number} width */
    const part = (operand, starts, T, width) => ({
      ...operand,
      start: /** @type {Int32Array} */ (starts)[s] * width,
      count: T * width,
    });
    return {
      ...call,
      ...{ B: 1, Tq, Tk, q: part(call.q, qStart, Tq, H * D) },
      ...{ k: part(call.k, kStart, Tk, Hkv * D), v: part(call.v, kStart, Tk, Hkv * Dv) },
      ...{ out: null, lse: null, qStart: null, kStart: null, qLength: null, kLength: null },
      shared: {
        ...shared,
        offset: shared.offset ? shared.offset.slice(s, s + 1) : null,
        mask: startAt(shared.mask, s),
      },
      weights: weightsOf(fn, needWeights, { B: 1, H, Tq, Tk }, 3),
    };
  });
}

/** The mask of one item. @param {Mask | null} mask @param {number} item @returns {Mask | null} */
function startAt(mask, item) {
  if (!mask) return null;
  const { allowed, added, strides } = mask;
  const start = strides[0] * item;
  return {
    allowed: allowed ? allowed.subarray(start) : null,
    added: added && { ...added, start, count: added.count - start },
    strides,
  };
}
