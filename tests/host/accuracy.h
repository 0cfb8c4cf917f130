// The rule for a kernel: its error is at most twice that of the definition, plus a few units in the last place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace host {

/// |a - b|; 0 where both are the same infinity or both NaN, infinite where only one is.
inline double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::fabs(a - b);
  return std::isnan(difference) ? INFINITY : difference;
}

class Accuracy {
 public:
  static constexpr double kFewUnits = 8;  // of 2^-24, relative to the largest value that is expected

  /// One value of either, and what it is in float64. `granted`: the error that the definition may have.
  void add(double fast, double plain, double expected, double granted) {
    const double off = distance(plain, expected);
    fast_ = std::max(fast_, distance(fast, expected));
    plain_ = std::max(plain_, off);
    excess_ = std::max(excess_, off - granted);
    if (std::isfinite(expected)) largest_ = std::max(largest_, std::fabs(expected));
  }

  /// Units that the kernel is worse than twice the definition.
  double units() const { return fast_ <= 2 * plain_ ? 0 : (fast_ - 2 * plain_) / (0x1p-24 * largest_); }

  bool good(const char* what) const {
    if (excess_ <= 0 && units() <= kFewUnits) return true;
    std::printf("%s: off by %.3g, the definition by %.3g, %.3g more than it may; largest value %.3g\n", what, fast_,
                plain_, std::max(excess_, 0.0), largest_);
    return false;
  }

 private:
  double fast_ = 0, plain_ = 0, excess_ = 0, largest_ = 1e-30;
};

}  // namespace host
