// Choices and numbers out of a string of bytes, whether a fuzzer or a random generator made it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace host {

class Source {
 public:
  Source(const uint8_t* data, size_t size) : data_(data), left_(size) {
    // The numbers depend on all of the bytes, so that every mutation tries new ones; the choices on one byte each.
    for (size_t i = 0; i < size; ++i) state_ = (state_ ^ data[i]) * 0x100000001b3u;
  }

  /// An integer from `low` to `high`, both included; `low` once the bytes are used up.
  int32_t pick(int32_t low, int32_t high) {
    if (high <= low) return low;
    const auto range = static_cast<uint32_t>(high - low) + 1;
    uint32_t number = byte();
    if (range > 256) number = number << 8 | byte();
    return low + static_cast<int32_t>(number % range);
  }
  bool coin() { return pick(0, 1) == 1; }
  /// True about once in so many times.
  bool once_in(int32_t times) { return pick(0, times - 1) == times - 1; }

  template <typename T>
  T among(std::initializer_list<T> list) {
    return list.begin()[pick(0, static_cast<int32_t>(list.size()) - 1)];
  }

  /// 64 random bits that take no byte.
  uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  /// Near to normally distributed, within +-3.5; exactly 0 once in 256 times.
  float value() {
    const uint64_t random = bits();
    if ((random >> 48) % 256 == 0) return 0;
    float sum = -2;
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<float>(random >> shift & 0xffff) * 0x1p-16f;
    return sum * 1.7320508f;
  }

 private:
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  const uint8_t* data_;
  size_t left_;
  uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace host
