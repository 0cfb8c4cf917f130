// The linear projection, out = x weight^T + bias + residual.
//
// Many rows: tokens stand in lanes, eight to a group and four groups or more to a block; the weights of four columns
// are splatted, and serve all tokens of the block from the first-level cache.
// Few rows, as in decoding: columns stand in lanes.
// Packed weights stand in blocks of four columns, [N / 4][K][4], the last one filled up with zeros: few rows then read
// them straight through. Every sum takes its products in the same order in all of these, so a row of the result has
// the same bits whatever rows come with it, and whether or not the weight is packed.
// Shapes: x [M, K], weight [N, K], out [M, N]. Cost: 2 M N K flops; weights are read once for a block, or once for the
// few rows: 4 N K bytes, which is then the limit.
#include <algorithm>

#include "attention.h"
#include "kernels.h"
#include "parallel.h"
#include "tile.h"

namespace attention {

namespace {

constexpr int32_t kGroups = 4, kMostGroups = 16;
constexpr ptrdiff_t kLargeWeight = 1 << 20;  // 4 MB
constexpr int32_t kStrip = 64;               // columns of the result that are turned back into rows at once
constexpr int32_t kBlockColumns = 4;         // of a packed weight

struct Workspace {
  float *tokens[kMostGroups], *strips[kMostGroups], *residual;
};

/// Groups of a block: more for a large weight, which comes from far away each time, as long as their tokens stay within
/// 1 MB, the second-level cache; but a few blocks for each thread.
int32_t group_count(const Linear& call) {
  const int32_t groups = (call.M + kLanes - 1) / kLanes, shares = threads() == 1 ? 1 : 2 * threads();
  const bool is_large = static_cast<ptrdiff_t>(call.N) * call.K > kLargeWeight;
  const int32_t most = is_large ? std::clamp((1 << 15) / call.K, kGroups, kMostGroups) : kGroups;
  return std::min(most, (groups + shares - 1) / shares);
}

size_t lay_out(const Linear& call, void* base, Workspace& space) {
  Scratch scratch(base);
  for (int32_t g = 0; g < group_count(call); ++g) {
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

/// As `scores`, with a block of a packed weight.
ATTENTION_NOINLINE void packed_scores(const float* rows, const float* block, int32_t K, float* out) {
  Tile tile = Tile::zero();
  for (int32_t c = 0; c < K; ++c, rows += kLanes, block += kBlockColumns) {
    tile.add(wasm_v128_load(rows), wasm_v128_load(rows + 4), block, block + 1, block + 2, block + 3);
  }
  tile.store(out);
}

void run_block(const void* context, int32_t item, int32_t worker) {
  const Linear& call = *static_cast<const Linear*>(context);
  Workspace space;
  lay_out(call, static_cast<char*>(call.scratch) + worker * (linear_scratch(call) / threads()), space);
  const int32_t block_rows = group_count(call) * kLanes;
  const int32_t first = item * block_rows, rows = std::min(block_rows, call.M - first);
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
      const ptrdiff_t block = static_cast<ptrdiff_t>(n + u) * call.K;
      for (int32_t g = 0; g < groups; ++g) {
        float* const strip = space.strips[g] + kLanes * u;
        if (call.packed) {
          packed_scores(space.tokens[g], call.packed + block, call.K, strip);
        } else {
          scores(space.tokens[g], call.weight + block, call.K, std::min(4, columns - u), call.K, strip);
        }
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

/// Sums of x with 16 rows of the weight, in lanes: they are turned in registers.
ATTENTION_NOINLINE void sixteen_columns(const float* x, const float* weight, ptrdiff_t K, v128_t sums[4]) {
  const v128_t zero = wasm_f32x4_const_splat(0);
  v128_t s0 = zero, s1 = zero, s2 = zero, s3 = zero;
  const auto turned = [x, weight, K](v128_t sum, int32_t column, ptrdiff_t c) {
    const float* w = weight + column * K + c;
    v128_t w0 = wasm_v128_load(w), w1 = wasm_v128_load(w + K);
    v128_t w2 = wasm_v128_load(w + 2 * K), w3 = wasm_v128_load(w + 3 * K);
    transpose_4x4(w0, w1, w2, w3);
    sum = madd(load_splat(x + c), w0, sum);
    sum = madd(load_splat(x + c + 1), w1, sum);
    sum = madd(load_splat(x + c + 2), w2, sum);
    return madd(load_splat(x + c + 3), w3, sum);
  };
  ptrdiff_t c = 0;
  for (; c + 4 <= K; c += 4) {
    s0 = turned(s0, 0, c);
    s1 = turned(s1, 4, c);
    s2 = turned(s2, 8, c);
    s3 = turned(s3, 12, c);
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
  for (; c < K; ++c) {
    for (int32_t u = 0; u < 4; ++u) {
      const float* w = weight + 4 * u * K + c;
      sums[u] = madd(load_splat(x + c), wasm_f32x4_make(w[0], w[K], w[2 * K], w[3 * K]), sums[u]);
    }
  }
}

/// The same for one row of the weight: what is left over at the end.
float one_column(const float* x, const float* weight, int32_t K) {
  v128_t sum = wasm_f32x4_const_splat(0);
  for (int32_t c = 0; c < K; ++c) sum = madd(load_splat(x + c), load_splat(weight + c), sum);
  return wasm_f32x4_extract_lane(sum, 0);
}

/// Columns n..n + 15 of one row, as many as there are below `end`.
void some_columns(const Linear& call, const float* x, int32_t n, int32_t end, v128_t sums[4]) {
  const float* weight = call.weight + static_cast<ptrdiff_t>(n) * call.K;
  if (n + 16 <= end) {
    sixteen_columns(x, weight, call.K, sums);
    return;
  }
  float rest[16] = {};
  for (int32_t u = 0; n + u < end; ++u) rest[u] = one_column(x, weight + static_cast<ptrdiff_t>(u) * call.K, call.K);
  for (int32_t u = 0; u < 4; ++u) sums[u] = wasm_v128_load(rest + 4 * u);
}

/// Sums of x with the 32 columns of eight blocks, read straight through.
ATTENTION_NOINLINE void eight_blocks(const float* x, const float* packed, ptrdiff_t K, v128_t sums[8]) {
  const ptrdiff_t block = kBlockColumns * K;
  const v128_t zero = wasm_f32x4_const_splat(0);
  v128_t s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero, s6 = zero, s7 = zero;
  for (ptrdiff_t c = 0; c < K; ++c, packed += kBlockColumns) {
    const v128_t value = load_splat(x + c);
    s0 = madd(value, wasm_v128_load(packed), s0);
    s1 = madd(value, wasm_v128_load(packed + block), s1);
    s2 = madd(value, wasm_v128_load(packed + 2 * block), s2);
    s3 = madd(value, wasm_v128_load(packed + 3 * block), s3);
    s4 = madd(value, wasm_v128_load(packed + 4 * block), s4);
    s5 = madd(value, wasm_v128_load(packed + 5 * block), s5);
    s6 = madd(value, wasm_v128_load(packed + 6 * block), s6);
    s7 = madd(value, wasm_v128_load(packed + 7 * block), s7);
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4, sums[5] = s5, sums[6] = s6, sums[7] = s7;
}

v128_t one_block(const float* x, const float* packed, ptrdiff_t K) {
  v128_t sum = wasm_f32x4_const_splat(0);
  for (ptrdiff_t c = 0; c < K; ++c) sum = madd(load_splat(x + c), wasm_v128_load(packed + kBlockColumns * c), sum);
  return sum;
}

/// The same of a packed weight, up to 32 columns.
void some_blocks(const Linear& call, const float* x, int32_t n, int32_t end, v128_t sums[8]) {
  const float* packed = call.packed + static_cast<ptrdiff_t>(n) * call.K;
  if (n + 32 <= end) {
    eight_blocks(x, packed, call.K, sums);
    return;
  }
  for (int32_t u = 0; n + u < end; u += kBlockColumns) {
    sums[u / kBlockColumns] = one_block(x, packed + static_cast<ptrdiff_t>(u) * call.K, call.K);
  }
}

/// A strip of columns of all the few rows.
void run_strip(const void* context, int32_t item, int32_t) {
  const Linear& call = *static_cast<const Linear*>(context);
  const int32_t end = std::min(call.N, (item + 1) * kStrip), step = call.packed ? 32 : 16;
  for (int32_t n = item * kStrip; n < end; n += step) {
    for (int32_t m = 0; m < call.M; ++m) {
      const float* x = call.x + static_cast<ptrdiff_t>(m) * call.x_row;
      v128_t sums[8];
      if (call.packed) {
        some_blocks(call, x, n, end, sums);
      } else {
        some_columns(call, x, n, end, sums);
      }
      const ptrdiff_t at = static_cast<ptrdiff_t>(m) * call.out_row + n;
      for (int32_t u = 0; u < step && n + u < end; u += 4) {
        v128_t y = sums[u / 4];
        if (call.bias) y = wasm_f32x4_add(y, load_lanes(call.bias + n + u, end - n - u));
        if (call.residual) y = wasm_f32x4_add(y, load_lanes(call.residual + at + u, end - n - u));
        store_lanes(call.out + at + u, y, end - n - u);
      }
    }
  }
}

/// Up to where reading the weight once for each row takes less time than lanes that stay empty.
bool few_rows(const Linear& call) { return call.M <= (call.packed ? 4 : 2); }

}  // namespace

size_t linear_scratch(const Linear& call) {
  if (few_rows(call)) return 0;
  Workspace space;
  return lay_out(call, nullptr, space) * threads();
}

void linear(const Linear& call) {
  const double work = static_cast<double>(call.M) * call.N * call.K;
  if (few_rows(call)) {
    parallel_for((call.N + kStrip - 1) / kStrip, work, &call, run_strip);
  } else {
    const int32_t block_rows = group_count(call) * kLanes;
    parallel_for((call.M + block_rows - 1) / block_rows, work, &call, run_block);
  }
}

size_t packed_linear_size(int32_t N, int32_t K) {
  return static_cast<size_t>((N + kBlockColumns - 1) / kBlockColumns * kBlockColumns) * K;
}

void pack_linear(const float* weight, int32_t N, int32_t K, float* packed) {
  for (int32_t n = 0; n < N; n += kBlockColumns, packed += static_cast<ptrdiff_t>(kBlockColumns) * K) {
    for (int32_t u = 0; u < kBlockColumns; ++u) {
      const float* row = weight + static_cast<ptrdiff_t>(n + u) * K;
      for (int32_t c = 0; c < K; ++c) packed[kBlockColumns * c + u] = n + u < N ? row[c] : 0;
    }
  }
}

void unpack_linear(const float* packed, int32_t, int32_t K, int32_t n, float* row) {
  const float* block = packed + static_cast<ptrdiff_t>(n - n % kBlockColumns) * K + n % kBlockColumns;
  for (int32_t c = 0; c < K; ++c) row[c] = block[kBlockColumns * c];
}

}  // namespace attention
