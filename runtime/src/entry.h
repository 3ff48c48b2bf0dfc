// A native function that computes a program, and what is needed to call it.
#pragma once

#include "arrays.h"

#include <utility>
#include <vector>

namespace namoo {

// One array that a native function takes or gives.
struct ArrayType {
  nb::object dtype;
  std::vector<npy_intp> shape;
  npy_intp bytes = 0;

  PyArray_Descr* descr() const { return reinterpret_cast<PyArray_Descr*>(dtype.ptr()); }
};

// The buffers are those of the inputs, of the constants and of the outputs.
using NativeFunction = int (*)(void** buffers, void* arena, void* host);

struct Entry {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  NativeFunction function;
  std::vector<ArrayType>* inputs;
  std::vector<ArrayType>* outputs;
  std::vector<nb::object>* consts;
  std::vector<std::pair<size_t, size_t>>* in_place;  // inputs whose memory outputs may have
  size_t arena;
  void* host;
  PyObject* callable;  // what `host` calls, or null
  bool quick;
  PyObject* keep;
  PyObject* handler;
};

bool is_entry(PyObject* object);

// Runs the function on arrays (borrowed); adds the results. Where arrays have no more than
// `references`, results may take the place of those that the caller gives up; 0 if there are none.
void run_entry(Entry* entry, PyObject* const* values, size_t count, Items& results,
               Py_ssize_t references = 0);

}  // namespace namoo
