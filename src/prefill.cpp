// Tiled attention: 32 query rows against tiles of 64 keys, with the running softmax.
//
//   for each tile of keys:  X = Q K^T (scaled, finished, masked);  P = e^(X - m);  O = r O + P V;  at the end O / l
//
// Shapes: q [32, D], k [64, D], v [64, Dv] a step; queries, logits and outputs stand in lanes, eight rows to a group.
// Cost: 2 (D + Dv) flops and about 17 operations for e^x a visible cell; each key and value is read from memory once
// for 32 rows. Never stored: anything of the size Tq * Tk; the logits of a step are 4 x 64 x 8 floats.
// Source of the scheme: Dao et al., "FlashAttention" (2022).
#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "layout.h"
#include "parallel.h"
#include "prefill-bytes.h"
#include "row-group.h"
#include "state.h"
#include "tile.h"
#include "tokens.h"

namespace attention {

namespace {

constexpr int32_t kGroups = 4;
constexpr int32_t kTileRows = kGroups * kLanes;

struct Group {
  RowGroup<2> rows;
  State<2> state;
  Coverage coverage = Coverage::kNone;
  int32_t key = 0, count = 0;  // its part of the current tile
  int32_t valid = 0;           // rows that exist
  float *queries, *sums, *logits, *bias;
  ByteQueries bytes;
};

/// Keys of the whole call in bytes, [B, Hkv, Tk, ...], for Precision::kInt8.
struct ByteKeys {
  uint8_t* numbers;
  float* scales;
};

struct Workspace {
  Group groups[kGroups];
  float *row_buffer, *key_tile, *value_tile;
};

int32_t padded(int32_t channels) { return (channels + 3) / 4 * 4; }
bool in_bytes(const Attention& call) { return kHasDotOfBytes && call.precision == Precision::kInt8; }

ATTENTION_SMALL size_t lay_out(const Attention& call, void* base, Workspace& space) {
  Scratch scratch(base);
  for (Group& group : space.groups) {
    group.queries = scratch.floats(static_cast<size_t>(kLanes) * call.D);
    group.sums = scratch.floats(static_cast<size_t>(kLanes) * padded(call.Dv));
    group.logits = scratch.floats(kLanes * kTileKeys);
    group.bytes.numbers =
        scratch.array<int8_t>(in_bytes(call) ? static_cast<size_t>(kLanes) * byte_steps(call.D) * kByteChannels : 0);
    group.bias = scratch.floats(call.mask_kind == MaskKind::kNone ? 0 : kLanes * kTileKeys);
  }
  space.row_buffer = scratch.floats(static_cast<size_t>(kLanes) * std::max(call.D, call.Dv));
  space.key_tile =
      scratch.floats(needs_buffer(call.k_type, call.ring_size) ? static_cast<size_t>(kTileKeys) * call.D : 0);
  space.value_tile =
      scratch.floats(needs_buffer(call.v_type, call.ring_size) ? static_cast<size_t>(kTileKeys) * call.Dv : 0);
  return scratch.used();
}

/// sums[c][8] = scale * sums[c][8] + sum over keys of weights[key][8] * values[key][c].
ATTENTION_NOINLINE void add_values(const Group& group, const float* values, ptrdiff_t stride, int32_t channels) {
  const v128_t scale_low = group.state.scale[0], scale_high = group.state.scale[1];
  for (int32_t c = 0; c < channels; c += 4) {
    // The last block may repeat its last channel; sums has room for it.
    const int32_t last = std::min(3, channels - 1 - c);
    const ptrdiff_t o1 = std::min(1, last), o2 = std::min(2, last), o3 = last;
    Tile tile = Tile::zero();
    const float *p = group.logits, *v = values + c;
    if (last == 3) {
      for (int32_t j = 0; j < group.count; ++j, p += kLanes, v += stride) {
        tile.add(wasm_v128_load(p), wasm_v128_load(p + 4), v, v + 1, v + 2, v + 3);
      }
    } else {
      for (int32_t j = 0; j < group.count; ++j, p += kLanes, v += stride) {
        tile.add(wasm_v128_load(p), wasm_v128_load(p + 4), v, v + o1, v + o2, v + o3);
      }
    }
    float* sums = group.sums + kLanes * c;
    for (int32_t u = 0; u < 4; ++u, sums += kLanes) {
      wasm_v128_store(sums, madd(wasm_v128_load(sums), scale_low, tile.low[u]));
      wasm_v128_store(sums + 4, madd(wasm_v128_load(sums + 4), scale_high, tile.high[u]));
    }
  }
}

/// The same where a value that some row must not see is infinite or NaN: 0 * NaN would leak it.
ATTENTION_SMALL void add_visible_values(const Group& group, const float* values, ptrdiff_t stride, int32_t channels) {
  for (int32_t half = 0; half < kLanes; half += 4) {
    const v128_t scale = group.state.scale[half / 4];
    for (int32_t c = 0; c < channels; ++c) {
      v128_t sum = wasm_f32x4_const_splat(0);
      for (int32_t j = 0; j < group.count; ++j) {
        const v128_t weight = wasm_v128_load(group.logits + kLanes * j + half);
        const v128_t visible = group.rows.lanes(group.key, j, half / 4);
        const v128_t sum_with = madd(weight, load_splat(values + j * stride + c), sum);
        sum = select(visible, sum_with, sum);
      }
      float* at = group.sums + kLanes * c + half;
      wasm_v128_store(at, madd(wasm_v128_load(at), scale, sum));
    }
  }
}

/// Number of the first token of a key/value head among ByteKeys.
ptrdiff_t byte_token(const Attention& call, int32_t b, int32_t head) {
  return (static_cast<ptrdiff_t>(b) * call.Hkv + head) * call.Tk;
}

/// Rows i..i+rows-1 of one item and head.
class Block {
 public:
  Block(const Attention& call, const ByteKeys& bytes, int32_t b, int32_t h, int32_t i, int32_t rows, void* scratch)
      : call_(call),
        bytes_(bytes),
        b_(b),
        h_(h),
        i_(i),
        keys_(key_tokens(call, b, kv_head(call, h))),
        values_(value_tokens(call, b, kv_head(call, h))) {
    lay_out(call, scratch, space_);
    for (int32_t g = 0; g < kGroups; ++g)
      start_group(space_.groups[g], i + kLanes * g, std::clamp(rows - kLanes * g, 0, kLanes));
  }

