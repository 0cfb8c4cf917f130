#include <cmath>
#include <limits>

#include "call.h"
#include "half.h"
#include "layout.h"
#include "quantize.h"

namespace host {

namespace {

using attention::Attention;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// What is added to a logit of the straight call, in the words of attention.h: -inf, or slope and mask together.
float bias(const Attention& a, int32_t b, int32_t h, int32_t i, int32_t j) {
  if (!sees(a, b, h, i, j)) return -kInfinity;
  double sum = 0;
  if (a.alibi) {
    const double position = i + (a.offset ? a.offset[b] : 0.0), gap = a.gap && j < a.prefix ? a.gap[b] : 0;
    sum -= double(a.alibi[h]) * std::fabs(position + gap - j);
  }
  if (a.mask_kind == attention::MaskKind::kAdditive) {
    sum += static_cast<const float*>(
        a.mask)[ptrdiff_t(b) * a.mask_batch + h * a.mask_head + ptrdiff_t(i) * a.mask_row + ptrdiff_t(j) * a.mask_key];
  }
  return static_cast<float>(sum);
}

Block floats(size_t count) { return Block(count * sizeof(float)); }

Block straight_queries(const Attention& a) {
  Block block = floats(size_t(a.B) * a.H * a.Tq * a.D);
  float* to = block.as<float>();
  for (int32_t b = 0; b < a.B; ++b) {
    for (int32_t h = 0; h < a.H; ++h) {
      for (int32_t i = 0; i < a.Tq; ++i, to += a.D) {
        if (i >= rows_of(a, b)) continue;
        const ptrdiff_t item = a.q_start ? ptrdiff_t(a.q_start[b]) * a.q_token : ptrdiff_t(b) * a.q_batch;
        const ptrdiff_t row = item + ptrdiff_t(h) * a.q_head + ptrdiff_t(i) * a.q_token;
        for (int32_t c = 0; c < a.D; ++c) to[c] = attention::load_value(a.q, a.q_type, row + c);
      }
    }
  }
  return block;
}

Block straight_tokens(const Attention& a, bool keys) {
  const int32_t width = keys ? a.D : a.Dv;
  Block block = floats(size_t(a.B) * a.Hkv * a.Tk * width);
  float* to = block.as<float>();
  for (int32_t b = 0; b < a.B; ++b) {
    for (int32_t head = 0; head < a.Hkv; ++head) {
      const attention::Tokens tokens = keys ? attention::key_tokens(a, b, head) : attention::value_tokens(a, b, head);
      for (int32_t j = 0; j < a.Tk; ++j, to += width) {
        if (j >= (a.k_length ? a.k_length[b] : a.Tk)) continue;
        const bool round = a.ring_size > 0 && j >= a.ring_first;
        const int32_t row = round ? a.ring_first + (a.ring_start[b] + j - a.ring_first) % a.ring_size : j;
        for (int32_t c = 0; c < width; ++c) to[c] = attention::token_value(tokens, row, c);
      }
    }
  }
  return block;
}

}  // namespace

Call straighten(const Call& call) {
  const Attention& a = call.args;
  Call result;
  Attention& s = result.args;
  s.B = a.B, s.H = a.H, s.Hkv = a.Hkv, s.Tq = a.Tq, s.Tk = a.Tk, s.D = a.D, s.Dv = a.Dv;
  result.q = straight_queries(a), result.k = straight_tokens(a, true), result.v = straight_tokens(a, false);
  s.q = result.q.data(), s.k = result.k.data(), s.v = result.v.data();
  s.q_token = a.D, s.q_head = a.Tq * a.D, s.q_batch = a.H * a.Tq * a.D;
  s.k_token = a.D, s.k_head = a.Tk * a.D, s.k_batch = a.Hkv * a.Tk * a.D;
  s.v_token = a.Dv, s.v_head = a.Tk * a.Dv, s.v_batch = a.Hkv * a.Tk * a.Dv;
  s.out_token = a.Dv, s.out_head = a.Tq * a.Dv, s.out_batch = a.H * a.Tq * a.Dv;
  s.lse_head = a.Tq, s.lse_batch = a.H * a.Tq;
  s.left = s.right = -1;
  s.scale = a.scale, s.softcap = a.softcap, s.sinks = a.sinks;
  s.out = a.out, s.lse = a.lse, s.weights = a.weights, s.weights_mean = a.weights_mean;
  s.weights_stage = a.weights_stage;
  s.heads = a.heads, s.rows = a.rows, s.num_heads = a.num_heads, s.num_rows = a.num_rows;
  s.mask_kind = attention::MaskKind::kAdditive;
  s.mask_key = 1, s.mask_row = a.Tk, s.mask_head = a.Tq * a.Tk, s.mask_batch = a.H * a.Tq * a.Tk;
  result.mask = floats(size_t(a.B) * a.H * a.Tq * a.Tk);
  s.mask = result.mask.data();
  float* to = result.mask.as<float>();
  for (int32_t b = 0; b < a.B; ++b) {
    for (int32_t h = 0; h < a.H; ++h) {
      for (int32_t i = 0; i < a.Tq; ++i) {
        for (int32_t j = 0; j < a.Tk; ++j) *to++ = bias(a, b, h, i, j);
      }
    }
  }
  result.sizes = {a.out ? size_t(a.B) * a.H * a.Tq * a.Dv : 0, a.lse ? size_t(a.B) * a.H * a.Tq : 0,
                  call.sizes.weights};
  return result;
}

}  // namespace host
