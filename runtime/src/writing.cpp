// Equations that are written down again on other operands, many at a time: what
// `namoo.transforms.stage.written` does in Python.
#include "common.h"

namespace namoo {
namespace {

// What `bind_writing` was given; it lives as long as the module.
struct Reference {
  PyObject* tracer_class = nullptr;
  PyObject* var_class = nullptr;
  PyObject* eqn_class = nullptr;
  PyObject* literal_value = nullptr;
  Slot trace, var, aval;                            // of a tracer
  Slot var_aval;                                    // of a variable
  Slot invars, outvars, primitive, params, source;  // of an equation
} ref;

PyObject *name_atom, *name_eqns;

PyObject* item(PyObject* tuple, Py_ssize_t i) { return PyTuple_GET_ITEM(tuple, i); }

size_t place(PyObject* number, size_t count) {
  size_t i = PyLong_AsSize_t(number);
  if (i == (size_t)-1 && PyErr_Occurred()) throw Raised();
  if (i >= count) {
    PyErr_SetString(PyExc_IndexError, "a place that the program does not have");
    throw Raised();
  }
  return i;
}

// The caller keeps the form of a program, and tuples do not change: what is borrowed stays.
PyObject* tuple_at(PyObject* tuple, Py_ssize_t i, Py_ssize_t size = -1) {
  PyObject* found = item(tuple, i);
  if (!PyTuple_CheckExact(found) || (size >= 0 && PyTuple_GET_SIZE(found) != size)) {
    PyErr_SetString(PyExc_TypeError, "not the form of a program");
    throw Raised();
  }
  return found;
}

PyObject* new_var(PyObject* aval) {
  PyObject* var = blank(ref.var_class);
  ref.var_aval.init(var, Py_NewRef(aval));
  // Types are in no cycle: the collector, which would look at thousands of variables, need not.
  PyObject_GC_UnTrack(var);
  return var;
}

PyObject* new_tracer(PyObject* trace, PyObject* var) {
  PyObject* tracer = blank(ref.tracer_class);
  ref.trace.init(tracer, Py_NewRef(trace));
  ref.var.init(tracer, Py_NewRef(var));
  ref.aval.init(tracer, Py_NewRef(ref.var_aval.get(var)));
  return tracer;
}

// written(trace, form, values, source)
PyObject* py_written(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 4 || !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != 4 ||
        !ref.tracer_class) {
      PyErr_SetString(PyExc_TypeError, "written(trace, form, values, source), after bind_writing");
      throw Raised();
    }
    PyObject *trace = args[0], *form = args[1], *source = args[3];
    PyObject *inputs = tuple_at(form, 0), *literals = tuple_at(form, 1);
    PyObject *steps = tuple_at(form, 2), *results = tuple_at(form, 3);
    nb::object values = owned(PySequence_Fast(args[2], "values are a sequence"));

    Items atoms;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
      size_t size = (size_t)PySequence_Fast_GET_SIZE(values.ptr());
      PyObject* x =
          PySequence_Fast_GET_ITEM(values.ptr(), (Py_ssize_t)place(item(inputs, i), size));
      if (reinterpret_cast<PyObject*>(Py_TYPE(x)) == ref.tracer_class && ref.trace.get(x) == trace) {
        atoms.push_new(ref.var.get(x));
      } else {
        nb::object value = nb::borrow(x);
        atoms.push(checked(PyObject_CallMethodOneArg(trace, name_atom, x)));
      }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(literals); i++) atoms.push_new(item(literals, i));

    nb::object eqns = owned(PyObject_GetAttr(trace, name_eqns));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); i++) {
      PyObject* step = tuple_at(steps, i, 4);
      PyObject *places = tuple_at(step, 0), *avals = tuple_at(step, 1);
      nb::object eqn = nb::steal(blank(ref.eqn_class));
      PyObject* invars = checked(PyList_New(PyTuple_GET_SIZE(places)));
      ref.invars.init(eqn.ptr(), invars);
      for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(places); j++) {
        PyList_SET_ITEM(invars, j, Py_NewRef(atoms[place(item(places, j), atoms.size())]));
      }
      PyObject* outvars = checked(PyList_New(PyTuple_GET_SIZE(avals)));
      ref.outvars.init(eqn.ptr(), outvars);
      for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(avals); j++) {
        PyObject* var = new_var(item(avals, j));
        PyList_SET_ITEM(outvars, j, var);
        atoms.push_new(var);
      }
      ref.primitive.init(eqn.ptr(), Py_NewRef(item(step, 2)));
      ref.params.init(eqn.ptr(), Py_NewRef(item(step, 3)));
      ref.source.init(eqn.ptr(), Py_NewRef(source));
      checked(PyList_Append(eqns.ptr(), eqn.ptr()));
    }

    Items outs;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results); i++) {
      PyObject* atom = atoms[place(item(results, i), atoms.size())];
      bool is_var = reinterpret_cast<PyObject*>(Py_TYPE(atom)) == ref.var_class;
      outs.push(is_var ? new_tracer(trace, atom)
                       : checked(PyObject_CallOneArg(ref.literal_value, atom)));
    }
    return outs.to_list();
  });
}

// bind_writing(tracer_class, var_class, eqn_class, literal_value)
PyObject* py_bind(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Reference given;
    if (!PyArg_ParseTuple(args, "OOOO", &given.tracer_class, &given.var_class, &given.eqn_class,
                          &given.literal_value)) {
      throw Raised();
    }
    given.trace.bind(given.tracer_class, "_trace");
    given.var.bind(given.tracer_class, "_var");
    given.aval.bind(given.tracer_class, "aval");
    given.var_aval.bind(given.var_class, "aval");
    given.invars.bind(given.eqn_class, "invars");
    given.outvars.bind(given.eqn_class, "outvars");
    given.primitive.bind(given.eqn_class, "primitive");
    given.params.bind(given.eqn_class, "params");
    given.source.bind(given.eqn_class, "source");
    Py_INCREF(args);  // keeps all of them
    ref = given;
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {
    {"bind_writing", py_bind, METH_VARARGS, "Learns of what classes equations are."},
    {"written", reinterpret_cast<PyCFunction>(py_written), METH_FASTCALL,
     "written(trace, form, values, source)\n--\n\n"
     "Write equations down on other operands, and return the results."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_writing(nb::module_& m) {
  name_atom = checked(PyUnicode_InternFromString("atom"));
  name_eqns = checked(PyUnicode_InternFromString("eqns"));
  checked(PyModule_AddFunctions(m.ptr(), methods));
}

}  // namespace namoo
