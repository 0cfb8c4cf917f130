// Tiled attention: 4·TY query rows of a head against tiles of 32 keys, with the running softmax. As src/prefill.cpp.
//
//   for each tile of keys:  X = Q K^T (scaled, finished, masked);  P = e^(X - m);  O = r O + P V;  at the end O / l
//
// Shapes: q [rows, D], k [32, D], v [32, Dv] a step. A thread keeps 4 rows of O in 4·VECTORS channels; more channels
// than 32·VECTORS are further workgroups. Never stored: anything of the size Tq × Tk; P of a step is 32 × rows.
// Source of the scheme: Dao et al., "FlashAttention" (2022).
import { attentionHeader, valuesHeader } from './attention.wgsl.js';
import { stageVectors, tileProduct, tileTypes } from './tile.wgsl.js';

/** Bytes of workgroup memory. @param {{ ty: number, vectors: number }} shape */
export const prefillMemory = ({ ty, vectors }) => 16 * (stageSize(ty, vectors) + 32 * ty + 8 * ty) + 16;

/** @param {number} ty @param {number} vectors */
const stageSize = (ty, vectors) => Math.max(stageVectors(ty), 16 * 8 * vectors);

/** @param {{ ty: number, vectors: number, f16: boolean }} shape */
export const prefill = ({ ty, vectors, f16 }) => /* wgsl */ `
${tileTypes(f16)}${attentionHeader}${valuesHeader}${tileProduct(ty, stageSize(ty, vectors))}
const VECTORS = ${vectors}u;
const VALUE_STEP = TX * VECTORS;
const VALUE_KEYS = 16;
var<workgroup> weights: array<vec4<f32>, KEYS * TY>;  // e^(x - m), four rows to a vector; -1: hidden
var<workgroup> partial: array<vec4<f32>, TX * TY>;
var<workgroup> seen: atomic<u32>;
var<workgroup> tile_is_seen: u32;

struct Start { at: u32, exists: bool }
var<private> item: i32;
var<private> head: i32;
var<private> first_row: i32;
var<private> existing: i32;

fn row_start(n: i32) -> Start {
  return Start(query_at(item, head, first_row + n), first_row + n < existing);
}

struct State { top: vec4<f32>, sum: vec4<f32>, acc: array<array<vec4<f32>, VECTORS>, 4> }

// Which of the thread's 16 cells are visible, by bits: row + 4·key.
fn cells(rows: array<Row, 4>, key: i32, count: i32, tx: i32) -> u32 {
  var bits = 0u;
  for (var n = 0; n < 4; n++) {
    let j = tx + 8 * n;
    for (var r = 0; r < 4; r++) {
      if (j < count && sees(rows[r], key + j)) { bits |= 1u << u32(r + 4 * n); }
    }
  }
  return bits;
}

fn any_cell(bits: u32, local: u32) -> bool {
  if (local == 0u) { atomicStore(&seen, 0u); }
  workgroupBarrier();
  if (bits != 0u) { atomicStore(&seen, 1u); }
  workgroupBarrier();
  if (local == 0u) { tile_is_seen = atomicLoad(&seen); }
  return workgroupUniformLoad(&tile_is_seen) != 0u;
}

// The logits of a tile become weights relative to the new maximum.
fn push(state: ptr<function, State>, products: array<vec4<f32>, 4>, rows: array<Row, 4>, bits: u32, key: i32, thread: vec2<u32>) {
  var x = products;
  var top = vec4(kLowest);
  for (var n = 0u; n < 4u; n++) {
    for (var r = 0u; r < 4u; r++) {
      if (((bits >> (r + 4u * n)) & 1u) != 0u) {
        x[n][r] = logit(x[n][r], rows[r], item, key + i32(thread.x + 8u * n), 3);
        top[r] = max(top[r], x[n][r]);
      }
    }
  }
  partial[thread.y * TX + thread.x] = top;
  workgroupBarrier();
  let old = (*state).top;
  top = old;
  for (var n = 0u; n < TX; n++) { top = max(top, partial[thread.y * TX + n]); }
  let shrink = exp(old - top);
  var sum = vec4<f32>();
  for (var n = 0u; n < 4u; n++) {
    let cell = ((vec4(bits) >> (vec4(0u, 1u, 2u, 3u) + 4u * n)) & vec4(1u)) != vec4(0u);
    let weight = exp(x[n] - top);
    sum += select(vec4(0.0), weight, cell);
    weights[(thread.x + 8u * n) * TY + thread.y] = select(vec4(-1.0), weight, cell);
  }
  (*state).top = top;
  (*state).sum = shrink * (*state).sum + sum;
  for (var r = 0u; r < 4u; r++) {
    for (var n = 0u; n < VECTORS; n++) { (*state).acc[r][n] *= shrink[r]; }
  }
  workgroupBarrier();
}

fn add_values(state: ptr<function, State>, kv: i32, key: i32, count: i32, channel0: i32, is_whole: bool, thread: vec2<u32>) {
  for (var begin = 0; begin < count; begin += VALUE_KEYS) {
    workgroupBarrier();
    for (var n = thread.x + TX * thread.y; n < u32(VALUE_KEYS) * VALUE_STEP; n += THREADS) {
      let j = begin + i32(n / VALUE_STEP);
      let channel = channel0 + i32(4u * (n % VALUE_STEP));
      stage[n] = Tile(load4_values(value_at(item, kv, key + j) + u32(channel), select(0, p.Dv - channel, j < count)));
    }
    workgroupBarrier();
    for (var j = 0; j < min(VALUE_KEYS, count - begin); j++) {
      let weight = weights[u32(begin + j) * TY + thread.y];
      for (var n = 0u; n < VECTORS; n++) {
        let v = stage[u32(j) * VALUE_STEP + thread.x + TX * n];
        if (is_whole) {
          for (var r = 0u; r < 4u; r++) { (*state).acc[r][n] += vec4<f32>(Factor(weight[r]) * v); }
        } else {
          // Hidden values are skipped, not multiplied by 0: NaN in them must not leak.
          for (var r = 0u; r < 4u; r++) {
            if (weight[r] >= 0.0) { (*state).acc[r][n] += vec4<f32>(Factor(weight[r]) * v); }
          }
        }
      }
    }
  }
}

fn finish(state: ptr<function, State>, channel0: i32, thread: vec2<u32>) {
  workgroupBarrier();
  partial[thread.y * TX + thread.x] = (*state).sum;
  workgroupBarrier();
  var sum = vec4<f32>();
  for (var n = 0u; n < TX; n++) { sum += partial[thread.y * TX + n]; }
  for (var r = 0u; r < 4u; r++) {
    let i = first_row + i32(4u * thread.y + r);
    if (i >= existing) { continue; }
    let norm = select(1.0 / sum[r], 0.0, sum[r] == 0.0);
    let at = out_at(item, head, i);
    for (var n = 0u; n < VECTORS; n++) {
      let channel = channel0 + i32(4u * (thread.x + TX * n));
      store4(at + u32(channel), p.Dv - channel, (*state).acc[r][n] * norm);
    }
    if (thread.x == 0u && channel0 == 0) { store_lse(item, head, i, (*state).top[r], sum[r]); }
  }
}

@compute @workgroup_size(TX, TY)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let group = group_number(id, groups);
  if (group >= p.groups) { return; }
  let block = group % p.blocks;
  let value_block = group / p.blocks % p.value_blocks;
  let unit = group / (p.blocks * p.value_blocks);
  let b = p.item0 + i32(unit / p.part_heads);
  let h = p.head0 * p.G + i32(unit % p.part_heads);
  let row0 = p.row0 + i32(block * ROWS);
  let length = query_length(b);
  let rows_end = min(p.row_end, select(p.Tq, length, p.q_start >= 0));
  if (row0 >= rows_end) { return; }
  item = b;
  head = h;
  first_row = row0;
  existing = rows_end;
  let kv = h / p.G;
  let channel0 = i32(value_block * 32u * VECTORS);
  let thread = local.xy;

  var rows = array<Row, 4>();
  for (var r = 0; r < 4; r++) { rows[r] = row_of(b, h, row0 + i32(4u * thread.y) + r); }
  var state = State();
  state.top = vec4(sink_of(h));
  // Sums of a row's threads are added up at the end: the sink counts in one of them.
  state.sum = vec4(select(0.0, 1.0, thread.x == 0u && has_sink(h)));

  let last = min(row0 + i32(ROWS), length) - 1;
  let is_full = row0 + i32(ROWS) <= length;
  var key = select(0, first_visible(b, row0), p.prefix == 0);
  let prefix = prefix_visible(b, last);
  let window = first_visible(b, row0);
  let inner_first = first_visible(b, last);
  let inner_end = select(0, end_visible(b, row0), is_full);
  let end = select(0, max(end_visible(b, last), prefix), last >= row0);
  while (key < end) {
    if (key >= prefix && key < window) {
      key = window;  // nobody sees anything between the prefix and the window
      continue;
    }
    let count = min(i32(KEYS), end - key);
    let is_whole = kMaskKind == 0u && key >= inner_first && key + count <= inner_end;
    var bits = cells(rows, key, count, i32(thread.x));
    if (kMaskKind == 0u || any_cell(bits, thread.x + TX * thread.y)) {
      push(&state, tile_products(b, kv, key, count, thread), rows, bits, key, thread);
      add_values(&state, kv, key, count, channel0, is_whole, thread);
    }
    key += i32(KEYS);
  }
  finish(&state, channel0, thread);
}
`;
