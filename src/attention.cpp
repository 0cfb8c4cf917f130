// attention(): which kernels a call goes through.
#include "attention.h"

#include <algorithm>

#include "kernels.h"

namespace attention {

namespace {

size_t worker_bytes(const Attention& call) {
  return std::max(prefill_scratch(call), call.weights ? weights_scratch(call) : 0);
}

}  // namespace

size_t attention_scratch(const Attention& call) { return worker_bytes(call) * threads(); }

void attention(const Attention& call) {
  const size_t bytes = worker_bytes(call);
  if (call.out || call.lse) prefill(call, bytes);
  if (call.weights) attention_weights(call, bytes);
}

}  // namespace attention
