// Random calls of attention(), as the fuzzer makes them, from a fixed seed.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "call.h"

int main(int, char** arguments) {
  const int calls = std::atoi(arguments[1]);
  std::mt19937 generator(20240229);
  for (int n = 0; n < calls; ++n) {
    std::vector<uint8_t> bytes(128);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(generator());
    host::Source source(bytes.data(), bytes.size());
    if (host::check_call(source)) continue;
    std::printf("  call %d\n", n);
    return 1;
  }
  std::printf("%d random calls agree\n", calls);
  return 0;
}
