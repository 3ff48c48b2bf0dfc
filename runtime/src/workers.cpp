// The thread pool that shares the work of kernels, and the check for signals. Without the C++ part,
// the functions of the same names in `namoo.engines.native.link.signals` run on one thread.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "common.h"
#include "float_mode.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace namoo {

namespace {

using Kernel = void (*)(void* table, int64_t begin, int64_t end);

// How often a thread polls for work before it sleeps, and for the end of the others' work before it
// yields the processor.
constexpr int kLooks = 20000, kLooksForEnd = 2000;
// Pieces per thread: enough for threads to finish together, but few, so that each reads memory in
// long runs and seldom requests the next piece.
constexpr int64_t kPieces = 8;
// Milliseconds between two checks for signals: each needs the GIL.
constexpr int64_t kBetweenChecks = 200;

struct Job {
  Kernel kernel;
  void* table;
  int64_t units, grain;
  FloatMode mode;  // that of the thread that submitted it
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

// `sleep` waits while `generation` is unchanged, and may return early; `wake` ends it.
#if defined(__linux__)
void sleep(int32_t seen) {
  syscall(SYS_futex, &generation, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void wake() {
  syscall(SYS_futex, &generation, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void forget_sleepers() {}
#else
// Never destroyed: threads sleep here until the process ends.
struct Bed {
  std::mutex mutex;
  std::condition_variable changed;
};
Bed* bed = new Bed;

void sleep(int32_t seen) {
  std::unique_lock<std::mutex> lock(bed->mutex);
  bed->changed.wait(lock, [seen] { return generation.load() != seen; });
}

void wake() {
  // Taking the lock: a thread between its last look and its sleep would miss the notice.
  { std::lock_guard<std::mutex> lock(bed->mutex); }
  bed->changed.notify_all();
}

// The lock may be held by a thread that the child of a fork does not have.
void forget_sleepers() { bed = new Bed; }
#endif

// Python runs signal handlers only in this thread.
std::atomic<unsigned long> main_thread{0};
int64_t last_check = 0;

int64_t milliseconds() {
#if defined(__linux__)
  timespec now;  // accurate to a few milliseconds, without a system call
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
#else
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
#endif
}

// Run the Python handlers of pending signals. Returns 1 if one of them raised: the exception is
// set, and the program must return to its caller.
int32_t interrupted() {
  if (PyThread_get_thread_ident() != main_thread.load(std::memory_order_relaxed)) return 0;
  int64_t now = milliseconds();
  if (now - last_check < kBetweenChecks) return 0;
  last_check = now;
  PyGILState_STATE state = while_python_lives([] { return PyGILState_Ensure(); });
  int raised = PyErr_CheckSignals();
  PyGILState_Release(state);
  return raised != 0;
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

// Like `take`, for the thread that called `parallel`: it checks for signals, and cancels the work
// that has not started if a handler raised.
int32_t take_and_check(const Job& mine) {
  for (;;) {
    int64_t begin = next.fetch_add(mine.grain, std::memory_order_relaxed);
    if (begin >= mine.units) return 0;
    int64_t end = std::min(begin + mine.grain, mine.units);
    mine.kernel(mine.table, begin, end);
    finished.fetch_add(end - begin, std::memory_order_release);
    if (interrupted()) {
      begin = std::min(next.exchange(mine.units, std::memory_order_relaxed), mine.units);
      finished.fetch_add(mine.units - begin, std::memory_order_release);
      return 1;
    }
  }
}

// Call a kernel for all units, in pieces of `least` to `most`. Returns 0 when they are done, or 1
// when a signal handler raised.
int32_t parallel(Kernel kernel, void* table, int64_t units, int64_t least, int64_t most) {
  int32_t others = limit.load(std::memory_order_relaxed), free = 0;
  if (others == 0 || units <= least ||
      !busy.compare_exchange_strong(free, 1, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
    for (int64_t begin = 0, end; begin < units; begin = end) {
      end = std::min(begin + most, units);
      kernel(table, begin, end);
      if (interrupted()) return 1;
    }
    return 0;
  }
  int64_t even = std::min(units / ((others + 1) * kPieces), most);
  job = {kernel, table, units, std::max(even, least), float_mode()};
  next.store(0, std::memory_order_relaxed);
  finished.store(0, std::memory_order_relaxed);
  open.store(1);
  generation.fetch_add(1);
  if (sleepers.load() != 0) wake();
  int32_t stopped = take_and_check(job);
  for (int looks = 0; finished.load(std::memory_order_acquire) != units; looks++) {
    pause();
    // Another thread may need this processor to finish.
    if (looks > kLooksForEnd) std::this_thread::yield();
  }
  // A late thread must be gone before the next job is published.
  open.store(0);
  while (active.load() != 0) pause();
  busy.store(0, std::memory_order_release);
  return stopped;
}

// The loop of a thread, until the process ends.
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
    if (open.load() != 0) {
      set_float_mode(job.mode);
      take(job);
    }
    active.fetch_sub(1);
  }
}

void set_main_thread(uint64_t id) { main_thread.store((unsigned long)id); }

void set_limit(int32_t count) { limit.store(count); }

// In the child of a fork, which has none of its parent's threads.
void reset() {
  active.store(0);
  busy.store(0);
  open.store(0);
  sleepers.store(0);
  forget_sleepers();
}

}  // namespace

void add_workers(nb::module_& m) {
  nb::dict functions;
  functions["namoo_parallel"] = (uintptr_t)&parallel;
  functions["namoo_interrupted"] = (uintptr_t)&interrupted;
  functions["set_main_thread"] = (uintptr_t)&set_main_thread;
  functions["worker"] = (uintptr_t)&worker;
  functions["set_limit"] = (uintptr_t)&set_limit;
  functions["reset"] = (uintptr_t)&reset;
  m.attr("workers") = functions;
}

}  // namespace namoo
