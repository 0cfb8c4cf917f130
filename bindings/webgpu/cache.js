// Key/value caches on the GPU: keys and values in a buffer each, [B, Hkv, capacity, token].
import { isQuantized } from '../check-cache.js';
import { refuse } from '../errors.js';
import { bytesOf, typeNumber } from '../memory.js';
import { append, appendLayout, kThreads } from './elementwise.wgsl.js';
import { bufferOf } from './operands.js';
import { Lists } from './plan.js';

/** @import { Strides } from '../check-attention.js' */
/** @import { AppendCall, CacheConfig, CacheState, CacheStorage, Held } from '../check-cache.js' */
/** @import { Operand } from '../check.js' */
/** @import { Dtype } from '../types.js' */
/** @import { WebgpuBackend } from './backend.js' */
/** @import { Placed } from './recording.js' */

/** What a snapshot keeps: bytes that are there when the call has ended. @typedef {{ parts: Uint8Array[] }} CacheRows */

/** Types that a cache on the GPU may have. @type {readonly Dtype[]} */
export const kCacheTypes = ['float32', 'float16', 'bfloat16'];

/** @param {WebgpuBackend} backend @param {string} fn @param {CacheConfig} config @returns {CacheStorage} */
export function cacheStorage(backend, fn, { B, Hkv, D, Dv, capacity, dtype }) {
  if (isQuantized(dtype)) refuse('UNSUPPORTED', fn, `dtype must be among ${kCacheTypes.join(', ')} on webgpu`, dtype);
  const unit = bytesOf(/** @type {Dtype} */ (dtype));
  // Whole vectors of four: a token never shares a word with another, and is read by vectors.
  const [keyToken, valueToken] = [D, Dv].map((width) => Math.ceil(width / 4) * 4);
  const tokens = B * Hkv * capacity;
  const keys = backend.hold(tokens * keyToken * unit);
  let values;
  try {
    values = backend.hold(tokens * valueToken * unit);
  } catch (error) {
    keys.free();
    throw error;
  }
  const free = () => {
    keys.free();
    values.free();
  };
  const bytes = tokens * (keyToken + valueToken) * unit;
  return { owner: backend, free, keys, values, keyScales: null, valueScales: null, keyToken, valueToken, bytes };
}

/** @param {WebgpuBackend} backend @param {AppendCall} call */
export function appendTokens(backend, call) {
  const { state, k, v, kStrides, vStrides, first, lengths } = call;
  const { keys, values, keyToken, valueToken } = state.storage;
  const lists = new Lists(backend);
  const listed = { first: lists.add(first), lengths: lists.add(lengths) };
  const placed = lists.upload();
  const { D, Dv } = state.config;
  store(backend, call, { source: k, strides: kStrides, width: D, token: keyToken, to: bufferOf(keys) }, listed, placed);
  store(
    backend,
    call,
    { source: v, strides: vStrides, width: Dv, token: valueToken, to: bufferOf(values) },
    listed,
    placed,
  );
}

/**
 * @param {WebgpuBackend} backend @param {AppendCall} call
 * @param {{ source: Operand, strides: Strides, width: number, token: number, to: GPUBuffer }} tokens
 * @param {{ first: number, lengths: number }} listed @param {Placed} lists
 */
function store({ recording, operands, gpu }, { state, T }, { source, strides, width, token, to }, listed, lists) {
  const { B, Hkv, capacity, window, sinkTokens } = state.config;
  const dtype = /** @type {Dtype} */ (state.config.dtype);
  const perWord = 4 / bytesOf(dtype);
  const from = operands.part(source);
  const target = { buffer: to, first: 0, dtype };
  const words = Math.ceil(width / perWord);
  // Where the cache is larger than a device binds, each item and head by itself.
  const step = to.size <= gpu.limits.maxStorageBufferBindingSize ? { B, H: Hkv } : { B: 1, H: 1 };
  for (let b = 0; b < B; b += step.B) {
    for (let h = 0; h < Hkv; h += step.H) {
      const low = b * strides.batch + h * strides.head;
      const high = low + (step.B - 1) * strides.batch + (step.H - 1) * strides.head + (T - 1) * strides.token + width;
      const row = (b * Hkv + h) * capacity * token;
      const part = operands.window(from, low, high);
      const place = operands.window(target, row, row + step.B * step.H * capacity * token);
      const count = step.B * step.H * T * words;
      recording.dispatch({
        name: 'append',
        code: append,
        constants: { kFromType: typeNumber(source.dtype), kToType: typeNumber(dtype) },
        layout: appendLayout,
        values: {
          ...{ H: step.H, T, width, words, count, first: listed.first + b },
          ...{ lengths: listed.lengths < 0 ? -1 : listed.lengths + b, from_first: part.first + low },
          ...{ from_batch: strides.batch, from_head: strides.head, from_token: strides.token },
          ...{ ring_first: sinkTokens, ring_size: window ? capacity - sinkTokens : 0 },
          to_first: (place.first + row) / perWord,
          ...{ to_batch: (Hkv * capacity * token) / perWord, to_head: (capacity * token) / perWord },
          to_token: token / perWord,
        },
        bindings: [part.binding, lists, { ...place.binding, isWritten: true }],
        groups: Math.ceil(count / kThreads),
      });
    }
  }
}

/** @param {WebgpuBackend} backend @param {CacheState} state @returns {CacheRows} */
export function readRows({ recording }, state) {
  /** @type {CacheRows} */
  const rows = { parts: [] };
  runsOf(state, state.held).forEach(({ buffer, offset, size }, n) => {
    recording.read(buffer, offset, size, (copy) => {
      rows.parts[n] = new Uint8Array(copy);
    });
  });
  return rows;
}

/** @param {WebgpuBackend} backend @param {CacheState} state @param {Held} held @param {CacheRows} rows */
export function writeRows({ gpu }, state, held, { parts }) {
  runsOf(state, held).forEach(({ buffer, offset, size }, n) => {
    if (size > 0) gpu.device.queue.writeBuffer(buffer, offset, /** @type {any} */ (parts[n]), 0, size);
  });
}

/** Where the rows that are in use stand. @param {CacheState} state @param {Held} held */
function runsOf({ config: { B, Hkv, capacity, dtype }, storage }, { positions, evicted }) {
  const { keys, values, keyToken, valueToken } = storage;
  const unit = bytesOf(/** @type {Dtype} */ (dtype));
  const runs = [];
  for (const [part, token] of /** @type {const} */ ([
    [keys, keyToken * unit],
    [values, valueToken * unit],
  ])) {
    for (let n = 0; n < B * Hkv; ++n) {
      const b = Math.floor(n / Hkv);
      const rows = evicted[b] > 0 ? capacity : positions[b];
      runs.push({ buffer: bufferOf(part), offset: n * capacity * token, size: rows * token });
    }
  }
  return runs;
}
