// Models of attention-wasm/transformer that stay in the worker, as the page holds them.
import { refuse } from './errors.js';
import { parted } from './worker-calls.js';
import { WorkerCache, WorkerCacheSnapshot, WorkerObject } from './worker-objects.js';

/** @import { CaptureOptions, ForwardOptions, ForwardResult, GeneratedToken, GenerateOptions, LoadProgress, TransformerCacheOptions, TransformerInfo, TransformerOptions } from './transformer/types.js' */
/** @import { Float32Result, Integers, TensorLike } from './types.js' */
/** @import { WorkerAttention } from './worker.js' */
/** @import { WorkerClient } from './worker-client.js' */
/** @import { CallOptions, OnModel } from './worker-types.js' */

/** What a WorkerTransformerCache held when it was taken. @typedef {{ readonly layers: readonly WorkerCacheSnapshot[] }} WorkerTransformerSnapshot */
/** @typedef {TransformerOptions & { transfer?: boolean | null }} WorkerTransformerOptions */

/** Each instance's way to its worker; the entry fills it. @type {WeakMap<object, WorkerClient>} */
export const clients = new WeakMap();

/** The keys and values of a model in the worker. See TransformerCache. The length is that after the last call that is settled. */
export class WorkerTransformerCache extends WorkerCache {
  /** @returns {number} */
  get length() {
    return this.remote.state.length;
  }

  /** @param {number} n @param {CallOptions | null} [options] @returns {Promise<void>} */
  truncate(n, options) {
    return this.ask('TransformerCache.truncate', 'truncate', [n], options);
  }

  /** @param {CallOptions | null} [options] @returns {Promise<void>} */
  clear(options) {
    return this.ask('TransformerCache.clear', 'clear', [], options);
  }

  /** @param {CallOptions | null} [options] @returns {Promise<WorkerTransformerSnapshot>} */
  snapshot(options) {
    return this.ask('TransformerCache.snapshot', 'snapshot', [], options, WorkerCacheSnapshot);
  }

  /** @param {WorkerTransformerSnapshot} snapshot @param {CallOptions | null} [options] @returns {Promise<void>} */
  restore(snapshot, options) {
    return this.ask('TransformerCache.restore', 'restore', [snapshot], options);
  }
}

/** What comes of generate(). */
class WorkerStream extends WorkerObject {
  /**
   * @param {WorkerTransformerCache | null | undefined} cache goes along, so that its length comes back
   * @param {CallOptions} options
   * @returns {Promise<IteratorResult<GeneratedToken, void>>}
   */
  next(cache, options) {
    return this.ask('Transformer.generate', 'next', [cache], options);
  }
}

/**
 * A model in the worker. See Transformer: the same functions as promises, and generate() as the same stream, whose
 * tokens are computed in the worker.
 *
 * @example
 * const attention = await load({ threads: 1 });
 * const model = await WorkerTransformer.load(attention, { config, weights });
 * const tokens = [];
 * const signal = AbortSignal.timeout(60_000);
 * for await (const { token } of model.generate([1, 2, 3], { maxTokens: 4, signal })) tokens.push(token);
 * tokens.length; // → 4
 * attention.dispose();
 */
export class WorkerTransformer extends WorkerObject {
  /**
   * Brings a model into the worker's memory. Weights are copied there, unless `transfer` moves them.
   * @param {WorkerAttention} attention @param {WorkerTransformerOptions} options
   * @returns {Promise<WorkerTransformer>}
   * @throws {AttentionError} as Transformer.load
   */
  static async load(attention, options) {
    const fn = 'Transformer.load';
    const client = clients.get(attention);
    if (!client) return refuse('INVALID_OPTION', fn, 'attention must be what load() of this entry gave', attention);
    const { signal, onProgress, transfer, ...rest } = options ?? {};
    /** What it reports is of another kind than that of calls. @type {any} */
    const more = { signal, onProgress, transfer };
    return client.call(fn, null, 'transformer', [rest], more, WorkerTransformer);
  }

  /** Sizes of the model. @returns {Readonly<TransformerInfo>} */
  get info() {
    return this.remote.state.info;
  }

  /** Heads that are switched off, as [layer, head]. @returns {readonly (readonly [number, number])[]} */
  get disabledHeads() {
    return this.remote.state.disabledHeads;
  }

  /**
   * Switches off these heads, and no other.
   * @param {readonly (readonly [number, number])[]} pairs @param {CallOptions | null} [options]
   * @returns {Promise<void>}
   */
  disableHeads(pairs, options) {
    return this.ask('Transformer.disabledHeads', 'disableHeads', [pairs], options);
  }

  /** @param {TransformerCacheOptions & CallOptions} options @returns {Promise<WorkerTransformerCache>} */
  createCache(options) {
    const { own, rest } = parted(options);
    return this.ask('Transformer.createCache', 'createCache', [rest], own, WorkerTransformerCache);
  }

  /**
   * @param {Integers} tokens @param {OnModel<ForwardOptions> | null} [options]
   * @returns {Promise<ForwardResult>}
   */
  forward(tokens, options) {
    const { own, rest } = parted(options);
    return this.ask('Transformer.forward', 'forward', [tokens, rest], own);
  }

  /** @param {TensorLike} hidden @param {CallOptions | null} [options] @returns {Promise<Float32Result>} */
  logitLens(hidden, options) {
    return this.ask('Transformer.logitLens', 'logitLens', [hidden], options);
  }

  /**
   * @param {Integers} tokens @param {OnModel<GenerateOptions>} options
   * @returns {AsyncGenerator<GeneratedToken, void, undefined>}
   */
  async *generate(tokens, options) {
    const {
      own: { signal, onProgress, transfer },
      rest: { onToken, ...rest },
    } = parted(options);
    const from = [tokens, rest];
    /** @type {WorkerStream} */
    const stream = await this.ask('Transformer.generate', 'generate', from, { signal, transfer }, WorkerStream);
    try {
      for (;;) {
        const { value, done } = await stream.next(rest.cache, { signal, onProgress });
        if (done) return;
        onToken?.(/** @type {GeneratedToken} */ (value));
        yield/** @type {GeneratedToken} */ (value);
      }
    } finally {
      stream.dispose();
    }
  }
}
