// What attention.h says about a call, written a second time and in the plainest way.
#include "call.h"

#include <cstdio>
#include <limits>

namespace host {

using attention::Attention;

bool sees(const Attention& call, int32_t b, int32_t h, int32_t i, int32_t j) {
  const int64_t p = static_cast<int64_t>(i) + (call.offset ? call.offset[b] : 0);
  if (i >= (call.q_length ? call.q_length[b] : call.Tq)) return false;
  if (j >= (call.k_length ? call.k_length[b] : call.Tk)) return false;
  if (call.left >= 0 && p - call.left > j && j >= call.prefix) return false;
  if (call.right >= 0 && j > p + call.right) return false;
  if (call.mask_kind == attention::MaskKind::kNone) return true;
  const ptrdiff_t cell = static_cast<ptrdiff_t>(b) * call.mask_batch + static_cast<ptrdiff_t>(h) * call.mask_head +
                         static_cast<ptrdiff_t>(i) * call.mask_row + static_cast<ptrdiff_t>(j) * call.mask_key;
  if (call.mask_kind == attention::MaskKind::kBoolean) return static_cast<const uint8_t*>(call.mask)[cell] != 0;
  return static_cast<const float*>(call.mask)[cell] != -std::numeric_limits<float>::infinity();
}

int32_t rows_of(const Attention& call, int32_t b) { return call.q_start ? call.q_length[b] : call.Tq; }

int32_t keys_read(const Attention& call, int32_t b) {
  const bool all = call.weights && call.weights_stage < attention::Stage::kMasked && !call.k_start;
  return all || !call.k_length ? call.Tk : call.k_length[b];
}

void print(const Call& call) {
  const Attention& a = call.args;
  std::printf("  B %d H %d Hkv %d Tq %d Tk %d D %d Dv %d; types %d %d %d -> %d\n", a.B, a.H, a.Hkv, a.Tq, a.Tk, a.D,
              a.Dv, int(a.q_type), int(a.k_type), int(a.v_type), int(a.out_type));
  std::printf("  window [%d, %d] prefix %d ring %d + %d; scale %g softcap %g precision %d; mask %d [%d, %d, %d, %d]\n",
              a.left, a.right, a.prefix, a.ring_first, a.ring_size, double(a.scale), double(a.softcap),
              int(a.precision), int(a.mask_kind), a.mask_batch, a.mask_head, a.mask_row, a.mask_key);
  std::printf("  alibi %d sinks %d starts %d %d; weights %d: stage %d mean %d\n", a.alibi != nullptr,
              a.sinks != nullptr, a.q_start != nullptr, a.k_start != nullptr, a.weights != nullptr,
              int(a.weights_stage), a.weights_mean);
  for (int32_t b = 0; b < a.B; ++b) {
    std::printf("  item %d: offset %d lengths %d %d\n", b, a.offset ? a.offset[b] : 0,
                a.q_length ? a.q_length[b] : a.Tq, a.k_length ? a.k_length[b] : a.Tk);
  }
}

}  // namespace host
