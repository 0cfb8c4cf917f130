// The rules of the multi-head layer: its sizes, its parameters by name, and the arguments of forward().

import { flag, integer, isAbsent, list, operand, optionsOf, outputOf, sameShape } from './check.js';
import { describeOperands } from './check-attention.js';
import { describeRotation, styleOf } from './check-rope.js';
import { AttentionError, refuse } from './errors.js';

/** @import { AttentionCall, Axes } from './check-attention.js' */
/** @import { Context, Operand, Output } from './check.js' */
/** @import { Rotation } from './check-rope.js' */
/** @import { TensorLike } from './types.js' */

const kConfig = ['dModel', 'numHeads', 'numKvHeads', 'headDim', 'kDim', 'vDim', 'bias', 'rope'];
const kAttention = ['isCausal', 'scale', 'softcap', 'windowSize', 'alibiSlopes', 'sinks'];
const kConfigNames = new Set([...kConfig, ...kAttention]);
const kRopeNames = new Set([
  ...['style', 'base', 'rotaryDim', 'scaling', 'maxPositionEmbeddings'],
  ...['mropeSection', 'mropeInterleaved'],
]);
const kForwardNames = new Set(['context', 'attnMask', 'keyLengths', 'positions', 'needWeights', 'out']);
const kMostWidth = 2 ** 24;

/**
 * @typedef {object} LayerConfig
 * @property {number} dModel
 * @property {number} numHeads
 * @property {number} numKvHeads
 * @property {number} headDim
 * @property {number} kDim
 * @property {number} vDim
 * @property {boolean} bias
 * @property {Record<string, any> | null} rope
 * @property {Record<string, any>} attention options of every call
 */

/** @param {Context} context @param {unknown} given @returns {LayerConfig} */
export function layerConfig(context, given) {
  const { fn } = context;
  const options = optionsOf(fn, given, kConfigNames);
  /** @param {string} name @param {number} [byDefault] */
  const size = (name, byDefault) => integer(fn, name, options[name] ?? byDefault, 1, kMostWidth);
  const dModel = size('dModel');
  const numHeads = size('numHeads');
  const numKvHeads = size('numKvHeads', numHeads);
  if (numHeads % numKvHeads !== 0) {
    refuse('INVALID_OPTION', fn, `numKvHeads must divide numHeads = ${numHeads}`, numKvHeads);
  }
  if (dModel % numHeads !== 0 && (options.headDim ?? null) === null) {
    refuse('INVALID_OPTION', fn, `dModel must be a multiple of numHeads = ${numHeads} unless headDim is given`, dModel);
  }
  const headDim = size('headDim', dModel / numHeads);
  const config = {
    dModel,
    numHeads,
    numKvHeads,
    headDim,
    kDim: size('kDim', dModel),
    vDim: size('vDim', dModel),
    bias: flag(fn, 'bias', options.bias, false),
    rope: ropeOf(fn, options.rope, headDim),
    attention: Object.fromEntries(kAttention.map((name) => [name, options[name]])),
  };
  checkAttention(context, config);
  return config;
}

/** @param {string} fn @param {unknown} given @param {number} headDim @returns {Record<string, any> | null} */
function ropeOf(fn, given, headDim) {
  if (isAbsent(given)) return null;
  const rope = { ...optionsOf(`${fn}: rope`, given, kRopeNames) };
  styleOf(`${fn}: rope`, rope.style);
  describeRotation(`${fn}: rope`, rope, headDim, 1, 0);
  return rope;
}

/** Options of attention are refused when the layer is made, not at its first use. @param {Context} context @param {LayerConfig} config */
function checkAttention(context, { numHeads, numKvHeads, headDim, attention }) {
  const { isCausal } = attention;
  const [q, k] = [numHeads, numKvHeads].map((heads) => pending([1, 0, heads, headDim]));
  const options = { ...attention, isCausal: isCausal === true ? 'top-left' : isCausal, layout: 'bthd' };
  describeOperands(context, { q, k, v: k }, options);
}

/** An operand that forward() has yet to compute. @param {readonly number[]} shape @returns {Operand} */
export function pending(shape) {
  const count = shape.reduce((product, size) => product * size, 1);
  return { storage: null, data: null, dtype: 'float32', isFloat16Array: false, shape, start: 0, count };
}

/**
 * A checked call of forward().
 * @typedef {object} ForwardCall
 * @property {Operand} x
 * @property {Operand} key what keys are made from
 * @property {Operand} value
 * @property {AttentionCall} attention whose q, k and v are pending
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
  const attention = describeOperands(context, operands, attentionOptions(config, options, key === source));
  if (rank === 2 && attention.weights) attention.weights.shape = attention.weights.shape.slice(1);
  const inputs = [source, key, value, attention.shared.mask?.added ?? null];
  const outShape = [...source.shape.slice(0, -1), config.dModel];
  return {
    x: source,
    key,
    value,
    attention,
    rotation: rotationOf(fn, config, options, B, Tq, key === source),
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
 * @param {boolean} isSelf
 * @returns {Rotation | null}
 */
function rotationOf(fn, { rope, headDim }, options, B, T, isSelf) {
  const { positions } = options;
  if (!rope) {
    if (!isAbsent(positions)) {
      refuse('INVALID_OPTION', fn, 'positions must come with a layer that has rope', positions);
    }
    return null;
  }
  if (!isSelf) refuse('INVALID_OPTION', fn, 'context must not be given to a layer with rope', options.context);
  return describeRotation(fn, { ...rope, positions }, headDim, B, T);
}

/** @param {string} fn */
export const notLoaded = (fn) =>
  new AttentionError('INVALID_OPTION', `${fn}: parameters must be there (loadStateDict) before, got none`);
