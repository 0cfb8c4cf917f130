// What load() gives: an instance with its functions.

import { BuildingBlocks } from './building-blocks.js';
import { countOf, dtypeOf, typedArrayName } from './check.js';
import { describeAttention } from './check-attention.js';
import { describeMerge } from './check-linear.js';
import { describeRope, describeTables, rotate } from './check-rope.js';
import { describeVarlen } from './check-varlen.js';
import { refuse } from './errors.js';
import { Calls, register } from './instances.js';
import { KeyValueCache } from './key-value-cache.js';
import { MultiHeadAttention } from './multi-head-attention.js';
import { ropeFrequencies } from './rope-frequencies.js';
import { RopeTables } from './rope-tables.js';
import { hideWithoutDispose } from './tensor.js';
import { version } from './version.js';

/** @import { Tensor } from './tensor.js' */
/** @import { AttentionOptions, AttentionResult, Capabilities, Dtype, Float32Result, Info, KeyValueCacheOptions, MemoryUsage, MergeOptions, MultiHeadAttentionOptions, Result, RopeOptions, RopeTableOptions, TensorData, TensorLike, VarlenOptions, VarlenResult } from './types.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

/** @typedef {() => Promise<{ backend: WasmBackend, info: Omit<Info, 'version'> }>} Again */

/** A loaded instance: its functions work in a memory of its own. */
export class Attention extends BuildingBlocks {
  #calls;
  #tables = new RopeTables();
  /** What came up, and why not better. @type {Readonly<Info>} */
  info;

  /**
   * @hidden
   * Made by load().
   * @param {WasmBackend} backend @param {Info} info
   * @param {Again} [again] what to go on with after a loss of the device
   */
  constructor(backend, info, again) {
    const calls = new Calls(backend, async () => {
      const next = await /** @type {Again} */ (again)();
      this.info = Object.freeze({ version, ...next.info });
      return next.backend;
    });
    super(calls);
    this.#calls = calls;
    this.info = Object.freeze(info);
    register(this, calls);
  }

  /**
   * What the backend that came up can't do, and what it uses.
   *
   * @example
   * attention.capabilities().backend; // → 'wasm'
   * @returns {Capabilities}
   */
  capabilities() {
    return this.#calls.context('capabilities').backend.capabilities;
  }

  /** On webgpu the GPUDevice that calls run on, for handlers of its loss or its errors; else null. @returns {unknown} */
  get device() {
    return this.#calls.context('device').backend.device;
  }

  /**
   * Memory that is in use.
   * @returns {MemoryUsage}
   */
  get memory() {
    return this.#calls.context('memory').backend.memory.usage;
  }

