// Visibility as the SIMD kernels ask for it: query rows in lanes, four to a vector, against a tile of keys. The rules
// themselves are in visibility.h.
#pragma once

#include <algorithm>

#include "math.h"
#include "visibility.h"

namespace attention {

enum class Coverage { kNone, kSome, kAll };

/// Rows of one item, of any heads.
template <int32_t kVectors>
class RowGroup {
 public:
  static constexpr int32_t kRows = 4 * kVectors;

  RowGroup() = default;

  /// Lanes without a row of their own repeat another: that costs nothing and hides nothing more.
  ATTENTION_SMALL RowGroup(const Attention& call, int32_t b, const int32_t heads[kRows], const int32_t rows[kRows])
      : call_(&call), b_(b), range_{INT32_MAX, 0}, inner_{0, INT32_MAX} {
    for (int32_t lane = 0; lane < kRows; ++lane) {
      heads_[lane] = heads[lane];
      rows_[lane] = rows[lane];
      const KeyRange keys = visible_keys(call, b, rows[lane]);
      first_[lane] = keys.first;
      end_[lane] = keys.end;
      prefix_[lane] = visible_prefix(call, b, rows[lane]);
      longest_prefix_ = std::max(longest_prefix_, prefix_[lane]);
      inner_ = {std::max(inner_.first, keys.first), std::min(inner_.end, keys.end)};
      if (!keys.empty()) range_ = {std::min(range_.first, keys.first), std::max(range_.end, keys.end)};
    }
    window_ = range_.first;
    if (longest_prefix_ > 0) range_ = {0, std::max(range_.end, longest_prefix_)};
    if (range_.empty()) range_ = {0, 0};
  }

  /// The keys that any of the rows may see, before masks.
  KeyRange range() const { return range_; }

  /// The sink of each row, -inf where there are none.
  void sinks(float out[kRows]) const {
    for (int32_t lane = 0; lane < kRows; ++lane) out[lane] = call_->sinks ? call_->sinks[heads_[lane]] : -INFINITY;
  }

  /// Whether all rows see all of `count` keys from `key` on, and no mask has a say in it.
  bool sees_all(int32_t key, int32_t count) const {
    return call_->mask_kind == MaskKind::kNone && key >= inner_.first && key + count <= inner_.end;
  }

  /// What the rows see of `count` keys from `key` on. `bias` [count][kRows] is filled where there is a mask.
  Coverage cover(int32_t key, int32_t count, float* bias) {
    bias_ = nullptr;
    const bool inside = key >= inner_.first && key + count <= inner_.end;
    if (key >= longest_prefix_ && key + count <= window_) return Coverage::kNone;
    if (call_->mask_kind == MaskKind::kNone) return inside ? Coverage::kAll : Coverage::kSome;
    const Coverage mask = gather_mask(key, count, bias);
    if (mask == Coverage::kNone) return mask;
    if (mask == Coverage::kSome) bias_ = bias;
    return inside ? mask : Coverage::kSome;
  }

  /// Whether finish_logits has nothing to do.
  bool leaves_logits(Coverage coverage) const {
    return coverage == Coverage::kAll && !(call_->softcap > 0) && !call_->alibi;
  }

  /// x [count][kRows] are scores of keys from `key` on: softcap, ALiBi, mask, and -inf for what is hidden, in this
  /// order.
  void finish_logits(int32_t key, int32_t count, Coverage coverage, float* x) const {
    if (call_->softcap > 0) cap(count, x);
    if (call_->alibi) add_alibi(key, count, x);
    if (coverage != Coverage::kSome) return;
    if (bias_) add_bias(count, x);
    for (int32_t j = 0; j < count; ++j) {
      if (key + j >= inner_.first && key + j < inner_.end) continue;
      for (int32_t n = 0; n < kVectors; ++n) {
        float* at = x + kRows * j + 4 * n;
        wasm_v128_store(at, select(in_range(key + j, n), wasm_v128_load(at), wasm_f32x4_const_splat(-INFINITY)));
      }
    }
  }

  ATTENTION_SMALL void cap(int32_t count, float* x) const {
    const v128_t cap = wasm_f32x4_splat(call_->softcap), inverse = wasm_f32x4_splat(1 / call_->softcap);
    for (int32_t i = 0; i < kRows * count; i += 4) {
      wasm_v128_store(x + i, wasm_f32x4_mul(cap, tanh_f32x4(wasm_f32x4_mul(wasm_v128_load(x + i), inverse))));
    }
  }

