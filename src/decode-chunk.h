// The rows of one key/value head against one chunk of keys: the middle layer of decode.cpp, above its inner loops.
#pragma once

#include <new>

#include "decode-job.h"
#include "state.h"

namespace attention {

namespace decoding {

/// The rows of one key/value head against one chunk of keys.
class Chunk {
 public:
  Chunk(const Job& job, int32_t item, int32_t worker) : job_(job), call_(job.call) {
    lay_out(call_, job.rows, job.workers + worker * job.worker_bytes, space_);
    b_ = item / job.chunks / call_.Hkv;
    kv_head_ = item / job.chunks % call_.Hkv;
    keys_ = key_tokens(call_, b_, kv_head_);
    values_ = value_tokens(call_, b_, kv_head_);
    first_ = item % job.chunks * job.chunk;
    end_ = std::min(first_ + job.chunk, key_length(call_, b_));
    const ptrdiff_t at = static_cast<ptrdiff_t>(item) * job.kept;
    // Whatever is widened first is walked straight by that. Quantised tokens are few bytes for what they compute: their
    // loops are walk enough.
    if (call_.k_type == Type::kFloat32) key_walk_ = walk(keys_);
    if (call_.out && call_.v_type == Type::kFloat32) value_walk_ = walk(values_);
    part_ = {job.part.max + at, job.part.sum + at, job.part.values + at * padded(call_.Dv)};
  }

  void run() {
    for (int32_t r = 0; r < job_.rows; r += kBlockRows) start_block(r);
    const int32_t step = tile_keys(call_);
    for (int32_t key = first_; key < end_; key += step) {
      for (int32_t r = 0; r < job_.rows; r += kBlockRows) push_block(r, key, std::min(key + step, end_));
    }
  }

 private:
  Block& block(int32_t r) const { return space_.blocks[r / kBlockRows]; }
  float* queries(int32_t r) const { return space_.queries + static_cast<ptrdiff_t>(r) * padded(call_.D); }
  float* sums(int32_t r) const { return part_.values + static_cast<ptrdiff_t>(r) * padded(call_.Dv); }

  ATTENTION_SMALL void start_block(int32_t r) {
    int32_t heads[kBlockRows], rows[kBlockRows];
    const int32_t count = std::min(kBlockRows, job_.rows - r);
    for (int32_t lane = 0; lane < kBlockRows; ++lane) {
      const int32_t row = lane < count ? r + lane : r;
      heads[lane] = job_.head(kv_head_, row);
      rows[lane] = job_.row(row);
    }
    const Loops& loops = count == 1 ? kLoops<1> : count == 2 ? kLoops<2> : kLoops<4>;
    const bool whole = whole_products(keys_);
    const ptrdiff_t before = static_cast<ptrdiff_t>(r) * whole_width(call_.D);
    Block& started = *new (&block(r)) Block{
        {call_, b_, heads, rows},
        loops,
        false,
        whole,
        keys_.type == Type::kInt8 ? loops.score_tokens : loops.score_blocks,
        count == 1 && values_.type == Type::kInt8 ? add_numbers<1, Evens::kOffset> : loops.add_numbers,
        {space_.whole_queries.numbers + before, space_.whole_queries.starts + 4 * r},
        {0, 0, 0, 0}};
    started.plain = started.rows.sees_all(first_, end_ - first_) && started.rows.leaves_logits(Coverage::kAll);
    const ptrdiff_t rows_of_block = loops.rows;
    std::fill(queries(r), queries(r) + rows_of_block * padded(call_.D), 0.0f);
    std::fill(sums(r), sums(r) + rows_of_block * padded(call_.Dv), 0.0f);
    if (whole) {
      std::fill_n(started.queries.numbers, rows_of_block * whole_width(call_.D), static_cast<int16_t>(0));
      std::fill_n(started.queries.starts, rows_of_block * 4, 0);
    }
    for (int32_t lane = 0; lane < loops.rows; ++lane) start_row(r, lane, lane < count);
  }

  ATTENTION_SMALL void start_row(int32_t r, int32_t lane, bool exists) {
    part_.max[r + lane] = -FLT_MAX;
    part_.sum[r + lane] = 0;
    if (!exists) return;
    const int32_t h = job_.head(kv_head_, r + lane), i = job_.row(r + lane);
    // Rows of packed sequences past the length don't exist.
    if (!call_.q_start || i < query_length(call_, b_)) load_queries(r, lane, h, i);
    // The sink belongs to the whole row: the first chunk counts it.
    const float sink = call_.sinks && first_ == 0 ? call_.sinks[h] : -INFINITY;
    if (sink == -INFINITY) return;
    part_.max[r + lane] = sink;
    part_.sum[r + lane] = 1;
  }

