// Products of queries and keys in bytes, for prefill.cpp:
//
//   x = s_i d_j (sum_c q7_ic k7_jc - 64 sum_c q7_ic)      q7 = round(q / s), s = max |q| / 63, k7 = round(k / d) + 64,
//                                                         d = max |k| / 63
//
// The instruction wants one factor with a sign and one of 7 bits without: keys are moved up by 64, which the second sum
// takes back. The other factor has 7 bits as well, so that four products fit into 16 bits and are widened together.
// Four channels stand in a lane, eight rows in two vectors, as in tile.h; keys are splatted four channels at a time.
// Error: half a step of each factor, 0.8 % of the largest channel of a query and of a key.
#pragma once

#include <algorithm>
#include <limits>

#include "convert.h"
#include "math.h"
#include "tile.h"

namespace attention {

constexpr int32_t kByteChannels = 4;  // of a lane
constexpr int32_t kKeyZero = 64;
constexpr int32_t kMostNumber = 63;

/// Lanes of a token: an even number, because two are taken at a time.
inline int32_t byte_steps(int32_t channels) { return (channels + 2 * kByteChannels - 1) / (2 * kByteChannels) * 2; }

/// The scale of a token's numbers, NaN if a value is not finite.
inline float byte_scale(const float* x, int32_t channels, int32_t most) {
  v128_t largest = wasm_f32x4_const_splat(0), found = largest;  // x - x is 0 for every finite x, NaN for the others
  for (int32_t c = 0; c < channels; c += 4) {
    const v128_t lanes = load_lanes(x + c, channels - c);
    largest = wasm_f32x4_pmax(largest, wasm_f32x4_abs(lanes));
    found = wasm_v128_or(found, wasm_f32x4_sub(lanes, lanes));
  }
  if (wasm_v128_any_true(found)) return std::numeric_limits<float>::quiet_NaN();
  return max_lanes(largest) / static_cast<float>(most);
}

/// round(x / scale) for four channels, as 32-bit numbers. Of a token that is not finite the result is of no use.
inline v128_t byte_numbers(v128_t x, v128_t inverse) {
  const v128_t rounded = wasm_f32x4_add(wasm_f32x4_mul(x, inverse), wasm_f32x4_const_splat(kRound));
  return wasm_i32x4_sub(rounded, wasm_i32x4_const_splat(0x4b400000));  // the bits of kRound
}

/// Four 32-bit numbers as four bytes.
inline void store_bytes(void* to, v128_t numbers) {
  const v128_t shorts = wasm_i16x8_narrow_i32x4(numbers, numbers);
  wasm_v128_store32_lane(to, wasm_i8x16_narrow_i16x8(shorts, shorts), 0);
}

/// Keys as bytes [count][steps * 4] and their scales.
inline void keys_to_bytes(FloatRows keys, int32_t count, int32_t channels, uint8_t* to, float* scales) {
  const int32_t row = byte_steps(channels) * kByteChannels;
  const v128_t zero = wasm_i32x4_const_splat(kKeyZero);
  for (int32_t j = 0; j < count; ++j, to += row) {
    const float* key = keys.data + j * keys.stride;
    scales[j] = byte_scale(key, channels, kMostNumber);
    const v128_t inverse = wasm_f32x4_splat(scales[j] > 0 ? 1 / scales[j] : 0);
    for (int32_t c = 0; c < row; c += kByteChannels) {
      store_bytes(to + c, wasm_i32x4_add(byte_numbers(load_lanes(key + c, channels - c), inverse), zero));
    }
  }
}

/// Eight queries as bytes in lanes, [steps][8][4], with what the sums begin with.
struct ByteQueries {
  int8_t* numbers;
  alignas(16) int32_t start[kLanes];
  alignas(16) float scale[kLanes];

