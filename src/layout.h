// Where the tokens of an item begin: strides, or starts of packed sequences.
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
/// The same for the key/value head that query head h reads: heads of a group are neighbours.
inline ptrdiff_t key_start(const Attention& call, int32_t b, int32_t h) {
  return token_start(call.k_start, b, call.k_batch, h / (call.H / call.Hkv), call.k_head, call.k_token);
}
inline ptrdiff_t value_start(const Attention& call, int32_t b, int32_t h) {
  return token_start(call.k_start, b, call.v_batch, h / (call.H / call.Hkv), call.v_head, call.v_token);
}

}  // namespace attention
