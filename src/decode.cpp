// Few query rows against many keys: decoding, and short chunks of it.
//
//   x = <q, k>;  P = e^(X - m);  O = r O + P V, as in prefill.cpp, but with channels in lanes: a row of queries is too
//   little to fill lanes with, and keys and values are read as they lie, four channels a load.
//
// Shapes: the G * Tq rows that read one key/value head, in blocks of up to four; keys in chunks of 1024, each with a
// state of its own that is merged at the end. Cost: each key and value is read from memory once for all the heads of
// its group, 2 (D + Dv) flops a row. Never stored: more than 64 x 4 logits; the states of the chunks are [B, H, Tq, Dv
// + 2] times ceil(Tk / 1024). Chunks are cut at fixed keys, so the result doesn't depend on who computes them. Source
// of the split: Dao et al., "Flash-Decoding" (2023).
#include <algorithm>
#include <new>

#include "convert.h"
#include "kernels.h"
#include "layout.h"
#include "parallel.h"
#include "row-group.h"
#include "state.h"

namespace attention {

namespace {

constexpr int32_t kChunkKeys = 1024;
constexpr int32_t kDecodeKeys = 8;    // of a tile: the values that were walked are still near when they are summed
constexpr int32_t kBlock = 4;         // rows of a block: one vector of logits
constexpr int32_t kAccumulators = 8;  // of a tile, as many as the registers hold beside its operands

int32_t padded(int32_t channels) { return (channels + 3) / 4 * 4; }

/// Sums each of four vectors: lane i of the result is the sum of the lanes of x[i].
v128_t sum_each(v128_t x0, v128_t x1, v128_t x2, v128_t x3) {
  const v128_t x01 = wasm_f32x4_add(wasm_i32x4_shuffle(x0, x1, 0, 4, 1, 5), wasm_i32x4_shuffle(x0, x1, 2, 6, 3, 7));
  const v128_t x23 = wasm_f32x4_add(wasm_i32x4_shuffle(x2, x3, 0, 4, 1, 5), wasm_i32x4_shuffle(x2, x3, 2, 6, 3, 7));
  return wasm_f32x4_add(wasm_i64x2_shuffle(x01, x23, 0, 2), wasm_i64x2_shuffle(x01, x23, 1, 3));
}

/// The partial sums of one key: kUnroll vectors for each of N rows, so that eight sums are under way at a time.
template <int32_t N>
v128_t score_key(const float* queries, ptrdiff_t row, const float* key, int32_t channels) {
  constexpr int32_t kUnroll = kAccumulators / N;
  v128_t sums[N][kUnroll];
  for (auto& parts : sums) {
    for (v128_t& sum : parts) sum = wasm_f32x4_const_splat(0);
  }
  int32_t c = 0;
  for (; c + 4 * kUnroll <= channels; c += 4 * kUnroll) {
    for (int32_t u = 0; u < kUnroll; ++u) {
      const v128_t k = wasm_v128_load(key + c + 4 * u);
      for (int32_t n = 0; n < N; ++n) sums[n][u] = madd(wasm_v128_load(queries + n * row + c + 4 * u), k, sums[n][u]);
    }
  }
  for (; c < channels; c += 4) {
    const v128_t k = load_lanes(key + c, channels - c);
    for (int32_t n = 0; n < N; ++n) sums[n][0] = madd(wasm_v128_load(queries + n * row + c), k, sums[n][0]);
  }
  for (int32_t n = 0; n < N; ++n) {
    for (int32_t u = 1; u < kUnroll; ++u) sums[n][0] = wasm_f32x4_add(sums[n][0], sums[n][u]);
  }
  return sum_each(sums[0][0], sums[1 % N][0], sums[2 % N][0], sums[3 % N][0]);
}

/// A straight walk through rows that are needed soon: one read a cache line. Machines fetch ahead of straight walks,
/// and the sums over values jump about in their tile: so the values are walked while their keys are scored. (Walking
/// the next keys while values are summed was tried as well; it took twice the time.)
class Walk {
 public:
  Walk(FloatRows rows, int32_t count, int32_t width) : rows_(rows), count_(count), width_(width) {}

