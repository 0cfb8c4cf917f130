// Conversion between floating-point types: every float16 and bfloat16, and floats around every place where rounding
// turns, against definitions in float64 of their own. The values one by one (half.h), four at a time (convert.cpp) and
// by the definition (plain.cpp) must be the same bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "attention.h"
#include "block.h"
#include "half.h"

namespace {

using attention::Type;
using host::Block;

/// A format of 16 bits: exponent and mantissa bits behind the sign.
struct Format {
  Type type;
  int exponent_bits, mantissa_bits;

  double value(uint16_t bits) const {
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
  uint16_t infinity() const { return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits); }
};

bool good = true;

void expect(bool condition, const char* what, double at) {
  if (!condition) std::printf("%s: %.9g\n", what, at);
  good &= condition;
}

/// Converts an array in one go, all of its length, at the end of its block.
template <typename To, typename From>
std::vector<To> converted(const std::vector<From>& from, Type from_type, Type to_type, bool plain) {
  const Block source(from.size() * sizeof(From)), target(from.size() * sizeof(To));
  std::copy(from.begin(), from.end(), source.as<From>());
  const auto convert = plain ? attention::plain::convert : attention::convert;
  convert(source.data(), from_type, target.data(), to_type, from.size());
  return {target.as<To>(), target.as<To>() + from.size()};
}

/// Each of the 65,536 numbers as a float.
void check_widening(const Format& format) {
  std::vector<uint16_t> all(65536 - 3);  // a tail, too
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const bool plain : {false, true}) {
    const std::vector<float> floats = converted<float>(all, format.type, Type::kFloat32, plain);
    for (size_t i = 0; i < all.size(); ++i) {
      const double wanted = format.value(all[i]);
      const bool same = std::isnan(wanted) ? std::isnan(floats[i]) : floats[i] == wanted;
      expect(same && std::signbit(floats[i]) == (all[i] >> 15 != 0), "widened", i);
      // Each comes back as it was; NaN as some NaN.
      const float back = attention::load_value(&all[i], format.type, 0);
      expect(std::bit_cast<uint32_t>(back) == std::bit_cast<uint32_t>(floats[i]), "one value is another than four", i);
    }
    const std::vector<uint16_t> again = converted<uint16_t>(floats, Type::kFloat32, format.type, plain);
    for (size_t i = 0; i < all.size(); ++i) {
      expect(std::isnan(format.value(all[i])) ? std::isnan(format.value(again[i])) : again[i] == all[i], "came back",
             i);
    }
  }
}

/// Where float32 numbers go: to the nearest, to the even one of two, past the largest by half a step to infinity.
void check_narrowing(const Format& format) {
  std::vector<float> floats;
  std::vector<uint16_t> wanted;
  const auto add = [&](double value, uint16_t bits) {
    for (const int sign : {0, 1}) {
      floats.push_back(static_cast<float>(sign ? -value : value));
      wanted.push_back(static_cast<uint16_t>(bits | sign << 15));
    }
  };
  for (int bits = 0; bits < format.infinity(); ++bits) {
    const auto low = static_cast<uint16_t>(bits), high = static_cast<uint16_t>(bits + 1);
    const double below = format.value(low);
    const double step = bits + 1 == format.infinity() ? below - format.value(static_cast<uint16_t>(bits - 1))
                                                      : format.value(high) - below;
    const double middle = below + step / 2;
    const float exact = static_cast<float>(middle);
    add(below, low);
    // bfloat16 has subnormals whose middle float32 can still write; all middles are floats in both formats.
    expect(double(exact) == middle, "a middle is no float", middle);
    add(middle, bits % 2 ? high : low);
    add(std::nextafter(exact, 0.0f), low);
    if (std::isfinite(std::nextafter(exact, INFINITY))) add(std::nextafter(exact, INFINITY), high);
  }
  add(std::numeric_limits<float>::max(), format.infinity());
  add(INFINITY, format.infinity());
  floats.push_back(1), wanted.push_back(format.type == Type::kFloat16 ? 0x3c00 : 0x3f80);
  for (const bool plain : {false, true}) {
    const std::vector<uint16_t> halves = converted<uint16_t>(floats, Type::kFloat32, format.type, plain);
    for (size_t i = 0; i < floats.size(); ++i) expect(halves[i] == wanted[i], "narrowed", floats[i]);
  }
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu, 0x7f80ffffu}) {
    uint16_t half;
    attention::store_value(&half, format.type, 0, std::bit_cast<float>(bits));
    expect(std::isnan(format.value(half)), "NaN is no NaN any more", bits);
  }
}

/// All lengths of a tail, and copies within a type.
void check_lengths() {
  for (size_t count = 0; count < 12; ++count) {
    const std::vector<float> floats(count, 1.5f);
    const std::vector<uint16_t> halves(count, 0x3e00), bfloats(count, 0x3fc0);
    for (const bool plain : {false, true}) {
      expect(converted<uint16_t>(floats, Type::kFloat32, Type::kFloat16, plain) == halves, "to float16", count);
      expect(converted<uint16_t>(halves, Type::kFloat16, Type::kBfloat16, plain) == bfloats, "to bfloat16", count);
      expect(converted<uint16_t>(halves, Type::kFloat16, Type::kFloat16, plain) == halves, "float16 stays", count);
      expect(converted<float>(bfloats, Type::kBfloat16, Type::kFloat32, plain) == floats, "to float32", count);
      expect(converted<float>(floats, Type::kFloat32, Type::kFloat32, plain) == floats, "float32 stays", count);
    }
  }
}

}  // namespace

int main() {
  for (const Format& format : {Format{Type::kFloat16, 5, 10}, Format{Type::kBfloat16, 8, 7}}) {
    check_widening(format);
    check_narrowing(format);
  }
  check_lengths();
  if (good) std::puts("every float16 and bfloat16 converts both ways");
  return good ? 0 : 1;
}
