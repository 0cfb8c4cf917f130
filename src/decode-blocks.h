// Quantised tokens as the loops of decode.cpp read them: block by block, with one scale a token or a block.
#pragma once

#include "decode-rows.h"
#include "numbers.h"

namespace attention {

inline size_t widened_bytes(int32_t width) { return static_cast<size_t>(blocks_of(width)) * block_bytes(Type::kQ8_0); }

/// Whether tokens are read as bytes where they lie; the others are widened first.
inline bool read_as_bytes(Type type) { return type == Type::kInt8 || type == Type::kQ8_0; }

constexpr float kEvenMask[] = {0x1.fe01fep-126f};  // the bits 0x00ff00ff

/// What leaves the even channels of such words. Read anew in each turn of a loop: as a literal, V8 of Node 24 builds it
/// at every use.
inline v128_t even_mask() { return load_splat(read_anew(kEvenMask)); }

/// Tokens j..j+count-1 of kQ4_0 as tokens 0..count-1 of kQ8_0: the same numbers and scales. `to`
/// [count][widened_bytes].
ATTENTION_NOINLINE inline Tokens widen(const Tokens& tokens, int32_t j, int32_t count, uint8_t* to) {
  const auto stride = static_cast<ptrdiff_t>(widened_bytes(tokens.width));
  const Tokens widened = {to, nullptr, Type::kQ8_0, 0, stride, tokens.width, 0, 0, 0};
  for (int32_t u = 0; u < count; ++u) {
    const uint8_t* from = token_block(tokens, tokens.row(j + u), 0);
    for (int32_t block = 0; block < blocks_of(tokens.width); ++block) {
      std::memcpy(to, from, kScaleBytes);
      load_numbers(Type::kQ4_0, from, to + kScaleBytes);
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

/// The scales of a block of each of some tokens of kQ8_0, in a lane each.
template <int32_t kTokens>
inline v128_t block_scales(const uint8_t* const blocks[kTokens]) {
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
