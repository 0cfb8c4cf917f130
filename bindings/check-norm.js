// Turns calls of normalisations and activation functions into plain, complete descriptions.
import { finite, isAbsent, operand, optionsOf, outputOf, sameShape, vector } from './check.js';
import { refuse } from './errors.js';

/** @import { Context, Operand, Output } from './check.js' */

/**
 * @typedef {object} NormCall
 * @property {string} fn
 * @property {number} rows @property {number} width
 * @property {number} kind as `NormKind` of attention.h
 * @property {number} epsilon
 * @property {Operand} x
 * @property {Operand | null} weight @property {Operand | null} bias
 * @property {Output} out
 */

/**
 * @typedef {object} ActivationCall
 * @property {string} fn
 * @property {number} kind as `ActivationKind` of attention.h
 * @property {Operand} x
 * @property {Operand | null} gate
 * @property {Output} out
 */

/** Each norm: its number, its options, and epsilon by default. */
const kNorms = {
  rmsNorm: { kind: 0, names: ['weight', 'epsilon', 'out'], epsilon: 1e-6 },
  layerNorm: { kind: 1, names: ['weight', 'bias', 'epsilon', 'out'], epsilon: 1e-5 },
  softmax: { kind: 2, names: ['out'], epsilon: 0 },
};

/**
 * @param {Context} context @param {keyof typeof kNorms} name @param {unknown} x @param {unknown} given the options
 * @returns {NormCall}
 */
export function describeNorm(context, name, x, given) {
  const { kind, names, epsilon } = kNorms[name];
  const options = optionsOf(context.fn, given, names);
  const source = operand(context, 'x', x);
  const width = source.shape[source.shape.length - 1];
  if (width === undefined) refuse('INVALID_SHAPE', context.fn, 'x must have at least one axis', source.shape);
  /** @param {string} option */
  const parameter = (option) =>
    isAbsent(options[option]) ? null : vector(context, option, options[option], width, 'width');
  const weight = parameter('weight');
  const bias = parameter('bias');
  return {
    fn: context.fn,
    rows: width === 0 ? 0 : source.count / width,
    width,
    kind,
    epsilon: epsilonOf(context.fn, options.epsilon, epsilon),
    x: source,
    weight,
    bias,
    // x itself may be `out`: each row is read before it is written.
    out: outputOf(context, options.out, source.shape, source, [weight, bias]),
  };
}

/** @param {string} fn @param {unknown} value @param {number} byDefault */
export function epsilonOf(fn, value, byDefault) {
  const epsilon = finite(fn, 'epsilon', value ?? byDefault);
  if (epsilon < 0) refuse('INVALID_OPTION', fn, 'epsilon must be 0 or positive', value);
  return epsilon;
}

const kSilu = ['gate', 'out'];
const kGelu = ['approximate', 'out'];

/** @param {Context} context @param {unknown} x @param {unknown} given @returns {ActivationCall} */
export function describeSilu(context, x, given) {
  return describeActivation(context, 0, x, optionsOf(context.fn, given, kSilu));
}

/** @param {Context} context @param {unknown} x @param {unknown} given @returns {ActivationCall} */
export function describeGelu(context, x, given) {
  const options = optionsOf(context.fn, given, kGelu);
  const kind = ['none', 'tanh'].indexOf(options.approximate ?? 'none') + 1;
  if (kind === 0) refuse('INVALID_OPTION', context.fn, `approximate must be 'none' or 'tanh'`, options.approximate);
  return describeActivation(context, kind, x, options);
}

/** @param {Context} context @param {number} kind @param {unknown} x @param {Record<string, any>} options @returns {ActivationCall} */
function describeActivation(context, kind, x, options) {
  const source = operand(context, 'x', x);
  const hasGate = !isAbsent(options.gate);
  const gate = hasGate ? operand(context, 'gate', options.gate) : null;
  if (gate && !sameShape(gate.shape, source.shape)) {
    refuse('INVALID_SHAPE', context.fn, `gate must have the shape of x, [${source.shape.join(', ')}]`, gate.shape);
  }
  const out = outputOf(context, options.out, source.shape, source, []);
  return { fn: context.fn, kind, x: source, gate, out };
}
