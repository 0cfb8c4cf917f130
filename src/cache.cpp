// Storing tokens in a key/value cache, in its type and its ring.
//   Shapes: from [B, H, T, width], to [B, H, rows, width]. Cost: one read and one write a value.
#include <cstring>

#include "attention.h"
#include "kernels.h"
#include "parallel.h"
#include "quantize.h"

namespace attention {

namespace {

const char* at(const void* data, Type type, ptrdiff_t index) {
  return static_cast<const char*>(data) + index * static_cast<ptrdiff_t>(size_of(type));
}

void store_token(const Append& call, ptrdiff_t from, ptrdiff_t to, ptrdiff_t scale) {
  if (is_quantized(call.to_type)) {
    quantize(call.to_type, static_cast<const float*>(call.from) + from, call.width, static_cast<uint8_t*>(call.to) + to,
             call.scale ? call.scale + scale : nullptr);
    return;
  }
  const char* source = at(call.from, call.from_type, from);
  char* target = const_cast<char*>(at(call.to, call.to_type, to));
  if (call.from_type == call.to_type) {
    std::memcpy(target, source, static_cast<size_t>(call.width) * size_of(call.to_type));
  } else {
    convert(source, call.from_type, target, call.to_type, call.width);
  }
}

/// All tokens of one item and head.
void run_item(const void* context, int32_t item, int32_t) {
  const Append& call = *static_cast<const Append*>(context);
  const ptrdiff_t b = item / call.H, h = item % call.H;
  const int32_t length = call.length ? call.length[b] : call.T;
  for (int32_t t = 0; t < length; ++t) {
    const int32_t time = call.first[b] + t;
    const bool round = call.ring_size != 0 && time >= call.ring_first;
    const ptrdiff_t row = round ? call.ring_first + (time - call.ring_first) % call.ring_size : time;
    store_token(call, b * call.from_batch + h * call.from_head + t * static_cast<ptrdiff_t>(call.from_token),
                b * call.to_batch + h * call.to_head + row * call.to_token,
                b * call.scale_batch + h * call.scale_head + row);
  }
}

}  // namespace

void append(const Append& call) {
  parallel_for(call.B * call.H, 2.0 * call.B * call.H * call.T * call.width, &call, run_item);
}

size_t token_bytes(Type type, int32_t width) {
  if (!is_quantized(type)) return width * size_of(type);
  return static_cast<size_t>(blocks_of(width)) * block_bytes(type);
}

}  // namespace attention
