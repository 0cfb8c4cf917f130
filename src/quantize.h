// The block formats of a quantised cache, one value at a time: 32 numbers with one scale.
//   int8, q8_0: x = d q, d = max |x| / 127, q rounded half away from 0; int8 keeps q + 128 in even channels
//   q4_0:       x = d (q - 8), d = (the value of largest magnitude) / -8, q = min(15, trunc(x / d + 8.5))
// The quantiser divides by d in float32, the reader multiplies by d as it was stored, in float16.
// Source: ggml's block_q8_0 and block_q4_0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "half.h"
#include "inline.h"
#include "layout.h"

namespace attention {

constexpr int32_t kBlockValues = 32;
constexpr int32_t kScaleBytes = 2;  // of the float16 before a block's numbers

// The decode kernel reads two channels as one number of 16 bits, 2^8 odd + even. Where the even one is never negative,
// the other is what a shift leaves, and their products need no more instructions to part.
constexpr int32_t kOffset = 128;  // of the even channels of an int8 token

inline bool is_quantized(Type type) { return type >= Type::kInt8; }
inline int32_t blocks_of(int32_t width) { return (width + kBlockValues - 1) / kBlockValues; }
/// The channels of a token up to the end of its last block.
inline int32_t whole_width(int32_t width) { return blocks_of(width) * kBlockValues; }
inline int32_t block_bytes(Type type) { return type == Type::kInt8 ? 32 : type == Type::kQ8_0 ? 34 : 18; }

inline const uint8_t* token_block(const Tokens& tokens, int32_t row, int32_t block) {
  return static_cast<const uint8_t*>(tokens.data) + tokens.first + row * tokens.stride +
         static_cast<ptrdiff_t>(block) * block_bytes(tokens.type);
}

/// The numbers of a block, behind the scale.
inline const uint8_t* block_numbers(Type type, const uint8_t* block) {
  return type == Type::kInt8 ? block : block + kScaleBytes;
}

inline float block_scale(const Tokens& tokens, int32_t row, int32_t block) {
  if (tokens.type == Type::kInt8) return tokens.scale[row];
  uint16_t half;
  std::memcpy(&half, token_block(tokens, row, block), sizeof half);
  return float_from_half(half);
}

/// Number c of a block, without its scale.
inline int32_t block_number(Type type, const uint8_t* block, int32_t c) {
  const uint8_t* numbers = block_numbers(type, block);
  if (type == Type::kInt8 && c % 2 == 0) return numbers[c] - kOffset;
  if (type != Type::kQ4_0) return static_cast<int8_t>(numbers[c]);
  return (c < 16 ? numbers[c] & 15 : numbers[c - 16] >> 4) - 8;
}

/// Channel c of the token in a row, whatever the type.
inline float token_value(const Tokens& tokens, int32_t row, int32_t c) {
  if (!is_quantized(tokens.type)) return load_value(tokens.data, tokens.type, tokens.first + row * tokens.stride + c);
  const int32_t block = c / kBlockValues;
  return block_scale(tokens, row, block) *
         static_cast<float>(block_number(tokens.type, token_block(tokens, row, block), c % kBlockValues));
}

/// The value of largest magnitude, with its sign, the first one if there are several; NaN if any value is not finite.
inline float largest(const float* x, int32_t count) {
  float most = x[0];  // not 0: clang 19 takes |x| > 0 ? x : 0 for a positive number
  for (int32_t c = 0; c < count; ++c) {
    if (!std::isfinite(x[c])) return std::numeric_limits<float>::quiet_NaN();
    if (std::fabs(x[c]) > std::fabs(most)) most = x[c];
  }
  return most;
}

/// round(x / d), half away from 0, within -127..127; 0 where d is 0 or not a number.
inline int8_t int8_number(float x, float d) {
  const float ratio = std::fabs(x / d);
  if (!(ratio <= 128)) return 0;
  const auto whole = static_cast<int32_t>(ratio);
  // Not ratio + 0.5: just below 0.5 that sum is 1. This difference is exact.
  const int32_t number = std::min(127, whole + (ratio - static_cast<float>(whole) >= 0.5f ? 1 : 0));
  return static_cast<int8_t>(x < 0 ? -number : number);
}

inline uint8_t int4_number(float x, float d) {
  const float shifted = x / d + 8.5f;
  return shifted > 0 && shifted < 17 ? static_cast<uint8_t>(std::fmin(15, std::trunc(shifted))) : d == 0 ? 8 : 0;
}

/// One token of float32 channels into its place; channels past the width are 0. Unrolled it would take 8 KB.
ATTENTION_SMALL inline void quantize_token(Type type, const float* x, int32_t width, uint8_t* to, float* scale) {
  if (type == Type::kInt8) {
    const float d = std::fabs(largest(x, width)) / 127;
    *scale = d;
    for (int32_t c = 0; c < whole_width(width); ++c) {
      to[c] = static_cast<uint8_t>((c < width ? int8_number(x[c], d) : 0) + (c % 2 == 0 ? kOffset : 0));
    }
    return;
  }
  for (int32_t c = 0; c < width; c += kBlockValues, x += kBlockValues, to += block_bytes(type)) {
    const float most = largest(x, kBlockValues), d = type == Type::kQ8_0 ? std::fabs(most) / 127 : most / -8;
    const uint16_t half = half_from_float(d);
    std::memcpy(to, &half, sizeof half);
    for (int32_t i = 0; type == Type::kQ8_0 && i < kBlockValues; ++i)
      to[2 + i] = static_cast<uint8_t>(int8_number(x[i], d));
    for (int32_t i = 0; type == Type::kQ4_0 && i < 16; ++i) {
      to[2 + i] = static_cast<uint8_t>(int4_number(x[i], d) | int4_number(x[i + 16], d) << 4);
    }
  }
}

constexpr float kLargest16 = 32767;

/// What turns values of at most this magnitude into whole numbers of 16 bits.
inline float inverse_16(float most) {
  return most > 1e-34f ? kLargest16 / most : 0;  // of less it would be infinite, and 0 times it NaN
}
inline int32_t number_16(float x, float inverse) {
  const float number = x * inverse;
  return static_cast<int32_t>(number + (number < 0 ? -0.5f : 0.5f));
}

/// A query row as products with quantised keys take it, as whole numbers with one scale, back in float32 and in place.
/// A row with a value that is not finite stays as it is.
inline void round_to_16_bits(float* x, int32_t count) {
  const float most = std::fabs(largest(x, count)), inverse = inverse_16(most);
  if (!std::isfinite(most)) return;
  for (int32_t i = 0; i < count; ++i) x[i] = most / kLargest16 * static_cast<float>(number_16(x[i], inverse));
}

}  // namespace attention