  void step(int32_t count) {
    for (const int32_t end = std::min(next_ + count, count_); next_ < end; ++next_) {
      const volatile float* row = rows_.data + next_ * rows_.stride;
      for (int32_t c = 0; c < width_; c += 16) static_cast<void>(row[c]);
    }
  }

 private:
  FloatRows rows_;
  int32_t count_, width_, next_ = 0;
};

/// Scores of N rows with a tile of keys: out[key][4], lanes from N on repeat others. `queries` [N][padded D].
template <int32_t N>
ATTENTION_NOINLINE void score_tile(const float* queries, FloatRows keys, int32_t count, int32_t channels, Walk values,
                                   float* out) {
  const ptrdiff_t row = padded(channels);
  for (int32_t j = 0; j < count; ++j) {
    values.step(1);
    wasm_v128_store(out + kBlock * j, score_key<N>(queries, row, keys.data + j * keys.stride, channels));
  }
}

/// sums[n][c] = scale[n] * sums[n][c] + sum over keys of weights[key][n] * values[key][c], for 4 * kVectors channels.
template <int32_t N, int32_t kVectors>
ATTENTION_NOINLINE void add_channels(const float* weights, FloatRows values, int32_t count, int32_t c,
                                     const float scale[kBlock], float* sums, ptrdiff_t row) {
  v128_t tile[N][kVectors];
  for (auto& vectors : tile) {
    for (v128_t& sum : vectors) sum = wasm_f32x4_const_splat(0);
  }
  const float* from = values.data + c;
  for (int32_t j = 0; j < count; ++j, from += values.stride, weights += kBlock) {
    v128_t v[kVectors];
    for (int32_t u = 0; u < kVectors; ++u) v[u] = wasm_v128_load(from + 4 * u);
    for (int32_t n = 0; n < N; ++n) {
      const v128_t weight = load_splat(weights + n);
      for (int32_t u = 0; u < kVectors; ++u) tile[n][u] = madd(weight, v[u], tile[n][u]);
    }
  }
  for (int32_t n = 0; n < N; ++n) {
    for (int32_t u = 0; u < kVectors; ++u) {
      float* at = sums + n * row + c + 4 * u;
      wasm_v128_store(at, madd(wasm_v128_load(at), wasm_f32x4_splat(scale[n]), tile[n][u]));
    }
  }
}

template <int32_t N>
void add_values(const float* weights, FloatRows values, int32_t count, int32_t channels, v128_t scale, float* sums) {
  constexpr int32_t kVectors = kAccumulators / N;
  const ptrdiff_t row = padded(channels);
  float scales[kBlock];
  wasm_v128_store(scales, scale);
  int32_t c = 0;
  for (; c + 4 * kVectors <= channels; c += 4 * kVectors) {
    add_channels<N, kVectors>(weights, values, count, c, scales, sums, row);
  }
  for (; c + 4 <= channels; c += 4) add_channels<N, 1>(weights, values, count, c, scales, sums, row);
  for (; c < channels; ++c) {
    for (int32_t n = 0; n < N; ++n) {
      float sum = 0;
      for (int32_t j = 0; j < count; ++j) sum += weights[kBlock * j + n] * values.data[j * values.stride + c];
      sums[n * row + c] = sums[n * row + c] * scales[n] + sum;
    }
  }
}

/// The same where a value that some row must not see is infinite or NaN: 0 * NaN would leak it. Sums in the same order,
/// with the same operations: what is hidden changes no bit.
ATTENTION_NOINLINE void add_visible_values(const RowGroup<1>& rows, int32_t key, int32_t count, int32_t valid,
                                           const float* weights, FloatRows values, int32_t channels, v128_t scale,
                                           float* sums) {
  float scales[kBlock], visible[kDecodeKeys][kBlock];
  wasm_v128_store(scales, scale);
  for (int32_t j = 0; j < count; ++j) {
    wasm_v128_store(visible[j], wasm_v128_and(rows.lanes(key, j, 0), wasm_f32x4_const_splat(1)));
  }
  for (int32_t n = 0; n < valid; ++n, sums += padded(channels)) {
    int32_t c = 0;
    for (; c + 4 <= channels; c += 4) {
      v128_t sum = wasm_f32x4_const_splat(0);
      for (int32_t j = 0; j < count; ++j) {
        if (visible[j][n] == 0) continue;
        sum = madd(load_splat(weights + kBlock * j + n), wasm_v128_load(values.data + j * values.stride + c), sum);
      }
      wasm_v128_store(sums + c, madd(wasm_v128_load(sums + c), wasm_f32x4_splat(scales[n]), sum));
    }
    for (; c < channels; ++c) {
      float sum = 0;
      for (int32_t j = 0; j < count; ++j) {
        if (visible[j][n] != 0) sum += weights[kBlock * j + n] * values.data[j * values.stride + c];
      }
      sums[c] = sums[c] * scales[n] + sum;
    }
  }
}

/// The state of one row and chunk, as it is kept until all chunks are there.
struct Part {
  float *max, *sum, *values;  // [items][rows], [items][rows], [items][rows][padded Dv]
};

struct Job {
  const Attention& call;
  int32_t rows;    // that read one key/value head: G * Tq
  int32_t chunks;  // of keys
  size_t worker_bytes;
  char* workers;
  Part part;
};

/// Working memory of one chunk.
struct Workspace {
  RowGroup<1>* groups;  // one a block
  float *queries, *logits, *bias, *key_tile, *value_tile;
};

size_t lay_out(const Attention& call, int32_t rows, void* base, Workspace& space) {
  Scratch scratch(base);
  const size_t blocks = (rows + kBlock - 1) / kBlock;
  space.groups = scratch.array<RowGroup<1>>(blocks);
  space.queries = scratch.floats(blocks * kBlock * padded(call.D));
  space.logits = scratch.floats(kBlock * kDecodeKeys);
  space.bias = scratch.floats(kBlock * kDecodeKeys);
  space.key_tile = scratch.floats(call.k_type == Type::kFloat32 ? 0 : static_cast<size_t>(kDecodeKeys) * call.D);
  space.value_tile = scratch.floats(call.v_type == Type::kFloat32 ? 0 : static_cast<size_t>(kDecodeKeys) * call.Dv);
  return scratch.used();
}

/// The rows of one key/value head against one chunk of keys.
class Chunk {
 public:
  Chunk(const Job& job, int32_t item, int32_t worker) : job_(job), call_(job.call) {
    lay_out(call_, job.rows, job.workers + worker * job.worker_bytes, space_);
    const int32_t head = item / job.chunks;
    b_ = head / call_.Hkv;
    kv_head_ = head % call_.Hkv;
    first_ = item % job.chunks * kChunkKeys;
    end_ = std::min(first_ + kChunkKeys, key_length(call_, b_));
    const ptrdiff_t at = static_cast<ptrdiff_t>(item) * job.rows;
    part_ = {job.part.max + at, job.part.sum + at, job.part.values + at * padded(call_.Dv)};
  }

