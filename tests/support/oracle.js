// Attention in float64, written from the formulas and from no kernel: every test's yardstick.
//
//   x = scale <q, k>  ->  softcap  ->  + ALiBi + additive mask  ->  hard masks  ->  softmax with sink  ->  times V
//
// Takes a call as the package does (ranks, layouts and options of scaledDotProductAttention) and assumes it is valid.
import { elements, transpose, valuesOf } from './tensors.js';

/**
 * @returns `{ output, weights, lse, stage(name) }`: tensors of float64; `weights` as `options.needWeights` selects them,
 * in full by default; `stage('scores' | 'capped' | 'masked' | 'weights')` are the logits on their way, [B, H, Tq, Tk].
 */
export function attention(q, k, v, options = {}) {
  const call = readCall(q, k, v, options);
  const { B, H, Tq, Tk, Dv } = call;
  const output = new Float64Array(B * H * Tq * Dv);
  const lse = new Float64Array(B * H * Tq);
  const stages = {};
  for (const name of ['scores', 'capped', 'masked', 'weights']) stages[name] = new Float64Array(B * H * Tq * Tk);
  for (let b = 0; b < B; ++b)
    for (let h = 0; h < H; ++h)
      for (let i = 0; i < Tq; ++i) {
        const row = (b * H + h) * Tq + i;
        const result = attendRow(call, b, h, i);
        output.set(result.output, row * Dv);
        lse[row] = result.lse;
        for (const name in stages) stages[name].set(result[name], row * Tk);
      }
  const full = (name) => ({ data: stages[name], shape: [B, H, Tq, Tk] });
  return {
    output: likeQuery({ data: output, shape: [B, H, Tq, Dv] }, q, options.layout),
    lse: withoutLeadingOnes({ data: lse, shape: [B, H, Tq] }, 4 - q.shape.length),
    weights: select(full(options.needWeights?.stage ?? 'weights'), options.needWeights, 4 - q.shape.length),
    stage: (name) => full(name),
  };
}

/** One row of the formula, line by line. */
function attendRow(call, b, h, i) {
  const { Tk, Dv, softcap, sinks } = call;
  const scores = new Float64Array(Tk);
  const capped = new Float64Array(Tk);
  const masked = new Float64Array(Tk).fill(Number.NEGATIVE_INFINITY);
  const weights = new Float64Array(Tk);
  const output = new Float64Array(Dv);
  const sink = sinks ? sinks[h] : Number.NEGATIVE_INFINITY;
  const visible = [];
  let maximum = sink;
  for (let j = 0; j < Tk; ++j) {
    scores[j] = call.scale * call.dot(b, h, i, j);
    capped[j] = softcap ? softcap * Math.tanh(scores[j] / softcap) : scores[j];
    if (!call.isVisible(b, h, i, j)) continue;
    visible.push(j);
    masked[j] = capped[j] + call.bias(b, h, i, j);
    maximum = Math.max(maximum, masked[j]);
  }
  if (visible.length === 0 || maximum === Number.NEGATIVE_INFINITY) {
    return { output, weights, masked, capped, scores, lse: sink };
  }
  let sum = Math.exp(sink - maximum);
  for (const j of visible) sum += Math.exp(masked[j] - maximum);
  for (const j of visible) {
    weights[j] = Math.exp(masked[j] - maximum) / sum;
    for (let d = 0; d < Dv; ++d) output[d] += weights[j] * call.value(b, h, j, d);
  }
  return { output, weights, masked, capped, scores, lse: maximum + Math.log(sum) };
}

