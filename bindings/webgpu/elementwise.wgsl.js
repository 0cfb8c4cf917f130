// One thread for each value or word: conversion between types, storing tokens in a cache, RoPE, activations, means, rows
// of an embedding, zeros.
import { Layout } from './layout.js';
import { constants, erf, groupNumber, loader, tanhExact } from './shared.wgsl.js';

/** Threads of a workgroup. */
export const kThreads = 64;

const thread = /* wgsl */ `
@compute @workgroup_size(${kThreads})
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let n = group_number(id, groups) * ${kThreads}u + local;
  if (n < p.count) { run(n); }
}
`;

/** Rounds to nearest even, as src/convert.h: WGSL leaves the rounding of float16 open. */
const narrow = /* wgsl */ `
fn narrowed(x: f32, kind: u32) -> u32 {
  let bits = bitcast<u32>(x);
  let size = bits & 0x7fffffffu;
  let sign = (bits >> 16u) & 0x8000u;
  if (kind == 2u) {
    if (size > kInfinityBits) { return sign | 0x7fc0u; }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  }
  if (size > kInfinityBits) { return sign | 0x7e00u; }
  if (size >= 0x477ff000u) { return sign | 0x7c00u; }
  if (size < 0x38800000u) {
    // The last place of 0.5 is 2^-24, the unit of subnormals: the addition itself rounds to it.
    return sign | (bitcast<u32>(bitcast<f32>(size) + 0.5) - 0x3f000000u);
  }
  return sign | (((size + 0xfffu + ((bits >> 13u) & 1u)) >> 13u) - (112u << 10u));
}
`;

export const convertLayout = new Layout({ u32: 'count values from_first to_first' });

/** values values from `from_first` on, to words from `to_first` on; `count` words. */
export const convert = () => /* wgsl */ `
override kFromType: u32;
override kToType: u32;
${convertLayout.wgsl}
@group(0) @binding(1) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> to: array<u32>;
${constants}${groupNumber}${loader('source', 'kFromType')}${narrow}
fn run(n: u32) {
  if (kToType == 0u) {
    to[p.to_first + n] = bitcast<u32>(load_source(p.from_first + n));
    return;
  }
  var word = narrowed(load_source(p.from_first + 2u * n), kToType);
  if (2u * n + 1u < p.values) { word |= narrowed(load_source(p.from_first + 2u * n + 1u), kToType) << 16u; }
  to[p.to_first + n] = word;
}
${thread}`;

export const appendLayout = new Layout({
  i32: 'H T width first lengths ring_first ring_size',
  u32: 'count words from_first from_batch from_head from_token to_first to_batch to_head to_token',
});

/** Stores tokens in a cache, as Append of src/attention.h; a row is `words` words, `to_*` count words. */
export const append = () => /* wgsl */ `
override kFromType: u32;
override kToType: u32;
${appendLayout.wgsl}
@group(0) @binding(1) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> lists: array<i32>;
@group(0) @binding(3) var<storage, read_write> to: array<u32>;
${constants}${groupNumber}${loader('source', 'kFromType')}${narrow}
fn run(n: u32) {
  let word = n % p.words;
  var rest = n / p.words;
  let t = rest % u32(p.T);
  rest /= u32(p.T);
  let h = rest % u32(p.H);
  let b = rest / u32(p.H);
  if (p.lengths >= 0 && i32(t) >= lists[p.lengths + i32(b)]) { return; }
  let time = lists[p.first + i32(b)] + i32(t);
  let row = select(time, p.ring_first + (time - p.ring_first) % max(p.ring_size, 1), p.ring_size != 0 && time >= p.ring_first);
  let at = p.from_first + b * p.from_batch + h * p.from_head + t * p.from_token;
  let place = p.to_first + b * p.to_batch + h * p.to_head + u32(row) * p.to_token + word;
  if (kToType == 0u) {
    to[place] = bitcast<u32>(load_source(at + word));
    return;
  }
  var bits = narrowed(load_source(at + 2u * word), kToType);
  if (2u * word + 1u < u32(p.width)) { bits |= narrowed(load_source(at + 2u * word + 1u), kToType) << 16u; }
  to[place] = bits;
}
${thread}`;

export const ropeLayout = new Layout({
  i32: 'H T D rotary style tokens_first',
  u32: 'count first_vector set_size set_stride x_first out_first table_batch cos_first sin_first',
});

/**
 * y1 = x1 cos − x2 sin, y2 = x2 cos + x1 sin; one thread a pair, or a channel that no pair has. Vectors of D channels
 * stand side by side in sets of `set_size`, the sets `set_stride` apart. `tokens_first`: they are [B, T, H], else
 * [B, H, T]. `inPlace`: there is no `x`, `out` is read.
 * @param {{ inPlace: boolean }} shape
 */
