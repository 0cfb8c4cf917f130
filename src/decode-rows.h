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

/// Where channel c of row n of `rows` stands. The queries of a block and its sums lie in vectors of four channels, one
/// of each row by turns: so the inner loops reach all rows from one address.
inline ptrdiff_t at_channel(int32_t rows, int32_t n, int32_t c) {
  return (static_cast<ptrdiff_t>(c / 4) * rows + n) * 4 + c % 4;
}

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

/// Products of four channels of some keys with N query rows, added to four lanes each.
template <int32_t N, int32_t kKeys>
inline void add_scores(const float* queries, const float* const keys[kKeys], int32_t c, v128_t (&sums)[kKeys][N]) {
  v128_t k[kKeys];
  for (int32_t i = 0; i < kKeys; ++i) k[i] = wasm_v128_load(keys[i] + c);
  for (int32_t n = 0; n < N; ++n) {
    const v128_t q = wasm_v128_load(queries + N * c + 4 * n);
    for (int32_t i = 0; i < kKeys; ++i) sums[i][n] = madd(q, k[i], sums[i][n]);
  }
}

/// Scores of N rows with kScored keys. Eight sums are under way at a time: of few rows, those of neighbouring channels
/// apart. The way out between these keeps V8 of Node 20 from loading the operands of both at once, for which the
/// registers don't suffice.
template <int32_t N>
inline void score_keys(const float* queries, const float* const keys[kScored<N>], int32_t channels, float* out) {
  constexpr int32_t kKeys = kScored<N>, kUnroll = kAccumulators / (N * kKeys);
  v128_t sums[kUnroll][kKeys][N];
  for (auto& parts : sums) {
    for (auto& vectors : parts) {
      for (v128_t& sum : vectors) sum = wasm_f32x4_const_splat(0);
    }
  }
  const int32_t whole = channels / 4 * 4;
  for (int32_t c = 0; c < whole; c += 4 * kUnroll) {
    add_scores<N, kKeys>(queries, keys, c, sums[0]);
    if constexpr (kUnroll == 2) {
      if (c + 4 == whole) break;
      add_scores<N, kKeys>(queries, keys, c + 4, sums[1]);
    }
  }
  if (whole < channels) {
    for (int32_t i = 0; i < kKeys; ++i) {
      const v128_t k = load_lanes(keys[i] + whole, channels - whole);
      for (int32_t n = 0; n < N; ++n) {
        sums[0][i][n] = madd(wasm_v128_load(queries + N * whole + 4 * n), k, sums[0][i][n]);
      }
    }
  }
  if constexpr (kUnroll == 2) {
    for (int32_t i = 0; i < kKeys; ++i) {
      for (int32_t n = 0; n < N; ++n) sums[0][i][n] = wasm_f32x4_add(sums[0][i][n], sums[1][i][n]);
    }
  }
  store_scores<N, kKeys>(sums[0], wasm_f32x4_const_splat(1), out);
}

/// A straight walk through neighbouring rows, one read a cache line. Machines fetch ahead of straight walks only, and
/// the products read several rows at a time: so a tile of keys is walked just before it is scored, and a tile of values
/// just before it is added. All reads come from one instruction, because machines tell walks apart by the instruction
/// that reads: written out two or four times, the reads take up to twice as long. Walking further ahead outruns the
/// machine.
class Walk {
 public:
  Walk() = default;  // nowhere
  /// Rows of so many bytes, `stride` bytes apart.
  Walk(const void* rows, ptrdiff_t stride, int32_t bytes)
      : rows_(static_cast<const char*>(rows)), stride_(stride), bytes_(bytes) {}

  ATTENTION_NOINLINE void over(int32_t first, int32_t count) {
    if (!rows_) return;
    const bool gapless = stride_ == bytes_;  // then it is a single long row
    const char* row = rows_ + first * stride_;
    const int32_t length = gapless ? count * bytes_ : bytes_;
    for (int32_t left = gapless ? 1 : count; left > 0; --left, row += stride_) {
#pragma clang loop unroll(disable)
      for (const char* at = row; at < row + length; at += kCacheLine) {
        seen_ ^= *reinterpret_cast<const volatile uint8_t*>(at);
      }
    }
  }

 private:
  static constexpr int32_t kCacheLine = 64;
  const char* rows_ = nullptr;
  ptrdiff_t stride_ = 0;
  int32_t bytes_ = 0;
  uint32_t seen_ = 0;  // kept, because the engines drop loads whose value is not used
};

