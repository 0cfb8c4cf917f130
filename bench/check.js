// What a peer computes is compared with float64 before it is timed: whole rows, at the ends and between.

import { attention } from '../tests/support/oracle.js';
import { multiHeadAttention } from '../tests/support/oracle-layers.js';
import { inputs } from './workloads.js';

/** Above float32 rounding over thousands of terms, far below any mistake. Outputs are of order 0.01 to 1. */
export const kTolerance = 1e-5;

/** The same for products of bytes. */
export const kTolerance8 = 1e-2;

/**
 * Rows of the exact result: of head h and query row i; a layer's have all E channels, and h is 0.
 * @returns {{ h: number, i: number, values: Float64Array }[]}
 */
export function exactRows(workload) {
  return workload.kind === 'layer' ? layerRows(workload) : attentionRows(workload);
}

function attentionRows({ H, Hkv, Tq, Tk, D, causal }) {
  const { q, k, v } = inputs({ kind: 'attention', H, Hkv, Tq, Tk, D });
  const part = (data, from, count) => ({
    data: data.subarray(from * D, (from + count) * D),
    shape: [1, 1, count, D],
  });
  return chosen(H, Tq).map(({ h, i }) => {
    const g = Math.floor((h * Hkv) / H);
    const row = part(q, h * Tq + i, 1);
    const [keys, values] = [k, v].map((data) => part(data, g * Tk, Tk));
    const options = causal ? { isCausal: true, queryOffset: i + Tk - Tq } : {};
    return { h, i, values: attention(row, keys, values, options).output.data };
  });
}

function layerRows(workload) {
  const { E, H, Tq, causal } = workload;
  const { x, wq, wk, wv, wo } = inputs(workload);
  const names = { q_proj: wq, k_proj: wk, v_proj: wv, out_proj: wo };
  const state = Object.fromEntries(
    Object.entries(names).map(([name, data]) => [`${name}.weight`, { data, shape: [E, E] }]),
  );
  const layer = multiHeadAttention({ numHeads: H, isCausal: causal }, state, { data: x, shape: [1, Tq, E] });
  return chosen(1, Tq).map(({ i }) => ({ h: 0, i, values: layer.output.data.subarray(i * E, (i + 1) * E) }));
}

/** Six rows, or one of every head where there is one row a head. */
function chosen(H, Tq) {
  if (Tq === 1) return Array.from({ length: H }, (_, h) => ({ h, i: 0 }));
  const rows = [0, 1, Math.floor(Tq / 3), Math.floor(Tq / 2) + 1, Tq - 2, Tq - 1];
  return rows.map((i, n) => ({ h: Math.floor((n * (H - 1)) / (rows.length - 1)), i }));
}

/**
 * The largest difference from the exact rows.
 * @param {{ data: Float32Array, layout: 'bhtd' | 'bthd' }} output a layer's is 'bthd' with one head of width E
 */
export function largestError(workload, { data, layout }, rows) {
  const [H, width] = workload.kind === 'layer' ? [1, workload.E] : [workload.H, workload.D];
  let largest = 0;
  for (const { h, i, values } of rows) {
    const row = layout === 'bthd' ? i * H + h : h * workload.Tq + i;
    for (let d = 0; d < width; ++d) {
      const error = Math.abs(data[row * width + d] - values[d]);
      if (!(error <= largest)) largest = error; // so that NaN counts
    }
  }
  return largest;
}
