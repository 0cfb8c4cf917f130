// Attention on the GPU: which shader, on which part of the call, with which lists.
import { typeNumber } from '../memory.js';
import { attentionLayout } from './attention.wgsl.js';
import { decode, kDecodeKeys, kDecodeRows, kDecodeValueChannels, kMostDecodeChannels } from './decode.wgsl.js';
import { kThreads } from './elementwise.wgsl.js';
import { merge, mergeLayout } from './merge.wgsl.js';
import { prefill, prefillMemory } from './prefill.wgsl.js';
import { attentionWeights } from './weights.js';

/** @import { AttentionCall, Strides } from '../check-attention.js' */
/** @import { Operand } from '../check.js' */
/** @import { Part } from './operands.js' */
/** @import { WebgpuBackend } from './backend.js' */

/** Query rows up to this go through decode. */
const kMostDecodeRows = 4;
/** Workgroups that keep a large device busy: as many ranges of keys are formed as lead to them. */
const kWantedGroups = 512;
/** Keys of a range: fewer are not worth a merge. */
const kLeastSpan = 4 * kDecodeKeys;

/** Lists of a call in one buffer. */
export class Lists {
  /** @type {number[]} */
  #words = [];
  /** @type {{ part: Part, at: number, count: number }[]} */
  #resident = [];
  #backend;

  /** @param {WebgpuBackend} backend */
  constructor(backend) {
    this.#backend = backend;
  }

  /** @param {Int32Array | null | undefined} list @returns {number} its place, −1 for none */
  add(list) {
    if (!list) return -1;
    const at = this.#words.length;
    for (const word of list) this.#words.push(word);
    return at;
  }

  /** Float32 values by their bits. @param {Operand | null} operand */
  addFloats(operand) {
    if (!operand) return -1;
    const { operands } = this.#backend;
    const values = operands.values(operand);
    if (values) return this.add(new Int32Array(Float32Array.from(values).buffer));
    const at = this.#words.length;
    this.#resident.push({ part: operands.float32(operand), at, count: operand.count });
    for (let n = 0; n < operand.count; ++n) this.#words.push(0);
    return at;
  }

