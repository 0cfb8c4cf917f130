// Few query rows against many keys: decoding, and short chunks of it.
//
//   x = <q, k>;  P = e^(X - m);  O = r O + P V, as in prefill.cpp, but with channels in lanes: a row of queries is too
//   little to fill lanes with, and keys and values are read as they lie, four channels a load.
//
// Shapes: the G * Tq rows that read one key/value head, in blocks of up to four; keys in chunks of 1024 to 8192, each
// with a state of its own that is merged at the end. Cost: each key and value is read from memory once for all the
// heads of its group, 2 (D + Dv) flops a row. Never stored: more than a tile of logits; the states of the chunks are
// [B, H, Tq, Dv + 2] times the number of chunks. Chunks are cut at fixed keys, so the result doesn't depend on who
// computes them. Source of the split: Dao et al., "Flash-Decoding" (2023).
#include "decode-chunk.h"
#include "parallel.h"

namespace attention {

namespace {

using namespace decoding;

void run_chunk(const void* context, int32_t item, int32_t worker) {
  Chunk(*static_cast<const Job*>(context), item, worker).run();
}

/// Merges the chunks of one row, in order, and writes its output.
void finish_row(const Job& job, int32_t head, int32_t r) {
  const Attention& call = job.call;
  const int32_t b = head / call.Hkv, h = job.head(head % call.Hkv, r), i = job.row(r);
  if (call.q_start && i >= query_length(call, b)) return;
  const auto index = [&](int32_t chunk) { return (static_cast<ptrdiff_t>(head) * job.chunks + chunk) * job.kept + r; };
  float max = -FLT_MAX, sum = 0;
  for (int32_t chunk = 0; chunk < job.chunks; ++chunk) max = std::max(max, job.part.max[index(chunk)]);
  std::fill(job.total, job.total + call.Dv, 0.0f);
  const int32_t lane = r % kBlockRows, rows = job.block_rows(r - lane);
  for (int32_t chunk = 0; chunk < job.chunks; ++chunk) {
    const float weight = std::exp(job.part.max[index(chunk)] - max);
    sum += weight * job.part.sum[index(chunk)];
    const float* values = job.part.values + (index(chunk) - lane) * padded(call.Dv);
    for (int32_t c = 0; c < call.Dv; ++c) job.total[c] += weight * values[at_channel(rows, lane, c)];
  }
  if (call.out) {
    const float norm = sum == 0 ? 0 : 1 / sum;
    for (int32_t c = 0; c < call.Dv; ++c) job.total[c] *= norm;
    const ptrdiff_t out = out_start(call, b, h) + static_cast<ptrdiff_t>(i) * call.out_token;
    convert(job.total, Type::kFloat32,
            static_cast<char*>(call.out) + out * static_cast<ptrdiff_t>(size_of(call.out_type)), call.out_type,
            call.Dv);
  }
  if (call.lse) call.lse[lse_start(call, b, h) + i] = log_sum_exp(max, sum);
}

Job make_job(const Attention& call) {
  const int32_t rows = call.H / call.Hkv * call.Tq;
  Job job{call, rows, rows % kBlockRows == 3 ? rows + 1 : rows, chunk_keys(call), 0, 0, nullptr, nullptr, {}};
  job.chunks = std::max(1, (call.Tk + job.chunk - 1) / job.chunk);
  Workspace space;
  job.worker_bytes = lay_out(call, job.rows, nullptr, space);
  return job;
}

size_t lay_out_parts(const Attention& call, Job& job, void* base) {
  Scratch scratch(base);
  const size_t rows = static_cast<size_t>(call.B) * call.Hkv * job.chunks * job.kept;
  job.part = {scratch.floats(rows), scratch.floats(rows), scratch.floats(rows * padded(call.Dv))};
  job.total = scratch.floats(call.Dv);
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
