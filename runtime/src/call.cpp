// The fast path of a call of a compiled function: match the arguments, run, wrap the results. Calls
// that do not match go to the general path in Python, which is the reference.

#include "arrays.h"

#include <structmember.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "entry.h"
#include "tree.h"

namespace namoo {

namespace {

// The arguments of `bind_call`; they live as long as the module.
struct Reference {
  PyObject* context = nullptr;
  PyObject* eval_trace = nullptr;
  PyObject* config = nullptr;
  PyObject* config_names = nullptr;
  PyObject* array_class = nullptr;
  PyObject* placed_class = nullptr;
  PyObject* to_numpy = nullptr;
  PyObject* wrap = nullptr;
  PyObject* tidy = nullptr;
  Slot value, weak;
  Slot type, sharding, buffer, committed, follows, host;
} ref;

PyObject *name_trace, *name_axes, *name_config_trace, *name_generation, *name_general, *name_value;
PyObject* name_dict;

enum class Kind { kArray, kPlaced, kNumPy, kOtherArray, kScalar, kFixed };

// A value that a program was traced for. `hash` is its hash at that time if the object is mutable,
// else None.
struct Fixed {
  nb::object value, hash;
};

// What a leaf must be for a program to apply.
struct Leaf {
  Kind kind;
  bool used = true;          // whether the program takes it; otherwise it only must match
  nb::object cls;            // kOtherArray, kScalar, kFixed
  nb::object dtype;          // of the incoming array
  nb::object canonical;      // kNumPy, kScalar: the dtype that the program takes
  std::vector<npy_intp> shape;
  PyObject* weak = nullptr;  // kArray: True or False
  Fixed fixed;               // kFixed
  nb::object type, sharding; // kPlaced; kArray of programs that take buffers has a type
  nb::object put;            // makes a buffer of the value, for programs that take buffers
  nb::object number, made;   // kScalar: the last number, and its buffer
};

// A result of a program that returns buffers: its type and its placement.
struct Result {
  nb::object type, sharding, committed, follows;
};

// An argument: data with a structure, or a static value.
struct Argument {
  bool is_static;
  Fixed what;
  nb::object name;
};

struct Signature {
  long trace_id;
  std::vector<Argument> positional, named;
  std::vector<Leaf> leaves;
  nb::object run;
  bool takes_arrays;  // it takes Arrays in a tuple, not NumPy arrays
  bool takes_buffers = false;  // it takes device buffers in a list, and returns them
  nb::object finish, handlers; // makes the list of results from what `run` returns, or none
  nb::object place;            // the sharding of buffers made from host arrays, or none
  std::vector<Result> results;
  long epoch;
  std::vector<nb::object> consts;
  std::vector<PyObject*> weak;
  nb::object structure;
  std::vector<std::pair<size_t, nb::object>> fixed;
};

using SignatureRef = std::shared_ptr<Signature>;

constexpr size_t kMost = 16;

// Signatures of earlier epochs are never used again.
long epoch = 0;

// The most recently called programs, with the arguments that they accept.
struct Calls {
  PyObject_HEAD
  std::vector<SignatureRef>* signatures;
  size_t hint;
};

struct Dispatcher {
  PyObject_HEAD
  PyObject* calls;
};

PyTypeObject* calls_type = nullptr;

bool equal_fixed(const Fixed& fixed, PyObject* found) {
  PyObject* wanted = fixed.value.ptr();
  if (Py_TYPE(wanted) != Py_TYPE(found)) return false;
  if (!fixed.hash.is_none()) {
    Py_hash_t hash = PyObject_Hash(found);
    if (hash == -1) throw Raised();
    if (hash != PyLong_AsSsize_t(fixed.hash.ptr())) return false;
  }
  if (wanted == found) return true;
  int equal = PyObject_RichCompareBool(wanted, found, Py_EQ);
  checked(equal);
  return equal;
}

// The sizes of the dimension variables of the call that is being matched; 0 for unknown ones.
thread_local std::vector<npy_intp> sizes;

bool same_array(const Leaf& leaf, PyObject* value) {
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  auto* dtype = reinterpret_cast<PyArray_Descr*>(leaf.dtype.ptr());
  int ndim = (int)leaf.shape.size();
  if (PyArray_NDIM(array) != ndim) return false;
  for (int i = 0; i < ndim; i++) {
    npy_intp wanted = leaf.shape[(size_t)i], found = PyArray_DIM(array, i);
    if (wanted >= 0) {
      if (found != wanted) return false;
      continue;
    }
    // The size -1 - k is that of dimension variable k, which is at least 1.
    size_t k = (size_t)(-1 - wanted);
    if (sizes.size() <= k) sizes.resize(k + 1);
    if (found < 1 || (sizes[k] && sizes[k] != found)) return false;
    sizes[k] = found;
  }
  return PyArray_DESCR(array) == dtype || PyArray_EquivTypes(PyArray_DESCR(array), dtype);
}

nb::object scalar_array(const Leaf& leaf, PyObject* number) {
  auto* dtype = reinterpret_cast<PyArray_Descr*>(leaf.canonical.ptr());
  Py_INCREF(dtype);
  nb::object array = owned(PyArray_NewFromDescr(&PyArray_Type, dtype, 0, nullptr, nullptr, nullptr,
                                                0, nullptr));
  auto* raw = reinterpret_cast<PyArrayObject*>(array.ptr());
  checked(PyArray_SETITEM(raw, static_cast<char*>(PyArray_DATA(raw)), number));
  return array;
}

bool is_placed(const Leaf& leaf, PyObject* object) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != ref.placed_class) return false;
  return ref.type.get(object) == leaf.type.ptr() &&
         ref.sharding.get(object) == leaf.sharding.ptr() && ref.buffer.get(object) &&
         ref.buffer.get(object) != Py_None;
}

