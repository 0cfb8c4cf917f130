// What a query row may see. Causal order, window, lengths and masks meet here and nowhere else: a kernel asks, per tile
// of keys, for none, all or which, and has no code for a kind of mask.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention.h"

namespace attention {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Keys first..end-1. All rules but the masks leave an interval.
struct KeyRange {
  int32_t first, end;
  bool empty() const { return first >= end; }
};

inline int32_t query_length(const Attention& call, int32_t b) { return call.q_length ? call.q_length[b] : call.Tq; }
inline int32_t key_length(const Attention& call, int32_t b) { return call.k_length ? call.k_length[b] : call.Tk; }

/// The position of row i among the keys; may lie outside of them.
inline int64_t row_position(const Attention& call, int32_t b, int32_t i) {
  return static_cast<int64_t>(i) + (call.offset ? call.offset[b] : 0);
}

/// The keys that row i of item b may see, before masks and beside the prefix. Both ends grow with i, up to the query
/// length.
inline KeyRange visible_keys(const Attention& call, int32_t b, int32_t i) {
  if (i >= query_length(call, b)) return {0, 0};
  const int64_t p = row_position(call, b, i), length = key_length(call, b);
  const int64_t first = call.left < 0 ? 0 : std::clamp<int64_t>(p - call.left, 0, length);
  const int64_t end = call.right < 0 ? length : std::clamp<int64_t>(p + call.right + 1, 0, length);
  if (first >= end) return {0, 0};
  return {static_cast<int32_t>(first), static_cast<int32_t>(end)};
}

/// The first keys that row i may see whatever the window's left end says: 0..result-1.
inline int32_t visible_prefix(const Attention& call, int32_t b, int32_t i) {
  if (call.prefix == 0 || i >= query_length(call, b)) return 0;
  const int64_t end = call.right < 0 ? INT32_MAX : row_position(call, b, i) + call.right + 1;
  return static_cast<int32_t>(std::clamp<int64_t>(end, 0, std::min(call.prefix, key_length(call, b))));
}

/// How many tokens key j is further back than its number says.
inline int32_t missing_tokens(const Attention& call, int32_t b, int32_t j) {
  return call.gap && j < call.prefix ? call.gap[b] : 0;
}

/// Where the mask of row i begins; step from key to key by call.mask_key.
inline ptrdiff_t mask_row_start(const Attention& call, int32_t b, int32_t h, int32_t i) {
  return static_cast<ptrdiff_t>(b) * call.mask_batch + static_cast<ptrdiff_t>(h) * call.mask_head +
         static_cast<ptrdiff_t>(i) * call.mask_row;
}

/// Applies the mask of one cell to a logit: -inf where it hides the key, whatever the logit was, NaN too.
inline float masked(const Attention& call, ptrdiff_t cell, float x) {
  if (call.mask_kind == MaskKind::kNone) return x;
  if (call.mask_kind == MaskKind::kBoolean) return static_cast<const uint8_t*>(call.mask)[cell] ? x : -kInfinity;
  const float bias = static_cast<const float*>(call.mask)[cell];
  return bias == -kInfinity ? bias : x + bias;
}

inline bool hidden(const Attention& call, ptrdiff_t cell) {
  if (call.mask_kind == MaskKind::kNone) return false;
  if (call.mask_kind == MaskKind::kBoolean) return static_cast<const uint8_t*>(call.mask)[cell] == 0;
  return static_cast<const float*>(call.mask)[cell] == -kInfinity;
}

}  // namespace attention
