// Operators of concrete arrays: recognise two operands that NumPy can compute with directly, call
// it, and wrap the result. The Python twin is `namoo.eager.operators`; all other cases go to the
// general path.
#include "arrays.h"

#include <structmember.h>

namespace namoo {
namespace {

// The arguments of `bind_operators`; they live as long as the module.
struct Reference {
  PyObject* context = nullptr;
  PyObject* eval_trace = nullptr;
  PyObject* config = nullptr;
  PyObject* array_class = nullptr;
  PyObject* errors = nullptr;   // NumPy's context variable of floating-point errors
  PyObject* ignored = nullptr;  // its value while they are ignored
  Slot value, weak;
} ref;

PyObject *name_trace, *name_ranks, *allow;

struct Operator {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* compute;
  PyObject* setting;  // a name; or None
  PyObject* general;
  PyObject* kinds;
  PyObject* scalars;
  PyArray_Descr* met;  // the dtype whose Python numbers were looked up last
  PyObject* numbers;   // their types
  bool swap;
};

bool is(PyObject* owner, PyObject* name, PyObject* wanted) {
  nb::object found = owned(PyObject_GetAttr(owner, name));
  int equal = PyObject_RichCompareBool(found.ptr(), wanted, Py_EQ);
  checked(equal);
  return equal != 0;
}

PyArrayObject* array_of(PyObject* operand) {
  PyObject* value = ref.value.get(operand);
  return value && PyArray_CheckExact(value) ? reinterpret_cast<PyArrayObject*>(value) : nullptr;
}

// Whether a Python number takes the dtype of the other operand, and fits.
bool takes(Operator* self, PyArray_Descr* descr, PyObject* number) {
  if (!PyFloat_CheckExact(number) && !PyLong_CheckExact(number)) return false;
  if (self->met != descr) {
    PyObject* dtype = reinterpret_cast<PyObject*>(descr);
    PyObject* found = PyDict_GetItemWithError(self->scalars, dtype);
    if (!found && PyErr_Occurred()) throw Raised();
    PyObject* before = self->numbers;
    PyArray_Descr* met = self->met;
    self->numbers = Py_XNewRef(found);
    self->met = reinterpret_cast<PyArray_Descr*>(Py_NewRef(dtype));
    Py_XDECREF(before);
    Py_XDECREF(met);
  }
  if (!self->numbers) return false;
  int known = PySet_Contains(self->numbers, reinterpret_cast<PyObject*>(Py_TYPE(number)));
  checked(known);
  if (!known || PyFloat_CheckExact(number)) return known != 0;
  int overflow;
  long value = PyLong_AsLongAndOverflow(number, &overflow);
  return !overflow && value >= INT32_MIN && value <= INT32_MAX;
}

// The result, or nothing if the general path must be taken.
PyObject* quick(Operator* self, PyObject* x, PyObject* y) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(x)) != ref.array_class) return nullptr;
  PyArrayObject* a = array_of(x);
  if (!a) return nullptr;
  PyArray_Descr* descr = PyArray_DESCR(a);
  PyObject *other = y, *weak = ref.weak.get(x);
  if (reinterpret_cast<PyObject*>(Py_TYPE(y)) == ref.array_class) {
    PyArrayObject* b = array_of(y);
    if (!b || PyArray_DESCR(b) != descr ||
        PyUnicode_FindChar(self->kinds, (Py_UCS4)descr->kind, 0, PyUnicode_GET_LENGTH(self->kinds),
                           1) < 0) {
      return nullptr;
    }
    int rank = PyArray_NDIM(a), other_rank = PyArray_NDIM(b);
    if (rank != other_rank && rank && other_rank && !is(ref.config, name_ranks, allow)) {
      return nullptr;
    }
    other = reinterpret_cast<PyObject*>(b);
    if (weak == Py_True) weak = ref.weak.get(y);
  } else if (!takes(self, descr, y)) {
    return nullptr;
  }
  nb::object trace = owned(PyObject_GetAttr(ref.context, name_trace));
  if (trace.ptr() != ref.eval_trace) return nullptr;
  if (self->setting != Py_None && !is(ref.config, self->setting, Py_None)) return nullptr;
  // The caller holds the only references, and other code may run from here on.
  nb::object left = nb::borrow(reinterpret_cast<PyObject*>(a)), right = nb::borrow(other);
  // Promoting booleans makes them strongly typed.
  nb::object flag = nb::borrow(descr->kind == 'b' ? Py_False : weak);
  nb::object token = owned(PyContextVar_Set(ref.errors, ref.ignored));
  PyObject* arguments[2] = {left.ptr(), right.ptr()};
  if (self->swap) std::swap(arguments[0], arguments[1]);
  nb::object out = nb::steal(vectorcall(self->compute, arguments, 2, nullptr));
  if (!out.is_valid()) {
    // Shapes that do not fit: the general path raises the error.
    bool shapes = PyErr_ExceptionMatches(PyExc_ValueError);
    nb::python_error error;
    checked(PyContextVar_Reset(ref.errors, token.ptr()));
    if (shapes) return nullptr;
    throw error;
  }
  checked(PyContextVar_Reset(ref.errors, token.ptr()));
  if (out.is_none()) return nullptr;
  if (!PyArray_CheckExact(out.ptr())) out = owned(PyArray_EnsureArray(out.release().ptr()));
  PyObject* result = blank(ref.array_class);
  ref.value.init(result, out.release().ptr());
  ref.weak.init(result, flag.release().ptr());
  // Numeric arrays are never in reference cycles, so the collector need not track them.
  PyObject_GC_UnTrack(result);
  return result;
}

