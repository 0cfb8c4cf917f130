// float16 and bfloat16, one value at a time; convert.cpp does four.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "attention.h"

namespace attention {

inline float float_from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(half & 0x7fffu) << 13;
  // Read as float32 the exponent is 112 too small; a multiplication by 2^112 mends normal and subnormal numbers alike.
  const float scaled = std::bit_cast<float>(rest) * 0x1p112f;
  const uint32_t bits = rest >= (0x7c00u << 13) ? rest | 0x7f800000u : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

inline uint16_t half_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or beyond
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 lines the last place up with float16's, 2^-24, and rounds to even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float float_from_bfloat(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

inline uint16_t bfloat_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);  // NaN stays NaN
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float load_value(const void* data, Type type, ptrdiff_t index) {
  if (type == Type::kFloat32) return static_cast<const float*>(data)[index];
  const uint16_t bits = static_cast<const uint16_t*>(data)[index];
  return type == Type::kFloat16 ? float_from_half(bits) : float_from_bfloat(bits);
}

inline void store_value(void* data, Type type, ptrdiff_t index, float value) {
  if (type == Type::kFloat32) {
    static_cast<float*>(data)[index] = value;
  } else {
    static_cast<uint16_t*>(data)[index] = type == Type::kFloat16 ? half_from_float(value) : bfloat_from_float(value);
  }
}

inline size_t size_of(Type type) { return type == Type::kFloat32 ? 4 : 2; }

}  // namespace attention
