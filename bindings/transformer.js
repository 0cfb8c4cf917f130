// A decoder: a language model of LLaMA's or GPT-2's kind, from its config.json and its weights, on either backend.
import { integer, integers, operand, optionsOf } from './check.js';
import { AttentionError, refuse } from './errors.js';
import { contextOf, livingContextOf } from './instances.js';
import { KeyValueCache } from './key-value-cache.js';
import { RopeTables } from './rope-tables.js';
import { hideWithoutDispose } from './tensor.js';
import { TransformerCache } from './transformer/cache.js';
import { modelConfig } from './transformer/config.js';
import { describeForward } from './transformer/describe-forward.js';
import { Pass } from './transformer/forward.js';
import { describeGenerate, generated } from './transformer/generate.js';
import { lens } from './transformer/lens.js';
import { modelSlots } from './transformer/names.js';
import { pacer, signalOf, throwIfAborted } from './transformer/pace.js';
import { stepsOf } from './transformer/steps.js';
import { checkWeights, Packer } from './transformer/weights.js';

export * from './transformer/types.js'; // types only
export { TransformerCache };

/** @typedef {import('./transformer/cache.js').TransformerSnapshot} TransformerSnapshot */

/** @import { Context } from './check.js' */
/** @import { Attention } from './index.js' */
/** @import { AttentionOn } from './promises.js' */
/** @import { Resident, Tensor } from './tensor.js' */
/** @import { Model } from './transformer/forward.js' */
/** @import { ForwardOptions, ForwardResult, GenerateOptions, GeneratedToken, TransformerCacheOptions, TransformerInfo, TransformerOf, TransformerOptions } from './transformer/types.js' */
/** @import { Float32Result, Integers, TensorLike } from './types.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

const kLoadNames = ['config', 'weights', 'onProgress', 'signal'];
const kCacheNames = ['capacity', 'dtype'];
const kForwardNames = ['cache', 'logits', 'capture', 'attention'];

/**
 * A model in the memory of an instance, made by `Transformer.load()`.
 *
 * @example
 * const model = await Transformer.load(attention, { config, weights });
 * const cache = model.createCache({ capacity: 64 });
 * const settings = { maxTokens: 4, temperature: 0.8, topP: 0.95, seed: 7, cache };
 * const tokens = [];
 * for await (const { token } of model.generate([1, 2, 3], settings)) tokens.push(token);
 * [tokens.length, cache.length]; // → [4, 6]
 * const { attention: captured } = model.forward([5], { cache, capture: { attention: true } });
 * captured[0].weights.shape; // → [2, 1, 7], heads, rows, keys
 * model.dispose();
 */
export class Transformer {
  #model;
  /** @type {Resident[]} */
  #residents;
  #disposed = false;
  /** Heads that are switched off, layer by layer. @type {number[][]} */
  #disabled;

  /**
   * @hidden
   * Made by load().
   * @param {Model} model @param {Resident[]} residents @param {number} parameters
   */
  constructor(model, residents, parameters) {
    const { config } = model;
    this.#model = model;
    this.#residents = residents;
    this.#disabled = Array.from({ length: config.layers }, () => []);
    /** Sizes of the model. @type {Readonly<TransformerInfo>} */
    this.info = Object.freeze({
      modelType: config.modelType,
      ...{ vocabulary: config.vocabulary, width: config.width, layers: config.layers, inner: config.inner },
      ...{ heads: config.heads, kvHeads: config.kvHeads, headDim: config.headDim },
      trainedLength: config.trainedLength,
      positions: config.positions || null,
      attention: Object.freeze(
        config.attention.map(({ scale, window }) =>
          Object.freeze({ scale, windowSize: Object.freeze(/** @type {const} */ ([window ? window - 1 : -1, -1])) }),
        ),
      ),
      parameters,
    });
  }

