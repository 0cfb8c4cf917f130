// What the tests of small random calls share: sizes by edge, numbers, and the loop.
#pragma once

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <random>
#include <vector>

#include "block.h"
#include "source.h"

namespace host {

inline Block numbers(Source& source, size_t count, unsigned char fill = 0) {
  Block block(count * 4, fill, 4 * source.pick(0, 3));
  for (size_t i = 0; i < count; ++i) block.as<float>()[i] = source.value();
  return block;
}

inline int32_t size(Source& source) {
  return source.coin() ? source.pick(0, 20) : source.among({31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 200});
}

/// Runs each of the checks so many times, every time on new bytes. @returns what main() does
inline int run_rounds(int rounds, uint32_t seed, std::initializer_list<bool (*)(Source&)> checks) {
  std::mt19937 generator(seed);
  for (int n = 0; n < rounds; ++n) {
    for (const auto check : checks) {
      std::vector<uint8_t> bytes(128);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(generator());
      Source source(bytes.data(), bytes.size());
      if (check(source)) continue;
      std::printf("round %d\n", n);
      return 1;
    }
  }
  std::printf("%d rounds of %zu checks are right\n", rounds, checks.size());
  return 0;
}

}  // namespace host
