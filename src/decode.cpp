// Few query rows against many keys: decoding, and short chunks of it.
//
//   x = <q, k>;  P = e^(X - m);  O = r O + P V, as in prefill.cpp, but with channels in lanes: a row of queries is too
//   little to fill lanes with, and keys and values are read as they lie, four channels a load.
//
// Shapes: the G * Tq rows that read one key/value head, in blocks of up to four; keys in chunks of 1024, each with a
// state of its own that is merged at the end. Cost: each key and value is read from memory once for all the heads of
// its group, 2 (D + Dv) flops a row. Never stored: more than a tile of logits; the states of the chunks are
// [B, H, Tq, Dv + 2] times ceil(Tk / 1024). Chunks are cut at fixed keys, so the result doesn't depend on who computes
// them. Source of the split: Dao et al., "Flash-Decoding" (2023).
#include <algorithm>
#include <new>

#include "decode-blocks.h"
#include "decode-rows.h"
#include "kernels.h"
#include "layout.h"
#include "parallel.h"
#include "row-group.h"
#include "state.h"
#include "tokens.h"

namespace attention {

namespace {

constexpr int32_t kChunkKeys = 1024;

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

  /// Query head and row of row r of a key/value head.
  int32_t head(int32_t kv, int32_t r) const { return kv * (call.H / call.Hkv) + r / call.Tq; }
  int32_t row(int32_t r) const { return r % call.Tq; }
};

/// Rows of one block, prepared.
struct Block {
  RowGroup<1> rows;
  bool whole;                // its queries are kept as whole numbers too
  float scales[kBlockRows];  // of those
};

/// Working memory of one chunk.
struct Workspace {
  Block* blocks;
  float *queries, *logits, *lanes, *bias, *key_tile, *value_tile;
  int16_t* whole_queries;
  uint32_t* walked;  // see Walk
};

/// Keys of a tile.
int32_t tile_keys(const Attention& call) { return is_quantized(call.k_type) ? kBlockKeys : kFloatKeys; }

size_t lay_out(const Attention& call, int32_t rows, void* base, Workspace& space) {
  Scratch scratch(base);
  const size_t blocks = (rows + kBlockRows - 1) / kBlockRows, keys = tile_keys(call);
  space.blocks = scratch.array<Block>(blocks);
  space.queries = scratch.floats(blocks * kBlockRows * padded(call.D));
  space.logits = scratch.floats(kBlockRows * keys);
  space.lanes = scratch.floats(kBlockRows * keys);
  space.bias = scratch.floats(kBlockRows * keys);
  space.key_tile = scratch.floats(needs_buffer(call.k_type, call.ring_size) ? keys * call.D : 0);
  space.value_tile = scratch.floats(needs_buffer(call.v_type, call.ring_size) ? keys * call.Dv : 0);
  const size_t whole = static_cast<size_t>(blocks_of(call.D)) * kBlockValues;
  space.whole_queries = scratch.array<int16_t>(is_quantized(call.k_type) ? blocks * kBlockRows * whole : 0);
  space.walked = scratch.array<uint32_t>(1);
  return scratch.used();
}

/// The rows of one key/value head against one chunk of keys.
class Chunk {
 public:
  Chunk(const Job& job, int32_t item, int32_t worker) : job_(job), call_(job.call) {
    lay_out(call_, job.rows, job.workers + worker * job.worker_bytes, space_);
    b_ = item / job.chunks / call_.Hkv;
    kv_head_ = item / job.chunks % call_.Hkv;
    keys_ = key_tokens(call_, b_, kv_head_);
    values_ = value_tokens(call_, b_, kv_head_);
    first_ = item % job.chunks * kChunkKeys;
    end_ = std::min(first_ + kChunkKeys, key_length(call_, b_));
    const ptrdiff_t at = static_cast<ptrdiff_t>(item) * job.rows;
    part_ = {job.part.max + at, job.part.sum + at, job.part.values + at * padded(call_.Dv)};
  }

  void run() {
    for (int32_t r = 0; r < job_.rows; ++r) start_row(r);
    for (int32_t r = 0; r < job_.rows; r += kBlockRows) start_block(r);
    const int32_t step = tile_keys(call_);
    for (int32_t key = first_; key < end_; key += step) {
      for (int32_t r = 0; r < job_.rows; r += kBlockRows) push_block(r, key, std::min(key + step, end_));
    }
  }

 private:
  int32_t block_rows(int32_t r) const { return std::min(kBlockRows, job_.rows - r); }
  Block& block(int32_t r) const { return space_.blocks[r / kBlockRows]; }
  float* queries(int32_t r) const { return space_.queries + static_cast<ptrdiff_t>(r) * padded(call_.D); }
  float* sums(int32_t r) const { return part_.values + static_cast<ptrdiff_t>(r) * padded(call_.Dv); }
  int16_t* whole_queries(int32_t r) const {
    return space_.whole_queries + static_cast<ptrdiff_t>(r) * blocks_of(call_.D) * kBlockValues;
  }

