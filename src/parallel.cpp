// Parallel loops of the threaded builds: a pool that starts when the number of threads is set and sleeps between loops.
//
// The caller opens a job, works along and at the end spins for those who have joined; it never sleeps, because a page's
// main thread may not. Threads come up in their own time (a browser needs the event loop for it): a job waits for those
// who joined, not for those who might.
#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "attention.h"

namespace attention {

namespace {

constexpr int32_t kMostThreads = 64;
constexpr double kSmallJob = 1 << 20;  // multiply-adds: some 30 microseconds, about what waking a thread takes
constexpr int32_t kSpins = 4000;       // looks at the signal before sleeping: calls often come in a row

struct Pool {
  // The job. Written by the caller while `open` is false.
  const void* context = nullptr;
  ParallelBody body = nullptr;
  int32_t items = 0;
  int32_t members = 1;  // threads that may take part, the caller among them

  std::atomic<bool> open{false};
  std::atomic<int32_t> next{0};    // item that nobody has taken yet
  std::atomic<int32_t> active{0};  // threads inside the job
  std::atomic<uint32_t> signal{0};

  int32_t started = 1;
  int32_t wanted = 1;

  void take_items(int32_t worker) {
    for (;;) {
      const int32_t item = next.fetch_add(1, std::memory_order_relaxed);
      if (item >= items) return;
      body(context, item, worker);
    }
  }

  // Whoever comes late either sees `open` false, or is seen in `active`: both are sequentially consistent.
  void join(int32_t worker) {
    active.fetch_add(1);
    if (open.load() && worker < members) take_items(worker);
    active.fetch_sub(1);
  }

  void live(int32_t worker) {
    uint32_t seen = 0;
    for (;;) {
      for (int32_t spin = 0; spin < kSpins && signal.load(std::memory_order_relaxed) == seen; ++spin) {
      }
      signal.wait(seen);
      seen = signal.load();
      join(worker);
    }
  }

  void start() {
    for (; started < wanted; ++started) {
      std::thread([this, worker = started] { live(worker); }).detach();
    }
  }

  void run(int32_t count, const void* job_context, ParallelBody job_body) {
    context = job_context;
    body = job_body;
    items = count;
    members = wanted;
    next.store(0, std::memory_order_relaxed);
    open.store(true);
    signal.fetch_add(1);
    signal.notify_all();
    take_items(0);
    open.store(false);
    while (active.load() != 0) {
    }
  }
};

// Never destroyed: its threads sleep in it until the process ends.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

}  // namespace

// Starting takes memory for stacks, so it isn't left to the first call: a call holds nothing that was not held before.
void set_threads(int32_t count) {
  pool().wanted = std::clamp(count, 1, kMostThreads);
  pool().start();
}
int32_t threads() { return pool().wanted; }

void parallel_for(int32_t items, double work, const void* context, ParallelBody body) {
  if (items < 2 || threads() < 2 || work < kSmallJob) {
    for (int32_t item = 0; item < items; ++item) body(context, item, 0);
  } else {
    pool().run(items, context, body);
  }
}

}  // namespace attention
