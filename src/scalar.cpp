// The scalar build: the shipped names stand for the definition.
#include "attention.h"
#include "kernels.h"
#include "quantize.h"

namespace attention {

bool dot_of_bytes() { return false; }
size_t attention_scratch(const Attention& call) { return plain::attention_scratch(call); }
void attention(const Attention& call) { plain::attention(call); }
void merge(const Merge& call) { plain::merge(call); }
void rope(const Rope& call) { plain::rope(call); }
size_t linear_scratch(const Linear& call) { return plain::linear_scratch(call); }
void linear(const Linear& call) { plain::linear(call); }
size_t packed_linear_size(int32_t N, int32_t K) { return plain::packed_linear_size(N, K); }
void pack_linear(const float* weight, int32_t N, int32_t K, float* packed) { plain::pack_linear(weight, N, K, packed); }
void unpack_linear(const float* packed, int32_t N, int32_t K, int32_t n, float* row) {
  plain::unpack_linear(packed, N, K, n, row);
}
void norm(const Norm& call) { plain::norm(call); }
void activation(const Activation& call) { plain::activation(call); }
void convert(const void* from, Type from_type, void* to, Type to_type, size_t count) {
  plain::convert(from, from_type, to, to_type, count);
}
void quantize(Type type, const float* x, int32_t width, uint8_t* to, float* scale) {
  quantize_token(type, x, width, to, scale);
}

}  // namespace attention
