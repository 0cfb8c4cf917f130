// The rules of the multi-head layer's forward(): x, what keys and values are made from, the cache, options of the call.
import { isAbsent, list, operand, optionsOf, outputOf, sameShape } from './check.js';
import { describeOperands } from './check-attention.js';
import { appendOperands, attendOperand } from './check-cache.js';
import { pending } from './check-multi-head.js';
import { describeRotation } from './check-rope.js';
import { lengthsOf } from './check-visibility.js';
import { refuse } from './errors.js';
import { KeyValueCache } from './key-value-cache.js';

/** @import { AttentionCall } from './check-attention.js' */
/** @import { Context, Operand, Output } from './check.js' */
/** @import { AppendCall, CacheState } from './check-cache.js' */
/** @import { LayerConfig } from './check-multi-head.js' */
/** @import { Rotation } from './check-rope.js' */

const kForwardNames = ['context', 'attnMask', 'keyLengths', 'positions', 'cache', 'needWeights', 'out'];

/**
 * A checked call of forward().
 * @typedef {object} ForwardCall
 * @property {Operand} x
 * @property {Operand} key what keys are made from
 * @property {Operand} value
 * @property {Operand} q @property {Operand} k @property {Operand} v what is projected, pending
 * @property {AttentionCall} attention over them
 * @property {AppendCall | null} append what the cache is to take first, if there is one
 * @property {Rotation | null} rotation
 * @property {Output} out
 */

/**
 * @param {Context} context @param {LayerConfig} config @param {unknown} x @param {unknown} given
 * @returns {ForwardCall}
 */
export function describeForward(context, config, x, given) {
  const { fn } = context;
  const options = optionsOf(fn, given, kForwardNames);
  const source = operand(context, 'x', x);
  checkWidth(fn, 'x', source, config.dModel, source.shape.length);
  const rank = source.shape.length;
  if (rank !== 2 && rank !== 3)
    refuse('INVALID_SHAPE', fn, 'x must have shape [B, T, dModel] or [T, dModel]', source.shape);
  const { key, value } = contextOf(context, config, options.context, source);
  const B = rank === 3 ? source.shape[0] : 1;
  const Tq = source.shape[rank - 2];
  const Tk = key.shape[rank - 2];
  const { numHeads, numKvHeads, headDim } = config;
  const operands = {
    q: pending([B, Tq, numHeads, headDim]),
    k: pending([B, Tk, numKvHeads, headDim]),
    v: pending([B, Tk, numKvHeads, headDim]),
  };
  const isSelf = key === source;
  const state = cacheOf(context, config, options, B, isSelf);
  const lengths = lengthsOf(fn, 'keyLengths', options.keyLengths, B, Tk);
  const append = state && appendOperands(context, state, operands, { lengths, layout: 'bthd' });
  const attention = append
    ? attendOperand(context, append.state, append.next, operands.q, cachedOptions(config, options, lengths))
    : describeOperands(context, operands, attentionOptions(config, options, isSelf));
  if (rank === 2 && attention.weights) attention.weights.shape = attention.weights.shape.slice(1);
  const inputs = [source, key, value, attention.shared.mask?.added ?? null];
  const outShape = [...source.shape.slice(0, -1), config.dModel];
  return {
    x: source,
    key,
    value,
    ...operands,
    attention,
    append,
    rotation: rotationOf(fn, config, options, B, Tq, isSelf, state),
    out: outputOf(context, options.out, outShape, source, inputs),
  };
}

/** Within one sequence both alignments are the same, also where its length is less than T. @param {LayerConfig} config @param {Record<string, any>} options @param {boolean} isSelf */
function attentionOptions({ attention }, options, isSelf) {
  const { isCausal } = attention;
  return {
    ...attention,
    isCausal: isCausal === true && isSelf ? 'top-left' : isCausal,
    attnMask: options.attnMask,
    keyLengths: options.keyLengths,
    needWeights: options.needWeights,
    layout: 'bthd',
  };
}

/**
 * With a cache the tokens of x follow those that are held: both alignments are at the end.
 * @param {LayerConfig} config @param {Record<string, any>} options @param {Int32Array | null} lengths
 */