bool push_leaf(const Leaf& leaf, PyObject* object, bool takes_arrays, Items& values);

// A device buffer that was made from a host array.
struct Kept {
  nb::object place, type, buffer, watch;
  PyObject* value;  // the array's value at that time, borrowed; it may be deleted since
};

// Buffers by array, while the arrays live.
std::unordered_map<PyObject*, Kept>& kept = *new std::unordered_map<PyObject*, Kept>();

// The buffer that was made from an array earlier (borrowed), or null.
PyObject* kept_buffer(const Signature& signature, const Leaf& leaf, PyObject* object) {
  if (!signature.place.is_valid()) return nullptr;
  auto found = kept.find(object);
  if (found == kept.end()) return nullptr;
  const Kept& entry = found->second;
  bool same = entry.place.is(signature.place) && entry.type.is(leaf.type) &&
              entry.value == ref.value.get(object);
  return same ? entry.buffer.ptr() : nullptr;
}

// Append the buffer of a leaf if it matches: its own, a cached one, or a new one.
bool push_buffer(const Signature& signature, Leaf& leaf, PyObject* object, Items& values) {
  if (leaf.kind == Kind::kPlaced) {
    if (!is_placed(leaf, object)) return false;
    values.push_new(ref.buffer.get(object));
    return true;
  }
  if (leaf.kind == Kind::kScalar && object == leaf.number.ptr()) {
    values.push_new(leaf.made.ptr());
    return true;
  }
  if (leaf.kind == Kind::kArray) {
    if (PyObject* buffer = kept_buffer(signature, leaf, object)) {
      values.push_new(buffer);
      return true;
    }
  }
  Items found;
  if (!push_leaf(leaf, object, true, found)) return false;
  if (leaf.kind == Kind::kFixed) return true;
  values.push(checked(call_one_arg(leaf.put.ptr(), object)));
  if (leaf.kind == Kind::kScalar) {
    // Learning rates and the like repeat, and making a buffer takes longer than the call.
    leaf.number = nb::borrow(object);
    leaf.made = nb::borrow(values[values.size() - 1]);
  }
  return true;
}

// Append the value of a leaf if it matches.
bool push_leaf(const Leaf& leaf, PyObject* object, bool takes_arrays, Items& values) {
  switch (leaf.kind) {
    case Kind::kPlaced:
      if (!takes_arrays || !is_placed(leaf, object)) return false;
      values.push_new(object);
      return true;
    case Kind::kArray: {
      if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != ref.array_class) return false;
      PyObject* value = ref.value.get(object);
      if (!value || !PyArray_CheckExact(value) || ref.weak.get(object) != leaf.weak) return false;
      if (!same_array(leaf, value)) return false;
      values.push_new(takes_arrays ? object : value);
      return true;
    }
    case Kind::kNumPy:
      if (!PyArray_CheckExact(object) || !same_array(leaf, object)) return false;
      if (takes_arrays || leaf.dtype.is(leaf.canonical)) {
        values.push_new(object);
      } else {
        values.push(checked(call_one_arg(ref.to_numpy, object)));
      }
      return true;
    case Kind::kOtherArray:
      if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != leaf.cls.ptr()) return false;
      if (takes_arrays) {
        values.push_new(object);
      } else {
        values.push(checked(call_one_arg(ref.to_numpy, object)));
      }
      return true;
    case Kind::kScalar:
      if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != leaf.cls.ptr()) return false;
      if (takes_arrays) {
        values.push_new(object);
      } else {
        values.push(scalar_array(leaf, object).release().ptr());
      }
      return true;
    case Kind::kFixed:
      return reinterpret_cast<PyObject*>(Py_TYPE(object)) == leaf.cls.ptr() &&
             !node_of(Py_TYPE(object)) && equal_fixed(leaf.fixed, object);
  }
  return false;
}

