// Which backend the calls of an instance go to: the one that came up, or another once its device is lost.
import { disposedError, refuse } from './errors.js';

/** @import { Context } from './check.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

/** @typedef {Context & { backend: WasmBackend }} BackendContext */

/** The calls of one instance. */
export class Calls {
  #again;
  /** @type {Promise<void> | null} */
  #recovery = null;

  /**
   * @param {WasmBackend} backend
   * @param {() => Promise<WasmBackend>} again brings another one where this one's device is lost
   */
  constructor(backend, again) {
    this.backend = backend;
    this.#again = again;
  }

  /**
   * One call, made by `body`: at once on wasm; on webgpu recorded at once, and a promise.
   * @template R
   * @param {string} fn @param {(context: BackendContext) => R} body
   * @returns {R}
   */
  run(fn, body) {
    const { backend } = this;
    if (backend.lost && !backend.disposed) {
      return /** @type {any} */ (this.recover().then(() => this.run(fn, body)));
    }
    return backend.run(() => body(this.context(fn)));
  }

  /** After a loss: all calls that wait for something to go on with wait for the same. */
  recover() {
    this.#recovery ??= this.#again()
      .then((backend) => {
        if (this.backend.disposed) backend.dispose();
        this.backend = backend;
      })
      .finally(() => {
        this.#recovery = null;
      });
    return this.#recovery;
  }

  /** @param {string} fn @param {string} [what] the caller's name for the instance @returns {BackendContext} */
  context(fn, what = 'the instance') {
    const { backend } = this;
    if (backend.disposed) {
      throw disposedError(fn, what);
    }
    return { fn, backend };
  }
}

/** For the entries of the package beside index.js. @type {WeakMap<object, Calls>} */
const instances = new WeakMap();

/** @param {object} instance @param {Calls} calls */
export function register(instance, calls) {
  instances.set(instance, calls);
}

/** @param {string} fn @param {unknown} instance what load() returned @returns {BackendContext} */
export function contextOf(fn, instance) {
  return registered(fn, instance).context(fn, 'attention');
}

/** The same where there may be another device to go on with. @param {string} fn @param {unknown} instance @returns {Promise<BackendContext>} */
export async function livingContextOf(fn, instance) {
  const calls = registered(fn, instance);
  if (calls.context(fn, 'attention').backend.lost) await calls.recover();
  return contextOf(fn, instance);
}

/** @param {string} fn @param {unknown} instance @returns {Calls} */
function registered(fn, instance) {
  const known = typeof instance === 'object' && instance !== null ? instances.get(instance) : undefined;
  return known ?? refuse('INVALID_OPTION', fn, 'attention must be an instance that load() returned', instance);
}
