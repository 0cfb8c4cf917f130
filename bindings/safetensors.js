// Reads safetensors files: weights as tensors, without a copy where they stand on a multiple of their element's size.
//
// A file is the length of a header (8 bytes, little-endian), the header (JSON: a dtype, a shape and two offsets for each
// tensor), and the tensors' bytes, one after the other without holes.
// Source: the format as in https://github.com/huggingface/safetensors.
import { flag, optionsOf } from './check.js';
import { AttentionError, refuse } from './errors.js';

/** @import { TensorLike } from './types.js' */

const kMostHeader = 100_000_000;
const kPrefix = 8;
/** Bits of an element, of every type of the format. @type {Readonly<Record<string, number>>} */
const kBits = {
  ...{ BOOL: 8, U8: 8, I8: 8, F8_E4M3: 8, F8_E5M2: 8, F8_E8M0: 8, F4: 4, F6_E2M3: 6, F6_E3M2: 6 },
  ...{ U16: 16, I16: 16, F16: 16, BF16: 16, U32: 32, I32: 32, F32: 32, U64: 64, I64: 64, F64: 64, C64: 64 },
};
/** Those that tensors of the package have. @type {Readonly<Record<string, 'float32' | 'float16' | 'bfloat16'>>} */
const kDtypes = { F32: 'float32', F16: 'float16', BF16: 'bfloat16' };
const kOptions = ['skipUnsupported'];
const fn = 'readSafetensors';

/** @typedef {{ name: string, dtype: string, shape: number[], begin: number, end: number }} Entry */

/**
 * The tensors of a safetensors file, by name.
 *
 * Their data are views of `bytes`: float32 as Float32Array, float16 and bfloat16 as the bits in a Uint16Array. A tensor
 * that doesn't stand on a multiple of its element's size (files by the usual writers have none) is copied, and no other.
 *
 * @example
 * const bytes = await readFile('model.safetensors'); // in a page: await (await fetch(url)).arrayBuffer()
 * const tensors = readSafetensors(bytes);
 * const { data, shape, dtype } = tensors['norm.weight'];
 * [shape, dtype]; // → [[4], 'float32']
 * @param {ArrayBufferLike | ArrayBufferView} bytes the whole file
 * @param {{ skipUnsupported?: boolean | null } | null} [options] `skipUnsupported` leaves out tensors of types that the
 *   package doesn't compute with (integers, float64, 8-bit floats); without it they are refused
 * @returns {Record<string, TensorLike>}
 * @throws {AttentionError} INVALID_SHAPE: truncated, or sizes and offsets that don't fit; INVALID_OPTION: a header that
 *   is not as the format says; INVALID_DTYPE: an unknown dtype; UNSUPPORTED: one that the package doesn't have
 */
export function readSafetensors(bytes, options) {
  const skipUnsupported = flag(fn, 'skipUnsupported', optionsOf(fn, options, kOptions).skipUnsupported, false);
  const file = bytesOf(bytes);
  const headerEnd = headerEndOf(file);
  const entries = entriesOf(headerOf(file.subarray(kPrefix, headerEnd)));
  checkOffsets(entries, file.length - headerEnd);
  const tensors = entries.flatMap((entry) => {
    if (kDtypes[entry.dtype]) return [[entry.name, tensorOf(file, headerEnd, entry)]];
    if (skipUnsupported) return [];
    const rule = `${entry.name} must have one of the dtypes F32, F16, BF16 (or skipUnsupported be given)`;
    return refuse('UNSUPPORTED', fn, rule, entry.dtype);
  });
  return Object.fromEntries(tensors);
}

/** @param {any} bytes @returns {Uint8Array} */
function bytesOf(bytes) {
  if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (/ArrayBuffer\]$/.test(Object.prototype.toString.call(bytes))) return new Uint8Array(bytes);
  return refuse('INVALID_DTYPE', fn, 'bytes must be an ArrayBuffer or a view of one', bytes);
}

/** @param {Uint8Array} file */
function headerEndOf(file) {
  if (file.length < kPrefix) refuse('INVALID_SHAPE', fn, `bytes must be at least ${kPrefix}`, file.length);
  const length = new DataView(file.buffer, file.byteOffset).getBigUint64(0, true);
  if (length > kMostHeader) refuse('INVALID_SHAPE', fn, `the header must have at most ${kMostHeader} bytes`, length);
  const end = kPrefix + Number(length);
  if (end > file.length) refuse('INVALID_SHAPE', fn, `bytes must hold the header, ${end} bytes`, file.length);
  return end;
}

