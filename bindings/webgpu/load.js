// Brings the WebGPU backend up. Imported only where WebGPU is asked for.
import { AttentionError } from '../errors.js';
import { WebgpuBackend } from './backend.js';
import { Gpu, openGpu, Unavailable } from './gpu.js';

/** @import { Info, LoadOptions } from '../types.js' */
/** @import { WasmBackend } from '../wasm-backend.js' */

/** What runs calls, in the form of the wasm backend. @typedef {{ backend: WasmBackend, info: Omit<Info, 'version' | 'reasons'> }} Loaded */

/**
 * @param {LoadOptions} options checked
 * @returns {Promise<Loaded | { reason: string }>} the reason why there is no device
 * @throws {AttentionError} UNSUPPORTED where `backend` is 'webgpu' and there is no device
 */
export async function loadWebgpu({ backend, device }) {
  try {
    const gpu = device ? callersGpu(device) : await openGpu(backend === 'webgpu');
    const { adapter, features } = gpu;
    // The same calls with promises in place of values: what they return is for `await` on either.
    const runner = /** @type {WasmBackend} */ (/** @type {unknown} */ (new WebgpuBackend(gpu)));
    return { backend: runner, info: { backend: 'webgpu', adapter, features } };
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    if (backend === 'auto') return { reason: `webgpu: ${error.message}` };
    throw new AttentionError('UNSUPPORTED', `load: backend must be 'wasm' here (${error.message}), got 'webgpu'`, {
      cause: error,
    });
  }
}

/** @param {any} device */
const callersGpu = (device) => new Gpu(device, device.adapterInfo, false);
