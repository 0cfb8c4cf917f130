// The key/value caches of all layers of a model, as one.
import { refuse } from '../errors.js';
import { KeyValueCache } from '../key-value-cache.js';
import { hideWithoutDispose } from '../tensor.js';

/** @import { Context } from '../check.js' */
/** @import { CacheState } from '../check-cache.js' */
/** @import { CacheSnapshot } from '../key-value-cache.js' */
/** @import { CacheDtype } from '../types.js' */

/** What a TransformerCache held when it was taken. @typedef {{ readonly layers: readonly CacheSnapshot[] }} TransformerSnapshot */

/**
 * Keys and values of the tokens that a model has read, made by `model.createCache()`. forward() and generate() append
 * to it; a cache serves one model.
 */
export class TransformerCache {
  #model;
  #layers;
  #run;

  /**
   * @hidden
   * @param {object} model @param {KeyValueCache[]} layers @param {(body: () => any) => any} run that of the backend
   */
  constructor(model, layers, run) {
    this.#model = model;
    this.#layers = layers;
    this.#run = run;
  }

  /** Tokens that it holds. @returns {number} */
  get length() {
    return this.#layers[0].length;
  }

  /** Tokens that it has room for. @returns {number} */
  get capacity() {
    return this.#layers[0].capacity;
  }

  /** @returns {CacheDtype} */
  get dtype() {
    return this.#layers[0].dtype;
  }

  /** Bytes of all keys and values at full capacity. @returns {number} */
  get bytes() {
    return this.#layers.reduce((sum, layer) => sum + layer.bytes, 0);
  }

  get disposed() {
    return this.#layers[0].disposed;
  }

  /**
   * Keeps the first `n` tokens, as if those after them had never come: to read another text with the same beginning.
   * @param {number} n
   * @throws {AttentionError} INVALID_OPTION: more than there are; DISPOSED
   */
  truncate(n) {
    return whenAll(
      this.#layers.map((layer) => layer.truncate(n)),
      () => {},
    );
  }

  /** Forgets all tokens; the memory stays. */
  clear() {
    return whenAll(
      this.#layers.map((layer) => layer.clear()),
      () => {},
    );
  }

  /**
   * A copy of what is held, outside of the instance's memory.
   * @returns {TransformerSnapshot}
   * @throws {AttentionError} OUT_OF_MEMORY, DISPOSED
   */
  snapshot() {
    return whenAll(
      this.#layers.map((layer) => layer.snapshot()),
      (layers) => Object.freeze({ layers: Object.freeze(layers) }),
    );
  }

  /**
   * Brings back what was held at a snapshot, as often as wanted.
   * @param {TransformerSnapshot} snapshot of this very cache
   * @throws {AttentionError} INVALID_OPTION: of another one; DISPOSED
   */
  restore(snapshot) {
    const parts = snapshot?.layers;
    if (!Array.isArray(parts) || parts.length !== this.#layers.length) {
      return this.#run(() =>
        refuse('INVALID_OPTION', 'TransformerCache.restore', 'snapshot must be one of this cache', snapshot),
      );
    }
    return whenAll(
      this.#layers.map((layer, l) => layer.restore(parts[l])),
      () => {},
    );
  }

  /** Gives the memory back. Twice is harmless; any other use after it throws DISPOSED. */
  dispose() {
    for (const layer of this.#layers) layer.dispose();
  }

  /** `using` disposes by this name. */
  [Symbol.dispose]() {
    this.dispose();
  }

  /**
   * @hidden
   * The states of its layers, for the model that it belongs to.
   * @param {Context} context @param {unknown} cache @param {object} model
   * @returns {CacheState[]}
   */
  static statesOf(context, cache, model) {
    if (!(cache instanceof TransformerCache) || cache.#model !== model) {
      return refuse('INVALID_OPTION', context.fn, 'cache must be one that createCache() of this model made', cache);
    }
    return cache.#layers.map((layer) => KeyValueCache.stateOf(layer, context));
  }
}

hideWithoutDispose(TransformerCache);

/**
 * What `make` makes of the results of all layers: at once on wasm, a promise where they are promises.
 * @template T, R
 * @param {T[]} results @param {(results: T[]) => R} make
 * @returns {R}
 */
function whenAll(results, make) {
  if (!(results[0] instanceof Promise)) return make(results);
  return /** @type {any} */ (Promise.all(results).then(make));
}
