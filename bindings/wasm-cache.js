// Key/value caches in the memory of a wasm module: keys, values, and the scales of int8, one after the other.
import { isQuantized } from './check-cache.js';
import { Frame, pointerOf } from './frame.js';
import { bytesOf, outOfMemory, typeNumber } from './memory.js';

/** @import { Strides } from './check-attention.js' */
/** @import { AppendCall, CacheConfig, CacheState, CacheStorage, Held } from './check-cache.js' */
/** @import { Memory } from './memory.js' */
/** @import { Storage } from './tensor.js' */
/** @import { Dtype } from './types.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

/** @typedef {Storage & { pointer: number, token: number }} Part `token`: bytes of a row */

/** Bytes of the parts' tokens, of the parts, and of all. @typedef {{ tokens: number[], parts: number[], total: number }} Sizes */

/**
 * @param {CacheConfig} config @param {(type: number, width: number) => number} tokenBytes
 * @returns {Sizes}
 */
export function cacheSizes({ B, Hkv, D, Dv, capacity, dtype }, tokenBytes) {
  const tokens = [D, Dv].map((width) => tokenBytes(typeNumber(dtype), width));
  if (dtype === 'int8') tokens.push(4, 4);
  const parts = tokens.map((bytes) => Math.ceil((B * Hkv * capacity * bytes) / 16) * 16);
  return { tokens, parts, total: parts.reduce((a, b) => a + b, 0) };
}

/** @param {Storage & { pointer: number }} held @param {CacheConfig} config @param {Sizes} sizes @returns {CacheStorage} */
export function cacheStorage(held, { B, Hkv, capacity, dtype }, { tokens, parts }) {
  let { pointer } = held;
  /** @type {Part[]} */
  const placed = parts.map((size, n) => {
    const part = { ...held, pointer, token: tokens[n] };
    pointer += size;
    return part;
  });
  const [keys, values, keyScales = null, valueScales = null] = placed;
  const unit = isQuantized(dtype) ? 1 : bytesOf(/** @type {Dtype} */ (dtype));
  const [keyToken, valueToken] = [tokens[0] / unit, tokens[1] / unit];
  const bytes = B * Hkv * capacity * tokens.reduce((a, b) => a + b, 0);
  return Object.assign(held, { placed, keys, values, keyScales, valueScales, keyToken, valueToken, bytes });
}

/** @param {WasmBackend} backend @param {AppendCall} call */
export function appendTokens(backend, call) {
  const { fn, state, k, v, first, lengths } = call;
  const fields = { k: 0, v: 0, first: 0, length: 0 };
  // One block for keys and values, so that nothing can fail between them.
  const frame = new Frame(backend, fn, fields);
  if (isQuantized(state.config.dtype)) {
    frame.float32('k', k);
    frame.float32('v', v);
  } else {
    frame.operand('k', k);
    frame.operand('v', v);
  }
  frame.input('first', first);
  frame.input('length', lengths);
  frame.run(
    1,
    () => storeTokens(backend, call, fields),
    () => {},
  );
}

/**
 * Tokens that stand in the memory of the module, in float32 where the cache is quantised.
 * @param {WasmBackend} backend @param {AppendCall} call
 * @param {{ k: number, v: number, first: number, length: number }} pointers
 */
export function storeTokens({ memory, module }, { state, T, k, v, kStrides, vStrides }, pointers) {
  const { B, Hkv, D, Dv, capacity, dtype, window, sinkTokens } = state.config;
  const { keys, values, keyScales, valueScales, keyToken, valueToken } = state.storage;
  /**
   * @param {{ from: number, type: number, strides: Strides, width: number }} source
   * @param {Storage} to @param {number} token @param {Storage | null} scales
   */
  const store = ({ from, type, strides, width }, to, token, scales) => {
    const struct = memory.fill({
      B,
      H: Hkv,
      T,
      width,
      from_type: type,
      to_type: typeNumber(dtype),
      from,
      to: pointerOf(to),
      from_batch: strides.batch,
      from_head: strides.head,
      from_token: strides.token,
      to_batch: Hkv * capacity * token,
      to_head: capacity * token,
      to_token: token,
      scale: scales ? pointerOf(scales) : 0,
      scale_batch: Hkv * capacity,
      scale_head: capacity,
      first: pointers.first,
      length: pointers.length,
      ring_first: sinkTokens,
      ring_size: window ? capacity - sinkTokens : 0,
    });
    module._append(struct);
  };
  /** @param {Dtype} type */
  const typeOf = (type) => (isQuantized(dtype) ? 0 : typeNumber(type));
  store({ from: pointers.k, type: typeOf(k.dtype), strides: kStrides, width: D }, keys, keyToken, keyScales);
  store({ from: pointers.v, type: typeOf(v.dtype), strides: vStrides, width: Dv }, values, valueToken, valueScales);
}

/** The rows in use, one after the other. @param {Memory} memory @param {string} fn @param {CacheState} state */
export function readRows(memory, fn, state) {
  const runs = runsOf(state, state.held);
  const size = runs.reduce((sum, run) => sum + run.size, 0);
  const bytes = freshBytes(fn, size);
  let at = 0;
  for (const run of runs) {
    bytes.set(memory.heap.u8.subarray(run.pointer, run.pointer + run.size), at);
    at += run.size;
  }
  return bytes;
}

/** @param {Memory} memory @param {CacheState} state @param {Held} held what `bytes` are the rows of @param {Uint8Array} bytes */
export function writeRows(memory, state, held, bytes) {
  let at = 0;
  for (const { pointer, size } of runsOf(state, held)) {
    memory.heap.u8.set(bytes.subarray(at, at + size), pointer);
    at += size;
  }
}

/** Where the rows that are in use stand. @param {CacheState} state @param {Held} held */
function runsOf({ config: { B, Hkv, capacity }, storage }, { positions, evicted }) {
  const runs = [];
  for (const { pointer, token } of /** @type {CacheStorage & { placed: Part[] }} */ (storage).placed) {
    for (let n = 0; n < B * Hkv; ++n) {
      const b = Math.floor(n / Hkv);
      const rows = evicted[b] > 0 ? capacity : positions[b];
      runs.push({ pointer: pointer + n * capacity * token, size: rows * token });
    }
  }
  return runs;
}

/** @param {string} fn @param {number} size */
function freshBytes(fn, size) {
  try {
    return new Uint8Array(size);
  } catch (cause) {
    throw outOfMemory(fn, size, cause);
  }
}
