// Picks the build that suits the engine, and brings it up: in Node, browsers and workers.
import { instantiate, kBuilds, threads as threading } from './builds.js';
import { hasRelaxedSimd, hasSimd } from './engine.js';
import { AttentionError, refuse } from './errors.js';
import { selfTest } from './self-test.js';
import { WasmBackend } from './wasm-backend.js';
import { compile } from './wasm-binary.js';

/** @import { LoadOptions } from './types.js' */

/**
 * A module of dist/: the names of bindings.cpp and the memory.
 * @typedef {object} WasmModule
 * @property {{ readonly buffer: ArrayBufferLike }} wasmMemory
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

/** @typedef {'scalar' | 'baseline' | 'relaxed'} Simd */
/** @typedef {{ backend: WasmBackend, simd: Simd, threads: number, reasons: string[] }} Loaded */

/**
 * Brings up the best build that works here. Under 'auto', one that does not is a reason, and the next lower one is tried.
 * @param {LoadOptions} options checked
 * @returns {Promise<Loaded>}
 */
export async function loadWasm(options) {
  if (typeof WebAssembly !== 'object') {
    throw new AttentionError(
      'UNSUPPORTED',
      'load: the engine must have WebAssembly, got one without it or with it off',
    );
  }
  /** @type {string[]} */
  const reasons = [];
  const simd = pickSimd(options.simd ?? 'auto', reasons);
  const threads = await pickThreads(options.threads ?? 'auto', simd, reasons);
  const best = { name: threads > 1 ? `${simd}-mt` : simd, simd, threads };
  try {
    return await bringUp(best, kBuilds[best.name], options, reasons);
  } catch (error) {
    // Rarely needed, and so not part of what everyone downloads.
    const { stepDown } = await import('./step-down.js').catch(() => {
      throw error;
    });
    return stepDown(options, best, reasons, error);
  }
}

/** @param {'auto' | 'relaxed' | 'baseline' | 'scalar'} wanted @param {string[]} reasons */
function pickSimd(wanted, reasons) {
  if (wanted === 'scalar') return wanted;
  const hasBaseline = hasSimd();
  const hasRelaxed = hasBaseline && hasRelaxedSimd();
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
  let obstacle = whyNoThreads(simd);
  let cores = 1;
  if (!obstacle) ({ obstacle, cores } = await (await threading()).look());
  if (wanted === 'auto') {
    if (cores < 2) reasons.push(`threads: ${obstacle ?? 'one processor core'}`);
    return Math.min(cores, kMostThreads);
  }
  if (obstacle) throw new AttentionError('UNSUPPORTED', `load: threads must be 1 here (${obstacle}), got ${wanted}`);
  return wanted;
}

/** More than that, and a core's share of one call is too small to be worth the hand-over. */
export const kMostThreads = 16;

/** @param {string} simd */
function whyNoThreads(simd) {
  if (!kBuilds[`${simd}-mt`]) return `the ${simd} build has none`;
  return typeof SharedArrayBuffer === 'undefined' || globalThis.crossOriginIsolated === false
    ? 'no shared memory, because the page is not cross-origin isolated'
    : null;
}

/** @typedef {{ name: string, simd: Simd, threads: number }} Candidate */

/** @param {Candidate} candidate @param {any} build one of builds.js @param {LoadOptions} options @param {string[]} reasons @returns {Promise<Loaded>} */
export async function bringUp({ name, simd, threads }, build, options, reasons) {
  try {
    const module = await instantiate(build, await compile(name, build, options), threads);
    module._setThreads(threads);
    const backend = new WasmBackend(module);
    const wrong =
      Boolean(backend.multipliesBytes) === name.startsWith('relaxed')
        ? selfTest(backend)
        : 'the binary is of another build';
    if (!wrong) return { backend, simd, threads, reasons };
    backend.dispose();
    throw new Error(`a failed self-test: ${wrong}`);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const code = cause instanceof RangeError ? 'OUT_OF_MEMORY' : 'LOAD_FAILED';
    throw new AttentionError(code, `load: the ${name} build must load, got ${why}`, { cause });
  }
}
