// Which backend an instance works on, for the entries of the package beside index.js.
import { disposedError, refuse } from './errors.js';

/** @import { Context } from './check.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

/** @type {WeakMap<object, WasmBackend>} */
const backends = new WeakMap();

/** @param {object} instance @param {WasmBackend} backend */
export function register(instance, backend) {
  backends.set(instance, backend);
}

/** @param {string} fn @param {unknown} instance what load() returned @returns {Context & { backend: WasmBackend }} */
export function contextOf(fn, instance) {
  const backend = typeof instance === 'object' && instance !== null ? backends.get(instance) : undefined;
  if (!backend) return refuse('INVALID_OPTION', fn, 'attention must be an instance that load() returned', instance);
  if (backend.disposed) {
    throw disposedError(fn, 'attention');
  }
  if (backend.kind !== 'wasm') refuse('UNSUPPORTED', fn, `attention must be loaded with backend 'wasm'`, backend.kind);
  return { fn, backend };
}