  void run() {
    KeyRange range{INT32_MAX, 0};
    for (const Group& group : space_.groups) {
      if (group.valid == 0 || group.rows.range().empty()) continue;
      range = {std::min(range.first, group.rows.range().first), std::max(range.end, group.rows.range().end)};
    }
    // Tiles begin at multiples of 64, whichever rows look at them: the order of sums depends on the key alone.
    for (int32_t key = range.first / kTileKeys * kTileKeys; key < range.end; key += kTileKeys) {
      step(std::max(key, range.first), std::min(key + kTileKeys, range.end));
    }
    for (int32_t g = 0; g < kGroups; ++g) finish_group(space_.groups[g], i_ + kLanes * g);
  }

 private:
  ATTENTION_SMALL void start_group(Group& group, int32_t i, int32_t valid) {
    group.valid = valid;
    if (valid == 0) return;
    int32_t rows[kLanes], heads[kLanes];
    for (int32_t lane = 0; lane < kLanes; ++lane) {
      rows[lane] = i + std::min(lane, valid - 1);
      heads[lane] = h_;
    }
    group.rows = RowGroup<2>(call_, b_, heads, rows);
    float sinks[kLanes];
    group.rows.sinks(sinks);
    group.state = State<2>(sinks);
    const FloatRows q =
        float_rows(call_.q, call_.q_type, query_start(call_, b_, h_) + static_cast<ptrdiff_t>(i) * call_.q_token,
                   call_.q_token, valid, call_.D, space_.row_buffer);
    const float* lanes[kLanes];
    for (int32_t lane = 0; lane < kLanes; ++lane) lanes[lane] = q.data + std::min(lane, valid - 1) * q.stride;
    if (in_bytes(call_)) {
      group.bytes.set(lanes, call_.D, call_.scale);
    } else {
      queries_to_lanes(call_, lanes, valid, space_.row_buffer, group.queries);
    }
    std::memset(group.sums, 0, sizeof(float) * kLanes * padded(call_.Dv));
  }

