// The inner loops of decode.cpp over quantised keys and values: products of whole numbers, 16 bits by 8, summed in 32.
//
//   scores:  x_j  = s d_j sum_c q16_c k8_jc           s the scale of the query row, d_j of the block of the key
//   sums:    o_c += t sum_j w16_j v8_jc               w16_j = e^(x_j - m) d_j / t, t the scale of the tile's weights
//
// Queries and weights have 15 bits and a sign, so nearly all of the error is that of the cache. A sum of 32 products
// stays below 2^28, one over 512 channels below 2^31: both fit. Eight numbers are read and widened in one instruction;
// the values of two keys are then interleaved, because the product sums neighbours.
#pragma once

#include "decode-rows.h"
#include "quantize.h"

namespace attention {

constexpr int32_t kExactChannels =
    512;  // channels whose products a 32-bit lane sums without overflow: 127 * 32767 each

/// Bytes with one scale a token, or with one a block of 32.
enum class Numbers { kToken, kBlock };

inline Numbers numbers_of(const Tokens& tokens) {
  return tokens.type == Type::kInt8 && tokens.width <= kExactChannels ? Numbers::kToken : Numbers::kBlock;
}

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

/// Keys that are scored together; the sums of several rows with scales of their own fill the registers alone.
template <int32_t N, Numbers kNumbers>
constexpr int32_t kCounted = N > 2 && kNumbers != Numbers::kToken ? 1 : kScored<N>;

/// The scales of block i of some keys, in a lane each; lanes beyond the last repeat others.
template <int32_t kKeys>
inline v128_t block_scales(const Tokens& tokens, const int32_t rows[kKeys], const uint8_t* const blocks[kKeys]) {
  if (tokens.type == Type::kInt8) {
    if (kKeys == 4 && rows[3 % kKeys] == rows[0] + 3) return wasm_v128_load(tokens.scale + rows[0]);
    return wasm_f32x4_make(tokens.scale[rows[0]], tokens.scale[rows[1 % kKeys]], tokens.scale[rows[2 % kKeys]],
                           tokens.scale[rows[3 % kKeys]]);
  }
  const v128_t first = wasm_v128_load16_splat(blocks[0]);
  if (kKeys == 1) return Halves()(first);
  const v128_t two = wasm_v128_load16_lane(blocks[1 % kKeys], first, 3);
  const v128_t three = wasm_v128_load16_lane(blocks[2 % kKeys], two, 5);
  return Halves()(wasm_v128_load16_lane(blocks[3 % kKeys], three, 7));
}

/// Products of `channels` channels of some keys with N query rows, added to four lanes each. The queries of N rows lie
/// in vectors of eight channels, one of each row by turns.
template <int32_t N, int32_t kKeys>
inline void add_products(const uint8_t* const keys[kKeys], const int16_t* queries, int32_t channels,
                         v128_t (&sums)[kKeys][N]) {
  constexpr int32_t kStep = N * kKeys > 4 ? 8 : 16;  // as many as have their operands in registers at the same time
  const uint8_t* at[kKeys];
  for (int32_t i = 0; i < kKeys; ++i) at[i] = keys[i];
#pragma clang loop unroll(disable)
  for (const int16_t* end = queries + N * channels; queries < end; queries += N * kStep) {
    for (int32_t u = 0; u < kStep; u += 8) {
      v128_t k[kKeys];
      for (int32_t i = 0; i < kKeys; ++i) k[i] = wasm_i16x8_load8x8(at[i] + u);
      for (int32_t n = 0; n < N; ++n) {
        const v128_t q = wasm_v128_load(queries + N * u + 8 * n);
        for (int32_t i = 0; i < kKeys; ++i) sums[i][n] = wasm_i32x4_add(sums[i][n], wasm_i32x4_dot_i16x8(k[i], q));
      }
    }
    for (int32_t i = 0; i < kKeys; ++i) at[i] += kStep;
  }
}

/// Scores of N rows with kCounted keys. `scale` of the query rows.
template <int32_t N, Numbers kNumbers>
inline void score_numbers(const int16_t* queries, const Tokens& keys, const int32_t rows[kCounted<N, kNumbers>],
                          v128_t scale, float* out) {
  constexpr int32_t kKeys = kCounted<N, kNumbers>;
  const int32_t blocks = blocks_of(keys.width);
  const uint8_t* tokens[kKeys];
  for (int32_t i = 0; i < kKeys; ++i) tokens[i] = token_block(keys, rows[i], 0);
  v128_t sums[kKeys][N];
  for (auto& vectors : sums) {
    for (v128_t& sum : vectors) sum = wasm_i32x4_const_splat(0);
  }
  if constexpr (kNumbers == Numbers::kToken) {
    add_products<N, kKeys>(tokens, queries, blocks * kBlockValues, sums);
  } else {
    const ptrdiff_t bytes = block_bytes(keys.type), skipped = keys.type == Type::kInt8 ? 0 : kScaleBytes;
    for (int32_t block = 0; block < blocks; ++block, queries += N * kBlockValues) {
      v128_t products[kKeys][N];
      const uint8_t* numbers[kKeys];
      for (auto& vectors : products) {
        for (v128_t& sum : vectors) sum = wasm_i32x4_const_splat(0);
      }
      for (int32_t i = 0; i < kKeys; ++i) numbers[i] = tokens[i] + skipped;
      add_products<N, kKeys>(numbers, queries, kBlockValues, products);
      float scales[4];
      wasm_v128_store(scales, block_scales<kKeys>(keys, rows, tokens));
      for (int32_t i = 0; i < kKeys; ++i) {
        const v128_t d = wasm_f32x4_splat(scales[i]);
        for (int32_t n = 0; n < N; ++n) sums[i][n] = madd(d, wasm_f32x4_convert_i32x4(products[i][n]), sums[i][n]);
        tokens[i] += bytes;
      }
    }
  }
  if constexpr (kNumbers != Numbers::kToken) return store_scores<N, kKeys>(sums, scale, out);
  for (auto& vectors : sums) {
    for (v128_t& sum : vectors) sum = wasm_f32x4_convert_i32x4(sum);
  }
  const v128_t of_keys = block_scales<kKeys>(keys, rows, tokens);
  if constexpr (N == 1) return store_scores<N, kKeys>(sums, wasm_f32x4_mul(scale, of_keys), out);
  store_scores<N, kKeys>(sums, scale, out);
  float scales[4];
  wasm_v128_store(scales, of_keys);
  for (int32_t i = 0; i < kKeys; ++i) {
    float* at = out + kBlockRows * i;
    wasm_v128_store(at, wasm_f32x4_mul(wasm_v128_load(at), wasm_f32x4_splat(scales[i])));
  }
}

constexpr int32_t kWalkedTokens = 16;  // as kWalkedRows

/// Scores of N rows with tokens j..j+count-1. `scales` of the query rows, call.scale in them; `out` has room for a
/// multiple of kScored keys.
template <int32_t N, Numbers kNumbers>
ATTENTION_NOINLINE void score_blocks(const int16_t* queries, const float scales[kBlockRows], const Tokens& keys,
                                     int32_t j, int32_t count, Walk& own, Walk& values, float* out) {
  constexpr int32_t kKeys = kCounted<N, kNumbers>;
  const v128_t all = wasm_v128_load(scales);
  const v128_t scale = N == 1 ? wasm_f32x4_splat(scales[0]) : N == 2 ? wasm_i64x2_shuffle(all, all, 0, 0) : all;
  const int32_t first = keys.row(j), run = keys.run(j, count);
  for (int32_t u = 0; u < count; u += kKeys) {
    int32_t rows[kKeys];
    for (int32_t i = 0; i < kKeys; ++i) {
      const int32_t key = std::min(u + i, count - 1);  // beyond the last one: itself again
      rows[i] = key < run ? first + key : keys.row(j + key);
    }
    if (u % kWalkedTokens == 0) {
      values.step(kWalkedTokens);
      own.step(kWalkedTokens);
    }
    score_numbers<N, kNumbers>(queries, keys, rows, scale, out + kLogits<N> * u);
  }
}

/// The weights of a tile of keys for one block of values.
struct TileWeights {
  const uint8_t* tokens[kBlockKeys + 1];  // of each key; an odd count has its last key twice, whose second weight is 0
  int32_t rows[kBlockKeys + 3];           // of the keys, and the last one again up to a multiple of four
  float scales[kBlockKeys + 3];           // of the keys, for this block
  alignas(16) float scaled[kBlockKeys * kBlockRows];         // weights times scales, as logits stand
  alignas(16) int32_t numbers[kBlockKeys / 2 * kBlockRows];  // of 16 bits, two keys to a lane
  float unit[kBlockRows];                                    // what one of the numbers stands for

