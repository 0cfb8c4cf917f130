// The inner loops of decode.cpp over quantised keys and values: products of whole numbers, 16 bits by 8, summed in 32.
//
//   scores:  x_j  = s d_j sum_c q16_c k8_jc           s the scale of the query row, d_j of the block of the key
//   sums:    o_c += t sum_j w16_j v8_jc               w16_j = e^(x_j - m) d_j / t, t the scale of the tile's weights
//
// Queries and weights have 15 bits and a sign, so nearly all of the error is that of the cache. A sum of 32 products
// stays below 2^28, one over 1024 channels below 2^32 / 2: both fit.
#pragma once

#include "decode-rows.h"
#include "quantize.h"

namespace attention {

constexpr int32_t kExactChannels =
    512;  // channels whose products a 32-bit lane sums without overflow: 127 * 32767 each

struct Numbers {
  v128_t low, high;  // channels 0..15 and 16..31 of a block, as signed bytes
};

inline Numbers load_numbers(Type type, const uint8_t* block) {
  const uint8_t* numbers = block_numbers(type, block);
  const v128_t first = wasm_v128_load(numbers);
  if (type != Type::kQ4_0) return {first, wasm_v128_load(numbers + 16)};
  const v128_t zero = wasm_i8x16_splat(8);
  return {wasm_i8x16_sub(wasm_v128_and(first, wasm_i8x16_splat(15)), zero),
          wasm_i8x16_sub(wasm_u8x16_shr(first, 4), zero)};
}

/// Products of a block with one query row, in four lanes.
inline v128_t block_products(v128_t k0, v128_t k1, v128_t k2, v128_t k3, const int16_t* q) {
  return wasm_i32x4_add(
      wasm_i32x4_add(wasm_i32x4_dot_i16x8(k0, wasm_v128_load(q)), wasm_i32x4_dot_i16x8(k1, wasm_v128_load(q + 8))),
      wasm_i32x4_add(wasm_i32x4_dot_i16x8(k2, wasm_v128_load(q + 16)),
                     wasm_i32x4_dot_i16x8(k3, wasm_v128_load(q + 24))));
}

/// Scores of N rows with one token, lanes from N on repeating others. `queries` [N][blocks * 32].
template <int32_t N>
inline v128_t score_token(const int16_t* queries, const Tokens& keys, int32_t row) {
  const int32_t blocks = blocks_of(keys.width), width = blocks * kBlockValues;
  v128_t sums[N];
  for (v128_t& sum : sums) sum = wasm_f32x4_const_splat(0);
  const uint8_t* block = token_block(keys, row, 0);
  for (int32_t i = 0; i < blocks; ++i, block += block_bytes(keys.type)) {
    const Numbers k = load_numbers(keys.type, block);
    const v128_t k0 = wasm_i16x8_extend_low_i8x16(k.low), k1 = wasm_i16x8_extend_high_i8x16(k.low);
    const v128_t k2 = wasm_i16x8_extend_low_i8x16(k.high), k3 = wasm_i16x8_extend_high_i8x16(k.high);
    const v128_t scale = wasm_f32x4_splat(block_scale(keys, row, i));
    for (int32_t n = 0; n < N; ++n) {
      const v128_t products = block_products(k0, k1, k2, k3, queries + n * width + kBlockValues * i);
      sums[n] = madd(scale, wasm_f32x4_convert_i32x4(products), sums[n]);
    }
  }
  return sum_each(sums[0], sums[1 % N], sums[2 % N], sums[3 % N]);
}

/// The same for kInt8, whose scale is the token's: one conversion at the end.
template <int32_t N>
inline v128_t score_int8_token(const int16_t* queries, const Tokens& keys, int32_t row) {
  const int32_t width = blocks_of(keys.width) * kBlockValues;
  const uint8_t* from = token_block(keys, row, 0);
  v128_t sums[N];
  for (v128_t& sum : sums) sum = wasm_i32x4_const_splat(0);
  for (int32_t c = 0; c < width; c += 16) {
    const v128_t k = wasm_v128_load(from + c);
    const v128_t low = wasm_i16x8_extend_low_i8x16(k), high = wasm_i16x8_extend_high_i8x16(k);
    for (int32_t n = 0; n < N; ++n) {
      const int16_t* q = queries + n * width + c;
      const v128_t products = wasm_i32x4_add(wasm_i32x4_dot_i16x8(low, wasm_v128_load(q)),
                                             wasm_i32x4_dot_i16x8(high, wasm_v128_load(q + 8)));
      sums[n] = wasm_i32x4_add(sums[n], products);
    }
  }
  for (v128_t& sum : sums) sum = wasm_f32x4_convert_i32x4(sum);
  return wasm_f32x4_mul(sum_each(sums[0], sums[1 % N], sums[2 % N], sums[3 % N]), wasm_f32x4_splat(keys.scale[row]));
}

/// out[key][4]: scores of N rows with tokens j..j+count-1. `scales` of the query rows, call.scale in them.
template <int32_t N>
ATTENTION_NOINLINE uint32_t score_blocks(const int16_t* queries, const float scales[kBlockRows], const Tokens& keys,
                                         int32_t j, int32_t count, Walk values, float* out) {
  const v128_t scale = wasm_v128_load(scales);
  const bool whole = keys.type == Type::kInt8 && keys.width <= kExactChannels;
  for (int32_t u = 0; u < count; ++u) {
    const int32_t row = keys.row(j + u);
    values.step();
    const v128_t score = whole ? score_int8_token<N>(queries, keys, row) : score_token<N>(queries, keys, row);
    wasm_v128_store(out + kBlockRows * u, wasm_f32x4_mul(score, scale));
  }
  return values.seen();
}

/// Sixteen channels of a block as signed bytes: half 0 or 1.
inline v128_t load_half(Type type, const uint8_t* block, int32_t half) {
  const Numbers numbers = load_numbers(type, block);
  return half ? numbers.high : numbers.low;
}

/// sums[c] = scale * sums[c] + t * sum over pairs of keys of w16 * v8, for sixteen channels of one row.
inline void add_half(const Tokens& values, const int32_t* rows, int32_t count, int32_t block, int32_t half,
                     const int16_t* weights, float weight_scale, float scale, int32_t width, float* sums) {
  v128_t total[4];
  for (v128_t& sum : total) sum = wasm_i32x4_const_splat(0);
  for (int32_t u = 0; u < count; u += 2) {
    // An odd count is padded with its last key again, whose second weight is 0.
    const v128_t a = load_half(values.type, token_block(values, rows[u], block), half);
    const v128_t b = load_half(values.type, token_block(values, rows[u + 1 < count ? u + 1 : u], block), half);
    const v128_t low = wasm_i8x16_shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const v128_t high = wasm_i8x16_shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const v128_t pair = wasm_v128_load32_splat(weights + u);
    total[0] = wasm_i32x4_add(total[0], wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(low), pair));
    total[1] = wasm_i32x4_add(total[1], wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(low), pair));
    total[2] = wasm_i32x4_add(total[2], wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(high), pair));
    total[3] = wasm_i32x4_add(total[3], wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(high), pair));
  }
  const v128_t factor = wasm_f32x4_splat(weight_scale), old = wasm_f32x4_splat(scale);
  for (int32_t i = 0; i < 4 && 4 * i < width; ++i) {
    const v128_t sum =
        madd(factor, wasm_f32x4_convert_i32x4(total[i]), wasm_f32x4_mul(wasm_v128_load(sums + 4 * i), old));
    wasm_v128_store(sums + 4 * i, sum);
  }
}

