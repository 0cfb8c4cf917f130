// Conversion between floating-point types.
//   Cost: one load and one store a value; float16 takes six vector operations for four values on the way in, three
//   where nothing is infinite or NaN.
#include "convert.h"

#include "attention.h"

namespace attention {

namespace {

/// Eight values at a time, as many as there are; returns how many. `kType`: what `from` holds.
template <Type kType>
ptrdiff_t widen(const uint16_t* from, float* to, ptrdiff_t count) {
  const Halves halves;
  const v128_t zero = wasm_i32x4_const_splat(0), exponent = hold_integers(0x7c007c00);
  v128_t special = zero;
  ptrdiff_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const v128_t x = wasm_v128_load(from + i);
    const v128_t low = wasm_i16x8_shuffle(zero, x, 0, 8, 1, 9, 2, 10, 3, 11);
    const v128_t high = wasm_i16x8_shuffle(zero, x, 4, 12, 5, 13, 6, 14, 7, 15);
    constexpr bool kHalf = kType == Type::kFloat16;
    special = wasm_v128_or(special, kHalf ? wasm_i16x8_eq(wasm_v128_and(x, exponent), exponent) : zero);
    wasm_v128_store(to + i, kHalf ? halves.finite(low) : low);
    wasm_v128_store(to + i + 4, kHalf ? halves.finite(high) : high);
  }
  return wasm_v128_any_true(special) ? 0 : i;
}

/// Elements i..end-1, of any types.
ATTENTION_SMALL void convert_from(ptrdiff_t i, const void* from, Type from_type, void* to, Type to_type,
                                  ptrdiff_t end) {
  for (; i + 4 <= end; i += 4) store_values(to, to_type, i, load_values(from, from_type, i));
  for (; i < end; ++i) store_value(to, to_type, i, load_value(from, from_type, i));
}

}  // namespace

void convert(const void* from, Type from_type, void* to, Type to_type, size_t count) {
  const auto end = static_cast<ptrdiff_t>(count);
  ptrdiff_t first = 0;
  if (to_type == Type::kFloat32 && from_type != Type::kFloat32) {
    const auto widen_all = from_type == Type::kFloat16 ? widen<Type::kFloat16> : widen<Type::kBfloat16>;
    first = widen_all(static_cast<const uint16_t*>(from), static_cast<float*>(to), end);
  }
  convert_from(first, from, from_type, to, to_type, end);
}

FloatRows float_rows(const void* data, Type type, ptrdiff_t first, ptrdiff_t stride, int32_t rows, int32_t width,
                     float* buffer) {
  if (type == Type::kFloat32) return {static_cast<const float*>(data) + first, stride};
  const uint16_t* from = static_cast<const uint16_t*>(data) + first;
  for (int32_t row = 0; row < rows; ++row) {
    convert(from + row * stride, type, buffer + static_cast<ptrdiff_t>(row) * width, Type::kFloat32, width);
  }
  return {buffer, width};
}

bool all_finite(const float* rows, ptrdiff_t stride, int32_t count, int32_t channels) {
  v128_t found = wasm_f32x4_const_splat(0);  // x - x is 0 for every finite x, NaN for the others
  for (int32_t j = 0; j < count; ++j) {
    for (int32_t c = 0; c < channels; c += 4) {
      const v128_t x = load_lanes(rows + j * stride + c, channels - c);
      found = wasm_v128_or(found, wasm_f32x4_sub(x, x));
    }
  }
  return !wasm_v128_any_true(found);
}

}  // namespace attention