export const rope = ({ inPlace }) => /* wgsl */ `
override kType: u32;
${ropeLayout.wgsl}
${inPlace ? '' : '@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;'}
@group(0) @binding(2) var<storage, read> cosines: array<f32>;
@group(0) @binding(3) var<storage, read> sines: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
${groupNumber}${inPlace ? 'fn load_x(at: u32) -> f32 { return out[at]; }' : loader('x', 'kType')}
fn run(n: u32) {
  let pairs = u32(p.rotary) / 2u;
  let parts = u32(p.D) - pairs;
  let part = n % parts;
  let vector = p.first_vector + n / parts;
  let place = vector / p.set_size * p.set_stride + vector % p.set_size * u32(p.D);
  let source = p.x_first + place;
  let target_at = p.out_first + place;
  if (part >= pairs) {
    out[target_at + part + pairs] = load_x(source + part + pairs);
    return;
  }
  let b = vector / u32(p.H * p.T);
  let t = select(vector, vector / u32(p.H), p.tokens_first != 0) % u32(p.T);
  let entry = b * p.table_batch + t * pairs + part;
  let cosine = cosines[p.cos_first + entry];
  let sine = sines[p.sin_first + entry];
  let is_half = p.style == 1;
  let one = select(2u * part, part, is_half);
  let other = one + select(1u, pairs, is_half);
  let x1 = load_x(source + one);
  let x2 = load_x(source + other);
  out[target_at + one] = x1 * cosine - x2 * sine;
  out[target_at + other] = x2 * cosine + x1 * sine;
}
${thread}`;

export const activationLayout = new Layout({ i32: 'kind has_gate', u32: 'count x_first gate_first out_first' });

/** `x` or `gate` that is `out` itself is not bound a second time. @param {{ x: boolean, gate: boolean }} inPlace */
export const activation = (inPlace) => /* wgsl */ `
${activationLayout.wgsl}
${inPlace.x ? '' : '@group(0) @binding(1) var<storage, read> x: array<f32>;'}
${inPlace.gate ? '' : '@group(0) @binding(2) var<storage, read> gate: array<f32>;'}
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
${groupNumber}${tanhExact}${erf}
// e^-|v| never overflows.
fn silu(v: f32) -> f32 {
  let e = exp(-abs(v));
  return v * select(1.0, e, v < 0.0) / (1.0 + e);
}
fn run(n: u32) {
  let v = ${inPlace.x ? 'out' : 'x'}[p.x_first + n];
  var y = 0.0;
  if (p.kind == 0) {
    y = silu(v);
  } else if (p.kind == 1) {
    y = 0.5 * v * (1.0 + erf(v * 0x1.6a09e6p-1f));
  } else {
    y = 0.5 * v * (1.0 + tanh_exact((v + v * v * v * 0.044715) * 0x1.988454p-1f));
  }
  if (p.has_gate != 0) { y *= ${inPlace.gate ? 'out' : 'gate'}[p.gate_first + n]; }
  out[p.out_first + n] = y;
}
${thread}`;

export const meanLayout = new Layout({ i32: 'is_first', u32: 'count', f32: 'share' });

/** mean (+)= x · share; a logit that is hidden in one of the heads is hidden in the mean. */
export const mean = () => /* wgsl */ `
${meanLayout.wgsl}
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
${constants}${groupNumber}
fn run(n: u32) {
  let bits = x[n];
  let sum = select(out[n], 0u, p.is_first != 0);
  if (bits == kMinusInfinityBits || sum == kMinusInfinityBits) {
    out[n] = kMinusInfinityBits;
  } else {
    out[n] = bitcast<u32>(bitcast<f32>(sum) + bitcast<f32>(bits) * p.share);
  }
}
${thread}`;

export const embeddingLayout = new Layout({
  u32: `count width row0 row_end table_first tokens_first positions_first has_positions out_first`,
});

/** out = table[token] + position, rows of `width`, of the tokens whose rows of the table are bound: row0 … row_end − 1. */
export const embedding = () => /* wgsl */ `
override kType: u32;
${embeddingLayout.wgsl}
@group(0) @binding(1) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
@group(0) @binding(3) var<storage, read> positions: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
${groupNumber}${loader('table', 'kType')}
fn run(n: u32) {
  let token = tokens[p.tokens_first + n / p.width];
  if (token < p.row0 || token >= p.row_end) { return; }
  var y = load_table(p.table_first + token * p.width + n % p.width);
  if (p.has_positions != 0u) { y += positions[p.positions_first + n]; }
  out[p.out_first + n] = y;
}
${thread}`;

export const clearLayout = new Layout({ u32: 'count width stride out_first' });

/** Zeros in the first `width` values of rows that are `stride` apart. */
export const clear = () => /* wgsl */ `
${clearLayout.wgsl}
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
${groupNumber}
fn run(n: u32) { out[p.out_first + n / p.width * p.stride + n % p.width] = 0.0; }
${thread}`;
