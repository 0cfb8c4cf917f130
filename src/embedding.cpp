// Rows of a table by number, as float32: what a model begins with. Plain code in every build: a row is read once.
//   Shapes: table [vocabulary, width], out [T, width]. Cost: one read and one write a value.
#include "attention.h"

namespace attention {

void embedding(const Embedding& call) {
  const ptrdiff_t width = call.width;
  const ptrdiff_t bytes = static_cast<ptrdiff_t>(token_bytes(call.type, call.width));
  for (ptrdiff_t t = 0; t < call.T; ++t) {
    float* out = call.out + t * width;
    if (call.packed) {
      unpack_linear(call.packed, call.vocabulary, call.width, call.tokens[t], out);
    } else {
      const char* row = static_cast<const char*>(call.table) + call.tokens[t] * bytes;
      convert(row, call.type, out, Type::kFloat32, call.width);
    }
    if (!call.positions) continue;
    for (ptrdiff_t c = 0; c < width; ++c) out[c] += call.positions[t * width + c];
  }
}

}  // namespace attention
