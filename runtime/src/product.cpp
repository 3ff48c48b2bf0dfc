// Products of small matrices, for which NumPy and BLAS take longer to set up than to multiply.
#include <algorithm>

#include "arrays.h"

namespace namoo {
namespace {

constexpr npy_intp kMost = 1 << 13;  // multiplications, in whole vectors: BLAS is faster beyond
constexpr npy_intp kRows = 4;        // computed together, so that a vector is read once for them

#if defined(__GNUC__)
typedef float Floats __attribute__((vector_size(64)));
typedef double Doubles __attribute__((vector_size(64)));
#else
typedef float Floats;
typedef double Doubles;
#endif

struct Matrices {
  npy_intp m, k, n;
  const char* left;
  npy_intp row, column;  // strides in bytes
  const void* right;     // rows of `width` elements, whole vectors
  npy_intp width;
  void* out;
};

// Some rows of a product, one vector of columns at a time. Each element is the sum of its products
// in order, as BLAS computes it for matrices of this size.
template <typename T, typename V, npy_intp R>
NAMOO_INLINE void rows(const Matrices& x, npy_intp first) {
  constexpr npy_intp kLane = sizeof(V) / sizeof(T);
  const char* left = x.left + first * x.row;
  T* out = static_cast<T*>(x.out) + first * x.n;
  for (npy_intp j = 0; j < x.n; j += kLane) {
    V sum[R] = {};
    const T* right = static_cast<const T*>(x.right) + j;
    for (npy_intp p = 0; p < x.k; p++, right += x.width) {
      V values;
      std::memcpy(&values, right, sizeof(V));
      for (npy_intp r = 0; r < R; r++) {
        sum[r] += *reinterpret_cast<const T*>(left + r * x.row + p * x.column) * values;
      }
    }
    size_t bytes = (size_t)std::min(kLane, x.n - j) * sizeof(T);
    for (npy_intp r = 0; r < R; r++) std::memcpy(out + r * x.n + j, &sum[r], bytes);
  }
}

template <typename T, typename V>
NAMOO_INLINE void all_rows(const Matrices& x) {
  npy_intp i = 0;
  for (; i + kRows <= x.m; i += kRows) rows<T, V, kRows>(x, i);
  for (; i < x.m; i++) rows<T, V, 1>(x, i);
}

NAMOO_WIDE void multiply_floats(const Matrices& x) { all_rows<float, Floats>(x); }
NAMOO_WIDE void multiply_doubles(const Matrices& x) { all_rows<double, Doubles>(x); }

template <typename T, typename V>
void multiply(PyArrayObject* left, PyArrayObject* right, PyArrayObject* out,
              void (*product)(const Matrices&)) {
  constexpr npy_intp kLane = sizeof(V) / sizeof(T);
  npy_intp k = PyArray_DIM(right, 0), n = PyArray_DIM(right, 1);
  Matrices x{PyArray_DIM(left, 0), k, n, PyArray_BYTES(left), PyArray_STRIDE(left, 0),
             PyArray_STRIDE(left, 1), PyArray_DATA(right), n, PyArray_DATA(out)};
  alignas(64) T padded[kMost];
  if (n % kLane || !PyArray_IS_C_CONTIGUOUS(right)) {
    x.right = padded;
    x.width = (n + kLane - 1) / kLane * kLane;
    for (npy_intp p = 0; p < k; p++) {
      const char* from = PyArray_BYTES(right) + p * PyArray_STRIDE(right, 0);
      T* to = padded + p * x.width;
      for (npy_intp j = 0; j < n; j++) {
        to[j] = *reinterpret_cast<const T*>(from + j * PyArray_STRIDE(right, 1));
      }
      std::fill(to + n, to + x.width, T(0));
    }
  }
  product(x);
}

PyArrayObject* matrix(PyObject* value) {
  if (!PyArray_CheckExact(value)) return nullptr;
  auto* array = reinterpret_cast<PyArrayObject*>(value);
  int type = PyArray_TYPE(array);
  bool good = PyArray_NDIM(array) == 2 && (type == NPY_FLOAT || type == NPY_DOUBLE) &&
              PyArray_ISBEHAVED_RO(array);
  return good ? array : nullptr;
}

// Whether the product of these is small; it could overflow.
bool few(npy_intp a, npy_intp b, npy_intp c) {
  return a <= kMost && b <= kMost && c <= kMost && a * b <= kMost && a * b * c <= kMost;
}

PyObject* py_product(PyObject*, PyObject* const* args, Py_ssize_t count) {
  need_numpy();
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "product takes two arrays");
    return nullptr;
  }
  PyArrayObject *left = matrix(args[0]), *right = matrix(args[1]);
  if (!left || !right || PyArray_TYPE(left) != PyArray_TYPE(right)) Py_RETURN_NONE;
  npy_intp m = PyArray_DIM(left, 0), k = PyArray_DIM(left, 1), n = PyArray_DIM(right, 1);
  bool single = PyArray_TYPE(left) == NPY_FLOAT;
  npy_intp lane = (npy_intp)(single ? sizeof(Floats) / sizeof(float)
                                    : sizeof(Doubles) / sizeof(double));
  npy_intp width = n > kMost ? n : (n + lane - 1) / lane * lane;
  if (k != PyArray_DIM(right, 0) || !few(m, k, width) || !few(1, k, width)) Py_RETURN_NONE;
  PyArray_Descr* descr = PyArray_DESCR(left);
  Py_INCREF(descr);
  npy_intp shape[2] = {m, n};
  PyObject* result =
      PyArray_NewFromDescr(&PyArray_Type, descr, 2, shape, nullptr, nullptr, 0, nullptr);
  if (!result) return nullptr;
  auto* out = reinterpret_cast<PyArrayObject*>(result);
  if (single) {
    multiply<float, Floats>(left, right, out, multiply_floats);
  } else {
    multiply<double, Doubles>(left, right, out, multiply_doubles);
  }
  return result;
}

PyMethodDef methods[] = {
    {"product", reinterpret_cast<PyCFunction>(py_product), METH_FASTCALL,
     "product(x, y, /)\n--\n\nThe product of two small matrices of floats; None for others."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_product(nb::module_& m) { checked(PyModule_AddFunctions(m.ptr(), methods)); }

}  // namespace namoo
