// The building blocks of models: linear layers, norms and activations.
import { describeLinear, describeParameters } from './check-linear.js';
import { describeGelu, describeNorm, describeSilu } from './check-norm.js';

/** @import { Calls } from './instances.js' */
/** @import { PackedLinear, Tensor } from './tensor.js' */
/** @import { GeluOptions, LayerNormOptions, OutOption, Result, RmsNormOptions, SiluOptions, TensorData, TensorLike } from './types.js' */

/** What an instance has of them. */
export class BuildingBlocks {
  #calls;

  /**
   * @hidden
   * @param {Calls} calls
   */
  constructor(calls) {
    this.#calls = calls;
  }

  /**
   * x · weightᵀ + bias, as PyTorch's linear; plus a residual where one is given.
   *
   * @example
   * const x = { data: Float32Array.of(1, 2), shape: [1, 2] };
   * const weight = { data: Float32Array.of(1, 0, 0, 1, 1, 1), shape: [3, 2] }; // [out, in]
   * [...attention.linear(x, weight, Float32Array.of(0, 0, 10)).data]; // → [1, 2, 13]
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x [..., K]
   * @param {TensorLike | Tensor | PackedLinear} weight [N, K], or what packLinear made of it
   * @param {Float32Array | TensorLike | Tensor | null} [bias] (N); not for a packed weight, which has its own
   * @param {{ residual?: TensorLike | Tensor | null, out?: Tensor | null } | null} [options] residual: [..., N]; may be
   *   `out`, which then is added to
   * @returns {Result<T>} [..., N] in the type of x
   * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  linear(x, weight, bias, options) {
    return this.#calls.run('linear', (context) => {
      const call = describeLinear(context, x, weight, bias, options);
      return /** @type {Result<T>} */ (context.backend.linear(call));
    });
  }

  /**
   * Lays a weight out for `linear` once, to be used many times; it stays in memory until it is disposed of.
   *
   * @example
   * const weight = attention.packLinear({ data: new Float32Array(64 * 32).fill(1), shape: [64, 32] });
   * const y = attention.linear({ data: new Float32Array(3 * 32).fill(1), shape: [3, 32] }, weight);
   * [y.shape, y.data[0]]; // → [[3, 64], 32]
   * weight.dispose();
   * @param {TensorLike | Tensor} weight [N, K]
   * @param {Float32Array | TensorLike | Tensor | null} [bias] (N)
   * @returns {PackedLinear}
   * @throws {AttentionError} INVALID_SHAPE, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  packLinear(weight, bias) {
    return this.#calls.run('packLinear', (context) =>
      context.backend.packLinear(context.fn, describeParameters(context, weight, bias)),
    );
  }

  /**
   * x / √(mean x² + epsilon) · weight over the last axis. Error: 4e-7 of the row's largest result.
   * Source: Zhang and Sennrich (https://arxiv.org/abs/1910.07467).
   *
   * @example
   * const x = { data: Float32Array.of(3, 4), shape: [1, 2] };
   * Array.from(attention.rmsNorm(x).data, (value) => value.toFixed(3)); // → ['0.849', '1.131']
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x of any rank from 1 on
   * @param {RmsNormOptions | null} [options]
   * @returns {Result<T>} of the shape and type of x
   * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  rmsNorm(x, options) {
    return this.#norm('rmsNorm', x, options);
  }

  /**
   * (x − mean) / √(variance + epsilon) · weight + bias over the last axis. Error: 4e-7 of the row's largest result.
   * Source: Ba et al. (https://arxiv.org/abs/1607.06450).
   *
   * @example
   * const x = { data: Float32Array.of(3, 4), shape: [1, 2] };
   * Array.from(attention.layerNorm(x).data, (value) => value.toFixed(3)); // → ['-1.000', '1.000']
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x of any rank from 1 on
   * @param {LayerNormOptions | null} [options]
   * @returns {Result<T>} of the shape and type of x
   * @throws {AttentionError} as rmsNorm
   */
  layerNorm(x, options) {
    return this.#norm('layerNorm', x, options);
  }

  /**
   * e^(x − max) / Σ over the last axis; a row of −∞ alone gives 0. Error: below 1e-6.
   *
   * @example
   * const x = { data: Float32Array.of(0, 0), shape: [1, 2] };
   * [...attention.softmax(x).data]; // → [0.5, 0.5]
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x of any rank from 1 on
   * @param {OutOption | null} [options]
   * @returns {Result<T>} of the shape and type of x
   * @throws {AttentionError} as rmsNorm
   */
  softmax(x, options) {
    return this.#norm('softmax', x, options);
  }

  /**
   * @param {'rmsNorm' | 'layerNorm' | 'softmax'} name @param {unknown} x @param {unknown} options
   * @returns {any}
   */
  #norm(name, x, options) {
    return this.#calls.run(name, (context) => context.backend.norm(describeNorm(context, name, x, options)));
  }

  /**
   * x / 2 · (1 + erf(x / √2)), or its tanh form. Error: below 1e-6 max(1, |x|).
   * Source: Hendrycks and Gimpel (https://arxiv.org/abs/1606.08415).
   *
   * @example
   * const x = { data: Float32Array.of(0, 1), shape: [1, 2] };
   * Array.from(attention.gelu(x).data, (value) => value.toFixed(4)); // → ['0.0000', '0.8413']
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x
   * @param {GeluOptions | null} [options]
   * @returns {Result<T>} of the shape and type of x
   * @throws {AttentionError} as rmsNorm
   */
  gelu(x, options) {
    return this.#calls.run(
      'gelu',
      (context) => /** @type {any} */ (context.backend.activation(describeGelu(context, x, options))),
    );
  }

  /**
   * x / (1 + e^−x), times `gate` where it is given (SwiGLU). Error: below 1e-6 max(1, |x|), times |gate|.
   *
   * @example
   * const x = { data: Float32Array.of(0, 1), shape: [1, 2] };
   * Array.from(attention.silu(x, { gate: x }).data, (value) => value.toFixed(4)); // → ['0.0000', '0.7311']
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x
   * @param {SiluOptions | null} [options]
   * @returns {Result<T>} of the shape and type of x
   * @throws {AttentionError} as rmsNorm
   */
  silu(x, options) {
    return this.#calls.run(
      'silu',
      (context) => /** @type {any} */ (context.backend.activation(describeSilu(context, x, options))),
    );
  }
}
