// The inner loops of decode.cpp over quantised values: products of whole numbers, 16 bits by 8, summed in 32.
//
//   o_c += t sum_j w16_j 2^8 v8_jc          w16_j = e^(x_j - m) d_j / (2^8 t), t the scale of the run's weights
//
// Weights have 15 bits and a sign, so nearly all of the error is that of the cache. The product sums neighbours, so the
// values of two keys are interleaved, two channels at a time: each 16 bits then hold an odd channel above an even one
// with its offset. The words are summed as they are, and their odd channels alone, which leaves the even ones. What the
// offset adds to a sum is known from the weights. These add up to kMostWeight for a run of keys at most, so that all
// sums end below 2^31.
#pragma once

#include "decode-blocks.h"

namespace attention {

constexpr float kMostWeight = 65000;  // less than 2^16 by the rounding of kBlockKeys weights

/// The scales of `count` tokens from `row` on for a block of values, and 0 up to kBlockKeys: where they stand, or in
/// `buffer`.
inline const float* run_scales(const Tokens& values, int32_t row, int32_t count, int32_t block, float* buffer) {
  const bool of_tokens = values.type == Type::kInt8;
  if (of_tokens && count == kBlockKeys) return values.scale + row;
  if (count < kBlockKeys) std::fill(buffer, buffer + kBlockKeys, 0.0f);
  if (of_tokens) {
    std::copy_n(values.scale + row, count, buffer);
    return buffer;
  }
  const uint8_t* token = token_block(values, row, block);
#pragma clang loop unroll(disable)
  for (int32_t u = 0; u < count; u += 4, token += 4 * values.stride) {
    const uint8_t* blocks[4];
    find_tokens<4>(token, values.stride, count - u, blocks);
    wasm_v128_store(buffer + u, block_scales<4>(blocks));
  }
  return buffer;
}

/// The weights of a run of tokens for one block of values, as whole numbers; those up to kBlockKeys are 0.
struct RunWeights {
  alignas(16) float scaled[kBlockKeys * kBlockRows];         // weights times scales, as logits stand
  alignas(16) int32_t numbers[kBlockKeys / 2 * kBlockRows];  // of 16 bits, two tokens to a lane
  float unit[kBlockRows];                                    // what one of the numbers stands for
  int32_t offset[kBlockRows];                                // what the offset of even channels adds to their sums

  /// `weights` [kBlockKeys] as logits stand, `scales` [kBlockKeys]. Whether all scales were finite; where one isn't,
  /// its token counts 0, see add_other_blocks. Weights that aren't finite count 0, too: their row's sum of weights is
  /// NaN already.
  template <bool kSingle>
  ATTENTION_INLINE bool pack(const float* weights, const float* scales) {
    const v128_t infinity = wasm_f32x4_splat(INFINITY);
    v128_t most = wasm_f32x4_const_splat(0), all = most;
    Finite finite;
    const auto put = [&](int32_t u, v128_t scale) {
      const v128_t product = wasm_f32x4_mul(wasm_v128_load(weights + 4 * u), scale);
      const v128_t magnitude = wasm_f32x4_abs(product), counts = wasm_f32x4_lt(magnitude, infinity);
      const v128_t counted = wasm_v128_and(magnitude, counts);
      most = wasm_f32x4_pmax(most, counted);
      all = wasm_f32x4_add(all, counted);
      wasm_v128_store(scaled + 4 * u, wasm_v128_and(product, counts));
    };
#pragma clang loop unroll(disable)
    for (int32_t u = 0; u < kBlockKeys; u += 4) {
      const v128_t some = wasm_v128_load(scales + u);
      finite.see(some);
      if constexpr (kSingle) {
        put(u / 4, some);
      } else {
#pragma clang loop unroll(disable)
        for (int32_t i = 0; i < 4; ++i) put(u + i, load_splat(scales + u + i));
      }
    }
    if constexpr (kSingle) {
      most = wasm_f32x4_splat(max_lanes(most));
      all = sum_each(all, all, all, all);
    }
    const v128_t step = wasm_f32x4_pmax(wasm_f32x4_mul(most, wasm_f32x4_splat(1 / kLargest16)),
                                        wasm_f32x4_mul(all, wasm_f32x4_splat(1 / kMostWeight)));
    wasm_v128_store(unit, wasm_f32x4_mul(step, wasm_f32x4_splat(1.0f / 256)));
    // Of less than 1e-38 the inverse would be infinite, and 0 times it NaN.
    const v128_t inverse =
        wasm_v128_and(wasm_f32x4_div(wasm_f32x4_splat(1), step), wasm_f32x4_gt(step, wasm_f32x4_splat(1e-38f)));
    to_numbers<kSingle>(inverse);
    return finite.all();
  }

