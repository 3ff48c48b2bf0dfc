// Calls of library functions that were made before with the same types: find the program of the
// call, run it on NumPy arrays, and wrap the results. The Python twin is in `namoo.eager.repeated`.
#include "arrays.h"

namespace namoo {
namespace {

// The arguments of `bind_repeated`; they live as long as the module.
struct Reference {
  PyObject* array_class = nullptr;
  PyObject* errors = nullptr;   // NumPy's context variable of floating-point errors
  PyObject* ignored = nullptr;  // its value while they are ignored
  Slot value, weak;
} ref;

// What decides the program of a call, as bytes: types of arrays, and other arguments themselves.
class Key {
 public:
  template <typename T>
  bool put(T number) {
    return put(&number, sizeof number);
  }
  bool put(const void* from, size_t count) {
    if (count > sizeof bytes_ - size_) return false;
    if (count) std::memcpy(bytes_ + size_, from, count);  // an array without axes has no lengths
    size_ += count;
    return true;
  }
  PyObject* to_bytes() const {
    return checked(PyBytes_FromStringAndSize(bytes_, (Py_ssize_t)size_));
  }

 private:
  char bytes_[512];
  size_t size_ = 0;
};

bool put_text(Key& key, PyObject* text) {
  Py_ssize_t length;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &length);
  checked(bytes ? 0 : -1);
  return key.put('S') && key.put(length) && key.put(bytes, (size_t)length);
}

bool put_array(Key& key, PyObject* x, Items& values) {
  PyObject* value = ref.value.get(x);
  if (!value || !PyArray_CheckExact(value)) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  PyArray_Descr* descr = PyArray_DESCR(array);
  // The number of a type is not enough for one that has parts, a length, or another byte order.
  if (PyTypeNum_ISFLEXIBLE(descr->type_num) || !PyArray_ISNBO(descr->byteorder)) return false;
  values.push_new(value);
  int rank = PyArray_NDIM(array);
  return key.put('A') && key.put(descr->type_num) && key.put(ref.weak.get(x) == Py_True) &&
         key.put(rank) && key.put(PyArray_DIMS(array), (size_t)rank * sizeof(npy_intp));
}

// Append an argument to the key, and the arrays in it to the values; false if it cannot be compared.
bool put_argument(Key& key, PyObject* x, Items& values) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(x)) == ref.array_class) return put_array(key, x, values);
  if (x == Py_None) return key.put('N');
  if (x == Py_True) return key.put('T');
  if (x == Py_False) return key.put('F');
  if (x == Py_Ellipsis) return key.put('E');
  if (PyFloat_CheckExact(x)) return key.put('D') && key.put(PyFloat_AS_DOUBLE(x));
  if (PyLong_CheckExact(x)) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(x, &overflow);
    return !overflow && key.put('I') && key.put(number);
  }
  if (PyUnicode_CheckExact(x)) return put_text(key, x);
  if (PyTuple_CheckExact(x) || PyList_CheckExact(x)) {
    Py_ssize_t count = PySequence_Fast_GET_SIZE(x);
    if (!key.put(PyTuple_CheckExact(x) ? '(' : '[') || !key.put(count)) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
      if (!put_argument(key, PySequence_Fast_GET_ITEM(x, i), values)) return false;
    }
    return true;
  }
  return false;
}

bool put_call(Key& key, PyObject* args, PyObject* options, Items& values) {
  if (!key.put(PyTuple_GET_SIZE(args))) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
    if (!put_argument(key, PyTuple_GET_ITEM(args, i), values)) return false;
  }
  PyObject *name, *x;
  Py_ssize_t position = 0;
  while (PyDict_Next(options, &position, &name, &x)) {
    if (!put_text(key, name) || !put_argument(key, x, values)) return false;
  }
  return true;
}

