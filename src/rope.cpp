// Rotary position embedding: pairs of channels turned by the angles of a table.
//
//   y1 = x1 cos - x2 sin;  y2 = x2 cos + x1 sin
//
// Shapes: x, out [B, H, T, D]; cos, sin [B or 1, T, rotary / 2]. Cost: 6 flops a pair, one read and one write a value.
// Source: Su et al., "RoFormer" (2021).
#include <cstring>

#include "attention.h"
#include "convert.h"
#include "parallel.h"

namespace attention {

namespace {

struct Pairs {
  v128_t first, second;
};

Pairs turn(Pairs x, v128_t cos, v128_t sin) {
  return {wasm_f32x4_sub(wasm_f32x4_mul(x.first, cos), wasm_f32x4_mul(x.second, sin)),
          wasm_f32x4_add(wasm_f32x4_mul(x.second, cos), wasm_f32x4_mul(x.first, sin))};
}

/// Four pairs at a time; returns how many were turned.
int32_t turn_fours(const Rope& call, ptrdiff_t x, ptrdiff_t out, const float* cos, const float* sin) {
  const int32_t half = call.rotary / 2;
  int32_t pair = 0;
  for (; pair + 4 <= half; pair += 4) {
    const v128_t c = wasm_v128_load(cos + pair), s = wasm_v128_load(sin + pair);
    if (call.style == RopeStyle::kHalf) {
      const Pairs y =
          turn({load_values(call.x, call.type, x + pair), load_values(call.x, call.type, x + half + pair)}, c, s);
      store_values(call.out, call.type, out + pair, y.first);
      store_values(call.out, call.type, out + half + pair, y.second);
    } else {
      const v128_t a = load_values(call.x, call.type, x + 2 * pair),
                   b = load_values(call.x, call.type, x + 2 * pair + 4);
      const Pairs y = turn({wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), wasm_i32x4_shuffle(a, b, 1, 3, 5, 7)}, c, s);
      store_values(call.out, call.type, out + 2 * pair, wasm_i32x4_shuffle(y.first, y.second, 0, 4, 1, 5));
      store_values(call.out, call.type, out + 2 * pair + 4, wasm_i32x4_shuffle(y.first, y.second, 2, 6, 3, 7));
    }
  }
  return pair;
}

void turn_token(const Rope& call, ptrdiff_t x, ptrdiff_t out, const float* cos, const float* sin) {
  const int32_t half = call.rotary / 2;
  const int32_t distance = call.style == RopeStyle::kHalf ? half : 1, step = call.style == RopeStyle::kHalf ? 1 : 2;
  for (int32_t pair = turn_fours(call, x, out, cos, sin); pair < half; ++pair) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(pair) * step;
    const float x1 = load_value(call.x, call.type, x + at), x2 = load_value(call.x, call.type, x + at + distance);
    store_value(call.out, call.type, out + at, x1 * cos[pair] - x2 * sin[pair]);
    store_value(call.out, call.type, out + at + distance, x2 * cos[pair] + x1 * sin[pair]);
  }
  if (call.x == call.out && x == out) return;
  const size_t size = size_of(call.type);
  std::memmove(static_cast<char*>(call.out) + (out + call.rotary) * size,
               static_cast<const char*>(call.x) + (x + call.rotary) * size, (call.D - call.rotary) * size);
}

/// All heads of one token, which share their angles.
void run_item(const void* context, int32_t item, int32_t) {
  const Rope& call = *static_cast<const Rope*>(context);
  const int32_t b = item / call.T, t = item % call.T;
  const ptrdiff_t table = static_cast<ptrdiff_t>(b) * call.table_batch + static_cast<ptrdiff_t>(t) * (call.rotary / 2);
  const ptrdiff_t x = static_cast<ptrdiff_t>(b) * call.x_batch + static_cast<ptrdiff_t>(t) * call.x_token;
  const ptrdiff_t out = static_cast<ptrdiff_t>(b) * call.out_batch + static_cast<ptrdiff_t>(t) * call.out_token;
  for (int32_t h = 0; h < call.H; ++h) {
    turn_token(call, x + static_cast<ptrdiff_t>(h) * call.x_head, out + static_cast<ptrdiff_t>(h) * call.out_head,
               call.cos + table, call.sin + table);
  }
}

}  // namespace

void rope(const Rope& call) { parallel_for(call.B * call.T, 2.0 * call.B * call.T * call.H * call.D, &call, run_item); }

}  // namespace attention
