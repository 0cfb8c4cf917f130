// The layers around attention on the GPU, and merging: which shader, on which parts of the operands.
import { typeNumber } from '../memory.js';
import { activation, activationLayout, kThreads, rope, ropeLayout } from './elementwise.wgsl.js';
import { kRowsOutputs, linear, linearLayout, linearRows } from './linear.wgsl.js';
import { merge, mergeLayout } from './merge.wgsl.js';
import { norm, normLayout } from './norm.wgsl.js';
import { bufferOf, placedPart } from './operands.js';

/** @import { LinearCall, MergeCall } from '../check-linear.js' */
/** @import { ActivationCall, NormCall } from '../check-norm.js' */
/** @import { RopeCall } from '../check-rope.js' */
/** @import { Operand } from '../check.js' */
/** @import { PackedStorage, WebgpuBackend } from './backend.js' */
/** @import { Part } from './operands.js' */

/** Rows of x up to this go through linearRows. */
const kMostLinearRows = 4;

/** @param {WebgpuBackend} backend @param {MergeCall} call */
export function runMerge(backend, { parts, B, H, Tq, Dv, outs, lses, sinks, out, lseShape }) {
  const { recording, operands } = backend;
  const count = B * H * Tq;
  const allOuts = joined(backend, outs, count * Dv);
  const allLses = joined(backend, lses, count);
  const lists = sinks ? operands.window(operands.float32(sinks), 0, H) : { binding: operands.unused, first: 0 };
  const to = operands.target(out);
  const lse = recording.temporary(count * 4);
  recording.dispatch({
    name: 'merge',
    code: merge,
    layout: mergeLayout,
    values: {
      ...{ parts, H, Tq, Dv, q_start: -1, q_length: -1, sinks: sinks ? lists.first : -1, count: count * Dv },
      ...{ part_out: count * Dv, part_lse: count, in_first: 0, in_lse_first: 0, out_first: 0 },
      ...{ out_batch: H * Tq * Dv, out_head: Tq * Dv, out_token: Dv, lse_first: 0, lse_batch: H * Tq, lse_head: Tq },
      ...{ in_lse_batch: H * Tq, in_lse_head: Tq, has_lse: 1 },
    },
    bindings: [
      operands.whole(allOuts),
      operands.whole(allLses),
      lists.binding,
      { ...operands.whole(to.buffer), isWritten: true },
      { buffer: lse, isWritten: true },
    ],
    groups: Math.ceil((count * Dv) / kThreads),
  });
  return {
    output: operands.result(out, to),
    lse: operands.fresh({ buffer: lse, first: 0, dtype: 'float32' }, { shape: lseShape, count }),
  };
}

/** Operands of `count` elements each as float32, one after the other. @param {WebgpuBackend} backend @param {Operand[]} list @param {number} count */
function joined({ operands, recording }, list, count) {
  const [one] = list;
  if (list.length === 1 && one.storage && one.start === 0 && one.dtype === 'float32') return bufferOf(one.storage);
  const joined = recording.temporary(list.length * count * 4);
  list.forEach((operand, n) => {
    operands.convert(operands.part(operand), { buffer: joined, first: n * count, dtype: 'float32' }, count);
  });
  return joined;
}

/** @param {WebgpuBackend} backend @param {RopeCall} call */
export function runRope(backend, { H, T, D, rotary, style, x, out, strides, cos, sin, tableBatch }) {
  const { recording, operands } = backend;
  const to = operands.target(out);
  const tokensFirst = strides.head < strides.token && H > 1;
  const [setSize, setStride] = tokensFirst ? [H, strides.token] : [1, D];
  const tables = { cos: placedPart(recording.upload(cos)), sin: placedPart(recording.upload(sin)), count: cos.length };
  const sizes = { H, T, D, rotary, style, tokensFirst, setSize, setStride };
  rotate(backend, { ...sizes, vectors: x.count / D, tableBatch }, operands.part(x), to, tables);
  return operands.result(out, to);
}

/**
 * Sizes as the shader has them; `vectors` are turned.
 * @typedef {Record<'H' | 'T' | 'D' | 'rotary' | 'style' | 'setSize' | 'setStride' | 'vectors' | 'tableBatch', number> & { tokensFirst: boolean }} Turns
 */