  /// Tokens j..j+count-1.
  void find(const Tokens& values, int32_t j, int32_t count) {
    const int32_t first = values.row(j), run = values.run(j, count);
    const uint8_t* token = token_block(values, first, 0);
    for (int32_t u = 0; u < run; ++u, token += values.stride) {
      rows[u] = first + u;
      tokens[u] = token;
    }
    for (int32_t u = run; u < count; ++u) {
      rows[u] = values.row(j + u);
      tokens[u] = token_block(values, rows[u], 0);
    }
    for (int32_t u = count; u % 4 != 0; ++u) rows[u] = rows[count - 1];
    tokens[count] = tokens[count - 1];
  }

  /// Whether all scales are finite.
  bool load_scales(const Tokens& values, int32_t count, int32_t block) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(block) * block_bytes(values.type);
    v128_t found = wasm_f32x4_const_splat(0);
    for (int32_t u = 0; u < count; u += 4) {
      const uint8_t* blocks[4];
      for (int32_t i = 0; i < 4; ++i) blocks[i] = tokens[std::min(u + i, count)] + at;
      const v128_t some = block_scales<4>(values, rows + u, blocks);
      found = wasm_v128_or(found, wasm_f32x4_sub(some, some));  // 0 for finite numbers, NaN for the others
      wasm_v128_store(scales + u, some);
    }
    return !wasm_v128_any_true(found);
  }