bool match_argument(const Argument& argument, PyObject* object, Items& leaves) {
  if (argument.is_static) return equal_fixed(argument.what, object);
  return flatten_up_to(argument.what.value.ptr(), object, leaves);
}

// Collect the values to run a program on, if it accepts these arguments.
bool match(Signature& signature, long trace_id, PyObject* args, PyObject* kwargs, Items& values) {
  size_t given = kwargs ? (size_t)PyDict_GET_SIZE(kwargs) : 0;
  if (signature.trace_id != trace_id || signature.epoch != epoch ||
      given != signature.named.size() ||
      (size_t)PyTuple_GET_SIZE(args) != signature.positional.size()) {
    return false;
  }
  Items leaves;
  for (size_t i = 0; i < signature.positional.size(); i++) {
    if (!match_argument(signature.positional[i], PyTuple_GET_ITEM(args, (Py_ssize_t)i), leaves)) {
      return false;
    }
  }
  for (const Argument& argument : signature.named) {
    PyObject* object = PyDict_GetItemWithError(kwargs, argument.name.ptr());
    if (!object) {
      if (PyErr_Occurred()) throw Raised();
      return false;
    }
    if (!match_argument(argument, object, leaves)) return false;
  }
  if (leaves.size() != signature.leaves.size()) return false;
  for (const nb::object& value : signature.consts) values.push_new(value.ptr());
  Items unused;
  sizes.clear();
  for (size_t i = 0; i < leaves.size(); i++) {
    Leaf& leaf = signature.leaves[i];
    bool fits;
    if (!leaf.used) {
      fits = push_leaf(leaf, leaves[i], true, unused);
    } else if (signature.takes_buffers) {
      fits = push_buffer(signature, leaf, leaves[i], values);
    } else {
      fits = push_leaf(leaf, leaves[i], signature.takes_arrays, values);
    }
    if (!fits) {
      values.clear();
      return false;
    }
  }
  return true;
}

PyObject* wrap(PyObject* value, PyObject* weak) {
  nb::object kept = nb::steal(value);
  if (reinterpret_cast<PyObject*>(Py_TYPE(value)) == ref.placed_class) {
    return kept.release().ptr();
  }
  if (!PyArray_CheckExact(value)) {
    PyObject* arguments[2] = {value, weak};
    return checked(vectorcall(ref.wrap, arguments, 2, nullptr));
  }
  PyObject* array = blank(ref.array_class);
  ref.value.init(array, kept.release().ptr());
  ref.weak.init(array, Py_NewRef(weak));
  // Numeric arrays are never in reference cycles, so the collector need not track thousands of
  // them.
  PyObject_GC_UnTrack(array);
  return array;
}

PyObject* wrap_buffer(PyObject* buffer, const Result& result, PyObject* weak) {
  PyObject* array = blank(ref.placed_class);
  ref.buffer.init(array, buffer);
  ref.type.init(array, Py_NewRef(result.type.ptr()));
  ref.sharding.init(array, Py_NewRef(result.sharding.ptr()));
  ref.committed.init(array, Py_NewRef(result.committed.ptr()));
  ref.follows.init(array, Py_NewRef(result.follows.ptr()));
  ref.host.init(array, Py_NewRef(Py_None));
  ref.weak.init(array, Py_NewRef(weak));
  PyObject_GC_UnTrack(array);
  return array;
}

// Make the list of results from what a program returned. The cyclic garbage collector is paused
// meanwhile: thousands of new buffers would trigger it repeatedly, and arrays are in no cycle.
nb::object finished(const Signature& signature, PyObject* given) {
  PyObject* arguments[2] = {given, signature.handlers.ptr()};
  int was_on = PyGC_Disable();
  PyObject* list = vectorcall(signature.finish.ptr(), arguments, 2, nullptr);
  for (Py_ssize_t i = 0; list && PyList_Check(list) && i < PyList_GET_SIZE(list); i++) {
    PyObject* buffer = PyList_GET_ITEM(list, i);
    if (PyObject_IS_GC(buffer)) PyObject_GC_UnTrack(buffer);
  }
  if (was_on) PyGC_Enable();
  return owned(list);
}

