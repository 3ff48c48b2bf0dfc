#include "entry.h"

#include <structmember.h>

#include <algorithm>
#include <memory>

#include "float_mode.h"
#include "pool.h"

namespace namoo {

namespace {

PyTypeObject* entry_type = nullptr;

// The array itself if native code can read it, else a copy that it can read.
nb::object readable(PyObject* value, const ArrayType& type, size_t place) {
  if (!PyArray_Check(value)) {
    // Other objects are converted to an array, or raise an error that says why not.
    nb::object array = owned(PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr));
    return readable(array.ptr(), type, place);
  }
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  bool same_size = PyArray_DESCR(array) == type.descr()
                       ? true
                       : PyArray_EquivTypes(PyArray_DESCR(array), type.descr());
  same_size = same_size && (type.dynamic || PyArray_NBYTES(array) == type.bytes);
  if (!same_size) {
    PyErr_Format(PyExc_ValueError,
                 "value %zu has dtype %S and %zd bytes, but the program takes dtype %S and %zd",
                 place, PyArray_DESCR(array), (Py_ssize_t)PyArray_NBYTES(array), type.descr(),
                 (Py_ssize_t)type.bytes);
    throw Raised();
  }
  if (PyArray_ISCARRAY_RO(array)) return nb::borrow(value);
  Py_INCREF(type.descr());
  return owned(PyArray_FromArray(array, type.descr(), NPY_ARRAY_CARRAY_RO | NPY_ARRAY_ENSURECOPY));
}

// Check the shape of an input, and store the sizes that it gives to dimension variables; sizes that
// are not known yet are 0.
void take_sizes(PyObject* value, const ArrayType& type, size_t place,
                std::vector<int64_t>& sizes) {
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  bool fits = PyArray_NDIM(array) == (int)type.shape.size();
  for (size_t axis = 0; fits && axis < type.shape.size(); axis++) {
    npy_intp wanted = type.shape[axis], found = PyArray_DIM(array, (int)axis);
    if (wanted >= 0) {
      fits = wanted == found;
      continue;
    }
    int64_t& size = sizes[(size_t)(-1 - wanted)];
    fits = found > 0 && (size == 0 || size == found);
    size = found;
  }
  if (!fits) {
    PyErr_Format(PyExc_ValueError, "value %zu has not the shape that the program takes", place);
    throw Raised();
  }
}

// Whether an array owns its memory and has exactly `references` references.
bool owned_alone(PyObject* value, Py_ssize_t references, const ArrayType& type) {
  if (!references || Py_REFCNT(value) != references || !PyArray_CheckExact(value)) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  if (!PyArray_ISCARRAY_RO(array) || !PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA)) return false;
  if (PyArray_DESCR(array) != type.descr() || PyArray_NDIM(array) != (int)type.shape.size()) {
    return false;
  }
  return std::equal(type.shape.begin(), type.shape.end(), PyArray_DIMS(array));
}

// The Python function that evaluates host calls of the program that this thread runs.
thread_local PyObject* callable = nullptr;
// The mode in which Python runs, while a program that flushes subnormal numbers has another.
thread_local FloatMode python_mode = 0;

// Called by native code without the GIL. If Python raises, the exception stays set and the last
// pointer of the table stays null, which tells the caller.
void call_host(int64_t number, void* table) {
  PyGILState_STATE state = while_python_lives([] { return PyGILState_Ensure(); });
  PyObject* current = callable;
  FloatMode mode = float_mode(), outer = python_mode;
  set_float_mode(outer);
  PyObject* done = while_python_lives([&] {
    return PyObject_CallFunction(current, "LN", (long long)number, PyLong_FromVoidPtr(table));
  });
  callable = current;  // Python may have run other programs
  python_mode = outer;
  set_float_mode(mode);
  Py_XDECREF(done);
  PyGILState_Release(state);
}

// There is no memory for a result or for temporaries: the handler knows which.
[[noreturn]] void no_memory(Entry* entry, long code) {
  if (entry->handler != Py_None) {
    nb::object number = owned(PyLong_FromLong(code));
    PyObject* arguments[2] = {number.ptr(), Py_None};
    owned(vectorcall(entry->handler, arguments, 2, nullptr));
  }
  PyErr_NoMemory();
  throw Raised();
}

}  // namespace

bool is_entry(PyObject* object) { return Py_IS_TYPE(object, entry_type); }

