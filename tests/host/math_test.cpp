// Measures what src/math.h promises against float64: every n-th float32 of a range, or all of them.
//
//   math_test STEP     1: all of them, for minutes
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

bool good = true;

void expect(bool condition, const char* what, double at) {
  if (condition) return;
  std::printf("%s at %.9g\n", what, at);
  good = false;
}

using Function = v128_t (*)(v128_t);

/// Calls body(four numbers) with every `step`-th float from `low` to `high`, both of them included.
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
void zero_below(const char* name, Function function, float high, uint32_t step) {
  measure(name, function, -INFINITY, high, step, 0, [](double y, double) { return std::fabs(y); });
}

void keeps_nan(const char* name, Function function) {
  // Quiet and signalling ones, of either sign, all payload bits set or one.
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
    float y[4];
    wasm_v128_store(y, function(wasm_f32x4_splat(std::bit_cast<float>(bits))));
    expect(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]) && std::isnan(y[3]), name, bits);
  }
}

v128_t fraction(v128_t f) { return attention::Exponential().fraction(f); }

void measure_exponentials(uint32_t step) {
  measure("fraction, relative", fraction, -0.5f, 0.5f, step, 2.1e-7,
          [](double y, double x) { return relative(y, std::exp2(x)); });
  measure("exp, relative / (2e-7 + 7.2e-8 |x|)", attention::exp_f32x4, -87.68f, 88, step, 1,
          [](double y, double x) { return relative(y, std::exp(x)) / (2e-7 + 7.2e-8 * std::fabs(x)); });
  zero_below("exp, below", attention::exp_f32x4, -87.69f, step);
  keeps_nan("exp", attention::exp_f32x4);
  measure("exp_exact, relative", attention::exp_exact_f32x4, -87.499f, 88.36f, step, 2.4e-7,
          [](double y, double x) { return relative(y, std::exp(x)); });
  zero_below("exp_exact, below", attention::exp_exact_f32x4, -87.5f, step);
  measure("exp_exact, above", attention::exp_exact_f32x4, 88.37f, INFINITY, step, 0,
          [](double y, double) { return y == INFINITY ? 0 : 1; });
  keeps_nan("exp_exact", attention::exp_exact_f32x4);
}

void measure_others(uint32_t step) {
  constexpr float kLeast = 0x1p-126f;  // below it float32 itself has no relative error
  const auto erf = [](double y, double x) { return relative(y, std::erf(x)); };
  const auto tanh = [](double y, double x) { return units(y, std::tanh(x)); };
  measure("erf, relative", attention::erf_f32x4, kLeast, INFINITY, step, 4.2e-7, erf);
  measure("erf, relative", attention::erf_f32x4, -INFINITY, -kLeast, step, 4.2e-7, erf);
  measure("erf, units", attention::erf_f32x4, -kLeast, kLeast, step, 2,
          [](double y, double x) { return units(y, std::erf(x)); });
  keeps_nan("erf", attention::erf_f32x4);
  measure("tanh, units", attention::tanh_f32x4, -INFINITY, INFINITY, step, 2.1, tanh);
  keeps_nan("tanh", attention::tanh_f32x4);
}

}  // namespace

int main(int, char** arguments) {
  const auto step = static_cast<uint32_t>(std::atoi(arguments[1]));
  measure_exponentials(step);
  measure_others(step);
  return good ? 0 : 1;
}
