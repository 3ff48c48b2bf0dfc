#include "pool.h"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace namoo {

// The header before each block of memory.
struct Pool::Block {
  void* memory;  // as returned by the system
  size_t capacity;
  int number;           // of the size class
  Block *previous, *next;  // free blocks of the same class
  Block *older, *newer;    // free blocks of all classes
  size_t small;            // bytes that are in small pages for now
};

namespace {

constexpr size_t kHeader = Pool::kAlignment;

struct SizeClass {
  int number;
  size_t capacity;
};

// Multiples of 64 bytes up to 4096, then four sizes per doubling.
SizeClass size_class(size_t bytes) {
  if (bytes <= 4096) {
    size_t steps = std::max<size_t>((bytes + 63) / 64, 1);
    return {(int)steps - 1, steps * 64};
  }
  int doubling = 12;
  while ((size_t{2} << doubling) < bytes) doubling++;
  size_t quarter = size_t{1} << (doubling - 2);
  size_t steps = (bytes - (size_t{1} << doubling) + quarter - 1) / quarter;
  return {64 + (doubling - 12) * 4 + (int)steps - 1, (size_t{1} << doubling) + steps * quarter};
}

constexpr size_t kKept = size_t{256} << 20;

// A large part of the machine's memory: an eighth.
size_t large_part() {
#ifdef __linux__
  static const size_t part = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 8;
  return part;
#else
  return kKept;
#endif
}

// Large arrays use large pages, which need few TLB entries.
constexpr size_t kLargePage = size_t{2} << 20;

std::align_val_t alignment_of(size_t capacity) {
  return std::align_val_t(capacity < kLargePage ? Pool::kAlignment : kLargePage);
}

// Arrays that are read together must not start in the same cache sets, which have few ways: large
// arrays are shifted by one of several distances.
constexpr size_t kDistance = 17 * Pool::kAlignment;
constexpr size_t kDistances = 16;

void* from_system(size_t capacity) {
  size_t room = kHeader + capacity + (capacity < kLargePage ? 0 : kDistances * kDistance);
  return ::operator new(room, alignment_of(capacity), std::nothrow);
}

void ask_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#ifdef MADV_HUGEPAGE
  if (bytes) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}

// Scratch beyond this size starts in small pages: to find many large pages at once, the system
// compacts its memory, which took longer than a training step. When the memory is used again, it
// may be moved to large pages gradually.
constexpr size_t kMostAtOnce = size_t{128} << 20;

}  // namespace

void* Pool::allocate(size_t bytes, bool scratch) {
  static_assert(sizeof(Block) <= kHeader, "the header holds a block");
  if (bytes > kMost) return nullptr;
  SizeClass wanted = size_class(bytes);
  size_t distance = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    in_use_ += wanted.capacity;
    if (Block* block = free_[wanted.number]) {
      detach(block);
      ask_for_large_pages(block->memory, std::exchange(block->small, 0));
      return reinterpret_cast<char*>(block) + kHeader;
    }
    if (wanted.capacity >= kLargePage) distance = large_++ % kDistances * kDistance;
  }
  void* memory = from_system(wanted.capacity);
  if (!memory) {
    // Free the cached blocks, because the memory is needed now.
    std::lock_guard<std::mutex> lock(mutex_);
    shrink(0);
    memory = from_system(wanted.capacity);
    if (!memory) {
      in_use_ -= wanted.capacity;
      return nullptr;
    }
  }
  // Only pages that are used completely: the rest of the last one would be wasted.
  size_t used = (kHeader + bytes) / kLargePage * kLargePage;
  bool later = scratch && used > kMostAtOnce;
  if (!later) ask_for_large_pages(memory, used);
  char* start = static_cast<char*>(memory) + distance;
  Block* block = new (start) Block();
  block->memory = memory;
  block->small = later ? used : 0;
  block->capacity = wanted.capacity;
  block->number = wanted.number;
  return start + kHeader;
}

void Pool::release(void* data) {
  Block* block = reinterpret_cast<Block*>(static_cast<char*>(data) - kHeader);
  std::lock_guard<std::mutex> lock(mutex_);
  most_ = std::max(most_, in_use_);
  in_use_ -= block->capacity;
  Block*& first = free_[block->number];
  block->previous = nullptr;
  block->next = first;
  if (first) first->previous = block;
  first = block;
  block->newer = nullptr;
  block->older = newest_;
  (newest_ ? newest_->newer : oldest_) = block;
  newest_ = block;
  cached_ += block->capacity;
  shrink(limit());
}

size_t Pool::capacity(void* data) {
  return reinterpret_cast<Block*>(static_cast<char*>(data) - kHeader)->capacity;
}

void Pool::detach(Block* block) {
  (block->previous ? block->previous->next : free_[block->number]) = block->next;
  if (block->next) block->next->previous = block->previous;
  (block->older ? block->older->newer : oldest_) = block->newer;
  (block->newer ? block->newer->older : newest_) = block->older;
  cached_ -= block->capacity;
}

