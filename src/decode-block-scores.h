// The inner loops of decode.cpp over quantised keys: products of whole numbers, 16 bits by 8, summed in 32.
//
//   x_j = s d_j sum_c q16_c k8_jc           s the scale of the query row, d_j of the block of the key
//
// Queries have 15 bits and a sign, so nearly all of the error is that of the cache. Two channels of a key are read as
// one word, 2^8 odd + even, which a shift and a mask part. The even one is read with its offset: what that adds is the
// same for all keys, and the sums begin at as much less. Sums of kExactChannels end below 2^31; what passes that on the
// way comes back.
#pragma once

#include "decode-blocks.h"

namespace attention {

/// Channels whose products four lanes of 32 bits sum without overflow: 127 * 32767 each.
constexpr int32_t kExactChannels = 2048;

/// Whether queries are multiplied as whole numbers with such keys.
inline bool whole_products(const Tokens& keys) {
  return is_quantized(keys.type) && (keys.type != Type::kInt8 || keys.width <= kExactChannels);
}

/// Query rows as whole numbers.
struct WholeQueries {
  int16_t* numbers;  // in vectors of eight, one of each row by turns: of sixteen channels the odd ones, then the even
                     // ones, as words of kInt8 are parted; for other keys the first ones, then the others
  int32_t* starts;   // [rows][4], what makes up for the offset of kInt8 keys
};

/// Puts row n of `rows` there: x [whole_width], of at most the magnitude `most`, rounded as number_16 does.
inline void put_whole(const float* x, float most, const Tokens& keys, int32_t rows, int32_t n, const WholeQueries& to) {
  const v128_t inverse = wasm_f32x4_splat(inverse_16(most)), sign = wasm_i32x4_splat(INT32_MIN);
  const v128_t half = wasm_f32x4_splat(0.5f);
  const auto four = [&](int32_t c) {
    const v128_t number = wasm_f32x4_mul(wasm_v128_load(x + c), inverse);
    return wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_add(number, wasm_v128_or(wasm_v128_and(number, sign), half)));
  };
  v128_t start = wasm_i32x4_const_splat(0);
  for (int32_t c = 0; c < whole_width(keys.width); c += 16) {
    v128_t first = wasm_i16x8_narrow_i32x4(four(c), four(c + 4));
    v128_t second = wasm_i16x8_narrow_i32x4(four(c + 8), four(c + 12));
    if (keys.type == Type::kInt8) {
      const v128_t even = wasm_i16x8_shuffle(first, second, 0, 2, 4, 6, 8, 10, 12, 14);
      first = wasm_i16x8_shuffle(first, second, 1, 3, 5, 7, 9, 11, 13, 15);
      second = even;
    }
    wasm_v128_store(to.numbers + c * rows + 8 * n, first);
    wasm_v128_store(to.numbers + (c + 8) * rows + 8 * n, second);
    start = wasm_i32x4_add(start, wasm_i32x4_dot_i16x8(second, wasm_i16x8_splat(-kOffset)));
  }
  wasm_v128_store(to.starts + 4 * n, start);
}

