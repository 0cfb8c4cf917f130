// The steps of a model, by address: each fills one struct of attention.h and calls the module.
import { bitsOf } from '../structs.js';
import { storeTokens } from '../wasm-cache.js';

/** @import { AppendCall } from '../check-cache.js' */
/** @import { Float32Result } from '../types.js' */
/** @import { WasmBackend } from '../wasm-backend.js' */
/** @import { ModelConfig } from './config.js' */
/** @import { LinearPart, NormPart } from './weights.js' */

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

  /** @param {Record<'T' | 'width' | 'vocabulary' | 'type' | 'table' | 'packed' | 'tokens' | 'positions' | 'out', number>} fields */
  embedding({ T, width, vocabulary, type, table, packed, tokens, positions, out }) {
    const fields = { T, width, vocabulary, type, table, packed, tokens, positions, out };
    this.#backend.module._embedding(this.#fill(fields));
  }

  /** @param {number} rows @param {number} width @param {ModelConfig} config @param {number} x @param {NormPart} part @param {number} out */
  norm(rows, width, { norm: kind, epsilon }, x, { weight, bias }, out) {
    this.#backend.module._norm(this.#fill({ rows, width, kind, epsilon: bitsOf(epsilon), x, weight, bias, out }));
  }

  /** In place, on the heads of one token. @param {number} heads @param {number} headDim @param {ModelConfig} config @param {number} x @param {number} weight */
  headNorm(heads, headDim, config, x, weight) {
    this.norm(heads, headDim, config, x, { weight, bias: 0 }, x);
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

  /** Bytes that any `linear` of so many rows needs. @param {number} M @param {number} K the largest of them */
  linearScratch(M, K) {
    const fields = this.#linearFields(M, { N: 1, K, packed: 0, bias: 0 }, 0, 0, 1, 0);
    return this.#backend.module._linearScratch(this.#fill(fields));
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

  /** @param {AppendCall} call @param {{ k: number, v: number, first: number, length: number }} pointers */
  append(call, pointers) {
    storeTokens(this.#backend, call, pointers);
  }

  /** @param {Record<string, number>} fields */
  attention(fields) {
    this.#backend.module._attention(this.#fill(fields));
  }

  /** @param {Record<string, number>} fields @returns {number} */
  attentionScratch(fields) {
    return this.#backend.module._attentionScratch(this.#fill(fields));
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