  void step(int32_t key, int32_t end) {
    bool any = false, some = false;
    for (Group& group : space_.groups) {
      const KeyRange range = group.rows.range();
      group.key = std::max(key, range.first);
      group.count = group.valid == 0 ? 0 : std::max(0, std::min(end, range.end) - group.key);
      if (group.count == 0) continue;
      group.coverage = group.rows.cover(group.key, group.count, group.bias);
      if (group.coverage == Coverage::kNone) group.count = 0;
      any |= group.count > 0;
      some |= group.count > 0 && group.coverage == Coverage::kSome;
    }
    if (!any) return;
    weigh_keys(key, end);
    if (call_.out) sum_values(key, end, some);
  }

  void weigh_keys(int32_t key, int32_t end) {
    FloatRows k{nullptr, 0};
    if (!in_bytes(call_)) k = token_rows(keys_, key, end - key, space_.key_tile);
    for (Group& group : space_.groups) {
      if (group.count == 0) continue;
      if (in_bytes(call_)) {
        const ptrdiff_t token = byte_token(call_, b_, kv_head(call_, h_)) + group.key;
        score_bytes(group.bytes, bytes_.numbers + token * byte_steps(call_.D) * kByteChannels, bytes_.scales + token,
                    group.count, call_.D, group.logits);
      } else {
        scores(group.queries, k.data + (group.key - key) * k.stride, k.stride, group.count, call_.D, group.logits);
      }
      group.rows.finish_logits(group.key, group.count, group.coverage, group.logits);
      group.state.push(group.logits, group.count);
    }
  }

  void sum_values(int32_t key, int32_t end, bool some) {
    const FloatRows v = token_rows(values_, key, end - key, space_.value_tile);
    const bool finite = !some || all_finite(v.data, v.stride, end - key, call_.Dv);
    for (const Group& group : space_.groups) {
      if (group.count == 0) continue;
      const float* values = v.data + (group.key - key) * v.stride;
      if (finite || group.coverage == Coverage::kAll) {
        add_values(group, values, v.stride, call_.Dv);
      } else {
        add_visible_values(group, values, v.stride, call_.Dv);
      }
    }
  }

  ATTENTION_SMALL void finish_group(const Group& group, int32_t i) {
    if (group.valid == 0) return;
    if (call_.out) {
      const ptrdiff_t out = out_start(call_, b_, h_) + static_cast<ptrdiff_t>(i) * call_.out_token;
      const bool direct = call_.out_type == Type::kFloat32;
      float* rows = direct ? static_cast<float*>(call_.out) + out : space_.row_buffer;
      const ptrdiff_t stride = direct ? call_.out_token : call_.Dv;
      lanes_to_rows(group.sums, group.state.norm(0), group.state.norm(1), group.valid, call_.Dv, rows, stride);
      for (int32_t lane = 0; !direct && lane < group.valid; ++lane) {
        uint16_t* to = static_cast<uint16_t*>(call_.out) + out + static_cast<ptrdiff_t>(lane) * call_.out_token;
        convert(rows + lane * stride, Type::kFloat32, to, call_.out_type, call_.Dv);
      }
    }
    if (call_.lse) {
      float max[kLanes], sum[kLanes];
      for (int32_t n = 0; n < 2; ++n) {
        wasm_v128_store(max + 4 * n, group.state.max[n]);
        wasm_v128_store(sum + 4 * n, group.state.sum[n]);
      }
      float* lse = call_.lse + lse_start(call_, b_, h_) + i;
      for (int32_t lane = 0; lane < group.valid; ++lane) lse[lane] = log_sum_exp(max[lane], sum[lane]);
    }
  }

