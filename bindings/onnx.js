// ONNX operators over the package's functions: Attention (opset 23 to 25) and RotaryEmbedding (23).
//
// Names of inputs, outputs and attributes, layouts and defaults are the operators'; the arithmetic is the package's.
// A tensor is { data, shape, dtype? } or a resident Tensor; whole numbers may be BigInt64Array, Int32Array or an array.
// On a backend whose calls return promises, so do these.
import { countOf, dtypeOf, integer, integers, list, optionsOf, sameShape } from './check.js';
import { refuse } from './errors.js';
import { toHalf } from './half.js';
import { Tensor } from './tensor.js';

/** @import { Dtype, TensorData, TensorLike } from './types.js' */

/** @typedef {{ data: TensorData, shape: readonly number[], dtype?: Dtype }} OnnxTensor */

/**
 * @typedef {object} AttentionInputs
 * @property {OnnxTensor} Q [B, H, L, D], or [B, L, H·D] with `q_num_heads`
 * @property {OnnxTensor} K [B, Hkv, S, D], or [B, S, Hkv·D] with `kv_num_heads`
 * @property {OnnxTensor} V [B, Hkv, S, Dv], or [B, S, Hkv·Dv]
 * @property {{ data: Float32Array | Uint8Array | Uint16Array | boolean[], shape: readonly number[], dtype?: string }} [attn_mask]
 *   broadcast from the right to [B, H, L, T]; a last dimension shorter than T hides the keys past it. Bytes: boolean,
 *   true takes part. Floats are added
 * @property {OnnxTensor} [past_key] [B, Hkv, P, D]; T = P + S
 * @property {OnnxTensor} [past_value] [B, Hkv, P, Dv]
 * @property {BigInt64Array | Int32Array | number[] | { data: BigInt64Array | Int32Array | number[] }} [nonpad_kv_seqlen]
 *   (B) valid leading keys of K; not with a past
 *
 * @typedef {object} AttentionAttributes
 * @property {0 | 1 | boolean} [is_causal] default 0. Key j is visible to row i iff j ≤ i + offset; offset is P with a
 *   past, nonpad_kv_seqlen[b] − L with that, 0 otherwise
 * @property {number} [q_num_heads]
 * @property {number} [kv_num_heads]
 * @property {0 | 1 | 2 | 3} [qk_matmul_output_mode] when given, `qk_matmul_output` is returned: scaled scores; after the
 *   softcap; after the masks; after the softmax. It is the one output that costs L·T, so it has to be asked for
 * @property {number} [scale] default 1/√D
 * @property {number} [softcap] default 0 = off
 * @property {1 | 10 | 16} [softmax_precision] accepted and met: sums are in float32 always
 * @property {number} [left_window_size] default −1 = open
 * @property {number} [right_window_size] default −1 = open
 *
 * @typedef {object} AttentionOutputs
 * @property {OnnxTensor} Y in the rank of Q
 * @property {OnnxTensor} [present_key] with a past: [B, Hkv, T, D]
 * @property {OnnxTensor} [present_value] with a past: [B, Hkv, T, Dv]
 * @property {OnnxTensor} [qk_matmul_output] [B, H, L, T]
 */

const kStages = /** @type {const} */ (['scores', 'capped', 'masked', 'weights']);
const kInputs = new Set(['Q', 'K', 'V', 'attn_mask', 'past_key', 'past_value', 'nonpad_kv_seqlen']);
const kAttributes = new Set([
  ...['is_causal', 'kv_num_heads', 'q_num_heads', 'qk_matmul_output_mode', 'scale', 'softcap', 'softmax_precision'],
  ...['left_window_size', 'right_window_size'],
]);

/**
 * The operator Attention.
 * @param {{ scaledDotProductAttention: (...call: any[]) => any }} attention
 * @param {AttentionInputs} inputs
 * @param {AttentionAttributes} [attributes]
 * @returns {any} AttentionOutputs, or a promise of them where the backend's calls return promises
 */
