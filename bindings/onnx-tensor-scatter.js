// The ONNX operator TensorScatter (opset 24): the update of a cache that is kept outside of attention. Plain copying; a
// cache that stays in the memory of the instance is `attention.keyValueCache()`.
import { dtypeOf, integers, list, optionsOf, sameShape } from './check.js';
import { refuse } from './errors.js';
import { axisOf } from './onnx-norm.js';
import { elements, numbersOf, tensorOf } from './onnx-tensors.js';

/** @import { OnnxIntegers, OnnxTensor } from './onnx-tensors.js' */

/**
 * @typedef {object} TensorScatterInputs
 * @property {OnnxTensor} past_cache [B, …, capacity, …]
 * @property {OnnxTensor} update the same but for `axis`, where it has the new tokens
 * @property {OnnxIntegers | { data: OnnxIntegers }} [write_indices] (B) where they go; default 0
 *
 * @typedef {object} TensorScatterAttributes
 * @property {number} [axis] default −2; not the batch
 * @property {'linear' | 'circular'} [mode] default 'linear': they must fit. 'circular': they go on at the beginning
 */

const kInputs = ['past_cache', 'update', 'write_indices'];
const kAttributes = ['axis', 'mode'];

/**
 * The operator TensorScatter.
 *
 * @example
 * const past = { data: new Float32Array(4), shape: [1, 1, 4, 1] };
 * const update = { data: Float32Array.of(7), shape: [1, 1, 1, 1] };
 * const inputs = { past_cache: past, update, write_indices: [2] };
 * [...onnxTensorScatter(attention, inputs).present_cache.data]; // → [0, 0, 7, 0]
 * @param {unknown} _attention no kernel is needed; it is there so that all operators are called in one way
 * @param {TensorScatterInputs} inputs
 * @param {TensorScatterAttributes} [attributes]
 * @returns {{ present_cache: OnnxTensor }} a copy of the cache with the update in it
 * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE
 */
export function onnxTensorScatter(_attention, inputs, attributes) {
  const fn = 'onnxTensorScatter';
  const { past_cache: past, update, write_indices: indices } = optionsOf(fn, inputs, kInputs);
  const { axis, mode = 'linear' } = optionsOf(fn, attributes, kAttributes);
  if (mode !== 'linear' && mode !== 'circular') {
    refuse('INVALID_OPTION', fn, `mode must be 'linear' or 'circular'`, mode);
  }
  tensorOf(fn, 'past_cache', past);
  tensorOf(fn, 'update', update);
  const type = dtypeOf(fn, 'past_cache.data', past.data, past.dtype);
  if (dtypeOf(fn, 'update.data', update.data, update.dtype) !== type) {
    refuse('INVALID_DTYPE', fn, `update must have the type of past_cache, ${type}`, update.dtype);
  }
  const at = axisOf(fn, axis, past.shape, 1, -2);
  const [capacity, T] = [past.shape[at], update.shape[at]];
  const want = [...past.shape.slice(0, at), T, ...past.shape.slice(at + 1)];
  if (!sameShape(update.shape, want) || T > capacity) {
    const rule = `update must have the shape of past_cache, ${list(past.shape)}, and at most that length on axis ${at}`;
    refuse('INVALID_SHAPE', fn, rule, update.shape);
  }
  const B = past.shape[0];
  const most = mode === 'linear' ? capacity - T : Math.max(capacity - 1, 0);
  const starts =
    indices === undefined ? new Int32Array(B) : integers(fn, 'write_indices', numbersOf(indices), B, 0, most);
  const data = elements(past).slice();
  const width = past.shape.slice(at + 1).reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
  const runs = B === 0 || T === 0 || width === 0 ? 0 : update.data.length / (T * width);
  for (let run = 0; run < runs; ++run) {
    const start = starts[Math.floor((run * B) / runs)];
    for (let t = 0; t < T; ++t) {
      const from = (run * T + t) * width;
      data.set(elements(update).subarray(from, from + width), (run * capacity + ((start + t) % capacity)) * width);
    }
  }
  return { present_cache: { data, shape: [...past.shape], ...(past.dtype && { dtype: past.dtype }) } };
}
