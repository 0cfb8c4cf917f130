// Runs checked descriptions on a wasm module. Calls are synchronous and leave nothing allocated.
import { attentionFields } from './attention-fields.js';
import { kCacheDtypes } from './check-cache.js';
import { Frame, partOf, residentAt } from './frame.js';
import { bytesOf, Memory, typeNumber } from './memory.js';
import { bitsOf } from './structs.js';
import { PackedLinear, Tensor } from './tensor.js';
import { appendTokens, cacheSizes, cacheStorage, readRows, writeRows } from './wasm-cache.js';

/** @import { AttentionCall } from './check-attention.js' */
/** @import { AppendCall, CacheConfig, CacheState, CacheStorage, Held } from './check-cache.js' */
/** @import { ActivationCall, NormCall } from './check-norm.js' */
/** @import { Operand, Output } from './check.js' */
/** @import { LinearCall, MergeCall } from './check-linear.js' */
/** @import { RopeCall } from './check-rope.js' */
/** @import { Storage } from './tensor.js' */
/** @import { Capabilities, Dtype, Float32Result, Result, TensorData, TensorLike } from './types.js' */
/** @import { WasmModule } from './wasm.js' */

export class WasmBackend {
  kind = /** @type {const} */ ('wasm');
  disposed = false;
  /** Never: what it has is in the memory of the page. @type {import('./errors.js').AttentionError | null} */
  lost = null;

  /** Called before every step of a model: a worker looks whether it shall go on. @type {(() => void) | null} */
  pulse = null;

  /** @param {WasmModule} module */
  constructor(module) {
    this.module = module;
    this.memory = new Memory(module);
    /** Whether precision: 'int8' is any use. */
    this.multipliesBytes = module._dotOfBytes();
  }

  /** What it can't do, and what it uses. @returns {Capabilities} */
  get capabilities() {
    /** @type {Record<string, string>} */
    const unsupported = this.multipliesBytes
      ? {}
      : { "precision: 'int8'": 'builds without relaxed SIMD multiply bytes no faster than floats' };
    return { backend: 'wasm', unsupported, cacheDtypes: [...kCacheDtypes], float16: false, subgroups: false };
  }

  /** There is no GPU device. */
  get device() {
    return null;
  }

  /**
   * Makes one call: at once.
   * @template R
   * @param {() => R} body
   * @param {(error: unknown) => void} [_undo] for backends whose calls can fail later
   * @returns {R}
   */
  run(body, _undo) {
    return body();
  }

  /**
   * A resident tensor. `data`: its elements; null for zeros; undefined to leave them as they come.
   * @param {string} fn @param {TensorData | null | undefined} data
   * @param {{ shape: readonly number[], count: number, dtype: Dtype, isFloat16Array: boolean }} of
   * @returns {Tensor}
   */
  tensor(fn, data, of) {
    const bytes = of.count * bytesOf(of.dtype);
    const from = data ? this.memory.addressOf(data) : -1;
    const storage = this.#hold(fn, bytes);
    const { pointer } = storage;
    if (data) this.memory.copyIn(pointer, data, bytes, from);
    else if (data === null) this.memory.heap.u8.fill(0, pointer, pointer + bytes);
    return new Tensor(storage, of, () => this.memory.view(pointer, of.dtype, of.count, of.isFloat16Array));
  }

  /** A copy of an operand. @param {string} fn @param {Operand} operand @returns {TensorLike} */
  read(fn, operand) {
    const { storage, dtype, count, shape, isFloat16Array } = operand;
    const data = storage
      ? this.memory.copyOut(fn, residentAt(operand), dtype, count, isFloat16Array)
      : partOf(operand).slice();
    return { data, shape: [...shape], dtype };
  }

  /** A resident copy of an operand. @param {string} fn @param {Operand} operand */
  keep(fn, operand) {
    return this.tensor(fn, /** @type {TensorData} */ (this.read(fn, operand).data), operand);
  }

