// A native function that computes a program, and what is needed to call it.
#pragma once

#include "arrays.h"

#include <utility>
#include <vector>

namespace namoo {

// The type of one input or output of a native function. An axis of an input whose size is known at
// run time has the size -1 - k, for dimension variable k; such an axis of an output has any size
// below zero.
struct ArrayType {
  nb::object dtype;
  std::vector<npy_intp> shape;
  npy_intp bytes = 0;
  bool dynamic = false;

  PyArray_Descr* descr() const { return reinterpret_cast<PyArray_Descr*>(dtype.ptr()); }
};

// The buffers are those of the inputs, the constants and the outputs; then, in a program with
// dimension variables, a table of 64-bit integers. It has their sizes; the function adds the bytes
// of the arena and the sizes of all axes of the outputs, and does no more without an arena.
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
  size_t variables;  // how many dimension variables the program has
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
