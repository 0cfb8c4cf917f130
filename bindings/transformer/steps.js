// The steps of a model on wasm: each fills one struct of attention.h and calls the module. Those of webgpu/steps.js do the
// same on the GPU; a pass knows the difference only by what a Place is, which it never looks into.
import { attentionFields } from '../attention-fields.js';
import { Frame, pointerOf } from '../frame.js';
import { typeNumber } from '../memory.js';
import { bitsOf } from '../structs.js';
import { Resident } from '../tensor.js';
import { storeTokens } from '../wasm-cache.js';

/** @import { AttentionCall } from '../check-attention.js' */
/** @import { AppendCall, CacheState } from '../check-cache.js' */
/** @import { Operand } from '../check.js' */
/** @import { Storage } from '../tensor.js' */
/** @import { Dtype, Float32Result } from '../types.js' */
/** @import { WasmBackend } from '../wasm-backend.js' */
/** @import { ModelConfig } from './config.js' */
/** @import { LinearPart, NormPart } from './weights.js' */

/** Where something stands in memory: an address; on webgpu a part of a buffer. 0: nowhere. @typedef {number} Place */

/** What an attention call of a pass needs, made once for all layers of its kind. @typedef {{ fields: Record<string, number>, weightsShape: readonly number[] }} Prepared */

/** @param {WasmBackend} backend of either kind @returns {Steps} */
export const stepsOf = (backend) => /** @type {any} */ (backend).steps ?? new Steps(backend);

const kFloat = 4;

/** Rows, and multiply-adds, of a slice at least. */
const [kRows, kSlice] = [64, 2 ** 26];

export class Steps {
  #backend;

  /** @param {WasmBackend} backend */
  constructor(backend) {
    this.#backend = backend;
  }