  /**
   * Brings a model into memory: its weights are checked against the config, then laid out once, as float32.
   *
   * Families (`model_type`): llama, mistral, qwen2, qwen3 and gpt2, with Hugging Face's tensor names, with or without
   * `model.` or `transformer.` before them. Tensors that checkpoints carry along without need are passed over:
   * `rotary_emb.inv_freq`, GPT-2's `attn.bias` and `attn.masked_bias` (masks), and `lm_head.weight` where the config
   * ties it to the embedding.
   *
   * On an instance of backend 'webgpu' weights, caches and what passes between the layers are on the GPU; what a pass
   * returns is read back, and its methods give promises: `await` serves both.
   * @template {Attention | AttentionOn<'webgpu'> | AttentionOn<'auto'>} A
   * @param {A} attention
   * @param {TransformerOptions} options
   * @returns {Promise<TransformerOf<A>>}
   * @throws {AttentionError} INVALID_OPTION: a wrong config, a missing or surplus tensor, by name; INVALID_SHAPE: a
   *   tensor of the wrong size; UNSUPPORTED: another kind of model; OUT_OF_MEMORY, ABORTED, DISPOSED
   */
  static async load(attention, options) {
    const context = await livingContextOf('Transformer.load', attention);
    const { fn, backend } = context;
    const given = optionsOf(fn, options, kLoadNames);
    const signal = signalOf(fn, given.signal);
    const { onProgress } = given;
    if (onProgress !== undefined && onProgress !== null && typeof onProgress !== 'function') {
      refuse('INVALID_OPTION', fn, 'onProgress must be a function', onProgress);
    }
    throwIfAborted(fn, signal);
    const config = modelConfig(fn, given.config);
    const slots = modelSlots(config);
    const steps = stepsOf(backend);
    const packer = new Packer(context, steps, checkWeights(context, config, slots, given.weights));
    const total = packer.totalBytes;
    const pause = pacer();
    let loaded = 0;
    try {
      await packer.fetch();
      const pack = packer.pack(slots);
      for (;;) {
        throwIfAborted(fn, signal);
        contextOf(fn, attention);
        const { done, value } = await backend.run(() => pack.next());
        if (done) {
          const model = { backend, config, steps, parts: value, tables: new RopeTables() };
          return /** @type {any} */ (new Transformer(model, packer.residents, packer.parameters));
        }
        loaded += value.bytes;
        onProgress?.({ loaded, total, name: value.name });
        await pause();
      }
    } catch (error) {
      for (const resident of packer.residents) resident.dispose();
      throw error;
    }
  }