void run_entry(Entry* entry, PyObject* const* values, size_t count, Items& results,
               Py_ssize_t references) {
  const auto& inputs = *entry->inputs;
  const auto& outputs = *entry->outputs;
  if (count != inputs.size()) {
    PyErr_Format(PyExc_ValueError, "the program takes %zu arrays, not %zu", inputs.size(), count);
    throw Raised();
  }
  // References are kept here: the caller's list may change while the GIL is released.
  Items kept;
  constexpr size_t kInPlace = 64;
  void* in_place[kInPlace];
  std::vector<void*> longer;
  const auto& consts = *entry->consts;
  size_t total = inputs.size() + consts.size() + outputs.size() + (entry->variables > 0);
  void** buffers = in_place;
  if (total > kInPlace) {
    longer.resize(total);
    buffers = longer.data();
  }
  // Before anything else refers to them: find inputs whose memory results may reuse.
  constexpr size_t kFresh = ~size_t{0};
  std::vector<size_t> sources;
  for (auto [input, output] : *entry->in_place) {
    if (!owned_alone(values[input], references, inputs[input])) continue;
    sources.resize(outputs.size(), kFresh);
    sources[output] = input;
  }
  for (size_t i = 0; i < count; i++) {
    kept.push(readable(values[i], inputs[i], i).release().ptr());
    buffers[i] = PyArray_DATA(reinterpret_cast<PyArrayObject*>(kept[i]));
  }
  for (size_t i = 0; i < consts.size(); i++) {
    buffers[count + i] = PyArray_DATA(reinterpret_cast<PyArrayObject*>(consts[i].ptr()));
  }
  void** targets = buffers + count + consts.size();
  size_t first = results.size(), arena_size = entry->arena;
  std::vector<int64_t> sizes;
  const int64_t* lengths = nullptr;  // of the outputs' axes
  if (entry->variables) {
    size_t axes = 0;
    for (const ArrayType& type : outputs) axes += type.shape.size();
    sizes.resize(entry->variables + 1 + axes);
    for (size_t i = 0; i < count; i++) take_sizes(kept[i], inputs[i], i, sizes);
    buffers[total - 1] = sizes.data();
    entry->function(buffers, nullptr, entry->host);
    arena_size = (size_t)sizes[entry->variables];
    lengths = sizes.data() + entry->variables + 1;
  }
  for (size_t i = 0; i < outputs.size(); i++) {
    const ArrayType& type = outputs[i];
    if (!sources.empty() && sources[i] != kFresh) {
      results.push_new(kept[sources[i]]);
      PyArray_ENABLEFLAGS(reinterpret_cast<PyArrayObject*>(results[first + i]),
                          NPY_ARRAY_WRITEABLE);
    } else {
      Py_INCREF(type.descr());
      std::vector<npy_intp> found;
      if (lengths) {
        found.assign(lengths, lengths + type.shape.size());
        lengths += type.shape.size();
      }
      const npy_intp* shape = lengths ? found.data() : type.shape.data();
      PyObject* array = pooled_array(type.descr(), (int)type.shape.size(), shape);
      if (!array) no_memory(entry, -2 - (long)i);
      results.push(array);
    }
    targets[i] = PyArray_DATA(reinterpret_cast<PyArrayObject*>(results[first + i]));
  }
  // Without an arena, a program with dimension variables would compute its sizes only.
  if (entry->variables && !arena_size) arena_size = 64;
  Arena arena(arena_size);
  if (arena_size && !arena.data()) no_memory(entry, -1);
  PyObject* outer = std::exchange(callable, entry->callable);
  FloatMode mode = python_mode = float_mode();
  if (entry->flush) set_float_mode(flushing(mode));
  int code;
  if (entry->quick) {
    code = entry->function(buffers, arena.data(), entry->host);
  } else {
    PyThreadState* state = PyEval_SaveThread();
    code = entry->function(buffers, arena.data(), entry->host);
    while_python_lives([&] { PyEval_RestoreThread(state); });
  }
  if (entry->flush) set_float_mode(mode);
  callable = outer;
  if (code == 0) return;
  // An exception that Python raised in a host call or in a signal handler is set.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (entry->handler != Py_None) {
    if (type) PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    nb::object raised = type ? nb::steal(value) : nb::none();
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    nb::object number = owned(PyLong_FromLong(code));
    PyObject* arguments[2] = {number.ptr(), raised.ptr()};
    owned(vectorcall(entry->handler, arguments, 2, nullptr));
  } else if (type) {
    PyErr_Restore(type, value, traceback);
    throw Raised();
  }
  PyErr_Format(PyExc_RuntimeError, "a compiled program failed with code %d", code);
  throw Raised();
}

namespace {

PyObject* entry_call(PyObject* self, PyObject* const* args, size_t flags, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    if (PyVectorcall_NARGS(flags) != 1 || kwnames) {
      PyErr_SetString(PyExc_TypeError, "an Entry is called with one list of arrays");
      throw Raised();
    }
    nb::object given = owned(PySequence_Tuple(args[0]));
    Items results;
    // The sequence refers to its arrays, and so does the tuple made from it, unless it is a tuple.
    run_entry(reinterpret_cast<Entry*>(self), &PyTuple_GET_ITEM(given.ptr(), 0),
              (size_t)PyTuple_GET_SIZE(given.ptr()), results, given.ptr() == args[0] ? 1 : 2);
    return results.to_list();
  });
}

