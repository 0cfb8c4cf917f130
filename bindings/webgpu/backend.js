// Runs checked descriptions on a GPU device. Every call is recorded and submitted while it is made, so that calls run
// in the order they were made; what they return is a promise. Nothing is read back but what a call returns as data.
import { AttentionError } from '../errors.js';
import { bytesOf, typeNumber } from '../memory.js';
import { PackedLinear, Tensor } from '../tensor.js';
import { attention } from './attention.js';
import { appendTokens, cacheStorage, kCacheTypes, readRows, writeRows } from './cache.js';
import { activation, activationLayout, kThreads, rope, ropeLayout } from './elementwise.wgsl.js';
import { kRowsOutputs, linear, linearLayout, linearRows } from './linear.wgsl.js';
import { merge, mergeLayout } from './merge.wgsl.js';
import { norm, normLayout } from './norm.wgsl.js';
import { bufferOf, Operands, typedArray } from './operands.js';
import { kAlignment, Recording } from './recording.js';

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
  Transformer: 'whole models run on wasm',
  'tensor.data': 'elements are on the GPU: await tensor.read()',
  "precision: 'int8'": 'products of queries and keys are in float32',
  "cache dtype: 'int8', 'q8_0', 'q4_0'": 'keys and values on the GPU are float32, float16 or bfloat16',
  'same bits': 'results may differ in their last bits from one device to another',
});