PyObject* run(const Signature& signature, Items& values) {
  Items results;
  if (is_entry(signature.run.ptr())) {
    run_entry(reinterpret_cast<Entry*>(signature.run.ptr()), values.data(), values.size(), results);
  } else {
    nb::object given =
        nb::steal(signature.takes_arrays ? values.to_tuple() : values.to_list());
    nb::object answer = owned(call_one_arg(signature.run.ptr(), given.ptr()));
    if (signature.finish.is_valid()) answer = finished(signature, answer.ptr());
    if (!PyList_Check(answer.ptr()) ||
        (size_t)PyList_GET_SIZE(answer.ptr()) != signature.weak.size()) {
      PyErr_SetString(PyExc_RuntimeError, "an executable did not return a list of its results");
      throw Raised();
    }
    for (size_t i = 0; i < signature.weak.size(); i++) {
      results.push_new(PyList_GET_ITEM(answer.ptr(), (Py_ssize_t)i));
    }
  }
  size_t count = signature.weak.size() + signature.fixed.size(), next = 0;
  Items outputs;
  auto fixed = signature.fixed.begin();
  for (size_t i = 0; i < count; i++) {
    if (fixed != signature.fixed.end() && fixed->first == i) {
      outputs.push_new(fixed->second.ptr());
      ++fixed;
    } else {
      outputs.push(signature.takes_buffers
                       ? wrap_buffer(results.take(next), signature.results[next],
                                     signature.weak[next])
                       : wrap(results.take(next), signature.weak[next]));
      next++;
    }
  }
  size_t first = 0;
  return unflatten(signature.structure.ptr(), outputs, first);
}

// Hide namoo's own frames in the current exception, as the general path does.
void tidy_error() {
  if (!PyErr_ExceptionMatches(PyExc_Exception) &&
      !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    return;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  PyObject* none = call_one_arg(ref.tidy, value);
  if (!none) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return;
  }
  Py_DECREF(none);
  Py_XDECREF(traceback);
  PyErr_Restore(type, value, PyException_GetTraceback(value));
}

// Reads an attribute that a `threading.local` object has for this thread, or its class for all
// threads, without looking it up each time.
class OfThread {
 public:
  nb::object get(PyObject* local, PyObject* name) {
    // A C++ thread gets a new Python thread state, with a new dict, each time it enters Python.
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    if (thread != thread_) {
      own_ = owned(PyObject_GetAttr(local, name_dict)).ptr();
      thread_ = thread;
    }
    PyObject* found = PyDict_GetItemWithError(own_, name);
    if (found) return nb::borrow(found);
    if (PyErr_Occurred()) throw Raised();
    return owned(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(local)), name));
  }

 private:
  uint64_t thread_ = 0;  // Python counts from 1
  PyObject* own_ = nullptr;
};

// The number of the settings that programs depend on; false if it must be recomputed.
bool current_settings(long& trace_id) {
  thread_local OfThread context, config;
  nb::object trace = context.get(ref.context, name_trace);
  if (trace.ptr() != ref.eval_trace) return false;
  nb::object axes = context.get(ref.context, name_axes);
  if (!PyDict_CheckExact(axes.ptr()) || PyDict_GET_SIZE(axes.ptr()) != 0) return false;
  nb::object known = config.get(ref.config, name_config_trace);
  PyObject* generation = PyDict_GetItemWithError(ref.config_names, name_generation);
  if (!generation || !PyTuple_CheckExact(known.ptr()) || PyTuple_GET_SIZE(known.ptr()) != 3) {
    return false;
  }
  PyObject* seen = PyTuple_GET_ITEM(known.ptr(), 0);
  if (seen != generation && PyObject_RichCompareBool(seen, generation, Py_EQ) != 1) return false;
  trace_id = PyLong_AsLong(PyTuple_GET_ITEM(known.ptr(), 2));
  return trace_id != -1 || !PyErr_Occurred();
}