export function onnxAttention(attention, inputs, attributes) {
  const fn = 'onnxAttention';
  const given = readAttributes(fn, optionsOf(fn, attributes, kAttributes));
  const call = readTensors(fn, optionsOf(fn, inputs, kInputs), given);
  const { q, k, v, isPacked, layout, present } = call;
  const options = { layout, ...optionsOfCall(fn, inputs, given, call) };
  return after(attention.scaledDotProductAttention(q, k, v, options), ({ output, weights }) => ({
    Y: isPacked ? joinHeads(output, layout) : output,
    ...present,
    ...(weights && { qk_matmul_output: inType(weights, inputs.Q) }),
  }));
}

/** @param {string} fn @param {Record<string, any>} attributes */
function readAttributes(fn, attributes) {
  const { is_causal: isCausal = 0, qk_matmul_output_mode: mode, softmax_precision: precision = 1 } = attributes;
  if (![0, 1, false, true].includes(isCausal)) refuse('INVALID_OPTION', fn, 'is_causal must be 0 or 1', isCausal);
  if (mode !== undefined) integer(fn, 'qk_matmul_output_mode', mode, 0, 3);
  if (precision === 11) refuse('UNSUPPORTED', fn, 'softmax_precision must be 1, 10 or 16 (no float64 here)', precision);
  if (![1, 10, 16].includes(precision))
    refuse('INVALID_OPTION', fn, 'softmax_precision must be 1, 10 or 16', precision);
  for (const name of ['q_num_heads', 'kv_num_heads']) {
    if (attributes[name] !== undefined) integer(fn, name, attributes[name], 1, 2 ** 31 - 1);
  }
  const { left_window_size: left = -1, right_window_size: right = -1 } = attributes;
  return { ...attributes, isCausal: Boolean(isCausal), mode, windowSize: [left, right] };
}

/**
 * The operands as scaledDotProductAttention takes them. Packed ones are only seen as [B, T, H, D], unless a past is
 * joined to them: that is [B, H, T, D], and so is the present which the operator has to return.
 * @param {string} fn @param {Record<string, any>} inputs @param {Record<string, any>} attributes
 */
function readTensors(fn, inputs, attributes) {
  const { Q, K, V, past_key: pastKey, past_value: pastValue } = inputs;
  for (const [name, tensor] of Object.entries({ Q, K, V })) tensorOf(fn, name, tensor);
  const rank = Q.shape.length;
  if (rank !== 3 && rank !== 4) refuse('INVALID_SHAPE', fn, 'Q must have rank 3 or 4', Q.shape);
  for (const [name, tensor] of Object.entries({ K, V })) {
    if (tensor.shape.length !== rank)
      refuse('INVALID_SHAPE', fn, `${name} must have the rank of Q, ${rank}`, tensor.shape);
  }
  if ((pastKey === undefined) !== (pastValue === undefined)) {
    refuse('INVALID_OPTION', fn, 'past_key and past_value must be given together', pastKey ? 'past_key' : 'past_value');
  }
  if (pastKey && inputs.nonpad_kv_seqlen !== undefined) {
    refuse('INVALID_OPTION', fn, 'nonpad_kv_seqlen must not be given with past_key', 'both');
  }
  const layout = rank === 3 && !pastKey ? 'bthd' : 'bhtd';
  const heads = (/** @type {string} */ name, /** @type {OnnxTensor} */ tensor, /** @type {string} */ attribute) =>
    rank === 3
      ? splitHeads(fn, name, tensor, attribute, attributes[attribute], layout)
      : withHeads(fn, name, tensor, attribute, attributes[attribute]);
  const q = heads('Q', Q, 'q_num_heads');
  let k = heads('K', K, 'kv_num_heads');
  let v = heads('V', V, 'kv_num_heads');
  if (!pastKey) return { q, k, v, layout, isPacked: rank === 3, pastLength: 0 };
  k = joinTokens(fn, 'past_key', pastKey, k);
  v = joinTokens(fn, 'past_value', pastValue, v);
  const present = { present_key: k, present_value: v };
  return { q, k, v, layout, isPacked: rank === 3, pastLength: pastKey.shape[2], present };
}

/**
 * @param {string} fn @param {Record<string, any>} inputs @param {Record<string, any>} attributes
 * @param {{ q: OnnxTensor, k: OnnxTensor, layout: string, pastLength: number }} call
 */
