// The inner loops of decode.cpp over quantised keys and values: products of whole numbers, 16 bits by 8, summed in 32.
//
//   scores:  x_j  = s d_j sum_c q16_c k8_jc           s the scale of the query row, d_j of the block of the key
//   sums:    o_c += t sum_j w16_j 2^8 v8_jc           w16_j = e^(x_j - m) d_j / (2^8 t), t the scale of the run's
//   weights
//
// Queries and weights have 15 bits and a sign, so nearly all of the error is that of the cache. The keys' numbers are
// read and widened in one instruction; 512 channels of products stay below 2^31. The product sums neighbours, so the
// values of two keys are interleaved, two channels at a time: each 16 bits then hold an odd channel above an even one,
// and a shift or a mask leaves one of them, times 2^8. The weights of a run of keys add up to kMostWeight at most, so
// that their sums stay below 2^31, too.
#pragma once

#include "decode-rows.h"
#include "quantize.h"

namespace attention {

constexpr int32_t kExactChannels =
    512;  // channels whose products a 32-bit lane sums without overflow: 127 * 32767 each

/// Whether the scores of a token need its scale but once.
inline bool one_scale(const Tokens& tokens) { return tokens.type == Type::kInt8 && tokens.width <= kExactChannels; }

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
    const auto add = [&](int32_t i, int32_t u, int32_t n, v128_t k) {
      const v128_t q = wasm_v128_load(queries + N * u + 8 * n);
      sums[i][n] = wasm_i32x4_add(sums[i][n], wasm_i32x4_dot_i16x8(k, q));
    };
    if constexpr (N == 1) {
      // Key by key: keys lie a power of two apart, and the caches don't give the same place of two lines at once.
      for (int32_t i = 0; i < kKeys; ++i) {
        for (int32_t u = 0; u < kStep; u += 8) add(i, u, 0, wasm_i16x8_load8x8(at[i] + u));
      }
    } else {
      for (int32_t u = 0; u < kStep; u += 8) {
        v128_t k[kKeys];
        for (int32_t i = 0; i < kKeys; ++i) k[i] = wasm_i16x8_load8x8(at[i] + u);
        for (int32_t n = 0; n < N; ++n) {
          for (int32_t i = 0; i < kKeys; ++i) add(i, u, n, k[i]);
        }
      }
    }
    for (int32_t i = 0; i < kKeys; ++i) at[i] += kStep;
  }
}

