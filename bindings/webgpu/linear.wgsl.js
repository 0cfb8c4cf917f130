// out = x weight^T + bias + residual: x [M, K], weight [N, K], out [M, N]. As src/gemm.cpp.
//
// linear: register-tiled, 4·TY rows × 32 outputs by 8 × TY threads of 4 × 4 each; x and weight pass through workgroup
// memory, 32 inputs at a time. linearRows: up to four rows; sixteen threads share an output and read its weights
// side by side, each weight once. Cost: 2 M N K flops.
//
// 4 × 4 outputs a thread, 8 × 8 threads and 32 inputs a step are what TensorFlow.js and onnxruntime take on every GPU;
// llama.cpp has come back to 4 × 4 from 8 × 8, which needs twice the registers.
import { Layout } from './layout.js';
import { floatLoader, groupNumber } from './shared.wgsl.js';

export const linearLayout = new Layout({
  i32: 'M N K n_end has_bias has_residual',
  u32: 'x_first weight_first bias_first residual_first out_first groups blocks n_begin',
});

/** `inPlace`: the residual is `out` itself. @param {boolean} inPlace */
const header = (inPlace) => /* wgsl */ `
${linearLayout.wgsl}
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
${inPlace ? '' : '@group(0) @binding(4) var<storage, read> residual: array<f32>;'}
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
${groupNumber}
${floatLoader('x')}${floatLoader('weight')}
fn store(m: i32, n: i32, sum: f32) {
  if (m >= p.M || n >= p.n_end) { return; }
  var y = sum;
  if (p.has_bias != 0) { y += bias[p.bias_first + u32(n)]; }
  let at = u32(m) * u32(p.N) + u32(n);
  if (p.has_residual != 0) { y += ${inPlace ? 'out' : 'residual'}[p.residual_first + at]; }
  out[p.out_first + at] = y;
}
`;

/** @param {{ ty: number, inPlace: boolean }} shape */
export const linear = ({ ty, inPlace }) => /* wgsl */ `
${header(inPlace)}
const TX = 8u;
const TY = ${ty}u;
const THREADS = TX * TY;
const ROWS = 4u * TY;
const COLUMNS = 32u;
var<workgroup> rows: array<vec4<f32>, 8u * (ROWS + 1u)>;
var<workgroup> columns: array<vec4<f32>, 8u * (COLUMNS + 1u)>;

@compute @workgroup_size(TX, TY)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_id) thread: vec3<u32>) {
  let group = group_number(id, groups);
  if (group >= p.groups) { return; }
  let m0 = i32(group / p.blocks * ROWS);
  let n0 = i32(p.n_begin + group % p.blocks * COLUMNS);
  let local = thread.x + TX * thread.y;
  var sums = array<vec4<f32>, 4>();
  for (var c = 0; c < p.K; c += 32) {
    workgroupBarrier();
    for (var n = local; n < 8u * ROWS; n += THREADS) {
      let m = m0 + i32(n >> 3u);
      let k = c + i32(4u * (n & 7u));
      rows[(n & 7u) * (ROWS + 1u) + (n >> 3u)] =
        load4_x(p.x_first + u32(m) * u32(p.K) + u32(k), select(0, p.K - k, m < p.M));
    }
    for (var n = local; n < 8u * COLUMNS; n += THREADS) {
      let column = n0 + i32(n >> 3u);
      let k = c + i32(4u * (n & 7u));
      columns[(n & 7u) * (COLUMNS + 1u) + (n >> 3u)] =
        load4_weight(p.weight_first + u32(column) * u32(p.K) + u32(k), select(0, p.K - k, column < p.n_end));
    }
    workgroupBarrier();
    for (var s = 0u; s < min(8u, u32(p.K - c + 3) >> 2u); s++) {
      let at = s * (ROWS + 1u) + 4u * thread.y;
      let a = array<vec4<f32>, 4>(rows[at], rows[at + 1u], rows[at + 2u], rows[at + 3u]);
      for (var n = 0u; n < 4u; n++) {
        let w = columns[s * (COLUMNS + 1u) + thread.x + TX * n];
        sums[n] += vec4(dot(a[0], w), dot(a[1], w), dot(a[2], w), dot(a[3], w));
      }
    }
  }
  for (var n = 0u; n < 4u; n++) {
    for (var r = 0u; r < 4u; r++) { store(m0 + i32(4u * thread.y + r), n0 + i32(thread.x + TX * n), sums[n][r]); }
  }
}
`;

/** Outputs of a workgroup of linearRows. */
export const kRowsOutputs = 16;

/** @param {{ inPlace: boolean }} shape */
export const linearRows = ({ inPlace }) => /* wgsl */ `
${header(inPlace)}
const THREADS = 64u;
var<workgroup> work: array<vec4<f32>, 4u * THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let group = group_number(id, groups);
  if (group >= p.groups) { return; }
  let n0 = i32(p.n_begin + group * ${kRowsOutputs}u);
  let vectors = u32(p.K + 3) >> 2u;
  for (var s = 0u; s < 4u; s++) {
    let n = n0 + i32((local >> 4u) + 4u * s);
    var sum = vec4<f32>();
    if (n < p.n_end) {
      for (var c = local & 15u; c < vectors; c += 16u) {
        let left = p.K - i32(4u * c);
        let w = load4_weight(p.weight_first + u32(n) * u32(p.K) + 4u * c, left);
        for (var m = 0; m < p.M; m++) { sum[m] += dot(load4_x(p.x_first + u32(m * p.K) + 4u * c, left), w); }
      }
    }
    work[16u * ((local >> 4u) + 4u * s) + (local & 15u)] = sum;
  }
  workgroupBarrier();
  let at = 16u * (local >> 2u);
  var total = 0.0;
  for (var n = 0u; n < 16u; n++) { total += work[at + n][local & 3u]; }
  store(i32(local & 3u), n0 + i32(local >> 2u), total);
}
`;