// Find the program that accepts the arguments, with its values; nothing if the general path must be
// taken.
SignatureRef recognise(PyObject* calls, PyObject* args, PyObject* kwargs, Items& values) {
  auto* table = reinterpret_cast<Calls*>(calls);
  try {
    long trace_id;
    if (!current_settings(trace_id)) return nullptr;
    size_t tried = 0, place = table->hint;
    // Comparing arguments can run any code, which may change the table.
    while (tried < table->signatures->size()) {
      if (place >= table->signatures->size()) place = 0;
      SignatureRef signature = (*table->signatures)[place];
      if (match(*signature, trace_id, args, kwargs, values)) {
        table->hint = place;
        return signature;
      }
      place++;
      tried++;
    }
    return nullptr;
  } catch (Raised&) {
    // The general path raises the same error, with an explanation.
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw;
    PyErr_Clear();
    values.clear();
    return nullptr;
  }
}

PyObject* dispatcher_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    PyObject* calls = reinterpret_cast<Dispatcher*>(self)->calls;
    if (calls && Py_IS_TYPE(calls, calls_type)) {
      nb::object kept = nb::borrow(calls);
      Busy busy;
      Items values;
      SignatureRef signature = recognise(calls, args, kwargs, values);
      if (signature) {
        PyObject* result = guarded([&] { return run(*signature, values); });
        if (!result) tidy_error();
        return checked(result);
      }
    }
    nb::object keywords = kwargs ? nb::borrow(kwargs) : owned(PyDict_New());
    PyObject* arguments[3] = {self, args, keywords.ptr()};
    PyObject* result = vectorcall_method(name_general, arguments, 3, nullptr);
    if (!result) tidy_error();
    return checked(result);
  });
}

int dispatcher_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<Dispatcher*>(self)->calls);
  return 0;
}

int dispatcher_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<Dispatcher*>(self)->calls);
  return 0;
}

void dispatcher_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* type = Py_TYPE(self);
  dispatcher_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef dispatcher_members[] = {
    {"calls", T_OBJECT, offsetof(Dispatcher, calls), 0, "The Calls that are recognised at once."},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot dispatcher_slots[] = {
    {Py_tp_doc, const_cast<char*>("A function whose calls are recognised by `calls`; others go to "
                                  "its method `general(args, kwargs)`.")},
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {Py_tp_call, reinterpret_cast<void*>(dispatcher_call)},
    {Py_tp_traverse, reinterpret_cast<void*>(dispatcher_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(dispatcher_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dispatcher_dealloc)},
    {Py_tp_members, dispatcher_members},
    {0, nullptr},
};

PyType_Spec dispatcher_spec = {
    "namoo._runtime.Dispatcher", sizeof(Dispatcher), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, dispatcher_slots};

PyObject* calls_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<Calls*>(self)->signatures = new std::vector<SignatureRef>();
  return self;
}

int calls_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  auto* signatures = reinterpret_cast<Calls*>(self)->signatures;
  if (!signatures) return 0;
  for (const SignatureRef& signature : *signatures) {
    // Another call holds a reference to it, so its references cannot be counted.
    if (signature.use_count() > 1) continue;
    Py_VISIT(signature->run.ptr());
    Py_VISIT(signature->structure.ptr());
    for (const auto& items : {&signature->positional, &signature->named}) {
      for (const Argument& argument : *items) {
        Py_VISIT(argument.what.value.ptr());
        Py_VISIT(argument.name.ptr());
      }
    }
    for (const Leaf& leaf : signature->leaves) {
      Py_VISIT(leaf.cls.ptr());
      Py_VISIT(leaf.fixed.value.ptr());
    }
    for (const nb::object& value : signature->consts) Py_VISIT(value.ptr());
    for (const auto& item : signature->fixed) Py_VISIT(item.second.ptr());
  }
  return 0;
}

int calls_clear(PyObject* self) {
  auto* calls = reinterpret_cast<Calls*>(self);
  if (calls->signatures) {
    std::vector<SignatureRef> old;
    old.swap(*calls->signatures);
    calls->hint = 0;
  }
  return 0;
}

void calls_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* calls = reinterpret_cast<Calls*>(self);
  PyTypeObject* type = Py_TYPE(self);
  calls_clear(self);
  delete calls->signatures;
  type->tp_free(self);
  Py_DECREF(type);
}

Py_ssize_t calls_length(PyObject* self) {
  return (Py_ssize_t)reinterpret_cast<Calls*>(self)->signatures->size();
}

PyObject* py_clear(PyObject* self, PyObject*) {
  calls_clear(self);
  Py_RETURN_NONE;
}

PyObject* item(PyObject* tuple, Py_ssize_t i) { return checked(PyTuple_GetItem(tuple, i)); }