/// Row n of a block of rows: its sums over the values of tokens j..j+count-1. `weights` [count][4]; `sums` is padded to
/// a multiple of four channels. `checked`: what isn't finite is left out. Not finite weights need nothing more, because
/// their row's sum of weights is NaN; scales: see add_other_blocks.
ATTENTION_NOINLINE inline void add_blocks(const float* weights, const Tokens& values, int32_t j, int32_t count,
                                          float scale, bool checked, float* sums) {
  int32_t rows[kBlockKeys];
  float scaled[kBlockKeys];
  alignas(4) int16_t whole[kBlockKeys];
  for (int32_t u = 0; u < count; ++u) rows[u] = values.row(j + u);
  float weight_scale = 0;
  for (int32_t block = 0; block < blocks_of(values.width); ++block) {
    if (block == 0 || values.type != Type::kInt8) {
      for (int32_t u = 0; u < count; ++u) scaled[u] = weights[kBlockRows * u] * block_scale(values, rows[u], block);
      for (int32_t u = 0; u < count && checked; ++u) scaled[u] = std::isfinite(scaled[u]) ? scaled[u] : 0;
      weight_scale = to_16_bits(scaled, count, whole);
      if (count % 2) whole[count] = 0;
    }
    for (int32_t half = 0; half < 2; ++half) {
      const int32_t c = kBlockValues * block + 16 * half;
      if (c < values.width) {
        add_half(values, rows, count, block, half, whole, weight_scale, scale, values.width - c, sums + c);
      }
    }
  }
}

/// The blocks of one token whose scale isn't finite, for the rows that see it. `weights` [4].
inline void add_other_blocks(const Tokens& values, int32_t row, const float* weights, const float visible[kBlockRows],
                             int32_t valid, float* sums) {
  for (int32_t c = 0; c < values.width; ++c) {
    if (std::isfinite(block_scale(values, row, c / kBlockValues))) continue;
    const float value = token_value(values, row, c);
    for (int32_t n = 0; n < valid; ++n) {
      if (visible[n] != 0) sums[n * padded(values.width) + c] += weights[n] * value;
    }
  }
}

/// Whether every scale of the tokens is finite; a token or block that has another reads as NaN.
inline bool finite_scales(const Tokens& tokens, int32_t j, int32_t count) {
  const int32_t blocks = tokens.type == Type::kInt8 ? 1 : blocks_of(tokens.width);
  for (int32_t u = 0; u < count; ++u) {
    for (int32_t block = 0; block < blocks; ++block) {
      if (!std::isfinite(block_scale(tokens, tokens.row(j + u), block))) return false;
    }
  }
  return true;
}

}  // namespace attention
