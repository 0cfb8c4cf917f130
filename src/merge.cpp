// Attention over disjoint sets of keys, joined.
//
//   m = max_k L_k;  w_k = e^(L_k - m);  out = sum_k w_k out_k / W;  L = m + ln W;  W = sum_k w_k (+ e^(sink - m))
//
// Shapes: outs [parts, B, H, Tq, Dv], lses [parts, B, H, Tq]. Cost: 2 flops and one read a value of each part.
#include <algorithm>
#include <cmath>

#include "attention.h"
#include "parallel.h"
#include "simd.h"

namespace attention {

namespace {

constexpr int32_t kRowsAtOnce = 64;

void add_scaled(const float* from, float weight, int32_t count, float* to) {
  const v128_t factor = wasm_f32x4_splat(weight);
  for (int32_t c = 0; c < count; c += 4) {
    const v128_t sum = madd(factor, load_lanes(from + c, count - c), load_lanes(to + c, count - c));
    store_lanes(to + c, sum, count - c);
  }
}

void merge_row(const Merge& call, size_t rows, size_t row) {
  const float sink = call.sinks ? call.sinks[row / call.Tq % call.H] : -INFINITY;
  float max = sink;
  for (int32_t part = 0; part < call.parts; ++part) max = std::max(max, call.lses[part * rows + row]);
  float* out = call.out + row * call.Dv;
  std::fill(out, out + call.Dv, 0.0f);
  call.lse[row] = max;
  if (max == -INFINITY) return;
  float total = std::exp(sink - max);
  for (int32_t part = 0; part < call.parts; ++part) {
    const float lse = call.lses[part * rows + row];
    if (lse == -INFINITY) continue;  // an empty part: whatever its output holds is not looked at
    const float weight = std::exp(lse - max);
    total += weight;
    add_scaled(call.outs + (part * rows + row) * call.Dv, weight, call.Dv, out);
  }
  const float norm = 1 / total;
  for (int32_t c = 0; c < call.Dv; ++c) out[c] *= norm;
  call.lse[row] = max + std::log(total);
}

void run_item(const void* context, int32_t item, int32_t) {
  const Merge& call = *static_cast<const Merge*>(context);
  const size_t rows = static_cast<size_t>(call.B) * call.H * call.Tq, first = static_cast<size_t>(item) * kRowsAtOnce;
  for (size_t row = first; row < std::min(rows, first + kRowsAtOnce); ++row) merge_row(call, rows, row);
}

}  // namespace

void merge(const Merge& call) {
  const size_t rows = static_cast<size_t>(call.B) * call.H * call.Tq;
  const double work = static_cast<double>(rows) * call.parts * call.Dv;
  parallel_for(static_cast<int32_t>((rows + kRowsAtOnce - 1) / kRowsAtOnce), work, &call, run_item);
}

}  // namespace attention