  void start_row(int32_t r) {
    const int32_t h = job_.head(kv_head_, r), i = job_.row(r);
    float* to = queries(r);
    std::fill(to, to + padded(call_.D), 0.0f);
    // Rows of packed sequences past the length don't exist.
    if (!call_.q_start || i < query_length(call_, b_)) {
      const ptrdiff_t from = query_start(call_, b_, h) + static_cast<ptrdiff_t>(i) * call_.q_token;
      for (int32_t c = 0; c < call_.D; ++c) to[c] = call_.scale * load_value(call_.q, call_.q_type, from + c);
    }
    // The sink belongs to the whole row: the first chunk counts it.
    const float sink = call_.sinks && first_ == 0 ? call_.sinks[h] : -INFINITY;
    part_.max[r] = sink == -INFINITY ? -FLT_MAX : sink;
    part_.sum[r] = sink == -INFINITY ? 0 : 1;
    std::fill(sums(r), sums(r) + padded(call_.Dv), 0.0f);
  }

  void start_block(int32_t r) {
    int32_t heads[kBlockRows], rows[kBlockRows];
    for (int32_t lane = 0; lane < kBlockRows; ++lane) {
      const int32_t row = lane < block_rows(r) ? r + lane : r;
      heads[lane] = job_.head(kv_head_, row);
      rows[lane] = job_.row(row);
    }
    new (&block(r)) Block{RowGroup<1>(call_, b_, heads, rows), is_quantized(call_.k_type), {0, 0, 0, 0}};
    if (!block(r).whole) return;
    std::fill(whole_queries(r), whole_queries(r + kBlockRows), static_cast<int16_t>(0));
    for (int32_t lane = 0; lane < block_rows(r) && block(r).whole; ++lane) {
      int16_t* to = whole_queries(r + lane);
      block(r).whole = all_finite(queries(r + lane), 0, 1, call_.D);
      if (block(r).whole) block(r).scales[lane] = to_16_bits(queries(r + lane), call_.D, to);
    }
  }

  void push_block(int32_t r, int32_t key, int32_t end) {
    RowGroup<1>& rows = block(r).rows;
    const int32_t begin = std::max(key, rows.range().first), count = std::min(end, rows.range().end) - begin;
    if (count <= 0) return;
    const Coverage coverage = rows.cover(begin, count, space_.bias);
    if (coverage == Coverage::kNone) return;
    switch (block_rows(r)) {
      case 1:
        return push_rows<1>(r, coverage, begin, count);
      case 2:
        return push_rows<2>(r, coverage, begin, count);
      case 3:
        return push_rows<3>(r, coverage, begin, count);
      default:
        return push_rows<4>(r, coverage, begin, count);
    }
  }

  template <int32_t N>
  void push_rows(int32_t r, Coverage coverage, int32_t key, int32_t count) {
    weigh<N>(r, key, count);
    float scale[kBlockRows];
    if constexpr (N == 1) {
      if (!block(r).rows.leaves_logits(coverage)) finish_row_logits(r, coverage, key, count);
      for (int32_t j = count; j % 4 != 0; ++j) space_.logits[j] = -INFINITY;
      RowState state{part_.max[r], part_.sum[r]};
      state.push(space_.logits, count);
      part_.max[r] = state.max;
      part_.sum[r] = state.sum;
      scale[0] = state.scale;
    } else {
      block(r).rows.finish_logits(key, count, coverage, space_.logits);
      State<1> state;
      state.max[0] = load_lanes(part_.max + r, N);
      state.sum[0] = load_lanes(part_.sum + r, N);
      state.push(space_.logits, count);
      store_lanes(part_.max + r, state.max[0], N);
      store_lanes(part_.sum + r, state.sum[0], N);
      wasm_v128_store(scale, state.scale[0]);
    }
    if (call_.out) sum_values<N>(r, coverage, key, count, scale);
  }

  /// RowGroup has rows in lanes, of which this is one.
  ATTENTION_NOINLINE void finish_row_logits(int32_t r, Coverage coverage, int32_t key, int32_t count) {
    for (int32_t j = 0; j < count; ++j) wasm_v128_store(space_.lanes + kBlockRows * j, load_splat(space_.logits + j));
    block(r).rows.finish_logits(key, count, coverage, space_.lanes);
    for (int32_t j = 0; j < count; ++j) space_.logits[j] = space_.lanes[kBlockRows * j];
  }

