// Runs checked descriptions on a GPU device. Every call is recorded and submitted while it is made, so that calls run
// in the order they were made; what they return is a promise. Nothing is read back but what a call returns as data.
import { AttentionError } from '../errors.js';
import { bytesOf } from '../memory.js';
import { PackedLinear, Tensor } from '../tensor.js';
import { attention } from './attention.js';
import { appendTokens, cacheStorage, kCacheTypes, readRows, writeRows } from './cache.js';
import { runActivation, runLinear, runMerge, runNorm, runRope } from './layers.js';
import { bufferOf, Operands, typedArray } from './operands.js';
import { Recording } from './recording.js';
import { GpuSteps } from './steps.js';

/** @import { AttentionCall } from '../check-attention.js' */
/** @import { AppendCall, CacheConfig, CacheState, CacheStorage, Held } from '../check-cache.js' */
/** @import { LinearCall, MergeCall } from '../check-linear.js' */
/** @import { ActivationCall, NormCall } from '../check-norm.js' */
/** @import { RopeCall } from '../check-rope.js' */
/** @import { Operand, Output } from '../check.js' */
/** @import { Dtype, TensorData } from '../types.js' */
/** @import { Gpu } from './gpu.js' */
/** @import { GpuStorage, Part } from './operands.js' */
/** @import { CacheRows } from './cache.js' */

const kUnsupported = Object.freeze({
  'tensor.data': 'elements are on the GPU: await tensor.read()',
  'rope: tables': 'resident tensors are no tables: plain data is',
  "precision: 'int8'": 'products of queries and keys are in float32',
  "cache dtype: 'int8', 'q8_0', 'q4_0'": 'keys and values on the GPU are float32, float16 or bfloat16',
  'same bits': 'results may differ in their last bits from one device to another',
});

/** `bias`: the place of the biases, in elements; -1: none. @typedef {GpuStorage & { bias: number }} PackedStorage */

