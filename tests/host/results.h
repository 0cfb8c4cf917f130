// What a call gives, and how to run one.
#pragma once

#include <cstdint>

#include "attention.h"
#include "block.h"

namespace host {

struct Sizes {
  size_t out, lse, weights;  // elements; 0 where the call doesn't ask for them
};

struct Results {
  Block out, lse, weights;
};

/// The kernels that ship, or the definition.
enum class Which { kFast, kPlain };

inline Results run(attention::Attention call, const Sizes& sizes, Which which) {
  const size_t width = call.out_type == attention::Type::kFloat32 ? 4 : 2;
  Results results{Block(sizes.out * width, kUntouched), Block(sizes.lse * 4, kUntouched),
                  Block(sizes.weights * 4, kUntouched)};
  if (call.out) call.out = results.out.data();
  if (call.lse) call.lse = results.lse.as<float>();
  if (call.weights) call.weights = results.weights.as<float>();
  const bool fast = which == Which::kFast;
  const Block scratch(fast ? attention::attention_scratch(call) : attention::plain::attention_scratch(call));
  call.scratch = scratch.data();
  if (fast) {
    attention::attention(call);
  } else {
    attention::plain::attention(call);
  }
  return results;
}

}  // namespace host
