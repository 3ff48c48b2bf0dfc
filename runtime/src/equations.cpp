// Walks over the equations of a program, of which there may be thousands. Each has a Python twin:
// `live` and `unread` in `namoo.analysis.dead_code`, `written` (`append_equations`) in
// `namoo.memo.replay`, `numbered` in `namoo.engines.native.cache.fingerprint`.
#include <unordered_map>
#include <vector>

#include "common.h"

namespace namoo {
namespace {

// The arguments of `bind_equations`; they live as long as the module.
struct Equations {
  PyObject* var_class = nullptr;
  PyObject* eqn_class = nullptr;
  Slot aval;                                        // of a variable
  Slot invars, outvars, primitive, params, source;  // of an equation
} ref;

// The arguments of `bind_writing`.
struct Writing {
  PyObject* tracer_class = nullptr;
  PyObject* literal_value = nullptr;
  Slot trace, var, aval;  // of a tracer
} own;

PyObject *name_atom, *name_eqns, *name_effectful;

[[noreturn]] void refuse(const char* message) {
  PyErr_SetString(PyExc_TypeError, message);
  throw Raised();
}

bool is_a(PyObject* object, PyObject* cls) {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(cls));
}

PyObject* list_of(PyObject* object) {
  if (!object || !PyList_CheckExact(object)) refuse("not a list of a program");
  return object;
}

// The content of a slot as a new reference: Python may run before it is used.
nb::object field(const Slot& slot, PyObject* object) {
  PyObject* value = slot.get(object);
  if (!value) refuse("a part of a program that was not filled in");
  return nb::borrow(value);
}

// An equation as a new reference: the caller's list may drop it while Python runs.
nb::object equation(PyObject* list, Py_ssize_t i) {
  nb::object eqn = nb::borrow(PyList_GET_ITEM(list, i));
  if (!is_a(eqn.ptr(), ref.eqn_class)) refuse("not an equation");
  return eqn;
}

bool contains(PyObject* set, PyObject* item) {
  int found = PySet_Contains(set, item);
  checked(found);
  return found;
}

void add_all(PyObject* set, PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
    checked(PySet_Add(set, PyList_GET_ITEM(list, i)));
  }
}

// live(eqns, read): atoms have the hash of plain objects, so no Python runs here except
// `effectful`.
PyObject* py_live(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2 || !PySet_CheckExact(args[1]) || !ref.eqn_class) {
      refuse("live(eqns, read), after bind_equations");
    }
    PyObject *eqns = list_of(args[0]), *read = args[1];
    Items found;
    for (Py_ssize_t i = PyList_GET_SIZE(eqns); i-- > 0;) {
      if (i >= PyList_GET_SIZE(eqns)) continue;
      nb::object eqn = equation(eqns, i);
      PyObject* outvars = list_of(ref.outvars.get(eqn.ptr()));
      bool needed = false;
      for (Py_ssize_t j = 0; j < PyList_GET_SIZE(outvars) && !needed; j++) {
        needed = contains(read, PyList_GET_ITEM(outvars, j));
      }
      if (!needed) {
        nb::object effectful = owned(PyObject_GetAttr(eqn.ptr(), name_effectful));
        int truth = PyObject_IsTrue(effectful.ptr());
        checked(truth);
        needed = truth;
      }
      if (!needed) continue;
      add_all(read, list_of(ref.invars.get(eqn.ptr())));
      found.push(eqn.release().ptr());
    }
    nb::object list = owned(found.to_list());
    checked(PyList_Reverse(list.ptr()));
    return list.release().ptr();
  });
}

// unread(eqns, used)
PyObject* py_unread(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 2 || !PySet_CheckExact(args[1]) || !ref.eqn_class) {
      refuse("unread(eqns, used), after bind_equations");
    }
    PyObject *eqns = list_of(args[0]), *used = args[1];
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(eqns); i++) {
      add_all(used, list_of(ref.invars.get(equation(eqns, i).ptr())));
    }
    Items found;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(eqns); i++) {
      PyObject* outvars = list_of(ref.outvars.get(equation(eqns, i).ptr()));
      for (Py_ssize_t j = 0; j < PyList_GET_SIZE(outvars); j++) {
        if (contains(used, PyList_GET_ITEM(outvars, j))) continue;
        found.push(checked(PyLong_FromSsize_t(i)));
        break;
      }
    }
    return found.to_list();
  });
}

