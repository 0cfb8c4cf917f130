// Attention weights of chosen heads and rows, or logits at a stage on the way to them.
//
//   x = the logits of a row, as in prefill.cpp;  w_j = e^(x_j - m) / l
//
// Shapes: weights [B, heads, rows, Tk], or [B, rows, Tk] for the mean over the heads.
// Cost: 2 D flops and e^x twice for each cell that is asked for; nothing for the others. Never stored: anything beside
// the result but one strip of logits, and eight rows of them for a mean.
#include <algorithm>

#include "kernels.h"
#include "layout.h"
#include "parallel.h"
#include "row-group.h"
#include "state.h"
#include "tile.h"
#include "tokens.h"

namespace attention {

namespace {

struct Workspace {
  float *queries, *logits, *bias, *row_buffer, *key_tile, *mean_rows;
};

size_t lay_out(const Attention& call, void* base, Workspace& space) {
  Scratch scratch(base);
  space.queries = scratch.floats(static_cast<size_t>(kLanes) * call.D);
  space.logits = scratch.floats(kLanes * kTileKeys);
  space.bias = scratch.floats(kLanes * kTileKeys);
  space.row_buffer = scratch.floats(static_cast<size_t>(kLanes) * call.D);
  space.key_tile = scratch.floats(static_cast<size_t>(kTileKeys) * call.D);
  space.mean_rows = scratch.floats(call.weights_mean ? static_cast<size_t>(kLanes) * call.Tk : 0);
  return scratch.used();
}

/// Up to eight of the chosen rows of one item; the last is repeated in the lanes behind it.
struct Rows {
  int32_t b, count;
  int32_t index[kLanes];
};

RowGroup<2> row_group(const Attention& call, const Rows& rows, int32_t h) {
  int32_t heads[kLanes];
  std::fill(heads, heads + kLanes, h);
  return RowGroup<2>(call, rows.b, heads, rows.index);
}

void load_queries(const Attention& call, const Rows& rows, int32_t h, const Workspace& space) {
  const float* lanes[kLanes];
  for (int32_t lane = 0; lane < rows.count; ++lane) {
    const ptrdiff_t first = query_start(call, rows.b, h) + static_cast<ptrdiff_t>(rows.index[lane]) * call.q_token;
    float* buffer = space.row_buffer + static_cast<ptrdiff_t>(lane) * call.D;
    lanes[lane] = float_rows(call.q, call.q_type, first, call.q_token, 1, call.D, buffer).data;
  }
  for (int32_t lane = rows.count; lane < kLanes; ++lane) lanes[lane] = lanes[rows.count - 1];
  queries_to_lanes(call, lanes, rows.count, space.row_buffer, space.queries);
}

/// Scores of the group with keys key..key+count-1 into space.logits.
void tile_scores(const Attention& call, int32_t b, int32_t h, int32_t key, int32_t count, const Workspace& space) {
  const FloatRows k = token_rows(key_tokens(call, b, kv_head(call, h)), key, count, space.key_tile);
  scores(space.queries, k.data, k.stride, count, call.D, space.logits);
}

void store_logits(const Workspace& space, int32_t valid, int32_t key, int32_t count, float* out, ptrdiff_t stride) {
  const v128_t one = wasm_f32x4_const_splat(1);
  lanes_to_rows(space.logits, one, one, valid, count, out + key, stride);
}

/// Scores, with or without the softcap, for every key: no mask, no range.
void score_rows(const Attention& call, const Rows& rows, int32_t h, const Workspace& space, float* out) {
  const int32_t end = call.k_start ? key_length(call, rows.b) : call.Tk;
  const RowGroup<2> group = row_group(call, rows, h);
  for (int32_t key = 0; key < end; key += kTileKeys) {
    const int32_t count = std::min(kTileKeys, end - key);
    tile_scores(call, rows.b, h, key, count, space);
    if (call.weights_stage == Stage::kCapped && call.softcap > 0) group.cap(count, space.logits);
    store_logits(space, rows.count, key, count, out, call.Tk);
  }
  for (int32_t lane = 0; lane < rows.count; ++lane)
    std::fill(out + lane * call.Tk + end, out + (lane + 1) * call.Tk, 0.0f);
}

/// x -> e^(x - max) * norm along one row.
void normalise_row(float* x, int32_t count, float max, float norm) {
  const v128_t max4 = wasm_f32x4_splat(max), norm4 = wasm_f32x4_splat(norm);
  for (int32_t j = 0; j < count; j += 4) {
    const v128_t logits = load_lanes(x + j, count - j);
    store_lanes(x + j, wasm_f32x4_mul(exp_f32x4(wasm_f32x4_sub(logits, max4)), norm4), count - j);
  }
}

/// Masked logits, or weights.
void weigh_rows(const Attention& call, const Rows& rows, int32_t h, const Workspace& space, float* out) {
  const ptrdiff_t stride = call.Tk;
  RowGroup<2> group = row_group(call, rows, h);
  float sinks[kLanes];
  group.sinks(sinks);
  State<2> state(sinks);
  std::fill(out, out + rows.count * stride, -INFINITY);
  for (int32_t key = group.range().first; key < group.range().end; key += kTileKeys) {
    const int32_t count = std::min(kTileKeys, group.range().end - key);
    const Coverage coverage = group.cover(key, count, space.bias);
    if (coverage == Coverage::kNone) continue;
    tile_scores(call, rows.b, h, key, count, space);
    group.finish_logits(key, count, coverage, space.logits);
    store_logits(space, rows.count, key, count, out, stride);
    state.push(space.logits, count);
  }
  if (call.weights_stage == Stage::kMasked) return;
  float max[kLanes], norm[kLanes];
  for (int32_t n = 0; n < 2; ++n) {
    wasm_v128_store(max + 4 * n, state.max[n]);
    wasm_v128_store(norm + 4 * n, state.norm(n));
  }
  for (int32_t lane = 0; lane < rows.count; ++lane) normalise_row(out + lane * stride, call.Tk, max[lane], norm[lane]);
}

void stage_rows(const Attention& call, const Rows& rows, int32_t head, const Workspace& space, float* out) {
  const int32_t h = call.heads ? call.heads[head] : head;
  load_queries(call, rows, h, space);
  if (call.weights_stage < Stage::kMasked) {
    score_rows(call, rows, h, space, out);
  } else {
    weigh_rows(call, rows, h, space, out);
  }
}

void mean_rows(const Attention& call, const Rows& rows, const Workspace& space, float* out) {
  const size_t size = static_cast<size_t>(rows.count) * call.Tk;
  const float gain = 1.0f / static_cast<float>(call.num_heads);
  std::fill(out, out + size, 0.0f);
  for (int32_t head = 0; head < call.num_heads; ++head) {
    stage_rows(call, rows, head, space, space.mean_rows);
    // Each divided first: the lowest logits, -3.4e38, have no sum.
    for (size_t i = 0; i < size; ++i) out[i] += gain * space.mean_rows[i];
  }
}

struct Job {
  const Attention& call;
  int32_t groups, heads;  // groups of rows a matrix; matrices an item
  size_t worker_bytes;
};

void run_item(const void* context, int32_t item, int32_t worker) {
  const Job& job = *static_cast<const Job*>(context);
  const Attention& call = job.call;
  const int32_t matrix = item / job.groups, first = item % job.groups * kLanes;
  Rows rows{matrix / job.heads, std::min(kLanes, call.num_rows - first), {}};
  for (int32_t lane = 0; lane < kLanes; ++lane) {
    const int32_t chosen = first + std::min(lane, rows.count - 1);
    rows.index[lane] = call.rows ? call.rows[chosen] : chosen;
  }
  Workspace space;
  lay_out(call, static_cast<char*>(call.scratch) + worker * job.worker_bytes, space);
  float* out = call.weights + (static_cast<size_t>(matrix) * call.num_rows + first) * call.Tk;
  if (call.weights_mean) {
    mean_rows(call, rows, space, out);
  } else {
    stage_rows(call, rows, matrix % job.heads, space, out);
  }
}

}  // namespace

size_t weights_scratch(const Attention& call) {
  Workspace space;
  return lay_out(call, nullptr, space);
}

void attention_weights(const Attention& call) {
  const Job job{call, (call.num_rows + kLanes - 1) / kLanes, call.weights_mean ? 1 : call.num_heads,
                weights_scratch(call)};
  const double work = static_cast<double>(call.B) * call.num_heads * call.num_rows * call.Tk * call.D;
  parallel_for(call.B * job.heads * job.groups, work, &job, run_item);
}

}  // namespace attention
