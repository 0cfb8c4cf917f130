// The linear projection, out = x weight^T + bias.
//
// Tokens stand in lanes, eight to a group and four groups to a block; the rows of the weight are splatted as they lie,
// four at a time, and serve all 32 tokens of the block from the first-level cache.
// Shapes: x [M, K], weight [N, K], out [M, N]. Cost: 2 M N K flops; weights are read once for 32 tokens.
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

struct Workspace {
  float *tokens[kGroups], *strips[kGroups];
};

size_t lay_out(const Linear& call, void* base, Workspace& space) {
  Scratch scratch(base);
  for (int32_t g = 0; g < kGroups; ++g) {
    space.tokens[g] = scratch.floats(static_cast<size_t>(kLanes) * call.K);
    space.strips[g] = scratch.floats(kLanes * kStrip);
  }
  return scratch.used();
}

void add_bias(const float* bias, int32_t columns, float* strip) {
  for (int32_t n = 0; n < columns; ++n, strip += kLanes) {
    const v128_t value = load_splat(bias + n);
    wasm_v128_store(strip, wasm_f32x4_add(wasm_v128_load(strip), value));
    wasm_v128_store(strip + 4, wasm_f32x4_add(wasm_v128_load(strip + 4), value));
  }
}

void run_item(const void* context, int32_t item, int32_t worker) {
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
      if (call.bias) add_bias(call.bias + n, columns, space.strips[g]);
      float* out = call.out + static_cast<ptrdiff_t>(first + kLanes * g) * call.out_row + n;
      lanes_to_rows(space.strips[g], one, one, std::min(kLanes, rows - kLanes * g), columns, out, call.out_row);
    }
  }
}

}  // namespace

size_t linear_scratch(const Linear& call) {
  Workspace space;
  return lay_out(call, nullptr, space) * threads();
}

void linear(const Linear& call) {
  parallel_for((call.M + kBlockRows - 1) / kBlockRows, static_cast<double>(call.M) * call.N * call.K, &call, run_item);
}

size_t packed_linear_size(int32_t N, int32_t K) { return static_cast<size_t>(N) * K; }

void pack_linear(const float* weight, int32_t N, int32_t K, float* packed) {
  std::copy(weight, weight + static_cast<size_t>(N) * K, packed);
}

}  // namespace attention
