// attention(): which kernels a call goes through.
#include "attention.h"

#include <algorithm>

#include "kernels.h"
#include "simd.h"

namespace attention {

namespace {

bool empty(const Attention& call) { return call.B == 0 || call.H == 0 || call.Tq == 0; }

}  // namespace

bool dot_of_bytes() { return kDotOfBytes; }

size_t attention_scratch(const Attention& call) {
  if (empty(call)) return 0;
  const size_t output = few_rows(call) ? decode_scratch(call) : prefill_scratch(call);
  return std::max(output, call.weights ? weights_scratch(call) * threads() : 0);
}

void attention(const Attention& call) {
  if (empty(call)) return;
  if (call.out || call.lse) {
    if (few_rows(call)) {
      decode(call);
    } else {
      prefill(call);
    }
  }
  if (call.weights) attention_weights(call);
}

}  // namespace attention
