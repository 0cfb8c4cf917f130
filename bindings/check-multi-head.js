// The rules of the multi-head layer: its sizes and options.

import { flag, integer, isAbsent, optionsOf, product } from './check.js';
import { describeOperands } from './check-attention.js';
import { epsilonOf } from './check-norm.js';
import { describeRotation, styleOf } from './check-rope.js';
import { AttentionError, refuse } from './errors.js';

/** @import { Context, Operand } from './check.js' */
/** @import { TensorLike } from './types.js' */

const kConfig = ['dModel', 'numHeads', 'numKvHeads', 'headDim', 'kDim', 'vDim', 'bias', 'rope', 'qkNorm'];
const kAttention = ['isCausal', 'scale', 'softcap', 'windowSize', 'alibiSlopes', 'sinks'];
const kConfigNames = [...kConfig, ...kAttention];
const kRopeNames = [
  ...['style', 'base', 'rotaryDim', 'scaling', 'maxPositionEmbeddings'],
  ...['mropeSection', 'mropeInterleaved'],
];
const kNormNames = ['epsilon'];
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
 * @property {number | null} normEpsilon of the queries' and keys' norm; null: none
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
    normEpsilon: normOf(fn, options.qkNorm),
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

/** @param {string} fn @param {unknown} given true, or { epsilon } @returns {number | null} */
function normOf(fn, given) {
  if (given === undefined || given === null || given === false) return null;
  const { epsilon } = given === true ? {} : optionsOf(`${fn}: qkNorm`, given, kNormNames);
  return epsilonOf(`${fn}: qkNorm`, epsilon, 1e-6);
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
  const count = product(shape);
  return { storage: null, data: null, dtype: 'float32', isFloat16Array: false, shape, start: 0, count };
}

/** @param {string} fn */
export const notLoaded = (fn) =>
  new AttentionError('INVALID_OPTION', `${fn}: parameters must be there (loadStateDict) before, got none`);
