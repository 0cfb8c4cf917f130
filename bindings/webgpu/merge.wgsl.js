// Attention over disjoint sets of keys, joined; one thread an output value. As src/merge.cpp.
//
//   m = max_k L_k;  w_k = e^(L_k - m);  out = sum_k w_k out_k / W;  L = m + ln W;  W = sum_k w_k (+ e^(sink - m))
//
// Shapes: outs [parts, …] each laid out as out, lses [parts, …] each as lse. A part (0, -inf) changes nothing.
import { Layout } from './layout.js';
import { constants, groupNumber } from './shared.wgsl.js';

export const mergeLayout = new Layout({
  i32: 'parts H Tq Dv q_start q_length sinks',
  u32: `count part_out part_lse in_first in_lse_first out_first out_batch out_head out_token
    lse_first lse_batch lse_head in_lse_batch in_lse_head has_lse`,
});

export const merge = () => /* wgsl */ `
${mergeLayout.wgsl}
@group(0) @binding(1) var<storage, read> outs: array<f32>;
@group(0) @binding(2) var<storage, read> lses: array<u32>;
@group(0) @binding(3) var<storage, read> lists: array<i32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
@group(0) @binding(5) var<storage, read_write> lse: array<u32>;
${constants}${groupNumber}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let n = group_number(id, groups) * 64u + local;
  if (n >= p.count) { return; }
  let d = n % u32(p.Dv);
  var rest = n / u32(p.Dv);
  let i = rest % u32(p.Tq);
  rest /= u32(p.Tq);
  let h = rest % u32(p.H);
  let b = rest / u32(p.H);
  var at = b * p.out_batch + h * p.out_head + i * p.out_token + d;
  var lse_at = b * p.lse_batch + h * p.lse_head + i;
  var in_lse_at = b * p.in_lse_batch + h * p.in_lse_head + i;
  if (p.q_start >= 0) {
    if (i32(i) >= lists[p.q_length + i32(b)]) { return; }
    let t = u32(lists[p.q_start + i32(b)]) + i;
    at = h * p.out_head + t * p.out_token + d;
    lse_at = h * p.lse_head + t;
    in_lse_at = h * p.in_lse_head + t;
  }
  at += p.in_first;
  in_lse_at += p.in_lse_first;

  var sink = kMinusInfinityBits;
  if (p.sinks >= 0) { sink = u32(lists[p.sinks + i32(h)]); }
  let has_sink = sink != kMinusInfinityBits;
  var top = select(kLowest, bitcast<f32>(sink), has_sink);
  for (var k = 0u; k < u32(p.parts); k++) {
    let bits = lses[in_lse_at + k * p.part_lse];
    if (bits != kMinusInfinityBits) { top = max(top, bitcast<f32>(bits)); }
  }
  var total = 0.0;
  if (has_sink) { total = exp(bitcast<f32>(sink) - top); }
  var sum = 0.0;
  for (var k = 0u; k < u32(p.parts); k++) {
    let bits = lses[in_lse_at + k * p.part_lse];
    if (bits == kMinusInfinityBits) { continue; }
    let weight = exp(bitcast<f32>(bits) - top);
    total += weight;
    sum += weight * outs[at + k * p.part_out];
  }
  out[at - p.in_first + p.out_first] = select(sum / total, 0.0, total == 0.0);
  if (d == 0u && p.has_lse != 0u) {
    lse[lse_at + p.lse_first] = select(bitcast<u32>(top + log(total)), kMinusInfinityBits, total == 0.0);
  }
}
`;
