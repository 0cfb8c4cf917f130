// The ONNX operator Attention (opset 23 to 25) over scaledDotProductAttention.
import { countOf, dtypeOf, integer, integers, list, optionsOf, sameShape } from './check.js';
import { refuse } from './errors.js';
import {
  after,
  elements,
  emptyLike,
  inType,
  joinHeads,
  numbersOf,
  splitHeads,
  tensorOf,
  withHeads,
} from './onnx-tensors.js';

/** @import { TensorData } from './types.js' */
/** @import { OnnxIntegers, OnnxTensor } from './onnx-tensors.js' */

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
 * @property {OnnxIntegers | { data: OnnxIntegers }} [nonpad_kv_seqlen]
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
const kInputs = ['Q', 'K', 'V', 'attn_mask', 'past_key', 'past_value', 'nonpad_kv_seqlen'];
const kAttributes = [
  ...['is_causal', 'kv_num_heads', 'q_num_heads', 'qk_matmul_output_mode', 'scale', 'softcap', 'softmax_precision'],
  ...['left_window_size', 'right_window_size'],
];

/**
 * The operator Attention.
 *
 * @example
 * const x = { data: new Float32Array(2 * 3 * 4).fill(1), shape: [1, 2, 3, 4] };
 * const { Y } = onnxAttention(attention, { Q: x, K: x, V: x }, { is_causal: 1 });
 * [Y.shape, Y.data[0]]; // → [[1, 2, 3, 4], 1]
 * @template R
 * @param {{ scaledDotProductAttention: (...call: any[]) => R }} attention
 * @param {AttentionInputs} inputs
 * @param {AttentionAttributes} [attributes]
 * @returns {R extends Promise<any> ? Promise<AttentionOutputs> : AttentionOutputs}
 * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, UNSUPPORTED, OUT_OF_MEMORY, DISPOSED
 */
export function onnxAttention(attention, inputs, attributes) {
  const fn = 'onnxAttention';
  const given = readAttributes(fn, optionsOf(fn, attributes, kAttributes));
  const call = readTensors(fn, optionsOf(fn, inputs, kInputs), given);
  const { q, k, v, isPacked, layout, present } = call;
  const options = { layout, ...optionsOfCall(fn, inputs, given, call) };
  return after(attention.scaledDotProductAttention(q, k, v, options), (/** @type {any} */ { output, weights }) => ({
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
  return integers(fn, 'nonpad_kv_seqlen', numbersOf(lengths), B, 0, T);
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
  const [before, added] = [elements(past), elements(now)];
  const data = emptyLike(added, B * H * (P + S) * D);
  for (let head = 0; head < B * H; ++head) {
    const to = head * (P + S) * D;
    data.set(before.subarray(head * P * D, (head + 1) * P * D), to);
    data.set(added.subarray(head * S * D, (head + 1) * S * D), to + P * D);
  }
  return { data, shape: [B, H, P + S, D], ...(now.dtype && { dtype: now.dtype }) };
}
