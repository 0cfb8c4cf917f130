// The inner loops of decode.cpp over quantised keys: products of whole numbers, 16 bits by 8, summed in 32.
//
//   x_j = s d_j sum_c q16_c k8_jc           s the scale of the query row, d_j of the block of the key
//
// Queries have 15 bits and a sign, so nearly all of the error is that of the cache. The keys' numbers are read and
// widened in one instruction; 512 channels of products stay below 2^31.
#pragma once

#include "decode-blocks.h"

namespace attention {

constexpr int32_t kExactChannels =
    512;  // channels whose products a 32-bit lane sums without overflow: 127 * 32767 each

/// Whether the scores of a token need its scale but once.
inline bool one_scale(const Tokens& tokens) { return tokens.type == Type::kInt8 && tokens.width <= kExactChannels; }

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

template <int32_t N>
inline v128_t row_scales(const float scales[kBlockRows]) {
  const v128_t all = wasm_v128_load(scales);
  return N == 1 ? wasm_f32x4_splat(scales[0]) : N == 2 ? wasm_i64x2_shuffle(all, all, 0, 0) : all;
}

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

}  // namespace attention