/// Tokens j..j+count-1 by kKeys at a time, as far as they stand in neighbouring rows: score(u, row, left) for those
/// from j+u on, of which the first stands in `row` and `left` are neighbours.
template <int32_t kKeys, class Score>
ATTENTION_INLINE void in_runs(const Tokens& keys, int32_t j, int32_t count, const Score& score) {
  int32_t run;
  for (int32_t first = 0; first < count; first += run) {
    run = keys.run(j + first, count - first);
    const int32_t row = keys.row(j + first);
    for (int32_t u = 0; u < run; u += kKeys) score(first + u, row + u, run - u);
  }
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

template <int32_t N>
inline v128_t row_scales(const float scales[kBlockRows]) {
  const v128_t all = wasm_v128_load(scales);
  return N == 1 ? wasm_f32x4_splat(scales[0]) : N == 2 ? wasm_i64x2_shuffle(all, all, 0, 0) : all;
}

/// Whether scales were finite, for which one number stands: 0, or else NaN.
class Finite {
 public:
  void see(v128_t scales) { found_ = wasm_v128_or(found_, wasm_f32x4_sub(scales, scales)); }
  bool all() const { return !wasm_v128_any_true(found_); }

 private:
  v128_t found_ = wasm_f32x4_const_splat(0);
};

/// Scores of N rows with tokens j..j+count-1, which have one_scale. `scales` of the query rows, call.scale in them;
/// `out` has room for kScored keys more. Whether the scale of every token was finite.
template <int32_t N>
ATTENTION_NOINLINE bool score_tokens(const int16_t* queries, const float scales[kBlockRows], const Tokens& keys,
                                     int32_t j, int32_t count, float* out) {
  constexpr int32_t kKeys = kScored<N>;
  const v128_t scale = row_scales<N>(scales);
  const uint8_t* const data = token_block(keys, 0, 0);
  const float* const key_scales = keys.scale;
  const ptrdiff_t stride = keys.stride;
  const int32_t channels = blocks_of(keys.width) * kBlockValues;
  Finite finite;
  in_runs<kKeys>(keys, j, count, [&](int32_t u, int32_t row, int32_t left) {
    const uint8_t* tokens[kKeys];
    find_tokens<kKeys>(data + row * stride, stride, left, tokens);
    v128_t sums[kKeys][N];
    for (auto& vectors : sums) {
      for (v128_t& sum : vectors) sum = wasm_i32x4_const_splat(0);
    }
    add_products<N, kKeys>(tokens, queries, channels, sums);
    for (auto& vectors : sums) {
      for (v128_t& sum : vectors) sum = wasm_f32x4_convert_i32x4(sum);
    }
    float* to = out + kLogits<N> * u;
    if constexpr (N == 1) {
      const v128_t of_keys = load_lanes(key_scales + row, left);
      finite.see(of_keys);
      store_scores<N, kKeys>(sums, wasm_f32x4_mul(scale, of_keys), to);
    } else {
      store_scores<N, kKeys>(sums, scale, to);
      for (int32_t i = 0; i < kKeys && i < left; ++i, to += kBlockRows) {
        const v128_t of_key = load_splat(key_scales + row + i);
        finite.see(of_key);
        wasm_v128_store(to, wasm_f32x4_mul(wasm_v128_load(to), of_key));
      }
    }
  });
  return finite.all();
}

/// The same for other tokens. The sums of four rows with scales of their own fill the registers alone.
template <int32_t N>
ATTENTION_NOINLINE bool score_blocks(const int16_t* queries, const float scales[kBlockRows], const Tokens& keys,
                                     int32_t j, int32_t count, float* out) {
  constexpr int32_t kKeys = N > 2 ? 1 : kScored<N>;
  const v128_t scale = row_scales<N>(scales);
  const int32_t blocks = blocks_of(keys.width);
  const ptrdiff_t bytes = block_bytes(keys.type), skipped = keys.type == Type::kInt8 ? 0 : kScaleBytes;
  Finite finite;
  in_runs<kKeys>(keys, j, count, [&](int32_t u, int32_t row, int32_t left) {
    const uint8_t* tokens[kKeys];
    find_tokens<kKeys>(token_block(keys, row, 0), keys.stride, left, tokens);
    v128_t sums[kKeys][N];
    for (auto& vectors : sums) {
      for (v128_t& sum : vectors) sum = wasm_f32x4_const_splat(0);
    }
    const int16_t* block_queries = queries;
    for (int32_t block = 0; block < blocks; ++block, block_queries += N * kBlockValues) {
      v128_t products[kKeys][N];
      const uint8_t* numbers[kKeys];
      for (auto& vectors : products) {
        for (v128_t& sum : vectors) sum = wasm_i32x4_const_splat(0);
      }
      for (int32_t i = 0; i < kKeys; ++i) numbers[i] = tokens[i] + skipped;
      add_products<N, kKeys>(numbers, block_queries, kBlockValues, products);
      float of_keys[4];
      const v128_t some = block_scales<kKeys>(keys, row, left, tokens);
      finite.see(some);
      wasm_v128_store(of_keys, some);
      for (int32_t i = 0; i < kKeys; ++i) {
        const v128_t d = wasm_f32x4_splat(of_keys[i]);
        for (int32_t n = 0; n < N; ++n) sums[i][n] = madd(d, wasm_f32x4_convert_i32x4(products[i][n]), sums[i][n]);
        tokens[i] += bytes;
      }
    }
    store_scores<N, kKeys>(sums, scale, out + kLogits<N> * u);
  });
  return finite.all();
}

constexpr float kMostWeight = 65000;  // less than 2^16 by the rounding of kBlockKeys weights

/// The weights of a run of tokens for one block of values, as whole numbers.
struct RunWeights {
  alignas(16) float scaled[kBlockKeys * kBlockRows];         // weights times scales, as logits stand
  alignas(16) int32_t numbers[kBlockKeys / 2 * kBlockRows];  // of 16 bits, two tokens to a lane
  float unit[kBlockRows];                                    // what one of the numbers stands for

  /// Tokens row..row+count-1. `weights` as logits stand. Whether all scales were finite; where one isn't, its tokens
  /// count 0, see add_other_blocks. Weights that aren't finite count 0, too: their row's sum of weights is NaN already.
  template <int32_t N>
  ATTENTION_INLINE bool pack(const float* weights, const Tokens& values, int32_t row, int32_t count, int32_t block) {
    const v128_t infinity = wasm_f32x4_splat(INFINITY);
    v128_t most = wasm_f32x4_const_splat(0), all = most;
    Finite finite;
    const auto put = [&](int32_t u, v128_t weight, v128_t scale) {
      const v128_t product = wasm_f32x4_mul(weight, scale);
      const v128_t magnitude = wasm_f32x4_abs(product), counts = wasm_f32x4_lt(magnitude, infinity);
      const v128_t counted = wasm_v128_and(magnitude, counts);
      most = wasm_f32x4_pmax(most, counted);
      all = wasm_f32x4_add(all, counted);
      wasm_v128_store(scaled + 4 * u, wasm_v128_and(product, counts));
    };
    const uint8_t* token = token_block(values, row, block);
    for (int32_t u = 0; u < count; u += 4) {
      const int32_t left = count - u;
      const uint8_t* blocks[4];
      if (values.type != Type::kInt8) find_tokens<4>(token + u * values.stride, values.stride, left, blocks);
      const v128_t some = block_scales<4>(values, row + u, left, blocks);
      finite.see(some);
      if constexpr (N == 1) {
        put(u / 4, load_lanes(weights + u, left), some);
      } else {
        float scales[4];
        wasm_v128_store(scales, some);
        for (int32_t i = 0; i < 4 && i < left; ++i) {
          put(u + i, wasm_v128_load(weights + 4 * (u + i)), load_splat(scales + i));
        }
      }
    }
    if constexpr (N == 1) {
      most = wasm_f32x4_splat(max_lanes(most));
      all = sum_each(all, all, all, all);
    }
    const v128_t step = wasm_f32x4_pmax(wasm_f32x4_mul(most, wasm_f32x4_splat(1 / kLargest16)),
                                        wasm_f32x4_mul(all, wasm_f32x4_splat(1 / kMostWeight)));
    wasm_v128_store(unit, wasm_f32x4_mul(step, wasm_f32x4_splat(1.0f / 256)));
    // Of less than 1e-38 the inverse would be infinite, and 0 times it NaN.
    const v128_t inverse =
        wasm_v128_and(wasm_f32x4_div(wasm_f32x4_splat(1), step), wasm_f32x4_gt(step, wasm_f32x4_splat(1e-38f)));
    to_numbers<N>(count, inverse);
    return finite.all();
  }

  template <int32_t N>
  ATTENTION_INLINE void to_numbers(int32_t count, v128_t inverse) {
    // What is added to 1.5 * 2^23 is rounded, and stands in the low bits of the sum.
    const v128_t round = wasm_f32x4_splat(0x1.8p23f), low = wasm_i32x4_splat(0xffff);
    const auto number = [&](int32_t u) {
      return wasm_f32x4_add(wasm_f32x4_mul(wasm_v128_load(scaled + 4 * u), inverse), round);
    };
    if constexpr (N == 1) {
      // Neighbours are pairs already: only their low halves are kept, of eight tokens at a time.
      for (int32_t u = 0; 4 * u < count; u += 2) {
        const v128_t a = number(u), b = 4 * (u + 1) < count ? number(u + 1) : wasm_i32x4_const_splat(0);
        wasm_v128_store(numbers + 2 * u, wasm_i16x8_shuffle(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
      }
    } else {
      for (int32_t u = 0; u < count; u += 2) {
        const v128_t second = u + 1 < count ? wasm_i32x4_shl(number(u + 1), 16) : wasm_i32x4_const_splat(0);
        wasm_v128_store(numbers + 2 * u, wasm_v128_or(wasm_v128_and(number(u), low), second));
      }
    }
  }
};

/// sums[n][c] = scale[n] * sums[n][c] + sum over a run of `count` tokens of weight[n] * value, for N rows and channels
/// with the same weights, as many at a time as the registers hold. `numbers`: the first channel in the first token.
template <int32_t N>
ATTENTION_NOINLINE void add_numbers(const RunWeights& weights, const uint8_t* numbers, ptrdiff_t stride, int32_t count,
                                    const float* scale, int32_t channels, float* sums) {
  constexpr int32_t kEights = kAccumulators / 2 / N;
  for (int32_t c = 0; c < channels; c += 8 * kEights) {
    v128_t total[N][kEights][2];  // of the even channels, and of the odd ones
    for (auto& eights : total) {
      for (auto& eight : eights) eight[0] = eight[1] = wasm_i32x4_const_splat(0);
    }
    const uint8_t* first = numbers + c;
    const int32_t* pairs = weights.numbers;
#pragma clang loop unroll(disable)
    for (int32_t u = 0; u < count; u += 2, pairs += kLogits<N>, first += 2 * stride) {
      const uint8_t* second = u + 1 < count ? first + stride : first;  // of an odd count the last weighs 0 here
      v128_t pair[N];
      for (int32_t n = 0; n < N; ++n) pair[n] = wasm_v128_load32_splat(pairs + n);
      const auto add = [&](int32_t i, v128_t words) {
        const v128_t even = wasm_i16x8_shl(words, 8), odd = wasm_i16x8_shr(words, 8);
        for (int32_t n = 0; n < N; ++n) {
          total[n][i][0] = wasm_i32x4_add(total[n][i][0], wasm_i32x4_dot_i16x8(even, pair[n]));
          total[n][i][1] = wasm_i32x4_add(total[n][i][1], wasm_i32x4_dot_i16x8(odd, pair[n]));
        }
      };
      if constexpr (kEights == 1) {
        const v128_t a = wasm_v128_load64_zero(first), b = wasm_v128_load64_zero(second);
        add(0, wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
      } else {
        for (int32_t i = 0; i < kEights; i += 2) {
          const v128_t a = wasm_v128_load(first + 8 * i), b = wasm_v128_load(second + 8 * i);
          add(i, wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
          add(i + 1, wasm_i16x8_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15));
        }
      }
    }
    for (int32_t n = 0; n < N; ++n) {
      const v128_t unit = load_splat(weights.unit + n), old = load_splat(scale + n);
      const auto finish = [&](int32_t i, v128_t sum) {
        float* to = sums + N * (c + 4 * i) + 4 * n;
        wasm_v128_store(to, madd(unit, wasm_f32x4_convert_i32x4(sum), wasm_f32x4_mul(wasm_v128_load(to), old)));
      };
      for (int32_t i = 0; i < kEights; ++i) {
        const v128_t even = total[n][i][0], odd = wasm_i32x4_shl(total[n][i][1], 8);
        if (c + 8 * i < channels) finish(2 * i, wasm_i32x4_shuffle(even, odd, 0, 4, 1, 5));
        if (c + 8 * i + 4 < channels) finish(2 * i + 1, wasm_i32x4_shuffle(even, odd, 2, 6, 3, 7));
      }
    }
  }
}

/// N rows of a block of rows: their sums over the values of a run of tokens, from row `row` on.
template <int32_t N>
ATTENTION_INLINE bool add_run(const float* weights, const Tokens& values, int32_t row, int32_t count,
                              const float* scale, float* sums) {
  RunWeights run;
  bool finite = true;
  const bool of_tokens = values.type == Type::kInt8;
  const int32_t channels = of_tokens ? values.width : kBlockValues;  // with the same weights
  for (int32_t c = 0; c < values.width; c += channels) {
    const int32_t block = c / kBlockValues;
    finite &= run.pack<N>(weights, values, row, count, block);
    const uint8_t* numbers = token_block(values, row, block) + (of_tokens ? 0 : kScaleBytes);
    add_numbers<N>(run, numbers, values.stride, count, scale, channels, sums + N * c);
  }
  return finite;
}

/// N rows of a block of rows: their sums over the values of tokens j..j+count-1. `weights` as logits stand. Whether
/// every scale was finite.
template <int32_t N>
bool add_blocks(const float* weights, const Tokens& values, int32_t j, int32_t count, const float* scale, float* sums) {
  constexpr float kSame[kBlockRows] = {1, 1, 1, 1};
  bool finite = true;
  int32_t run;
  for (int32_t first = 0; first < count; first += run) {
    run = values.run(j + first, count - first);
    finite &=
        add_run<N>(weights + kLogits<N> * first, values, values.row(j + first), run, first == 0 ? scale : kSame, sums);
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