PyObject* wrapped(PyObject* value, PyObject* weak) {
  nb::object array = nb::borrow(value);
  if (!PyArray_CheckExact(value)) array = owned(PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr));
  PyObject* result = blank(ref.array_class);
  ref.value.init(result, array.release().ptr());
  ref.weak.init(result, Py_NewRef(weak));
  // Numeric arrays are never in reference cycles, so the collector need not track them.
  PyObject_GC_UnTrack(result);
  return result;
}

// Run a program; `entry` has a function of NumPy arrays, the weak types of its results, and what
// makes the result of the call from their list, or None for a single array.
PyObject* run(PyObject* entry, Items& values) {
  nb::object known = nb::borrow(entry);  // the function may clear the table
  PyObject *compute, *weak, *finish;
  if (!PyArg_ParseTuple(entry, "OO!O", &compute, &PyTuple_Type, &weak, &finish)) throw Raised();
  nb::object token = owned(PyContextVar_Set(ref.errors, ref.ignored));
  nb::object outs = nb::steal(vectorcall(compute, values.data(), values.size(), nullptr));
  if (!outs.is_valid()) {
    nb::python_error error;
    checked(PyContextVar_Reset(ref.errors, token.ptr()));
    throw error;
  }
  checked(PyContextVar_Reset(ref.errors, token.ptr()));
  if (!PyList_CheckExact(outs.ptr()) || PyList_GET_SIZE(outs.ptr()) != PyTuple_GET_SIZE(weak)) {
    PyErr_SetString(PyExc_RuntimeError, "a program returned another number of results");
    throw Raised();
  }
  Items results;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(weak); i++) {
    results.push(wrapped(PyList_GET_ITEM(outs.ptr(), i), PyTuple_GET_ITEM(weak, i)));
  }
  if (finish == Py_None) return results.take(0);
  nb::object list = nb::steal(results.to_list());
  return checked(call_one_arg(finish, list.ptr()));
}

// run_repeated(programs, function, settings, args, options)
PyObject* py_run(PyObject*, PyObject* const* given, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 5 || !PyDict_CheckExact(given[0]) || !PyLong_CheckExact(given[1]) ||
        !PyLong_CheckExact(given[2]) || !PyTuple_CheckExact(given[3]) ||
        !PyDict_CheckExact(given[4]) || !ref.array_class) {
      PyErr_SetString(PyExc_TypeError, "run_repeated takes a table, two numbers and a call");
      throw Raised();
    }
    Key key;
    Items values;
    key.put(PyLong_AsLong(given[1]));
    key.put(PyLong_AsLong(given[2]));
    if (!put_call(key, given[3], given[4], values)) Py_RETURN_NONE;
    nb::object name = nb::steal(key.to_bytes());
    PyObject* entry = PyDict_GetItemWithError(given[0], name.ptr());
    if (!entry && PyErr_Occurred()) throw Raised();
    if (!entry) return name.release().ptr();
    if (entry == Py_None) Py_RETURN_NONE;
    return run(entry, values);
  });
}

// bind_repeated(array_class, errors, ignored)
PyObject* py_bind(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    need_numpy();
    Reference given;
    if (!PyArg_ParseTuple(args, "OO!O", &given.array_class, &PyContextVar_Type, &given.errors,
                          &given.ignored)) {
      throw Raised();
    }
    given.value.bind(given.array_class, "_value");
    given.weak.bind(given.array_class, "_weak");
    Py_INCREF(args);  // keeps all of them alive
    ref = given;
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {
    {"bind_repeated", py_bind, METH_VARARGS, "Learns what repeated calls work with."},
    {"run_repeated", reinterpret_cast<PyCFunction>(py_run), METH_FASTCALL,
     "run_repeated(programs, function, settings, args, options, /)\n--\n\n"
     "The result of a call whose program is in the table; the key of a call that has none yet; None\n"
     "where the general function must run."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_repeated(nb::module_& m) { checked(PyModule_AddFunctions(m.ptr(), methods)); }

}  // namespace namoo
