// Models in a worker: what a page's WorkerTransformer calls. Imported when a page asks for the first one.
import { Transformer, TransformerCache } from './transformer.js';

/** @import { Attention } from './index.js' */
/** @import { ForwardOptions, GeneratedToken, GenerateOptions, TransformerOptions } from './transformer/types.js' */
/** @import { Integers, TensorLike } from './types.js' */

/** What comes of generate(), step by step. */
class Stream {
  #steps;

  /** @param {AsyncGenerator<GeneratedToken, void, undefined>} steps */
  constructor(steps) {
    this.#steps = steps;
  }

  next() {
    return this.#steps.next();
  }

  dispose() {
    this.#steps.return();
  }
}

export class HostedModel {
  #signal;

  /** @param {Transformer} model @param {AbortSignal} signal */
  constructor(model, signal) {
    this.model = model;
    this.#signal = signal;
  }

  /**
   * @param {Attention} attention @param {TransformerOptions} options
   * @param {{ signal: AbortSignal, onProgress: TransformerOptions['onProgress'] }} from the call that runs
   */
  static async load(attention, options, { signal, onProgress }) {
    return new HostedModel(await Transformer.load(attention, { ...options, signal, onProgress }), signal);
  }

  /** @param {import('./transformer/types.js').TransformerCacheOptions} options */
  createCache(options) {
    return this.model.createCache(options);
  }

  /** @param {Integers} tokens @param {ForwardOptions} options */
  forward(tokens, options) {
    return this.model.forward(tokens, options);
  }

  /** @param {Integers} tokens @param {GenerateOptions} options */
  generate(tokens, options) {
    return new Stream(this.model.generate(tokens, { ...options, signal: this.#signal }));
  }

  /** @param {TensorLike} hidden */
  logitLens(hidden) {
    return this.model.logitLens(hidden);
  }

  /** @param {Transformer['disabledHeads']} pairs */
  disableHeads(pairs) {
    this.model.disabledHeads = pairs;
  }

  dispose() {
    this.model.dispose();
  }
}

/** Objects that stay in the worker, and what the page shows of them without asking. @type {[new (...args: any) => any, (object: any) => object | null][]} */
export const kHosted = [
  [HostedModel, ({ model: { disposed, info, disabledHeads } }) => (disposed ? null : { info, disabledHeads })],
  [
    TransformerCache,
    (cache) => {
      if (cache.disposed) return null;
      const { length, capacity, dtype, bytes } = cache;
      return { length, capacity, dtype, bytes };
    },
  ],
  [Stream, () => null],
];