/** @param {WebgpuBackend} backend @param {Turns} turns @param {Part} from @param {Part} to @param {{ cos: Part, sin: Part, count: number }} tables */
export function rotate({ recording, operands }, turns, from, to, { cos, sin, count: entries }) {
  const { H, T, D, rotary, style, tokensFirst, setSize, setStride, vectors, tableBatch } = turns;
  const inPlace = isSame(from, to);
  const parts = D - Math.floor(rotary / 2);
  const placeOf = (/** @type {number} */ vector) => Math.floor(vector / setSize) * setStride + (vector % setSize) * D;
  const step = Math.max(1, Math.floor(operands.mostFloats / Math.max(D, setStride)));
  for (let vector = 0; vector < vectors; vector += step) {
    const count = Math.min(step, vectors - vector);
    const [low, high] = [placeOf(vector), placeOf(vector + count - 1) + D];
    const source = operands.window(from, low, high);
    const target = operands.window(to, low, high);
    const [cosines, sines] = [cos, sin].map((table) => operands.window(table, 0, entries));
    recording.dispatch({
      name: `rope ${inPlace}`,
      code: () => rope({ inPlace }),
      constants: { kType: typeNumber(from.dtype) },
      layout: ropeLayout,
      values: {
        ...{ H, T, D, rotary, style, tokens_first: tokensFirst ? 1 : 0, count: count * parts, first_vector: vector },
        ...{ set_size: setSize, set_stride: setStride, x_first: source.first, out_first: target.first },
        ...{ table_batch: tableBatch, cos_first: cosines.first, sin_first: sines.first },
      },
      bindings: [
        inPlace ? null : source.binding,
        ...[cosines.binding, sines.binding],
        { ...target.binding, isWritten: true },
      ],
      groups: Math.ceil((count * parts) / kThreads),
    });
  }
}

/** @param {WebgpuBackend} backend @param {LinearCall} call */
export function runLinear(backend, { M, N, K, x, weight, bias, packed, residual, out }) {
  const { operands } = backend;
  const held = /** @type {PackedStorage | null} */ (packed);
  const parts = {
    x: operands.float32(x),
    weight: held ? f32(held.buffer, 0) : operands.float32(/** @type {Operand} */ (weight)),
    bias: held ? (held.bias >= 0 ? f32(held.buffer, held.bias) : null) : bias && operands.float32(bias),
    residual: residual && operands.float32(residual),
    out: operands.target(out),
  };
  const most = operands.mostFloats;
  const rows = Math.max(1, Math.min(M, Math.floor(most / Math.max(N, K, 1))));
  const columns = Math.max(1, Math.min(N, Math.floor(most / Math.max(K, 1))));
  for (let m = 0; m < M; m += rows) {
    for (let n = 0; n < N; n += columns) {
      const range = { m, n, rows: Math.min(rows, M - m), columns: Math.min(columns, N - n) };
      linearRange(backend, { N, K }, parts, range);
    }
  }
  return operands.result(out, parts.out);
}

/**
 * @param {WebgpuBackend} backend
 * @param {{ N: number, K: number }} sizes
 * @param {{ x: Part, weight: Part, bias: Part | null, residual: Part | null, out: Part }} parts
 * @param {{ m: number, n: number, rows: number, columns: number }} range
 */
function linearRange({ operands, recording, gpu }, { N, K }, parts, { m, n, rows, columns }) {
  const x = operands.window(parts.x, m * K, (m + rows) * K);
  const weight = operands.window(parts.weight, n * K, (n + columns) * K);
  const bias = parts.bias ? operands.window(parts.bias, 0, N) : weight;
  const residual = parts.residual ? operands.window(parts.residual, m * N, (m + rows) * N) : x;
  const inPlace = parts.residual !== null && isSame(parts.residual, parts.out);
  const out = operands.window(parts.out, m * N, (m + rows) * N);
  const isFew = rows <= kMostLinearRows;
  const ty = gpu.limits.maxComputeInvocationsPerWorkgroup >= 128 && rows > 128 ? 16 : 8;
  const blocks = Math.ceil(columns / 32);
  const groups = isFew ? Math.ceil(columns / kRowsOutputs) : blocks * Math.ceil(rows / (4 * ty));
  recording.dispatch({
    name: isFew ? `linearRows ${inPlace}` : `linear ${ty} ${inPlace}`,
    code: () => (isFew ? linearRows({ inPlace }) : linear({ ty, inPlace })),
    layout: linearLayout,
    values: {
      ...{ M: rows, N, K, n_begin: n, n_end: n + columns, groups, blocks },
      ...{ has_bias: parts.bias ? 1 : 0, has_residual: parts.residual ? 1 : 0 },
      ...{ x_first: x.first + m * K, weight_first: weight.first, bias_first: bias.first },
      ...{ residual_first: residual.first + m * N, out_first: out.first + m * N },
    },
    bindings: [
      x.binding,
      weight.binding,
      bias.binding,
      inPlace ? null : residual.binding,
      { ...out.binding, isWritten: true },
    ],
    groups,
  });
}