std::vector<npy_intp> shape_of(PyObject* tuple) {
  std::vector<npy_intp> shape;
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
    shape.push_back((npy_intp)PyLong_AsSsize_t(item(tuple, i)));
  }
  if (PyErr_Occurred()) throw Raised();
  return shape;
}

nb::object dtype_of(PyObject* object) {
  if (!PyArray_DescrCheck(object)) {
    PyErr_Format(PyExc_TypeError, "a NumPy dtype was expected, not %R", object);
    throw Raised();
  }
  return nb::borrow(object);
}

// ('array', shape, dtype, weak, type or None), ('numpy', shape, dtype, canonical), ('other', cls),
// ('scalar', cls, canonical), ('placed', type, sharding) or ('fixed', cls, value, hash or None)
Leaf make_leaf(PyObject* tuple) {
  Leaf leaf;
  const char* kind = PyUnicode_AsUTF8(item(tuple, 0));
  if (!kind) throw Raised();
  if (std::strcmp(kind, "array") == 0) {
    leaf.kind = Kind::kArray;
    leaf.shape = shape_of(item(tuple, 1));
    leaf.dtype = dtype_of(item(tuple, 2));
    leaf.weak = item(tuple, 3) == Py_True ? Py_True : Py_False;
    leaf.type = nb::borrow(item(tuple, 4));
  } else if (std::strcmp(kind, "numpy") == 0) {
    leaf.kind = Kind::kNumPy;
    leaf.shape = shape_of(item(tuple, 1));
    leaf.dtype = dtype_of(item(tuple, 2));
    leaf.canonical = dtype_of(item(tuple, 3));
  } else if (std::strcmp(kind, "placed") == 0) {
    leaf.kind = Kind::kPlaced;
    leaf.type = nb::borrow(item(tuple, 1));
    leaf.sharding = nb::borrow(item(tuple, 2));
  } else if (std::strcmp(kind, "other") == 0) {
    leaf.kind = Kind::kOtherArray;
    leaf.cls = nb::borrow(item(tuple, 1));
  } else if (std::strcmp(kind, "scalar") == 0) {
    leaf.kind = Kind::kScalar;
    leaf.cls = nb::borrow(item(tuple, 1));
    leaf.canonical = dtype_of(item(tuple, 2));
  } else {
    leaf.kind = Kind::kFixed;
    leaf.cls = nb::borrow(item(tuple, 1));
    leaf.fixed = {nb::borrow(item(tuple, 2)), nb::borrow(item(tuple, 3))};
  }
  return leaf;
}

// (is_static, value or structure, name or None, hash or None)
std::vector<Argument> make_arguments(PyObject* given) {
  std::vector<Argument> arguments;
  nb::object items = owned(PySequence_Tuple(given));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.ptr()); i++) {
    PyObject* tuple = item(items.ptr(), i);
    arguments.push_back({item(tuple, 0) == Py_True,
                         {nb::borrow(item(tuple, 1)), nb::borrow(item(tuple, 3))},
                         nb::borrow(item(tuple, 2))});
  }
  return arguments;
}