  /** @param {Record<string, number>} fields in their order @returns {number} */
  #fill(fields) {
    this.#backend.pulse?.();
    return this.#backend.memory.fill(fields);
  }

  /** A block of memory for a pass, whose places go into `fields`. @param {string} fn @param {Record<string, number>} fields */
  frame(fn, fields) {
    return new Frame(this.#backend, fn, fields);
  }

  /** @param {Place} place @param {number} floats behind it @returns {Place} */
  at(place, floats) {
    return place + floats * kFloat;
  }

  /** @param {Storage} storage @param {Dtype} _dtype @returns {Place} */
  tensorAt(storage, _dtype) {
    return pointerOf(storage);
  }

  /** @param {Storage} storage of packed weights @returns {{ packed: Place, bias: Place }} */
  linearAt(storage) {
    const { pointer, bias = 0 } = /** @type {Storage & { pointer: number, bias?: number }} */ (storage);
    return { packed: pointer, bias };
  }

  /** A resident float32 copy. @param {string} fn @param {Operand} given */
  widened(fn, given) {
    const backend = this.#backend;
    const narrow = given.data ? backend.tensor(fn, given.data, given) : backend.keep(fn, given);
    try {
      const wide = backend.tensor(fn, undefined, { ...given, dtype: 'float32', isFloat16Array: false });
      const [from, to] = [narrow, wide].map((tensor) => pointerOf(Resident.storageOf(tensor, backend, fn, 'weights')));
      backend.module._convert(from, typeNumber(given.dtype), to, 0, given.count);
      return wide;
    } finally {
      narrow.dispose();
    }
  }

  /** @param {Record<'T' | 'width' | 'vocabulary' | 'type' | 'table' | 'packed' | 'tokens' | 'positions' | 'out', number>} fields */
  embedding({ T, width, vocabulary, type, table, packed, tokens, positions, out }) {
    const fields = { T, width, vocabulary, type, table, packed, tokens, positions, out };
    this.#backend.module._embedding(this.#fill(fields));
  }

  /** @param {number} rows @param {number} width @param {ModelConfig} config @param {number} x @param {NormPart} part @param {number} out */
  norm(rows, width, { norm: kind, epsilon }, x, { weight, bias }, out) {
    this.#backend.module._norm(this.#fill({ rows, width, kind, epsilon: bitsOf(epsilon), x, weight, bias, out }));
  }

  /**
   * In place, on heads that stand side by side in rows, `row` floats apart.
   * @param {number} T @param {number} row @param {number} heads @param {number} headDim @param {ModelConfig} config
   * @param {number} x @param {number} weight
   */
  headNorm(T, row, heads, headDim, config, x, weight) {
    for (let t = 0; t < T; ++t) {
      const at = this.at(x, t * row);
      this.norm(heads, headDim, config, at, { weight, bias: 0 }, at);
    }
  }

  /**
   * out [M, N] = x [M, K] · weightᵀ + bias + residual
   * @param {number} M @param {LinearPart} part @param {number} x @param {number} out
   * @param {number} residual 0: none; may be `out` @param {number} scratch
   */
  linear(M, part, x, out, residual, scratch) {
    const { N, K } = part;
    // In a worker a long product looks now and then whether it shall go on. Few rows would go to another kernel.
    const slice = this.#backend.pulse ? Math.max(kRows, Math.ceil(kSlice / (N * K))) : M;
    for (let row = 0, rows = 0; row < M; row += rows) {
      rows = M - row < 2 * slice ? M - row : slice;
      const [from, to] = [row * K * 4, row * N * 4];
      const fields = this.#linearFields(rows, part, x + from, out + to, residual && residual + to, scratch);
      this.#backend.module._linear(this.#fill(fields));
    }
  }

  /** @param {number} M @param {LinearPart} part @param {number} x @param {number} out @param {number} residual @param {number} scratch */
  #linearFields(M, { N, K, packed, bias }, x, out, residual, scratch) {
    return { M, N, K, x_row: K, out_row: N, x, weight: 0, packed, bias, residual, out, scratch };
  }

  /** Bytes that any `linear` of so many rows needs. @param {number} M @param {number} N the largest @param {readonly number[]} widths every K */
  linearScratch(M, N, widths) {
    const bytes = (/** @type {number} */ K) => {
      const fields = this.#linearFields(M, { N, K, packed: 0, bias: 0 }, 0, 0, 1, 0);
      return this.#backend.module._linearScratch(this.#fill(fields));
    };
    return Math.max(...widths.map(bytes));
  }

  /**
   * Rotates heads that stand side by side, in place.
   * @param {number} T @param {number} H @param {number} D @param {number} rotary @param {number} x
   * @param {number} token distance between tokens @param {number} cos @param {number} sin
   */
  rope(T, H, D, rotary, x, token, cos, sin) {
    // biome-ignore format: a plain literal, because spreads would cost more than the step
    const fields = {
      B: 1, H, T, D, rotary, style: 1, type: 0, x, out: x, x_batch: 0, x_head: D, x_token: token,
      out_batch: 0, out_head: D, out_token: token, cos, sin, table_batch: 0,
    };
    this.#backend.module._rope(this.#fill(fields));
  }

  /** @param {Frame} frame @param {AppendCall} call */
  prepareAppend(frame, call) {
    frame.input('first', call.first);
  }

  /** @param {AppendCall} call @param {Record<string, Place>} at @param {Place} k @param {Place} v */
  append(call, at, k, v) {
    storeTokens(this.#backend, call, { k, v, first: at.first, length: 0 });
  }

  /**
   * Places what the attention of a kind of layer needs. Lists are the same for all kinds; but where rows see everything
   * there is no offset.
   * @param {Frame} frame @param {Record<string, Place>} at @param {AttentionCall} call @returns {Prepared}
   */
  prepare(frame, at, call) {
    const { weights, shared } = call;
    if (at.offset === 0) frame.input('offset', shared.offset);
    if (weights && at.weights === 0) {
      frame.input('heads', weights.heads);
      frame.input('rows', weights.rows);
      frame.place('weights', weights.count * kFloat);
    }
    return { fields: attentionFields(call), weightsShape: weights?.shape ?? [] };
  }

  /** Bytes. @param {Prepared} prepared @param {Record<string, Place>} at @returns {number} */
  attentionScratch({ fields }, at) {
    return this.#backend.module._attentionScratch(this.#fill({ ...fields, weights: at.weights }));
  }

  /**
   * Keys and values stand at k and v, or in a cache.
   * @param {Prepared} prepared @param {Record<string, Place>} at @param {Place} k @param {Place} v
   * @param {CacheState | null} state @param {boolean} isKept whether the weights are returned
   * @returns {Float32Result | null}
   */
  attention({ fields, weightsShape }, at, k, v, state, isKept) {
    fields.q = at.qkv;
    fields.out = at.mixed;
    fields.k = k;
    fields.v = v;
    fields.offset = at.offset;
    fields.weights = isKept ? at.weights : 0;
    fields.heads = at.heads;
    fields.rows = at.rows;
    fields.scratch = at.scratch;
    if (state) {
      const { keys, values, keyScales, valueScales } = state.storage;
      fields.k = pointerOf(keys);
      fields.v = pointerOf(values);
      fields.k_scale = keyScales ? pointerOf(keyScales) : 0;
      fields.v_scale = valueScales ? pointerOf(valueScales) : 0;
    }
    this.#backend.module._attention(this.#fill(fields));
    return isKept ? this.read('Transformer.forward', at.weights, weightsShape) : null;
  }

  /** @param {{ count: number, kind: number, x: number, gate: number, out: number }} fields */
  activation(fields) {
    this.#backend.module._activation(this.#fill(fields));
  }

  /** Zeros in `count` floats of each of so many rows, `stride` apart. @param {number} at @param {number} rows @param {number} count @param {number} stride */
  clear(at, rows, count, stride) {
    const { f32 } = this.#backend.memory.heap;
    for (let row = 0; row < rows; ++row) {
      const first = (at >>> 2) + row * stride;
      f32.fill(0, first, first + count);
    }
  }

  /**
   * A copy of heads that stand side by side in rows, `stride` floats apart, as [heads, T, D].
   * @param {number} at @param {number} heads @param {number} T @param {number} D @param {number} stride
   * @returns {Float32Result}
   */
  heads(at, heads, T, D, stride) {
    const { f32 } = this.#backend.memory.heap;
    const data = new Float32Array(heads * T * D);
    for (let head = 0; head < heads; ++head) {
      for (let t = 0; t < T; ++t) {
        const first = (at >>> 2) + t * stride + head * D;
        data.set(f32.subarray(first, first + D), (head * T + t) * D);
      }
    }
    return { data, shape: [heads, T, D], dtype: 'float32' };
  }

  /** A copy of floats. @param {string} fn @param {number} at @param {readonly number[]} shape @returns {Float32Result} */
  read(fn, at, shape) {
    const count = shape.reduce((product, size) => product * size, 1);
    const data = /** @type {Float32Array} */ (this.#backend.memory.copyOut(fn, at, 'float32', count));
    return { data, shape: [...shape], dtype: 'float32' };
  }
}
