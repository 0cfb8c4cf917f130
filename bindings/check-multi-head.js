// The rules of the multi-head layer: its sizes and options, and its parameters by name.

import { flag, integer, list, operand, optionsOf, sameShape } from './check.js';
import { describeOperands } from './check-attention.js';
import { epsilonOf } from './check-norm.js';
import { describeRotation, styleOf } from './check-rope.js';
import { AttentionError, refuse } from './errors.js';

/** @import { Context, Operand } from './check.js' */
/** @import { TensorLike } from './types.js' */

const kConfig = ['dModel', 'numHeads', 'numKvHeads', 'headDim', 'kDim', 'vDim', 'bias', 'rope', 'qkNorm'];
const kAttention = ['isCausal', 'scale', 'softcap', 'windowSize', 'alibiSlopes', 'sinks'];
const kConfigNames = new Set([...kConfig, ...kAttention]);
const kRopeNames = new Set([
  ...['style', 'base', 'rotaryDim', 'scaling', 'maxPositionEmbeddings'],
  ...['mropeSection', 'mropeInterleaved'],
]);
const kNormNames = new Set(['epsilon']);
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
  if (given === undefined || given === null) return null;
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
  const count = shape.reduce((product, size) => product * size, 1);
  return { storage: null, data: null, dtype: 'float32', isFloat16Array: false, shape, start: 0, count };
}

/** Whose parameter, by name. @typedef {'q' | 'k' | 'v' | 'out'} Projection */

/**
 * Parameters of a projection, in the order [weight, bias].
 * @typedef {{ weight: Operand, bias: Operand | null }} ProjectionParameters
 */

/** @param {LayerConfig} config @returns {Record<Projection, [number, number]>} shapes [out, in] */
export function projectionShapes({ dModel, numHeads, numKvHeads, headDim, kDim, vDim }) {
  return {
    q: [numHeads * headDim, dModel],
    k: [numKvHeads * headDim, kDim],
    v: [numKvHeads * headDim, vDim],
    out: [dModel, numHeads * headDim],
  };
}

/** @type {readonly Projection[]} */
export const kProjections = ['q', 'k', 'v', 'out'];

/**
 * The tensors of a state dict, each of the right size, none missing and none too many.
 * @param {Context} context @param {LayerConfig} config @param {unknown} dict
 * @returns {{ projections: Record<Projection, ProjectionParameters>, norms: { q: Operand, k: Operand } | null }}
 */
export function parametersOf(context, config, dict) {
  const { fn } = context;
  if (typeof dict !== 'object' || dict === null || Array.isArray(dict) || ArrayBuffer.isView(dict)) {
    refuse('INVALID_OPTION', fn, 'dict must be an object of tensors by name', dict);
  }
  const left = new Map(Object.entries(dict));
  const shapes = projectionShapes(config);
  const packed = takePacked(context, config, left, shapes);
  /** @param {string[]} names @param {number[]} shape */
  const take = (names, shape) => takeTensor(context, left, names, shape);
  const parameters = /** @type {Record<Projection, ProjectionParameters>} */ ({});
  for (const name of kProjections) {
    const [N, K] = shapes[name];
    const fromPacked = name === 'out' ? {} : packed;
    parameters[name] = {
      weight: fromPacked.weight?.[name] ?? take(weightNames(name), [N, K]),
      bias: config.bias ? (fromPacked.bias?.[name] ?? take(biasNames(name), [N])) : null,
    };
  }
  const norms =
    config.normEpsilon === null
      ? null
      : { q: take(['q_norm.weight'], [config.headDim]), k: take(['k_norm.weight'], [config.headDim]) };
  for (const [name, surplus] of left) {
    const rule = `dict must hold the parameters of the layer alone (${config.bias ? 'with' : 'without'} bias)`;
    refuse('INVALID_OPTION', fn, rule, `${name} of shape ${describeShape(surplus)}`);
  }
  return { projections: parameters, norms };
}

/** @param {Projection} name @returns {string[]} */
const weightNames = (name) =>
  name === 'out' ? ['out_proj.weight', 'o_proj.weight'] : [`${name}_proj.weight`, `${name}_proj_weight`];

/** @param {Projection} name @returns {string[]} */
const biasNames = (name) => (name === 'out' ? ['out_proj.bias', 'o_proj.bias'] : [`${name}_proj.bias`]);

/** @param {unknown} value */
const describeShape = (value) => {
  const shape = /** @type {any} */ (value)?.shape;
  return Array.isArray(shape) ? list(shape) : 'unknown';
};

/** @param {Context} context @param {Map<string, unknown>} left @param {string[]} names @param {number[]} shape @returns {Operand} */
function takeTensor(context, left, names, shape) {
  const name = names.find((candidate) => left.has(candidate));
  if (name === undefined) {
    const have = [...left.keys()].join(', ') || 'no other tensor';
    refuse('INVALID_OPTION', context.fn, `dict must hold ${names[0]} of shape ${list(shape)}`, have);
  }
  const tensor = operand(context, name, left.get(name));
  if (!sameShape(tensor.shape, shape)) {
    refuse('INVALID_SHAPE', context.fn, `${name} must have shape ${list(shape)}`, tensor.shape);
  }
  left.delete(name);
  return tensor;
}

/**
 * PyTorch's packed projections: the rows of q, then k, then v.
 * @param {Context} context @param {LayerConfig} config @param {Map<string, unknown>} left
 * @param {Record<Projection, [number, number]>} shapes
 * @returns {{ weight?: Record<string, Operand>, bias?: Record<string, Operand> }}
 */
function takePacked(context, config, left, shapes) {
  const rows = /** @type {const} */ (['q', 'k', 'v']).map((name) => ({ name, count: shapes[name][0] }));
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  /** @param {Operand} whole @param {number[]} inner */
  const split = (whole, inner) => {
    const width = inner.reduce((product, size) => product * size, 1);
    let start = 0;
    return Object.fromEntries(
      rows.map(({ name, count }) => {
        const part = { ...whole, shape: [count, ...inner], start, count: count * width };
        start += count * width;
        return [name, part];
      }),
    );
  };
  /** @type {{ weight?: Record<string, Operand>, bias?: Record<string, Operand> }} */
  const packed = {};
  if (left.has('in_proj_weight')) {
    if (config.kDim !== config.dModel || config.vDim !== config.dModel) {
      const rule = 'in_proj_weight must come with kDim and vDim equal to dModel';
      refuse('INVALID_SHAPE', context.fn, rule, [config.kDim, config.vDim, config.dModel]);
    }
    const whole = takeTensor(context, left, ['in_proj_weight'], [total, config.dModel]);
    packed.weight = split(whole, [config.dModel]);
  }
  if (config.bias && left.has('in_proj_bias')) {
    packed.bias = split(takeTensor(context, left, ['in_proj_bias'], [total]), []);
  }
  return packed;
}

/** @param {string} fn */
export const notLoaded = (fn) =>
  new AttentionError('INVALID_OPTION', `${fn}: parameters must be there (loadStateDict) before, got none`);