function readCall(q, k, v, options) {
  const [Q, K, V] = [q, k, v].map((tensor) => readHeads(tensor, options.layout));
  const sizes = { B: Q.B, H: Q.H, Hkv: K.H, Tq: Q.T, Tk: K.T, D: Q.D, Dv: V.D };
  const group = sizes.H / sizes.Hkv;
  const position = positions(options, sizes);
  const mask = readMask(options.attnMask, sizes);
  const slopes = options.alibiSlopes === true ? alibiSlopes(sizes.H) : options.alibiSlopes;
  const [left, right] = options.windowSize ?? [-1, -1];

  function dot(b, h, i, j) {
    const qRow = Q.row(b, h, i);
    const kRow = K.row(b, Math.floor(h / group), j);
    let sum = 0;
    for (let d = 0; d < sizes.D; ++d) sum += Q.values[qRow + d] * K.values[kRow + d];
    return sum;
  }

  function isVisible(b, h, i, j) {
    const p = position(b, i);
    if (options.queryLengths && i >= options.queryLengths[b]) return false;
    if (options.keyLengths && j >= options.keyLengths[b]) return false;
    if (options.isCausal && j > p) return false;
    if (left >= 0 && j < p - left) return false;
    if (right >= 0 && j > p + right) return false;
    return mask.isVisible(b, h, i, j);
  }

  return {
    ...sizes,
    scale: options.scale ?? 1 / Math.sqrt(sizes.D),
    softcap: options.softcap ?? 0,
    sinks: options.sinks,
    dot,
    isVisible,
    bias: (b, h, i, j) => mask.bias(b, h, i, j) - (slopes ? slopes[h] * Math.abs(position(b, i) - j) : 0),
    value: (b, h, j, d) => V.values[V.row(b, Math.floor(h / group), j) + d],
  };
}

/** Where the rows of [B, H, T, D] start, for ranks 2 to 4 and both layouts. */
function readHeads(tensor, layout) {
  const values = valuesOf(tensor);
  const shape = [...new Array(4 - tensor.shape.length).fill(1), ...tensor.shape];
  if (layout === 'bthd' && tensor.shape.length === 4) {
    const [B, T, H, D] = shape;
    return { values, B, H, T, D, row: (b, h, t) => ((b * T + t) * H + h) * D };
  }
  const [B, H, T, D] = shape;
  return { values, B, H, T, D, row: (b, h, t) => ((b * H + h) * T + t) * D };
}

/** The position of query row i of item b among the keys. */
function positions({ queryOffset, isCausal, queryLengths, keyLengths }, { Tq, Tk }) {
  if (typeof queryOffset === 'number') return (_, i) => i + queryOffset;
  if (queryOffset) return (b, i) => i + queryOffset[b];
  if (isCausal !== 'bottom-right') return (_, i) => i;
  return (b, i) => i + (keyLengths ? keyLengths[b] : Tk) - (queryLengths ? queryLengths[b] : Tq);
}

/** Broadcast from the right to [B, H, Tq, Tk]. */
function readMask(attnMask, { Tq, Tk }) {
  if (!attnMask) return { isVisible: () => true, bias: () => 0 };
  const { data, shape } = attnMask.shape ? attnMask : { data: attnMask, shape: [Tq, Tk] };
  const sizes = [...new Array(4 - shape.length).fill(1), ...shape];
  const [sb, sh, si, sj] = sizes.map((size, axis) => (size === 1 ? 0 : elements(sizes.slice(axis + 1))));
  const at = (b, h, i, j) => data[b * sb + h * sh + i * si + j * sj];
  if (data instanceof Float32Array) {
    return { isVisible: (b, h, i, j) => at(b, h, i, j) !== Number.NEGATIVE_INFINITY, bias: at };
  }
  return { isVisible: (b, h, i, j) => Boolean(at(b, h, i, j)), bias: () => 0 };
}

/** The published slopes: powers of 2^(-8/n) for n heads, interleaved with those of 2n when n isn't a power of two. */
export function alibiSlopes(heads) {
  const k = 2 ** Math.floor(Math.log2(heads));
  return Array.from({ length: heads }, (_, h) =>
    h < k ? 2 ** ((-8 * (h + 1)) / k) : 2 ** ((-4 * (2 * (h - k) + 1)) / k),
  );
}

function likeQuery(output, q, layout) {
  if (layout === 'bthd' && q.shape.length === 4) return transpose(output, [0, 2, 1, 3]);
  return withoutLeadingOnes(output, 4 - q.shape.length);
}

function withoutLeadingOnes(tensor, count) {
  return { ...tensor, shape: tensor.shape.slice(count) };
}

