// attention-wasm/worker: the functions of the package as promises, computed in a worker.
import { isAbsent, optionsOf } from './check.js';
import { checkLoad } from './check-load.js';
import { AttentionError, errorCodes, refuse } from './errors.js';
import { ropeFrequencies } from './rope-frequencies.js';
import { hideWithoutDispose } from './tensor.js';
import { parted } from './worker-calls.js';
import { WorkerClient } from './worker-client.js';
import {
  WorkerCacheSnapshot,
  WorkerKeyValueCache,
  WorkerMultiHeadAttention,
  WorkerPackedLinear,
  WorkerTensor,
} from './worker-objects.js';
import { clients, WorkerTransformer, WorkerTransformerCache } from './worker-transformer.js';

export * from './types.js'; // types only
export * from './worker-types.js'; // types only
export {
  AttentionError,
  errorCodes,
  ropeFrequencies,
  WorkerCacheSnapshot,
  WorkerKeyValueCache,
  WorkerMultiHeadAttention,
  WorkerPackedLinear,
  WorkerTensor,
  WorkerTransformer,
  WorkerTransformerCache,
};

/** @typedef {import('./worker-transformer.js').WorkerTransformerOptions} WorkerTransformerOptions */
/** @typedef {import('./worker-transformer.js').WorkerTransformerSnapshot} WorkerTransformerSnapshot */

/** @import { AttentionOptions, AttentionResult, Capabilities, Dtype, Float32Result, GeluOptions, Info, KeyValueCacheOptions, LayerNormOptions, LoadOptions, MergeOptions, MultiHeadAttentionOptions, OutOption, Result, RmsNormOptions, RopeOptions, RopeTableOptions, SiluOptions, TensorData, VarlenOptions, VarlenResult, Vector } from './types.js' */
/** @import { CallOptions, InWorker, RemoteTensorLike, WorkerLoadOptions } from './worker-types.js' */

const kOwn = ['backend', 'simd', 'threads', 'wasmUrl', 'wasmBinary', 'createWorker', 'signal'];

/**
 * Starts a worker with an instance of the package in it. A script doesn't wait for an idle worker at its end.
 *
 * @example
 * const attention = await load({ threads: 1 });
 * const x = { data: new Float32Array(8 * 64).fill(1), shape: [1, 1, 8, 64] };
 * const options = { isCausal: true, signal: AbortSignal.timeout(60_000), onProgress: ({ done, total }) => done / total };
 * const { output } = await attention.scaledDotProductAttention(x, x, x, options);
 * output.data[0]; // → 1
 * attention.dispose();
 * @param {WorkerLoadOptions | null} [options]
 * @returns {Promise<WorkerAttention>}
 * @throws {AttentionError} INVALID_OPTION, UNSUPPORTED; LOAD_FAILED: also where the worker doesn't start; ABORTED
 */
export async function load(options) {
  const { createWorker, signal, ...rest } = optionsOf('load', options, kOwn);
  if (!isAbsent(createWorker) && typeof createWorker !== 'function') {
    refuse('INVALID_OPTION', 'load', 'createWorker must be a function', createWorker);
  }
  const given = checkLoad(rest);
  const client = new WorkerClient({ ...given, wasmUrl: absolute(given.wasmUrl) }, createWorker ?? null);
  try {
    const { info } = await client.load(signal ?? null);
    return new WorkerAttention(client, info);
  } catch (error) {
    client.dispose();
    throw error;
  }
}

/** As the page understands it: the worker's own address is another. @param {string | URL | null | undefined} url */
function absolute(url) {
  if (isAbsent(url)) return null;
  const base = globalThis.document?.baseURI ?? globalThis.location?.href;
  return base === undefined ? String(url) : new URL(url, base).href;
}

/**
 * An instance in a worker: the functions of Attention, each of which gives a promise, one after the other.
 *
 * Arguments and results are as those of Attention, with objects of this instance in place of resident ones. The last
 * argument of each, the options, takes `signal`, `onProgress` and `transfer` besides.
 */
export class WorkerAttention {
  #client;

  /**
   * @hidden
   * Made by load(). @param {WorkerClient} client @param {Info} info
   */
  constructor(client, info) {
    this.#client = client;
    clients.set(this, client);
    /** What came up in the worker, and why not better. @type {Readonly<Info>} */
    this.info = Object.freeze(info);
    client.onInfo = (news) => {
      this.info = Object.freeze(news);
    };
  }

