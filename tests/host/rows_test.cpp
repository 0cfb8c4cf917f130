// Norms and activations on random rows, against their formulas in float64, by the bounds that src/norm.cpp states and
// by the rule of accuracy.h.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "accuracy.h"
#include "attention.h"
#include "rounds.h"

namespace {

using host::Accuracy;
using host::Block;
using host::numbers;
using host::size;
using host::Source;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A row, and in `size` the largest of the terms that its values are made of: what errors are relative to.
std::vector<double> norm_row(const attention::Norm& call, const float* x, double& size) {
  std::vector<double> row(x, x + call.width);
  size = 0;
  if (call.kind == attention::NormKind::kSoftmax) {
    double max = -kInfinity, sum = 0;
    for (const double value : row) max = std::fmax(max, value);
    for (double& value : row) sum += value = max == -kInfinity ? 0 : std::exp(value - max);
    for (double& value : row) value = sum == 0 ? 0 : value / sum;
    size = row.empty() ? 0 : *std::max_element(row.begin(), row.end());
    return row;
  }
  double mean = 0, square = 0;
  for (const double value : row) mean += call.kind == attention::NormKind::kLayer ? value / call.width : 0;
  for (const double value : row) square += (value - mean) * (value - mean) / call.width;
  const double factor = 1 / std::sqrt(square + double(call.epsilon));
  for (int32_t c = 0; c < call.width; ++c) {
    const double weight = call.weight ? call.weight[c] : 1, bias = call.bias ? call.bias[c] : 0;
    size =
        std::fmax(size, std::fmax(std::fabs(row[c]), std::fabs(mean)) * factor * std::fabs(weight) + std::fabs(bias));
    row[c] = (row[c] - mean) * factor * weight + bias;
  }
  return row;
}

bool check_norm(Source& source) {
  attention::Norm call{source.pick(0, 5), size(source), attention::NormKind(source.pick(0, 2)), 1e-5f, {}, {}, {}, {}};
  const size_t count = size_t(call.rows) * call.width;
  const Block x = numbers(source, count), weight = numbers(source, call.width), bias = numbers(source, call.width);
  for (size_t i = 0; i < count; ++i) x.as<float>()[i] *= call.kind == attention::NormKind::kSoftmax ? 10 : 1;
  // Softmax takes -inf; a whole row of them gives 0.
  for (size_t i = 0; i < count && call.kind == attention::NormKind::kSoftmax; ++i) {
    if (source.bits() % 4 == 0 || int32_t(i) < call.width) x.as<float>()[i] = -kInfinity;
  }
  if (source.coin()) call.weight = weight.as<float>();
  if (source.coin()) call.bias = bias.as<float>();
  const Block plain(count * 4), fast(count * 4);
  call.x = x.as<float>(), call.out = plain.as<float>();
  attention::plain::norm(call);
  std::memcpy(fast.data(), x.data(), x.bytes());
  call.x = call.out = fast.as<float>();  // in place
  attention::norm(call);
  for (int32_t row = 0; row < call.rows; ++row) {
    Accuracy accuracy;
    const size_t first = size_t(row) * call.width;
    double size = 0, off = 0;
    const std::vector<double> expected = norm_row(call, x.as<float>() + first, size);
    for (int32_t c = 0; c < call.width; ++c) {
      accuracy.add(fast.as<float>()[first + c], plain.as<float>()[first + c], expected[c], 2e-5);
      off = std::max(off, host::distance(fast.as<float>()[first + c], expected[c]));
    }
    if (off > 4e-7 * size) std::printf("norm: off by %g of %g\n", off, size);  // as src/norm.cpp says
    if (off > 4e-7 * size || !accuracy.good("norm")) return false;
  }
  return true;
}

double activate(attention::ActivationKind kind, double x) {
  if (kind == attention::ActivationKind::kSilu) return x / (1 + std::exp(-x));
  if (kind == attention::ActivationKind::kGelu) return x / 2 * std::erfc(-x / std::sqrt(2.0));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

bool check_activation(Source& source) {
  attention::Activation call{size(source), attention::ActivationKind(source.pick(0, 2)), {}, {}, {}};
  if (source.once_in(16)) call.count = 4096 * 2 + size(source);
  const Block x = numbers(source, call.count), gate = numbers(source, call.count);
  const float spread = source.among({1.0f, 4.0f, 40.0f});
  for (int32_t i = 0; i < call.count; ++i) x.as<float>()[i] *= spread;
  const Block plain(size_t(call.count) * 4), fast(size_t(call.count) * 4);
  const bool gated = source.coin();
  call.x = x.as<float>(), call.gate = gated ? gate.as<float>() : nullptr, call.out = plain.as<float>();
  attention::plain::activation(call);
  // The result may stand in the place of either.
  const bool over_gate = gated && source.coin();
  std::memcpy(fast.data(), over_gate ? gate.data() : x.data(), fast.bytes());
  call.out = fast.as<float>();
  (over_gate ? call.gate : call.x) = call.out;
  attention::activation(call);
  for (int32_t i = 0; i < call.count; ++i) {
    const double factor = gated ? gate.as<float>()[i] : 1, at = x.as<float>()[i];
    const double expected = activate(call.kind, at) * factor;
    const double granted = 4e-7 * std::fmax(1, std::fabs(at)) * std::fabs(factor);  // as src/norm.cpp says
    Accuracy accuracy;
    accuracy.add(plain.as<float>()[i], plain.as<float>()[i], expected, granted);
    accuracy.add(fast.as<float>()[i], fast.as<float>()[i], expected, granted);
    if (!accuracy.good("activation")) return false;
  }
  return true;
}

}  // namespace

int main(int, char** arguments) {
  return host::run_rounds(std::atoi(arguments[1]), 20240303, {check_norm, check_activation});
}
