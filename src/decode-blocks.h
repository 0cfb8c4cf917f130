// Quantised tokens as the loops of decode.cpp read them: block by block, with one scale a token or a block.
#pragma once

#include "decode-rows.h"
#include "quantize.h"

namespace attention {

inline size_t widened_bytes(int32_t width) { return static_cast<size_t>(blocks_of(width)) * block_bytes(Type::kQ8_0); }

/// Tokens j..j+count-1 of kQ4_0 as tokens 0..count-1 of kQ8_0: the same numbers and scales. `to`
/// [count][widened_bytes].
ATTENTION_NOINLINE inline Tokens widen(const Tokens& tokens, int32_t j, int32_t count, uint8_t* to) {
  const auto stride = static_cast<ptrdiff_t>(widened_bytes(tokens.width));
  const Tokens widened = {to, nullptr, Type::kQ8_0, 0, stride, tokens.width, 0, 0, 0};
  const v128_t low = wasm_i8x16_splat(15), zero = wasm_i8x16_splat(8);
  for (int32_t u = 0; u < count; ++u) {
    const uint8_t* from = token_block(tokens, tokens.row(j + u), 0);
    for (int32_t block = 0; block < blocks_of(tokens.width); ++block) {
      std::memcpy(to, from, kScaleBytes);
      const v128_t pairs = wasm_v128_load(from + kScaleBytes);
      wasm_v128_store(to + kScaleBytes, wasm_i8x16_sub(wasm_v128_and(pairs, low), zero));
      wasm_v128_store(to + kScaleBytes + 16, wasm_i8x16_sub(wasm_u8x16_shr(pairs, 4), zero));
      from += block_bytes(Type::kQ4_0);
      to += block_bytes(Type::kQ8_0);
    }
  }
  return widened;
}

/// Where the keys in rows row..row+kKeys-1 begin; beyond `left` of them: the last one again.
template <int32_t kKeys>
inline void find_tokens(const uint8_t* first, ptrdiff_t stride, int32_t left, const uint8_t* tokens[kKeys]) {
  tokens[0] = first;
  for (int32_t i = 1; i < kKeys; ++i) tokens[i] = tokens[i - 1] + (i < left ? stride : 0);
}

/// The scales of a block of kTokens tokens, of which the first stands in `row`, in a lane each. Beyond `left` of them:
/// whatever is finite if these are. `blocks` of each, in types that keep the scale there.
template <int32_t kTokens>
inline v128_t block_scales(const Tokens& tokens, int32_t row, int32_t left, const uint8_t* const blocks[kTokens]) {
  if (tokens.type == Type::kInt8) return load_lanes(tokens.scale + row, std::min(left, kTokens));
  const v128_t first = wasm_v128_load16_splat(blocks[0]);
  if (kTokens == 1) return Halves()(first);
  const v128_t two = wasm_v128_load16_lane(blocks[1 % kTokens], first, 3);
  const v128_t three = wasm_v128_load16_lane(blocks[2 % kTokens], two, 5);
  return Halves()(wasm_v128_load16_lane(blocks[3 % kTokens], three, 7));
}

/// Whether scales were finite, for which one number stands: 0, or else NaN.
class Finite {
 public:
  void see(v128_t scales) { found_ = wasm_v128_or(found_, wasm_f32x4_sub(scales, scales)); }
  bool all() const { return !wasm_v128_any_true(found_); }

 private:
  v128_t found_ = wasm_f32x4_const_splat(0);
};

/// Whether every scale of a token is finite; a token or block that has another reads as NaN.
inline bool finite_scales(const Tokens& tokens, int32_t row) {
  const int32_t blocks = tokens.type == Type::kInt8 ? 1 : blocks_of(tokens.width);
  for (int32_t block = 0; block < blocks; ++block) {
    if (!std::isfinite(block_scale(tokens, row, block))) return false;
  }
  return true;
}

}  // namespace attention
