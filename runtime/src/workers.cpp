// The threads that share the work of kernels: what `namoo.engines.native.threads` writes for LLVM
// where there is no C++ part, in the same steps and under the same names.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "common.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace namoo {

namespace {

using Kernel = void (*)(void* table, int64_t begin, int64_t end);

// How often a thread looks for work before it sleeps, and for the end of the others' before it
// lets somebody else have the processor.
constexpr int kLooks = 20000, kLooksForEnd = 2000;
// Pieces for each thread: enough to end together, and few, so that each goes through memory in
// long runs and seldom asks for the next.
constexpr int64_t kPieces = 8;

struct Job {
  Kernel kernel;
  void* table;
  int64_t units, grain;
};

Job job;
alignas(64) std::atomic<int64_t> next{0};
alignas(64) std::atomic<int64_t> finished{0};
alignas(64) std::atomic<int32_t> generation{0};
alignas(64) std::atomic<int32_t> open{0};
std::atomic<int32_t> active{0}, busy{0}, sleepers{0}, limit{0};

inline void pause() {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
  __builtin_ia32_pause();
#endif
}

// Wait while `generation` is as it was seen; it may also return early.
void sleep(int32_t seen) {
#if defined(__linux__)
  syscall(SYS_futex, &generation, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
#else
  std::this_thread::sleep_for(std::chrono::microseconds(50));
#endif
}

void wake() {
#if defined(__linux__)
  syscall(SYS_futex, &generation, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
#endif
}

void take(const Job& mine) {
  for (;;) {
    int64_t begin = next.fetch_add(mine.grain, std::memory_order_relaxed);
    if (begin >= mine.units) return;
    int64_t end = std::min(begin + mine.grain, mine.units);
    mine.kernel(mine.table, begin, end);
    finished.fetch_add(end - begin, std::memory_order_release);
  }
}

// Call a kernel for all units, in pieces of `least` or more, and return when they are done.
void parallel(Kernel kernel, void* table, int64_t units, int64_t least) {
  int32_t others = limit.load(std::memory_order_relaxed), free = 0;
  if (others == 0 || units <= least ||
      !busy.compare_exchange_strong(free, 1, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
    kernel(table, 0, units);
    return;
  }
  job = {kernel, table, units, std::max(units / ((others + 1) * kPieces), least)};
  next.store(0, std::memory_order_relaxed);
  finished.store(0, std::memory_order_relaxed);
  open.store(1);
  generation.fetch_add(1);
  if (sleepers.load() != 0) wake();
  take(job);
  for (int looks = 0; finished.load(std::memory_order_acquire) != units; looks++) {
    pause();
    // Somebody else may need this processor to finish.
    if (looks > kLooksForEnd) std::this_thread::yield();
  }
  // A thread that came late must be gone before the next job is written down.
  open.store(0);
  while (active.load() != 0) pause();
  busy.store(0, std::memory_order_release);
}

// What a thread does until the process ends.
void worker(int32_t id) {
  int32_t seen = generation.load(std::memory_order_acquire);
  for (int looks = 0;;) {
    int32_t now = generation.load(std::memory_order_acquire);
    if (now == seen) {
      pause();
      if (++looks > kLooks) {
        sleepers.fetch_add(1);
        sleep(seen);
        sleepers.fetch_sub(1);
        looks = 0;
      }
      continue;
    }
    seen = now;
    looks = 0;
    if (id >= limit.load(std::memory_order_relaxed)) continue;
    active.fetch_add(1);
    if (open.load() != 0) take(job);
    active.fetch_sub(1);
  }
}

void set_limit(int32_t count) { limit.store(count); }

// In the child of a fork, which has none of its parent's threads.
void reset() {
  active.store(0);
  busy.store(0);
  open.store(0);
  sleepers.store(0);
}

}  // namespace

void add_workers(nb::module_& m) {
  nb::dict functions;
  functions["namoo_parallel"] = (uintptr_t)&parallel;
  functions["worker"] = (uintptr_t)&worker;
  functions["set_limit"] = (uintptr_t)&set_limit;
  functions["reset"] = (uintptr_t)&reset;
  m.attr("workers") = functions;
}

}  // namespace namoo
