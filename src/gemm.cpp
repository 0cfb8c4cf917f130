// The linear projection, out = x weight^T + bias + residual.
//
// Many rows: tokens stand in lanes, eight to a group and four groups to a block; the rows of the weight are splatted as
// they lie, four at a time, and serve all 32 tokens of the block from the first-level cache.
// Few rows, as in decoding: K stands in lanes, and four rows of the weight are multiplied with one of x at a time.
// Shapes: x [M, K], weight [N, K], out [M, N]. Cost: 2 M N K flops; weights are read once for 32 tokens, or once for
// the few rows: 4 N K bytes, which is then the limit.
#include <algorithm>

#include "attention.h"
#include "kernels.h"
#include "parallel.h"
#include "tile.h"

namespace attention {

namespace {

constexpr int32_t kGroups = 4;
constexpr int32_t kBlockRows = kGroups * kLanes;
constexpr int32_t kStrip = 64;  // columns of the result that are turned back into rows at once
constexpr int32_t kFewRows = 4;

struct Workspace {
  float *tokens[kGroups], *strips[kGroups], *residual;
};

size_t lay_out(const Linear& call, void* base, Workspace& space) {
  Scratch scratch(base);
  for (int32_t g = 0; g < kGroups; ++g) {
    space.tokens[g] = scratch.floats(static_cast<size_t>(kLanes) * call.K);
    space.strips[g] = scratch.floats(kLanes * kStrip);
  }
  space.residual = call.residual ? scratch.floats(kLanes * kStrip) : nullptr;
  return scratch.used();
}

void add_bias(const float* bias, int32_t columns, float* strip) {
  for (int32_t n = 0; n < columns; ++n, strip += kLanes) {
    const v128_t value = load_splat(bias + n);
    wasm_v128_store(strip, wasm_f32x4_add(wasm_v128_load(strip), value));
    wasm_v128_store(strip + 4, wasm_f32x4_add(wasm_v128_load(strip + 4), value));
  }
}

/// Up to eight rows of the residual from `row` on, columns n..n + columns - 1, onto a strip.
void add_residual(const Linear& call, int32_t row, int32_t rows, int32_t n, int32_t columns, float* lanes,
                  float* strip) {
  const float* from[kLanes];
  for (int32_t lane = 0; lane < kLanes; ++lane) {
    from[lane] = call.residual + static_cast<ptrdiff_t>(row + std::min(lane, rows - 1)) * call.out_row + n;
  }
  rows_to_lanes(from, columns, 1, lanes);
  for (int32_t i = 0; i < columns * kLanes; i += 4) {
    wasm_v128_store(strip + i, wasm_f32x4_add(wasm_v128_load(strip + i), wasm_v128_load(lanes + i)));
  }
}

void run_block(const void* context, int32_t item, int32_t worker) {
  const Linear& call = *static_cast<const Linear*>(context);
  const float* weight = call.packed ? call.packed : call.weight;
  Workspace space;
  lay_out(call, static_cast<char*>(call.scratch) + worker * (linear_scratch(call) / threads()), space);
  const int32_t first = item * kBlockRows, rows = std::min(kBlockRows, call.M - first);
  const int32_t groups = (rows + kLanes - 1) / kLanes;
  for (int32_t g = 0; g < groups; ++g) {
    const float* lanes[kLanes];
    for (int32_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = call.x + static_cast<ptrdiff_t>(first + std::min(kLanes * g + lane, rows - 1)) * call.x_row;
    }
    rows_to_lanes(lanes, call.K, 1, space.tokens[g]);
  }
  const v128_t one = wasm_f32x4_const_splat(1);
  for (int32_t n = 0; n < call.N; n += kStrip) {
    const int32_t columns = std::min(kStrip, call.N - n);
    for (int32_t u = 0; u < columns; u += 4) {
      const float* block = weight + static_cast<ptrdiff_t>(n + u) * call.K;
      for (int32_t g = 0; g < groups; ++g) {
        scores(space.tokens[g], block, call.K, std::min(4, columns - u), call.K, space.strips[g] + kLanes * u);
      }
    }
    for (int32_t g = 0; g < groups; ++g) {
      const int32_t row = first + kLanes * g, valid = std::min(kLanes, rows - kLanes * g);
      if (call.bias) add_bias(call.bias + n, columns, space.strips[g]);
      if (call.residual) add_residual(call, row, valid, n, columns, space.residual, space.strips[g]);
      float* out = call.out + static_cast<ptrdiff_t>(row) * call.out_row + n;
      lanes_to_rows(space.strips[g], one, one, valid, columns, out, call.out_row);
    }
  }
}

/// <x, w_n> for four rows of the weight, one a lane.
ATTENTION_NOINLINE v128_t four_products(const float* x, const float* w0, const float* w1, const float* w2,
                                        const float* w3, int32_t K) {
  const v128_t zero = wasm_f32x4_const_splat(0);
  v128_t a0 = zero, a1 = zero, a2 = zero, a3 = zero, b0 = zero, b1 = zero, b2 = zero, b3 = zero;
  int32_t c = 0;
  for (; c + 8 <= K; c += 8) {
    const v128_t low = wasm_v128_load(x + c), high = wasm_v128_load(x + c + 4);
    a0 = madd(low, wasm_v128_load(w0 + c), a0);
    a1 = madd(low, wasm_v128_load(w1 + c), a1);
    a2 = madd(low, wasm_v128_load(w2 + c), a2);
    a3 = madd(low, wasm_v128_load(w3 + c), a3);
    b0 = madd(high, wasm_v128_load(w0 + c + 4), b0);
    b1 = madd(high, wasm_v128_load(w1 + c + 4), b1);
    b2 = madd(high, wasm_v128_load(w2 + c + 4), b2);
    b3 = madd(high, wasm_v128_load(w3 + c + 4), b3);
  }
  for (; c < K; c += 4) {
    const v128_t lanes = load_lanes(x + c, K - c);
    a0 = madd(lanes, load_lanes(w0 + c, K - c), a0);
    a1 = madd(lanes, load_lanes(w1 + c, K - c), a1);
    a2 = madd(lanes, load_lanes(w2 + c, K - c), a2);
    a3 = madd(lanes, load_lanes(w3 + c, K - c), a3);
  }
  a0 = wasm_f32x4_add(a0, b0);
  a1 = wasm_f32x4_add(a1, b1);
  a2 = wasm_f32x4_add(a2, b2);
  a3 = wasm_f32x4_add(a3, b3);
  transpose_4x4(a0, a1, a2, a3);
  return wasm_f32x4_add(wasm_f32x4_add(a0, a1), wasm_f32x4_add(a2, a3));
}

/// A strip of columns of all the few rows.
void run_strip(const void* context, int32_t item, int32_t) {
  const Linear& call = *static_cast<const Linear*>(context);
  const int32_t end = std::min(call.N, (item + 1) * kStrip), last = end - 1;
  for (int32_t n = item * kStrip; n < end; n += 4) {
    const float* w[4];
    for (int32_t u = 0; u < 4; ++u) {
      w[u] = (call.packed ? call.packed : call.weight) + static_cast<ptrdiff_t>(std::min(n + u, last)) * call.K;
    }
    for (int32_t m = 0; m < call.M; ++m) {
      const ptrdiff_t at = static_cast<ptrdiff_t>(m) * call.out_row + n;
      v128_t y = four_products(call.x + static_cast<ptrdiff_t>(m) * call.x_row, w[0], w[1], w[2], w[3], call.K);
      if (call.bias) y = wasm_f32x4_add(y, load_lanes(call.bias + n, end - n));
      if (call.residual) y = wasm_f32x4_add(y, load_lanes(call.residual + at, end - n));
      store_lanes(call.out + at, y, end - n);
    }
  }
}

}  // namespace

size_t linear_scratch(const Linear& call) {
  if (call.M <= kFewRows) return 0;
  Workspace space;
  return lay_out(call, nullptr, space) * threads();
}

void linear(const Linear& call) {
  const double work = static_cast<double>(call.M) * call.N * call.K;
  if (call.M <= kFewRows) {
    parallel_for((call.N + kStrip - 1) / kStrip, work, &call, run_strip);
  } else {
    parallel_for((call.M + kBlockRows - 1) / kBlockRows, work, &call, run_block);
  }
}

size_t packed_linear_size(int32_t N, int32_t K) { return static_cast<size_t>(N) * K; }

void pack_linear(const float* weight, int32_t N, int32_t K, float* packed) {
  std::copy(weight, weight + static_cast<size_t>(N) * K, packed);
}

}  // namespace attention
