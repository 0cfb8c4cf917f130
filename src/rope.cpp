// Rotary position embedding: pairs of channels turned by the angles of a table.
//
//   y1 = x1 cos - x2 sin;  y2 = x2 cos + x1 sin
//
// Shapes: x, out [B, H, T, D]; cos, sin [B or 1, T, rotary / 2]. Cost: 6 flops a pair, one read and one write a value.
// Source: Su et al., "RoFormer" (2021).
#include <algorithm>
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

constexpr int32_t kTokens = 64;  // of one item of work

/// Four pairs at a time; returns how many were turned.
template <RopeStyle kStyle>
inline int32_t turn_fours(const Rope& call, Type type, ptrdiff_t x, ptrdiff_t out, const float* cos, const float* sin) {
  const int32_t half = call.rotary / 2;
  const void* from = call.x;
  void* to = call.out;
  int32_t pair = 0;
  for (; pair + 4 <= half; pair += 4) {
    const v128_t c = wasm_v128_load(cos + pair), s = wasm_v128_load(sin + pair);
    if constexpr (kStyle == RopeStyle::kHalf) {
      const Pairs y = turn({load_values(from, type, x + pair), load_values(from, type, x + half + pair)}, c, s);
      store_values(to, type, out + pair, y.first);
      store_values(to, type, out + half + pair, y.second);
    } else {
      const v128_t a = load_values(from, type, x + 2 * pair), b = load_values(from, type, x + 2 * pair + 4);
      const Pairs y = turn({wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), wasm_i32x4_shuffle(a, b, 1, 3, 5, 7)}, c, s);
      store_values(to, type, out + 2 * pair, wasm_i32x4_shuffle(y.first, y.second, 0, 4, 1, 5));
      store_values(to, type, out + 2 * pair + 4, wasm_i32x4_shuffle(y.first, y.second, 2, 6, 3, 7));
    }
  }
  return pair;
}

using Turn = int32_t (*)(const Rope&, ptrdiff_t, ptrdiff_t, const float*, const float*);

template <RopeStyle kStyle>
ATTENTION_NOINLINE int32_t turn_floats(const Rope& call, ptrdiff_t x, ptrdiff_t out, const float* cos,
                                       const float* sin) {
  return turn_fours<kStyle>(call, Type::kFloat32, x, out, cos, sin);
}

template <RopeStyle kStyle>
ATTENTION_SMALL int32_t turn_halves(const Rope& call, ptrdiff_t x, ptrdiff_t out, const float* cos, const float* sin) {
  return turn_fours<kStyle>(call, call.type, x, out, cos, sin);
}

Turn turn_of(const Rope& call) {
  if (call.type != Type::kFloat32) {
    return call.style == RopeStyle::kHalf ? turn_halves<RopeStyle::kHalf> : turn_halves<RopeStyle::kInterleaved>;
  }
  return call.style == RopeStyle::kHalf ? turn_floats<RopeStyle::kHalf> : turn_floats<RopeStyle::kInterleaved>;
}

void turn_token(const Rope& call, Turn turn_most, ptrdiff_t x, ptrdiff_t out, const float* cos, const float* sin) {
  const int32_t half = call.rotary / 2;
  const int32_t distance = call.style == RopeStyle::kHalf ? half : 1, step = call.style == RopeStyle::kHalf ? 1 : 2;
  for (int32_t pair = turn_most(call, x, out, cos, sin); pair < half; ++pair) {
    const ptrdiff_t at = static_cast<ptrdiff_t>(pair) * step;
    const float x1 = load_value(call.x, call.type, x + at), x2 = load_value(call.x, call.type, x + at + distance);
    store_value(call.out, call.type, out + at, x1 * cos[pair] - x2 * sin[pair]);
    store_value(call.out, call.type, out + at + distance, x2 * cos[pair] + x1 * sin[pair]);
  }
  if (call.rotary == call.D || (call.x == call.out && x == out)) return;
  const size_t size = size_of(call.type);
  std::memmove(static_cast<char*>(call.out) + (out + call.rotary) * size,
               static_cast<const char*>(call.x) + (x + call.rotary) * size, (call.D - call.rotary) * size);
}

int32_t token_blocks(const Rope& call) { return (call.T + kTokens - 1) / kTokens; }

/// Some tokens of one item: all heads of a token where these lie side by side, else two heads at a time, so that
/// memory is walked straight and the angles of a token are read for more than one.
void run_item(const void* context, int32_t item, int32_t) {
  const Rope& call = *static_cast<const Rope*>(context);
  const ptrdiff_t b = item / token_blocks(call), half = call.rotary / 2;
  const int32_t first = item % token_blocks(call) * kTokens, end = std::min(call.T, first + kTokens);
  const int32_t heads = call.x_head < call.x_token ? call.H : 2;
  const Turn turn_most = turn_of(call);
  for (int32_t h = 0; h < call.H; h += heads) {
    const int32_t count = std::min(heads, call.H - h);
    for (ptrdiff_t t = first; t < end; ++t) {
      const ptrdiff_t table = b * call.table_batch + t * half;
      ptrdiff_t x = b * call.x_batch + h * call.x_head + t * call.x_token;
      ptrdiff_t out = b * call.out_batch + h * call.out_head + t * call.out_token;
      for (int32_t i = 0; i < count; ++i, x += call.x_head, out += call.out_head) {
        turn_token(call, turn_most, x, out, call.cos + table, call.sin + table);
      }
    }
  }
}

}  // namespace

void rope(const Rope& call) {
  parallel_for(call.B * token_blocks(call), 2.0 * call.B * call.T * call.H * call.D, &call, run_item);
}

}  // namespace attention
