// The inner loops of decode.cpp over quantised values: products of whole numbers, 16 bits by 8, summed in 32.
//
//   o_c += t sum_j w16_j 2^8 v8_jc          w16_j = e^(x_j - m) d_j / (2^8 t), t the scale of the run's weights
//
// Weights have 15 bits and a sign, so nearly all of the error is that of the cache. The product sums neighbours, so the
// values of two keys are interleaved, two channels at a time: each 16 bits then hold an odd channel above an even one,
// and a shift leaves one of them, the even one times 2^8; the sums of odd ones are brought to the same later. The
// weights of a run of keys add up to kMostWeight at most, so that all sums stay below 2^31.
#pragma once

#include "decode-blocks.h"

namespace attention {

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

}  // namespace attention
