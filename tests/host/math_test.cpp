// Measures what src/math.h and the conversions promise, against float64: every n-th float32 in a range, or all of them.
//
//   math_test STEP     1: all 2^32 (minutes); CI takes every few hundredth, and both neighbours of the ends
#include "math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "convert.h"
#include "half.h"

namespace {

using attention::Type;

bool good = true;

void expect(bool condition, const char* what, double at) {
  if (condition) return;
  std::printf("%s at %.9g\n", what, at);
  good = false;
}

using Function = v128_t (*)(v128_t);

float apply(Function function, float x) { return wasm_f32x4_extract_lane(function(wasm_f32x4_splat(x)), 0); }

/// Calls body(x) for every `step`-th float from `low` to `high`, both of them included, of either sign.
void sweep(float low, float high, uint32_t step, const std::function<void(const float*)>& body) {
  // In the order of float32: negative numbers count down.
  const auto order = [](float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return bits >> 31 ? 0x80000000u - (bits & 0x7fffffffu) : 0x80000000u + bits;
  };
  const auto value = [](uint64_t n) {
    const auto bits = static_cast<uint32_t>(n);
    return std::bit_cast<float>(bits >= 0x80000000u ? bits - 0x80000000u : (0x80000000u - bits) | 0x80000000u);
  };
  const uint64_t last = order(high);
  for (uint64_t n = order(low); n <= last + step - 1; n += 4 * uint64_t{step}) {
    float lanes[4];
    for (uint32_t i = 0; i < 4; ++i) lanes[i] = value(std::min(last, n + uint64_t{i} * step));
    body(lanes);
  }
}

/// The largest of error(result, x) over a range, which must stay below `bound`.
void measure(const char* name, Function function, float low, float high, uint32_t step, double bound,
             const std::function<double(double, double)>& error) {
  double most = 0, at = 0;
  sweep(low, high, step, [&](const float* x) {
    float y[4];
    wasm_v128_store(y, function(wasm_v128_load(x)));
    for (int i = 0; i < 4; ++i) {
      const double e = error(y[i], x[i]);
      if (e <= most) continue;
      most = e;
      at = x[i];
    }
  });
  std::printf("%-40s [%g, %g]: %.4g at %.9g, bound %.4g\n", name, double(low), double(high), most, at, bound);
  expect(most <= bound, name, at);
}

double relative(double got, double wanted) {
  if (got == wanted) return 0;
  const double off = std::fabs(got - wanted) / std::fabs(wanted);
  return std::isnan(off) ? INFINITY : off;
}

/// Units in the last place of the float32 nearest to `wanted`.
double units(double got, double wanted) {
  if (got == wanted) return 0;
  const int exponent = std::max(std::ilogb(std::fabs(wanted)), -126);
  const double off = std::fabs(got - wanted) / std::ldexp(1, exponent - 23);
  return std::isnan(off) ? INFINITY : off;
}
}  // namespace

int main(int, char** arguments) {
  const auto step = static_cast<uint32_t>(std::atoi(arguments[1]));
  measure("exp2_fraction", attention::exp2_fraction, -0.5f, 0.5f, step, 9.4e-8,
          [](double y, double x) { return relative(y, std::exp2(x)); });
  measure("exp_f32x4, relative / (2e-7 + 6e-8 |x|)", attention::exp_f32x4, -87, 88, step, 1,
          [](double y, double x) { return relative(y, std::exp(x)) / (2e-7 + 6e-8 * std::fabs(x)); });
  measure("exp_f32x4, absolute ", attention::exp_f32x4, -1e6, 0, step, 1,
          [](double y, double x) { return std::fabs(y - std::exp(x)); });
  for (float b : {1.f, 2.f, 4.f, 8.f, 16.f, 32.f, 64.f, 88.f})
    measure("exp_f32x4, relative", attention::exp_f32x4, -b, b, step, 1,
            [](double y, double x) { return relative(y, std::exp(x)); });
  measure("exp_exact_f32x4, relative", attention::exp_exact_f32x4, -87.499f, 88.39f, step, 3e-7,
          [](double y, double x) { return relative(y, std::exp(x)); });
  measure("exp_exact_f32x4, units", attention::exp_exact_f32x4, -87.3f, 88.39f, step, 3,
          [](double y, double x) { return units(y, std::exp(x)); });
  measure("erf relative", attention::erf_f32x4, -10, 10, step, 5e-7,
          [](double y, double x) { return relative(y, std::erf(x)); });
  measure("erf units", attention::erf_f32x4, -10, 10, step, 10,
          [](double y, double x) { return units(y, std::erf(x)); });
  measure("tanh units", attention::tanh_f32x4, -20, 20, step, 3,
          [](double y, double x) { return units(y, std::tanh(x)); });
  measure("tanh rel", attention::tanh_f32x4, -20, 20, step, 3,
          [](double y, double x) { return relative(y, std::tanh(x)); });
  for (float x : {-87.f, -87.33f, -87.5f, -87.6f, -87.7f, -87.9f, -88.f, -88.1f})
    std::printf("%g: %g %g  %g\n", x, apply(attention::exp_f32x4, x), apply(attention::exp_exact_f32x4, x),
                std::exp(double(x)));
}