  /// All ones in the lanes of vector n whose rows see key number j of the tile that was covered last, from `key` on.
  v128_t lanes(int32_t key, int32_t j, int32_t n) const {
    const v128_t range = in_range(key + j, n);
    if (!bias_) return range;
    const v128_t bias = wasm_v128_load(bias_ + kRows * j + 4 * n);
    return wasm_v128_andnot(range, wasm_f32x4_eq(bias, wasm_f32x4_const_splat(-INFINITY)));
  }

 private:
  v128_t in_range(int32_t key, int32_t n) const {
    const v128_t j = wasm_i32x4_splat(key);
    const v128_t begun = wasm_i32x4_le(wasm_v128_load(first_ + 4 * n), j);
    const v128_t window = wasm_v128_and(begun, wasm_i32x4_gt(wasm_v128_load(end_ + 4 * n), j));
    return wasm_v128_or(window, wasm_i32x4_gt(wasm_v128_load(prefix_ + 4 * n), j));
  }

  ATTENTION_SMALL void add_alibi(int32_t key, int32_t count, float* x) const {
    for (int32_t n = 0; n < kVectors; ++n) {
      float slopes[4];
      int32_t positions[4];
      for (int32_t i = 0; i < 4; ++i) {
        slopes[i] = -call_->alibi[heads_[4 * n + i]];
        positions[i] = static_cast<int32_t>(row_position(*call_, b_, rows_[4 * n + i]));
      }
      const v128_t slope = wasm_v128_load(slopes), position = wasm_v128_load(positions);
      for (int32_t j = 0; j < count; ++j) {
        const v128_t token = wasm_i32x4_splat(key + j - missing_tokens(*call_, b_, key + j));
        const v128_t distance = wasm_i32x4_abs(wasm_i32x4_sub(position, token));
        const v128_t bias = wasm_f32x4_mul(slope, wasm_f32x4_convert_i32x4(distance));
        float* at = x + kRows * j + 4 * n;
        wasm_v128_store(at, wasm_f32x4_add(wasm_v128_load(at), bias));
      }
    }
  }

  void add_bias(int32_t count, float* x) const {
    const v128_t infinity = wasm_f32x4_const_splat(-INFINITY);
    for (int32_t i = 0; i < kRows * count; i += 4) {
      const v128_t bias = wasm_v128_load(bias_ + i);
      // Not just a sum: NaN + -inf would be NaN, and what is hidden must not leak.
      const v128_t sum = wasm_f32x4_add(wasm_v128_load(x + i), bias);
      wasm_v128_store(x + i, select(wasm_f32x4_eq(bias, infinity), infinity, sum));
    }
  }

  /// The mask of a tile, brought into lanes as something to add: 0 or -inf for a boolean one.
  ATTENTION_SMALL Coverage gather_mask(int32_t key, int32_t count, float* bias) const {
    bool any = false, all = true;
    const ptrdiff_t step = call_->mask_key;
    for (int32_t lane = 0; lane < kRows; ++lane) {
      const ptrdiff_t start = mask_row_start(*call_, b_, heads_[lane], rows_[lane]) + key * step;
      if (call_->mask_kind == MaskKind::kBoolean) {
        const uint8_t* from = static_cast<const uint8_t*>(call_->mask) + start;
        for (int32_t j = 0; j < count; ++j) {
          const bool visible = from[j * step] != 0;
          any |= visible;
          all &= visible;
          bias[kRows * j + lane] = visible ? 0.0f : -INFINITY;
        }
      } else {
        const float* from = static_cast<const float*>(call_->mask) + start;
        all = false;  // whatever is added has to be added
        for (int32_t j = 0; j < count; ++j) {
          any |= from[j * step] != -INFINITY;
          bias[kRows * j + lane] = from[j * step];
        }
      }
    }
    return !any ? Coverage::kNone : all ? Coverage::kAll : Coverage::kSome;
  }

  const Attention* call_ = nullptr;
  int32_t b_ = 0;
  KeyRange range_{0, 0}, inner_{0, 0};       // what some row sees, and what all rows see
  int32_t longest_prefix_ = 0, window_ = 0;  // nobody sees anything between them
  const float* bias_ = nullptr;
  int32_t heads_[kRows], rows_[kRows];
  alignas(16) int32_t first_[kRows], end_[kRows], prefix_[kRows];
};

}  // namespace attention
