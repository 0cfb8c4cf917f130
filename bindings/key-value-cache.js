// Keys and values of the tokens so far, kept in the memory of the instance, in one of six types.
import { cacheConfig, describeAppend, describeAttend, largest, lengthsHeld, truncated } from './check-cache.js';
import { disposedError, refuse } from './errors.js';
import { hideWithoutDispose, Resident } from './tensor.js';

/** @import { Context } from './check.js' */
/** @import { CacheState, Held } from './check-cache.js' */
/** @import { Tensor } from './tensor.js' */
/** @import { AppendOptions, AttendOptions, AttentionResult, CacheDtype, Integers, KeyValueCacheOptions, TensorData, TensorLike } from './types.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

/** @typedef {Context & { backend: WasmBackend }} BackendContext */

/**
 * What a cache held when it was taken; a copy, for restore() of the same cache. Nothing has to be disposed of.
 */
export class CacheSnapshot {
  #cache;
  #held;
  #bytes;

  /**
   * @hidden
   * @param {KeyValueCache} cache @param {Held} held @param {Uint8Array} bytes
   */
  constructor(cache, held, bytes) {
    this.#cache = cache;
    this.#held = held;
    this.#bytes = bytes;
  }

  /**
   * @hidden
   * @param {string} fn @param {unknown} snapshot @param {KeyValueCache} cache
   */
  static contents(fn, snapshot, cache) {
    if (!(snapshot instanceof CacheSnapshot) || snapshot.#cache !== cache) {
      refuse('INVALID_OPTION', fn, 'snapshot must be one of this cache', snapshot);
    }
    return { held: snapshot.#held, bytes: snapshot.#bytes };
  }
}

/**
 * A key/value cache for decoding, made by `attention.keyValueCache()`.
 *
 * Without `window` it takes `capacity` tokens and then throws CAPACITY. With `window` it goes round: it always holds what
 * the next token may see (the last `window − 1` tokens and the first `sinkTokens`) and, as far as the capacity reaches,
 * tokens before those, for rows that come later than their token and for truncate().
 */
export class KeyValueCache extends Resident {
  #backend;
  /** @type {CacheState} */
  #state;

  /**
   * @hidden
   * @param {BackendContext} context @param {KeyValueCacheOptions} options
   */
  constructor(context, options) {
    const config = cacheConfig(context, options);
    const storage = context.backend.cache(context.fn, config);
    super(storage);
    this.#backend = context.backend;
    this.#state = { config, storage, held: { positions: new Int32Array(config.B), evicted: new Int32Array(config.B) } };
  }

  /** @param {string} method @returns {BackendContext} */
  #context(method) {
    const fn = `KeyValueCache.${method}`;
    if (this.disposed) {
      throw disposedError(fn, 'the cache');
    }
    return { fn, backend: this.#backend };
  }