/** What `needWeights` selects of the full weights: everything, or chosen heads and rows; or the mean over the heads. */
function select(weights, choice, missingAxes) {
  const [B, H, Tq, Tk] = weights.shape;
  const heads = choice?.heads ?? Array.from({ length: H }, (_, h) => h);
  const rows = choice?.rows ?? Array.from({ length: Tq }, (_, i) => i);
  const wantsMean = choice === 'mean' || choice?.mean;
  const matrix = rows.length * Tk;
  const copies = wantsMean ? 1 : heads.length;
  const chosen = new Float64Array(B * copies * matrix);
  for (let b = 0; b < B; ++b)
    for (const [n, h] of heads.entries())
      for (const [r, i] of rows.entries())
        for (let j = 0; j < Tk; ++j) {
          const to = (b * copies + (wantsMean ? 0 : n)) * matrix + r * Tk + j;
          chosen[to] += weights.data[((b * H + h) * Tq + i) * Tk + j] / (wantsMean ? heads.length : 1);
        }
  if (wantsMean) return withoutLeadingOnes({ data: chosen, shape: [B, rows.length, Tk] }, Math.min(missingAxes, 1));
  return withoutLeadingOnes({ data: chosen, shape: [B, heads.length, rows.length, Tk] }, missingAxes);
}

/** Packed sequences [sum T, H, D]: each attended by itself. */
export function varlenAttention(q, k, v, { cuSeqlensQ, cuSeqlensK, queryOffset, ...options }) {
  const [total, H] = q.shape;
  const Dv = v.shape[2];
  const output = { data: new Float64Array(total * H * Dv), shape: [total, H, Dv] };
  const lse = { data: new Float64Array(H * total), shape: [H, total] };
  const weights = [];
  for (let s = 0; s + 1 < cuSeqlensQ.length; ++s) {
    const part = attention(
      sequence(q, cuSeqlensQ[s], cuSeqlensQ[s + 1]),
      sequence(k, cuSeqlensK[s], cuSeqlensK[s + 1]),
      sequence(v, cuSeqlensK[s], cuSeqlensK[s + 1]),
      { ...options, queryOffset: ArrayBuffer.isView(queryOffset) ? queryOffset[s] : queryOffset },
    );
    const Tq = cuSeqlensQ[s + 1] - cuSeqlensQ[s];
    output.data.set(transpose(part.output, [1, 0, 2]).data, cuSeqlensQ[s] * H * Dv);
    for (let h = 0; h < H; ++h) lse.data.set(part.lse.data.subarray(h * Tq, (h + 1) * Tq), h * total + cuSeqlensQ[s]);
    weights.push(part.weights);
  }
  return { output, lse, weights };
}

/** Tokens `from` to `to` of a packed tensor, as [H, T, D]. */
function sequence({ data, shape, dtype }, from, to) {
  const size = elements(shape.slice(1));
  const part = { data: data.slice(from * size, to * size), shape: [to - from, ...shape.slice(1)], dtype };
  return transpose(part, [1, 0, 2]);
}

/** Joins attention over disjoint keys: outputs [..., Dv] weighted by e^lse. */
export function mergeAttention(parts, { sinks } = {}) {
  const { shape } = parts[0].output;
  const Dv = shape.at(-1);
  const Tq = shape.at(-2);
  const H = shape.at(-3) ?? 1;
  const output = new Float64Array(elements(shape));
  const lse = new Float64Array(elements(shape.slice(0, -1)));
  for (let row = 0; row < lse.length; ++row) {
    const sink = sinks ? sinks[Math.floor(row / Tq) % H] : Number.NEGATIVE_INFINITY;
    const logits = parts.map((part) => part.lse.data[row]);
    const maximum = Math.max(sink, ...logits);
    lse[row] = maximum;
    if (maximum === Number.NEGATIVE_INFINITY) continue;
    const powers = logits.map((logit) => Math.exp(logit - maximum));
    const sum = powers.reduce((a, b) => a + b, Math.exp(sink - maximum));
    lse[row] = maximum + Math.log(sum);
    for (const [n, part] of parts.entries())
      if (powers[n] > 0)
        for (let d = 0; d < Dv; ++d) output[row * Dv + d] += (powers[n] / sum) * part.output.data[row * Dv + d];
  }
  return { output: { data: output, shape }, lse: { data: lse, shape: shape.slice(0, -1) } };
}
