// Random bits, and the inverse error function that makes normal numbers of them.
// Bit for bit what `namoo.primitives.generators` and `namoo.primitives.special` compute.

#include <cmath>

#include "arrays.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__)
#define NAMOO_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define NAMOO_WIDE
#endif

namespace namoo {

namespace {

constexpr size_t kBlock = 256;

template <int kBy>
inline void mix(uint32_t* x, uint32_t* y, size_t count) {
  for (size_t i = 0; i < count; i++) {
    x[i] += y[i];
    y[i] = ((y[i] << kBy) | (y[i] >> (32 - kBy))) ^ x[i];
  }
}

struct Schedule {
  uint32_t words[3];
  Schedule(uint32_t k0, uint32_t k1) : words{k0, k1, k0 ^ k1 ^ 0x1BD11BDAu} {}
};

inline void inject(uint32_t* x, uint32_t* y, uint32_t a, uint32_t b, size_t count) {
  for (size_t i = 0; i < count; i++) {
    x[i] += a;
    y[i] += b;
  }
}

// Threefry-2x32 with 20 rounds, in place on a block.
inline void threefry(const Schedule& key, uint32_t* x, uint32_t* y, size_t count) {
  inject(x, y, key.words[0], key.words[1], count);
  for (uint32_t group = 0; group < 5; group++) {
    if (group % 2 == 0) {
      mix<13>(x, y, count);
      mix<15>(x, y, count);
      mix<26>(x, y, count);
      mix<6>(x, y, count);
    } else {
      mix<17>(x, y, count);
      mix<29>(x, y, count);
      mix<16>(x, y, count);
      mix<24>(x, y, count);
    }
    inject(x, y, key.words[(group + 1) % 3], key.words[(group + 2) % 3] + group + 1, count);
  }
}

NAMOO_WIDE void hash_in_place(uint32_t k0, uint32_t k1, uint32_t* x, uint32_t* y, size_t count) {
  Schedule key(k0, k1);
  for (size_t start = 0; start < count; start += kBlock) {
    threefry(key, x + start, y + start, count - start < kBlock ? count - start : kBlock);
  }
}

// out[i] = both words of the hash of start + i, joined by exclusive or.
NAMOO_WIDE void position_bits(uint32_t k0, uint32_t k1, uint64_t start, uint32_t* out,
                              size_t count) {
  Schedule key(k0, k1);
  uint32_t x[kBlock], y[kBlock];
  for (size_t done = 0; done < count; done += kBlock) {
    size_t block = count - done < kBlock ? count - done : kBlock;
    uint64_t first = start + done;
    uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32);
    if ((uint64_t)low + block <= (uint64_t{1} << 32)) {
      for (size_t i = 0; i < block; i++) {
        x[i] = high;
        y[i] = low + (uint32_t)i;
      }
    } else {
      for (size_t i = 0; i < block; i++) {
        x[i] = (uint32_t)((first + i) >> 32);
        y[i] = (uint32_t)(first + i);
      }
    }
    threefry(key, x, y, block);
    for (size_t i = 0; i < block; i++) out[done + i] = x[i] ^ y[i];
  }
}

// Horner's rule with the product and the sum rounded once, through double precision.
NAMOO_WIDE void horner(const float* coefficients, size_t degree, const float* v, float* out,
                       size_t count) {
  for (size_t start = 0; start < count; start += kBlock) {
    size_t block = count - start < kBlock ? count - start : kBlock;
    const float* at = v + start;
    float* to = out + start;
    float sum[kBlock];
    for (size_t i = 0; i < block; i++) sum[i] = coefficients[0];
    for (size_t k = 1; k <= degree; k++) {
      double c = coefficients[k];
      for (size_t i = 0; i < block; i++) {
        sum[i] = (float)((double)sum[i] * (double)at[i] + c);
      }
    }
    for (size_t i = 0; i < block; i++) to[i] = sum[i];
  }
}

// ---- what Python calls

// The memory of a contiguous array of one type, for as long as a block of code.
class View {
 public:
  View(PyObject* object, char format, bool write) {
    checked(PyObject_GetBuffer(object, &view_,
                               PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (write ? PyBUF_WRITABLE : 0)));
    if (view_.itemsize != 4 || !view_.format || view_.format[0] != format) {
      PyErr_Format(PyExc_TypeError, "an array of type '%c' was expected, not '%s'", format,
                   view_.format ? view_.format : "B");
      PyBuffer_Release(&view_);
      throw Raised();
    }
  }
  ~View() { PyBuffer_Release(&view_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  template <typename T>
  T* data() {
    return static_cast<T*>(view_.buf);
  }
  size_t size() const { return (size_t)view_.len / 4; }

 private:
  Py_buffer view_;
};

void need_equal(bool equal) {
  if (equal) return;
  PyErr_SetString(PyExc_ValueError, "the arrays do not have the same length");
  throw Raised();
}

PyObject* py_threefry2x32(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    unsigned int k0, k1;
    PyObject *x, *y;
    if (!PyArg_ParseTuple(args, "IIOO", &k0, &k1, &x, &y)) throw Raised();
    View first(x, 'I', true), second(y, 'I', true);
    need_equal(first.size() == second.size());
    Py_BEGIN_ALLOW_THREADS;
    hash_in_place(k0, k1, first.data<uint32_t>(), second.data<uint32_t>(), first.size());
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
  });
}

PyObject* py_threefry_bits(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    unsigned int k0, k1;
    unsigned long long start;
    PyObject* out;
    if (!PyArg_ParseTuple(args, "IIKO", &k0, &k1, &start, &out)) throw Raised();
    View bits(out, 'I', true);
    Py_BEGIN_ALLOW_THREADS;
    position_bits(k0, k1, start, bits.data<uint32_t>(), bits.size());
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
  });
}

PyObject* py_horner(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *c, *v, *out;
    if (!PyArg_ParseTuple(args, "OOO", &c, &v, &out)) throw Raised();
    View coefficients(c, 'f', false), at(v, 'f', false), to(out, 'f', true);
    need_equal(at.size() == to.size() && coefficients.size() > 0);
    Py_BEGIN_ALLOW_THREADS;
    horner(coefficients.data<const float>(), coefficients.size() - 1, at.data<const float>(),
           to.data<float>(), to.size());
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {
    {"threefry2x32", py_threefry2x32, METH_VARARGS,
     "threefry2x32(k0, k1, x, y, /)\n--\n\nHashes the counters (x, y) with a key, in place."},
    {"threefry_bits", py_threefry_bits, METH_VARARGS,
     "threefry_bits(k0, k1, start, out, /)\n--\n\n32 random bits for each position from start on."},
    {"horner", py_horner, METH_VARARGS,
     "horner(coefficients, v, out, /)\n--\n\nA polynomial of floats, with fused multiply-adds."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_random(nb::module_& m) { checked(PyModule_AddFunctions(m.ptr(), methods)); }

}  // namespace namoo
