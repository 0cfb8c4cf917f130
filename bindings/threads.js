// Threads: whether this engine has them, for how many there are cores, and the JavaScript of the builds that use them.
import { isNode, isValid, nodeModule } from './engine.js';

/** @import { WasmModule } from './wasm.js' */

/** @returns {Promise<{ obstacle: string | null, cores: number }>} */
export async function look() {
  return hasThreads()
    ? { obstacle: null, cores: await coreCount() }
    : { obstacle: 'not supported by this engine', cores: 1 };
}

async function coreCount() {
  if (isNode()) return /** @type {typeof import('node:os')} */ (await nodeModule('os')).availableParallelism();
  return globalThis.navigator?.hardwareConcurrency ?? 1;
}

/** i32.atomic.load of a shared memory, which must also pass from one thread to another. */
function hasThreads() {
  try {
    new MessageChannel().port1.postMessage(new SharedArrayBuffer(1));
  } catch {
    return false;
  }
  const memory = [1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1];
  return isValid(...memory, 10, 11, 1, 9, 0, 0x41, 0, 0xfe, 16, 2, 0, 26, 11);
}

/** @typedef {Partial<WasmModule> & { threads: number, workerUrl: URL, instantiateWasm?: unknown }} Settings */

/**
 * @param {WebAssembly.Module} compiled @param {number} count of threads @param {URL} workerUrl
 * @returns {Promise<WasmModule>}
 */
export async function instantiate(compiled, count, workerUrl) {
  const { default: factory } = await import('../dist/attention.threads.js');
  /** The glue adds its names to this. @type {Settings} */
  const settings = { threads: count, workerUrl };
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