  /** @param {string} fn @param {number} bytes @returns {Storage & { pointer: number }} */
  #hold(fn, bytes) {
    const pointer = this.memory.allocate(fn, bytes);
    return { owner: this, pointer, free: () => this.memory.release(pointer) };
  }

  /**
   * @param {AttentionCall} call
   * @returns {{ output: Result | null, weights: Float32Result | null, lse: Float32Result | null }}
   */
  attention(call) {
    const { fn, out, lse, weights, cache } = call;
    const { offset, mask, alibi, sinks } = call.shared;
    const frame = new Frame(this, fn, attentionFields(call));
    frame.operand('q', call.q);
    frame.operand('k', call.k);
    frame.operand('v', call.v);
    if (out) frame.output('out', out);
    frame.input('q_start', call.qStart);
    frame.input('k_start', call.kStart);
    frame.input('q_length', call.qLength);
    frame.input('k_length', call.kLength);
    frame.input('offset', offset);
    frame.input('mask', mask?.allowed);
    frame.float32('mask', mask?.added);
    frame.float32('alibi', alibi);
    frame.float32('sinks', sinks);
    frame.input('ring_start', cache?.ringStart);
    frame.input('gap', cache?.gap);
    if (lse) frame.place('lse', lse.count * 4);
    if (weights) frame.place('weights', weights.count * 4);
    frame.input('heads', weights?.heads);
    frame.input('rows', weights?.rows);
    const { _attention, _attentionScratch } = this.module;
    const results = () => ({
      output: out && frame.result('out', out),
      weights: weights && frame.floats('weights', weights),
      lse: lse && frame.floats('lse', lse),
    });
    return frame.run(call.B * call.H * call.Tq, _attention, results, _attentionScratch);
  }

  /** @param {MergeCall} call @returns {{ output: Result, lse: Float32Result }} */
  merge({ fn, parts, B, H, Tq, Dv, outs, lses, sinks, out, lseShape }) {
    const count = B * H * Tq;
    const frame = new Frame(this, fn, { parts, B, H, Tq, Dv, outs: 0, lses: 0, sinks: 0, out: 0, lse: 0 });
    frame.float32('outs', outs);
    frame.float32('lses', lses);
    frame.float32('sinks', sinks);
    frame.float32Output('out', out);
    frame.place('lse', count * 4);
    return frame.run(count, this.module._merge, () => ({
      output: frame.result('out', out),
      lse: frame.floats('lse', { shape: lseShape, count }),
    }));
  }

  /** @param {RopeCall} call @returns {Result} */
  rope({ fn, B, H, T, D, rotary, style, x, out, strides, cos, sin, tableBatch }) {
    const { batch, head, token } = strides;
    const frame = new Frame(this, fn, {
      ...{ B, H, T, D, rotary, style, type: typeNumber(x.dtype), x: 0, out: 0 },
      ...{ x_batch: batch, x_head: head, x_token: token, out_batch: batch, out_head: head, out_token: token },
      ...{ cos: 0, sin: 0, table_batch: tableBatch },
    });
    frame.operand('x', x);
    frame.output('out', out);
    frame.input('cos', cos);
    frame.input('sin', sin);
    return frame.run(x.count, this.module._rope, () => frame.result('out', out));
  }

  /** @param {LinearCall} call @returns {Result} */
  linear({ fn, M, N, K, x, weight, bias, packed, residual, out }) {
    const held = /** @type {PackedStorage | null} */ (packed);
    const frame = new Frame(this, fn, {
      ...{ M, N, K, x_row: K, out_row: N, x: 0, weight: 0, packed: held?.pointer ?? 0, bias: held?.bias ?? 0 },
      ...{ residual: 0, out: 0, scratch: 0 },
    });
    frame.float32('weight', weight);
    frame.float32('bias', bias);
    frame.float32('residual', residual);
    const { _linear, _linearScratch } = this.module;
    return this.#mapped(M * N, _linear, frame, x, out, _linearScratch);
  }

  /**
   * The rest of a call that makes `out` of `x`.
   * @param {number} count @param {(struct: number) => void} kernel @param {Frame} frame @param {Operand} x @param {Output} out
   * @param {(struct: number) => number} [scratch]
   * @returns {Result}
   */
  #mapped(count, kernel, frame, x, out, scratch) {
    frame.float32('x', x);
    frame.float32Output('out', out);
    return frame.run(count, kernel, () => frame.result('out', out), scratch);
  }

  /**
   * Several weights and their biases stand one below the other, N rows together.
   * @param {string} fn
   * @param {{ N: number, K: number, weight: Operand | Operand[], bias: Operand | Operand[] | null }} parameters
   * @returns {PackedLinear}
   */
  packLinear(fn, { N, K, weight, bias }) {
    const { module, memory } = this;
    const size = module._packedLinearSize(N, K) * 4;
    const held = this.#hold(fn, size + N * 4);
    const { pointer } = held;
    const fields = { weight: 0, bias: 0 };
    const frame = new Frame(this, fn, fields);
    try {
      frame.float32('weight', weight);
      frame.float32('bias', bias);
      frame.run(
        1,
        () => module._packLinear(fields.weight, N, K, pointer),
        () => bias && memory.heap.u8.copyWithin(pointer + size, fields.bias, fields.bias + N * 4),
      );
    } catch (error) {
      held.free();
      throw error;
    }
    return new PackedLinear(Object.assign(held, { bias: bias ? pointer + size : 0 }), [N, K]);
  }

  /** @param {NormCall} call @returns {Result} */
  norm({ fn, rows, width, kind, epsilon, x, weight, bias, out }) {
    const frame = new Frame(this, fn, {
      rows,
      width,
      kind,
      epsilon: bitsOf(epsilon),
      x: 0,
      weight: 0,
      bias: 0,
      out: 0,
    });
    frame.float32('weight', weight);
    frame.float32('bias', bias);
    return this.#mapped(x.count, this.module._norm, frame, x, out);
  }

  /** @param {ActivationCall} call @returns {Result} */
  activation({ fn, kind, x, gate, out }) {
    const frame = new Frame(this, fn, { count: x.count, kind, x: 0, gate: 0, out: 0 });
    frame.float32('gate', gate);
    return this.#mapped(1, this.module._activation, frame, x, out);
  }

  /** Memory for a cache. @param {string} fn @param {CacheConfig} config @returns {CacheStorage} */
  cache(fn, config) {
    const sizes = cacheSizes(config, (type, width) => this.module._tokenBytes(type, width));
    return cacheStorage(this.#hold(fn, sizes.total), config, sizes);
  }

  /** @param {AppendCall} call */
  append(call) {
    appendTokens(this, call);
  }

  /** The rows in use, one after the other. @param {string} fn @param {CacheState} state @returns {Uint8Array} */
  readCache(fn, state) {
    return readRows(this.memory, fn, state);
  }

  /** @param {CacheState} state @param {Held} held what `bytes` are the rows of @param {Uint8Array} bytes */
  writeCache(state, held, bytes) {
    writeRows(this.memory, state, held, bytes);
  }

  /** Ends the threads and lets go of the memory, whoever still holds this or a tensor. */
  dispose() {
    if (this.disposed) return;
    this.disposed = true;
    this.module.PThread?.terminateAllThreads();
    this.module = /** @type {any} */ (null);
    this.memory = /** @type {any} */ (null);
  }
}

/** @typedef {Storage & { pointer: number, bias: number }} PackedStorage */
