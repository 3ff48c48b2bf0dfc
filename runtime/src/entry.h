// A native function that computes a program, and what is needed to call it.
#pragma once

#include "arrays.h"

#include <vector>

namespace namoo {

// One array that a native function takes or gives.
struct ArrayType {
  nb::object dtype;
  std::vector<npy_intp> shape;
  npy_intp bytes = 0;

  PyArray_Descr* descr() const { return reinterpret_cast<PyArray_Descr*>(dtype.ptr()); }
};

// What native code may write about a failure; it gets the address as its second argument.
struct Failure {
  int64_t slots[8];
};

using NativeFunction = int (*)(void** buffers, void* failure);

struct Entry {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  NativeFunction function;
  std::vector<ArrayType>* inputs;
  std::vector<ArrayType>* outputs;
  size_t arena;
  bool quick;
  PyObject* keep;
  PyObject* handler;
};

bool is_entry(PyObject* object);

// Runs the function on arrays (borrowed); adds the results.
void run_entry(Entry* entry, PyObject* const* values, size_t count, Items& results);

}  // namespace namoo
