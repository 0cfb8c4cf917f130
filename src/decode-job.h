// What decode.cpp is given, and what a chunk of it works with: its loops, and its memory.
#pragma once

#include <algorithm>

#include "decode-block-scores.h"
#include "decode-block-sums.h"
#include "decode-rows.h"
#include "layout.h"
#include "row-group.h"
#include "tokens.h"

namespace attention {

// Other kernels have a Job and a Workspace of their own.
namespace decoding {

/// Keys of a chunk: what a worker takes at a time. Each begins anew, so that few are better; but there are to be enough
/// of them for any machine.
inline int32_t chunk_keys(const Attention& call) {
  constexpr int32_t kUnit = 1024, kMost = 8 * kUnit, kEnough = 16;
  const int64_t units = (call.Tk + kUnit - 1) / kUnit;
  const int64_t some = (units * call.B * call.Hkv + kEnough - 1) / kEnough;
  return static_cast<int32_t>(std::clamp<int64_t>(kUnit * some, kUnit, kMost));
}

/// The state of one row and chunk, as it is kept until all chunks are there.
struct Part {
  float *max, *sum, *values;  // [items][rows], [items][rows], [items][blocks], each with its rows as at_channel says
};

struct Job {
  const Attention& call;
  int32_t rows;   // that read one key/value head: G * Tq
  int32_t kept;   // rows with a state: three last ones have an empty fourth beside them
  int32_t chunk;  // keys of one
  int32_t chunks;
  size_t worker_bytes;
  char* workers;
  float* total;  // a row, as its chunks come together
  Part part;

  /// Query head and row of row r of a key/value head.
  int32_t head(int32_t kv, int32_t r) const { return kv * (call.H / call.Hkv) + r / call.Tq; }
  int32_t row(int32_t r) const { return r % call.Tq; }

  /// Rows of the block that begins with row r: three have an empty fourth beside them.
  int32_t block_rows(int32_t r) const { return rows - r >= 3 ? kBlockRows : rows - r; }
};

struct Loops;
using ScoreWhole = decltype(score_tokens<1>);
using AddWhole = decltype(add_blocks<true>);

/// Rows of one block, prepared.
struct Block {
  RowGroup<1> rows;
  const Loops& loops;
  bool plain;  // all keys of the chunk are seen, and their logits are final as they are
  bool whole;  // its queries are kept as whole numbers too
  ScoreWhole* score;
  AddNumbers* add;
  WholeQueries queries;
  float scales[kBlockRows];  // of the queries
};

/// Working memory of one chunk.
struct Workspace {
  Block* blocks;
  float *queries, *row, *logits, *lanes, *bias, *key_tile, *value_tile;
  WholeQueries whole_queries;  // those of all blocks
  uint8_t* wide_tile;          // of kQ4_0 tokens
};

/// The loops for blocks of N rows; three rows have a fourth of zeros beside them.
struct Loops {
  int32_t rows, step;  // step: from key to key in the logits
  decltype(&score_tile<1>) score;
  ScoreWhole *score_tokens, *score_blocks;
  decltype(&add_values<1>) add;
  decltype(&add_visible_values<1>) add_visible;
  AddNumbers* add_numbers;
  AddWhole* add_blocks;
};

template <int32_t N>
constexpr Loops kLoops = {N,
                          kLogits<N>,
                          score_tile<N>,
                          attention::score_tokens<N>,
                          attention::score_blocks<N>,
                          add_values<N>,
                          add_visible_values<N>,
                          attention::add_numbers<N, N == 1 ? Evens::kSigned : Evens::kEither>,
                          attention::add_blocks<N == 1>};

/// Keys of a tile: a page of 4 KB where that is a number within reason.
inline int32_t tile_keys(const Attention& call) {
  if (is_quantized(call.k_type)) return kBlockKeys;
  return std::clamp(1024 / call.D / kFloatKeys * kFloatKeys, kFloatKeys, kBlockKeys);
}

ATTENTION_SMALL inline size_t lay_out(const Attention& call, int32_t rows, void* base, Workspace& space) {
  Scratch scratch(base);
  const size_t blocks = (rows + kBlockRows - 1) / kBlockRows, keys = tile_keys(call);
  space.blocks = scratch.array<Block>(blocks);
  space.queries = scratch.floats(blocks * kBlockRows * padded(call.D));
  space.row = scratch.floats(whole_width(call.D));
  space.logits = scratch.floats(kBlockRows * keys + kBlockRows * kScored<1>);
  space.lanes = scratch.floats(kBlockRows * keys);
  space.bias = scratch.floats(kBlockRows * keys);
  space.key_tile = scratch.floats(needs_buffer(call.k_type, call.ring_size) ? keys * call.D : 0);
  space.value_tile = scratch.floats(needs_buffer(call.v_type, call.ring_size) ? keys * call.Dv : 0);
  const size_t of_rows = is_quantized(call.k_type) ? blocks * kBlockRows * whole_width(call.D) : 0;
  space.whole_queries = {scratch.array<int16_t>(of_rows), scratch.array<int32_t>(blocks * kBlockRows * 4)};
  const bool narrow = call.k_type == Type::kQ4_0 || call.v_type == Type::kQ4_0;
  space.wide_tile = scratch.array<uint8_t>(narrow ? keys * widened_bytes(std::max(call.D, call.Dv)) : 0);
  return scratch.used();
}

}  // namespace decoding

}  // namespace attention