export class WebgpuBackend {
  kind = /** @type {const} */ ('webgpu');
  disposed = false;
  /** Products in bytes: not on the GPU. */
  multipliesBytes = false;
  /** @type {Recording | null} */
  #recording = null;
  /** @type {Operands | null} */
  #operands = null;

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    /** Of models. */
    this.steps = new GpuSteps(this);
    const usage = () => ({ allocated: gpu.usage.bytes, total: gpu.usage.bytes + gpu.usage.idle });
    this.memory = {
      get usage() {
        return usage();
      },
    };
  }

  /** Why everything of this backend is gone, if the device is. */
  get lost() {
    return this.gpu.lost;
  }

  get recording() {
    if (!this.#recording) throw new TypeError('a backend is used within run() only');
    return this.#recording;
  }

  get operands() {
    if (!this.#operands) throw new TypeError('a backend is used within run() only');
    return this.#operands;
  }

  /** What it can't do, and what it uses. @returns {import('../types.js').Capabilities} */
  get capabilities() {
    const { f16, subgroups } = this.gpu.features;
    return { backend: 'webgpu', unsupported: kUnsupported, cacheDtypes: [...kCacheTypes], float16: f16, subgroups };
  }

  /** For handlers of the host, which may look at it but not destroy it. */
  get device() {
    return this.gpu.device;
  }

  /**
   * Makes one call: `body` describes and records it, before this returns.
   * @template R
   * @param {() => R} body
   * @param {(error: unknown) => void} [undo] of what the body noted, when the device fails later
   * @returns {Promise<R>} rejects with what `body` throws, and with what the device says
   */
  run(body, undo) {
    if (this.disposed) return this.#refused(body);
    if (this.lost) return Promise.reject(this.lost);
    let recording;
    try {
      recording = new Recording(this.gpu);
      this.#recording = recording;
      this.#operands = new Operands(this.gpu, recording);
      const result = body();
      return recording.finish().then(
        () => result,
        (error) => {
          undo?.(error);
          throw error;
        },
      );
    } catch (error) {
      recording?.abandon();
      return Promise.reject(error);
    } finally {
      this.#recording = null;
      this.#operands = null;
    }
  }

  /** After the end a call has nothing but its own words of refusal. @template R @param {() => R} body @returns {Promise<R>} */
  async #refused(body) {
    return body();
  }

  /** Says for which function the recording is. @param {string} fn */
  #begin(fn) {
    this.recording.fn = fn;
    return { recording: this.recording, operands: this.operands };
  }

  /** @param {GPUBuffer} buffer */
  release(buffer) {
    if (this.#recording) this.#recording.release(buffer);
    else this.gpu.release(buffer);
  }

  /** Memory with anything in it. @param {number} bytes @returns {GpuStorage} */
  hold(bytes) {
    const buffer = this.recording.hold(bytes);
    return { owner: this, buffer, free: () => this.release(buffer) };
  }

  /**
   * A resident tensor. `data`: its elements; null for zeros, undefined for what is to be written first.
   * @param {string} fn @param {TensorData | null | undefined} data
   * @param {{ shape: readonly number[], count: number, dtype: Dtype, isFloat16Array: boolean }} of
   * @returns {Tensor}
   */
  tensor(fn, data, of) {
    const { recording } = this.#begin(fn);
    const bytes = of.count * bytesOf(of.dtype);
    const storage = this.hold(bytes);
    if (data === null) recording.clear(storage.buffer);
    if (data) recording.write(storage.buffer, /** @type {any} */ (data));
    const read = (/** @type {Tensor} */ tensor) => this.#readTensor(tensor, storage, of);
    return new Tensor(storage, of, /** @type {() => TensorData} */ (noView), read);
  }

  /** @param {Tensor} tensor @param {GpuStorage} storage @param {{ count: number, dtype: Dtype, isFloat16Array: boolean }} of */
  async #readTensor(tensor, { buffer }, { count, dtype, isFloat16Array }) {
    /** @type {{ data: TensorData | null }} */
    const result = { data: null };
    await this.run(() => {
      if (tensor.disposed) {
        const rule = 'the tensor must not be used after dispose(), got a disposed one';
        throw new AttentionError('DISPOSED', `tensor.read: ${rule}`);
      }
      const { recording } = this.#begin('tensor.read');
      recording.read(buffer, 0, count * bytesOf(dtype), (copy) => {
        result.data = typedArray(copy, dtype, isFloat16Array);
      });
    });
    return result.data;
  }

  /** A copy of an operand, whose data is there when the call has ended. @param {string} fn @param {Operand} operand */
  read(fn, operand) {
    const { operands } = this.#begin(fn);
    const { storage, dtype, start, count, shape, isFloat16Array, data } = operand;
    if (!storage) return { data: /** @type {any} */ (data).slice(start, start + count), shape: [...shape], dtype };
    return operands.fresh(this.#atEvenPlace(operand, start), { shape, count, isFloat16Array });
  }

  /** An operand where a copy of four bytes may begin. @param {Operand} operand @param {number} start @returns {Part} */
  #atEvenPlace(operand, start) {
    const part = this.operands.part(operand);
    if ((start * bytesOf(operand.dtype)) % 4 === 0) return part;
    const copy = { buffer: this.recording.temporary(operand.count * 2), first: 0, dtype: operand.dtype };
    this.operands.convert(part, copy, operand.count);
    return copy;
  }

  /** A resident float32 copy of an operand. @param {string} fn @param {Operand} operand @returns {Tensor} */
  keep(fn, operand) {
    const { operands } = this.#begin(fn);
    const of = { shape: operand.shape, count: operand.count, dtype: /** @type {const} */ ('float32') };
    const tensor = this.tensor(fn, undefined, { ...of, isFloat16Array: false });
    const buffer = bufferOf(Tensor.storageOf(tensor, this, fn, 'tensor'));
    operands.convert(operands.part(operand), { buffer, first: 0, dtype: 'float32' }, operand.count);
    return tensor;
  }

  /** @param {AttentionCall} call */
  attention(call) {
    this.#begin(call.fn);
    return attention(this, call);
  }

  /**
   * Several weights and their biases stand one below the other, N rows together.
   * @param {string} fn
   * @param {{ N: number, K: number, weight: Operand | Operand[], bias: Operand | Operand[] | null }} parameters
   * @returns {PackedLinear}
   */
  packLinear(fn, { N, K, weight, bias }) {
    const { operands } = this.#begin(fn);
    const size = Math.ceil((N * K) / 4) * 4; // so that the bias begins with a vector of four
    const held = this.hold((size + N) * 4);
    let first = 0;
    for (const operand of [weight].flat()) {
      operands.convert(operands.part(operand), f32(held.buffer, first), operand.count);
      first += operand.count;
    }
    first = size;
    for (const operand of bias ? [bias].flat() : []) {
      operands.convert(operands.part(operand), f32(held.buffer, first), operand.count);
      first += operand.count;
    }
    return new PackedLinear(Object.assign(held, { bias: bias ? size : -1 }), [N, K]);
  }

  /** @param {MergeCall} call */
  merge(call) {
    this.#begin(call.fn);
    return runMerge(this, call);
  }

  /** @param {RopeCall} call */
  rope(call) {
    this.#begin(call.fn);
    return runRope(this, call);
  }

  /** @param {LinearCall} call */
  linear(call) {
    this.#begin(call.fn);
    return runLinear(this, call);
  }

  /** @param {NormCall} call */
  norm(call) {
    this.#begin(call.fn);
    return runNorm(this, call);
  }

  /** @param {ActivationCall} call */
  activation(call) {
    this.#begin(call.fn);
    return runActivation(this, call);
  }

  /** Memory for a cache. @param {string} fn @param {CacheConfig} config @returns {CacheStorage} */
  cache(fn, config) {
    this.#begin(fn);
    return cacheStorage(this, fn, config);
  }

  /** @param {AppendCall} call */
  append(call) {
    this.#begin(call.fn);
    appendTokens(this, call);
  }

  /** The rows in use, one after the other; there when the call has ended. @param {string} fn @param {CacheState} state @returns {CacheRows} */
  readCache(fn, state) {
    this.#begin(fn);
    return readRows(this, state);
  }

  /** @param {CacheState} state @param {Held} held what `rows` are the rows of @param {CacheRows} rows */
  writeCache(state, held, rows) {
    writeRows(this, state, held, rows);
  }

  /** Lets go of the memory, and of the device unless it is the caller's. */
  dispose() {
    if (this.disposed) return;
    this.disposed = true;
    this.gpu.close();
  }
}

/** @param {GPUBuffer} buffer @param {number} first @returns {Part} */
const f32 = (buffer, first) => ({ buffer, first, dtype: 'float32' });

/** @returns {never} */
function noView() {
  const rule = 'elements on the GPU must be read by await tensor.read()';
  throw new AttentionError('UNSUPPORTED', `tensor.data: ${rule}, got a read of data`);
}
