// Few query rows against many keys: four rows that share a key/value head, in the parts of a vector, against a range of
// keys. As src/decode.cpp; ranges are merged afterwards by merge.wgsl.js.
//
//   Shapes: q [4, D], k [span, D], v [span, Dv]. Each key and value is read from memory once for the four rows, by one
//   thread: keys by four threads to a row, values by as many as a row has vectors. Cost: 2 (D + Dv) flops a cell.
import { attentionHeader, valuesHeader } from './attention.wgsl.js';

/** Head sizes up to this; larger ones go through prefill. */
export const kMostDecodeChannels = 512;
/** Value channels of one workgroup. */
export const kDecodeValueChannels = 256;
/** Rows of one key/value head that one workgroup does. */
export const kDecodeRows = 4;
/** Keys of one step. */
export const kDecodeKeys = 64;

/** @param {{ subgroups: boolean }} shape */
export const decode = ({ subgroups }) => /* wgsl */ `
${subgroups ? 'enable subgroups;\nrequires subgroup_id;' : ''}
${attentionHeader}${valuesHeader}
const THREADS = 64u;
var<workgroup> query: array<vec4<f32>, ${kMostDecodeChannels}>;  // [row][D / 4]
var<workgroup> work: array<vec4<f32>, 4u * THREADS>;
var<workgroup> weights: array<vec4<f32>, THREADS>;  // of a key, for the four rows; -1: hidden
var<workgroup> partial: array<vec4<f32>, 16>;

struct Rows { heads: vec4<i32>, index: vec4<i32>, exists: vec4<bool> }

fn rows_of(kv: i32, n: i32) -> Rows {
  let number = vec4(n) + vec4(0, 1, 2, 3);
  let height = p.row_end - p.row0;
  return Rows(kv * p.G + number / height, p.row0 + number % height, number < vec4(p.G * height));
}

${subgroups ? acrossSubgroups : acrossThreads}

fn stage_queries(b: i32, rows: Rows, local: u32) {
  let vectors = u32(p.D + 3) >> 2u;
  for (var n = local; n < 4u * vectors; n += THREADS) {
    let r = n / vectors;
    let channel = i32(4u * (n % vectors));
    let left = select(0, p.D - channel, rows.exists[r]);
    query[n] = load4_queries(query_at(b, rows.heads[r], rows.index[r]) + u32(channel), left);
  }
}

// Products of the four rows and key number \`local\` of the step.
fn products(b: i32, kv: i32, key: i32, end: i32, local: u32) -> vec4<f32> {
  let vectors = u32(p.D + 3) >> 2u;
  for (var n = 0u; n < 4u; n++) {
    let j = key + i32((local >> 2u) + 16u * n);
    var sum = vec4<f32>();
    if (j < end) {
      let at = key_at(b, kv, j);
      for (var c = local & 3u; c < vectors; c += 4u) {
        let k = load4_keys(at + 4u * c, p.D - i32(4u * c));
        sum += vec4(dot(query[c], k), dot(query[vectors + c], k), dot(query[2u * vectors + c], k), dot(query[3u * vectors + c], k));
      }
    }
    work[4u * ((local >> 2u) + 16u * n) + (local & 3u)] = sum;
  }
  workgroupBarrier();
  let at = 4u * local;
  return work[at] + work[at + 1u] + work[at + 2u] + work[at + 3u];
}

// Adds up what the threads of a channel have, and writes the rows.
fn finish(b: i32, rows: Rows, part: u32, acc: array<vec4<f32>, 4>, top: vec4<f32>, sum: vec4<f32>, channel0: i32, local: u32) {
  workgroupBarrier();
  for (var r = 0u; r < 4u; r++) { work[r * THREADS + local] = acc[r]; }
  workgroupBarrier();
  for (var n = local; n < 4u * p.value_vectors; n += THREADS) {
    let r = n / p.value_vectors;
    if (!rows.exists[r] || rows.index[r] >= select(p.Tq, query_length(b), p.q_start >= 0)) { continue; }
    var total = vec4<f32>();
    for (var c = n % p.value_vectors; c < THREADS; c += p.value_vectors) { total += work[r * THREADS + c]; }
    let channel = channel0 + i32(4u * (n % p.value_vectors));
    let norm = select(1.0 / sum[r], 0.0, sum[r] == 0.0);
    let at = out_at(b, rows.heads[r], rows.index[r]) + part * p.parts;
    store4(at + u32(channel), p.Dv - channel, total * norm);
    if (channel == 0) { store_lse_part(b, rows.heads[r], rows.index[r], part, top[r], sum[r]); }
  }
}

// \`parts\` is the distance between the outputs of one range of keys and the next; their lse stand closer by Dv.
fn store_lse_part(b: i32, h: i32, i: i32, part: u32, top: f32, sum: f32) {
  if (p.has_lse == 0) { return; }
  let at = place(p.lse_first, p.q_start, b, p.lse_batch, h, p.lse_head, i, 1u) + part * (p.parts / u32(p.Dv));
  lse[at] = select(bitcast<u32>(top + log(sum)), kMinusInfinityBits, sum == 0.0);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32${subgroups ? ',\n        @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32' : ''}) {
  let group = group_number(id, groups);
  if (group >= p.groups) { return; }
  let spans = u32((p.Tk + p.span - 1) / p.span);
  let part = group % spans;
  let block = group / spans % p.blocks;
  let value_block = group / (spans * p.blocks) % p.value_blocks;
  let unit = group / (spans * p.blocks * p.value_blocks);
  let b = p.item0 + i32(unit / p.part_heads);
  let kv = p.head0 + i32(unit % p.part_heads);
  let rows = rows_of(kv, i32(4u * block));
  let channel0 = i32(value_block) * ${kDecodeValueChannels};

  var own = array<Row, 4>();
  var top = vec4(kLowest);
  var sum = vec4<f32>();
  var begin = p.Tk;
  var end = 0;
  for (var r = 0; r < 4; r++) {
    if (!rows.exists[r]) { continue; }
    own[r] = row_of(b, rows.heads[r], rows.index[r]);
    top[r] = sink_of(rows.heads[r]);
    sum[r] = select(0.0, 1.0, local == 0u && has_sink(rows.heads[r]));
    if (own[r].prefix > 0) { begin = 0; }
    if (own[r].first < own[r].end) { begin = min(begin, own[r].first); }
    end = max(end, max(own[r].prefix, select(0, own[r].end, own[r].first < own[r].end)));
  }
  stage_queries(b, rows, local);
  workgroupBarrier();

  var acc = array<vec4<f32>, 4>();
  let last = min(end, i32(part + 1u) * p.span);
  for (var key = max(begin, i32(part) * p.span); key < last; key += i32(THREADS)) {
    var x = products(b, kv, key, last, local);
    let j = key + i32(local);
    var cell = vec4<bool>();
    for (var r = 0; r < 4; r++) {
      if (rows.exists[r] && j < last && sees(own[r], j)) {
        cell[r] = true;
        x[r] = logit(x[r], own[r], b, j, 3);
      }
    }
    let old = top;
    top = max(top, across_max(select(vec4(kLowest), x, cell), local${subgroups ? ', subgroup, subgroups' : ''}));
    let shrink = exp(old - top);
    let weight = exp(x - top);
    sum = shrink * sum + select(vec4(0.0), weight, cell);
    weights[local] = select(vec4(-1.0), weight, cell);
    workgroupBarrier();
    for (var r = 0u; r < 4u; r++) { acc[r] *= shrink[r]; }
    let channel = channel0 + i32(4u * (local % p.value_vectors));
    for (var n = local / p.value_vectors; n < THREADS; n += THREADS / p.value_vectors) {
      let w = weights[n];
      if (all(w < vec4(0.0))) { continue; }
      let v = load4_values(value_at(b, kv, key + i32(n)) + u32(channel), p.Dv - channel);
      for (var r = 0u; r < 4u; r++) { if (w[r] >= 0.0) { acc[r] += w[r] * v; } }
    }
    workgroupBarrier();
  }
  sum = across_sum(sum, local${subgroups ? ', subgroup, subgroups' : ''});
  finish(b, rows, part, acc, top, sum, channel0, local);
}
`;

