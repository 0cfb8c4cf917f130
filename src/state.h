// The attention state of query rows in lanes, four to a vector: the running maximum and sum of the softmax. `push`
// takes logits and turns them into weights relative to the new maximum; `scale` then brings older sums to the same
// footing.
//
//   m' = max(m, max x);  r = e^(m - m');  l' = r l + sum e^(x - m')
//
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
#pragma once

#include <cfloat>
#include <cmath>

#include "math.h"

namespace attention {

template <int32_t kVectors>
struct State {
  static constexpr int32_t kRows = 4 * kVectors;

  // The maximum starts at the lowest finite number, not at -inf: hidden logits are -inf, and -inf - (-inf) is NaN.
  // A row is empty iff its sum is 0.
  v128_t max[kVectors], sum[kVectors];
  v128_t scale[kVectors];  // what the last push did to older sums

  State() {
    for (int32_t n = 0; n < kVectors; ++n) {
      max[n] = wasm_f32x4_const_splat(-FLT_MAX);
      sum[n] = wasm_f32x4_const_splat(0);
      scale[n] = wasm_f32x4_const_splat(1);
    }
  }

  /// Logits that join maximum and sum before any key, one for each row; -inf: none.
  explicit State(const float sinks[kRows]) : State() {
    const v128_t infinity = wasm_f32x4_const_splat(-INFINITY);
    for (int32_t n = 0; n < kVectors; ++n) {
      const v128_t sink = wasm_v128_load(sinks + 4 * n), none = wasm_f32x4_eq(sink, infinity);
      max[n] = select(none, max[n], sink);
      sum[n] = wasm_v128_andnot(wasm_f32x4_const_splat(1), none);
    }
  }

  /// x [count][kRows]: logits become weights e^(x - max).
  ATTENTION_NOINLINE void push(float* x, int32_t count) {
    const Exponential exponential;
    v128_t block[kVectors], old[kVectors], second[kVectors];
    for (int32_t n = 0; n < kVectors; ++n) {
      old[n] = second[n] = max[n];
      block[n] = wasm_f32x4_const_splat(0);
    }
    // pmax keeps its first operand when the other is NaN: NaN shows in the sum, not in the maximum.
    // Two chains for each vector: one alone would wait for itself.
    int32_t j = 0;
    for (; j + 2 <= count; j += 2) {
      for (int32_t n = 0; n < kVectors; ++n) {
        max[n] = wasm_f32x4_pmax(max[n], wasm_v128_load(x + kRows * j + 4 * n));
        second[n] = wasm_f32x4_pmax(second[n], wasm_v128_load(x + kRows * (j + 1) + 4 * n));
      }
    }
    for (int32_t n = 0; n < kVectors; ++n) {
      if (j < count) max[n] = wasm_f32x4_pmax(max[n], wasm_v128_load(x + kRows * j + 4 * n));
      max[n] = wasm_f32x4_pmax(max[n], second[n]);
      scale[n] = exponential(wasm_f32x4_sub(old[n], max[n]));
    }
    v128_t most[kVectors];  // where the stores to x can't change it, as far as the compiler knows
    for (int32_t n = 0; n < kVectors; ++n) most[n] = max[n];
    for (j = 0; j < count; ++j, x += kRows) {
      for (int32_t n = 0; n < kVectors; ++n) {
        const v128_t weight = exponential(wasm_f32x4_sub(wasm_v128_load(x + 4 * n), most[n]));
        block[n] = wasm_f32x4_add(block[n], weight);
        wasm_v128_store(x + 4 * n, weight);
      }
    }
    // Each block by itself first: block sums added up lose fewer bits than one long sum.
    for (int32_t n = 0; n < kVectors; ++n) sum[n] = madd(sum[n], scale[n], block[n]);
  }

  /// 1 / sum; 0 for empty rows, whose weighted values are 0 too.
  v128_t norm(int32_t n) const {
    const v128_t empty = wasm_f32x4_eq(sum[n], wasm_f32x4_const_splat(0));
    return wasm_v128_andnot(wasm_f32x4_div(wasm_f32x4_const_splat(1), sum[n]), empty);
  }
};

/// The same for a single row, with keys in lanes.
struct RowState {
  float max, sum;
  float scale = 1;

  /// x [count], padded with -inf to a multiple of four.
  ATTENTION_NOINLINE void push(float* x, int32_t count) {
    Exponential exponential;
    v128_t most = wasm_f32x4_splat(max), block = wasm_f32x4_const_splat(0);
    for (int32_t j = 0; j < count; j += 4) most = wasm_f32x4_pmax(most, wasm_v128_load(x + j));
    const float old = max;
    max = max_lanes(most);
    const v128_t shift = wasm_f32x4_splat(max);
    for (int32_t j = 0; j < count; j += 4) {
      exponential.read_terms();
      const v128_t weight = exponential(wasm_f32x4_sub(wasm_v128_load(x + j), shift));
      block = wasm_f32x4_add(block, weight);
      wasm_v128_store(x + j, weight);
    }
    scale = max == old ? 1 : wasm_f32x4_extract_lane(exponential(wasm_f32x4_splat(old - max)), 0);
    sum = sum * scale + sum_lanes(block);
  }
};

/// ln of the sum of e^x over all that a state was given; -inf for an empty row.
inline float log_sum_exp(float max, float sum) { return sum == 0 ? -INFINITY : max + std::log(sum); }

}  // namespace attention