  void run() {
    for (int32_t r = 0; r < job_.rows; r += kBlock) start_block(r);
    for (int32_t key = first_; key < end_; key += kDecodeKeys) {
      const int32_t count = std::min(kDecodeKeys, end_ - key);
      tile_has_keys_ = tile_has_values_ = false;
      for (int32_t r = 0; r < job_.rows; r += kBlock) push_block(r, key, count);
    }
  }

 private:
  int32_t block_rows(int32_t r) const { return std::min(kBlock, job_.rows - r); }

  RowGroup<1> row_group(int32_t r) const {
    int32_t heads[kBlock], rows[kBlock];
    for (int32_t lane = 0; lane < kBlock; ++lane) {
      const int32_t row = lane < block_rows(r) ? r + lane : r;
      heads[lane] = kv_head_ * (call_.H / call_.Hkv) + row / call_.Tq;
      rows[lane] = row % call_.Tq;
    }
    return RowGroup<1>(call_, b_, heads, rows);
  }

  float* queries(int32_t r) const { return space_.queries + static_cast<ptrdiff_t>(r) * padded(call_.D); }
  float* values(int32_t r) const { return part_.values + static_cast<ptrdiff_t>(r) * padded(call_.Dv); }

  void start_block(int32_t r) {
    new (&space_.groups[r / kBlock]) RowGroup<1>(row_group(r));
    for (int32_t lane = 0; lane < block_rows(r); ++lane) {
      const int32_t row = r + lane, h = kv_head_ * (call_.H / call_.Hkv) + row / call_.Tq, i = row % call_.Tq;
      float* to = queries(row);
      std::fill(to, to + padded(call_.D), 0.0f);
      // Rows of packed sequences past the length don't exist.
      if (!call_.q_start || i < query_length(call_, b_)) {
        const ptrdiff_t from = query_start(call_, b_, h) + static_cast<ptrdiff_t>(i) * call_.q_token;
        for (int32_t c = 0; c < call_.D; ++c) to[c] = call_.scale * load_value(call_.q, call_.q_type, from + c);
      }
      // The sink belongs to the whole row: the first chunk counts it.
      const float sink = call_.sinks && first_ == 0 ? call_.sinks[h] : -INFINITY;
      part_.max[row] = sink == -INFINITY ? -FLT_MAX : sink;
      part_.sum[row] = sink == -INFINITY ? 0 : 1;
      std::fill(values(row), values(row) + padded(call_.Dv), 0.0f);
    }
  }