  /// `weights` as logits stand. Whether all scales were finite; where one isn't, its keys count 0, see
  /// add_other_blocks. Weights that aren't finite count 0, too: their row's sum of weights is NaN already.
  template <int32_t N>
  bool pack(const float* weights, const Tokens& values, int32_t count, int32_t block) {
    const bool finite = load_scales(values, count, block);
    const v128_t infinity = wasm_f32x4_splat(INFINITY);
    v128_t most = wasm_f32x4_const_splat(0);
    const int32_t vectors = N == 1 ? (count + 3) / 4 : count;
    for (int32_t u = 0; u < vectors; ++u) {
      const v128_t scale = N == 1 ? wasm_v128_load(scales + 4 * u) : wasm_f32x4_splat(scales[u]);
      const v128_t product = wasm_f32x4_mul(wasm_v128_load(weights + 4 * u), scale);
      const v128_t magnitude = wasm_f32x4_abs(product), counts = wasm_f32x4_lt(magnitude, infinity);
      most = wasm_f32x4_pmax(most, wasm_v128_and(magnitude, counts));
      wasm_v128_store(scaled + 4 * u, wasm_v128_and(product, counts));
    }
    if (N == 1) most = wasm_f32x4_splat(max_lanes(most));
    wasm_v128_store(unit, wasm_f32x4_mul(most, wasm_f32x4_splat(1 / kLargest16)));
    // Of less than 1e-34 the inverse would be infinite, and 0 times it NaN.
    const v128_t inverse = wasm_v128_and(wasm_f32x4_div(wasm_f32x4_splat(kLargest16), most),
                                         wasm_f32x4_gt(most, wasm_f32x4_splat(1e-34f)));
    // What is added to 1.5 * 2^23 is rounded, and stands in the low bits of the sum.
    const v128_t round = wasm_f32x4_splat(0x1.8p23f), low = wasm_i32x4_splat(0xffff);
    const auto number = [&](int32_t u) {
      return wasm_f32x4_add(wasm_f32x4_mul(wasm_v128_load(scaled + 4 * u), inverse), round);
    };
    if constexpr (N == 1) {
      // Neighbours are pairs already: only their low halves are kept, of eight keys at a time.
      for (int32_t u = 0; u < vectors; u += 2) {
        const v128_t a = number(u), b = u + 1 < vectors ? number(u + 1) : wasm_i32x4_const_splat(0);
        wasm_v128_store(numbers + 2 * u, wasm_i16x8_shuffle(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
      }
    } else {
      for (int32_t u = 0; u < count; u += 2) {
        const v128_t second = u + 1 < count ? wasm_i32x4_shl(number(u + 1), 16) : wasm_i32x4_const_splat(0);
        wasm_v128_store(numbers + 2 * u, wasm_v128_or(wasm_v128_and(number(u), low), second));
      }
    }
    return finite;
  }
};

/// sums[n][c] = scale[n] * sums[n][c] + sum over the keys of weight[n] * value, for N rows and as many
/// channels of a block as the registers hold, from channel c of the block on. `at`: where the block's numbers stand in
/// a token. `width`: channels that are left.
template <int32_t N>
ATTENTION_NOINLINE void add_numbers(const TileWeights& weights, int32_t pairs, ptrdiff_t at, const float* scale,
                                    int32_t width, float* sums) {
  constexpr int32_t kEights = kAccumulators / 2 / N;
  v128_t total[N][2 * kEights];
  for (auto& vectors : total) {
    for (v128_t& sum : vectors) sum = wasm_i32x4_const_splat(0);
  }
  const int32_t* numbers = weights.numbers;
  for (int32_t p = 0; p < pairs; ++p, numbers += kLogits<N>) {
    const uint8_t *first = weights.tokens[2 * p] + at, *second = weights.tokens[2 * p + 1] + at;
    v128_t pair[N];
    for (int32_t n = 0; n < N; ++n) pair[n] = wasm_v128_load32_splat(numbers + n);
    for (int32_t i = 0; i < kEights; ++i) {
      const v128_t a = wasm_i16x8_load8x8(first + 8 * i), b = wasm_i16x8_load8x8(second + 8 * i);
      const v128_t low = wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      const v128_t high = wasm_i16x8_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
      for (int32_t n = 0; n < N; ++n) {
        total[n][2 * i] = wasm_i32x4_add(total[n][2 * i], wasm_i32x4_dot_i16x8(low, pair[n]));
        total[n][2 * i + 1] = wasm_i32x4_add(total[n][2 * i + 1], wasm_i32x4_dot_i16x8(high, pair[n]));
      }
    }
  }
  for (int32_t n = 0; n < N; ++n, sums += 4) {
    const v128_t unit = wasm_f32x4_splat(weights.unit[n]), old = wasm_f32x4_splat(scale[n]);
    for (int32_t i = 0; i < 2 * kEights && 4 * i < width; ++i) {
      float* to = sums + 4 * N * i;
      const v128_t sum = wasm_f32x4_mul(wasm_v128_load(to), old);
      wasm_v128_store(to, madd(unit, wasm_f32x4_convert_i32x4(total[n][i]), sum));
    }
  }
}

/// N rows of a block of rows: their sums over the values of tokens j..j+count-1. `weights` as logits stand. Whether
/// every scale was finite.
template <int32_t N>
bool add_blocks(const float* weights, const Tokens& values, int32_t j, int32_t count, const float* scale, float* sums) {
  TileWeights tile;
  tile.find(values, j, count);
  bool finite = true;
  const int32_t pairs = (count + 1) / 2;
  const ptrdiff_t skipped = values.type == Type::kInt8 ? 0 : kScaleBytes;
  for (int32_t block = 0; block < blocks_of(values.width); ++block) {
    if (block == 0 || values.type != Type::kInt8) finite &= tile.pack<N>(weights, values, count, block);
    const ptrdiff_t at = static_cast<ptrdiff_t>(block) * block_bytes(values.type) + skipped;
    const int32_t first = kBlockValues * block, left = values.width - first;
    for (int32_t c = 0; c < kBlockValues && c < left; c += 4 * kAccumulators / N) {
      add_numbers<N>(tile, pairs, at + c, scale, left - c, sums + N * (first + c));
    }
  }
  return finite;
}

/// The blocks of one token whose scale isn't finite, for the rows that see it. `weights` [valid].
inline void add_other_blocks(const Tokens& values, int32_t row, const float* weights, const float visible[kBlockRows],
                             int32_t valid, float* sums) {
  for (int32_t c = 0; c < values.width; ++c) {
    if (std::isfinite(block_scale(values, row, c / kBlockValues))) continue;
    const float value = token_value(values, row, c);
    for (int32_t n = 0; n < valid; ++n) {
      if (visible[n] != 0) sums[at_channel(valid, n, c)] += weights[n] * value;
    }
  }
}

/// Whether every scale of a token is finite; a token or block that has another reads as NaN.
inline bool finite_scales(const Tokens& tokens, int32_t row) {
  const int32_t blocks = tokens.type == Type::kInt8 ? 1 : blocks_of(tokens.width);
  for (int32_t block = 0; block < blocks; ++block) {
    if (!std::isfinite(block_scale(tokens, row, block))) return false;
  }
  return true;
}

}  // namespace attention