/** @param {Uint8Array} bytes @returns {Record<string, any>} */
function headerOf(bytes) {
  // What is decoded must not be shared memory.
  const text = decode(bytes.buffer instanceof ArrayBuffer ? bytes : bytes.slice());
  if (text[0] !== '{') refuse('INVALID_OPTION', fn, `the header must begin with '{'`, text.slice(0, 1));
  try {
    const header = JSON.parse(text);
    refuseDuplicates(text);
    return header;
  } catch (cause) {
    if (cause instanceof AttentionError) throw cause;
    const { message } = /** @type {Error} */ (cause);
    throw new AttentionError('INVALID_OPTION', `${fn}: the header must be JSON, got ${message}`, { cause });
  }
}

/** @param {Uint8Array} bytes */
function decode(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new AttentionError('INVALID_OPTION', `${fn}: the header must be UTF-8, got other bytes`, { cause });
  }
}

/** JSON.parse takes the last of several values for a key; here they are an error. @param {string} text which is JSON */
function refuseDuplicates(text) {
  /** @type {Set<string>[]} the keys of the objects around */
  const around = [];
  const colon = /\s*:/y;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === '{') around.push(new Set());
    else if (token === '}') around.pop();
    else {
      colon.lastIndex = index + token.length;
      if (!colon.test(text)) continue;
      const name = JSON.parse(token);
      const keys = around[around.length - 1];
      if (keys.has(name)) refuse('INVALID_OPTION', fn, 'a key of the header must stand there once', name);
      keys.add(name);
    }
  }
}

/** @param {Record<string, any>} header @returns {Entry[]} */
function entriesOf(header) {
  /** @type {Entry[]} */
  const entries = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') checkMetadata(entry);
    else entries.push(entryOf(name, entry));
  }
  return entries;
}

/** @param {any} metadata */
function checkMetadata(metadata) {
  const isRight = isObject(metadata) && Object.values(metadata).every((value) => typeof value === 'string');
  if (!isRight) refuse('INVALID_OPTION', fn, '__metadata__ must be an object of strings', metadata);
}

/** @param {unknown} value */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {unknown} value */
const isSizes = (value) => Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);

/** @param {string} name @param {any} entry @returns {Entry} */
function entryOf(name, entry) {
  const keys = isObject(entry) ? Object.keys(entry).sort().join() : '';
  if (keys !== 'data_offsets,dtype,shape') {
    refuse('INVALID_OPTION', fn, `${name} must be an object of dtype, shape and data_offsets`, entry);
  }
  const { dtype, shape, data_offsets: offsets } = entry;
  if (typeof dtype !== 'string' || !Object.hasOwn(kBits, dtype)) {
    refuse('INVALID_DTYPE', fn, `dtype of ${name} must be among ${Object.keys(kBits).join(', ')}`, dtype);
  }
  if (!isSizes(shape)) refuse('INVALID_SHAPE', fn, `shape of ${name} must be a list of sizes`, shape);
  if (!isSizes(offsets) || offsets.length !== 2) {
    refuse('INVALID_SHAPE', fn, `data_offsets of ${name} must be two offsets`, offsets);
  }
  const [begin, end] = offsets;
  const bits = shape.reduce(
    (/** @type {number} */ product, /** @type {number} */ size) => product * size,
    kBits[dtype],
  );
  if (bits !== 8 * (end - begin)) {
    const rule = `data_offsets of ${name} must be ${bits / 8} bytes apart for ${dtype} of shape [${shape.join(', ')}]`;
    refuse('INVALID_SHAPE', fn, rule, offsets);
  }
  return { name, dtype, shape, begin, end };
}

/** Tensors fill the bytes after the header, without overlap or hole. @param {Entry[]} entries @param {number} size */
function checkOffsets(entries, size) {
  let at = 0;
  for (const { name, begin, end } of [...entries].sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (begin !== at)
      refuse('INVALID_SHAPE', fn, `${name} must begin where the tensor before it ends, at ${at}`, begin);
    at = end;
  }
  if (at !== size) refuse('INVALID_SHAPE', fn, `the tensors must fill the ${size} bytes after the header`, at);
}

/** @param {Uint8Array} file @param {number} start @param {Entry} entry @returns {TensorLike} */
function tensorOf(file, start, { dtype, shape, begin, end }) {
  const type = kDtypes[dtype];
  const size = type === 'float32' ? 4 : 2;
  const part = file.subarray(start + begin, start + end);
  const { buffer, byteOffset } = part.byteOffset % size === 0 ? part : part.slice();
  const count = (end - begin) / size;
  const data = size === 4 ? new Float32Array(buffer, byteOffset, count) : new Uint16Array(buffer, byteOffset, count);
  return { data, shape, dtype: type };
}