  FloatRows key_tile(int32_t key, int32_t count) {
    if (!tile_has_keys_) {
      const ptrdiff_t first =
          key_start(call_, b_, kv_head_ * (call_.H / call_.Hkv)) + static_cast<ptrdiff_t>(key) * call_.k_token;
      keys_ = float_rows(call_.k, call_.k_type, first, call_.k_token, count, call_.D, space_.key_tile);
      tile_has_keys_ = true;
    }
    return keys_;
  }

  FloatRows value_tile(int32_t key, int32_t count) {
    if (!tile_has_values_) {
      const ptrdiff_t first =
          value_start(call_, b_, kv_head_ * (call_.H / call_.Hkv)) + static_cast<ptrdiff_t>(key) * call_.v_token;
      values_ = float_rows(call_.v, call_.v_type, first, call_.v_token, count, call_.Dv, space_.value_tile);
      tile_has_values_ = true;
    }
    return values_;
  }

  void push_block(int32_t r, int32_t key, int32_t count) {
    RowGroup<1>& rows = space_.groups[r / kBlock];
    const int32_t begin = std::max(key, rows.range().first), end = std::min(key + count, rows.range().end);
    if (begin >= end) return;
    const Coverage coverage = rows.cover(begin, end - begin, space_.bias);
    if (coverage == Coverage::kNone) return;
    switch (block_rows(r)) {
      case 1:
        push_rows<1>(r, rows, coverage, key, count, begin, end - begin);
        break;
      case 2:
        push_rows<2>(r, rows, coverage, key, count, begin, end - begin);
        break;
      case 3:
        push_rows<3>(r, rows, coverage, key, count, begin, end - begin);
        break;
      default:
        push_rows<4>(r, rows, coverage, key, count, begin, end - begin);
    }
  }

  template <int32_t N>
  void push_rows(int32_t r, const RowGroup<1>& rows, Coverage coverage, int32_t key, int32_t count, int32_t begin,
                 int32_t seen) {
    const FloatRows k = key_tile(key, count), v = value_tile(key, count);
    const FloatRows seen_values{v.data + (begin - key) * v.stride, v.stride};
    score_tile<N>(queries(r), {k.data + (begin - key) * k.stride, k.stride}, seen, call_.D,
                  Walk(seen_values, call_.out ? seen : 0, call_.Dv), space_.logits);
    rows.finish_logits(begin, seen, coverage, space_.logits);
    const int32_t valid = block_rows(r);
    State<1> state;
    state.max[0] = load_lanes(part_.max + r, valid);
    state.sum[0] = load_lanes(part_.sum + r, valid);
    state.push(space_.logits, seen);
    store_lanes(part_.max + r, state.max[0], valid);
    store_lanes(part_.sum + r, state.sum[0], valid);
    if (!call_.out) return;
    if (coverage == Coverage::kSome && !all_finite(seen_values.data, v.stride, seen, call_.Dv)) {
      add_visible_values(rows, begin, seen, valid, space_.logits, seen_values, call_.Dv, state.scale[0], values(r));
    } else {
      add_values<N>(space_.logits, seen_values, seen, call_.Dv, state.scale[0], values(r));
    }
  }

