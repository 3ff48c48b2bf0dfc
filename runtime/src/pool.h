// Memory for results and temporaries: aligned, and reused by the next call.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "arrays.h"

namespace namoo {

// Thread-safe. Free blocks are cached up to a limit, and the oldest are evicted first. By default
// the limit is 256 MB, or the difference to the maximum that was ever in use: the next step of a
// large training finds its memory again, and the total never exceeds what the largest step needed.
class Pool {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kMost = size_t{1} << 46;  // the most bytes that one may request

  // Returns null if there is no memory. Memory that is only for a call (`scratch`) may be slower to
  // read at first, but is available sooner.
  void* allocate(size_t bytes, bool scratch = false);
  void release(void* data);
  static size_t capacity(void* data);

  void set_limit(std::optional<size_t> bytes);
  size_t limit() const;
  size_t cached() const { return cached_; }
  size_t in_use() const { return in_use_; }

  static Pool& shared();

 private:
  struct Block;
  static constexpr int kClasses = 256;

  void detach(Block* block);
  void shrink(size_t limit);

  std::mutex mutex_;
  Block* free_[kClasses] = {};
  Block* oldest_ = nullptr;
  Block* newest_ = nullptr;
  std::optional<size_t> limit_;
  size_t cached_ = 0;
  size_t in_use_ = 0;
  size_t most_ = 0;  // the maximum ever in use
  size_t large_ = 0;  // blocks in large pages so far
};

// An array whose memory comes from the pool and returns to it; takes ownership of `descr`. Returns
// null, without an exception, if there is no memory.
PyObject* pooled_array(PyArray_Descr* descr, int ndim, const npy_intp* dims);

// Memory of the pool for the duration of a block of code; null if there is none.
class Arena {
 public:
  explicit Arena(size_t bytes) : data_(bytes ? Pool::shared().allocate(bytes, true) : nullptr) {}
  ~Arena() {
    if (data_) Pool::shared().release(data_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
};

}  // namespace namoo
