// Attention weights of chosen heads and rows, in two passes; or logits at a stage on the way to them. As
// src/weights.cpp.
//
//   logits:  x = the logits of a tile, hidden ones -inf;   rows:  w_j = e^(x_j - m) / l, in place
//
// Shapes: [B, num_heads, num_rows, Tk], which the caller asked for. Cost: 2 D flops and e^x twice for each cell.
import { attentionHeader } from './attention.wgsl.js';
import { Layout } from './layout.js';
import { constants, groupNumber } from './shared.wgsl.js';
import { stageVectors, tileProduct, tileTypes } from './tile.wgsl.js';

const kTy = 8;

/** Rows and keys of a workgroup. */
export const kScoreRows = 4 * kTy;
export const kScoreKeys = 32;

/** As attentionLayout; `heads` and `rows` are lists of what was chosen, −1 for all. */
export const scores = () => /* wgsl */ `
${tileTypes(false)}${attentionHeader}${tileProduct(kTy, stageVectors(kTy))}
@group(0) @binding(5) var<storage, read_write> logits: array<u32>;
struct Start { at: u32, exists: bool }
var<private> item: i32;
var<private> head: i32;
var<private> first_row: i32;

fn row_start(n: i32) -> Start {
  let exists = first_row + n < p.num_rows;
  return Start(query_at(item, head, select(0, listed(p.rows, first_row + n, first_row + n), exists)), exists);
}

@compute @workgroup_size(TX, TY)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
  let group = group_number(id, groups);
  if (group >= p.groups) { return; }
  let tiles = u32(p.Tk + 31) / 32u;
  let unit = group / (tiles * p.blocks);
  let b = p.item0 + i32(unit / p.part_heads);
  let n = p.head0 + i32(unit % p.part_heads);
  let h = listed(p.heads, n, n);
  let row0 = i32(group / tiles % p.blocks * ROWS);
  let key = i32(group % tiles * KEYS);
  item = b;
  head = h;
  first_row = row0;
  let count = min(i32(KEYS), p.Tk - key);
  let products = tile_products(b, h / p.G, key, count, local.xy);
  for (var r = 0u; r < 4u; r++) {
    let number = row0 + i32(4u * local.y + r);
    if (number >= p.num_rows) { continue; }
    let row = row_of(b, h, listed(p.rows, number, number));
    let start = u32(((b - p.item0) * i32(p.part_heads) + i32(unit % p.part_heads)) * p.num_rows + number) * u32(p.Tk);
    for (var c = 0u; c < 4u; c++) {
      let j = i32(local.x + 8u * c);
      if (j >= count) { continue; }
      var bits = kMinusInfinityBits;
      if (p.stage < 2 || sees(row, key + j)) { bits = bitcast<u32>(logit(products[c][r], row, b, key + j, p.stage)); }
      logits[start + u32(key + j)] = bits;
    }
  }
}
`;

export const rowsLayout = new Layout({ i32: 'width num_rows part_heads head0 heads sinks', u32: 'groups' });

/** Softmax of rows in place, with the sink of the row's head in the denominator; a row of -inf alone becomes 0. */
export const softmaxRows = () => /* wgsl */ `
${rowsLayout.wgsl}
@group(0) @binding(1) var<storage, read_write> x: array<u32>;
@group(0) @binding(2) var<storage, read> lists: array<i32>;
${constants}${groupNumber}
const THREADS = 64u;
var<workgroup> tops: array<f32, THREADS>;
var<workgroup> sums: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = group_number(id, groups);
  if (row >= p.groups) { return; }
  let width = u32(p.width);
  let start = row * width;
  var sink = kMinusInfinityBits;
  if (p.sinks >= 0) {
    let n = p.head0 + i32(row / u32(p.num_rows) % u32(p.part_heads));
    var h = n;
    if (p.heads >= 0) { h = lists[p.heads + n]; }
    sink = u32(lists[p.sinks + h]);
  }
  var top = kLowest;
  if (sink != kMinusInfinityBits) { top = bitcast<f32>(sink); }
  for (var j = local; j < width; j += THREADS) {
    let bits = x[start + j];
    if (bits != kMinusInfinityBits) { top = max(top, bitcast<f32>(bits)); }
  }
  tops[local] = top;
  workgroupBarrier();
  for (var n = 0u; n < THREADS; n++) { top = max(top, tops[n]); }
  var sum = 0.0;
  for (var j = local; j < width; j += THREADS) {
    let bits = x[start + j];
    if (bits != kMinusInfinityBits) { sum += exp(bitcast<f32>(bits) - top); }
  }
  sums[local] = sum;
  workgroupBarrier();
  sum = 0.0;
  if (sink != kMinusInfinityBits) { sum = exp(bitcast<f32>(sink) - top); }
  for (var n = 0u; n < THREADS; n++) { sum += sums[n]; }
  for (var j = local; j < width; j += THREADS) {
    let bits = x[start + j];
    var weight = 0.0;
    if (bits != kMinusInfinityBits) { weight = exp(bitcast<f32>(bits) - top) / sum; }
    x[start + j] = bitcast<u32>(weight);
  }
}
`;
