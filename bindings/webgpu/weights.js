// Attention weights of chosen heads and rows: logits of one head or of all, softmax in place, and the mean if wanted.
import { attentionLayout } from './attention.wgsl.js';
import { kThreads, mean, meanLayout } from './elementwise.wgsl.js';
import { kScoreKeys, kScoreRows, rowsLayout, scores, softmaxRows } from './scores.wgsl.js';

/** @import { Weights } from '../check-attention.js' */
/** @import { AttentionPlan } from './plan.js' */

/** `Stage` of src/attention.h: the last is the softmax. */
const kWeights = 3;

/** @param {AttentionPlan} plan @param {Weights} weights */
export function attentionWeights(plan, weights) {
  const { backend, call } = plan;
  const { recording, operands } = backend;
  const { count, numHeads, numRows, shape } = weights;
  const result = recording.temporary(count * 4);
  if (count > 0) {
    const matrix = numRows * call.Tk;
    if (!weights.mean) {
      const most = Math.max(1, Math.floor(backend.gpu.limits.maxStorageBufferBindingSize / 4 / matrix));
      for (const { b, n, items, heads } of blocks(call.B, numHeads, most)) {
        const from = { buffer: result, first: (b * numHeads + n) * matrix, dtype: /** @type {const} */ ('float32') };
        // A range begins where a binding may, or is computed elsewhere and copied there.
        const isWhole = items === call.B && heads === numHeads;
        const to = isWhole ? result : recording.temporary(items * heads * matrix * 4);
        compute(plan, weights, { b, n, items, heads }, to);
        if (!isWhole) recording.copy(to, 0, result, from.first * 4, items * heads * matrix * 4);
      }
    } else {
      const one = recording.temporary(call.B * matrix * 4);
      for (let n = 0; n < numHeads; ++n) {
        compute(plan, weights, { b: 0, n, items: call.B, heads: 1 }, one);
        recording.dispatch({
          name: 'mean',
          code: mean,
          layout: meanLayout,
          values: { count, is_first: n === 0 ? 1 : 0, share: 1 / numHeads },
          bindings: [{ buffer: one }, { buffer: result, isWritten: true }],
          groups: Math.ceil(count / kThreads),
        });
      }
    }
  }
  return operands.fresh({ buffer: result, first: 0, dtype: 'float32' }, { shape, count });
}

/** All heads of some items, or some heads of one item, at most `most` matrices at once. @param {number} B @param {number} heads @param {number} most */
function* blocks(B, heads, most) {
  const items = Math.max(1, Math.floor(most / heads));
  const step = Math.min(heads, most);
  for (let b = 0; b < B; b += items) {
    for (let n = 0; n < heads; n += step) {
      yield { b, n, items: Math.min(items, B - b), heads: Math.min(step, heads - n) };
    }
  }
}

/**
 * @param {AttentionPlan} plan @param {Weights} weights
 * @param {{ b: number, n: number, items: number, heads: number }} block of items and chosen heads
 * @param {GPUBuffer} to
 */
function compute(plan, weights, { b, n, items, heads }, to) {
  const { backend, call, listed } = plan;
  const { recording } = backend;
  const { numRows, stage } = weights;
  // Chosen heads may be any: keys and queries of all of them are bound.
  const range = { b0: b, b1: b + items, h0: 0, h1: call.Hkv, i0: 0, i1: call.Tq };
  const { values, bindings } = plan.common(range, { buffer: to, first: 0, dtype: 'float32' });
  const rowBlocks = Math.ceil(numRows / kScoreRows);
  const groups = items * heads * rowBlocks * Math.ceil(call.Tk / kScoreKeys);
  recording.dispatch({
    name: 'scores',
    code: scores,
    constants: plan.constants,
    layout: attentionLayout,
    values: {
      ...values,
      ...{ groups, blocks: rowBlocks, part_heads: heads, head0: n, num_rows: numRows, stage },
    },
    bindings: [...bindings, { buffer: to, isWritten: true }],
    groups,
  });
  if (stage !== kWeights) return;
  recording.dispatch({
    name: 'softmaxRows',
    code: softmaxRows,
    layout: rowsLayout,
    values: {
      ...{ width: call.Tk, num_rows: numRows, part_heads: heads, head0: n },
      ...{ heads: listed.heads, sinks: listed.sinks, groups: items * heads * numRows },
    },
    bindings: [{ buffer: to, isWritten: true }, plan.lists],
    groups: items * heads * numRows,
  });
}