/// Scores of N rows with a tile of keys. `out` has room for a multiple of kScored keys.
template <int32_t N>
ATTENTION_NOINLINE void score_tile(const float* queries, FloatRows keys, int32_t count, int32_t channels, float* out) {
  constexpr int32_t kKeys = kScored<N>;
  for (int32_t j = 0; j < count; j += kKeys) {
    const float* some[kKeys];
    for (int32_t i = 0; i < kKeys; ++i) {
      some[i] = keys.data + std::min(j + i, count - 1) * keys.stride;  // beyond the last one: itself again
    }
    score_keys<N>(queries, some, channels, out + kLogits<N> * j);
  }
}

/// Values that are added together, so that they share the loads of the sums: as many as leave room for their weights.
template <int32_t N>
constexpr int32_t kAdded = N == 1 ? 4 : 8 / N;

/// sums[n][c] += sum over kKeys keys of weights[key][n] * values[key][c].
template <int32_t N, int32_t kKeys>
inline void add_some(const float* weights, const float* values, ptrdiff_t stride, int32_t channels, float* sums) {
  v128_t weight[kKeys][N];
  for (int32_t i = 0; i < kKeys; ++i) {
    for (int32_t n = 0; n < N; ++n) weight[i][n] = load_splat(weights + kLogits<N> * i + n);
  }
  const auto add = [&](int32_t c, int32_t left) {
    v128_t v[kKeys];
    for (int32_t i = 0; i < kKeys; ++i) v[i] = load_lanes(values + i * stride + c, left);
    for (int32_t n = 0; n < N; ++n) {
      float* at = sums + N * c + 4 * n;
      v128_t sum = wasm_v128_load(at);
      for (int32_t i = 0; i < kKeys; ++i) sum = madd(weight[i][n], v[i], sum);
      wasm_v128_store(at, sum);
    }
  };
  constexpr int32_t kUnroll = N == 1 ? 8 : 4;  // channels: of a single row two vectors share the addresses
  int32_t c = 0;
  for (; c + kUnroll <= channels; c += kUnroll) {
    for (int32_t u = 0; u < kUnroll; u += 4) add(c + u, 4);
  }
  for (; c < channels; c += 4) add(c, channels - c);
}

/// sums[n][c] *= scale[n]. Mostly the maximum has stayed, and with it the scale is 1.
template <int32_t N>
inline void rescale(const float* scale, int32_t channels, float* sums) {
  for (int32_t n = 0; n < N; ++n) {
    if (scale[n] == 1) continue;
    const v128_t factor = load_splat(scale + n);
    for (int32_t c = 0; c < channels; c += 4) {
      float* at = sums + N * c + 4 * n;
      wasm_v128_store(at, wasm_f32x4_mul(wasm_v128_load(at), factor));
    }
  }
}

/// sums[n][c] = scale[n] * sums[n][c] + sum over keys of weights[key][n] * values[key][c].
template <int32_t N>
ATTENTION_NOINLINE void add_values(const float* weights, FloatRows values, int32_t count, int32_t channels,
                                   const float* scale, float* sums) {
  rescale<N>(scale, channels, sums);
  const float* v = values.data;
  int32_t j = 0;
  for (; j + kAdded<N> <= count; j += kAdded<N>, v += kAdded<N> * values.stride) {
    add_some<N, kAdded<N>>(weights + kLogits<N> * j, v, values.stride, channels, sums);
  }
  for (; j < count; ++j, v += values.stride) add_some<N, 1>(weights + kLogits<N> * j, v, 0, channels, sums);
}

/// The same where a value that some row must not see is infinite or NaN: 0 * NaN would leak it. Sums in the same order,
/// with the same operations: what is hidden changes no bit.
template <int32_t N>
ATTENTION_SMALL void add_visible_values(const RowGroup<1>& rows, int32_t key, int32_t count, const float* weights,
                                        FloatRows values, int32_t channels, const float* scale, float* sums) {
  rescale<N>(scale, channels, sums);
  for (int32_t j = 0; j < count; ++j, weights += kLogits<N>) {
    float visible[kBlockRows];
    wasm_v128_store(visible, wasm_v128_and(rows.lanes(key, j, 0), wasm_f32x4_const_splat(1)));
    for (int32_t n = 0; n < N; ++n) {
      if (visible[n] == 0) continue;
      const v128_t weight = load_splat(weights + n);
      for (int32_t c = 0; c < channels; c += 4) {
        float* at = sums + N * c + 4 * n;
        const v128_t v = load_lanes(values.data + j * values.stride + c, channels - c);
        wasm_v128_store(at, madd(weight, v, wasm_v128_load(at)));
      }
    }
  }
}

}  // namespace attention
