// The files of dist/, written out so that bundlers see every one; only what is picked is fetched.
import { single } from './single.js';

/** @import { WasmModule } from './wasm.js' */

/**
 * The binary is at `url`, or `bytes` has it. `worker`: builds with threads.
 * @typedef {{ url?: () => URL, bytes?: () => Promise<BufferSource>, worker?: () => URL }} Build
 */

const worker = () => new URL('../dist/attention.threads.worker.js', import.meta.url);

/** @type {Readonly<Record<string, Build>>} */
export const kBuilds = {
  scalar: { url: () => new URL('../dist/attention.scalar.wasm', import.meta.url) },
  baseline: { url: () => new URL('../dist/attention.baseline.wasm', import.meta.url) },
  relaxed: { url: () => new URL('../dist/attention.relaxed.wasm', import.meta.url) },
  'baseline-mt': { url: () => new URL('../dist/attention.baseline-mt.wasm', import.meta.url), worker },
  'relaxed-mt': { url: () => new URL('../dist/attention.relaxed-mt.wasm', import.meta.url), worker },
};

/** For when a file is missing. @type {Build | null} */
export const kCopy = { bytes: async () => (await import('./copy.js')).bytes() };

/** Whether there are threads, and the JavaScript of the builds with them. */
export const threads = () => import('./threads.js');

/** @param {Build} build @param {WebAssembly.Module} compiled @param {number} count of threads @returns {Promise<WasmModule>} */
export const instantiate = async ({ worker }, compiled, count) =>
  worker ? (await threads()).instantiate(compiled, count, worker()) : single(compiled);
