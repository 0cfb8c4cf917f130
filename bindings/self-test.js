// A few known results, asked of a build before it is used: engines have had SIMD that was wrong without any error.
import { describeAttention } from './check-attention.js';
import { describeLinear } from './check-linear.js';

/** @import { WasmBackend } from './wasm-backend.js' */

const [kTokens, kWidth] = [9, 5]; // more than a tile of rows, and a tail of channels

/**
 * Key j has the logit ln(j + 1) for every query, so its weight is (j + 1) / (1 + … + tokens): the results are quotients
 * of whole numbers, and pass through exp, sums, masks and tails on their way.
 * @param {WasmBackend} backend
 * @returns {string | null} what is wrong
 */
export function selfTest(backend) {
  const context = { fn: 'load', backend };
  /** @param {number} T @param {(t: number, c: number) => number} value */
  const matrix = (T, value) => ({
    data: Float32Array.from({ length: T * kWidth }, (_, i) => value(Math.floor(i / kWidth), i % kWidth)),
    shape: [T, kWidth],
  });
  const k = matrix(kTokens, (t, c) => (Math.log(t + 1) * (c + 1)) / 55); // 55 = 1² + … + 5²
  const v = matrix(kTokens, (t, c) => t + c);
  // All rows take the tiled kernel, one row the one for decoding.
  for (const T of [kTokens, 1]) {
    const q = matrix(T, (_, c) => c + 1);
    const call = describeAttention(context, q, k, v, { isCausal: 'bottom-right', scale: 1 });
    const { data } = /** @type {import('./types.js').Result} */ (backend.attention(call).output);
    /** @param {number} t @param {number} c */
    const want = (t, c) => (2 * (kTokens - T + t)) / 3 + c; // Σ (j + 1) j / Σ (j + 1) over j ≤ t is 2t / 3
    const wrong = differs(data, matrix(T, want).data);
    if (wrong) return `attention ${wrong}`;
  }
  const ones = matrix(kTokens, (t) => t);
  const { data } = backend.linear(describeLinear(context, v, ones, null, null));
  const want = Float32Array.from(
    { length: kTokens ** 2 },
    (_, i) => (Math.floor(i / kTokens) * 5 + 10) * (i % kTokens),
  );
  const wrong = differs(data, want);
  return wrong && `linear ${wrong}`;
}

/** @param {ArrayLike<number>} got @param {ArrayLike<number>} want */
function differs(got, want) {
  for (let i = 0; i < want.length; ++i) {
    // Not the other way round: NaN is wrong, too.
    if (!(Math.abs(got[i] - want[i]) <= 1e-5 * (1 + want[i]))) return `gave ${got[i]} for ${want[i]}`;
  }
  return null;
}