  /// Through the tokens of a tile, if they stand in neighbouring rows.
  static Walk walk(const Tokens& tokens, int32_t key, int32_t count) {
    if (tokens.run(key, count) < count) return {};
    const auto unit = static_cast<ptrdiff_t>(is_quantized(tokens.type) ? 1 : size_of(tokens.type));
    const char* first = static_cast<const char*>(tokens.data) + (tokens.first + tokens.row(key) * tokens.stride) * unit;
    return {first, tokens.stride * unit, count, static_cast<int32_t>(token_bytes(tokens.type, tokens.width))};
  }
  Walk value_walk(int32_t key, int32_t count) const { return call_.out ? walk(values_, key, count) : Walk(); }

  template <int32_t N>
  void weigh(int32_t r, int32_t key, int32_t count) {
    if (!block(r).whole) {
      const FloatRows k = token_rows(keys_, key, count, space_.key_tile);
      const Walk own = k.data == space_.key_tile ? Walk() : walk(keys_, key, count);
      *space_.walked ^= score_tile<N>(queries(r), k, count, call_.D, own, value_walk(key, count), space_.logits);
      return;
    }
    *space_.walked ^= score_whole<N>(r, key, count);
    // Tokens that read as NaN go through float32, but no others: their bits don't depend on what a row doesn't see.
    if (all_finite(space_.logits, 0, 1, kLogits<N> * count)) return;
    for (int32_t u = 0; u < count; ++u) {
      if (finite_scales(keys_, keys_.row(key + u))) continue;
      float scores[kScoredLogits];
      *space_.walked ^=
          score_tile<N>(queries(r), token_rows(keys_, key + u, 1, space_.key_tile), 1, call_.D, {}, {}, scores);
      std::copy(scores, scores + kLogits<N>, space_.logits + kLogits<N> * u);
    }
  }

  template <int32_t N>
  uint32_t score_whole(int32_t r, int32_t key, int32_t count) {
    constexpr int32_t kRows = N == 3 ? 4 : N;  // a fourth row of zeros costs less than code of its own
    const auto score = [&](auto function) {
      return function(whole_queries(r), block(r).scales, keys_, key, count, walk(keys_, key, count),
                      value_walk(key, count), space_.logits);
    };
    switch (numbers_of(keys_)) {
      case Numbers::kToken:
        return score(score_blocks<kRows, Numbers::kToken>);
      case Numbers::kBytes:
        return score(score_blocks<kRows, Numbers::kBytes>);
      default:
        return score(score_blocks<kRows, Numbers::kNibbles>);
    }
  }

  template <int32_t N>
  void sum_values(int32_t r, Coverage coverage, int32_t key, int32_t count, const float* scale) {
    if (is_quantized(values_.type)) return sum_blocks<N>(r, key, count, scale);
    const FloatRows v = token_rows(values_, key, count, space_.value_tile);
    if (coverage == Coverage::kSome && !all_finite(v.data, v.stride, count, call_.Dv)) {
      add_visible_values(block(r).rows, key, count, N, space_.logits, kLogits<N>, v, call_.Dv, scale, sums(r));
    } else {
      add_values<N>(space_.logits, v, count, call_.Dv, scale, sums(r));
    }
  }

  template <int32_t N>
  void sum_blocks(int32_t r, int32_t key, int32_t count, const float* scale) {
    const bool finite = values_.type == Type::kQ4_0
                            ? add_blocks<N, Numbers::kNibbles>(space_.logits, values_, key, count, scale, sums(r))
                            : add_blocks<N, Numbers::kBytes>(space_.logits, values_, key, count, scale, sums(r));
    for (int32_t u = 0; u < count && !finite; ++u) {
      float visible[kBlockRows];
      wasm_v128_store(visible, wasm_v128_and(block(r).rows.lanes(key, u, 0), wasm_f32x4_const_splat(1)));
      add_other_blocks(values_, values_.row(key + u), space_.logits + kLogits<N> * u, visible, N, sums(r));
    }
  }

  const Job& job_;
  const Attention& call_;
  int32_t b_, kv_head_, first_, end_;
  Tokens keys_, values_;
  Workspace space_;
  Part part_;
};

void run_chunk(const void* context, int32_t item, int32_t worker) {
  Chunk(*static_cast<const Job*>(context), item, worker).run();
}

/// Merges the chunks of one row, in order, and writes its output.
void finish_row(const Job& job, int32_t head, int32_t r) {
  const Attention& call = job.call;
  const int32_t b = head / call.Hkv, h = job.head(head % call.Hkv, r), i = job.row(r);
  if (call.q_start && i >= query_length(call, b)) return;
  const auto index = [&](int32_t chunk) { return (static_cast<ptrdiff_t>(head) * job.chunks + chunk) * job.rows + r; };
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
    for (int32_t r = 0; r < job.rows; ++r) finish_row(job, head, r);
  }
}

}  // namespace attention