PyObject* py_add(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"trace_id", "positional", "named", "leaves",    "run",  "takes_arrays",
                                  "consts",   "weak",       "structure", "fixed", "puts",
                                  "results",  "finish",     "place",     "unused", nullptr};
    long trace_id;
    int takes_arrays;
    PyObject *positional, *named, *leaves, *run, *consts, *weak, *structure, *fixed;
    PyObject *puts = Py_None, *results = Py_None, *finish = Py_None, *place = Py_None;
    PyObject* unused = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "lOOOOpOOOO|OOOOO", const_cast<char**>(names),
                                     &trace_id, &positional, &named, &leaves, &run, &takes_arrays,
                                     &consts, &weak, &structure, &fixed, &puts, &results, &finish,
                                     &place, &unused)) {
      throw Raised();
    }
    auto signature = std::make_shared<Signature>();
    signature->trace_id = trace_id;
    signature->epoch = epoch;
    if (finish != Py_None) {
      signature->finish = nb::borrow(item(finish, 0));
      signature->handlers = nb::borrow(item(finish, 1));
    }
    if (place != Py_None) signature->place = nb::borrow(place);
    signature->positional = make_arguments(positional);
    signature->named = make_arguments(named);
    nb::object all_leaves = owned(PySequence_Tuple(leaves));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all_leaves.ptr()); i++) {
      signature->leaves.push_back(make_leaf(item(all_leaves.ptr(), i)));
    }
    nb::object all_unused = owned(unused ? PySequence_Tuple(unused) : PyTuple_New(0));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all_unused.ptr()); i++) {
      size_t number = PyLong_AsSize_t(item(all_unused.ptr(), i));
      if (PyErr_Occurred()) throw Raised();
      signature->leaves.at(number).used = false;
    }
    signature->run = nb::borrow(run);
    signature->takes_arrays = takes_arrays;
    nb::object all_consts = owned(PySequence_Tuple(consts));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all_consts.ptr()); i++) {
      signature->consts.push_back(nb::borrow(item(all_consts.ptr(), i)));
    }
    nb::object all_weak = owned(PySequence_Tuple(weak));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all_weak.ptr()); i++) {
      signature->weak.push_back(item(all_weak.ptr(), i) == Py_True ? Py_True : Py_False);
    }
    signature->structure = nb::borrow(structure);
    nb::object all_fixed = owned(PySequence_Tuple(fixed));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all_fixed.ptr()); i++) {
      PyObject* pair = item(all_fixed.ptr(), i);
      size_t place = PyLong_AsSize_t(item(pair, 0));
      if (PyErr_Occurred()) throw Raised();
      signature->fixed.emplace_back(place, nb::borrow(item(pair, 1)));
    }
    if (count_leaves(structure) != signature->weak.size() + signature->fixed.size()) {
      PyErr_SetString(PyExc_ValueError, "the structure has not as many leaves as there are results");
      throw Raised();
    }
    if (results != Py_None) {
      signature->takes_buffers = true;
      nb::object all_puts = owned(PySequence_Tuple(puts));
      for (size_t i = 0; i < signature->leaves.size(); i++) {
        signature->leaves[i].put = nb::borrow(item(all_puts.ptr(), (Py_ssize_t)i));
      }
      nb::object all_results = owned(PySequence_Tuple(results));
      for (size_t i = 0; i < signature->weak.size(); i++) {
        PyObject* one = item(all_results.ptr(), (Py_ssize_t)i);
        signature->results.push_back({nb::borrow(item(one, 0)), nb::borrow(item(one, 1)),
                                      nb::borrow(item(one, 2)), nb::borrow(item(one, 3))});
      }
    }
    auto* calls = reinterpret_cast<Calls*>(self);
    SignatureRef oldest;
    if (calls->signatures->size() >= kMost) {
      oldest = calls->signatures->front();
      calls->signatures->erase(calls->signatures->begin());
    }
    calls->signatures->push_back(std::move(signature));
    calls->hint = calls->signatures->size() - 1;
    return Py_NewRef(Py_None);
  });
}

PyMethodDef calls_methods[] = {
    {"add", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(py_add)),
     METH_VARARGS | METH_KEYWORDS, "Remembers a program and the arguments that it serves."},
    {"clear", py_clear, METH_NOARGS, "Forgets all programs."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot calls_slots[] = {
    {Py_tp_doc, const_cast<char*>("The programs of a function that were called last.")},
    {Py_tp_new, reinterpret_cast<void*>(calls_new)},
    {Py_tp_traverse, reinterpret_cast<void*>(calls_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(calls_clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(calls_dealloc)},
    {Py_tp_methods, calls_methods},
    {Py_sq_length, reinterpret_cast<void*>(calls_length)},
    {0, nullptr},
};

PyType_Spec calls_spec = {"namoo._runtime.Calls", sizeof(Calls), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
                          calls_slots};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  if (flags & PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError, "arrays are immutable: their memory cannot be written to");
    return -1;
  }
  PyObject* value = PyObject_GetAttr(self, name_value);
  if (!value) return -1;
  try {
    need_numpy();
  } catch (Raised&) {
    Py_DECREF(value);
    return -1;
  }
  if (PyArray_Check(value) &&
      PyDataType_HASFIELDS(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(value)))) {
    Py_DECREF(value);
    PyErr_SetString(PyExc_BufferError, "random keys have no memory to read; see random.key_data");
    return -1;
  }
  int status = PyObject_GetBuffer(value, view, flags);
  Py_DECREF(value);
  if (status == 0) view->readonly = 1;
  return status;
}

PyType_Slot buffered_slots[] = {
    {Py_tp_doc, const_cast<char*>("Gives an array's memory, to be read, to who asks for it.")},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {0, nullptr},
};

