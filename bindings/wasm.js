// Picks the build that suits the engine, and brings it up: in Node, browsers and workers.
import { simd as baselineSimd, relaxedSimd, threads as sharedMemory } from 'wasm-feature-detect';
import { isAbsent } from './check.js';
import { AttentionError, refuse } from './errors.js';

/** @import { LoadOptions } from './types.js' */

/**
 * A module of dist/: the names of bindings.cpp and the memory.
 * @typedef {object} WasmModule
 * @property {{ readonly buffer: ArrayBufferLike }} wasmMemory
 * @property {() => number} _layouts
 * @property {(bytes: number) => number} _allocate
 * @property {(pointer: number) => void} _release
 * @property {() => boolean} _dotOfBytes
 * @property {() => number} _usedBytes
 * @property {(struct: number) => number} _attentionScratch
 * @property {(struct: number) => void} _attention
 * @property {(struct: number) => void} _append
 * @property {(type: number, width: number) => number} _tokenBytes
 * @property {(struct: number) => void} _merge
 * @property {(struct: number) => void} _norm
 * @property {(struct: number) => void} _activation
 * @property {(struct: number) => void} _rope
 * @property {(struct: number) => number} _linearScratch
 * @property {(struct: number) => void} _linear
 * @property {(struct: number) => void} _embedding
 * @property {(N: number, K: number) => number} _packedLinearSize
 * @property {(weight: number, N: number, K: number, packed: number) => void} _packLinear
 * @property {(from: number, fromType: number, to: number, toType: number, count: number) => void} _convert
 * @property {(count: number) => void} _setThreads
 * @property {() => number} _threads
 * @property {{ terminateAllThreads: () => void }} [PThread] builds with threads
 */

/** @typedef {(options: object) => Promise<WasmModule>} Factory */
/** @typedef {{ glue: () => Promise<{ default: Factory }>, url: () => URL, worker?: () => URL }} Build */

// Written out, so that bundlers see every file; only the one that is picked is fetched.
/** @type {Readonly<Record<string, Build>>} */
const kBuilds = {
  scalar: {
    glue: () => import('../dist/attention.scalar.js'),
    url: () => new URL('../dist/attention.scalar.wasm', import.meta.url),
  },
  baseline: {
    glue: () => import('../dist/attention.baseline.js'),
    url: () => new URL('../dist/attention.baseline.wasm', import.meta.url),
  },
  relaxed: {
    glue: () => import('../dist/attention.relaxed.js'),
    url: () => new URL('../dist/attention.relaxed.wasm', import.meta.url),
  },
  'baseline-mt': {
    glue: () => import('../dist/attention.baseline-mt.js'),
    url: () => new URL('../dist/attention.baseline-mt.wasm', import.meta.url),
    worker: () => new URL('../dist/attention.baseline-mt.js', import.meta.url),
  },
  'relaxed-mt': {
    glue: () => import('../dist/attention.relaxed-mt.js'),
    url: () => new URL('../dist/attention.relaxed-mt.wasm', import.meta.url),
    worker: () => new URL('../dist/attention.relaxed-mt.js', import.meta.url),
  },
};

/** @typedef {{ module: WasmModule, simd: 'scalar' | 'baseline' | 'relaxed', threads: number, reasons: string[] }} Loaded */

/**
 * @param {LoadOptions} options checked
 * @returns {Promise<Loaded>}
 */
export async function loadWasm(options) {
  /** @type {string[]} */
  const reasons = [];
  const simd = await pickSimd(options.simd ?? 'auto', reasons);
  const threads = await pickThreads(options.threads ?? 'auto', simd, reasons);
  if (threads > 1) {
    try {
      return { module: await bringUp(`${simd}-mt`, options, threads), simd, threads, reasons };
    } catch (error) {
      if (typeof options.threads === 'number') throw error;
      reasons.push(`threads: the build with threads did not load (${/** @type {Error} */ (error).message})`);
    }
  }
  return { module: await bringUp(simd, options, 1), simd, threads: 1, reasons };
}

/** @param {'auto' | 'relaxed' | 'baseline' | 'scalar'} wanted @param {string[]} reasons */
async function pickSimd(wanted, reasons) {
  if (wanted === 'scalar') return wanted;
  const hasBaseline = await baselineSimd();
  const hasRelaxed = hasBaseline && (await relaxedSimd());
  const has = { relaxed: hasRelaxed, baseline: hasBaseline };
  if (wanted !== 'auto') {
    if (has[wanted]) return wanted;
    return refuse('UNSUPPORTED', 'load', 'simd must be one that this engine has', wanted);
  }
  if (hasRelaxed) return 'relaxed';
  reasons.push('relaxed SIMD: not supported by this engine');
  if (hasBaseline) return 'baseline';
  reasons.push('SIMD: not supported by this engine');
  return 'scalar';
}

