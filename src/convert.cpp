// Conversion between floating-point types.
//   Cost: one load and one store a value; float16 takes six vector operations for four values on the way in.
#include "convert.h"

#include "attention.h"

namespace attention {

void convert(const void* from, Type from_type, void* to, Type to_type, size_t count) {
  const auto end = static_cast<ptrdiff_t>(count);
  ptrdiff_t i = 0;
  for (; i + 4 <= end; i += 4) store_values(to, to_type, i, load_values(from, from_type, i));
  for (; i < end; ++i) store_value(to, to_type, i, load_value(from, from_type, i));
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
