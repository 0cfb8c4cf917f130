// Parallel loops of the builds without threads.
#include "attention.h"
#include "parallel.h"

namespace attention {

void set_threads(int32_t) {}
int32_t threads() { return 1; }

void parallel_for(int32_t items, double, const void* context, ParallelBody body) {
  for (int32_t item = 0; item < items; ++item) body(context, item, 0);
}

}  // namespace attention