int number_of(PyObject* function, PyObject* argument) {
  nb::object answer = owned(call_one_arg(function, argument));
  int overflow;
  long number = PyLong_AsLongAndOverflow(answer.ptr(), &overflow);
  if (number == -1 && PyErr_Occurred()) throw Raised();
  if (overflow || number != (int)number) refuse("a number that is too large");
  return (int)number;
}

// numbered(inputs, eqns, outputs, operation, kind, literal): each function is called once per
// object; the objects live as long as the lists.
PyObject* py_numbered(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 6 || !ref.eqn_class) refuse("numbered takes six arguments, after bind_equations");
    PyObject *inputs = list_of(args[0]), *eqns = list_of(args[1]), *outputs = list_of(args[2]);
    PyObject *operation = args[3], *kind = args[4], *literal = args[5];
    std::vector<int> words;
    std::unordered_map<PyObject*, int> atoms, kinds;
    // Copies of an equation share their parameters.
    std::unordered_map<PyObject*, std::pair<PyObject*, int>> operations;

    auto declare = [&](PyObject* variables) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(variables); i++) {
        PyObject* v = PyList_GET_ITEM(variables, i);
        if (!is_a(v, ref.var_class)) refuse("not a variable");
        atoms[v] = (int)words.size();
        nb::object aval = field(ref.aval, v);
        auto known = kinds.find(aval.ptr());
        if (known == kinds.end()) known = kinds.emplace(aval.ptr(), number_of(kind, aval.ptr())).first;
        words.push_back(known->second);
      }
    };
    auto read = [&](PyObject* given) {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); i++) {
        nb::object a = nb::borrow(PyList_GET_ITEM(given, i));
        auto known = atoms.find(a.ptr());
        if (known == atoms.end()) known = atoms.emplace(a.ptr(), number_of(literal, a.ptr())).first;
        words.push_back(known->second);
      }
    };

    declare(inputs);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(eqns); i++) {
      nb::object eqn = equation(eqns, i);
      nb::object primitive = field(ref.primitive, eqn.ptr()), params = field(ref.params, eqn.ptr());
      bool plain = PyDict_CheckExact(params.ptr()) && PyDict_GET_SIZE(params.ptr()) == 0;
      auto& known = operations[(plain ? primitive : params).ptr()];
      if (known.first != primitive.ptr()) {
        known = {primitive.ptr(), number_of(operation, eqn.ptr())};
      }
      words.push_back(known.second);
      read(list_of(ref.invars.get(eqn.ptr())));
      declare(list_of(ref.outvars.get(eqn.ptr())));
    }
    read(outputs);
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(words.data()),
                                     (Py_ssize_t)(words.size() * sizeof(int)));
  });
}

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

// The caller keeps the program alive, and tuples are immutable, so borrowed references are safe.
PyObject* tuple_at(PyObject* tuple, Py_ssize_t i, Py_ssize_t size = -1) {
  PyObject* found = item(tuple, i);
  if (!PyTuple_CheckExact(found) || (size >= 0 && PyTuple_GET_SIZE(found) != size)) {
    refuse("not the form of a program");
  }
  return found;
}

// Types, variables and lists of them are in no reference cycle, so the collector need not track
// thousands of them.
PyObject* new_var(PyObject* aval) {
  PyObject* var = blank(ref.var_class);
  ref.aval.init(var, Py_NewRef(aval));
  PyObject_GC_UnTrack(var);
  return var;
}

PyObject* new_atoms(Py_ssize_t size) {
  PyObject* list = checked(PyList_New(size));
  PyObject_GC_UnTrack(list);
  return list;
}

PyObject* new_tracer(PyObject* trace, PyObject* var) {
  PyObject* tracer = blank(own.tracer_class);
  own.trace.init(tracer, Py_NewRef(trace));
  own.var.init(tracer, Py_NewRef(var));
  own.aval.init(tracer, Py_NewRef(ref.aval.get(var)));
  return tracer;
}

