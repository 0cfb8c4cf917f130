// The SIMD operations that differ between builds or take several instructions. Everything else is written plainly with
// the wasm_* intrinsics. The only file that asks which build this is.
#pragma once

#include <cstdint>

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#else
// The host: the same intrinsics through SIMDe.
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/wasm/simd128.h>
// What Debian 12's SIMDe (0.7.4) lacks.
inline v128_t wasm_f32x4_const_splat(float value) { return wasm_f32x4_splat(value); }
inline v128_t wasm_i8x16_const_splat(int8_t value) { return wasm_i8x16_splat(value); }
inline v128_t wasm_i32x4_const_splat(int32_t value) { return wasm_i32x4_splat(value); }
#endif

#include <cstddef>
#include <cstring>

#include "inline.h"

namespace attention {

/// a * b + c: one rounding in the relaxed build where the machine can, two in the others.
inline v128_t madd(v128_t a, v128_t b, v128_t c) {
#if defined(__wasm_relaxed_simd__)
  return wasm_f32x4_relaxed_madd(a, b, c);
#elif defined(ATTENTION_FUSED)
  // The host, to measure what the relaxed build computes.
  float x[4], y[4], z[4];
  wasm_v128_store(x, a), wasm_v128_store(y, b), wasm_v128_store(z, c);
  for (int32_t i = 0; i < 4; ++i) x[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return wasm_v128_load(x);
#else
  return wasm_f32x4_add(wasm_f32x4_mul(a, b), c);
#endif
}

/// mask ? a : b for lanes of all ones or all zeros. One blend instruction in the relaxed build.
inline v128_t select(v128_t mask, v128_t a, v128_t b) {
#if defined(__wasm_relaxed_simd__)
  return wasm_i32x4_relaxed_laneselect(a, b, mask);
#else
  return wasm_v128_bitselect(a, b, mask);
#endif
}

/// Sums of two neighbouring products, signed bytes a times bytes b from 0 to 127, in 16 bits: |a b + a' b'| < 2^15 is
/// the caller's business. One instruction in the relaxed build.
inline v128_t dot_bytes(v128_t a, v128_t b) {
#if defined(__wasm_relaxed_simd__)
  return wasm_i16x8_relaxed_dot_i8x16_i7x16(a, b);
#else
  const v128_t low = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(a), wasm_i16x8_extend_low_i8x16(b));
  const v128_t high = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(a), wasm_i16x8_extend_high_i8x16(b));
  return wasm_i16x8_narrow_i32x4(low, high);
#endif
}

#if defined(__wasm_relaxed_simd__)
constexpr bool kDotOfBytes = true;
#else
constexpr bool kDotOfBytes = false;
#endif

/// Whether the kernels that multiply bytes are built: where they are any use, and on the host, for their tests.
#if defined(__wasm_simd128__)
constexpr bool kHasDotOfBytes = kDotOfBytes;
#else
constexpr bool kHasDotOfBytes = true;
#endif

/// A constant that is to stay in a local over a loop. As a literal the compiler would write it at every use, and V8
/// builds a vector literal from the general registers each time, three instructions.
inline v128_t hold(float constant) {
#if defined(__wasm_simd128__)
  asm("" : "+r"(constant));
#endif
  return wasm_f32x4_splat(constant);
}

inline v128_t hold_integers(int32_t constant) {
#if defined(__wasm_simd128__)
  asm("" : "+r"(constant));
#endif
  return wasm_i32x4_splat(constant);
}

/// The same address, of which the compiler knows nothing: what is read there in a loop isn't read before it instead.
inline const float* read_anew(const float* from) {
#if defined(__wasm_simd128__)
  asm volatile("" : "+r"(from));
#endif
  return from;
}

inline v128_t load_splat(const float* from) { return wasm_v128_load32_splat(from); }

/// The one tail helper: the first `count` of four lanes, zeros behind them; reads nothing past the last.
inline v128_t load_lanes(const float* from, int32_t count) {
  if (count >= 4) return wasm_v128_load(from);
  float lanes[4] = {0, 0, 0, 0};
  for (int32_t i = 0; i < count; ++i) lanes[i] = from[i];
  return wasm_v128_load(lanes);
}

inline void store_lanes(float* to, v128_t value, int32_t count) {
  if (count >= 4) {
    wasm_v128_store(to, value);
    return;
  }
  float lanes[4];
  wasm_v128_store(lanes, value);
  for (int32_t i = 0; i < count; ++i) to[i] = lanes[i];
}

/// Rows become columns.
inline void transpose_4x4(v128_t& a, v128_t& b, v128_t& c, v128_t& d) {
  const v128_t ab_low = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
  const v128_t cd_low = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), cd_high = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
  a = wasm_i64x2_shuffle(ab_low, cd_low, 0, 2);
  b = wasm_i64x2_shuffle(ab_low, cd_low, 1, 3);
  c = wasm_i64x2_shuffle(ab_high, cd_high, 0, 2);
  d = wasm_i64x2_shuffle(ab_high, cd_high, 1, 3);
}

inline float sum_lanes(v128_t x) {
  const v128_t pairs = wasm_f32x4_add(x, wasm_i32x4_shuffle(x, x, 2, 3, 0, 1));
  return wasm_f32x4_extract_lane(pairs, 0) + wasm_f32x4_extract_lane(pairs, 1);
}

inline float max_lanes(v128_t x) {
  const v128_t pairs = wasm_f32x4_pmax(x, wasm_i32x4_shuffle(x, x, 2, 3, 0, 1));
  return wasm_f32x4_extract_lane(wasm_f32x4_pmax(pairs, wasm_i32x4_shuffle(pairs, pairs, 1, 0, 3, 2)), 0);
}

}  // namespace attention