  void set(const float* const rows[kLanes], int32_t channels, float factor) {
    for (int32_t i = 0; i < kLanes; ++i) {
      const float step = byte_scale(rows[i], channels, kMostNumber);
      const v128_t inverse = wasm_f32x4_splat(step > 0 ? 1 / step : 0);
      v128_t sum = wasm_i32x4_const_splat(0);
      for (int32_t s = 0; s < byte_steps(channels); ++s) {
        const int32_t c = s * kByteChannels;
        const v128_t four = byte_numbers(load_lanes(rows[i] + c, channels - c), inverse);
        sum = wasm_i32x4_add(sum, four);
        store_bytes(numbers + (s * kLanes + i) * kByteChannels, four);
      }
      scale[i] = step * factor;
      start[i] = -kKeyZero * (wasm_i32x4_extract_lane(sum, 0) + wasm_i32x4_extract_lane(sum, 1) +
                              wasm_i32x4_extract_lane(sum, 2) + wasm_i32x4_extract_lane(sum, 3));
    }
  }
};

/// sum + the products of eight channels of four rows with one key.
inline v128_t add_products(v128_t q0, v128_t k0, v128_t q1, v128_t k1, v128_t ones, v128_t sum) {
  const v128_t fours = wasm_i16x8_add(dot_bytes(q0, k0), dot_bytes(q1, k1));  // at most 4 * 63 * 127 < 2^15
  return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(fours, ones));
}

/// Sums of products of eight rows with four keys.
struct ByteTile {
  v128_t low[4], high[4];

  void add(const int8_t* q, const uint8_t* const k[4], int32_t at, v128_t ones) {
    const v128_t low0 = wasm_v128_load(q), high0 = wasm_v128_load(q + 16);
    const v128_t low1 = wasm_v128_load(q + 32), high1 = wasm_v128_load(q + 48);
    for (int32_t i = 0; i < 4; ++i) {
      const v128_t k0 = wasm_v128_load32_splat(k[i] + at), k1 = wasm_v128_load32_splat(k[i] + at + kByteChannels);
      low[i] = add_products(low0, k0, low1, k1, ones, low[i]);
      high[i] = add_products(high0, k0, high1, k1, ones, high[i]);
    }
  }
};

/// out[u][8] = logits of eight rows with `count` keys in bytes; `out` has room for a multiple of four keys.
ATTENTION_NOINLINE inline void score_bytes(const ByteQueries& queries, const uint8_t* keys, const float* scales,
                                           int32_t count, int32_t channels, float* out) {
  const int32_t row = byte_steps(channels) * kByteChannels;
  const v128_t ones = hold_integers(0x00010001);
  const v128_t low_scale = wasm_v128_load(queries.scale), high_scale = wasm_v128_load(queries.scale + 4);
  for (int32_t u = 0; u < count; u += 4, out += 4 * kLanes) {
    const uint8_t* k[4];
    ByteTile tile;
    for (int32_t i = 0; i < 4; ++i) {
      k[i] = keys + static_cast<ptrdiff_t>(std::min(u + i, count - 1)) * row;
      tile.low[i] = wasm_v128_load(queries.start);
      tile.high[i] = wasm_v128_load(queries.start + 4);
    }
    const int8_t* q = queries.numbers;
    for (int32_t at = 0; at < row; at += 2 * kByteChannels, q += 2 * kLanes * kByteChannels) tile.add(q, k, at, ones);
    for (int32_t i = 0; i < 4; ++i) {
      const v128_t scale = load_splat(scales + std::min(u + i, count - 1));
      const v128_t low = wasm_f32x4_mul(wasm_f32x4_convert_i32x4(tile.low[i]), low_scale);
      const v128_t high = wasm_f32x4_mul(wasm_f32x4_convert_i32x4(tile.high[i]), high_scale);
      wasm_v128_store(out + kLanes * i, wasm_f32x4_mul(low, scale));
      wasm_v128_store(out + kLanes * i + 4, wasm_f32x4_mul(high, scale));
    }
  }
}

}  // namespace attention