  void load_queries(int32_t r, int32_t lane, int32_t h, int32_t i) {
    const ptrdiff_t from = query_start(call_, b_, h) + static_cast<ptrdiff_t>(i) * call_.q_token;
    const char* q = static_cast<const char*>(call_.q) + from * static_cast<ptrdiff_t>(size_of(call_.q_type));
    std::fill(space_.row, space_.row + whole_width(call_.D), 0.0f);
    convert(q, call_.q_type, space_.row, Type::kFloat32, call_.D);
    const int32_t rows = block(r).loops.rows;
    for (int32_t c = 0; c < call_.D; c += 4) {
      const v128_t scaled = wasm_f32x4_mul(wasm_v128_load(space_.row + c), wasm_f32x4_splat(call_.scale));
      wasm_v128_store(space_.row + c, scaled);
      wasm_v128_store(queries(r) + at_channel(rows, lane, c), scaled);
    }
    if (!block(r).whole) return;
    const float most = largest_magnitude(space_.row, whole_width(call_.D));
    block(r).whole = most < INFINITY;
    block(r).scales[lane] = most / kLargest16;
    if (block(r).whole) put_whole(space_.row, most, keys_, rows, lane, block(r).queries);
  }

  void push_block(int32_t r, int32_t key, int32_t end) {
    Coverage coverage = Coverage::kAll;
    if (!block(r).plain) {
      RowGroup<1>& rows = block(r).rows;
      key = std::max(key, rows.range().first);
      end = std::min(end, rows.range().end);
      coverage = key < end ? rows.cover(key, end - key, space_.bias) : Coverage::kNone;
      if (coverage == Coverage::kNone) return;
    }
    push_rows(r, coverage, key, end - key);
  }

  ATTENTION_NOINLINE void push_rows(int32_t r, Coverage coverage, int32_t key, int32_t count) {
    const Block& rows = block(r);
    const Loops& loops = rows.loops;
    const bool scored = rows.whole && read_as_bytes(keys_.type) &&
                        rows.score(rows.queries, rows.scales, keys_, key, count, space_.logits);
    if (!scored) weigh(r, key, count);
    if (!rows.plain) finish_logits(r, coverage, key, count);
    float scale[kBlockRows];
    push_logits(loops, r, count, scale);
    if (!call_.out) return;
    if (!read_as_bytes(values_.type)) return sum_values(r, coverage, key, count, scale);
    sum_blocks(r, values_, key, key, count, scale);
  }

  /// The sums over values that are bytes: `tokens` from `first` on are those of the keys.
  ATTENTION_INLINE void sum_blocks(int32_t r, const Tokens& tokens, int32_t first, int32_t key, int32_t count,
                                   const float* scale) {
    const Block& rows = block(r);
    const Loops& loops = rows.loops;
    if (!loops.add_blocks(rows.add, loops.rows, space_.logits, tokens, first, count, scale, sums(r))) {
      add_other_tokens(r, key, count);
    }
  }

  ATTENTION_NOINLINE void finish_logits(int32_t r, Coverage coverage, int32_t key, int32_t count) {
    const Block& rows = block(r);
    if (rows.loops.rows > 1) {
      rows.rows.finish_logits(key, count, coverage, space_.logits);
    } else if (!rows.rows.leaves_logits(coverage)) {
      finish_row_logits(r, coverage, key, count);
    }
  }

  /// Turns logits into weights; `scale` brings older sums to the same footing.
  ATTENTION_NOINLINE void push_logits(const Loops& loops, int32_t r, int32_t count, float scale[kBlockRows]) {
    if (loops.rows == 1) {
      for (int32_t j = count; j % 4 != 0; ++j) space_.logits[j] = -INFINITY;
      RowState state{part_.max[r], part_.sum[r]};
      state.push(space_.logits, count);
      part_.max[r] = state.max;
      part_.sum[r] = state.sum;
      scale[0] = state.scale;
    } else {
      State<1> state;
      state.max[0] = load_lanes(part_.max + r, loops.rows);
      state.sum[0] = load_lanes(part_.sum + r, loops.rows);
      state.push(space_.logits, count);
      store_lanes(part_.max + r, state.max[0], loops.rows);
      store_lanes(part_.sum + r, state.sum[0], loops.rows);
      wasm_v128_store(scale, state.scale[0]);
    }
  }

