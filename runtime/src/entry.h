// A native function that computes a program, and what is needed to call it.
#pragma once

#include "arrays.h"

#include <utility>
#include <vector>

namespace namoo {

// The type of one input or output of a native function.
struct ArrayType {
  nb::object dtype;
  std::vector<npy_intp> shape;
  npy_intp bytes = 0;

  PyArray_Descr* descr() const { return reinterpret_cast<PyArray_Descr*>(dtype.ptr()); }
};

// The buffers are those of the inputs, the constants and the outputs.
using NativeFunction = int (*)(void** buffers, void* arena, void* host);

struct Entry {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  NativeFunction function;
  std::vector<ArrayType>* inputs;
  std::vector<ArrayType>* outputs;
  std::vector<nb::object>* consts;
  std::vector<std::pair<size_t, size_t>>* in_place;  // inputs whose memory outputs may reuse
  size_t arena;
  void* host;
  PyObject* callable;  // the function that `host` calls, or null
  bool quick;
  bool flush;  // subnormal numbers to zero
  PyObject* keep;
  PyObject* handler;
};

bool is_entry(PyObject* object);

// Run the function on arrays (borrowed) and append the results. Results may reuse the memory of
// donated inputs that have no more than `references` references; 0 if there are none.
void run_entry(Entry* entry, PyObject* const* values, size_t count, Items& results,
               Py_ssize_t references = 0);

}  // namespace namoo
