// Tensors as ONNX operators have them: checks, packed heads, types.
import { countOf, dtypeOf, list } from './check.js';
import { refuse } from './errors.js';
import { fromHalf, toHalf } from './half.js';
import { Tensor } from './tensor.js';

/** @import { Dtype, TensorData } from './types.js' */

/** @typedef {{ data: TensorData, shape: readonly number[], dtype?: Dtype }} OnnxTensor */
/** @typedef {BigInt64Array | Int32Array | number[]} OnnxIntegers */

/** @param {string} fn @param {string} name @param {any} tensor */
export function tensorOf(fn, name, tensor) {
  if (!tensor || !Array.isArray(tensor.shape)) {
    refuse('INVALID_SHAPE', fn, `${name} must be a Tensor or an object { data, shape }`, tensor);
  }
  if (tensor instanceof Tensor) return;
  dtypeOf(fn, `${name}.data`, tensor.data, tensor.dtype);
  const count = countOf(fn, `${name}.shape`, tensor.shape);
  if (tensor.data.length !== count) {
    refuse(
      'INVALID_SHAPE',
      fn,
      `${name}.data must have the ${count} elements of ${list(tensor.shape)}`,
      tensor.data.length,
    );
  }
}

/**
 * A rank-4 operand; a number of heads that is given besides must be its own.
 * @param {string} fn @param {string} name @param {OnnxTensor} tensor @param {string} attribute @param {number | undefined} heads
 */
export function withHeads(fn, name, tensor, attribute, heads) {
  if (heads !== undefined && heads !== tensor.shape[1]) {
    refuse('INVALID_SHAPE', fn, `${name} must have the ${heads} heads of ${attribute}`, tensor.shape);
  }
  return tensor;
}

/**
 * [B, T, H·D] as [B, T, H, D], the same data; or as [B, H, T, D], a copy.
 * @param {string} fn @param {string} name @param {OnnxTensor} tensor @param {string} attribute
 * @param {number | undefined} heads @param {string} layout
 * @returns {OnnxTensor}
 */
export function splitHeads(fn, name, tensor, attribute, heads, layout) {
  if (heads === undefined) refuse('INVALID_OPTION', fn, `${attribute} must be given for inputs of rank 3`, heads);
  const [B, T, width] = tensor.shape;
  if (width % heads !== 0) {
    refuse('INVALID_SHAPE', fn, `${name}.shape[2] must be a multiple of ${attribute}, ${heads}`, tensor.shape);
  }
  const seen = { data: tensor.data, shape: [B, T, heads, width / heads], dtype: tensor.dtype };
  return layout === 'bthd' ? seen : swapHeadsAndTokens(seen);
}

/** The way back for the result: [B, L, H·Dv]. @param {OnnxTensor} output @param {string} layout @returns {OnnxTensor} */
export function joinHeads(output, layout) {
  const { data, shape, dtype } = layout === 'bthd' ? output : swapHeadsAndTokens(output);
  const [B, L, H, Dv] = shape;
  return { data, shape: [B, L, H * Dv], ...(dtype && { dtype }) };
}

/** [B, M, N, D] to [B, N, M, D]. @param {OnnxTensor} tensor @returns {OnnxTensor} */
export function swapHeadsAndTokens(tensor) {
  const { dtype } = tensor;
  const [B, M, N, D] = tensor.shape;
  const data = elements(tensor);
  const result = emptyLike(data, data.length);
  for (let b = 0; b < B; ++b)
    for (let m = 0; m < M; ++m)
      for (let n = 0; n < N; ++n) {
        const from = ((b * M + m) * N + n) * D;
        result.set(data.subarray(from, from + D), ((b * N + n) * M + m) * D);
      }
  return { data: result, shape: [B, N, M, D], ...(dtype && { dtype }) };
}

/** Float32 values in the type of another tensor. @param {OnnxTensor} tensor @param {OnnxTensor} like @returns {OnnxTensor} */
export function inType({ data, shape }, like) {
  if (like.data instanceof Float32Array) return { data, shape };
  const result = emptyLike(like.data, data.length);
  const dtype = like.dtype ?? 'float16';
  const isBits = result instanceof Uint16Array;
  for (let n = 0; n < data.length; ++n) result[n] = isBits ? toHalf(data[n], dtype) : data[n];
  return { data: result, shape, ...(like.dtype && { dtype }) };
}

/** The values as float32. @param {OnnxTensor} tensor @returns {Float32Array} */
export function asFloat32({ data, dtype = 'float16' }) {
  if (data instanceof Float32Array) return data;
  const isBits = data instanceof Uint16Array;
  return Float32Array.from(data, (value) => (isBits ? fromHalf(value, dtype) : value));
}

/**
 * Whole numbers, bare or in a tensor, that JavaScript can count with.
 * @param {OnnxIntegers | { data: OnnxIntegers }} given
 * @returns {Int32Array | number[]}
 */
export function numbersOf(given) {
  const data = 'data' in given ? given.data : given;
  return data instanceof BigInt64Array ? Array.from(data, Number) : data;
}

/**
 * The elements, as the typed array that they are: whichever it is, the methods used here are those of a Float32Array.
 * @param {OnnxTensor} tensor
 */
export const elements = (tensor) => /** @type {Float32Array} */ (tensor.data);

/** @param {TensorData} data @param {number} count @returns {Float32Array} likewise whichever kind it is */
export function emptyLike(data, count) {
  return new /** @type {any} */ (data).constructor(count);
}

/**
 * What comes after a call, at once or when its promise is kept.
 * @template R
 * @param {any} value @param {(value: any) => R} then
 * @returns {any}
 */
export function after(value, then) {
  return value instanceof Promise ? value.then(then) : then(value);
}