function cachedOptions({ attention }, { attnMask, needWeights }, lengths) {
  const isCausal = Boolean(attention.isCausal);
  return { ...attention, isCausal, queryLengths: lengths, attnMask, needWeights, layout: 'bthd' };
}

/**
 * @param {Context} context @param {LayerConfig} config @param {Record<string, any>} options @param {number} B
 * @param {boolean} isSelf
 * @returns {CacheState | null}
 */
function cacheOf(context, { numKvHeads, headDim }, { cache }, B, isSelf) {
  const { fn } = context;
  if (isAbsent(cache)) return null;
  if (!(cache instanceof KeyValueCache)) refuse('INVALID_OPTION', fn, 'cache must be a KeyValueCache', cache);
  if (!isSelf) refuse('INVALID_OPTION', fn, 'cache must not be given beside context', cache);
  const state = KeyValueCache.stateOf(cache, context);
  const { config } = state;
  const own = [config.B, config.Hkv, config.D, config.Dv];
  if (!sameShape(own, [B, numKvHeads, headDim, headDim])) {
    const rule = `cache must be made with batch ${B}, numKvHeads ${numKvHeads}, headDim and valueDim ${headDim}`;
    refuse('INVALID_OPTION', fn, rule, own);
  }
  return state;
}

/** @param {string} fn @param {string} name @param {Operand} source @param {number} width @param {number} rank */
function checkWidth(fn, name, { shape }, width, rank) {
  if (shape.length !== rank || shape[rank - 1] !== width) {
    refuse('INVALID_SHAPE', fn, `${name} must have shape ${rank === 3 ? '[B, T, ' : '[T, '}${width}]`, shape);
  }
}

/**
 * @param {Context} context @param {LayerConfig} config @param {any} given @param {Operand} x
 * @returns {{ key: Operand, value: Operand }}
 */
function contextOf(context, config, given, x) {
  const { fn } = context;
  const rank = x.shape.length;
  const isPair = typeof given === 'object' && given !== null && 'key' in given && 'value' in given;
  const isSelf = isAbsent(given);
  const key = isSelf ? x : operand(context, isPair ? 'context.key' : 'context', isPair ? given.key : given);
  const value = isPair ? operand(context, 'context.value', given.value) : key;
  checkWidth(fn, isPair ? 'context.key' : isSelf ? 'x (as keys)' : 'context', key, config.kDim, rank);
  checkWidth(fn, isPair ? 'context.value' : isSelf ? 'x (as values)' : 'context', value, config.vDim, rank);
  if (!sameShape(key.shape.slice(0, -1), value.shape.slice(0, -1))) {
    refuse('INVALID_SHAPE', fn, `context.value must have the tokens of context.key, ${list(key.shape)}`, value.shape);
  }
  if (rank === 3 && key.shape[0] !== x.shape[0]) {
    refuse('INVALID_SHAPE', fn, `context must have the batch of x, B = ${x.shape[0]}`, key.shape);
  }
  return { key, value };
}

/**
 * @param {string} fn @param {LayerConfig} config @param {Record<string, any>} options @param {number} B @param {number} T
 * @param {boolean} isSelf @param {CacheState | null} state
 * @returns {Rotation | null}
 */
function rotationOf(fn, { rope, headDim }, options, B, T, isSelf, state) {
  const { positions } = options;
  if (!rope) {
    if (!isAbsent(positions)) {
      refuse('INVALID_OPTION', fn, 'positions must come with a layer that has rope', positions);
    }
    return null;
  }
  if (!isSelf) refuse('INVALID_OPTION', fn, 'context must not be given to a layer with rope', options.context);
  const isGiven = !isAbsent(positions);
  return describeRotation(
    fn,
    { ...rope, positions, offset: isGiven || !state ? null : nextPosition(state) },
    headDim,
    B,
    T,
  );
}

/** Where the next tokens stand: one number for all items if it is the same, because such tables are kept. @param {CacheState} state */
function nextPosition({ held: { positions } }) {
  return positions.every((position) => position === positions[0]) ? positions[0] : positions;
}
