// A loop whose rounds may run on several threads. Which rounds there are never depends on the number of threads, so
// neither does any result.
#pragma once

#include <cstdint>

namespace attention {

/// `worker` is below threads(): an index of working memory that no other round uses at the same time.
using ParallelBody = void (*)(const void* context, int32_t item, int32_t worker);

/// Calls the body for items 0..items-1, in any order. `work`, in multiply-adds for the whole loop, tells whether it is
/// worth waking anybody.
void parallel_for(int32_t items, double work, const void* context, ParallelBody body);

}  // namespace attention
