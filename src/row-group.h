// Visibility as the SIMD kernels ask for it: eight query rows in lanes against a tile of keys. The rules themselves are
// in visibility.h.
#pragma once

#include <algorithm>

#include "state.h"
#include "visibility.h"

namespace attention {

enum class Coverage { kNone, kSome, kAll };

/// Up to eight rows of one item and head.
class RowGroup {
 public:
  RowGroup() = default;
  RowGroup(const Attention& call, int32_t b, int32_t h, const int32_t* rows, int32_t count)
      : call_(&call), b_(b), h_(h), range_{INT32_MAX, 0}, inner_{0, INT32_MAX} {
    for (int32_t lane = 0; lane < kLanes; ++lane) {
      // Lanes without a row repeat the last one: they cost nothing and hide nothing that it doesn't.
      rows_[lane] = rows[std::min(lane, count - 1)];
      const KeyRange keys = visible_keys(call, b, rows_[lane]);
      first_[lane] = keys.first;
      end_[lane] = keys.end;
      inner_ = {std::max(inner_.first, keys.first), std::min(inner_.end, keys.end)};
      if (!keys.empty()) range_ = {std::min(range_.first, keys.first), std::max(range_.end, keys.end)};
    }
    if (range_.empty()) range_ = {0, 0};
  }

  /// The keys that any of the rows may see, before masks.
  KeyRange range() const { return range_; }

  /// What the rows see of `count` keys from `key` on. `bias` [count][8] is filled where there is a mask.
  Coverage cover(int32_t key, int32_t count, float* bias) {
    bias_ = nullptr;
    const bool inside = key >= inner_.first && key + count <= inner_.end;
    if (call_->mask_kind == MaskKind::kNone) return inside ? Coverage::kAll : Coverage::kSome;
    const Coverage mask = gather_mask(key, count, bias);
    if (mask == Coverage::kNone) return mask;
    if (mask == Coverage::kSome) bias_ = bias;
    return inside ? mask : Coverage::kSome;
  }

  /// x [count][8] are scores of keys from `key` on: softcap, ALiBi, mask, and -inf for what is hidden, in that order.
  void finish_logits(int32_t key, int32_t count, Coverage coverage, float* x) const {
    if (call_->softcap > 0) cap(count, x);
    if (call_->alibi) add_alibi(key, count, x);
    if (coverage != Coverage::kSome) return;
    if (bias_) add_bias(count, x);
    for (int32_t j = 0; j < count; ++j) {
      if (key + j >= inner_.first && key + j < inner_.end) continue;
      hide(x + kLanes * j, in_range(key + j, 0));
      hide(x + kLanes * j + 4, in_range(key + j, 4));
    }
  }

  void cap(int32_t count, float* x) const {
    const v128_t cap = wasm_f32x4_splat(call_->softcap), inverse = wasm_f32x4_splat(1 / call_->softcap);
    for (int32_t i = 0; i < kLanes * count; i += 4) {
      wasm_v128_store(x + i, wasm_f32x4_mul(cap, tanh_f32x4(wasm_f32x4_mul(wasm_v128_load(x + i), inverse))));
    }
  }

  /// All ones in the lanes (from `half` on) whose rows see key number j of a tile that began at `key`.
  v128_t lanes(int32_t key, int32_t j, int32_t half) const {
    const v128_t range = in_range(key + j, half);
    if (!bias_) return range;
    const v128_t hidden = wasm_f32x4_eq(wasm_v128_load(bias_ + kLanes * j + half), wasm_f32x4_const_splat(-INFINITY));
    return wasm_v128_andnot(range, hidden);
  }

 private:
  v128_t in_range(int32_t key, int32_t half) const {
    const v128_t j = wasm_i32x4_splat(key);
    return wasm_v128_and(wasm_i32x4_le(wasm_v128_load(first_ + half), j),
                         wasm_i32x4_gt(wasm_v128_load(end_ + half), j));
  }

  static void hide(float* x, v128_t visible) {
    wasm_v128_store(x, select(visible, wasm_v128_load(x), wasm_f32x4_const_splat(-INFINITY)));
  }

  void add_alibi(int32_t key, int32_t count, float* x) const {
    const v128_t slope = wasm_f32x4_splat(-call_->alibi[h_]);
    for (int32_t half = 0; half < kLanes; half += 4) {
      int32_t p[4];
      for (int32_t i = 0; i < 4; ++i) p[i] = static_cast<int32_t>(row_position(*call_, b_, rows_[half + i]));
      const v128_t position = wasm_v128_load(p);
      for (int32_t j = 0; j < count; ++j) {
        const v128_t distance = wasm_i32x4_abs(wasm_i32x4_sub(position, wasm_i32x4_splat(key + j)));
        float* at = x + kLanes * j + half;
        wasm_v128_store(at,
                        wasm_f32x4_add(wasm_v128_load(at), wasm_f32x4_mul(slope, wasm_f32x4_convert_i32x4(distance))));
      }
    }
  }

  void add_bias(int32_t count, float* x) const {
    const v128_t infinity = wasm_f32x4_const_splat(-INFINITY);
    for (int32_t i = 0; i < kLanes * count; i += 4) {
      const v128_t bias = wasm_v128_load(bias_ + i);
      // Not just a sum: NaN + -inf would be NaN, and what is hidden must not leak.
      const v128_t sum = wasm_f32x4_add(wasm_v128_load(x + i), bias);
      wasm_v128_store(x + i, select(wasm_f32x4_eq(bias, infinity), infinity, sum));
    }
  }

  /// The mask of a tile, brought into lanes as something to add: 0 or -inf for a boolean one.
  Coverage gather_mask(int32_t key, int32_t count, float* bias) const {
    bool any = false, all = true;
    const ptrdiff_t step = call_->mask_key;
    for (int32_t lane = 0; lane < kLanes; ++lane) {
      const ptrdiff_t start = mask_row_start(*call_, b_, h_, rows_[lane]) + key * step;
      if (call_->mask_kind == MaskKind::kBoolean) {
        const uint8_t* from = static_cast<const uint8_t*>(call_->mask) + start;
        for (int32_t j = 0; j < count; ++j) {
          const bool visible = from[j * step] != 0;
          any |= visible;
          all &= visible;
          bias[kLanes * j + lane] = visible ? 0.0f : -INFINITY;
        }
      } else {
        const float* from = static_cast<const float*>(call_->mask) + start;
        all = false;  // whatever is added has to be added
        for (int32_t j = 0; j < count; ++j) {
          any |= from[j * step] != -INFINITY;
          bias[kLanes * j + lane] = from[j * step];
        }
      }
    }
    return !any ? Coverage::kNone : all ? Coverage::kAll : Coverage::kSome;
  }

  const Attention* call_ = nullptr;
  int32_t b_ = 0, h_ = 0;
  KeyRange range_{0, 0}, inner_{0, 0};  // what some row sees, and what all rows see
  const float* bias_ = nullptr;
  int32_t rows_[kLanes];
  alignas(16) int32_t first_[kLanes], end_[kLanes];
};

}  // namespace attention