  const Attention& call_;
  const ByteKeys& bytes_;
  int32_t b_, h_, i_;
  Tokens keys_, values_;
  Workspace space_;
};

struct Job {
  const Attention& call;
  ByteKeys bytes;
  char* workers;
  int32_t blocks;  // of rows, a head
  size_t worker_bytes;
};

void run_item(const void* context, int32_t item, int32_t worker) {
  const Job& job = *static_cast<const Job*>(context);
  const Attention& call = job.call;
  const int32_t b = item / (call.H * job.blocks), h = item / job.blocks % call.H, i = item % job.blocks * kTileRows;
  // Rows past the query length see nothing, but are written like the others, unless they don't exist.
  const int32_t rows = std::min(kTileRows, (call.q_start ? query_length(call, b) : call.Tq) - i);
  if (rows > 0) Block(call, job.bytes, b, h, i, rows, job.workers + worker * job.worker_bytes).run();
}

constexpr int32_t kKeysAtOnce = 256;

/// Some keys of one key/value head into bytes.
void run_keys(const void* context, int32_t item, int32_t worker) {
  const Job& job = *static_cast<const Job*>(context);
  const Attention& call = job.call;
  const int32_t pieces = (call.Tk + kKeysAtOnce - 1) / kKeysAtOnce;
  const int32_t b = item / pieces / call.Hkv, head = item / pieces % call.Hkv, first = item % pieces * kKeysAtOnce;
  Workspace space;
  lay_out(call, job.workers + worker * job.worker_bytes, space);
  const Tokens keys = key_tokens(call, b, head);
  const int32_t end = std::min(first + kKeysAtOnce, key_length(call, b));
  for (int32_t key = first; key < end; key += kTileKeys) {
    const int32_t count = std::min(kTileKeys, end - key);
    const ptrdiff_t token = byte_token(call, b, head) + key;
    keys_to_bytes(token_rows(keys, key, count, space.key_tile), count, call.D,
                  job.bytes.numbers + token * byte_steps(call.D) * kByteChannels, job.bytes.scales + token);
  }
}

/// The job's memory; returns its bytes.
size_t lay_out_job(const Attention& call, void* base, Job& job) {
  Scratch scratch(base);
  const size_t tokens = in_bytes(call) ? static_cast<size_t>(call.B) * call.Hkv * call.Tk : 0;
  job.bytes.numbers = scratch.array<uint8_t>(tokens * byte_steps(call.D) * kByteChannels);
  job.bytes.scales = scratch.floats(tokens);
  job.workers = scratch.rest();
  Workspace space;
  job.worker_bytes = lay_out(call, nullptr, space);
  return scratch.used() + job.worker_bytes * threads();
}

}  // namespace

size_t prefill_scratch(const Attention& call) {
  Job job{call, {}, nullptr, 0, 0};
  return lay_out_job(call, nullptr, job);
}

void prefill(const Attention& call) {
  Job job{call, {}, nullptr, (call.Tq + kTileRows - 1) / kTileRows, 0};
  lay_out_job(call, call.scratch, job);
  const double work = static_cast<double>(call.B) * call.H * call.Tq * call.Tk * (call.D + call.Dv);
  if (in_bytes(call)) {
    const int32_t pieces = (call.Tk + kKeysAtOnce - 1) / kKeysAtOnce;
    parallel_for(call.B * call.Hkv * pieces, work / call.Tq, &job, run_keys);
  }
  parallel_for(call.B * call.H * job.blocks, work, &job, run_item);
}

}  // namespace attention
