// The parts of attention() to one another: each kernel with its working memory in bytes, for one worker where nothing
// else is said.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention.h"

namespace attention {

constexpr int32_t kTileKeys = 64;  // keys of a tile: 64 x 64 channels are half of a 32 KB cache
constexpr size_t kAlignment = 16;

/// Takes arrays off a block of working memory. Run over a null pointer it only adds up the bytes.
class Scratch {
 public:
  explicit Scratch(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* array(size_t count) {
    T* const first = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
    used_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return first;
  }
  float* floats(size_t count) { return array<float>(count); }
  size_t used() const { return used_; }
  /// What follows the arrays.
  char* rest() const { return base_ ? base_ + used_ : nullptr; }

 private:
  char* base_;
  size_t used_ = 0;
};

size_t prefill_scratch(const Attention& call);  // for all workers together
void prefill(const Attention& call);

/// Whether a call has too few query rows for prefill's lanes.
bool few_rows(const Attention& call);
size_t decode_scratch(const Attention& call);  // for all workers together
void decode(const Attention& call);

/// One token of float32 channels into its place in a quantised cache, as quantize_token in quantize.h.
void quantize(Type type, const float* x, int32_t width, uint8_t* to, float* scale);

size_t weights_scratch(const Attention& call);
void attention_weights(const Attention& call);

}  // namespace attention
