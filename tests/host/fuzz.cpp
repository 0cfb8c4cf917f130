// The libFuzzer target: the bytes decide about shapes, options and numbers of one call of attention().
#include <cstdlib>

#include "call.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  host::Source source(data, size);
  if (!host::check_call(source)) std::abort();
  return 0;
}
