// The attention state of eight query rows in lanes: the running maximum and sum of the softmax. `push` takes logits and
// turns them into weights relative to the new maximum; the factors it leaves behind bring older sums to the same scale.
//
//   m' = max(m, max x);  r = e^(m - m');  l' = r l + sum e^(x - m')
//
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
#pragma once

#include <cfloat>
#include <cmath>

#include "math.h"
#include "tile.h"

namespace attention {

struct State {
  // The maximum starts at the lowest finite number, not at -inf: hidden logits are -inf and -inf - (-inf) would be NaN.
  // A row is empty iff its sum is 0.
  v128_t max_low, max_high, sum_low, sum_high;
  v128_t scale_low, scale_high;  // what the last push did to older sums

  /// `sink` joins maximum and sum; -inf: none.
  explicit State(float sink = -INFINITY) {
    const bool none = sink == -INFINITY;
    max_low = max_high = wasm_f32x4_splat(none ? -FLT_MAX : sink);
    sum_low = sum_high = wasm_f32x4_splat(none ? 0.0f : 1.0f);
    scale_low = scale_high = wasm_f32x4_const_splat(1);
  }

  /// x [count][8]: logits become weights e^(x - max).
  void push(float* x, int32_t count) {
    const v128_t old_low = max_low, old_high = max_high;
    for (int32_t j = 0; j < count; ++j) {
      // pmax keeps its first operand when the other is NaN: NaN shows in the sum, not in the maximum.
      max_low = wasm_f32x4_pmax(max_low, wasm_v128_load(x + kLanes * j));
      max_high = wasm_f32x4_pmax(max_high, wasm_v128_load(x + kLanes * j + 4));
    }
    scale_low = exp_f32x4(wasm_f32x4_sub(old_low, max_low));
    scale_high = exp_f32x4(wasm_f32x4_sub(old_high, max_high));
    // Summed by itself first: block sums added up lose fewer bits than one long sum.
    v128_t block_low = wasm_f32x4_const_splat(0), block_high = block_low;
    for (int32_t j = 0; j < count; ++j) {
      const v128_t low = exp_f32x4(wasm_f32x4_sub(wasm_v128_load(x + kLanes * j), max_low));
      const v128_t high = exp_f32x4(wasm_f32x4_sub(wasm_v128_load(x + kLanes * j + 4), max_high));
      block_low = wasm_f32x4_add(block_low, low);
      block_high = wasm_f32x4_add(block_high, high);
      wasm_v128_store(x + kLanes * j, low);
      wasm_v128_store(x + kLanes * j + 4, high);
    }
    sum_low = madd(sum_low, scale_low, block_low);
    sum_high = madd(sum_high, scale_high, block_high);
  }

  /// 1 / sum, and 0 for empty rows, whose sums are 0 too.
  static v128_t norm(v128_t sum) {
    const v128_t zero = wasm_f32x4_const_splat(0);
    return wasm_v128_andnot(wasm_f32x4_div(wasm_f32x4_const_splat(1), sum), wasm_f32x4_eq(sum, zero));
  }
  v128_t norm_low() const { return norm(sum_low); }
  v128_t norm_high() const { return norm(sum_high); }

  /// ln of the sum of e^x over all that was pushed; -inf for an empty row.
  void log_sum_exp(float lse[kLanes]) const {
    float max[kLanes], sum[kLanes];
    wasm_v128_store(max, max_low);
    wasm_v128_store(max + 4, max_high);
    wasm_v128_store(sum, sum_low);
    wasm_v128_store(sum + 4, sum_high);
    for (int32_t i = 0; i < kLanes; ++i) lse[i] = sum[i] == 0 ? -INFINITY : max[i] + std::log(sum[i]);
  }
};

}  // namespace attention