// written(trace, form, values, source)
PyObject* py_written(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    if (count != 4 || !PyTuple_CheckExact(args[1]) || PyTuple_GET_SIZE(args[1]) != 4 ||
        !ref.eqn_class || !own.tracer_class) {
      refuse("written(trace, form, values, source), after bind_equations and bind_writing");
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
      if (reinterpret_cast<PyObject*>(Py_TYPE(x)) == own.tracer_class && own.trace.get(x) == trace) {
        atoms.push(field(own.var, x).release().ptr());
      } else {
        nb::object value = nb::borrow(x);
        atoms.push(checked(call_method_one_arg(trace, name_atom, x)));
      }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(literals); i++) atoms.push_new(item(literals, i));

    nb::object eqns = owned(PyObject_GetAttr(trace, name_eqns));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); i++) {
      PyObject* step = tuple_at(steps, i, 4);
      PyObject *places = tuple_at(step, 0), *avals = tuple_at(step, 1);
      nb::object eqn = nb::steal(blank(ref.eqn_class));
      PyObject* invars = new_atoms(PyTuple_GET_SIZE(places));
      ref.invars.init(eqn.ptr(), invars);
      for (Py_ssize_t j = 0; j < PyTuple_GET_SIZE(places); j++) {
        PyList_SET_ITEM(invars, j, Py_NewRef(atoms[place(item(places, j), atoms.size())]));
      }
      PyObject* outvars = new_atoms(PyTuple_GET_SIZE(avals));
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
                       : checked(call_one_arg(own.literal_value, atom)));
    }
    return outs.to_list();
  });
}

// bind_equations(var_class, eqn_class)
PyObject* py_bind_equations(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Equations given;
    if (!PyArg_ParseTuple(args, "OO", &given.var_class, &given.eqn_class)) throw Raised();
    given.aval.bind(given.var_class, "aval");
    given.invars.bind(given.eqn_class, "invars");
    given.outvars.bind(given.eqn_class, "outvars");
    given.primitive.bind(given.eqn_class, "primitive");
    given.params.bind(given.eqn_class, "params");
    given.source.bind(given.eqn_class, "source");
    Py_INCREF(args);  // keeps all of them alive
    ref = given;
    return Py_NewRef(Py_None);
  });
}

// bind_writing(tracer_class, literal_value)
PyObject* py_bind_writing(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Writing given;
    if (!PyArg_ParseTuple(args, "OO", &given.tracer_class, &given.literal_value)) throw Raised();
    given.trace.bind(given.tracer_class, "_trace");
    given.var.bind(given.tracer_class, "_var");
    given.aval.bind(given.tracer_class, "aval");
    Py_INCREF(args);
    own = given;
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {
    {"bind_equations", py_bind_equations, METH_VARARGS, "Learns of what classes equations are."},
    {"bind_writing", py_bind_writing, METH_VARARGS, "Learns how values are traced."},
    {"live", reinterpret_cast<PyCFunction>(py_live), METH_FASTCALL,
     "live(eqns, read)\n--\n\n"
     "The equations that compute what is read, or have effects; adds to `read` what they read."},
    {"unread", reinterpret_cast<PyCFunction>(py_unread), METH_FASTCALL,
     "unread(eqns, used)\n--\n\n"
     "Where equations with unused results are; adds to `used` what equations read."},
    {"numbered", reinterpret_cast<PyCFunction>(py_numbered), METH_FASTCALL,
     "numbered(inputs, eqns, outputs, operation, kind, literal)\n--\n\n"
     "A program as numbers, in bytes."},
    {"written", reinterpret_cast<PyCFunction>(py_written), METH_FASTCALL,
     "written(trace, form, values, source)\n--\n\n"
     "Write equations down on other operands, and return the results."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_equations(nb::module_& m) {
  name_atom = checked(PyUnicode_InternFromString("atom"));
  name_eqns = checked(PyUnicode_InternFromString("eqns"));
  name_effectful = checked(PyUnicode_InternFromString("effectful"));
  checked(PyModule_AddFunctions(m.ptr(), methods));
}

}  // namespace namoo
