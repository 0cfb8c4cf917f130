// The rules that every function shares: options, numbers, shapes, data types, operands. Each throws an AttentionError
// or returns its argument in one plain form, so that nothing after it has to ask again.
import { refuse } from './errors.js';
import { Resident, Tensor } from './tensor.js';

/** @import { Dtype, TensorData, TensorLike } from './types.js' */
/** @import { Storage } from './tensor.js' */

/**
 * A tensor argument, checked: either in a backend's memory or plain data to be copied there.
 * @typedef {object} Operand
 * @property {Storage | null} storage
 * @property {TensorData | null} data
 * @property {Dtype} dtype
 * @property {boolean} isFloat16Array the data is a Float16Array: results in its type are one too
 * @property {readonly number[]} shape
 * @property {number} start the first element that belongs to the call
 * @property {number} count how many do
 */

/** Who checks: the backend that tensors must belong to, and the function that messages name. @typedef {{ backend: object & { readonly disposed: boolean, readonly multipliesBytes: boolean }, fn: string }} Context */

/** Options that are undefined or null are at their default. @param {unknown} value @returns {value is undefined | null} */
export const isAbsent = (value) => value === undefined || value === null;

/** A list of either kind. @param {unknown} value @returns {boolean} */
export const isList = (value) => ArrayBuffer.isView(value) || Array.isArray(value);

/** @param {readonly number[]} shape */
export const product = (shape) => shape.reduce((count, size) => count * size, 1);

/** Dimensions and counts are 32-bit integers in the kernels. */
export const kMostElements = 2 ** 31 - 1;

/** @type {Readonly<Record<string, undefined>>} */
const kNoOptions = Object.freeze({});

/**
 * The options object; an unknown name in it is an error.
 * @param {string} fn @param {unknown} options @param {readonly string[]} known
 * @returns {Record<string, any>}
 */
export function optionsOf(fn, options, known) {
  if (isAbsent(options)) return kNoOptions;
  if (typeof options !== 'object' || isList(options)) {
    refuse('INVALID_OPTION', fn, 'options must be an object', options);
  }
  for (const name in options) {
    if (!known.includes(name)) refuse('INVALID_OPTION', fn, `options must be among ${known.join(', ')}`, name);
  }
  return /** @type {Record<string, any>} */ (options);
}

/**
 * @param {string} fn @param {string} name @param {unknown} value @param {number} least @param {number} most
 * @returns {number}
 */
export function integer(fn, name, value, least, most) {
  if (!Number.isInteger(value) || /** @type {number} */ (value) < least || /** @type {number} */ (value) > most) {
    refuse('INVALID_OPTION', fn, `${name} must be an integer of ${least} to ${most}`, value);
  }
  return /** @type {number} */ (value);
}

/**
 * A number that float32 can hold.
 * @param {string} fn @param {string} name @param {unknown} value
 * @returns {number}
 */
export function finite(fn, name, value) {
  if (typeof value !== 'number' || !Number.isFinite(Math.fround(value))) {
    refuse('INVALID_OPTION', fn, `${name} must be a finite number in the range of float32`, value);
  }
  return value;
}

/** @param {string} fn @param {string} name @param {unknown} value @param {boolean} byDefault @returns {boolean} */
export function flag(fn, name, value, byDefault) {
  if (isAbsent(value)) return byDefault;
  if (typeof value !== 'boolean') refuse('INVALID_OPTION', fn, `${name} must be true or false`, value);
  return value;
}

/** @param {unknown} value */
export const typedArrayName = (value) =>
  ArrayBuffer.isView(value) ? String(/** @type {any} */ (value)[Symbol.toStringTag]) : '';

/**
 * A list of integers, as a fresh Int32Array.
 * @param {string} fn @param {string} name @param {unknown} value an array or typed array of numbers
 * @param {number} count how many there must be; −1 for any number
 * @param {number} least @param {number} most
 * @returns {Int32Array}
 */
export function integers(fn, name, value, count, least, most) {
  const kind = typedArrayName(value);
  const isList = Array.isArray(value) || (kind !== '' && kind !== 'DataView' && !kind.startsWith('Big'));
  if (!isList) refuse('INVALID_DTYPE', fn, `${name} must be an Int32Array or an array of integers`, value);
  const list = /** @type {ArrayLike<unknown>} */ (value);
  if (count >= 0 && list.length !== count) {
    refuse('INVALID_SHAPE', fn, `${name} must have ${count} elements`, list.length);
  }
  const result = new Int32Array(list.length);
  for (let i = 0; i < list.length; ++i) result[i] = integer(fn, `${name}[${i}]`, list[i], least, most);
  return result;
}

/**
 * @param {string} fn @param {string} name @param {unknown} shape
 * @returns {number} the number of elements
 */
export function countOf(fn, name, shape) {
  if (!Array.isArray(shape)) refuse('INVALID_SHAPE', fn, `${name} must be an array of dimensions`, shape);
  let count = 1;
  for (const size of shape) {
    if (!Number.isInteger(size) || size < 0 || size > kMostElements) {
      refuse('INVALID_SHAPE', fn, `${name} must hold integers of 0 to ${kMostElements}`, shape);
    }
    count *= size;
  }
  if (count > kMostElements) refuse('INVALID_SHAPE', fn, `${name} must hold at most ${kMostElements} elements`, shape);
  return count;
}