/// Products of `channels` channels of some keys with N query rows, added to four lanes each.
template <int32_t N, int32_t kKeys, Type kType>
inline void add_products(const uint8_t* const keys[kKeys], const int16_t* queries, int32_t channels,
                         v128_t (&sums)[kKeys][N]) {
  const uint8_t* at[kKeys];
  for (int32_t i = 0; i < kKeys; ++i) at[i] = keys[i];
#pragma clang loop unroll(disable)
  for (const int16_t* end = queries + N * channels; queries < end; queries += 16 * N) {
    const v128_t mask = even_mask();
    const auto half = [&](int32_t i, int32_t second) {
      if (kType == Type::kQ8_0) return wasm_i16x8_load8x8(at[i] + 8 * second);
      const v128_t words = wasm_v128_load(at[i]);
      return second ? wasm_v128_and(words, mask) : wasm_i16x8_shr(words, 8);
    };
    const auto add = [&](int32_t i, int32_t n, v128_t k, int32_t second) {
      const v128_t q = wasm_v128_load(queries + 8 * (N * second + n));
      sums[i][n] = wasm_i32x4_add(sums[i][n], wasm_i32x4_dot_i16x8(k, q));
    };
    if constexpr (N == 1) {
      // Key by key: keys lie a power of two apart, and the caches don't give the same place of two lines at once.
      for (int32_t i = 0; i < kKeys; ++i) {
        for (int32_t second = 0; second < 2; ++second) add(i, 0, half(i, second), second);
      }
    } else {
      for (int32_t second = 0; second < 2; ++second) {
        v128_t k[kKeys];
        for (int32_t i = 0; i < kKeys; ++i) k[i] = half(i, second);
        for (int32_t n = 0; n < N; ++n) {
          for (int32_t i = 0; i < kKeys; ++i) add(i, n, k[i], second);
        }
      }
    }
    for (int32_t i = 0; i < kKeys; ++i) at[i] += 16;
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

template <int32_t N>
inline v128_t row_scales(const float scales[kBlockRows]) {
  const v128_t all = wasm_v128_load(scales);
  return N == 1 ? wasm_f32x4_splat(scales[0]) : N == 2 ? wasm_i64x2_shuffle(all, all, 0, 0) : all;
}

/// Scores of N rows with tokens j..j+count-1 of kInt8. `scales` of the query rows, call.scale in them; `out` has room
/// for kScored keys more. Whether the scale of every token was finite.
template <int32_t N>
ATTENTION_NOINLINE bool score_tokens(const WholeQueries& queries, const float scales[kBlockRows], const Tokens& keys,
                                     int32_t j, int32_t count, float* out) {
  constexpr int32_t kKeys = kScored<N>;
  const v128_t scale = row_scales<N>(scales);
  const uint8_t* const data = token_block(keys, 0, 0);
  const float* const key_scales = keys.scale;
  const ptrdiff_t stride = keys.stride;
  const int32_t channels = whole_width(keys.width);
  Finite finite;
  in_runs<kKeys>(keys, j, count, [&](int32_t u, int32_t row, int32_t left) {
    const uint8_t* tokens[kKeys];
    find_tokens<kKeys>(data + row * stride, stride, left, tokens);
    v128_t sums[kKeys][N];
    for (auto& vectors : sums) {
      for (int32_t n = 0; n < N; ++n) vectors[n] = wasm_v128_load(queries.starts + 4 * n);
    }
    add_products<N, kKeys, Type::kInt8>(tokens, queries.numbers, channels, sums);
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

/// The same for tokens of kQ8_0. The sums of four rows with scales of their own fill the registers alone.
template <int32_t N>
ATTENTION_NOINLINE bool score_blocks(const WholeQueries& queries, const float scales[kBlockRows], const Tokens& keys,
                                     int32_t j, int32_t count, float* out) {
  constexpr int32_t kKeys = N > 2 ? 1 : kScored<N>;
  const v128_t scale = row_scales<N>(scales);
  const int32_t blocks = blocks_of(keys.width);
  const ptrdiff_t bytes = block_bytes(Type::kQ8_0);
  Finite finite;
  in_runs<kKeys>(keys, j, count, [&](int32_t u, int32_t row, int32_t left) {
    const uint8_t* tokens[kKeys];
    find_tokens<kKeys>(token_block(keys, row, 0), keys.stride, left, tokens);
    v128_t sums[kKeys][N];
    for (auto& vectors : sums) {
      for (v128_t& sum : vectors) sum = wasm_f32x4_const_splat(0);
    }
    const int16_t* block_queries = queries.numbers;
    for (int32_t block = 0; block < blocks; ++block) {
      v128_t products[kKeys][N];
      const uint8_t* numbers[kKeys];
      for (auto& vectors : products) {
        for (v128_t& sum : vectors) sum = wasm_i32x4_const_splat(0);
      }
      for (int32_t i = 0; i < kKeys; ++i) numbers[i] = tokens[i] + kScaleBytes;
      add_products<N, kKeys, Type::kQ8_0>(numbers, block_queries, kBlockValues, products);
      block_queries += N * kBlockValues;
      float of_keys[4];
      const v128_t some = block_scales<kKeys>(tokens);
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

}  // namespace attention