  const Job& job_;
  const Attention& call_;
  int32_t b_, kv_head_, first_, end_;
  Workspace space_;
  Part part_;
  bool tile_has_keys_ = false, tile_has_values_ = false;
  FloatRows keys_, values_;
};

void run_chunk(const void* context, int32_t item, int32_t worker) {
  Chunk(*static_cast<const Job*>(context), item, worker).run();
}

/// Merges the chunks of one row, in order, and writes its output.
void finish_row(const Job& job, int32_t head, int32_t row) {
  const Attention& call = job.call;
  const int32_t b = head / call.Hkv, h = head % call.Hkv * (call.H / call.Hkv) + row / call.Tq, i = row % call.Tq;
  if (call.q_start && i >= query_length(call, b)) return;
  const auto index = [&](int32_t chunk) {
    return (static_cast<ptrdiff_t>(head) * job.chunks + chunk) * job.rows + row;
  };
  float max = -FLT_MAX, sum = 0;
  for (int32_t chunk = 0; chunk < job.chunks; ++chunk) max = std::max(max, job.part.max[index(chunk)]);
  float* total = job.part.values + index(0) * padded(call.Dv);
  for (int32_t chunk = 0; chunk < job.chunks; ++chunk) {
    const float weight = std::exp(job.part.max[index(chunk)] - max);
    sum += weight * job.part.sum[index(chunk)];
    const float* values = job.part.values + index(chunk) * padded(call.Dv);
    for (int32_t c = 0; c < call.Dv; ++c) total[c] = chunk == 0 ? weight * values[c] : total[c] + weight * values[c];
  }
  if (call.out) {
    const float norm = sum == 0 ? 0 : 1 / sum;
    for (int32_t c = 0; c < call.Dv; ++c) total[c] *= norm;
    const ptrdiff_t out = out_start(call, b, h) + static_cast<ptrdiff_t>(i) * call.out_token;
    convert(total, Type::kFloat32, static_cast<char*>(call.out) + out * static_cast<ptrdiff_t>(size_of(call.out_type)),
            call.out_type, call.Dv);
  }
  if (call.lse) call.lse[lse_start(call, b, h) + i] = log_sum_exp(max, sum);
}

Job make_job(const Attention& call) {
  Job job{call, call.H / call.Hkv * call.Tq, std::max(1, (call.Tk + kChunkKeys - 1) / kChunkKeys), 0, nullptr, {}};
  Workspace space;
  job.worker_bytes = lay_out(call, job.rows, nullptr, space);
  return job;
}

size_t lay_out_parts(const Attention& call, Job& job, void* base) {
  Scratch scratch(base);
  const size_t rows = static_cast<size_t>(call.B) * call.Hkv * job.chunks * job.rows;
  job.part = {scratch.floats(rows), scratch.floats(rows), scratch.floats(rows * padded(call.Dv))};
  job.workers = scratch.rest();
  return scratch.used();
}

}  // namespace

bool few_rows(const Attention& call) { return call.Tq > 0 && call.Tq < 8; }

size_t decode_scratch(const Attention& call) {
  Job job = make_job(call);
  return lay_out_parts(call, job, nullptr) + job.worker_bytes * threads();
}

void decode(const Attention& call) {
  Job job = make_job(call);
  lay_out_parts(call, job, call.scratch);
  const double work = static_cast<double>(call.B) * call.H * call.Tq * call.Tk * (call.D + call.Dv);
  parallel_for(call.B * call.Hkv * job.chunks, work, &job, run_chunk);
  for (int32_t head = 0; head < call.B * call.Hkv; ++head) {
    for (int32_t row = 0; row < job.rows; ++row) finish_row(job, head, row);
  }
}

}  // namespace attention