/**
 * The type of data, which must be one that tensors have.
 * @param {string} fn @param {string} name @param {unknown} data @param {unknown} dtype what the caller said, if anything
 * @returns {Dtype}
 */
export function dtypeOf(fn, name, data, dtype) {
  const kind = typedArrayName(data);
  const possible = kDtypes[kind];
  if (!possible) {
    refuse('INVALID_DTYPE', fn, `${name} must be a Float32Array, Float16Array or Uint16Array (bits)`, data);
  }
  if (isAbsent(dtype)) return possible[0];
  if (!possible.includes(/** @type {Dtype} */ (dtype))) {
    refuse('INVALID_DTYPE', fn, `dtype of a ${kind} (${name}) must be ${possible.join(' or ')}`, dtype);
  }
  return /** @type {Dtype} */ (dtype);
}

/** @type {Readonly<Record<string, readonly Dtype[]>>} */
const kDtypes = { Float32Array: ['float32'], Float16Array: ['float16'], Uint16Array: ['float16', 'bfloat16'] };

/**
 * A tensor argument.
 * @param {Context} context @param {string} name @param {unknown} value a Tensor or { data, shape, dtype? }
 * @returns {Operand}
 */
export function operand(context, name, value) {
  const { fn, backend } = context;
  if (value instanceof Tensor) {
    const storage = Resident.storageOf(value, backend, fn, name);
    const isFloat16Array = value.isFloat16Array;
    const count = value.count;
    return { storage, data: null, dtype: value.dtype, isFloat16Array, shape: value.shape, start: 0, count };
  }
  if (typeof value !== 'object' || value === null || isList(value)) {
    refuse('INVALID_SHAPE', fn, `${name} must be a Tensor or an object { data, shape }`, value);
  }
  const { data, shape, dtype } = /** @type {TensorLike} */ (value);
  const type = dtypeOf(fn, `${name}.data`, data, dtype);
  const count = countOf(fn, `${name}.shape`, shape);
  if (data.length !== count) {
    refuse('INVALID_SHAPE', fn, `${name}.data must have the ${count} elements of shape ${list(shape)}`, data.length);
  }
  const isFloat16Array = typedArrayName(data) === 'Float16Array';
  return { storage: null, data, dtype: type, isFloat16Array, shape, start: 0, count };
}

/**
 * A vector, as bare data or as a tensor argument.
 * @param {Context} context @param {string} name @param {unknown} value @param {number} count @param {string} letter
 * @returns {Operand}
 */
export function vector(context, name, value, count, letter) {
  const bare = isList(value);
  const data = /** @type {any} */ (value);
  if (bare) dtypeOf(context.fn, name, data, undefined);
  const result = operand(context, name, bare ? { data, shape: [data.length] } : value);
  if (!sameShape(result.shape, [count])) {
    refuse('INVALID_SHAPE', context.fn, `${name} must have shape [${letter}] = [${count}]`, result.shape);
  }
  return result;
}

/**
 * Where a result goes: to a resident tensor of just its shape, or to fresh memory.
 * @typedef {object} Output
 * @property {Storage | null} storage
 * @property {Tensor | null} tensor what `storage` belongs to
 * @property {Dtype} dtype
 * @property {boolean} isFloat16Array
 * @property {readonly number[]} shape
 * @property {number} [start] the first element, where it isn't the storage's own
 * @property {number} count
 */

/**
 * @param {Context} context
 * @param {unknown} out the option
 * @param {readonly number[]} shape @param {Operand} like the operand whose type fresh results have
 * @param {readonly (Operand | null)[]} inputs what `out` must not be, because inputs are never changed
 * @returns {Output}
 */
export function outputOf(context, out, shape, like, inputs) {
  const { fn, backend } = context;
  const count = product(shape);
  if (isAbsent(out)) {
    const { dtype, isFloat16Array } = like;
    return { storage: null, tensor: null, dtype, isFloat16Array, shape, count };
  }
  if (!(out instanceof Tensor)) refuse('INVALID_OPTION', fn, 'out must be a Tensor of this instance', out);
  const storage = Resident.storageOf(out, backend, fn, 'out');
  if (!sameShape(out.shape, shape)) refuse('INVALID_SHAPE', fn, `out must have shape ${list(shape)}`, out.shape);
  if (inputs.some((input) => input?.storage === storage)) {
    refuse('INVALID_OPTION', fn, 'out must not be one of the inputs', out);
  }
  return { storage, tensor: out, dtype: out.dtype, isFloat16Array: out.isFloat16Array, shape, count };
}

/** @param {readonly number[]} a @param {readonly number[]} b */
export const sameShape = (a, b) => a.length === b.length && a.every((size, i) => size === b[i]);

/** @param {readonly number[]} shape */
export const list = (shape) => `[${shape.join(', ')}]`;
