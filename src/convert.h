// Four values of any floating-point type, to and from float32 lanes.
#pragma once

#include <cmath>

#include "half.h"
#include "simd.h"

namespace attention {

/// float_from_half on four lanes, whose high halves hold the float16.
struct Halves {
  v128_t mask = hold_integers(static_cast<int32_t>(0x8fffe000u));
  v128_t power = hold(0x1p112f);  // read as float32 the exponent is 112 too small, for subnormal numbers too
  v128_t largest = hold(65536);   // what the exponent of infinity and NaN stands for then
  v128_t infinity = hold(INFINITY);

  /// Infinity and NaN come out as numbers from 65536 on.
  v128_t finite(v128_t halves) const { return wasm_f32x4_mul(wasm_v128_and(wasm_i32x4_shr(halves, 3), mask), power); }
  v128_t operator()(v128_t halves) const {
    const v128_t x = finite(halves);
    return wasm_v128_or(x, wasm_v128_and(wasm_f32x4_ge(wasm_f32x4_abs(x), largest), infinity));
  }
};

inline v128_t load_values(const void* data, Type type, ptrdiff_t index) {
  if (type == Type::kFloat32) return wasm_v128_load(static_cast<const float*>(data) + index);
  const uint16_t* from = static_cast<const uint16_t*>(data) + index;
  const v128_t high = wasm_i32x4_shl(wasm_u32x4_load16x4(from), 16);
  return type == Type::kFloat16 ? Halves()(high) : high;
}

/// half_from_float on four lanes: in the low halves of the result.
inline v128_t halves_of_floats(v128_t x) {
  const v128_t sign = wasm_v128_and(wasm_u32x4_shr(x, 16), wasm_i32x4_splat(0x8000));
  const v128_t magnitude = wasm_v128_and(x, wasm_i32x4_splat(0x7fffffff));
  const v128_t odd = wasm_v128_and(wasm_u32x4_shr(magnitude, 13), wasm_i32x4_splat(1));
  const v128_t rounded = wasm_i32x4_add(wasm_i32x4_add(magnitude, odd), wasm_i32x4_splat(0xfff - 0x38000000));
  const v128_t shifted = wasm_i32x4_sub(wasm_f32x4_add(magnitude, wasm_f32x4_splat(0.5f)), wasm_f32x4_splat(0.5f));
  const v128_t is_small = wasm_i32x4_lt(magnitude, wasm_i32x4_splat(0x38800000));
  const v128_t finite = select(is_small, shifted, wasm_u32x4_shr(rounded, 13));
  const v128_t payload = wasm_v128_and(wasm_u32x4_shr(magnitude, 13), wasm_i32x4_splat(0x1ff));
  const v128_t is_nan = wasm_i32x4_gt(magnitude, wasm_i32x4_splat(0x7f800000));
  const v128_t special = select(is_nan, wasm_v128_or(payload, wasm_i32x4_splat(0x7e00)), wasm_i32x4_splat(0x7c00));
  const v128_t is_special = wasm_i32x4_ge(magnitude, wasm_i32x4_splat(0x477ff000));
  return wasm_v128_or(sign, select(is_special, special, finite));
}

/// bfloat_from_float on four lanes: in the low halves of the result.
inline v128_t bfloats_of_floats(v128_t x) {
  const v128_t odd = wasm_v128_and(wasm_u32x4_shr(x, 16), wasm_i32x4_splat(1));
  const v128_t rounded = wasm_u32x4_shr(wasm_i32x4_add(wasm_i32x4_add(x, odd), wasm_i32x4_splat(0x7fff)), 16);
  return select(wasm_f32x4_ne(x, x), wasm_v128_or(wasm_u32x4_shr(x, 16), wasm_i32x4_splat(0x40)), rounded);
}

inline void store_values(void* data, Type type, ptrdiff_t index, v128_t value) {
  if (type == Type::kFloat32) {
    wasm_v128_store(static_cast<float*>(data) + index, value);
    return;
  }
  const v128_t bits = type == Type::kFloat16 ? halves_of_floats(value) : bfloats_of_floats(value);
  wasm_v128_store64_lane(static_cast<uint16_t*>(data) + index, wasm_u16x8_narrow_i32x4(bits, bits), 0);
}

/// Rows of any type as float32 rows: in place where they are, else converted into `buffer`.
struct FloatRows {
  const float* data;
  ptrdiff_t stride;
};
FloatRows float_rows(const void* data, Type type, ptrdiff_t first, ptrdiff_t stride, int32_t rows, int32_t width,
                     float* buffer);

/// Whether no value of `count` rows is infinite or NaN.
bool all_finite(const float* rows, ptrdiff_t stride, int32_t count, int32_t channels);

}  // namespace attention