  /// RowGroup has rows in lanes, of which this is one.
  ATTENTION_SMALL void finish_row_logits(int32_t r, Coverage coverage, int32_t key, int32_t count) {
    for (int32_t j = 0; j < count; ++j) wasm_v128_store(space_.lanes + kBlockRows * j, load_splat(space_.logits + j));
    block(r).rows.finish_logits(key, count, coverage, space_.lanes);
    for (int32_t j = 0; j < count; ++j) space_.logits[j] = space_.lanes[kBlockRows * j];
  }

  /// Through the tokens of the chunk, if they stand in neighbouring rows.
  Walk walk(const Tokens& tokens) const {
    const int32_t count = std::max(end_ - first_, 0);
    if (tokens.run(first_, count) < count) return {};
    const auto unit = static_cast<ptrdiff_t>(size_of(tokens.type));
    const char* first =
        static_cast<const char*>(tokens.data) + (tokens.first + tokens.row(first_) * tokens.stride) * unit;
    return {first, tokens.stride * unit, static_cast<int32_t>(token_bytes(tokens.type, tokens.width))};
  }

  /// Logits of keys that aren't bytes, or of those among which some read as NaN.
  ATTENTION_NOINLINE void weigh(int32_t r, int32_t key, int32_t count) {
    const Block& rows = block(r);
    if (!rows.whole) {
      key_walk_.over(key - first_, count);
      const FloatRows k = token_rows(keys_, key, count, space_.key_tile);
      rows.loops.score(queries(r), k, count, call_.D, space_.logits);
      return;
    }
    if (!read_as_bytes(keys_.type)) {
      const Tokens wide = widen(keys_, key, count, space_.wide_tile);
      if (rows.score(rows.queries, rows.scales, wide, 0, count, space_.logits)) return;
    }
    // Tokens that read as NaN go through float32, but no others: their bits don't depend on what a row doesn't see.
    for (int32_t u = 0; u < count; ++u) {
      if (finite_scales(keys_, keys_.row(key + u))) continue;
      float scores[kScoredLogits];
      rows.loops.score(queries(r), token_rows(keys_, key + u, 1, space_.key_tile), 1, call_.D, scores);
      std::copy(scores, scores + rows.loops.step, space_.logits + rows.loops.step * u);
    }
  }

  /// The sums over values that aren't bytes.
  ATTENTION_NOINLINE void sum_values(int32_t r, Coverage coverage, int32_t key, int32_t count, const float* scale) {
    const Block& rows = block(r);
    const Loops& loops = rows.loops;
    if (values_.type == Type::kQ4_0) {
      return sum_blocks(r, widen(values_, key, count, space_.wide_tile), 0, key, count, scale);
    }
    const FloatRows v = token_rows(values_, key, count, space_.value_tile);
    if (coverage == Coverage::kSome && !all_finite(v.data, v.stride, count, call_.Dv)) {
      loops.add_visible(rows.rows, key, count, space_.logits, v, call_.Dv, scale, sums(r));
    } else {
      value_walk_.over(key - first_, count);
      loops.add(space_.logits, v, count, call_.Dv, scale, sums(r));
    }
  }

  /// Values whose scale isn't finite, which the loops left out.
  ATTENTION_SMALL void add_other_tokens(int32_t r, int32_t key, int32_t count) {
    const Loops& loops = block(r).loops;
    for (int32_t u = 0; u < count; ++u) {
      float visible[kBlockRows];
      wasm_v128_store(visible, wasm_v128_and(block(r).rows.lanes(key, u, 0), wasm_f32x4_const_splat(1)));
      const float* token = token_rows(values_, key + u, 1, space_.value_tile).data;
      add_other_blocks(values_, values_.row(key + u), token, space_.logits + loops.step * u, visible, loops.rows,
                       sums(r));
    }
  }

  const Job& job_;
  const Attention& call_;
  int32_t b_, kv_head_, first_, end_;
  Tokens keys_, values_;
  Walk key_walk_, value_walk_;
  Workspace space_;
  Part part_;
};

}  // namespace decoding

}  // namespace attention