  /** @param {string} method @returns {Context & { backend: WasmBackend }} */
  #context(method) {
    const fn = `Transformer.${method}`;
    const { backend } = this.#model;
    if (this.#disposed || backend.disposed) {
      throw new AttentionError('DISPOSED', `${fn}: the model must not be used after dispose(), got a disposed one`);
    }
    return { fn, backend };
  }

  /**
   * A cache for the keys and values of all layers.
   * @param {TransformerCacheOptions} options
   * @returns {TransformerCache}
   * @throws {AttentionError} INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  createCache(options) {
    return this.#model.backend.run(() => this.#cache(this.#context('createCache'), options));
  }

  /** @param {Context & { backend: WasmBackend }} context @param {TransformerCacheOptions} options */
  #cache(context, options) {
    const { capacity, dtype } = optionsOf(context.fn, options, kCacheNames);
    const { layers, kvHeads, headDim, positions } = this.#model.config;
    if (positions > 0) integer(context.fn, 'capacity', capacity, 1, positions);
    /** @type {KeyValueCache[]} */
    const caches = [];
    try {
      for (let l = 0; l < layers; ++l) {
        caches.push(new KeyValueCache(context, { numKvHeads: kvHeads, headDim, capacity, dtype }));
      }
    } catch (error) {
      for (const cache of caches) cache.dispose();
      throw error;
    }
    return new TransformerCache(this, caches, (body) => context.backend.run(body));
  }

  /**
   * Reads tokens: those after what the cache holds, which then holds them too; or from the beginning.
   *
   * What is captured changes no bit of the logits. `attention` asks for another attention than the model was trained
   * with, in all layers: without the causal mask or the rotation of RoPE, sharper or flatter, within a window.
   * @param {Integers} tokens at least one
   * @param {ForwardOptions | null} [options]
   * @returns {ForwardResult}
   * @throws {AttentionError} INVALID_OPTION: a token out of range; CAPACITY: no room in the cache, or among the learned
   *   positions; INVALID_SHAPE, OUT_OF_MEMORY, DISPOSED. The cache is then as it was
   */
  forward(tokens, options) {
    /** @type {Pass | null} */
    let pass = null;
    return this.#model.backend.run(
      () => {
        const context = this.#context('forward');
        const given = optionsOf(context.fn, options, kForwardNames);
        const call = describeForward(context, this.#model.config, this, tokens, given);
        pass = new Pass(this.#model, context, call, this.#disabled);
        return pass.run();
      },
      () => pass?.undo(),
    );
  }

  /**
   * Reads tokens and goes on writing: a stream of the tokens that come, each with the logits that it was chosen by.
   *
   * The cache, if one is given, holds the tokens and all that came but the last, when the stream ends. To go on, give it
   * again with that last token.
   * @param {Integers} tokens at least one
   * @param {GenerateOptions} options
   * @returns {AsyncGenerator<GeneratedToken, void, undefined>}
   * @throws {AttentionError} as forward(), and ABORTED
   */
  generate(tokens, options) {
    const { fn } = this.#context('generate');
    const call = describeGenerate(fn, options, this.#model.config);
    return generated(fn, this, integers(fn, 'tokens', tokens, -1, 0, this.#model.config.vocabulary - 1), call);
  }

  /**
   * Heads that are switched off, as [layer, head]: what they say does not reach the output projection.
   * @returns {readonly (readonly [number, number])[]}
   */
  get disabledHeads() {
    return this.#disabled.flatMap((heads, layer) => heads.map((head) => /** @type {const} */ ([layer, head])));
  }

  set disabledHeads(pairs) {
    const { fn } = this.#context('disabledHeads');
    const { layers, heads } = this.#model.config;
    if (!Array.isArray(pairs)) refuse('INVALID_OPTION', fn, 'heads must be a list of [layer, head]', pairs);
    /** @type {Set<number>[]} */
    const disabled = Array.from({ length: layers }, () => new Set());
    for (const pair of pairs) {
      if (!Array.isArray(pair) || pair.length !== 2) {
        refuse('INVALID_OPTION', fn, 'heads must be a list of [layer, head]', pair);
      }
      disabled[integer(fn, 'layer', pair[0], 0, layers - 1)].add(integer(fn, 'head', pair[1], 0, heads - 1));
    }
    this.#disabled = disabled.map((numbers) => [...numbers].sort((a, b) => a - b));
  }

  /**
   * The logit lens: the final norm and the last projection, applied to hidden states of any layer. Of the last one they
   * are the logits themselves.
   * @param {TensorLike | Tensor} hidden [..., width], as forward() captures them
   * @returns {Float32Result} [..., vocabulary]
   * @throws {AttentionError} INVALID_SHAPE, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  logitLens(hidden) {
    return this.#model.backend.run(() => {
      const context = this.#context('logitLens');
      const { width } = this.#model.config;
      const given = operand(context, 'hidden', hidden);
      if (given.shape[given.shape.length - 1] !== width) {
        refuse('INVALID_SHAPE', context.fn, `hidden must have a last axis of the width, ${width}`, given.shape);
      }
      return lens(this.#model, context, given);
    });
  }

  get disposed() {
    return this.#disposed || this.#model.backend.disposed;
  }

  /** Gives the memory of the weights back. Twice is harmless; any other use after it throws DISPOSED. */
  dispose() {
    this.#disposed = true;
    for (const resident of this.#residents) resident.dispose();
    this.#residents = [];
  }

  /** `using` disposes by this name. */
  [Symbol.dispose]() {
    this.dispose();
  }
}

hideWithoutDispose(Transformer);
