// Which backend an instance works on, for the entries of the package beside index.js.
import { disposedError, refuse } from './errors.js';

/** @import { Context } from './check.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

/** @typedef {{ backend: WasmBackend, recover: (() => Promise<void>) | null }} Registered */

/** @type {WeakMap<object, Registered>} */
const instances = new WeakMap();

/** @param {object} instance @param {WasmBackend} backend @param {(() => Promise<void>) | null} recover brings another backend where this one's device is lost */
export function register(instance, backend, recover) {
  instances.set(instance, { backend, recover });
}

/** @param {string} fn @param {unknown} instance what load() returned @returns {Context & { backend: WasmBackend }} */
export function contextOf(fn, instance) {
  return { fn, backend: registered(fn, instance).backend };
}

/** The same where there may be another device to go on with. @param {string} fn @param {unknown} instance @returns {Promise<Context & { backend: WasmBackend }>} */
export async function livingContextOf(fn, instance) {
  const { backend, recover } = registered(fn, instance);
  if (backend.lost) await recover?.();
  return contextOf(fn, instance);
}

/** @param {string} fn @param {unknown} instance @returns {Registered} */
function registered(fn, instance) {
  const known = typeof instance === 'object' && instance !== null ? instances.get(instance) : undefined;
  if (!known) return refuse('INVALID_OPTION', fn, 'attention must be an instance that load() returned', instance);
  if (known.backend.disposed) {
    throw disposedError(fn, 'attention');
  }
  return known;
}
