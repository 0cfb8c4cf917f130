// Attention on the GPU: which shader, on which part of the call, with which lists.
import { attentionLayout } from './attention.wgsl.js';
import { decode, kDecodeKeys, kDecodeRows, kDecodeValueChannels, kMostDecodeChannels } from './decode.wgsl.js';
import { kThreads } from './elementwise.wgsl.js';
import { merge, mergeLayout } from './merge.wgsl.js';
import { AttentionPlan, strideFields } from './plan.js';
import { prefill, prefillMemory } from './prefill.wgsl.js';
import { attentionWeights } from './weights.js';

/** @import { AttentionCall } from '../check-attention.js' */
/** @import { Range } from './plan.js' */
/** @import { Part } from './operands.js' */
/** @import { WebgpuBackend } from './backend.js' */

/** Query rows up to this go through decode; and up to the other where prefill would leave most of a device idle. */
const kMostDecodeRows = 4;
const kMostFewRows = 16;
const kManyKeys = 1024;
/** Workgroups that keep a large device busy: as many ranges of keys are formed as lead to them. */
const kWantedGroups = 512;
/** Keys of a range: fewer are not worth a merge. */
const kLeastSpan = 4 * kDecodeKeys;

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
      const isFew = isDecode(call);
      const all = { b0: 0, b1: call.B, h0: 0, h1: call.Hkv, i0: 0, i1: call.Tq };
      for (const range of plan.ranges(part, all)) (isFew ? runDecode : runPrefill)(plan, range, part);
    }
    output = operands.result(out, part);
  }
  return { output, weights, lse: lse && operands.fresh(plan.lse, lse) };
}

/**
 * Prefill has one workgroup to a head and tile of rows; decode divides the keys among as many as there shall be.
 * @param {AttentionCall} call
 */
function isDecode({ B, H, Tq, Tk, D }) {
  if (D > kMostDecodeChannels) return false;
  return Tq <= kMostDecodeRows || (Tq <= kMostFewRows && Tk >= kManyKeys && B * H < kWantedGroups);
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
      ...{ parts: spans, H, Tq: call.Tq, Dv: call.Dv, count: threads },
      ...{ q_start: listed.q_start, q_length: listed.q_length, part_out: count, part_lse: rowCount },
      sinks: listed.sinks < 0 ? -1 : listed.sinks + h0 * values.G,
      ...{ in_first: first, in_lse_first: lseFirst, out_first: values.out_first + first },
      ...strideFields('out', call.outStrides),
      ...{ in_lse_batch: lseStrides[0], in_lse_head: lseStrides[1] },
      lse_first: call.lse ? b0 * call.lse.batch + h0 * values.G * call.lse.head : 0,
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
