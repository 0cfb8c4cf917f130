// The numbers of a quantised block, 16 at a time.
#pragma once

#include "quantize.h"
#include "simd.h"

namespace attention {

/// The largest magnitude of `count` values, a multiple of four; NaN if one is not finite.
float largest_magnitude(const float* x, int32_t count);

/// The numbers of a block as signed bytes. `to` [kBlockValues].
inline void load_numbers(Type type, const uint8_t* block, void* to) {
  const uint8_t* from = block_numbers(type, block);
  const v128_t first = wasm_v128_load(from);
  v128_t numbers[2];
  if (type == Type::kQ4_0) {
    const v128_t zero = wasm_i8x16_splat(8);
    numbers[0] = wasm_i8x16_sub(wasm_v128_and(first, wasm_i8x16_splat(15)), zero);
    numbers[1] = wasm_i8x16_sub(wasm_u8x16_shr(first, 4), zero);
  } else {
    const v128_t offset = wasm_i16x8_splat(type == Type::kInt8 ? kOffset : 0);
    numbers[0] = wasm_v128_xor(first, offset);
    numbers[1] = wasm_v128_xor(wasm_v128_load(from + 16), offset);
  }
  std::memcpy(to, numbers, sizeof numbers);
}

}  // namespace attention