std::vector<ArrayType>* array_types(PyObject* given) {
  auto types = std::make_unique<std::vector<ArrayType>>();
  nb::object sequence = owned(PySequence_Tuple(given));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.ptr()); i++) {
    PyArray_Dims shape = {nullptr, 0};
    PyArray_Descr* descr = nullptr;
    nb::object item = owned(PySequence_Tuple(PyTuple_GET_ITEM(sequence.ptr(), i)));
    int parsed = PyArg_ParseTuple(item.ptr(), "O&O&;a shape and a dtype", PyArray_IntpConverter,
                                  &shape, PyArray_DescrConverter, &descr);
    ArrayType type;
    if (parsed) {
      type.dtype = nb::steal(reinterpret_cast<PyObject*>(descr));
      type.shape.assign(shape.ptr, shape.ptr + shape.len);
    }
    PyDimMem_FREE(shape.ptr);
    if (!parsed) throw Raised();
    if (PyDataType_REFCHK(descr)) {
      PyErr_SetString(PyExc_TypeError, "native code takes numbers, not Python objects");
      throw Raised();
    }
    type.bytes = PyDataType_ELSIZE(descr);
    for (npy_intp length : type.shape) {
      type.bytes *= length;
      type.dynamic = type.dynamic || length < 0;
    }
    types->push_back(std::move(type));
  }
  return types.release();
}

std::vector<nb::object> constants(PyObject* given) {
  std::vector<nb::object> values;
  if (!given) return values;
  nb::object sequence = owned(PySequence_Tuple(given));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.ptr()); i++) {
    PyObject* value = PyTuple_GET_ITEM(sequence.ptr(), i);
    if (!PyArray_Check(value) || !PyArray_ISCARRAY_RO(reinterpret_cast<PyArrayObject*>(value))) {
      PyErr_SetString(PyExc_TypeError, "constants are contiguous, aligned NumPy arrays");
      throw Raised();
    }
    values.push_back(nb::borrow(value));
  }
  return values;
}

// Pairs of an input and an output of the same type; each occurs in at most one pair.
std::vector<std::pair<size_t, size_t>> pairs(PyObject* given, const std::vector<ArrayType>& inputs,
                                             const std::vector<ArrayType>& outputs) {
  std::vector<std::pair<size_t, size_t>> found;
  if (!given) return found;
  nb::object sequence = owned(PySequence_Tuple(given));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.ptr()); i++) {
    nb::object item = owned(PySequence_Tuple(PyTuple_GET_ITEM(sequence.ptr(), i)));
    Py_ssize_t input, output;
    if (!PyArg_ParseTuple(item.ptr(), "nn;an input and an output", &input, &output)) throw Raised();
    bool good = input >= 0 && input < (Py_ssize_t)inputs.size() && output >= 0 &&
                output < (Py_ssize_t)outputs.size();
    if (good) {
      const ArrayType &from = inputs[(size_t)input], &to = outputs[(size_t)output];
      good = from.shape == to.shape && PyArray_EquivTypes(from.descr(), to.descr());
    }
    for (auto [other_input, other_output] : found) {
      good = good && other_input != (size_t)input && other_output != (size_t)output;
    }
    if (!good) {
      PyErr_Format(PyExc_ValueError, "output %zd cannot take the place of input %zd", output, input);
      throw Raised();
    }
    found.emplace_back((size_t)input, (size_t)output);
  }
  return found;
}

PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    need_numpy();
    static const char* names[] = {"function", "inputs",  "outputs", "consts", "arena", "host",
                                  "keep",     "handler", "quick",   "in_place", "flush", "variables",
                                  nullptr};
    PyObject *function, *inputs, *outputs, *keep = Py_None, *handler = Py_None;
    PyObject *consts = nullptr, *host = nullptr, *in_place = nullptr;
    Py_ssize_t arena = 0, variables = 0;
    int quick = 0, flush = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|$OnOOOpOpn", const_cast<char**>(names),
                                     &function, &inputs, &outputs, &consts, &arena, &host, &keep,
                                     &handler, &quick, &in_place, &flush, &variables)) {
      throw Raised();
    }
    bool calls_python = host && !PyLong_Check(host);
    void* host_address = calls_python ? reinterpret_cast<void*>(&call_host)
                         : host       ? PyLong_AsVoidPtr(host)
                                      : nullptr;
    if (PyErr_Occurred()) throw Raised();
    void* address = PyLong_AsVoidPtr(function);
    if (!address) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the function's address is 0");
      throw Raised();
    }
    if (arena < 0) {
      PyErr_SetString(PyExc_ValueError, "the arena's size is negative");
      throw Raised();
    }
    std::unique_ptr<std::vector<ArrayType>> ins(array_types(inputs)), outs(array_types(outputs));
    auto values = std::make_unique<std::vector<nb::object>>(constants(consts));
    auto places = std::make_unique<std::vector<std::pair<size_t, size_t>>>(
        pairs(in_place, *ins, *outs));
    for (const ArrayType& type : *ins) {
      for (npy_intp length : type.shape) {
        if (length < -variables) {
          PyErr_SetString(PyExc_ValueError, "an input has a size that no variable gives");
          throw Raised();
        }
      }
    }
    PyObject* self = checked(type->tp_alloc(type, 0));
    auto* entry = reinterpret_cast<Entry*>(self);
    entry->vectorcall = entry_call;
    entry->function = reinterpret_cast<NativeFunction>(address);
    entry->inputs = ins.release();
    entry->outputs = outs.release();
    entry->consts = values.release();
    entry->in_place = places.release();
    entry->arena = (size_t)arena;
    entry->variables = (size_t)variables;
    entry->host = host_address;
    entry->callable = calls_python ? Py_NewRef(host) : nullptr;
    entry->quick = quick != 0;
    entry->flush = flush != 0;
    entry->keep = Py_NewRef(keep);
    entry->handler = Py_NewRef(handler);
    return self;
  });
}

int entry_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* entry = reinterpret_cast<Entry*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(entry->keep);
  Py_VISIT(entry->callable);
  Py_VISIT(entry->handler);
  return 0;
}

int entry_clear(PyObject* self) {
  // The code stays loaded until the process ends; `keep` is released with the object.
  auto* entry = reinterpret_cast<Entry*>(self);
  PyObject* handler = entry->handler;
  entry->handler = Py_NewRef(Py_None);
  Py_XDECREF(handler);
  return 0;
}

void entry_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* entry = reinterpret_cast<Entry*>(self);
  PyTypeObject* type = Py_TYPE(self);
  delete entry->inputs;
  delete entry->outputs;
  delete entry->consts;
  delete entry->in_place;
  Py_XDECREF(entry->keep);
  Py_XDECREF(entry->callable);
  Py_XDECREF(entry->handler);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* entry_get_keep(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<Entry*>(self)->keep);
}

PyMemberDef entry_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Entry, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef entry_getters[] = {
    {"keep", entry_get_keep, nullptr, "What must live as long as the function.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

constexpr const char* kEntryDoc =
    "Entry(function, inputs, outputs, *, consts=(), arena=0, host=0, keep=None, handler=None, "
    "quick=False, in_place=(), flush=False, variables=0)\n--\n\n"
    "A native function that computes a program; called with a list of arrays, it returns one.\n\n"
    "The function is `int f(void** buffers, void* arena, void* host)`. The buffers are those of the\n"
    "inputs, of the constants and of the outputs. It returns 0, or the code of an error.\n\n"
    "Args:\n"
    "  function: its address.\n"
    "  inputs, outputs: the shape and the dtype of each array.\n"
    "  consts: arrays that are the same in every call.\n"
    "  arena: how many bytes it needs for intermediate values, at a multiple of 64.\n"
    "  host: an address that it is given, or a Python function `host(number, table)` of which it is\n"
    "    given the address of one in C; what it raises is raised.\n"
    "  keep: an object that lives as long, such as the owner of the code.\n"
    "  handler: called with the code where the function fails, and the exception that was raised\n"
    "    meanwhile, or None; it raises. Without memory for the arena the code is -1, without memory\n"
    "    for an output -2 minus its number.\n"
    "  quick: the function takes less time than it costs to let other threads run meanwhile.\n"
    "  in_place: pairs of an input and an output that may be one array. They are where nothing but\n"
    "    the list refers to the input: its caller gives it up.\n"
    "  flush: subnormal numbers count as zero while the function runs.\n"
    "  variables: how many dimension variables there are. The size of an axis of an input is then\n"
    "    -1 - k for variable k, and the shapes of outputs are known when the function runs.\n";

PyType_Slot entry_slots[] = {
    {Py_tp_doc, const_cast<char*>(kEntryDoc)},
    {Py_tp_new, reinterpret_cast<void*>(entry_new)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(entry_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(entry_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(entry_clear)},
    {Py_tp_members, entry_members},
    {Py_tp_getset, entry_getters},
    {0, nullptr},
};

PyType_Spec entry_spec = {
    "namoo._runtime.Entry", sizeof(Entry), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    entry_slots};

}  // namespace

void add_entry(nb::module_& m) {
  entry_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&entry_spec)));
  checked(PyModule_AddObjectRef(m.ptr(), "Entry", reinterpret_cast<PyObject*>(entry_type)));
}

}  // namespace namoo
