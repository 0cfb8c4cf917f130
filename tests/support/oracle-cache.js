// The cache in float64: what each type keeps of a value, by the definitions of the formats, and attention over all
// tokens ever appended, with the ring's rule as a mask.
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from './float16.js';
import { attention } from './oracle.js';
import { elements, slice, valuesOf } from './tensors.js';

export const cacheTypes = ['float32', 'float16', 'bfloat16', 'int8', 'q8_0', 'q4_0'];
const f32 = Math.fround;
const kBlock = 32;

/** Halves go away from 0. */
const roundAway = (x) => Math.sign(x) * Math.floor(Math.abs(x) + 0.5);

/** The value of largest magnitude, the first of several. */
const extreme = (x) => x.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most));

/** Each quantises some values with one scale, in float32 as ggml does, and gives back what a reader gets. */
const quantisers = {
  int8(x) {
    const d = f32(Math.abs(extreme(x)) / 127);
    return x.map((value) => (d === 0 ? 0 : d * roundAway(f32(value / d))));
  },
  q8_0(x) {
    const d = f32(Math.abs(extreme(x)) / 127);
    return x.map((value) => (d === 0 ? 0 : fromFloat16(toFloat16(d)) * roundAway(f32(value / d))));
  },
  q4_0(x) {
    const d = f32(extreme(x) / -8);
    const number = (value) => Math.min(15, Math.trunc(f32(f32(value / d) + 8.5)));
    return x.map((value) => (d === 0 ? 0 : fromFloat16(toFloat16(d)) * (number(value) - 8)));
  },
};

/** What a cache of this type gives back for a tensor [..., width]. */
export function kept(tensor, type) {
  const values = Float64Array.from(valuesOf(tensor));
  if (type === 'float32') return { data: values, shape: tensor.shape };
  if (type === 'float16') return { data: values.map((x) => fromFloat16(toFloat16(x))), shape: tensor.shape };
  if (type === 'bfloat16') return { data: values.map((x) => fromBfloat16(toBfloat16(x))), shape: tensor.shape };
  const size = type === 'int8' ? tensor.shape.at(-1) : kBlock;
  const data = new Float64Array(values.length);
  for (let at = 0; at < values.length; at += size) {
    data.set(quantisers[type](Array.from(values.subarray(at, at + size))), at);
  }
  return { data, shape: tensor.shape };
}

/**
 * Queries as they meet keys of this type, with the scale in them: beside quantised keys each row is made of whole
 * numbers of 16 bits, in float32.
 */
export function scaledQueries(q, type, scale = 1 / Math.sqrt(q.shape.at(-1))) {
  const D = q.shape.at(-1);
  if (!(type in quantisers)) return { data: Float64Array.from(valuesOf(q), (x) => x * scale), shape: q.shape };
  const data = Float64Array.from(valuesOf(q), (x) => f32(x * f32(scale)));
  for (let at = 0; at < data.length; at += D) {
    const row = data.subarray(at, at + D);
    const most = Math.abs(extreme(row));
    row.forEach((x, d) => {
      row[d] = most === 0 ? 0 : (most / 32767) * roundAway(f32(x * f32(32767 / most)));
    });
  }
  return { data, shape: q.shape };
}

/**
 * Attention of rows that are tokens position … position + Tq − 1 of one item [1, H, Tq, D], over all the item's tokens
 * [1, Hkv, T, D] so far: causal, within the window or among the first tokens.
 */
export function attendAll(q, k, v, { position, window = Infinity, sinkTokens = 0, ...options }) {
  const [Tq, T] = [q.shape[2], k.shape[2]];
  const mask = new Uint8Array(Tq * T);
  for (let i = 0; i < Tq; ++i) {
    for (let j = 0; j < T; ++j) mask[i * T + j] = Number(j < sinkTokens || j > position + i - window);
  }
  const attnMask = { data: mask, shape: [Tq, T] };
  return attention(q, k, v, { isCausal: true, queryOffset: position, attnMask, ...options });
}

/** Tensors of one item each, joined along the batch. */
export function stackItems(parts) {
  const data = new Float64Array(parts.reduce((sum, part) => sum + part.data.length, 0));
  let at = 0;
  for (const part of parts) {
    data.set(part.data, at);
    at += part.data.length;
  }
  return { data, shape: [parts.length, ...parts[0].shape.slice(1)] };
}

/** `attendAll` for each item of a batch of the same length; q are the newest tokens. */
export function attendBatch(q, k, v, options) {
  const items = q.shape[0];
  const position = k.shape[2] - q.shape[2];
  const results = Array.from({ length: items }, (_, b) => {
    const item = (x) => slice(x, 0, b, b + 1);
    return attendAll(item(q), item(k), item(v), { position, ...options });
  });
  return stackItems(results.map(({ output }) => output));
}

/** The root of the mean square of the difference, over that of `want`. */
export function relativeError(got, want) {
  let error = 0;
  let size = 0;
  for (let i = 0; i < elements(want.shape); ++i) {
    error += (got.data[i] - want.data[i]) ** 2;
    size += want.data[i] ** 2;
  }
  return Math.sqrt(error / size);
}
