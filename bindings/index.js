// The package: load(), and what else it exports.

import { Attention } from './attention.js';
import { checkLoad } from './check-load.js';
import { AttentionError, errorCodes } from './errors.js';
import { CacheSnapshot, KeyValueCache } from './key-value-cache.js';
import { MultiHeadAttention } from './multi-head-attention.js';
import { ropeFrequencies } from './rope-frequencies.js';
import { PackedLinear, Tensor } from './tensor.js';
import { version } from './version.js';
import { loadWasm } from './wasm.js';

export * from './promises.js'; // types only
export * from './types.js'; // types only
export {
  Attention,
  AttentionError,
  CacheSnapshot,
  errorCodes,
  KeyValueCache,
  MultiHeadAttention,
  PackedLinear,
  ropeFrequencies,
  Tensor,
};

/** @import { AttentionOn } from './promises.js' */
/** @typedef {'wasm' | 'webgpu' | 'auto'} Backend */
/**
 * What load() gives for a backend that the compiler knows; for one that it doesn't, the functions of wasm.
 * @template {Backend} B
 * @typedef {[B] extends ['webgpu'] ? AttentionOn<'webgpu'> : [B] extends ['auto'] ? AttentionOn<'auto'> : Attention} AttentionFor
 */
/** @typedef {import('./attention.js').Again} Again */
/** @typedef {import('./rope-frequencies.js').RopeFrequencies} RopeFrequencies */
/** @import { LoadOptions } from './types.js' */

/**
 * Loads the package: picks the best build that the engine can run. Nothing is fetched before this call.
 *
 * For backend 'webgpu' every function of the instance returns a promise of what it returns on wasm; for 'auto' either,
 * by what came up: `await` serves both.
 *
 * @example
 * const attention = await load();
 * const one = await load({ simd: 'baseline', threads: 1 });
 * one.info.simd; // → 'baseline'
 * @template {Backend} [B='wasm']
 * @param {(LoadOptions & { backend?: B | null }) | null} [options]
 * @returns {Promise<AttentionFor<B>>}
 * @throws {AttentionError} INVALID_OPTION; UNSUPPORTED: an explicit request that can't be met here; LOAD_FAILED
 */
export async function load(options) {
  return /** @type {any} */ (await instance(checkLoad(options)));
}

/** @param {LoadOptions} options checked */
async function instance(options) {
  if ((options.backend ?? 'wasm') === 'wasm') return wasmAttention(options, []);
  const { loadWebgpu } = await import('./webgpu/load.js'); // not part of what wasm alone downloads
  const loaded = await loadWebgpu(options);
  if ('reason' in loaded) return wasmAttention(options, [loaded.reason]);
  return new Attention(loaded.backend, { version, ...loaded.info }, loaded.again);
}

/** @param {LoadOptions} options @param {string[]} reasons why it isn't webgpu */
async function wasmAttention(options, reasons) {
  const { backend, simd, threads, reasons: others } = await loadWasm(options);
  const info = { version, backend: /** @type {const} */ ('wasm'), simd, threads, reasons: [...reasons, ...others] };
  return new Attention(backend, info);
}
