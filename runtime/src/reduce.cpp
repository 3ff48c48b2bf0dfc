// Sums of small arrays, for which NumPy takes longer to set up than to add.
#include "arrays.h"

namespace namoo {
namespace {

constexpr npy_intp kBlock = 128;
constexpr npy_intp kMost = 4096;

// NumPy's order of additions, so that the results are bitwise equal.
template <typename T>
T pairwise(const T* x, npy_intp n) {
  if (n < 8) {
    T sum = T(-0.0);
    for (npy_intp i = 0; i < n; i++) sum += x[i];
    return sum;
  }
  if (n > kBlock) {
    npy_intp half = n / 2;
    half -= half % 8;
    return pairwise(x, half) + pairwise(x + half, n - half);
  }
  T part[8];
  for (int k = 0; k < 8; k++) part[k] = x[k];
  npy_intp i = 8;
  for (; i < n - n % 8; i += 8) {
    for (int k = 0; k < 8; k++) part[k] += x[i + k];
  }
  T sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  for (; i < n; i++) sum += x[i];
  return sum;
}

template <typename T>
void add_all(PyArrayObject* array, PyArrayObject* out) {
  const auto* x = static_cast<const T*>(PyArray_DATA(array));
  *static_cast<T*>(PyArray_DATA(out)) = T(0) + pairwise(x, PyArray_SIZE(array));
}

PyObject* py_total(PyObject*, PyObject* value) {
  need_numpy();
  if (!PyArray_CheckExact(value)) Py_RETURN_NONE;
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  int type = PyArray_TYPE(array);
  if ((type != NPY_FLOAT && type != NPY_DOUBLE) || !PyArray_ISCARRAY_RO(array) ||
      PyArray_SIZE(array) > kMost) {
    Py_RETURN_NONE;
  }
  PyArray_Descr* descr = PyArray_DESCR(array);
  Py_INCREF(descr);
  PyObject* result =
      PyArray_NewFromDescr(&PyArray_Type, descr, 0, nullptr, nullptr, nullptr, 0, nullptr);
  if (!result) return nullptr;
  auto* out = reinterpret_cast<PyArrayObject*>(result);
  type == NPY_FLOAT ? add_all<float>(array, out) : add_all<double>(array, out);
  return result;
}

PyMethodDef methods[] = {
    {"total", py_total, METH_O,
     "total(x, /)\n--\n\nThe sum of a small array of floats as an array; None for others."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_reduce(nb::module_& m) { checked(PyModule_AddFunctions(m.ptr(), methods)); }

}  // namespace namoo