PyType_Spec buffered_spec = {"namoo._runtime.Buffered", sizeof(PyObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, buffered_slots};

// bind_call(context, eval_trace, config, config_names, array_class, placed_class, to_numpy, wrap,
//           tidy)
PyObject* py_bind(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    need_numpy();
    Reference given;
    if (!PyArg_ParseTuple(args, "OOOO!OOOOO", &given.context, &given.eval_trace, &given.config,
                          &PyDict_Type, &given.config_names, &given.array_class,
                          &given.placed_class, &given.to_numpy, &given.wrap, &given.tidy)) {
      throw Raised();
    }
    given.value.bind(given.array_class, "_value");
    given.weak.bind(given.array_class, "_weak");
    given.type.bind(given.placed_class, "_type");
    given.sharding.bind(given.placed_class, "_sharding");
    given.buffer.bind(given.placed_class, "_buffer");
    given.committed.bind(given.placed_class, "_committed");
    given.follows.bind(given.placed_class, "_follows");
    given.host.bind(given.placed_class, "_host");
    Py_INCREF(args);  // keeps all of them alive
    ref = given;
    return Py_NewRef(Py_None);
  });
}

// Called when an array with a cached buffer is deallocated.
PyObject* py_gone(PyObject* key, PyObject* watch) {
  auto found = kept.find(static_cast<PyObject*>(PyLong_AsVoidPtr(key)));
  if (found != kept.end() && found->second.watch.ptr() == watch) {
    Kept last = std::move(found->second);  // released after the table is consistent
    kept.erase(found);
  }
  Py_RETURN_NONE;
}

PyMethodDef gone = {"gone", py_gone, METH_O, nullptr};

// keep(array, place, type, buffer)
PyObject* py_keep(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *array, *place, *type, *buffer;
    if (!PyArg_ParseTuple(args, "OOOO", &array, &place, &type, &buffer)) throw Raised();
    if (reinterpret_cast<PyObject*>(Py_TYPE(array)) != ref.array_class) {
      PyErr_SetString(PyExc_TypeError, "only arrays of the host are given buffers");
      throw Raised();
    }
    nb::object key = owned(PyLong_FromVoidPtr(array));
    nb::object callback = owned(PyCFunction_New(&gone, key.ptr()));
    nb::object watch = owned(PyWeakref_NewRef(array, callback.ptr()));
    Kept entry{nb::borrow(place), nb::borrow(type), nb::borrow(buffer), watch,
               ref.value.get(array)};
    std::swap(kept[array], entry);
    return Py_NewRef(Py_None);
  });
}

// kept(array, place)
PyObject* py_kept(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *array, *place;
    if (!PyArg_ParseTuple(args, "OO", &array, &place)) throw Raised();
    auto found = kept.find(array);
    bool same = found != kept.end() && found->second.place.ptr() == place &&
                found->second.value == ref.value.get(array);
    return Py_NewRef(same ? found->second.buffer.ptr() : Py_None);
  });
}

PyObject* py_kept_count(PyObject*, PyObject*) { return PyLong_FromSize_t(kept.size()); }

PyObject* py_forget(PyObject*, PyObject*) {
  epoch++;
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"bind_call", py_bind, METH_VARARGS, "Learns what the path of a call works with."},
    {"keep", py_keep, METH_VARARGS, "Remembers the buffer that an array of the host was given."},
    {"kept", py_kept, METH_VARARGS, "The buffer that an array was given in a place, or None."},
    {"kept_count", py_kept_count, METH_NOARGS, "How many buffers are remembered."},
    {"forget_calls", py_forget, METH_NOARGS, "Lets no call be recognised that was so far."},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject* add_type(nb::module_& m, const char* name, PyType_Spec* spec) {
  PyObject* type = checked(PyType_FromSpec(spec));
  checked(PyModule_AddObjectRef(m.ptr(), name, type));
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

void add_call(nb::module_& m) {
  name_trace = checked(PyUnicode_InternFromString("trace"));
  name_axes = checked(PyUnicode_InternFromString("axes"));
  name_config_trace = checked(PyUnicode_InternFromString("_trace"));
  name_generation = checked(PyUnicode_InternFromString("_generation"));
  name_general = checked(PyUnicode_InternFromString("general"));
  name_value = checked(PyUnicode_InternFromString("_value"));
  name_dict = checked(PyUnicode_InternFromString("__dict__"));
  calls_type = add_type(m, "Calls", &calls_spec);
  add_type(m, "Dispatcher", &dispatcher_spec);
  add_type(m, "Buffered", &buffered_spec);
  checked(PyModule_AddFunctions(m.ptr(), methods));
}

}  // namespace namoo
