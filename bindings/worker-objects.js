/// <reference lib="esnext.disposable" preserve="true" />
// What stays in the worker, as the page holds it.
import { hideWithoutDispose } from './tensor.js';
import { parted } from './worker-calls.js';

/** @import { AppendOptions, AttendOptions, AttentionResult, CacheDtype, Dtype, Float32Result, ForwardOptions, Integers, Result, TensorData, TensorLike } from './types.js' */
/** @import { Remote } from './worker-calls.js' */
/** @import { WorkerClient } from './worker-client.js' */
/** @import { CallOptions, InWorker, RemoteTensorLike } from './worker-types.js' */

/** Something in the memory of the worker. */
export class WorkerObject {
  /** @type {WorkerClient} */
  #client;

  /**
   * @hidden
   * @param {WorkerClient} client @param {Remote} remote
   */
  constructor(client, remote) {
    this.#client = client;
    /**
     * Where it is; for the package alone.
     * @hidden
     * @type {Remote}
     */
    this.remote = remote;
  }

  /** True after dispose(), of this or of the instance, and when its worker had to be ended. */
  get disposed() {
    return !this.#client.holds(this.remote);
  }

  /**
   * For the package alone.
   * @protected
   * @param {string} fn @param {string} method @param {any[]} args @param {CallOptions | null} [options] @param {any} [Type]
   */
  ask(fn, method, args, options, Type) {
    return this.#client.call(fn, this.remote, method, args, options ?? {}, Type);
  }

  /** Gives the memory back. Twice is harmless; any other use after it throws DISPOSED. */
  dispose() {
    this.#client.release(this.remote);
  }

  /** `using` disposes by this name. */
  [Symbol.dispose]() {
    this.dispose();
  }
}

hideWithoutDispose(WorkerObject);

/** A tensor in the worker's memory, made by `tensor()` of a WorkerAttention. */
export class WorkerTensor extends WorkerObject {
  /** @returns {readonly number[]} */
  get shape() {
    return this.remote.state.shape;
  }

  /** @returns {Dtype} */
  get dtype() {
    return this.remote.state.dtype;
  }

  /** How many elements there are. @returns {number} */
  get count() {
    return this.remote.state.count;
  }

  /**
   * A copy of the elements.
   * @param {CallOptions | null} [options]
   * @returns {Promise<TensorData>}
   */
  read(options) {
    return this.ask('WorkerTensor.read', 'read', [], options);
  }
}

/** A packed weight in the worker, made by `packLinear()` of a WorkerAttention. */
export class WorkerPackedLinear extends WorkerObject {
  /** [N, K]. @returns {readonly [number, number]} */
  get shape() {
    return this.remote.state.shape;
  }
}

/** What a cache held; of that very cache. */
export class WorkerCacheSnapshot extends WorkerObject {}

/** A multi-head attention layer in the worker. See MultiHeadAttention. */
export class WorkerMultiHeadAttention extends WorkerObject {
  /**
   * @param {Readonly<Record<string, TensorLike | WorkerTensor>>} dict @param {CallOptions | null} [options]
   * @returns {Promise<void>}
   */
  loadStateDict(dict, options) {
    return this.ask('MultiHeadAttention.loadStateDict', 'loadStateDict', [dict], options);
  }

  /** @param {CallOptions | null} [options] @returns {Promise<Record<string, TensorLike>>} */
  stateDict(options) {
    return this.ask('MultiHeadAttention.stateDict', 'stateDict', [], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} x @param {InWorker<ForwardOptions> | null} [options]
   * @returns {Promise<{ output: Result<T>, weights?: Float32Result }>}
   */
  forward(x, options) {
    const { own, rest } = parted(options);
    return this.ask('MultiHeadAttention.forward', 'forward', [x, rest], own);
  }
}

/** What caches of either kind tell. */
export class WorkerCache extends WorkerObject {
  /** @returns {number} */
  get bytes() {
    return this.remote.state.bytes;
  }

  /** @returns {number} */
  get capacity() {
    return this.remote.state.capacity;
  }

  /** @returns {CacheDtype} */
  get dtype() {
    return this.remote.state.dtype;
  }
}

/**
 * A key/value cache in the worker. See KeyValueCache. Lengths and positions are those after the last call that is
 * settled.
 */
export class WorkerKeyValueCache extends WorkerCache {
  /** @type {Int32Array} */
  get lengths() {
    return this.remote.state.lengths.slice();
  }

  get length() {
    return Math.max(...this.lengths);
  }

  /** @type {Int32Array} */
  get positions() {
    return this.remote.state.positions.slice();
  }

  get position() {
    return Math.max(...this.positions);
  }

  /**
   * @param {RemoteTensorLike} k @param {RemoteTensorLike} v @param {AppendOptions & CallOptions | null} [options]
   * @returns {Promise<void>}
   */
  append(k, v, options) {
    const { own, rest } = parted(options);
    return this.ask('KeyValueCache.append', 'append', [k, v, rest], own);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} q @param {InWorker<AttendOptions> | null} [options]
   * @returns {Promise<AttentionResult<T>>}
   */
  attend(q, options) {
    const { own, rest } = parted(options);
    return this.ask('KeyValueCache.attend', 'attend', [q, rest], own);
  }

  /** @param {number | Integers} n @param {CallOptions | null} [options] @returns {Promise<void>} */
  truncate(n, options) {
    return this.ask('KeyValueCache.truncate', 'truncate', [n], options);
  }

  /** @param {CallOptions | null} [options] @returns {Promise<void>} */
  clear(options) {
    return this.ask('KeyValueCache.clear', 'clear', [], options);
  }

  /** @param {CallOptions | null} [options] @returns {Promise<WorkerCacheSnapshot>} */
  snapshot(options) {
    return this.ask('KeyValueCache.snapshot', 'snapshot', [], options, WorkerCacheSnapshot);
  }

  /** @param {WorkerCacheSnapshot} snapshot @param {CallOptions | null} [options] @returns {Promise<void>} */
  restore(snapshot, options) {
    return this.ask('KeyValueCache.restore', 'restore', [snapshot], options);
  }
}
