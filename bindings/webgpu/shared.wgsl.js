// WGSL that several shaders share: reading float32, float16 and bfloat16, and functions that WGSL leaves too inexact.
//
// Types are numbered as in src/attention.h: 0 float32, 1 float16, 2 bfloat16. Buffers of all types are bound as words.
// WGSL may assume that there are no infinities and no NaN: what is hidden is told by flags, and -inf is read and
// written as bits.

export const constants = /* wgsl */ `
const kLowest = -0x1.fffffep127f;
const kInfinityBits = 0x7f800000u;
const kMinusInfinityBits = 0xff800000u;
fn is_minus_infinity(x: f32) -> bool { return bitcast<u32>(x) == kMinusInfinityBits; }
`;

/** Numbers the groups of a dispatch that may have a second dimension. */
export const groupNumber = /* wgsl */ `
fn group_number(id: vec3<u32>, groups: vec3<u32>) -> u32 { return id.x + id.y * groups.x; }
`;

/** The end of load4_name: where fewer than four are there, or they stand across two vectors. @param {string} name */
const oneByOne = (name) => `var result = vec4<f32>();
  if (count > 0) { result.x = load_${name}(at); }
  if (count > 1) { result.y = load_${name}(at + 1u); }
  if (count > 2) { result.z = load_${name}(at + 2u); }
  if (count > 3) { result.w = load_${name}(at + 3u); }
  return result;`;

/**
 * Functions that read the buffer `name`, declared as array<vec4<u32>>, whose type is the override constant `type`:
 * load_name(at), one element; load4_name(at, count), elements at … at + 3, zeros from `count` on.
 * @param {string} name @param {string} type
 */
export const loader = (name, type) => /* wgsl */ `
fn load_${name}(at: u32) -> f32 {
  if (${type} == 0u) { return bitcast<f32>(${name}[at >> 2u][at & 3u]); }
  let word = ${name}[at >> 3u][(at >> 1u) & 3u];
  let bits = select(word & 0xffffu, word >> 16u, (at & 1u) != 0u);
  if (${type} == 2u) { return bitcast<f32>(bits << 16u); }
  return unpack2x16float(bits).x;
}
fn load4_${name}(at: u32, count: i32) -> vec4<f32> {
  if (count >= 4 && (at & 3u) == 0u) {
    if (${type} == 0u) { return bitcast<vec4<f32>>(${name}[at >> 2u]); }
    let quads = ${name}[at >> 3u];
    let pair = select(quads.xy, quads.zw, (at & 4u) != 0u);
    if (${type} == 2u) {
      return bitcast<vec4<f32>>(vec4(pair.x << 16u, pair.x & 0xffff0000u, pair.y << 16u, pair.y & 0xffff0000u));
    }
    return vec4(unpack2x16float(pair.x), unpack2x16float(pair.y));
  }
  ${oneByOne(name)}
}
`;

/**
 * The same for float32 alone, declared as array<vec4<f32>>.
 * @param {string} name
 */
export const floatLoader = (name) => /* wgsl */ `
fn load_${name}(at: u32) -> f32 { return ${name}[at >> 2u][at & 3u]; }
fn load4_${name}(at: u32, count: i32) -> vec4<f32> {
  if (count >= 4 && (at & 3u) == 0u) { return ${name}[at >> 2u]; }
  ${oneByOne(name)}
}
`;

/** tanh as src/math.h has it: WGSL's own may be off by 1e-5, and by more where e^x overflows. */
export const tanhExact = /* wgsl */ `
fn tanh_exact(x: f32) -> f32 {
  let size = abs(x);
  if (size < 0.625) {
    let square = x * x;
    var s = -0x1.75e1d4p-8f;
    s = s * square + 0x1.52269cp-6f;
    s = s * square - 0x1.b83c5ap-5f;
    s = s * square + 0x1.110726p-3f;
    s = s * square - 0x1.555532p-2f;
    return x + x * s * square;
  }
  let far = 1.0 - 2.0 / (exp(2.0 * min(size, 10.0)) + 1.0);
  return select(far, -far, x < 0.0);
}
`;

/** erf as src/math.h has it. */
export const erf = /* wgsl */ `
fn erf(x: f32) -> f32 {
  let inside = clamp(x, -3.95, 3.95);
  let t = inside * inside;
  var n = -0x1.bd8c98p-27f;
  n = n * t + 0x1.376a8ep-18f;
  n = n * t + 0x1.8c4bdep-12f;
  n = n * t + 0x1.f7c1dp-9f;
  n = n * t + 0x1.bc9e68p-5f;
  n = n * t + 0x1.7b39c4p-3f;
  n = n * t + 0x1.20dd76p0f;
  var d = 0x1.06f3dap-14f;
  d = d * t + 0x1.55da1ap-10f;
  d = d * t + 0x1.fa0f2cp-7f;
  d = d * t + 0x1.d2943ep-4f;
  d = d * t + 0x1.fd5f96p-2f;
  d = d * t + 1.0;
  return clamp(inside * n / d, -1.0, 1.0);
}
`;
