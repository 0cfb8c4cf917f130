// The register tile that all the multiply-adds of this library go through: eight lanes-worth of rows against four
// columns, 4 x 2 vectors of accumulators. Eight accumulators, two vectors of rows and one splat fit the 16 registers
// that the engines have; a larger tile spills.
//
//   c[u][r] = sum over s < count of a[s][r] * b(u, s)       u < 4 columns, r < 8 rows in lanes
//
// Scores take s for the channel and u for the key, sums take s for the key and u for the value channel; so keys and
// values are read as they lie, four bytes at a time, and never packed or transposed.
#pragma once

#include "simd.h"

namespace attention {

constexpr int32_t kLanes = 8;  // rows of a group: two vectors

struct Tile {
  v128_t low[4], high[4];  // rows 0..3 and 4..7 of each column

  static Tile zero() {
    Tile tile;
    for (int32_t u = 0; u < 4; ++u) tile.low[u] = tile.high[u] = wasm_f32x4_const_splat(0);
    return tile;
  }

  void add(v128_t a_low, v128_t a_high, const float* b0, const float* b1, const float* b2, const float* b3) {
    const v128_t s0 = load_splat(b0), s1 = load_splat(b1), s2 = load_splat(b2), s3 = load_splat(b3);
    low[0] = madd(a_low, s0, low[0]);
    high[0] = madd(a_high, s0, high[0]);
    low[1] = madd(a_low, s1, low[1]);
    high[1] = madd(a_high, s1, high[1]);
    low[2] = madd(a_low, s2, low[2]);
    high[2] = madd(a_high, s2, high[2]);
    low[3] = madd(a_low, s3, low[3]);
    high[3] = madd(a_high, s3, high[3]);
  }

  void store(float* to) const {
    for (int32_t u = 0; u < 4; ++u) {
      wasm_v128_store(to + kLanes * u, low[u]);
      wasm_v128_store(to + kLanes * u + 4, high[u]);
    }
  }
};

/// Columns at a distance known to the compiler: the four splats share one address and differ in their offsets.
template <int32_t kStride>
inline Tile product_fixed(const float* a, const float* b, int32_t count) {
  Tile tile = Tile::zero();
  for (int32_t s = 0; s < count; ++s, a += kLanes, ++b) {
    tile.add(wasm_v128_load(a), wasm_v128_load(a + 4), b, b + kStride, b + 2 * kStride, b + 3 * kStride);
  }
  return tile;
}

/// Columns anywhere; two of them may be the same, which is how a block of fewer than four is padded.
inline Tile product_any(const float* a, const float* b0, const float* b1, const float* b2, const float* b3,
                        int32_t count) {
  Tile tile = Tile::zero();
  for (int32_t s = 0; s < count; ++s, a += kLanes) {
    tile.add(wasm_v128_load(a), wasm_v128_load(a + 4), b0 + s, b1 + s, b2 + s, b3 + s);
  }
  return tile;
}

/// out[u][8] = scores of eight rows, in lanes at `rows` [count][8], with `columns` rows of b, `stride` apart. `out` has
/// room for a multiple of four columns.
ATTENTION_NOINLINE inline void scores(const float* rows, const float* b, ptrdiff_t stride, int32_t columns,
                                      int32_t count, float* out) {
  int32_t u = 0;
  if (stride == 64) {
    for (; u + 4 <= columns; u += 4) product_fixed<64>(rows, b + u * stride, count).store(out + kLanes * u);
  } else if (stride == 128) {
    for (; u + 4 <= columns; u += 4) product_fixed<128>(rows, b + u * stride, count).store(out + kLanes * u);
  }
  for (; u < columns; u += 4) {
    const int32_t last = columns - 1;
    const float *b0 = b + u * stride, *b1 = b + (u + 1 < last ? u + 1 : last) * stride,
                *b2 = b + (u + 2 < last ? u + 2 : last) * stride, *b3 = b + (u + 3 < last ? u + 3 : last) * stride;
    product_any(rows, b0, b1, b2, b3, count).store(out + kLanes * u);
  }
}

/// Eight rows from row-major memory into lanes, times a factor: lanes[c][i] = factor * r[i][c]. Two of them may be the
/// same, which is how a group of fewer than eight is padded.
ATTENTION_NOINLINE inline void rows_to_lanes(const float* const r[kLanes], int32_t channels, float factor,
                                             float* lanes) {
  const v128_t scale = wasm_f32x4_splat(factor);
  int32_t c = 0;
  for (; c + 4 <= channels; c += 4) {
    for (int32_t half = 0; half < kLanes; half += 4) {
      v128_t x0 = wasm_v128_load(r[half] + c), x1 = wasm_v128_load(r[half + 1] + c);
      v128_t x2 = wasm_v128_load(r[half + 2] + c), x3 = wasm_v128_load(r[half + 3] + c);
      transpose_4x4(x0, x1, x2, x3);
      wasm_v128_store(lanes + kLanes * c + half, wasm_f32x4_mul(x0, scale));
      wasm_v128_store(lanes + kLanes * (c + 1) + half, wasm_f32x4_mul(x1, scale));
      wasm_v128_store(lanes + kLanes * (c + 2) + half, wasm_f32x4_mul(x2, scale));
      wasm_v128_store(lanes + kLanes * (c + 3) + half, wasm_f32x4_mul(x3, scale));
    }
  }
  for (; c < channels; ++c) {
    for (int32_t i = 0; i < kLanes; ++i) lanes[kLanes * c + i] = factor * r[i][c];
  }
}

/// The way back: rows[i][c] = lanes[c][i] * factors[i], for the first `valid` rows.
ATTENTION_NOINLINE inline void lanes_to_rows(const float* lanes, v128_t factor_low, v128_t factor_high, int32_t valid,
                                             int32_t channels, float* rows, ptrdiff_t stride) {
  for (int32_t half = 0; half < kLanes && half < valid; half += 4) {
    const v128_t factor = half ? factor_high : factor_low;
    for (int32_t c = 0; c < channels; c += 4) {
      const int32_t width = channels - c < 4 ? channels - c : 4;
      v128_t x[4];
      for (int32_t u = 0; u < 4; ++u) {
        const float* from = lanes + kLanes * (c + (u < width ? u : width - 1)) + half;
        x[u] = wasm_f32x4_mul(wasm_v128_load(from), factor);
      }
      transpose_4x4(x[0], x[1], x[2], x[3]);
      for (int32_t i = 0; i < 4 && half + i < valid; ++i) store_lanes(rows + (half + i) * stride + c, x[i], width);
    }
  }
}

}  // namespace attention
