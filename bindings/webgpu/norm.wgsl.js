// Normalisations of rows, [rows, width], by 64 threads a row. As src/norm.cpp.
//
//   0 RMS: x / sqrt(mean x^2 + e) w;  1 layer: (x - mean) / sqrt(var + e) w + b;  2 softmax: e^(x - max) / sum
import { Layout } from './layout.js';
import { constants, groupNumber } from './shared.wgsl.js';

export const normLayout = new Layout({
  i32: 'width kind has_weight has_bias',
  u32: 'groups set_size set_stride x_first weight_first bias_first out_first',
  f32: 'epsilon',
});

/**
 * Rows stand side by side in sets of `set_size`, the sets `set_stride` apart. `inPlace`: there is no `x`, `out` is read.
 * @param {{ subgroups: boolean, inPlace: boolean }} shape
 */
export const norm = ({ subgroups, inPlace }) => /* wgsl */ `
${subgroups ? 'enable subgroups;\nrequires subgroup_id;' : ''}
${normLayout.wgsl}
${inPlace ? '' : '@group(0) @binding(1) var<storage, read> x: array<f32>;'}
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
${constants}${groupNumber}
const THREADS = 64u;
var<workgroup> partial: array<f32, THREADS>;
${subgroups ? bySubgroups : byThreads}

fn input(at: u32) -> f32 { return ${inPlace ? 'out' : 'x'}[at]; }
fn centred(at: u32, mean: f32, rest: f32) -> f32 { return input(at) - mean - rest; }

fn scale_row(start: u32, to: u32, width: u32, mean: f32, rest: f32, own: Own) {
  var square = 0.0;
  for (var c = own.local; c < width; c += THREADS) {
    let y = centred(start + c, mean, rest);
    square += y * y;
  }
  let factor = inverseSqrt(row_sum(square, own) / f32(width) + p.epsilon);
  for (var c = own.local; c < width; c += THREADS) {
    var y = centred(start + c, mean, rest) * factor;
    if (p.has_weight != 0) { y *= weight[p.weight_first + c]; }
    if (p.has_bias != 0) { y += bias[p.bias_first + c]; }
    out[to + c] = y;
  }
}

fn softmax_row(start: u32, to: u32, width: u32, own: Own) {
  var top = kLowest;
  for (var c = own.local; c < width; c += THREADS) {
    if (!is_minus_infinity(input(start + c))) { top = max(top, input(start + c)); }
  }
  top = row_max(top, own);
  var sum = 0.0;
  for (var c = own.local; c < width; c += THREADS) {
    if (!is_minus_infinity(input(start + c))) { sum += exp(input(start + c) - top); }
  }
  sum = row_sum(sum, own);
  for (var c = own.local; c < width; c += THREADS) {
    var y = 0.0;
    if (!is_minus_infinity(input(start + c))) { y = exp(input(start + c) - top) / sum; }
    out[to + c] = y;
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32${subgroups ? ',\n        @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32' : ''}) {
  let row = group_number(id, groups);
  if (row >= p.groups) { return; }
  let own = Own(local${subgroups ? ', subgroup, subgroups' : ''});
  let width = u32(p.width);
  let place = row / p.set_size * p.set_stride + row % p.set_size * width;
  let start = p.x_first + place;
  let to = p.out_first + place;
  if (p.kind == 2) {
    softmax_row(start, to, width, own);
  } else if (p.kind == 0) {
    scale_row(start, to, width, 0.0, 0.0, own);
  } else {
    var sum = 0.0;
    for (var c = local; c < width; c += THREADS) { sum += input(start + c); }
    let mean = row_sum(sum, own) / f32(width);
    // What rounding left out of the mean counts where the mean is large beside the differences from it.
    var rest = 0.0;
    for (var c = local; c < width; c += THREADS) { rest += input(start + c) - mean; }
    scale_row(start, to, width, mean, row_sum(rest, own) / f32(width), own);
  }
}
`;

const byThreads = /* wgsl */ `
struct Own { local: u32 }
fn row_sum(value: f32, own: Own) -> f32 {
  workgroupBarrier();
  partial[own.local] = value;
  workgroupBarrier();
  var result = 0.0;
  for (var n = 0u; n < THREADS; n++) { result += partial[n]; }
  return result;
}
fn row_max(value: f32, own: Own) -> f32 {
  workgroupBarrier();
  partial[own.local] = value;
  workgroupBarrier();
  var result = partial[0];
  for (var n = 1u; n < THREADS; n++) { result = max(result, partial[n]); }
  return result;
}
`;

const bySubgroups = /* wgsl */ `
struct Own { local: u32, subgroup: u32, subgroups: u32 }
fn row_sum(value: f32, own: Own) -> f32 {
  let sum = subgroupAdd(value);
  workgroupBarrier();
  if (subgroupElect()) { partial[own.subgroup] = sum; }
  workgroupBarrier();
  var result = 0.0;
  for (var n = 0u; n < own.subgroups; n++) { result += partial[n]; }
  return result;
}
fn row_max(value: f32, own: Own) -> f32 {
  let top = subgroupMax(value);
  workgroupBarrier();
  if (subgroupElect()) { partial[own.subgroup] = top; }
  workgroupBarrier();
  var result = partial[0];
  for (var n = 1u; n < own.subgroups; n++) { result = max(result, partial[n]); }
  return result;
}
`;