  upload() {
    const { recording } = this.#backend;
    const buffer = recording.upload(Int32Array.from(this.#words));
    for (const { part, at, count } of this.#resident) {
      recording.copy(part.buffer, part.first * 4, buffer, at * 4, count * 4);
    }
    return buffer;
  }
}

/** Batch items, key/value heads and query rows that one dispatch does. @typedef {{ b0: number, b1: number, h0: number, h1: number, i0: number, i1: number }} Range */

/** What all dispatches of a call share. */
export class AttentionPlan {
  /** @param {WebgpuBackend} backend @param {AttentionCall} call */
  constructor(backend, call) {
    const { operands } = backend;
    this.backend = backend;
    this.call = call;
    this.q = operands.float32(call.q);
    const isUniform = call.k.dtype === call.v.dtype;
    this.k = isUniform ? operands.part(call.k) : operands.float32(call.k);
    this.v = isUniform ? operands.part(call.v) : operands.float32(call.v);
    this.isPacked = call.qStart !== null;
    const { mask, alibi, sinks, offset } = call.shared;
    this.maskKind = mask ? (mask.allowed ? 1 : 2) : 0;
    /** @type {Part | null} */
    this.mask = null;
    if (mask?.allowed) {
      this.mask = { buffer: backend.recording.upload(mask.allowed), first: 0, dtype: 'float32' };
    } else if (mask?.added) {
      this.mask = operands.float32(mask.added);
    }
    const lists = new Lists(backend);
    const { cache, weights } = call;
    this.listed = {
      q_start: lists.add(call.qStart),
      k_start: lists.add(call.kStart),
      q_length: lists.add(call.qLength),
      k_length: lists.add(call.kLength),
      offset: lists.add(offset),
      gap: lists.add(cache?.gap),
      ring_start: lists.add(cache?.ringStart),
      alibi: lists.addFloats(alibi),
      sinks: lists.addFloats(sinks),
      heads: lists.add(weights?.heads),
      rows: lists.add(weights?.rows),
    };
    this.lists = { buffer: lists.upload() };
    const lseCount = call.lse ? call.lse.count : 0;
    this.lse = { buffer: backend.recording.temporary(lseCount * 4), first: 0, dtype: /** @type {const} */ ('float32') };
  }

  /** What shaders are made for. */
  get constants() {
    return { kKeyType: typeNumber(this.k.dtype), kMaskKind: this.maskKind };
  }

  /** Elements of a tensor that a range touches, from a strided one. @param {Strides} strides @param {number} width @param {number[]} from @param {number[]} to */
  static extent({ batch, head, token }, width, [b0, h0, t0], [b1, h1, t1]) {
    const low = b0 * batch + h0 * head + t0 * token;
    return [low, Math.max(low, (b1 - 1) * batch + (h1 - 1) * head + (t1 - 1) * token + width)];
  }

  /** Elements of q, k, v and out in a range; the keys of a cache reach as far as its rows do. @param {Range} range */
  extents({ b0, b1, h0, h1, i0, i1 }) {
    const { call, isPacked } = this;
    const { G, D, Dv } = { G: groupOf(call), D: call.D, Dv: call.Dv };
    const { extent } = AttentionPlan;
    const T = Math.max(call.Tk, call.cache?.ringSize ? call.cache.ringSize + call.cache.prefix : 0);
    if (isPacked) {
      const all = { q: [0, call.q.count], k: [0, call.k.count], v: [0, call.v.count], out: [0, call.out?.count ?? 0] };
      return /** @type {Record<'q' | 'k' | 'v' | 'out', number[]>} */ (all);
    }
    return {
      q: extent(call.qStrides, D, [b0, h0 * G, i0], [b1, h1 * G, i1]),
      k: extent(call.kStrides, D, [b0, h0, 0], [b1, h1, T]),
      v: extent(call.vStrides, Dv, [b0, h0, 0], [b1, h1, T]),
      out: extent(call.outStrides, Dv, [b0, h0 * G, i0], [b1, h1 * G, i1]),
    };
  }

  /** Elements of the mask in a range. @param {Range} range */
  maskExtent({ b0, b1, h0, h1, i0, i1 }) {
    const { call } = this;
    const [batch, head, row, key] = call.shared.mask?.strides ?? [0, 0, 0, 0];
    const G = groupOf(call);
    const low = b0 * batch + h0 * G * head + i0 * row;
    const high = (b1 - 1) * batch + (h1 * G - 1) * head + (i1 - 1) * row + (call.Tk - 1) * key + 1;
    // Booleans stand four to a word.
    return this.maskKind === 1 ? [Math.floor(low / 4), Math.ceil(high / 4)] : [low, high];
  }

  /**
   * The call cut into ranges whose parts a device can bind: over items, then heads, then rows.
   * @param {Part} out @param {Range} range @returns {Range[]}
   */
  ranges(out, range) {
    const { operands } = this.backend;
    const extents = this.extents(range);
    const parts = { q: this.q, k: this.k, v: this.v, out };
    let fits = true;
    for (const name of /** @type {const} */ (['q', 'k', 'v', 'out'])) {
      fits &&= operands.fits(parts[name], extents[name][0], extents[name][1]);
    }
    const [low, high] = this.maskExtent(range);
    if (this.mask) fits &&= operands.fits(this.mask, low, high);
    if (fits) return [range];
    for (const [from, to] of /** @type {const} */ ([
      ['b0', 'b1'],
      ['h0', 'h1'],
      ['i0', 'i1'],
    ])) {
      const middle = (range[from] + range[to]) >> 1;
      if (middle === range[from] || this.isPacked) continue;
      return [...this.ranges(out, { ...range, [to]: middle }), ...this.ranges(out, { ...range, [from]: middle })];
    }
    throw operands.tooLarge(Math.max(...Object.values(extents).map(([a, b]) => (b - a) * 4)));
  }

  /** Bindings and parameters that every attention shader has. @param {Range} range @param {Part} out */
  common(range, out) {
    const { call, listed, backend } = this;
    const { operands } = backend;
    const extents = this.extents(range);
    /** @param {Part} part @param {number[]} extent */
    const window = (part, [low, high]) => operands.window(part, low, high);
    const q = window(this.q, extents.q);
    const k = window(this.k, extents.k);
    const v = window(this.v, extents.v);
    const to = window(out, extents.out);
    const mask = this.mask ? window(this.mask, this.maskExtent(range)) : { binding: this.lists, first: 0 };
    const { left, right, scale, softcap } = call.shared;
    const [mask_batch, mask_head, mask_row, mask_key] = call.shared.mask?.strides ?? [0, 0, 0, 0];
    const { cache } = call;
    const { b0, b1, h0, h1, i0, i1 } = range;
    const G = groupOf(call);
    const values = {
      ...{ B: call.B, H: call.H, Hkv: call.Hkv, G, Tq: call.Tq, Tk: call.Tk, D: call.D, Dv: call.Dv },
      ...{ left, right, scale, softcap, stage: 3, ...listed },
      ...{ prefix: cache?.prefix ?? 0, ring_first: cache?.prefix ?? 0, ring_size: cache?.ringSize ?? 0 },
      ...{ q_first: q.first, ...strideFields('q', call.qStrides) },
      ...{ k_first: k.first, ...strideFields('k', call.kStrides) },
      ...{ v_first: v.first, ...strideFields('v', call.vStrides) },
      ...{ out_first: to.first, ...strideFields('out', call.outStrides) },
      ...{ mask_first: mask.first * (this.maskKind === 1 ? 4 : 1), mask_batch, mask_head, mask_row, mask_key },
      ...{ lse_first: 0, lse_batch: call.lse?.batch ?? 0, lse_head: call.lse?.head ?? 0, has_lse: call.lse ? 1 : 0 },
      ...{ item0: b0, head0: h0, row0: i0, row_end: i1, num_heads: 0, num_rows: 0, span: 0 },
      ...{ groups: 0, blocks: 0, part_heads: h1 - h0, value_blocks: 1, value_vectors: 0, parts: 0 },
    };
    const bindings = [q.binding, k.binding, this.lists, mask.binding];
    return { values, bindings, value: v.binding, out: to.binding, items: b1 - b0, heads: h1 - h0, rows: i1 - i0 };
  }
}

/** @param {AttentionCall} call query heads to a key/value head */
const groupOf = ({ H, Hkv }) => (Hkv === 0 ? 1 : H / Hkv);

/** @param {string} name @param {Strides} strides */
const strideFields = (name, { batch, head, token }) => ({
  [`${name}_batch`]: batch,
  [`${name}_head`]: head,
  [`${name}_token`]: token,
});

/**
 * @param {WebgpuBackend} backend @param {AttentionCall} call
 * @returns {{ output: any, weights: any, lse: any }}
 */
export function attention(backend, call) {
  const { operands } = backend;
  const plan = new AttentionPlan(backend, call);
  const { out, lse } = call;
  const weights = call.weights && attentionWeights(plan, call.weights);
  let output = null;
  if (out) {
    const part = operands.target(out);
    if (call.B * call.H * call.Tq > 0) {
      const isFew = call.Tq <= kMostDecodeRows && call.D <= kMostDecodeChannels;
      const all = { b0: 0, b1: call.B, h0: 0, h1: call.Hkv, i0: 0, i1: call.Tq };
      for (const range of plan.ranges(part, all)) (isFew ? runDecode : runPrefill)(plan, range, part);
    }
    output = operands.result(out, part);
  }
  return { output, weights, lse: lse && operands.fresh(plan.lse, lse) };
}

/** @param {AttentionPlan} plan @param {Range} range @param {Part} part */
function runPrefill(plan, range, part) {
  const { call, backend, lse } = plan;
  const vectors = call.Dv <= 32 ? 1 : call.Dv <= 64 ? 2 : 4;
  // Queries that were rounded for the tile would cost float32 callers their accuracy.
  const f16 = backend.gpu.features.f16 && call.q.dtype === 'float16' && plan.k.dtype === 'float16';
  const shape = { ty: tileHeight(backend, range.i1 - range.i0, vectors), vectors, f16 };
  const { values, bindings, value, out, items, heads, rows } = plan.common(range, part);
  const blocks = Math.ceil(rows / (4 * shape.ty));
  const value_blocks = Math.ceil(call.Dv / (32 * vectors));
  const part_heads = heads * values.G;
  const groups = items * part_heads * blocks * value_blocks;
  backend.recording.dispatch({
    name: `prefill ${shape.ty} ${vectors} ${f16}`,
    code: () => prefill(shape),
    constants: plan.constants,
    layout: attentionLayout,
    values: { ...values, groups, blocks, value_blocks, part_heads },
    bindings: [...bindings, value, { ...out, isWritten: true }, { buffer: lse.buffer, isWritten: true }],
    groups,
  });
}

/** Rows of a tile, in fours: sixteen where the device has room for them and there are rows to fill them. @param {WebgpuBackend} backend @param {number} rows @param {number} vectors */
function tileHeight({ gpu: { limits } }, rows, vectors) {
  const hasRoom =
    limits.maxComputeInvocationsPerWorkgroup >= 128 &&
    limits.maxComputeWorkgroupStorageSize >= prefillMemory({ ty: 16, vectors });
  return hasRoom && rows > 256 ? 16 : 8;
}

/** @param {AttentionPlan} plan @param {Range} range @param {Part} part */
function runDecode(plan, range, part) {
  const { call, backend, lse } = plan;
  const { recording } = backend;
  const { values, bindings, value, out, items, heads, rows } = plan.common(range, part);
  const blocks = Math.ceil((values.G * rows) / kDecodeRows);
  const value_blocks = Math.ceil(call.Dv / kDecodeValueChannels);
  const units = items * heads * blocks * value_blocks;
  const span = spanOf(call.Tk, units);
  const spans = Math.ceil(call.Tk / span);
  const isWhole = spans <= 1;
  const vectors = Math.min(64, 2 ** Math.ceil(Math.log2(Math.max(1, Math.ceil(Math.min(call.Dv, 256) / 4)))));
  const count = /** @type {import('../check.js').Output} */ (call.out).count;
  const rowCount = count / call.Dv;
  const outs = isWhole ? out : { buffer: recording.temporary(spans * count * 4) };
  const lses = isWhole ? lse.buffer : recording.temporary(spans * rowCount * 4);
  const lseStrides = plan.isPacked ? [0, rowCount / call.H] : [call.H * call.Tq, call.Tq];
  const groups = units * Math.max(1, spans);
  recording.dispatch({
    name: `decode ${backend.gpu.features.subgroups}`,
    code: () => decode(backend.gpu.features),
    constants: plan.constants,
    layout: attentionLayout,
    values: {
      ...values,
      ...{ groups, blocks, value_blocks, value_vectors: vectors, span: Math.max(1, isWhole ? call.Tk : span) },
      ...(isWhole
        ? { parts: 0 }
        : { parts: count, sinks: -1, has_lse: 1, out_first: 0, lse_batch: lseStrides[0], lse_head: lseStrides[1] }),
    },
    bindings: [...bindings, value, { ...outs, isWritten: true }, { buffer: lses, isWritten: true }],
    groups,
  });
  if (!isWhole) mergeSpans(plan, range, { outs, lses, spans, count, rowCount, lseStrides, values, out });
}

/** Keys of a range, so that there are enough of them to keep the device busy. @param {number} Tk @param {number} units */
function spanOf(Tk, units) {
  const wanted = Math.ceil(kWantedGroups / units);
  return Math.max(kLeastSpan, Math.ceil(Tk / wanted / kDecodeKeys) * kDecodeKeys);
}

/** @param {AttentionPlan} plan @param {Range} range @param {any} spans */
function mergeSpans(plan, { b0, b1, h0, h1 }, { outs, lses, spans, count, rowCount, lseStrides, values, out }) {
  const { call, backend, listed } = plan;
  const isPart = b1 - b0 < call.B || h1 - h0 < call.Hkv;
  // Spans lie as the output does; a range of items or heads begins somewhere within.
  const H = (h1 - h0) * values.G;
  const threads = (b1 - b0) * H * call.Tq * call.Dv;
  const first = isPart ? b0 * call.outStrides.batch + h0 * values.G * call.outStrides.head : 0;
  const lseFirst = isPart ? b0 * lseStrides[0] + h0 * values.G * lseStrides[1] : 0;
  backend.recording.dispatch({
    name: 'merge',
    code: merge,
    layout: mergeLayout,
    values: {
      ...{ parts: spans, B: b1 - b0, H, Tq: call.Tq, Dv: call.Dv, count: threads },
      ...{ q_start: listed.q_start, q_length: listed.q_length, part_out: count, part_lse: rowCount },
      sinks: listed.sinks < 0 ? -1 : listed.sinks + h0 * values.G,
      ...{ in_first: first, in_lse_first: lseFirst, out_first: values.out_first + first },
      ...strideFields('out', call.outStrides),
      ...{ in_lse_batch: lseStrides[0], in_lse_head: lseStrides[1] },
      lse_first: (call.lse ? b0 * call.lse.batch + h0 * values.G * call.lse.head : 0) | 0,
      ...{ lse_batch: call.lse?.batch ?? 0, lse_head: call.lse?.head ?? 0, has_lse: call.lse ? 1 : 0 },
    },
    bindings: [
      { buffer: outs.buffer },
      { buffer: lses },
      plan.lists,
      { ...out, isWritten: true },
      { buffer: plan.lse.buffer, isWritten: true },
    ],
    groups: Math.ceil(threads / kThreads),
  });
}
