// What all parts of the runtime share: owned references to Python objects, and lists of them.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

// For functions whose loops the compiler vectorises: one version per kind of processor.
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#define NAMOO_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NAMOO_WIDE
#endif

// For functions that these call, which must be inlined to be vectorised with them.
#if defined(__GNUC__)
#define NAMOO_INLINE inline __attribute__((always_inline))
#else
#define NAMOO_INLINE inline
#endif

namespace nb = nanobind;

namespace namoo {

// Thrown while a Python exception is set.
struct Raised {};

inline PyObject* checked(PyObject* object) {
  if (!object) throw Raised();
  return object;
}

inline void checked(int status) {
  if (status < 0) throw Raised();
}

inline nb::object owned(PyObject* object) { return nb::steal(checked(object)); }

// A list of owned references, stored inline while it is short.
class Items {
 public:
  Items() = default;
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;
  ~Items() {
    clear();
    if (data_ != inline_) PyMem_Free(data_);
  }

  // Takes ownership of the reference, even if there is no memory left.
  void push(PyObject* object) {
    if (size_ == capacity_) grow(object);
    data_[size_++] = object;
  }
  void push_new(PyObject* object) {
    Py_INCREF(object);
    push(object);
  }
  // Gives up ownership of the reference.
  PyObject* take(size_t i) { return std::exchange(data_[i], nullptr); }
  PyObject* operator[](size_t i) const { return data_[i]; }
  PyObject** data() { return data_; }
  size_t size() const { return size_; }
  void clear() {
    // Dropping a reference can run any code, which may look at this list.
    while (size_ > 0) {
      PyObject* last = data_[--size_];
      Py_XDECREF(last);
    }
  }

  PyObject* to_list() {
    PyObject* list = checked(PyList_New((Py_ssize_t)size_));
    for (size_t i = 0; i < size_; i++) PyList_SET_ITEM(list, (Py_ssize_t)i, take(i));
    size_ = 0;
    return list;
  }
  PyObject* to_tuple() {
    PyObject* tuple = checked(PyTuple_New((Py_ssize_t)size_));
    for (size_t i = 0; i < size_; i++) PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, take(i));
    size_ = 0;
    return tuple;
  }

 private:
  void grow(PyObject* waiting) {
    size_t wanted = 4 * capacity_;
    void* memory = PyMem_Malloc(wanted * sizeof(PyObject*));
    if (!memory) {
      Py_DECREF(waiting);
      PyErr_NoMemory();
      throw Raised();
    }
    std::memcpy(memory, data_, size_ * sizeof(PyObject*));
    if (data_ != inline_) PyMem_Free(data_);
    data_ = static_cast<PyObject**>(memory);
    capacity_ = wanted;
  }

  static constexpr size_t kInline = 16;
  PyObject* inline_[kInline];
  PyObject** data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = kInline;
};

// A slot of a Python class, accessed without its descriptor.
class Slot {
 public:
  // Find the slot of a name in `__slots__`.
  void bind(PyObject* cls, const char* name);
  PyObject* get(PyObject* object) const {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset_);
  }
  // Takes ownership of the reference; for new objects, whose slots are empty.
  void init(PyObject* object, PyObject* value) const {
    *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset_) = value;
  }

 private:
  Py_ssize_t offset_ = 0;
};

// A new object of a Python class with empty slots; `__init__` is not called.
inline PyObject* blank(PyObject* cls) {
  PyTypeObject* type = reinterpret_cast<PyTypeObject*>(cls);
  return checked(type->tp_alloc(type, 0));
}

// While Python shuts down, it ends threads that request the GIL by unwinding their stacks, which
// would make C++ call `terminate`. Such a thread waits here until the process ends.
[[noreturn]] inline void wait_for_end() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Call code that takes the GIL or runs Python and throws no C++ exception.
template <typename F>
auto while_python_lives(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    wait_for_end();
  }
}

inline PyObject* call_one_arg(PyObject* function, PyObject* argument) {
  return while_python_lives([&] { return PyObject_CallOneArg(function, argument); });
}

inline PyObject* call_method_one_arg(PyObject* object, PyObject* name, PyObject* argument) {
  return while_python_lives([&] { return PyObject_CallMethodOneArg(object, name, argument); });
}

inline PyObject* vectorcall(PyObject* function, PyObject* const* arguments, size_t count,
                            PyObject* names) {
  return while_python_lives(
      [&] { return PyObject_Vectorcall(function, arguments, count, names); });
}

inline PyObject* vectorcall_method(PyObject* name, PyObject* const* arguments, size_t count,
                                   PyObject* names) {
  return while_python_lives(
      [&] { return PyObject_VectorcallMethod(name, arguments, count, names); });
}

// The boundary to Python: turn C++ exceptions into Python errors.
template <typename F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (Raised&) {
  } catch (nb::python_error& error) {
    error.restore();
  } catch (std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    wait_for_end();
  }
  return nullptr;
}

// Each part adds its names to the module.
void add_tree(nb::module_& m);
void add_pool(nb::module_& m);
void add_entry(nb::module_& m);
void add_call(nb::module_& m);
void add_random(nb::module_& m);
void add_reduce(nb::module_& m);
void add_product(nb::module_& m);
void add_operators(nb::module_& m);
void add_workers(nb::module_& m);
void add_equations(nb::module_& m);
void add_repeated(nb::module_& m);

}  // namespace namoo
