// Where the tokens of an item stand: strides, starts of packed sequences, rings.
#pragma once

#include "attention.h"

namespace attention {

inline ptrdiff_t token_start(const int32_t* starts, int32_t b, int32_t batch, int32_t h, int32_t head, int32_t token) {
  const ptrdiff_t item = starts ? static_cast<ptrdiff_t>(starts[b]) * token : static_cast<ptrdiff_t>(b) * batch;
  return item + static_cast<ptrdiff_t>(h) * head;
}

/// Element of row 0, channel 0 of item b and query head h.
inline ptrdiff_t query_start(const Attention& call, int32_t b, int32_t h) {
  return token_start(call.q_start, b, call.q_batch, h, call.q_head, call.q_token);
}
inline ptrdiff_t out_start(const Attention& call, int32_t b, int32_t h) {
  return token_start(call.q_start, b, call.out_batch, h, call.out_head, call.out_token);
}
inline ptrdiff_t lse_start(const Attention& call, int32_t b, int32_t h) {
  return token_start(call.q_start, b, call.lse_batch, h, call.lse_head, 1);
}

/// Heads of a group are neighbours: query head h reads this key/value head.
inline int32_t kv_head(const Attention& call, int32_t h) { return h / (call.H / call.Hkv); }

/// Keys or values of one item and key/value head.
struct Tokens {
  const void* data;
  const float* scale;  // of kInt8
  Type type;
  ptrdiff_t first, stride;  // in elements, or bytes for the quantised types
  int32_t width;
  int32_t ring_first, ring_size, ring_start;

  int32_t row(int32_t j) const {
    return ring_size == 0 || j < ring_first ? j : ring_first + (ring_start + j - ring_first) % ring_size;
  }
  /// How many of `count` tokens from j on stand in neighbouring rows.
  int32_t run(int32_t j, int32_t count) const {
    if (ring_size == 0) return count;
    const int32_t left = j < ring_first ? ring_first - j : ring_first + ring_size - row(j);
    return left < count ? left : count;
  }
};

inline Tokens key_tokens(const Attention& call, int32_t b, int32_t head) {
  return {call.k,
          call.k_scale ? call.k_scale + static_cast<ptrdiff_t>(b) * call.scale_batch +
                             static_cast<ptrdiff_t>(head) * call.scale_head
                       : nullptr,
          call.k_type,
          token_start(call.k_start, b, call.k_batch, head, call.k_head, call.k_token),
          call.k_token,
          call.D,
          call.ring_first,
          call.ring_size,
          call.ring_size ? call.ring_start[b] : 0};
}

inline Tokens value_tokens(const Attention& call, int32_t b, int32_t head) {
  return {call.v,
          call.v_scale ? call.v_scale + static_cast<ptrdiff_t>(b) * call.scale_batch +
                             static_cast<ptrdiff_t>(head) * call.scale_head
                       : nullptr,
          call.v_type,
          token_start(call.k_start, b, call.v_batch, head, call.v_head, call.v_token),
          call.v_token,
          call.Dv,
          call.ring_first,
          call.ring_size,
          call.ring_size ? call.ring_start[b] : 0};
}

}  // namespace attention
