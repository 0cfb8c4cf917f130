// The struct Attention of src/attention.h for a call.

import { pointerOf } from './frame.js';
import { typeNumber } from './memory.js';
import { bitsOf } from './structs.js';

/** @import { AttentionCall } from './check-attention.js' */

/**
 * The struct of a call; pointers are set by the frame.
 * @param {AttentionCall} call
 */
export function attentionFields(call) {
  const { qStrides, kStrides, vStrides, outStrides, out, lse, weights } = call;
  const { left, right, scale, softcap, mask } = call.shared;
  const maskStrides = mask ? mask.strides : kNoStrides;
  const { cache } = call;
  // One literal: spreads would cost more than a small call's arithmetic.
  return {
    B: call.B,
    H: call.H,
    Hkv: call.Hkv,
    Tq: call.Tq,
    Tk: call.Tk,
    D: call.D,
    Dv: call.Dv,
    q_type: typeNumber(call.q.dtype),
    k_type: typeNumber(call.k.dtype),
    v_type: typeNumber(call.v.dtype),
    out_type: out ? typeNumber(out.dtype) : 0,
    q: 0,
    k: 0,
    v: 0,
    out: 0,
    q_batch: qStrides.batch,
    q_head: qStrides.head,
    q_token: qStrides.token,
    k_batch: kStrides.batch,
    k_head: kStrides.head,
    k_token: kStrides.token,
    v_batch: vStrides.batch,
    v_head: vStrides.head,
    v_token: vStrides.token,
    out_batch: outStrides.batch,
    out_head: outStrides.head,
    out_token: outStrides.token,
    q_start: 0,
    k_start: 0,
    q_length: 0,
    k_length: 0,
    offset: 0,
    left,
    right,
    prefix: cache ? cache.prefix : 0,
    gap: 0,
    ring_first: cache ? cache.prefix : 0,
    ring_size: cache ? cache.ringSize : 0,
    ring_start: 0,
    k_scale: cache?.storage.keyScales ? pointerOf(cache.storage.keyScales) : 0,
    v_scale: cache?.storage.valueScales ? pointerOf(cache.storage.valueScales) : 0,
    scale_batch: cache ? cache.scaleBatch : 0,
    scale_head: cache ? cache.scaleHead : 0,
    precision: call.shared.int8 ? 1 : 0,
    scale: bitsOf(scale),
    softcap: bitsOf(softcap),
    mask_kind: mask ? (mask.allowed ? 1 : 2) : 0,
    mask: 0,
    mask_batch: maskStrides[0],
    mask_head: maskStrides[1],
    mask_row: maskStrides[2],
    mask_key: maskStrides[3],
    alibi: 0,
    sinks: 0,
    lse: 0,
    lse_batch: lse ? lse.batch : 0,
    lse_head: lse ? lse.head : 0,
    weights: 0,
    weights_mean: weights?.mean ? 1 : 0,
    weights_stage: weights ? weights.stage : 3,
    heads: 0,
    rows: 0,
    num_heads: weights ? weights.numHeads : 0,
    num_rows: weights ? weights.numRows : 0,
    scratch: 0,
  };
}

const kNoStrides = [0, 0, 0, 0];
