// The ONNX operator RotaryEmbedding (opset 23) over rope.
import { integer, integers, list, optionsOf, sameShape } from './check.js';
import { refuse } from './errors.js';
import { after, asFloat32, joinHeads, numbersOf, splitHeads, tensorOf, withHeads } from './onnx-tensors.js';

/** @import { OnnxIntegers, OnnxTensor } from './onnx-tensors.js' */

/**
 * @typedef {object} RotaryEmbeddingInputs
 * @property {OnnxTensor} X [B, H, L, D], or [B, L, H·D] with `num_heads`
 * @property {OnnxTensor} cos_cache [positions, R/2] with `position_ids`, else [B, L, R/2]
 * @property {OnnxTensor} sin_cache like `cos_cache`
 * @property {OnnxIntegers | { data: OnnxIntegers }} [position_ids] [B, L]: rows of the caches
 *
 * @typedef {object} RotaryEmbeddingAttributes
 * @property {0 | 1 | boolean} [interleaved] default 0: pairs (n, n + R/2); 1: pairs (2n, 2n + 1)
 * @property {number} [num_heads]
 * @property {number} [rotary_embedding_dim] R; default 0 = D
 */

/** @typedef {{ data: Float32Array, shape: readonly number[] }} Table */

const kInputs = ['X', 'cos_cache', 'sin_cache', 'position_ids'];
const kAttributes = ['interleaved', 'num_heads', 'rotary_embedding_dim'];

/**
 * The operator RotaryEmbedding.
 *
 * @example
 * const X = { data: Float32Array.of(1, 0), shape: [1, 1, 1, 2] };
 * const [cos, sin] = [Math.cos(1), Math.sin(1)].map((value) => ({ data: Float32Array.of(value), shape: [1, 1, 1] }));
 * const { Y } = onnxRotaryEmbedding(attention, { X, cos_cache: cos, sin_cache: sin });
 * Array.from(Y.data, (value) => value.toFixed(2)); // → ['0.54', '0.84']
 * @template R
 * @param {{ rope: (...call: any[]) => R }} attention
 * @param {RotaryEmbeddingInputs} inputs
 * @param {RotaryEmbeddingAttributes} [attributes]
 * @returns {R extends Promise<any> ? Promise<{ Y: OnnxTensor }> : { Y: OnnxTensor }} Y is shaped like X
 * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
 */
export function onnxRotaryEmbedding(attention, inputs, attributes) {
  const fn = 'onnxRotaryEmbedding';
  const { X, cos_cache: cos, sin_cache: sin, position_ids: ids } = optionsOf(fn, inputs, kInputs);
  const given = optionsOf(fn, attributes, kAttributes);
  const { interleaved = 0, num_heads: heads = 0, rotary_embedding_dim: rotary = 0 } = given;
  if (![0, 1, false, true].includes(interleaved)) {
    refuse('INVALID_OPTION', fn, 'interleaved must be 0 or 1', interleaved);
  }
  for (const [name, tensor] of Object.entries({ X, cos_cache: cos, sin_cache: sin })) tensorOf(fn, name, tensor);
  if (!sameShape(sin.shape, cos.shape)) {
    refuse('INVALID_SHAPE', fn, `sin_cache must have the shape of cos_cache, ${list(cos.shape)}`, sin.shape);
  }
  const isPacked = X.shape.length === 3;
  if (!isPacked && X.shape.length !== 4) refuse('INVALID_SHAPE', fn, 'X must have rank 3 or 4', X.shape);
  integer(fn, 'num_heads', heads, 0, 2 ** 31 - 1);
  const layout = isPacked ? 'bthd' : 'bhtd';
  const x = isPacked
    ? splitHeads(fn, 'X', X, 'num_heads', heads || undefined, layout)
    : withHeads(fn, 'X', X, 'num_heads', heads || undefined);
  const [B, L, D] = [x.shape[0], x.shape[isPacked ? 1 : 2], x.shape[3]];
  const R = integer(fn, 'rotary_embedding_dim', rotary, 0, D) || D;
  if (R % 2 !== 0) refuse('INVALID_OPTION', fn, 'rotary_embedding_dim (or D) must be even', R);
  const rows = ids === undefined ? null : readIds(fn, ids, cos, B * L);
  const [cosTable, sinTable] = [cos, sin].map((cache, n) =>
    tableOf(fn, n ? 'sin_cache' : 'cos_cache', cache, rows, [B, L, R / 2]),
  );
  const options = { style: interleaved ? 'interleaved' : 'half', layout, tables: { cos: cosTable, sin: sinTable } };
  return after(attention.rope(x, options), (/** @type {any} */ y) => ({ Y: isPacked ? joinHeads(y, layout) : y }));
}

/** @param {string} fn @param {OnnxIntegers | { data: OnnxIntegers }} ids @param {OnnxTensor} cache @param {number} count */
function readIds(fn, ids, cache, count) {
  return integers(fn, 'position_ids', numbersOf(ids), count, 0, cache.shape[0] - 1);
}

/**
 * The rows of a cache that the tokens take, [B, L, R/2].
 * @param {string} fn @param {string} name @param {OnnxTensor} cache @param {Int32Array | null} rows
 * @param {readonly number[]} shape @returns {Table}
 */
function tableOf(fn, name, cache, rows, shape) {
  const pairs = shape[2];
  const want = rows ? [cache.shape[0], pairs] : shape;
  if (!sameShape(cache.shape, want)) {
    refuse(
      'INVALID_SHAPE',
      fn,
      `${name} must have shape ${rows ? '[positions, R/2]' : '[B, L, R/2]'} = ${list(want)}`,
      cache.shape,
    );
  }
  const values = asFloat32(cache);
  if (!rows) return { data: values, shape };
  const data = new Float32Array(rows.length * pairs);
  for (const [n, row] of rows.entries()) data.set(values.subarray(row * pairs, (row + 1) * pairs), n * pairs);
  return { data, shape };
}