function optionsOfCall(fn, inputs, attributes, { q, k, layout, pastLength }) {
  const tokens = layout === 'bthd' ? 1 : 2;
  const [B, L, T] = [q.shape[0], q.shape[tokens], k.shape[tokens]];
  const { isCausal, windowSize, mode, scale, softcap } = attributes;
  const keyLengths = readLengths(fn, inputs.nonpad_kv_seqlen, B, T);
  const mask = inputs.attn_mask;
  return {
    scale,
    softcap,
    isCausal,
    windowSize,
    queryOffset: keyLengths ? keyLengths.map((length) => length - L) : pastLength,
    ...(keyLengths && { keyLengths }),
    ...(mask && { attnMask: readMask(fn, mask, T) }),
    ...(mode !== undefined && { needWeights: { stage: kStages[mode] } }),
  };
}

/** @param {string} fn @param {any} lengths @param {number} B @param {number} T */
function readLengths(fn, lengths, B, T) {
  if (lengths === undefined) return null;
  const data = lengths.data ?? lengths;
  const numbers = data instanceof BigInt64Array ? Array.from(data, Number) : data;
  return integers(fn, 'nonpad_kv_seqlen', numbers, B, 0, T);
}

/**
 * The mask with as many keys as there are: those past its last dimension are hidden.
 * @param {string} fn @param {any} mask @param {number} T
 */
function readMask(fn, mask, T) {
  const { data, shape, dtype } = mask;
  if (!Array.isArray(shape) || shape.length === 0) {
    refuse('INVALID_SHAPE', fn, 'attn_mask must be { data, shape } of rank 1 to 4', shape);
  }
  const length = shape[shape.length - 1];
  if (length >= T) return mask;
  const isBoolean = data instanceof Uint8Array || Array.isArray(data);
  const type = isBoolean ? 'boolean' : dtypeOf(fn, 'attn_mask.data', data, dtype);
  const rows = countOf(fn, 'attn_mask.shape', shape.slice(0, -1));
  const result = isBoolean ? new Uint8Array(rows * T) : emptyLike(data, rows * T).fill(hidden(data, type));
  for (let row = 0; row < rows; ++row) for (let j = 0; j < length; ++j) result[row * T + j] = data[row * length + j];
  return { data: result, shape: [...shape.slice(0, -1), T], ...(!isBoolean && { dtype: type }) };
}

/** −∞ as an element of `data`. @param {TensorData} data @param {string} type */
function hidden(data, type) {
  if (!(data instanceof Uint16Array)) return Number.NEGATIVE_INFINITY;
  return type === 'bfloat16' ? 0xff80 : 0xfc00;
}

/** @param {string} fn @param {string} name @param {any} tensor */
function tensorOf(fn, name, tensor) {
  if (!tensor || !Array.isArray(tensor.shape)) {
    refuse('INVALID_SHAPE', fn, `${name} must be a Tensor or an object { data, shape }`, tensor);
  }
  if (tensor instanceof Tensor) return;
  dtypeOf(fn, `${name}.data`, tensor.data, tensor.dtype);
  const count = countOf(fn, `${name}.shape`, tensor.shape);
  if (tensor.data.length !== count) {
    refuse(
      'INVALID_SHAPE',
      fn,
      `${name}.data must have the ${count} elements of ${list(tensor.shape)}`,
      tensor.data.length,
    );
  }
}

/**
 * A rank-4 operand; a number of heads that is given besides must be its own.
 * @param {string} fn @param {string} name @param {OnnxTensor} tensor @param {string} attribute @param {number | undefined} heads
 */
function withHeads(fn, name, tensor, attribute, heads) {
  if (heads !== undefined && heads !== tensor.shape[1]) {
    refuse('INVALID_SHAPE', fn, `${name} must have the ${heads} heads of ${attribute}`, tensor.shape);
  }
  return tensor;
}

/**
 * [B, T, H·D] as [B, T, H, D], the same data; or as [B, H, T, D], a copy.
 * @param {string} fn @param {string} name @param {OnnxTensor} tensor @param {string} attribute
 * @param {number | undefined} heads @param {string} layout
 * @returns {OnnxTensor}
 */