/**
 * How many threads to use; 1 means a build without.
 * @param {number | 'auto'} wanted @param {string} simd @param {string[]} reasons
 */
async function pickThreads(wanted, simd, reasons) {
  if (wanted === 1) return 1;
  const obstacle = await whyNoThreads(simd);
  if (wanted === 'auto') {
    const cores = obstacle ? 1 : await coreCount();
    if (cores < 2) reasons.push(`threads: ${obstacle ?? 'one processor core'}`);
    return Math.min(cores, kMostThreads);
  }
  if (obstacle) throw new AttentionError('UNSUPPORTED', `load: threads must be 1 here (${obstacle}), got ${wanted}`);
  return wanted;
}

/** More than that, and a core's share of one call is too small to be worth the hand-over. */
export const kMostThreads = 16;

/** @param {string} simd */
async function whyNoThreads(simd) {
  if (simd === 'scalar') return 'the scalar build has none';
  if (typeof SharedArrayBuffer === 'undefined' || globalThis.crossOriginIsolated === false) {
    return 'no shared memory, because the page is not cross-origin isolated';
  }
  return (await sharedMemory()) ? null : 'not supported by this engine';
}

export const isNode = () => typeof process === 'object' && typeof process.versions?.node === 'string';

/** Node's own modules, out of sight of bundlers for browsers. @param {string} name */
export const nodeModule = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);

async function coreCount() {
  if (isNode()) return /** @type {typeof import('node:os')} */ (await nodeModule('os')).availableParallelism();
  return globalThis.navigator?.hardwareConcurrency ?? 1;
}

/** @param {string} name @param {LoadOptions} options @param {number} threads @returns {Promise<WasmModule>} */
async function bringUp(name, options, threads) {
  try {
    const [glue, compiled] = await Promise.all([kBuilds[name].glue(), compile(name, options)]);
    return await instantiate(glue.default, compiled, { threads, workerUrl: kBuilds[name].worker?.() });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new AttentionError('LOAD_FAILED', `load: the ${name} build must load, got ${why}`, { cause });
  }
}

/** @param {string} name @param {LoadOptions} options @returns {Promise<WebAssembly.Module>} */
async function compile(name, { wasmBinary, wasmUrl }) {
  if (wasmBinary) return WebAssembly.compile(/** @type {BufferSource} */ (wasmBinary));
  const given = isAbsent(wasmUrl) ? kBuilds[name].url() : wasmUrl;
  // A folder: which of its files it is, is known only now.
  const url = String(given).endsWith('/') ? `${given}attention.${name}.wasm` : String(given);
  return WebAssembly.compile(await bytesFrom(url));
}

/** @param {string} url @returns {Promise<BufferSource>} */
async function bytesFrom(url) {
  const isUrl = /^[a-z][a-z\d+.-]+:/i.test(url);
  if (isNode() && (!isUrl || url.startsWith('file:'))) {
    const { readFile } = /** @type {typeof import('node:fs/promises')} */ (await nodeModule('fs/promises'));
    return readFile(isUrl ? new URL(url) : url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`HTTP status ${response.status} for ${url}`);
  return response.arrayBuffer();
}

/**
 * @param {Factory} factory @param {WebAssembly.Module} compiled
 * @param {{ threads: number, workerUrl?: URL }} forThreads
 * @returns {Promise<WasmModule>}
 */
async function instantiate(factory, compiled, forThreads) {
  /** The glue adds its names to this. @type {Partial<WasmModule> & typeof forThreads & { instantiateWasm?: unknown }} */
  const settings = { ...forThreads };
  try {
    return await new Promise((resolve, reject) => {
      /** @param {WebAssembly.Imports} imports @param {(instance: WebAssembly.Instance, module: WebAssembly.Module) => void} receive */
      settings.instantiateWasm = (imports, receive) => {
        WebAssembly.instantiate(compiled, imports)
          .then((instance) => receive(instance, compiled))
          .catch(reject);
        return {};
      };
      factory(settings).then(resolve, reject);
    });
  } catch (error) {
    settings.PThread?.terminateAllThreads();
    throw error;
  }
}