  /**
   * Puts a tensor into the memory of the instance, where calls use it in place and can leave results (`out`).
   *
   * @example
   * const q = attention.tensor(Float32Array.of(1, 2), [1, 2]);
   * const zeros = attention.tensor(null, [8, 1024, 64], 'float16');
   * [zeros.count, zeros.dtype]; // → [524288, 'float16']
   * q.data[0] = 3; // a view of the memory: writes reach the tensor
   * [...q.read()]; // → [3, 2]
   * q.dispose();
   * @template {TensorData} [T=Float32Array]
   * @param {T | null} data row-major elements; null for zeros
   * @param {readonly number[]} shape
   * @param {Dtype | null} [dtype] that of the data by default, float32 for null; a Uint16Array is float16 bits unless
   *   this says 'bfloat16'
   * @returns {Tensor<T>}
   * @throws {AttentionError} INVALID_SHAPE, INVALID_DTYPE, OUT_OF_MEMORY
   */
  tensor(data, shape, dtype) {
    return this.#calls.run('tensor', ({ fn, backend }) => {
      const count = countOf(fn, 'shape', shape);
      const isGiven = data !== null && data !== undefined;
      const type = isGiven ? dtypeOf(fn, 'data', data, dtype) : (dtype ?? 'float32');
      if (type !== 'float32' && type !== 'float16' && type !== 'bfloat16') {
        refuse('INVALID_DTYPE', fn, `dtype must be 'float32', 'float16' or 'bfloat16'`, dtype);
      }
      if (isGiven && data.length !== count) {
        refuse('INVALID_SHAPE', fn, `data must have the ${count} elements of shape [${shape.join(', ')}]`, data.length);
      }
      const isFloat16Array = typedArrayName(data) === 'Float16Array';
      const of = { shape, count, dtype: type, isFloat16Array };
      return /** @type {Tensor<any>} */ (backend.tensor(fn, data ?? null, of));
    });
  }

  /**
   * Attention: softmax(scale·q·kᵀ, masked) · v, with the options of PyTorch, ONNX and flash-attention.
   *
   * Ranks: 4 is [B,H,T,D], 3 is [H,T,D], 2 is [T,D]; the result has the rank and the type of q. H may be a multiple of
   * Hkv (grouped-query attention): query head h reads key/value head ⌊h·Hkv/H⌋. Memory beside inputs and results grows
   * with Tk, never with Tq·Tk. A row that sees nothing gives 0, with weights 0 and an lse of −∞ (or the sink's).
   *
   * @example
   * const q = { data: new Float32Array(2 * 5 * 8), shape: [1, 2, 5, 8] }; // zeros: all weights are the same
   * const v = { data: new Float32Array(2 * 5 * 3).fill(7), shape: [1, 2, 5, 3] };
   * const { output, weights } = attention.scaledDotProductAttention(q, q, v, { isCausal: true, needWeights: true });
   * [output.shape, output.data[0]]; // → [[1, 2, 5, 3], 7]
   * [...weights.data.subarray(5, 10)]; // → [0.5, 0.5, 0, 0, 0]
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} q [B,H,Tq,D]
   * @param {TensorLike | Tensor} k [B,Hkv,Tk,D]
   * @param {TensorLike | Tensor} v [B,Hkv,Tk,Dv]
   * @param {AttentionOptions | null} [options]
   * @returns {AttentionResult<T>}
   * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  scaledDotProductAttention(q, k, v, options) {
    return this.#calls.run('scaledDotProductAttention', (context) => {
      const call = describeAttention(context, q, k, v, options);
      return /** @type {AttentionResult<T>} */ (present(context.backend.attention(call)));
    });
  }

  /**
   * Attention within each of many packed sequences of different lengths, without padding.
   *
   * Options are as for scaledDotProductAttention; causal alignment holds for each sequence by its own lengths, and a
   * mask broadcasts to [sequences, H, longest Tq, longest Tk], indexed within the sequence.
   *
   * @example
   * const x = { data: new Float32Array(5 * 2 * 4).fill(1), shape: [5, 2, 4] }; // two sequences, of 2 and 3 tokens
   * const bounds = { cuSeqlensQ: [0, 2, 5], cuSeqlensK: [0, 2, 5] };
   * const { output, weights } = attention.varlenAttention(x, x, x, { ...bounds, isCausal: true, needWeights: true });
   * [output.shape, weights[0].shape, weights[1].shape]; // → [[5, 2, 4], [2, 2, 2], [2, 3, 3]]
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} q [ΣTq, H, D]
   * @param {TensorLike | Tensor} k [ΣTk, Hkv, D]
   * @param {TensorLike | Tensor} v [ΣTk, Hkv, Dv]
   * @param {VarlenOptions} options
   * @returns {VarlenResult<T>}
   * @throws {AttentionError} as scaledDotProductAttention
   */
  varlenAttention(q, k, v, options) {
    return this.#calls.run('varlenAttention', (context) => {
      const { backend } = context;
      const { call, perSequence } = describeVarlen(context, q, k, v, options);
      const weights = perSequence?.map((part) => /** @type {Float32Result} */ (backend.attention(part).weights));
      return /** @type {VarlenResult<T>} */ (present({ ...backend.attention(call), weights }));
    });
  }

  /**
   * Joins attention over disjoint sets of keys, as if it had been computed at once. A part (0, −∞) changes nothing.
   * Source: flash-decoding; the arithmetic is that of the online softmax.
   *
   * @example
   * const part = (value) => ({
   *   output: { data: Float32Array.of(value), shape: [1, 1] },
   *   lse: { data: Float32Array.of(0), shape: [1] },
   * });
   * const { output, lse } = attention.mergeAttention([part(1), part(3)]);
   * [output.data[0], lse.data[0].toFixed(4)]; // → [2, '0.6931'], ln 2
   * @template {TensorData} [T=Float32Array]
   * @param {readonly { output: TensorLike<T> | Tensor<T>, lse: TensorLike | Tensor }[]} parts outputs [B,H,Tq,Dv] (or
   *   rank 3 or 2) and their natural log-sum-exps [B,H,Tq]
   * @param {MergeOptions | null} [options]
   * @returns {{ output: Result<T>, lse: Float32Result }} output in the type of the first part
   * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  mergeAttention(parts, options) {
    return this.#calls.run('mergeAttention', (context) => {
      const call = describeMerge(context, parts, options);
      return /** @type {{ output: Result<T>, lse: Float32Result }} */ (context.backend.merge(call));
    });
  }

  /**
   * Rotary position embedding: turns each pair of channels by position · frequency.
   * Source: Su et al., RoFormer (https://arxiv.org/abs/2104.09864); scalings as in Hugging Face Transformers.
   *
   * @example
   * const x = { data: Float32Array.of(1, 0, 0, 0), shape: [1, 4] };
   * const turned = attention.rope(x, { style: 'half', offset: 1 });
   * Array.from(turned.data, (value) => value.toFixed(2)); // → ['0.54', '0.00', '0.84', '0.00']
   * const back = attention.rope(turned, { style: 'half', offset: 1, inverse: true });
   * back.data[0].toFixed(4); // → '1.0000'
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x [B,H,T,D], [H,T,D] or [T,D]
   * @param {RopeOptions} options
   * @returns {Result<T>} of the shape and type of x
   * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  rope(x, options) {
    return this.#calls.run('rope', (context) => {
      const call = describeRope(context, this.#tables, x, options);
      return /** @type {Result<T>} */ (context.backend.rope(call));
    });
  }

  /**
   * The tables that `rope` turns by, times the attention factor of the scaling if it has one.
   *
   * @example
   * const { cos, sin } = attention.ropeTables({ rotaryDim: 4, length: 3 });
   * [cos.shape, cos.data[0], sin.data[0]]; // → [[3, 2], 1, 0]
   * @param {RopeTableOptions} options `rotaryDim`, and `positions` or `length` (with `offset`)
   * @returns {{ cos: Float32Result, sin: Float32Result }} [T, rotaryDim / 2], or [B, T, rotaryDim / 2]
   * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE
   */
  ropeTables(options) {
    return this.#calls.run('ropeTables', ({ fn }) => {
      const { rotation, shape } = describeTables(fn, options);
      const { cos, sin } = rotate(this.#tables, rotation, false);
      /** @param {Float32Array} data @returns {Float32Result} */
      const result = (data) => ({ data: data.slice(), shape: [...shape], dtype: 'float32' });
      return { cos: result(cos), sin: result(sin) };
    });
  }

  /** The frequencies of RoPE; the same as the export of that name. */
  ropeFrequencies = ropeFrequencies;

  /**
   * A multi-head attention layer as a transformer has it; its parameters come by loadStateDict().
   *
   * @example
   * const mha = attention.multiHeadAttention({ dModel: 8, numHeads: 2, isCausal: true, rope: { style: 'half' } });
   * const square = { data: new Float32Array(64).fill(0.1), shape: [8, 8] }; // [out, in], as in PyTorch
   * const names = ['q_proj', 'k_proj', 'v_proj', 'out_proj'];
   * mha.loadStateDict(Object.fromEntries(names.map((name) => [`${name}.weight`, square])));
   * const { output } = mha.forward({ data: new Float32Array(3 * 8).fill(1), shape: [1, 3, 8] });
   * output.shape; // → [1, 3, 8]
   * mha.dispose();
   * @param {MultiHeadAttentionOptions} options
   * @returns {MultiHeadAttention}
   * @throws {AttentionError} INVALID_OPTION, INVALID_SHAPE, INVALID_DTYPE, DISPOSED
   */
  multiHeadAttention(options) {
    return this.#calls.run('multiHeadAttention', (context) => new MultiHeadAttention(context, this.#tables, options));
  }

  /**
   * A key/value cache: tokens are appended, and queries attend over what it holds.
   *
   * @example
   * const cache = attention.keyValueCache({ numKvHeads: 2, headDim: 32, capacity: 1024, dtype: 'int8' });
   * const token = { data: new Float32Array(2 * 32).fill(1), shape: [1, 2, 1, 32] };
   * cache.append(token, token);
   * cache.append(token, token);
   * const { output } = cache.attend(token); // the newest token, on both
   * [cache.length, output.shape, output.data[0].toFixed(3)]; // → [2, [1, 2, 1, 32], '1.000']
   * cache.dispose();
   * @param {KeyValueCacheOptions} options
   * @returns {KeyValueCache}
   * @throws {AttentionError} INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  keyValueCache(options) {
    return this.#calls.run('keyValueCache', (context) => new KeyValueCache(context, options));
  }

  /** Lets go of the whole memory; tensors and weights in it can't be used any more. Twice is harmless. */
  dispose() {
    this.#calls.backend.dispose();
  }

  /** `using` disposes by this name. */
  [Symbol.dispose]() {
    this.dispose();
  }
}

hideWithoutDispose(Attention);

/**
 * Leaves out what was not asked for.
 * @param {{ output: Result | null, weights: unknown, lse: unknown }} results
 */
function present({ output, weights, lse }) {
  /** @type {Record<string, unknown>} */
  const result = { output };
  if (weights) result.weights = weights;
  if (lse) result.lse = lse;
  return result;
}
