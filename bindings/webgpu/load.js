// Brings the WebGPU backend up, and something to go on with when its device went away. Imported only where WebGPU is
// asked for.
import { AttentionError } from '../errors.js';
import { loadWasm } from '../wasm.js';
import { WebgpuBackend } from './backend.js';
import { Gpu, openGpu, Unavailable } from './gpu.js';

/** @import { Info, LoadOptions } from '../types.js' */
/** @import { WasmBackend } from '../wasm-backend.js' */

/**
 * What runs calls, in the form of the wasm backend.
 * @typedef {{ backend: WasmBackend, info: Omit<Info, 'version'> }} Loaded
 */

/**
 * @param {LoadOptions} options checked
 * @returns {Promise<(Loaded & { again: () => Promise<Loaded> }) | { reason: string }>} the reason why there is no device
 * @throws {AttentionError} UNSUPPORTED where `backend` is 'webgpu' and there is no device
 */
export async function loadWebgpu(options) {
  try {
    const gpu = await open(options);
    return { ...onGpu(gpu, []), again: () => afterLoss(options, gpu) };
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    if (options.backend === 'auto') return { reason: `webgpu: ${error.message}` };
    throw new AttentionError('UNSUPPORTED', `load: backend must be 'wasm' here (${error.message}), got 'webgpu'`, {
      cause: error,
    });
  }
}

/** @param {LoadOptions} options */
async function open({ backend, device }) {
  const given = /** @type {any} */ (device);
  return given ? new Gpu(given, given.adapterInfo, false) : openGpu(backend === 'webgpu');
}

/** @param {Gpu} gpu @param {string[]} reasons @returns {Loaded} */
function onGpu(gpu, reasons) {
  // The same calls with promises in place of values: what they return is for `await` on either.
  const backend = /** @type {WasmBackend} */ (/** @type {unknown} */ (new WebgpuBackend(gpu)));
  return { backend, info: { backend: 'webgpu', simd: 'none', threads: 0, adapter: gpu.adapter, reasons } };
}

/**
 * A new device; under 'auto' wasm where there is none. The caller's own device is not replaced by another.
 * @param {LoadOptions} options @param {Gpu} gone
 * @returns {Promise<Loaded>}
 */
async function afterLoss(options, gone) {
  const lost = /** @type {AttentionError} */ (gone.lost);
  try {
    if (options.device) throw new Unavailable('it was the device that load() was given');
    return onGpu(await open(options), [lost.message]);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    if (options.backend === 'webgpu') {
      throw new AttentionError('DEVICE_LOST', `${lost.message}, and no other came (${error.message})`, {
        cause: error,
      });
    }
    const { backend, simd, threads, reasons } = await loadWasm(options);
    backend.run = promised;
    const why = `${lost.message}, and no other came (${error.message})`;
    return { backend, info: { backend: 'wasm', simd, threads, reasons: [why, ...reasons] } };
  }
}

/** Calls on wasm of an instance whose calls have returned promises so far. @param {() => any} body @returns {any} */
function promised(body) {
  return new Promise((resolve) => resolve(body()));
}
