// The ONNX operators RMSNormalization (opset 23) and Softmax (opset 13) over rmsNorm and softmax.
import { integer, list, optionsOf } from './check.js';
import { refuse } from './errors.js';
import { after, elements, swapHeadsAndTokens, tensorOf } from './onnx-tensors.js';

/** @import { OnnxTensor } from './onnx-tensors.js' */

/**
 * @typedef {object} RmsNormalizationInputs
 * @property {OnnxTensor} X
 * @property {OnnxTensor} scale of the axes of X from `axis` on
 *
 * @typedef {object} RmsNormalizationAttributes
 * @property {number} [axis] default −1: the mean is over this axis and those after it
 * @property {number} [epsilon] default 1e-5
 * @property {1} [stash_type] accepted and met: sums are in float32 always
 *
 * @typedef {{ axis?: number }} SoftmaxAttributes default −1
 */

const kNormInputs = ['X', 'scale'];
const kNormAttributes = ['axis', 'epsilon', 'stash_type'];
const kSoftmaxInputs = ['input'];
const kSoftmaxAttributes = ['axis'];

/** @param {readonly number[]} shape */
const product = (shape) => shape.reduce((a, b) => a * b, 1);

/**
 * The operator RMSNormalization.
 *
 * @example
 * const X = { data: Float32Array.of(1, 1, 1, 1), shape: [1, 4] };
 * const scale = { data: Float32Array.of(1, 2, 3, 4), shape: [4] };
 * Array.from(onnxRMSNormalization(attention, { X, scale }).Y.data, (value) => value.toFixed(2)); // → ['1.00', '2.00', '3.00', '4.00']
 * @template R
 * @param {{ rmsNorm: (...call: any[]) => R }} attention
 * @param {RmsNormalizationInputs} inputs
 * @param {RmsNormalizationAttributes} [attributes]
 * @returns {R extends Promise<any> ? Promise<{ Y: OnnxTensor }> : { Y: OnnxTensor }} Y is shaped like X
 * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
 */
export function onnxRMSNormalization(attention, inputs, attributes) {
  const fn = 'onnxRMSNormalization';
  const { X, scale } = optionsOf(fn, inputs, kNormInputs);
  const { axis, epsilon = 1e-5, stash_type: stash = 1 } = optionsOf(fn, attributes, kNormAttributes);
  if (stash !== 1) refuse('UNSUPPORTED', fn, 'stash_type must be 1 (float32)', stash);
  tensorOf(fn, 'X', X);
  tensorOf(fn, 'scale', scale);
  const at = axisOf(fn, axis, X.shape, 0);
  const inner = X.shape.slice(at);
  // As it broadcasts to X: ones may be left out in front.
  if (product(scale.shape) !== product(inner) || product(scale.shape.slice(-inner.length)) !== product(inner)) {
    refuse('INVALID_SHAPE', fn, `scale must have shape ${list(inner)}`, scale.shape);
  }
  const width = product(inner);
  const rows = { data: X.data, shape: [product(X.shape.slice(0, at)), width], dtype: X.dtype };
  const weight = { data: scale.data, shape: [width], dtype: scale.dtype };
  return after(attention.rmsNorm(rows, { weight, epsilon }), (/** @type {any} */ y) => ({
    Y: { data: y.data, shape: [...X.shape], dtype: y.dtype },
  }));
}

/**
 * The operator Softmax.
 *
 * @example
 * const input = { data: Float32Array.of(0, 0, 0, 0), shape: [2, 2] };
 * [...onnxSoftmax(attention, { input }).output.data]; // → [0.5, 0.5, 0.5, 0.5]
 * @template R
 * @param {{ softmax: (...call: any[]) => R }} attention
 * @param {{ input: OnnxTensor }} inputs
 * @param {SoftmaxAttributes} [attributes]
 * @returns {R extends Promise<any> ? Promise<{ output: OnnxTensor }> : { output: OnnxTensor }}
 * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
 */
export function onnxSoftmax(attention, inputs, attributes) {
  const fn = 'onnxSoftmax';
  const { input } = optionsOf(fn, inputs, kSoftmaxInputs);
  const { axis } = optionsOf(fn, attributes, kSoftmaxAttributes);
  tensorOf(fn, 'input', input);
  const { shape, dtype } = input;
  const at = axisOf(fn, axis, shape, 0);
  const [outer, inner] = [product(shape.slice(0, at)), product(shape.slice(at + 1))];
  // The axis comes last, and goes back.
  const turned = swapHeadsAndTokens({ data: elements(input), shape: [outer, shape[at], inner, 1], dtype });
  const rows = { data: turned.data, shape: [outer * inner, shape[at]], dtype };
  return after(attention.softmax(rows), (/** @type {any} */ y) => {
    const { data } = swapHeadsAndTokens({ data: y.data, shape: [outer, inner, shape[at], 1], dtype });
    return { output: { data, shape: [...shape], dtype: y.dtype } };
  });
}

/** @param {string} fn @param {number | undefined} value @param {readonly number[]} shape @param {number} least */
export function axisOf(fn, value, shape, least, byDefault = -1) {
  const axis = integer(fn, 'axis', value ?? byDefault, -shape.length, shape.length - 1);
  const at = axis < 0 ? axis + shape.length : axis;
  if (at < least) refuse('INVALID_OPTION', fn, `axis must be at least ${least}`, axis);
  return at;
}
