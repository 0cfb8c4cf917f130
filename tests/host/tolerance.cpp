#include "tolerance.h"

#include <algorithm>
#include <cmath>

#include "half.h"
#include "layout.h"
#include "quantize.h"

namespace host {

namespace {

using attention::Attention;

constexpr double kUnit = 0x1p-24;  // relative error of one float32 operation

/// The largest of the rows of a tensor: their Euclidean norm, the sum of magnitudes, and the greatest magnitude.
struct Rows {
  double norm = 0, sum = 0, most = 0;

  template <typename Value>
  void add(int32_t width, Value value) {
    double square = 0, total = 0;
    for (int32_t c = 0; c < width; ++c) {
      const double x = std::fabs(value(c));
      square += x * x, total += x, most = std::max(most, x);
    }
    norm = std::max(norm, std::sqrt(square)), sum = std::max(sum, total);
  }
};

Rows query_rows(const Attention& call) {
  Rows rows;
  for (int32_t b = 0; b < call.B; ++b) {
    for (int32_t h = 0; h < call.H; ++h) {
      for (int32_t i = 0; i < rows_of(call, b); ++i) {
        const ptrdiff_t row = attention::query_start(call, b, h) + static_cast<ptrdiff_t>(i) * call.q_token;
        rows.add(call.D, [&](int32_t c) { return attention::load_value(call.q, call.q_type, row + c); });
      }
    }
  }
  return rows;
}

Rows token_rows(const Attention& call, attention::Tokens (*tokens_of)(const Attention&, int32_t, int32_t)) {
  Rows rows;
  for (int32_t b = 0; b < call.B; ++b) {
    for (int32_t h = 0; h < call.Hkv; ++h) {
      const attention::Tokens tokens = tokens_of(call, b, h);
      for (int32_t j = 0; j < keys_read(call, b); ++j) {
        rows.add(tokens.width, [&](int32_t c) { return attention::token_value(tokens, tokens.row(j), c); });
      }
    }
  }
  return rows;
}

/// The greatest magnitude of what is added to a logit.
double bias_size(const Call& call) {
  const Attention& a = call.args;
  double mask = 0, slope = 0, farthest = 0;
  if (a.mask_kind == attention::MaskKind::kAdditive) {
    // The lowest number is left out: nothing else counts beside it.
    for (size_t i = 0; i < call.mask.count<float>(); ++i) {
      const double x = std::fabs(call.mask.as<float>()[i]);
      if (x < 1e30) mask = std::max(mask, x);
    }
  }
  for (int32_t h = 0; a.alibi && h < a.H; ++h) slope = std::max(slope, std::fabs(double(a.alibi[h])));
  for (int32_t b = 0; b < a.B; ++b) {
    const double first = a.offset ? a.offset[b] : 0;
    farthest = std::max({farthest, std::fabs(first - a.Tk), std::fabs(first + a.Tq + (a.gap ? a.gap[b] : 0))});
  }
  return mask + slope * farthest;
}

}  // namespace

Tolerance::Tolerance(const Call& call) : is_logit_(call.args.weights_stage != attention::Stage::kWeights) {
  const Attention& a = call.args;
  const Rows q = query_rows(a), k = token_rows(a, attention::key_tokens), v = token_rows(a, attention::value_tokens);
  const double scale = std::fabs(double(a.scale)), score = scale * q.norm * k.norm;
  logit_ = 2 * kUnit * (score * (a.D + 8) + 4 * bias_size(call) + 4 * a.softcap);
  if (attention::is_quantized(a.k_type)) logit_ += scale * q.most * k.sum / 65534;
  // Half a step of 1 / 63 of the largest channel on either side.
  if (a.precision == attention::Precision::kInt8) bytes_ = scale * (q.most * k.sum + k.most * q.sum) / 126 * 1.02;
  sum_ = 2 * kUnit * (8 + 4 * std::sqrt(double(a.Tk)));
  largest_ = v.most;
  if (attention::is_quantized(a.v_type)) rounding_ = 32.0 / 65534;
}

double Tolerance::lse() const { return logit_ + bytes_ + sum_; }

double Tolerance::weights() const { return is_logit_ ? logit_ : std::expm1(2 * logit_) + sum_; }

double Tolerance::out() const { return largest_ * (std::expm1(2 * (logit_ + bytes_)) + 2 * sum_ + rounding_); }

}  // namespace host