  /**
   * Appends tokens to every item. All or nothing: after an error the cache is as it was.
   *
   * A cache with a window takes at most capacity − sinkTokens − window + 1 tokens at once when it goes round, so that
   * the first of them still finds its whole window; and as many as fit before that.
   * @param {TensorLike | Tensor} k [B,Hkv,T,D], or [Hkv,T,D] or [T,D] where the axes before are 1
   * @param {TensorLike | Tensor} v [B,Hkv,T,Dv]
   * @param {AppendOptions | null} [options]
   * @throws {AttentionError} CAPACITY: no room; INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  append(k, v, options) {
    const before = this.#state.held;
    let after = before;
    return this.#backend.run(
      () => {
        const call = describeAppend(this.#context('append'), this.#state, k, v, options);
        this.#backend.append(call);
        after = this.#state.held = call.next;
      },
      // Calls that came in between have counted on these tokens: then there is nothing to go back to.
      () => {
        if (this.#state.held === after) this.#state.held = before;
      },
    );
  }

  /**
   * Attention over the tokens that are held, in the order of time.
   *
   * The rows of q are the newest tokens, causal, unless `isCausal` or `queryOffset` say otherwise: row i is key
   * length − Tq + i. Keys are numbered as they are held, also for `attnMask`, `queryOffset` and the weights. A cache
   * with a window hides what lies before a row's own window, whatever it holds.
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} q [B,H,Tq,D] (or rank 3 or 2 as in append), H a multiple of Hkv
   * @param {AttendOptions | null} [options]
   * @returns {AttentionResult<T>}
   * @throws {AttentionError} CAPACITY: a row whose window is no longer held; INVALID_SHAPE, INVALID_OPTION,
   *   INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  attend(q, options) {
    return this.#backend.run(() => {
      const call = describeAttend(this.#context('attend'), this.#state, q, options);
      const { output, weights, lse } = this.#backend.attention(call);
      return /** @type {AttentionResult<T>} */ ({ output, ...(weights && { weights }), ...(lse && { lse }) });
    });
  }

  /** Tokens that each item holds: all, or those that a ring has not let go. A copy. */
  get lengths() {
    this.#context('lengths');
    return lengthsHeld(this.#state.held);
  }

  /** The largest of `lengths`. */
  get length() {
    return largest(this.lengths);
  }

  /** Tokens ever appended to each item and not taken back: the position of its next token, for RoPE. A copy. */
  get positions() {
    this.#context('positions');
    return this.#state.held.positions.slice();
  }

  /** The largest of `positions`. */
  get position() {
    return largest(this.positions);
  }

  /** Bytes of all keys and values at full capacity, and of the scales of int8. */
  get bytes() {
    this.#context('bytes');
    return this.#state.storage.bytes;
  }

  /** @returns {number} */
  get capacity() {
    return this.#state.config.capacity;
  }

  /** @returns {CacheDtype} */
  get dtype() {
    return this.#state.config.dtype;
  }

  /**
   * Keeps the first `n` of the tokens held, as if those after them had never come. A ring that has let tokens go can
   * only go back to sinkTokens + window − 1 tokens or more, or into the kept first tokens.
   * @param {number | Integers} n for all items, or for each
   * @throws {AttentionError} INVALID_OPTION: more than there are; CAPACITY: a ring let go what would be needed; DISPOSED
   */
  truncate(n) {
    return this.#backend.run(() => {
      const { fn } = this.#context('truncate');
      this.#state.held = truncated(fn, this.#state, n);
    });
  }

  /** Forgets all tokens; the memory stays. */
  clear() {
    return this.#backend.run(() => {
      this.#context('clear');
      const { B } = this.#state.config;
      this.#state.held = { positions: new Int32Array(B), evicted: new Int32Array(B) };
    });
  }

  /**
   * A copy of what is held, outside of the instance's memory.
   * @returns {CacheSnapshot}
   * @throws {AttentionError} OUT_OF_MEMORY, DISPOSED
   */
  snapshot() {
    return this.#backend.run(() => {
      const { fn } = this.#context('snapshot');
      const { held } = this.#state;
      return new CacheSnapshot(this, held, this.#backend.readCache(fn, this.#state));
    });
  }

  /**
   * Brings back what was held at a snapshot, as often as wanted.
   * @param {CacheSnapshot} snapshot of this very cache
   * @throws {AttentionError} INVALID_OPTION: of another one; DISPOSED
   */
  restore(snapshot) {
    return this.#backend.run(() => {
      const { held, bytes } = CacheSnapshot.contents(this.#context('restore').fn, snapshot, this);
      this.#backend.writeCache(this.#state, held, bytes);
      this.#state.held = held;
    });
  }

  /**
   * @hidden
   * Its state, for a layer of the same instance.
   * @param {KeyValueCache} cache @param {Context} context
   */
  static stateOf(cache, { backend, fn }) {
    Resident.storageOf(cache, backend, fn, 'cache');
    return cache.#state;
  }
}

hideWithoutDispose(KeyValueCache);