  /** @param {string} method @param {any[]} args @param {unknown} options @param {any} [Type] */
  #call(method, args, options, Type) {
    const { own, rest } = parted(/** @type {any} */ (options));
    return this.#client.call(method, null, method, [...args, rest], own, Type);
  }

  /** Memory in use in the worker, as of the last call that is settled. */
  get memory() {
    return this.#client.memory;
  }

  /** The frequencies of RoPE; computed here, at once. */
  ropeFrequencies = ropeFrequencies;

  /**
   * A tensor in the worker's memory. See Attention.tensor.
   * @param {TensorData | null} data @param {readonly number[]} shape @param {Dtype | null} [dtype]
   * @param {CallOptions | null} [options]
   * @returns {Promise<WorkerTensor>}
   * @throws {AttentionError} as Attention.tensor, and ABORTED
   */
  tensor(data, shape, dtype, options) {
    const { signal, transfer } = options ?? {};
    return this.#client.call('tensor', null, 'tensor', [data, shape, dtype], { signal, transfer }, WorkerTensor);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} q @param {RemoteTensorLike} k @param {RemoteTensorLike} v
   * @param {InWorker<AttentionOptions> | null} [options]
   * @returns {Promise<AttentionResult<T>>}
   * @throws {AttentionError} as Attention.scaledDotProductAttention, and ABORTED
   */
  scaledDotProductAttention(q, k, v, options) {
    return this.#call('scaledDotProductAttention', [q, k, v], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} q @param {RemoteTensorLike} k @param {RemoteTensorLike} v
   * @param {InWorker<VarlenOptions>} options
   * @returns {Promise<VarlenResult<T>>}
   * @throws {AttentionError} as Attention.varlenAttention, and ABORTED
   */
  varlenAttention(q, k, v, options) {
    return this.#call('varlenAttention', [q, k, v], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {readonly { output: RemoteTensorLike<T>, lse: RemoteTensorLike }[]} parts
   * @param {InWorker<MergeOptions> | null} [options]
   * @returns {Promise<{ output: Result<T>, lse: Float32Result }>}
   * @throws {AttentionError} as Attention.mergeAttention, and ABORTED
   */
  mergeAttention(parts, options) {
    return this.#call('mergeAttention', [parts], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} x @param {InWorker<RopeOptions>} options
   * @returns {Promise<Result<T>>}
   * @throws {AttentionError} as Attention.rope, and ABORTED
   */
  rope(x, options) {
    return this.#call('rope', [x], options);
  }

  /**
   * @param {CallOptions | null} [options]
   * @returns {Promise<Capabilities>}
   * @throws {AttentionError} as Attention.capabilities, and ABORTED
   */
  capabilities(options) {
    return this.#call('capabilities', [], options);
  }

  /**
   * @param {RopeTableOptions & CallOptions} options
   * @returns {Promise<{ cos: Float32Result, sin: Float32Result }>}
   * @throws {AttentionError} as Attention.ropeTables, and ABORTED
   */
  ropeTables(options) {
    return this.#call('ropeTables', [], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} x @param {RemoteTensorLike | WorkerPackedLinear} weight
   * @param {Vector | WorkerTensor | null} [bias]
   * @param {InWorker<{ residual?: RemoteTensorLike | null, out?: WorkerTensor | null }> | null} [options]
   * @returns {Promise<Result<T>>}
   * @throws {AttentionError} as Attention.linear, and ABORTED
   */
  linear(x, weight, bias, options) {
    return this.#call('linear', [x, weight, bias], options);
  }

  /**
   * @param {RemoteTensorLike} weight @param {Vector | WorkerTensor | null} [bias] @param {CallOptions | null} [options]
   * @returns {Promise<WorkerPackedLinear>}
   * @throws {AttentionError} as Attention.packLinear, and ABORTED
   */
  packLinear(weight, bias, options) {
    return this.#client.call('packLinear', null, 'packLinear', [weight, bias], options ?? {}, WorkerPackedLinear);
  }

  /**
   * @param {MultiHeadAttentionOptions & CallOptions} options
   * @returns {Promise<WorkerMultiHeadAttention>}
   * @throws {AttentionError} as Attention.multiHeadAttention, and ABORTED
   */
  multiHeadAttention(options) {
    return this.#call('multiHeadAttention', [], options, WorkerMultiHeadAttention);
  }

  /**
   * @param {KeyValueCacheOptions & CallOptions} options
   * @returns {Promise<WorkerKeyValueCache>}
   * @throws {AttentionError} as Attention.keyValueCache, and ABORTED
   */
  keyValueCache(options) {
    return this.#call('keyValueCache', [], options, WorkerKeyValueCache);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} x @param {InWorker<RmsNormOptions> | null} [options]
   * @returns {Promise<Result<T>>}
   * @throws {AttentionError} as Attention.rmsNorm, and ABORTED
   */
  rmsNorm(x, options) {
    return this.#call('rmsNorm', [x], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} x @param {InWorker<LayerNormOptions> | null} [options]
   * @returns {Promise<Result<T>>}
   * @throws {AttentionError} as Attention.layerNorm, and ABORTED
   */
  layerNorm(x, options) {
    return this.#call('layerNorm', [x], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} x @param {InWorker<OutOption> | null} [options]
   * @returns {Promise<Result<T>>}
   * @throws {AttentionError} as Attention.softmax, and ABORTED
   */
  softmax(x, options) {
    return this.#call('softmax', [x], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} x @param {InWorker<GeluOptions> | null} [options]
   * @returns {Promise<Result<T>>}
   * @throws {AttentionError} as Attention.gelu, and ABORTED
   */
  gelu(x, options) {
    return this.#call('gelu', [x], options);
  }

  /**
   * @template {TensorData} [T=Float32Array]
   * @param {RemoteTensorLike<T>} x @param {InWorker<SiluOptions> | null} [options]
   * @returns {Promise<Result<T>>}
   * @throws {AttentionError} as Attention.silu, and ABORTED
   */
  silu(x, options) {
    return this.#call('silu', [x], options);
  }

  /** Ends the worker, which gives all its memory back. Calls under way reject with DISPOSED. Twice is harmless. */
  dispose() {
    this.#client.dispose();
  }

  /** `using` disposes by this name. */
  [Symbol.dispose]() {
    this.dispose();
  }
}

hideWithoutDispose(WorkerAttention);
