// The inner loops of decode.cpp over float32 keys and values: up to four query rows against a few keys, channels in
// lanes.
#pragma once

#include "convert.h"
#include "kernels.h"
#include "row-group.h"

namespace attention {

constexpr int32_t kBlockRows = 4;     // rows of a block: one vector of logits
constexpr int32_t kFloatKeys = 8;     // of a tile, or a multiple of them
constexpr int32_t kBlockKeys = 32;    // of a tile of quantised keys, and of any tile at most
constexpr int32_t kAccumulators = 8;  // of a product, as many as the registers hold beside its operands

inline int32_t padded(int32_t channels) { return (channels + 3) / 4 * 4; }

/// Sums each of four vectors: lane i of the result is the sum of the lanes of x[i].
inline v128_t sum_each(v128_t x0, v128_t x1, v128_t x2, v128_t x3) {
  const v128_t x01 = wasm_f32x4_add(wasm_i32x4_shuffle(x0, x1, 0, 4, 1, 5), wasm_i32x4_shuffle(x0, x1, 2, 6, 3, 7));
  const v128_t x23 = wasm_f32x4_add(wasm_i32x4_shuffle(x2, x3, 0, 4, 1, 5), wasm_i32x4_shuffle(x2, x3, 2, 6, 3, 7));
  return wasm_f32x4_add(wasm_i64x2_shuffle(x01, x23, 0, 2), wasm_i64x2_shuffle(x01, x23, 1, 3));
}

/// Logits and weights of N rows stand as [key][4], those of a single row as [key].
template <int32_t N>
constexpr int32_t kLogits = N == 1 ? 1 : kBlockRows;

/// Keys that are scored together, so that they share the loads of the queries.
template <int32_t N>
constexpr int32_t kScored = N == 1 ? 4 : 2;

constexpr int32_t kScoredLogits = 8;  // of any number of rows

/// Stores the scores of kKeys keys, from the partial sums in lanes. Lanes from N on repeat others; a single row has
/// four keys in its lanes.
template <int32_t N, int32_t kKeys>
inline void store_scores(const v128_t (&sums)[kKeys][N], v128_t scale, float* out) {
  if constexpr (N == 1) {
    wasm_v128_store(out, wasm_f32x4_mul(scale, sum_each(sums[0][0], sums[1][0], sums[2][0], sums[3][0])));
  } else if constexpr (N == 2 && kKeys == 2) {
    const v128_t x = wasm_f32x4_mul(scale, sum_each(sums[0][0], sums[0][1], sums[1][0], sums[1][1]));
    wasm_v128_store(out, wasm_i64x2_shuffle(x, x, 0, 0));
    wasm_v128_store(out + kBlockRows, wasm_i64x2_shuffle(x, x, 1, 1));
  } else {
    for (int32_t k = 0; k < kKeys; ++k) {
      const v128_t x = sum_each(sums[k][0], sums[k][1], sums[k][2 % N], sums[k][3 % N]);
      wasm_v128_store(out + kBlockRows * k, wasm_f32x4_mul(scale, x));
    }
  }
}

/// Scores of N rows with kScored keys. Eight sums are under way at a time.
template <int32_t N>
inline void score_keys(const float* queries, ptrdiff_t row, const float* const keys[kScored<N>], int32_t channels,
                       float* out) {
  constexpr int32_t kKeys = kScored<N>, kUnroll = kAccumulators / (N * kKeys);
  v128_t sums[kUnroll][kKeys][N];
  for (auto& parts : sums) {
    for (auto& vectors : parts) {
      for (v128_t& sum : vectors) sum = wasm_f32x4_const_splat(0);
    }
  }
  int32_t c = 0;
  for (; c + 4 * kUnroll <= channels; c += 4 * kUnroll) {
    for (int32_t u = 0; u < kUnroll; ++u) {
      v128_t k[kKeys];
      for (int32_t i = 0; i < kKeys; ++i) k[i] = wasm_v128_load(keys[i] + c + 4 * u);
      for (int32_t n = 0; n < N; ++n) {
        const v128_t q = wasm_v128_load(queries + n * row + c + 4 * u);
        for (int32_t i = 0; i < kKeys; ++i) sums[u][i][n] = madd(q, k[i], sums[u][i][n]);
      }
    }
  }
  for (; c < channels; c += 4) {
    for (int32_t i = 0; i < kKeys; ++i) {
      const v128_t k = load_lanes(keys[i] + c, channels - c);
      for (int32_t n = 0; n < N; ++n) sums[0][i][n] = madd(wasm_v128_load(queries + n * row + c), k, sums[0][i][n]);
    }
  }
  for (int32_t u = 1; u < kUnroll; ++u) {
    for (int32_t i = 0; i < kKeys; ++i) {
      for (int32_t n = 0; n < N; ++n) sums[0][i][n] = wasm_f32x4_add(sums[0][i][n], sums[u][i][n]);
    }
  }
  store_scores<N, kKeys>(sums[0], wasm_f32x4_const_splat(1), out);
}

/// A straight walk through rows, one read a cache line. Machines fetch ahead of straight walks only, and both products
/// jump about between rows: so a few keys are walked just before they are scored, and with each its values. (Walking
/// further ahead, line by line between the products, or a whole tile at once were all tried; they took up to twice the
/// time on 134 MB.)
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

/// Scores of N rows with a tile of keys. `queries` [N][padded D]; `out` has room for a multiple of kScored keys.
template <int32_t N>
ATTENTION_NOINLINE uint32_t score_tile(const float* queries, FloatRows keys, int32_t count, int32_t channels,
                                       const Walk& key_walk, const Walk& value_walk, float* out) {
  Walk own = key_walk, values = value_walk;  // copies, which stay in registers
  constexpr int32_t kKeys = kScored<N>;
  const ptrdiff_t row = padded(channels);
  for (int32_t j = 0; j < count; j += kKeys) {
    const float* some[kKeys];
    for (int32_t i = 0; i < kKeys; ++i) {
      some[i] = keys.data + std::min(j + i, count - 1) * keys.stride;  // beyond the last one: itself again
      values.step();
    }
    for (int32_t i = 0; i < kKeys; ++i) own.step();
    score_keys<N>(queries, row, some, channels, out + kLogits<N> * j);
  }
  return values.seen() ^ own.seen();
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
  for (int32_t j = 0; j < count; ++j, from += values.stride, weights += kLogits<N>) {
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
void add_values(const float* weights, FloatRows values, int32_t count, int32_t channels, const float* scale,
                float* sums) {
  constexpr int32_t kVectors = kAccumulators / N;
  const ptrdiff_t row = padded(channels);
  int32_t c = 0;
  for (; c + 4 * kVectors <= channels; c += 4 * kVectors) {
    add_channels<N, kVectors>(weights, values, count, c, scale, sums, row);
  }
  for (; c + 4 <= channels; c += 4) add_channels<N, 1>(weights, values, count, c, scale, sums, row);
  for (; c < channels; ++c) {
    for (int32_t n = 0; n < N; ++n) {
      float sum = 0;
      for (int32_t j = 0; j < count; ++j) sum += weights[kLogits<N> * j + n] * values.data[j * values.stride + c];
      sums[n * row + c] = sums[n * row + c] * scale[n] + sum;
    }
  }
}

/// The same where a value that some row must not see is infinite or NaN: 0 * NaN would leak it. Sums in the same order,
/// with the same operations: what is hidden changes no bit. `weights` [count][step].
ATTENTION_SMALL inline void add_visible_values(const RowGroup<1>& rows, int32_t key, int32_t count, int32_t valid,
                                               const float* weights, int32_t step, FloatRows values, int32_t channels,
                                               const float* scale, float* sums) {
  float visible[kBlockKeys][kBlockRows];
  for (int32_t j = 0; j < count; ++j) {
    wasm_v128_store(visible[j], wasm_v128_and(rows.lanes(key, j, 0), wasm_f32x4_const_splat(1)));
  }
  for (int32_t n = 0; n < valid; ++n, sums += padded(channels)) {
    int32_t c = 0;
    for (; c + 4 <= channels; c += 4) {
      v128_t sum = wasm_f32x4_const_splat(0);
      for (int32_t j = 0; j < count; ++j) {
        if (visible[j][n] == 0) continue;
        sum = madd(load_splat(weights + step * j + n), wasm_v128_load(values.data + j * values.stride + c), sum);
      }
      wasm_v128_store(sums + c, madd(wasm_v128_load(sums + c), wasm_f32x4_splat(scale[n]), sum));
    }
    for (; c < channels; ++c) {
      float sum = 0;
      for (int32_t j = 0; j < count; ++j) {
        if (visible[j][n] != 0) sum += weights[step * j + n] * values.data[j * values.stride + c];
      }
      sums[c] = sums[c] * scale[n] + sum;
    }
  }
}

}  // namespace attention
