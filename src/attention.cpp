// attention(): which kernels a call goes through.
#include "attention.h"

#include <algorithm>

#include "kernels.h"

namespace attention {

size_t attention_scratch(const Attention& call) {
  const size_t output = few_rows(call) ? decode_scratch(call) : prefill_scratch(call) * threads();
  return std::max(output, call.weights ? weights_scratch(call) * threads() : 0);
}

void attention(const Attention& call) {
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
