// Four values of any floating-point type, to and from float32 lanes.
#pragma once

#include "half.h"
#include "simd.h"

namespace attention {

/// As float_from_half in half.h, on four lanes.
inline v128_t halves_to_floats(const uint16_t* from) {
  const v128_t bits = wasm_u32x4_load16x4(from);
  const v128_t sign = wasm_i32x4_shl(wasm_v128_and(bits, wasm_i32x4_const_splat(0x8000)), 16);
  const v128_t rest = wasm_i32x4_shl(wasm_v128_and(bits, wasm_i32x4_const_splat(0x7fff)), 13);
  const v128_t scaled = wasm_f32x4_mul(rest, wasm_f32x4_const_splat(0x1p112f));
  const v128_t special = wasm_i32x4_ge(rest, wasm_i32x4_const_splat(0x7c00 << 13));
  const v128_t infinite = wasm_v128_and(special, wasm_i32x4_const_splat(0x7f800000));
  const v128_t value = select(special, wasm_v128_or(rest, infinite), scaled);
  return wasm_v128_or(value, sign);
}

inline v128_t load_values(const void* data, Type type, ptrdiff_t index) {
  if (type == Type::kFloat32) return wasm_v128_load(static_cast<const float*>(data) + index);
  const uint16_t* from = static_cast<const uint16_t*>(data) + index;
  return type == Type::kFloat16 ? halves_to_floats(from) : wasm_i32x4_shl(wasm_u32x4_load16x4(from), 16);
}

inline void store_values(void* data, Type type, ptrdiff_t index, v128_t value) {
  if (type == Type::kFloat32) {
    wasm_v128_store(static_cast<float*>(data) + index, value);
    return;
  }
  float lanes[4];
  wasm_v128_store(lanes, value);
  for (int32_t i = 0; i < 4; ++i) store_value(data, type, index + i, lanes[i]);
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