  template <bool kSingle>
  ATTENTION_INLINE void to_numbers(v128_t inverse) {
    // What is added to 1.5 * 2^23 is rounded, and stands in the low bits of the sum.
    const v128_t round = wasm_f32x4_splat(0x1.8p23f), low = wasm_i32x4_splat(0xffff);
    const v128_t once = wasm_i16x8_splat(kOffset);
    v128_t added = wasm_i32x4_const_splat(0);
    const auto number = [&](int32_t u) {
      return wasm_f32x4_add(wasm_f32x4_mul(wasm_v128_load(scaled + 4 * u), inverse), round);
    };
#pragma clang loop unroll(disable)
    for (int32_t u = 0; u < kBlockKeys * (kSingle ? 1 : kBlockRows) / 4; u += 2) {
      const v128_t a = number(u), b = number(u + 1);
      // A single row's neighbours are pairs already: only their low halves are kept.
      const v128_t pairs = kSingle ? wasm_i16x8_shuffle(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
                                   : wasm_v128_or(wasm_v128_and(a, low), wasm_i32x4_shl(b, 16));
      wasm_v128_store(numbers + 2 * u, pairs);
      added = wasm_i32x4_add(added, wasm_i32x4_dot_i16x8(pairs, once));
    }
    if constexpr (kSingle) {
      added = wasm_i32x4_add(added, wasm_i64x2_shuffle(added, added, 1, 0));
      added = wasm_i32x4_add(added, wasm_i32x4_shuffle(added, added, 1, 0, 3, 2));
    }
    wasm_v128_store(offset, added);
  }
};

/// How the even channels of values lie in the bytes that a loop reads. A single row is worth a loop for each.
enum class Evens { kOffset, kSigned, kEither };

/// Sums of products for N rows and some eights of channels: of the odd channels, and of the words; where the even ones
/// are kSigned, of these alone, times 2^8.
template <int32_t N, int32_t kEights>
using Totals = v128_t[N][kEights][2];

/// sums[n][c] = scale[n] * sums[n][c] + what the totals stand for, for channels c of row n up to the last.
template <int32_t N, Evens kEvens, int32_t kEights>
ATTENTION_INLINE void add_totals(const Totals<N, kEights>& totals, const RunWeights& weights, const float* scale,
                                 int32_t c, int32_t channels, float* sums) {
  for (int32_t n = 0; n < N; ++n) {
    const v128_t unit = load_splat(weights.unit + n), old = load_splat(scale + n);
    const v128_t offset = wasm_v128_load32_splat(weights.offset + n);
    const auto add = [&](int32_t i, v128_t total) {
      float* to = sums + N * (c + 4 * i) + 4 * n;
      wasm_v128_store(to, madd(unit, wasm_f32x4_convert_i32x4(total), wasm_f32x4_mul(wasm_v128_load(to), old)));
    };
    for (int32_t i = 0; i < kEights; ++i) {
      const v128_t odd = wasm_i32x4_shl(totals[n][i][0], 8);
      const v128_t both = totals[n][i][1];
      const v128_t even =
          kEvens == Evens::kSigned ? both : wasm_i32x4_shl(wasm_i32x4_sub(wasm_i32x4_sub(both, odd), offset), 8);
      if (c + 8 * i < channels) add(2 * i, wasm_i32x4_shuffle(even, odd, 0, 4, 1, 5));
      if (c + 8 * i + 4 < channels) add(2 * i + 1, wasm_i32x4_shuffle(even, odd, 2, 6, 3, 7));
    }
  }
}

/// sums[n][c] = scale[n] * sums[n][c] + sum over a run of `count` tokens of weight[n] * value, for N rows and channels
/// with the same weights, as many at a time as the registers hold. `numbers`: the first channel in the first token;
/// `missing`: the offset that kEither doesn't have as it lies, 0 or kOffset.
template <int32_t N, Evens kEvens>
ATTENTION_NOINLINE void add_numbers(const RunWeights& weights, const uint8_t* numbers, ptrdiff_t stride, int32_t count,
                                    const float* scale, int32_t channels, int32_t missing, float* sums) {
  constexpr int32_t kEights = kAccumulators / 2 / N;
  const v128_t flip = wasm_i16x8_splat(static_cast<int16_t>(missing));
  for (int32_t c = 0; c < channels; c += 8 * kEights) {
    Totals<N, kEights> totals;
    for (auto& eights : totals) {
      for (auto& eight : eights) eight[0] = eight[1] = wasm_i32x4_const_splat(0);
    }
    const uint8_t* first = numbers + c;
    const int32_t* pairs = weights.numbers;
    // Two tokens a turn. The last of an odd count is beside itself, with a weight of 0.
    for (int32_t alone = 0; alone < 2; ++alone) {
      const ptrdiff_t apart = alone ? 0 : stride;
#pragma clang loop unroll(disable)
      for (int32_t left = alone ? count % 2 : count / 2; left > 0; --left, pairs += kLogits<N>, first += 2 * stride) {
        const uint8_t* second = first + apart;
        v128_t pair[N];
        for (int32_t n = 0; n < N; ++n) pair[n] = wasm_v128_load32_splat(pairs + n);
        const auto add = [&](int32_t i, v128_t interleaved) {
          const v128_t words = kEvens == Evens::kEither ? wasm_v128_xor(interleaved, flip) : interleaved;
          const v128_t odd = wasm_i16x8_shr(words, 8);
          const v128_t both = kEvens == Evens::kSigned ? wasm_i16x8_shl(words, 8) : words;
          for (int32_t n = 0; n < N; ++n) {
            totals[n][i][0] = wasm_i32x4_add(totals[n][i][0], wasm_i32x4_dot_i16x8(odd, pair[n]));
            totals[n][i][1] = wasm_i32x4_add(totals[n][i][1], wasm_i32x4_dot_i16x8(both, pair[n]));
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
    }
    add_totals<N, kEvens, kEights>(totals, weights, scale, c, channels, sums);
  }
}

using AddNumbers = decltype(add_numbers<1, Evens::kSigned>);

/// `rows` rows of a block of rows: their sums over the values of a run of tokens, from row `row` on.
template <bool kSingle>
ATTENTION_INLINE bool add_run(AddNumbers* add, int32_t rows, const float* weights, const Tokens& values, int32_t row,
                              int32_t count, const float* scale, float* sums) {
  constexpr int32_t kStep = kSingle ? 1 : kBlockRows;
  RunWeights run;
  alignas(16) float padded_weights[kBlockKeys * kStep], scales[kBlockKeys];
  if (count < kBlockKeys) {
    std::fill(std::copy_n(weights, count * kStep, padded_weights), padded_weights + kBlockKeys * kStep, 0.0f);
    weights = padded_weights;
  }
  bool finite = true;
  const bool of_tokens = values.type == Type::kInt8;
  const int32_t channels = of_tokens ? values.width : kBlockValues;  // with the same weights
  for (int32_t c = 0; c < values.width; c += channels) {
    const int32_t block = c / kBlockValues;
    finite &= run.pack<kSingle>(weights, run_scales(values, row, count, block, scales));
    const uint8_t* numbers = token_block(values, row, block) + (of_tokens ? 0 : kScaleBytes);
    add(run, numbers, values.stride, count, scale, channels, of_tokens ? 0 : kOffset, sums + rows * c);
  }
  return finite;
}

/// `rows` rows of a block of rows: their sums over the values of tokens j..j+count-1. `weights` as logits stand, `add`
/// for as many rows. Whether every scale was finite.
template <bool kSingle>
bool add_blocks(AddNumbers* add, int32_t rows, const float* weights, const Tokens& values, int32_t j, int32_t count,
                const float* scale, float* sums) {
  constexpr float kSame[kBlockRows] = {1, 1, 1, 1};
  bool finite = true;
  int32_t run;
  for (int32_t first = 0; first < count; first += run) {
    run = values.run(j + first, count - first);
    finite &= add_run<kSingle>(add, rows, weights + (kSingle ? 1 : kBlockRows) * first, values, values.row(j + first),
                               run, first == 0 ? scale : kSame, sums);
  }
  return finite;
}

/// The blocks of one token whose scale isn't finite, for the rows that see it. `weights` [valid], `token` its values.
inline void add_other_blocks(const Tokens& values, int32_t row, const float* token, const float* weights,
                             const float visible[kBlockRows], int32_t valid, float* sums) {
  for (int32_t c = 0; c < values.width; ++c) {
    if (std::isfinite(block_scale(values, row, c / kBlockValues))) continue;
    for (int32_t n = 0; n < valid; ++n) {
      if (visible[n] != 0) sums[at_channel(valid, n, c)] += weights[n] * token[c];
    }
  }
}

}  // namespace attention