const acrossThreads = /* wgsl */ `
// Over all threads: of four, then of sixteen.
fn across_max(x: vec4<f32>, local: u32) -> vec4<f32> {
  weights[local] = x;
  workgroupBarrier();
  if (local < 16u) {
    let at = 4u * local;
    partial[local] = max(max(weights[at], weights[at + 1u]), max(weights[at + 2u], weights[at + 3u]));
  }
  workgroupBarrier();
  var result = partial[0];
  for (var n = 1u; n < 16u; n++) { result = max(result, partial[n]); }
  return result;
}
fn across_sum(x: vec4<f32>, local: u32) -> vec4<f32> {
  weights[local] = x;
  workgroupBarrier();
  if (local < 16u) {
    let at = 4u * local;
    partial[local] = weights[at] + weights[at + 1u] + weights[at + 2u] + weights[at + 3u];
  }
  workgroupBarrier();
  var result = partial[0];
  for (var n = 1u; n < 16u; n++) { result += partial[n]; }
  return result;
}
`;

const acrossSubgroups = /* wgsl */ `
// Over all threads: within each subgroup, of any size from 4 up, then over the subgroups.
fn across_max(x: vec4<f32>, local: u32, subgroup: u32, subgroups: u32) -> vec4<f32> {
  let own = subgroupMax(x);
  if (subgroupElect()) { partial[subgroup] = own; }
  workgroupBarrier();
  var result = partial[0];
  for (var n = 1u; n < subgroups; n++) { result = max(result, partial[n]); }
  return result;
}
fn across_sum(x: vec4<f32>, local: u32, subgroup: u32, subgroups: u32) -> vec4<f32> {
  let own = subgroupAdd(x);
  if (subgroupElect()) { partial[subgroup] = own; }
  workgroupBarrier();
  var result = partial[0];
  for (var n = 1u; n < subgroups; n++) { result += partial[n]; }
  return result;
}
`;