PyObject* operator_call(PyObject* object, PyObject* const* args, size_t flags, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    auto* self = reinterpret_cast<Operator*>(object);
    if (PyVectorcall_NARGS(flags) == 2 && !kwnames) {
      PyObject* result = quick(self, args[0], args[1]);
      if (result) return result;
    }
    return vectorcall(self->general, args, flags, kwnames);
  });
}

PyObject* operator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"compute", "setting", "general", "kinds", "scalars", "swap",
                                  nullptr};
    PyObject *compute, *setting, *general, *kinds, *scalars;
    int swap = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOUO!|p", const_cast<char**>(names), &compute,
                                     &setting, &general, &kinds, &PyDict_Type, &scalars, &swap)) {
      throw Raised();
    }
    if (!ref.context) {
      PyErr_SetString(PyExc_RuntimeError, "bind_operators comes first");
      throw Raised();
    }
    PyObject* object = checked(type->tp_alloc(type, 0));
    auto* self = reinterpret_cast<Operator*>(object);
    self->vectorcall = operator_call;
    self->compute = Py_NewRef(compute);
    self->general = Py_NewRef(general);
    self->kinds = Py_NewRef(kinds);
    self->scalars = Py_NewRef(scalars);
    self->setting = Py_NewRef(setting);
    self->swap = swap != 0;
    return object;
  });
}

PyObject* operator_get(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

int operator_traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<Operator*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->compute);
  Py_VISIT(self->general);
  Py_VISIT(self->scalars);
  return 0;
}

int operator_clear(PyObject* object) {
  // A later call raises an error, because None is not callable.
  auto* self = reinterpret_cast<Operator*>(object);
  PyObject* general = self->general;
  self->general = Py_NewRef(Py_None);
  Py_XDECREF(general);
  return 0;
}

void operator_dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  auto* self = reinterpret_cast<Operator*>(object);
  PyTypeObject* type = Py_TYPE(object);
  Py_XDECREF(self->compute);
  Py_XDECREF(self->general);
  Py_XDECREF(self->kinds);
  Py_XDECREF(self->scalars);
  Py_XDECREF(self->setting);
  Py_XDECREF(self->met);
  Py_XDECREF(self->numbers);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* operator_name(PyObject* self, void* name) {
  return PyObject_GetAttrString(reinterpret_cast<Operator*>(self)->general,
                                static_cast<const char*>(name));
}

PyGetSetDef operator_getters[] = {
    {"__name__", operator_name, nullptr, nullptr, const_cast<char*>("__name__")},
    {"__qualname__", operator_name, nullptr, nullptr, const_cast<char*>("__qualname__")},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef operator_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Operator, vectorcall), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(Operator, general), READONLY, "The general function."},
    {nullptr, 0, 0, 0, nullptr},
};

constexpr const char* kOperatorDoc =
    "Operator(compute, setting, general, kinds, scalars, swap=False)\n--\n\n"
    "An operator of arrays, with a short way for two concrete operands that NumPy computes with.\n\n"
    "Args:\n"
    "  compute: what takes two NumPy arrays, or one and a Python number; None leaves the work.\n"
    "  setting: the name of a setting whose value must be None for that; or None.\n"
    "  general: what does all else.\n"
    "  kinds: the kinds of dtypes that `compute` takes.\n"
    "  scalars: which types of Python numbers take which dtype.\n"
    "  swap: `compute` takes the operands in the other order.\n";

PyType_Slot operator_slots[] = {
    {Py_tp_doc, const_cast<char*>(kOperatorDoc)},
    {Py_tp_new, reinterpret_cast<void*>(operator_new)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(operator_get)},
    {Py_tp_dealloc, reinterpret_cast<void*>(operator_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(operator_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(operator_clear)},
    {Py_tp_members, operator_members},
    {Py_tp_getset, operator_getters},
    {0, nullptr},
};

PyType_Spec operator_spec = {
    "namoo._runtime.Operator", sizeof(Operator), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
        Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE,
    operator_slots};

// bind_operators(context, eval_trace, config, array_class, errors, ignored)
PyObject* py_bind(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    need_numpy();
    Reference given;
    if (!PyArg_ParseTuple(args, "OOOOO!O", &given.context, &given.eval_trace, &given.config,
                          &given.array_class, &PyContextVar_Type, &given.errors, &given.ignored)) {
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
    {"bind_operators", py_bind, METH_VARARGS, "Learns what operators of arrays work with."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_operators(nb::module_& m) {
  name_trace = checked(PyUnicode_InternFromString("trace"));
  name_ranks = checked(PyUnicode_InternFromString("numpy_rank_promotion"));
  allow = checked(PyUnicode_InternFromString("allow"));
  PyObject* type = checked(PyType_FromSpec(&operator_spec));
  checked(PyModule_AddObjectRef(m.ptr(), "Operator", type));
  checked(PyModule_AddFunctions(m.ptr(), methods));
}

}  // namespace namoo