function splitHeads(fn, name, tensor, attribute, heads, layout) {
  if (heads === undefined) refuse('INVALID_OPTION', fn, `${attribute} must be given for inputs of rank 3`, heads);
  const [B, T, width] = tensor.shape;
  if (width % heads !== 0) {
    refuse('INVALID_SHAPE', fn, `${name}.shape[2] must be a multiple of ${attribute}, ${heads}`, tensor.shape);
  }
  const seen = { data: tensor.data, shape: [B, T, heads, width / heads], dtype: tensor.dtype };
  return layout === 'bthd' ? seen : swapHeadsAndTokens(seen);
}

/** The way back for the result: [B, L, H·Dv]. @param {OnnxTensor} output @param {string} layout @returns {OnnxTensor} */
function joinHeads(output, layout) {
  const { data, shape, dtype } = layout === 'bthd' ? output : swapHeadsAndTokens(output);
  const [B, L, H, Dv] = shape;
  return { data, shape: [B, L, H * Dv], ...(dtype && { dtype }) };
}

/** [B, M, N, D] to [B, N, M, D]. @param {OnnxTensor} tensor @returns {OnnxTensor} */
function swapHeadsAndTokens({ data, shape: [B, M, N, D], dtype }) {
  const result = emptyLike(data, data.length);
  for (let b = 0; b < B; ++b)
    for (let m = 0; m < M; ++m)
      for (let n = 0; n < N; ++n) {
        const from = ((b * M + m) * N + n) * D;
        result.set(/** @type {any} */ (data.subarray(from, from + D)), ((b * N + n) * M + m) * D);
      }
  return { data: result, shape: [B, N, M, D], ...(dtype && { dtype }) };
}

/**
 * The present: `past`, then `now`, along the tokens of [B, H, T, D].
 * @param {string} fn @param {string} name @param {OnnxTensor} past @param {OnnxTensor} now
 * @returns {OnnxTensor}
 */
function joinTokens(fn, name, past, now) {
  tensorOf(fn, name, past);
  const [B, H, S, D] = now.shape;
  const P = past.shape[2];
  if (!sameShape(past.shape, [B, H, P, D])) {
    refuse('INVALID_SHAPE', fn, `${name} must have shape [B, Hkv, P, D] = ${list([B, H, P ?? 0, D])}`, past.shape);
  }
  const dtype = dtypeOf(fn, `${name}.data`, past.data, past.dtype);
  if (dtype !== dtypeOf(fn, 'K or V', now.data, now.dtype)) {
    refuse('INVALID_DTYPE', fn, `${name} must have the type of what it is joined to`, dtype);
  }
  const data = emptyLike(now.data, B * H * (P + S) * D);
  for (let head = 0; head < B * H; ++head) {
    const to = head * (P + S) * D;
    data.set(/** @type {any} */ (past.data.subarray(head * P * D, (head + 1) * P * D)), to);
    data.set(/** @type {any} */ (now.data.subarray(head * S * D, (head + 1) * S * D)), to + P * D);
  }
  return { data, shape: [B, H, P + S, D], ...(now.dtype && { dtype: now.dtype }) };
}

/** Float32 values in the type of another tensor. @param {OnnxTensor} tensor @param {OnnxTensor} like @returns {OnnxTensor} */
function inType({ data, shape }, like) {
  if (like.data instanceof Float32Array) return { data, shape };
  const result = emptyLike(like.data, data.length);
  const dtype = like.dtype ?? 'float16';
  const isBits = result instanceof Uint16Array;
  for (let n = 0; n < data.length; ++n) result[n] = isBits ? toHalf(data[n], dtype) : data[n];
  return { data: result, shape, ...(like.dtype && { dtype }) };
}

/** @param {TensorData} data @param {number} count @returns {TensorData} */
function emptyLike(data, count) {
  return new /** @type {any} */ (data).constructor(count);
}

/**
 * @template T, R
 * @param {T | Promise<T>} value
 * @param {(value: T) => R} then
 * @returns {R | Promise<R>}
 */
function after(value, then) {
  return value instanceof Promise ? value.then(then) : then(value);
}