void Pool::shrink(size_t limit) {
  while (cached_ > limit) {
    Block* block = oldest_;
    detach(block);
    ::operator delete(block->memory, alignment_of(block->capacity));
  }
}

size_t Pool::limit() const {
  if (limit_) return *limit_;
  size_t most = std::min(most_, large_part());
  return std::max(kKept, most - std::min(most, in_use_));
}

void Pool::set_limit(std::optional<size_t> bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  limit_ = bytes;
  most_ = in_use_;
  shrink(limit());
}

Pool& Pool::shared() {
  // Never destroyed: arrays may outlive everything.
  static Pool* pool = new Pool();
  return *pool;
}

namespace {

void* numpy_malloc(void*, size_t size) { return Pool::shared().allocate(size); }

void* numpy_calloc(void*, size_t count, size_t size) {
  void* data = Pool::shared().allocate(count * size);
  if (data) std::memset(data, 0, count * size);
  return data;
}

void numpy_free(void*, void* data, size_t) {
  if (data) Pool::shared().release(data);
}

void* numpy_realloc(void*, void* data, size_t size) {
  if (data && size <= Pool::capacity(data)) return data;
  void* longer = Pool::shared().allocate(size);
  if (longer && data) {
    std::memcpy(longer, data, Pool::capacity(data));
    Pool::shared().release(data);
  }
  return longer;
}

PyDataMem_Handler handler = {
    "namoo_pool", 1, {nullptr, numpy_malloc, numpy_calloc, numpy_realloc, numpy_free}};

PyObject* handler_capsule() {
  static PyObject* capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
  return checked(capsule);
}

}  // namespace

PyObject* pooled_array(PyArray_Descr* descr, int ndim, const npy_intp* dims) {
  size_t bytes = (size_t)PyDataType_ELSIZE(descr);
  bool fits = true, empty = bytes == 0;
  for (int i = 0; i < ndim; i++) {
    size_t length = (size_t)dims[i];
    empty = empty || length == 0;
    fits = fits && (length == 0 || bytes <= Pool::kMost / length);
    bytes *= length;
  }
  void* data = empty || fits ? Pool::shared().allocate(empty ? 0 : bytes) : nullptr;
  if (!data) {
    Py_DECREF(descr);
    return nullptr;
  }
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, nullptr, data,
                                         NPY_ARRAY_CARRAY, nullptr);
  if (!array) {
    Pool::shared().release(data);
    throw Raised();
  }
  // NumPy returns the memory through the handler.
  auto* fields = reinterpret_cast<PyArrayObject_fields*>(array);
  fields->mem_handler = Py_NewRef(handler_capsule());
  PyArray_ENABLEFLAGS(reinterpret_cast<PyArrayObject*>(array), NPY_ARRAY_OWNDATA);
  return array;
}

namespace {

PyObject* py_empty(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    need_numpy();
    PyArray_Dims shape = {nullptr, 0};
    PyArray_Descr* descr = nullptr;
    if (!PyArg_ParseTuple(args, "O&O&", PyArray_IntpConverter, &shape, PyArray_DescrConverter,
                          &descr)) {
      PyDimMem_FREE(shape.ptr);
      throw Raised();
    }
    struct Free {
      npy_intp* pointer;
      ~Free() { PyDimMem_FREE(pointer); }
    } keeper{shape.ptr};
    if (PyDataType_REFCHK(descr)) {
      Py_DECREF(descr);
      PyErr_SetString(PyExc_TypeError, "the pool holds numbers, not Python objects");
      throw Raised();
    }
    for (int i = 0; i < shape.len; i++) {
      if (shape.ptr[i] < 0) {
        Py_DECREF(descr);
        PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
        throw Raised();
      }
    }
    PyObject* array = pooled_array(descr, shape.len, shape.ptr);
    return array ? array : PyErr_NoMemory();
  });
}

PyMethodDef methods[] = {
    {"empty", py_empty, METH_VARARGS,
     "empty(shape, dtype, /)\n--\n\nAn array in memory of the pool, at a multiple of 64 bytes."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_pool(nb::module_& m) {
  checked(PyModule_AddFunctions(m.ptr(), methods));
  m.def("pool_limit", [](std::optional<size_t> bytes) { Pool::shared().set_limit(bytes); },
        nb::arg("bytes").none(),
        "Bounds the bytes that are kept for later; what is more is given back at once. None bounds\n"
        "them by the most that is in use from now on.");
  m.def(
      "pool_info",
      [] {
        nb::dict info;
        Pool& pool = Pool::shared();
        info["limit"] = pool.limit();
        info["cached"] = pool.cached();
        info["in_use"] = pool.in_use();
        return info;
      },
      "How many bytes are kept, are given out, and may be kept.");
}

}  // namespace namoo
