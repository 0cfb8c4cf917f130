// The inner loops of decode.cpp over float32 keys and values: up to four query rows against a few keys, channels in
// lanes.
#pragma once

#include "convert.h"
#include "kernels.h"
#include "row-group.h"

namespace attention {

constexpr int32_t kBlockRows = 4;     // rows of a block: one vector of logits
constexpr int32_t kFloatKeys = 8;     // of a tile: the values that were walked are still near when they are summed
constexpr int32_t kBlockKeys = 32;    // of a tile of quantised keys, whose values may be of any type
constexpr int32_t kAccumulators = 8;  // of a product, as many as the registers hold beside its operands

inline int32_t padded(int32_t channels) { return (channels + 3) / 4 * 4; }

/// Sums each of four vectors: lane i of the result is the sum of the lanes of x[i].
inline v128_t sum_each(v128_t x0, v128_t x1, v128_t x2, v128_t x3) {
  const v128_t x01 = wasm_f32x4_add(wasm_i32x4_shuffle(x0, x1, 0, 4, 1, 5), wasm_i32x4_shuffle(x0, x1, 2, 6, 3, 7));
  const v128_t x23 = wasm_f32x4_add(wasm_i32x4_shuffle(x2, x3, 0, 4, 1, 5), wasm_i32x4_shuffle(x2, x3, 2, 6, 3, 7));
  return wasm_f32x4_add(wasm_i64x2_shuffle(x01, x23, 0, 2), wasm_i64x2_shuffle(x01, x23, 1, 3));
}

/// The partial sums of one key: kUnroll vectors for each of N rows, so that eight sums are under way at a time.
template <int32_t N>
v128_t score_key(const float* queries, ptrdiff_t row, const float* key, int32_t channels) {
  constexpr int32_t kUnroll = kAccumulators / N;
  v128_t sums[N][kUnroll];
  for (auto& parts : sums) {
    for (v128_t& sum : parts) sum = wasm_f32x4_const_splat(0);
  }
  int32_t c = 0;
  for (; c + 4 * kUnroll <= channels; c += 4 * kUnroll) {
    for (int32_t u = 0; u < kUnroll; ++u) {
      const v128_t k = wasm_v128_load(key + c + 4 * u);
      for (int32_t n = 0; n < N; ++n) sums[n][u] = madd(wasm_v128_load(queries + n * row + c + 4 * u), k, sums[n][u]);
    }
  }
  for (; c < channels; c += 4) {
    const v128_t k = load_lanes(key + c, channels - c);
    for (int32_t n = 0; n < N; ++n) sums[n][0] = madd(wasm_v128_load(queries + n * row + c), k, sums[n][0]);
  }
  for (int32_t n = 0; n < N; ++n) {
    for (int32_t u = 1; u < kUnroll; ++u) sums[n][0] = wasm_f32x4_add(sums[n][0], sums[n][u]);
  }
  return sum_each(sums[0][0], sums[1 % N][0], sums[2 % N][0], sums[3 % N][0]);
}

/// A straight walk through rows that are needed soon: one read a cache line. Machines fetch ahead of straight walks,
/// and the sums over values jump about in their tile: so the values are walked while their keys are scored. (Walking
/// the next keys while values are summed was tried as well; it took twice the time.)
class Walk {
 public:
  Walk() = default;
  /// `count` rows of so many bytes, `stride` bytes apart.
  Walk(const void* rows, ptrdiff_t stride, int32_t count, int32_t bytes)
      : rows_(static_cast<const char*>(rows)), stride_(stride), count_(count), bytes_(bytes) {}

  /// The next row.
  void step() {
    if (count_ == 0) return;
    for (int32_t at = 0; at < bytes_; at += kCacheLine) seen_ ^= *reinterpret_cast<const volatile uint8_t*>(rows_ + at);
    rows_ += stride_;
    --count_;
  }

  /// What was read, so that nobody takes the reads for useless; the engines drop loads whose value is not used.
  uint32_t seen() const { return seen_; }