/** Rows of x up to this go through linearRows. */
const kMostLinearRows = 4;

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
    const usage = () => ({ allocated: gpu.usage.bytes, total: gpu.usage.bytes });
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

  /** @param {string} fn @param {number} bytes @returns {GpuStorage} */
  hold(fn, bytes) {
    const buffer = this.gpu.buffer(fn, bytes);
    return { owner: this, buffer, free: () => this.release(buffer) };
  }

  /**
   * A resident tensor. `data`: its elements; null or undefined for zeros.
   * @param {string} fn @param {TensorData | null | undefined} data
   * @param {{ shape: readonly number[], count: number, dtype: Dtype, isFloat16Array: boolean }} of
   * @returns {Tensor}
   */
  tensor(fn, data, of) {
    const { recording } = this.#begin(fn);
    const bytes = of.count * bytesOf(of.dtype);
    const storage = this.hold(fn, bytes);
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
    const tensor = this.tensor(fn, null, { ...of, isFloat16Array: false });
    const buffer = bufferOf(Tensor.storageOf(tensor, this, fn, 'tensor'));
    operands.convert(operands.part(operand), { buffer, first: 0, dtype: 'float32' }, operand.count);
    return tensor;
  }

  /** @param {AttentionCall} call */
  attention(call) {
    this.#begin(call.fn);
    return attention(this, call);
  }

  /** @param {MergeCall} call */
  merge({ fn, parts, B, H, Tq, Dv, outs, lses, sinks, out, lseShape }) {
    const { recording, operands } = this.#begin(fn);
    const count = B * H * Tq;
    const allOuts = this.#joined(outs, count * Dv);
    const allLses = this.#joined(lses, count);
    const lists = sinks ? operands.float32(sinks) : { buffer: recording.temporary(4), first: 0 };
    const to = operands.target(out);
    const lse = recording.temporary(count * 4);
    recording.dispatch({
      name: 'merge',
      code: merge,
      layout: mergeLayout,
      values: {
        ...{ parts, B, H, Tq, Dv, q_start: -1, q_length: -1, sinks: sinks ? lists.first : -1, count: count * Dv },
        ...{ part_out: count * Dv, part_lse: count, in_first: 0, in_lse_first: 0, out_first: 0 },
        ...{ out_batch: H * Tq * Dv, out_head: Tq * Dv, out_token: Dv, lse_first: 0, lse_batch: H * Tq, lse_head: Tq },
        ...{ in_lse_batch: H * Tq, in_lse_head: Tq, has_lse: 1 },
      },
      bindings: [
        this.#whole(allOuts),
        this.#whole(allLses),
        { buffer: lists.buffer },
        { ...this.#whole(to.buffer), isWritten: true },
        { buffer: lse, isWritten: true },
      ],
      groups: Math.ceil((count * Dv) / kThreads),
    });
    return {
      output: operands.result(out, to),
      lse: operands.fresh({ buffer: lse, first: 0, dtype: 'float32' }, { shape: lseShape, count }),
    };
  }

  /** @param {GPUBuffer} buffer one that is not cut into parts */
  #whole(buffer) {
    if (buffer.size > this.gpu.limits.maxStorageBufferBindingSize) throw this.operands.tooLarge(buffer.size);
    return { buffer };
  }

  /** Operands of `count` elements each as float32, one after the other. @param {Operand[]} list @param {number} count */
  #joined(list, count) {
    const { operands, recording } = this;
    if (list.length === 1 && list[0].start === 0) return operands.float32(list[0]).buffer;
    const joined = recording.temporary(list.length * count * 4);
    list.forEach((operand, n) => {
      operands.convert(operands.part(operand), { buffer: joined, first: n * count, dtype: 'float32' }, count);
    });
    return joined;
  }

  /** @param {RopeCall} call */
  rope({ fn, H, T, D, rotary, style, x, out, strides, cos, sin, tableBatch }) {
    const { recording, operands } = this.#begin(fn);
    const from = operands.part(x);
    const to = operands.target(out);
    const tables = new Float32Array(cos.length + sin.length);
    tables.set(cos);
    tables.set(sin, cos.length);
    const table = recording.upload(tables);
    for (const { start, end } of this.#chunks(x.count, D)) {
      const source = operands.window(from, start, end);
      const target = operands.window(to, start, end);
      recording.dispatch({
        name: 'rope',
        code: rope,
        constants: { kType: typeNumber(x.dtype) },
        layout: ropeLayout,
        values: {
          ...{ H, T, D, rotary, style, tokens_first: strides.head < strides.token && H > 1 ? 1 : 0 },
          ...{ count: end - start, start, x_first: source.first, out_first: target.first },
          ...{ table_batch: tableBatch, sin_first: cos.length },
        },
        bindings: [source.binding, this.#whole(table), { ...target.binding, isWritten: true }],
        groups: Math.ceil((end - start) / kThreads),
      });
    }
    return operands.result(out, to);
  }

  /** Ranges of elements that a device can bind in float32, each a multiple of `unit` long. @param {number} count @param {number} unit */
  *#chunks(count, unit) {
    const most = this.gpu.limits.maxStorageBufferBindingSize / 4 - kAlignment;
    const step = count <= most ? count : Math.floor(most / unit) * unit;
    if (step <= 0 && count > 0) throw this.operands.tooLarge(unit * 4);
    for (let start = 0; start < count; start += step) yield { start, end: Math.min(count, start + step) };
  }

  /** @param {LinearCall} call */
  linear({ fn, M, N, K, x, weight, bias, packed, residual, out }) {
    const { operands } = this.#begin(fn);
    const held = /** @type {PackedStorage | null} */ (packed);
    const parts = {
      x: operands.float32(x),
      weight: held ? f32(held.buffer, 0) : operands.float32(/** @type {Operand} */ (weight)),
      bias: held ? (held.bias >= 0 ? f32(held.buffer, held.bias) : null) : bias && operands.float32(bias),
      residual: residual && operands.float32(residual),
      out: operands.target(out),
    };
    const most = this.gpu.limits.maxStorageBufferBindingSize / 4 - kAlignment;
    const rows = Math.max(1, Math.min(M, Math.floor(most / Math.max(N, K, 1))));
    const columns = Math.max(1, Math.min(N, Math.floor(most / Math.max(K, 1))));
    for (let m = 0; m < M; m += rows) {
      for (let n = 0; n < N; n += columns) {
        const range = { m, n, rows: Math.min(rows, M - m), columns: Math.min(columns, N - n) };
        this.#linearRange({ N, K }, parts, range);
      }
    }
    return operands.result(out, parts.out);
  }

  /**
   * @param {{ N: number, K: number }} sizes
   * @param {{ x: Part, weight: Part, bias: Part | null, residual: Part | null, out: Part }} parts
   * @param {{ m: number, n: number, rows: number, columns: number }} range
   */
  #linearRange({ N, K }, parts, { m, n, rows, columns }) {
    const { operands, recording } = this;
    const x = operands.window(parts.x, m * K, (m + rows) * K);
    const weight = operands.window(parts.weight, n * K, (n + columns) * K);
    const bias = parts.bias ? operands.window(parts.bias, 0, N) : weight;
    const residual = parts.residual ? operands.window(parts.residual, m * N, (m + rows) * N) : x;
    const out = operands.window(parts.out, m * N, (m + rows) * N);
    const isFew = rows <= kMostLinearRows;
    const ty = this.gpu.limits.maxComputeInvocationsPerWorkgroup >= 128 && rows > 128 ? 16 : 8;
    const blocks = Math.ceil(columns / 32);
    const groups = isFew ? Math.ceil(columns / kRowsOutputs) : blocks * Math.ceil(rows / (4 * ty));
    recording.dispatch({
      name: isFew ? 'linearRows' : `linear ${ty}`,
      code: isFew ? linearRows : () => linear({ ty }),
      layout: linearLayout,
      values: {
        ...{ M: rows, N, K, n_begin: n, n_end: n + columns, groups, blocks },
        ...{ has_bias: parts.bias ? 1 : 0, has_residual: parts.residual ? 1 : 0 },
        ...{ x_first: x.first + m * K, weight_first: weight.first, bias_first: bias.first },
        ...{ residual_first: residual.first + m * N, out_first: out.first + m * N },
      },
      bindings: [x.binding, weight.binding, bias.binding, residual.binding, { ...out.binding, isWritten: true }],
      groups,
    });
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
    const held = this.hold(fn, (size + N) * 4);
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

  /** @param {NormCall} call */
  norm({ fn, rows, width, kind, epsilon, x, weight, bias, out }) {
    const { recording, operands } = this.#begin(fn);
    const from = operands.float32(x);
    const to = operands.target(out);
    const scale = weight && operands.float32(weight);
    const shift = bias && operands.float32(bias);
    for (const { start, end } of this.#chunks(rows * width, width)) {
      const source = operands.window(from, start, end);
      const target = operands.window(to, start, end);
      const groups = (end - start) / width;
      recording.dispatch({
        name: `norm ${this.gpu.features.subgroups}`,
        code: () => norm(this.gpu.features),
        layout: normLayout,
        values: {
          ...{ width, kind, epsilon, groups, has_weight: scale ? 1 : 0, has_bias: shift ? 1 : 0 },
          ...{ x_first: source.first + start, out_first: target.first + start },
          ...{ weight_first: scale?.first ?? 0, bias_first: shift?.first ?? 0 },
        },
        bindings: [
          source.binding,
          scale ? { buffer: scale.buffer } : source.binding,
          shift ? { buffer: shift.buffer } : source.binding,
          { ...target.binding, isWritten: true },
        ],
        groups,
      });
    }
    return operands.result(out, to);
  }

  /** @param {ActivationCall} call */
  activation({ fn, kind, x, gate, out }) {
    const { recording, operands } = this.#begin(fn);
    const from = operands.float32(x);
    const factor = gate && operands.float32(gate);
    const to = operands.target(out);
    for (const { start, end } of this.#chunks(x.count, 1)) {
      const source = operands.window(from, start, end);
      const target = operands.window(to, start, end);
      const gated = factor ? operands.window(factor, start, end) : source;
      recording.dispatch({
        name: 'activation',
        code: activation,
        layout: activationLayout,
        values: {
          ...{ kind, has_gate: factor ? 1 : 0, count: end - start, x_first: source.first + start },
          ...{ gate_first: gated.first + start, out_first: target.first + start },
        },
        bindings: [source.binding, gated.binding, { ...target.binding, isWritten: true }],
        groups: Math.ceil((end - start) / kThreads),
      });
    }
    return operands.result(out, to);
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

/** `bias`: the place of the biases, in elements; -1: none. @typedef {GpuStorage & { bias: number }} PackedStorage */

/** @param {GPUBuffer} buffer @param {number} first @returns {Part} */
const f32 = (buffer, first) => ({ buffer, first, dtype: 'float32' });

/** @returns {never} */
function noView() {
  const rule = 'elements on the GPU must be read by await tensor.read()';
  throw new AttentionError('UNSUPPORTED', `tensor.data: ${rule}, got a read of data`);
}