/**
 * @param {WebgpuBackend} backend @param {NormCall} call
 * @param {{ size: number, stride: number }} [sets] rows stand side by side in sets of so many, so many elements apart
 */
export function runNorm(backend, { rows, width, kind, epsilon, x, weight, bias, out }, sets) {
  const { operands } = backend;
  const from = operands.float32(x);
  const to = operands.target(out);
  const { size, stride } = sets ?? { size: 1, stride: width };
  const scale = weight && operands.window(operands.float32(weight), 0, width);
  const shift = bias && operands.window(operands.float32(bias), 0, width);
  const values = { width, kind, epsilon, set_size: size, set_stride: stride };
  for (const { start, end } of operands.chunks((rows / size) * stride, stride)) {
    const groups = Math.min(rows, (end / stride) * size) - (start / stride) * size;
    normRange(backend, { ...values, groups }, { from, to, start, end }, scale, shift);
  }
  return operands.result(out, to);
}

/** @typedef {ReturnType<import('./operands.js').Operands['window']>} Window */

/**
 * @param {WebgpuBackend} backend @param {Record<string, number>} values
 * @param {{ from: Part, to: Part, start: number, end: number }} range elements
 * @param {Window | null} scale @param {Window | null} shift
 */
function normRange({ recording, operands, gpu }, values, { from, to, start, end }, scale, shift) {
  const inPlace = isSame(from, to);
  const source = operands.window(from, start, end);
  const target = operands.window(to, start, end);
  recording.dispatch({
    name: `norm ${gpu.features.subgroups} ${inPlace}`,
    code: () => norm({ subgroups: gpu.features.subgroups, inPlace }),
    layout: normLayout,
    values: {
      ...values,
      ...{ has_weight: scale ? 1 : 0, has_bias: shift ? 1 : 0 },
      ...{ x_first: source.first + start, out_first: target.first + start },
      ...{ weight_first: scale?.first ?? 0, bias_first: shift?.first ?? 0 },
    },
    bindings: [
      inPlace ? null : source.binding,
      scale?.binding ?? operands.unused,
      shift?.binding ?? operands.unused,
      { ...target.binding, isWritten: true },
    ],
    groups: values.groups,
  });
}

/** @param {WebgpuBackend} backend @param {ActivationCall} call */
export function runActivation(backend, { kind, x, gate, out }) {
  const { recording, operands } = backend;
  const from = operands.float32(x);
  const factor = gate && operands.float32(gate);
  const to = operands.target(out);
  const inPlace = { x: isSame(from, to), gate: factor !== null && isSame(factor, to) };
  for (const { start, end } of operands.chunks(x.count, 1)) {
    const source = operands.window(from, start, end);
    const target = operands.window(to, start, end);
    const gated = factor && operands.window(factor, start, end);
    recording.dispatch({
      name: `activation ${inPlace.x} ${inPlace.gate}`,
      code: () => activation(inPlace),
      layout: activationLayout,
      values: {
        ...{ kind, has_gate: factor ? 1 : 0, count: end - start, x_first: source.first + start },
        ...{ gate_first: gated ? gated.first + start : 0, out_first: target.first + start },
      },
      bindings: [
        inPlace.x ? null : source.binding,
        inPlace.gate ? null : (gated?.binding ?? operands.unused),
        { ...target.binding, isWritten: true },
      ],
      groups: Math.ceil((end - start) / kThreads),
    });
  }
  return operands.result(out, to);
}

/** Whether two parts are one: a shader then binds it once, to read and write it. @param {Part} a @param {Part} b */
const isSame = (a, b) => a.buffer === b.buffer && a.first === b.first && a.dtype === b.dtype;

/** @param {GPUBuffer} buffer @param {number} first @returns {Part} */
const f32 = (buffer, first) => ({ buffer, first, dtype: 'float32' });