 private:
  static constexpr int32_t kCacheLine = 64;
  const char* rows_ = nullptr;
  ptrdiff_t stride_ = 0;
  int32_t count_ = 0, bytes_ = 0;
  uint32_t seen_ = 0;
};

/// Scores of N rows with a tile of keys: out[key][4], lanes from N on repeat others. `queries` [N][padded D].
template <int32_t N>
ATTENTION_NOINLINE uint32_t score_tile(const float* queries, FloatRows keys, int32_t count, int32_t channels,
                                       Walk values, float* out) {
  const ptrdiff_t row = padded(channels);
  for (int32_t j = 0; j < count; ++j) {
    values.step();
    wasm_v128_store(out + kBlockRows * j, score_key<N>(queries, row, keys.data + j * keys.stride, channels));
  }
  return values.seen();
}

/// sums[n][c] = scale[n] * sums[n][c] + sum over keys of weights[key][n] * values[key][c], for 4 * kVectors channels.
template <int32_t N, int32_t kVectors>
ATTENTION_NOINLINE void add_channels(const float* weights, FloatRows values, int32_t count, int32_t c,
                                     const float scale[kBlockRows], float* sums, ptrdiff_t row) {
  v128_t tile[N][kVectors];
  for (auto& vectors : tile) {
    for (v128_t& sum : vectors) sum = wasm_f32x4_const_splat(0);
  }
  const float* from = values.data + c;
  for (int32_t j = 0; j < count; ++j, from += values.stride, weights += kBlockRows) {
    v128_t v[kVectors];
    for (int32_t u = 0; u < kVectors; ++u) v[u] = wasm_v128_load(from + 4 * u);
    for (int32_t n = 0; n < N; ++n) {
      const v128_t weight = load_splat(weights + n);
      for (int32_t u = 0; u < kVectors; ++u) tile[n][u] = madd(weight, v[u], tile[n][u]);
    }
  }
  for (int32_t n = 0; n < N; ++n) {
    for (int32_t u = 0; u < kVectors; ++u) {
      float* at = sums + n * row + c + 4 * u;
      wasm_v128_store(at, madd(wasm_v128_load(at), wasm_f32x4_splat(scale[n]), tile[n][u]));
    }
  }
}

template <int32_t N>
void add_values(const float* weights, FloatRows values, int32_t count, int32_t channels, v128_t scale, float* sums) {
  constexpr int32_t kVectors = kAccumulators / N;
  const ptrdiff_t row = padded(channels);
  float scales[kBlockRows];
  wasm_v128_store(scales, scale);
  int32_t c = 0;
  for (; c + 4 * kVectors <= channels; c += 4 * kVectors) {
    add_channels<N, kVectors>(weights, values, count, c, scales, sums, row);
  }
  for (; c + 4 <= channels; c += 4) add_channels<N, 1>(weights, values, count, c, scales, sums, row);
  for (; c < channels; ++c) {
    for (int32_t n = 0; n < N; ++n) {
      float sum = 0;
      for (int32_t j = 0; j < count; ++j) sum += weights[kBlockRows * j + n] * values.data[j * values.stride + c];
      sums[n * row + c] = sums[n * row + c] * scales[n] + sum;
    }
  }
}

/// The same where a value that some row must not see is infinite or NaN: 0 * NaN would leak it. Sums in the same order,
/// with the same operations: what is hidden changes no bit.
ATTENTION_NOINLINE inline void add_visible_values(const RowGroup<1>& rows, int32_t key, int32_t count, int32_t valid,
                                                  const float* weights, FloatRows values, int32_t channels,
                                                  v128_t scale, float* sums) {
  float scales[kBlockRows], visible[kBlockKeys][kBlockRows];
  wasm_v128_store(scales, scale);
  for (int32_t j = 0; j < count; ++j) {
    wasm_v128_store(visible[j], wasm_v128_and(rows.lanes(key, j, 0), wasm_f32x4_const_splat(1)));
  }
  for (int32_t n = 0; n < valid; ++n, sums += padded(channels)) {
    int32_t c = 0;
    for (; c + 4 <= channels; c += 4) {
      v128_t sum = wasm_f32x4_const_splat(0);
      for (int32_t j = 0; j < count; ++j) {
        if (visible[j][n] == 0) continue;
        sum = madd(load_splat(weights + kBlockRows * j + n), wasm_v128_load(values.data + j * values.stride + c), sum);
      }
      wasm_v128_store(sums + c, madd(wasm_v128_load(sums + c), wasm_f32x4_splat(scales[n]), sum));
    }
    for (; c < channels; ++c) {
      float sum = 0;
      for (int32_t j = 0; j < count; ++j) {
        if (visible[j][n] != 0) sum += weights[kBlockRows * j + n] * values.data[j * values.stride + c];
      }
      sums[c] = sums[c] * scales[n] + sum;
    }
  }
}

}  // namespace attention
