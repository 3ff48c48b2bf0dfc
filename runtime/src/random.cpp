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

// Positions as counters: the high word, then the low one. A block does not cross 2³².
inline void positions(uint64_t first, uint32_t* x, uint32_t* y, size_t count) {
  uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32);
  for (size_t i = 0; i < count; i++) {
    x[i] = high;
    y[i] = low + (uint32_t)i;
  }
}

// out[i] = both words of the hash of i, joined by exclusive or.
NAMOO_WIDE void position_bits(const uint32_t* words, uint32_t* out, size_t count) {
  Schedule key(words[0], words[1]);
  uint32_t x[kBlock], y[kBlock];
  for (size_t done = 0; done < count; done += kBlock) {
    size_t block = count - done < kBlock ? count - done : kBlock;
    positions(done, x, y, block);
    threefry(key, x, y, block);
    for (size_t i = 0; i < block; i++) out[done + i] = x[i] ^ y[i];
  }
}

// out[i] = the two words of the hash of i.
NAMOO_WIDE void position_words(const uint32_t* words, uint32_t* out, size_t count) {
  Schedule key(words[0], words[1]);
  uint32_t x[kBlock], y[kBlock];
  for (size_t done = 0; done < count; done += kBlock) {
    size_t block = count - done < kBlock ? count - done : kBlock;
    positions(done, x, y, block);
    threefry(key, x, y, block);
    for (size_t i = 0; i < block; i++) {
      out[2 * (done + i)] = x[i];
      out[2 * (done + i) + 1] = y[i];
    }
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

// The keys, two words each, and an array with `per` words for each number drawn with each key.
struct Draw {
  View keys, out;
  size_t count;

  Draw(PyObject* k, PyObject* o, size_t per) : keys(k, 'I', false), out(o, 'I', true) {
    size_t number = keys.size() / 2;
    need_equal(keys.size() % 2 == 0 && (number ? out.size() % (number * per) == 0 : !out.size()));
    count = number ? out.size() / (number * per) : 0;
  }
};

template <void (*kFunction)(const uint32_t*, uint32_t*, size_t), size_t kPer>
PyObject* py_draw(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *keys, *out;
    if (!PyArg_ParseTuple(args, "OO", &keys, &out)) throw Raised();
    Draw draw(keys, out, kPer);
    const uint32_t* words = draw.keys.data<const uint32_t>();
    uint32_t* target = draw.out.data<uint32_t>();
    size_t number = draw.keys.size() / 2;
    Py_BEGIN_ALLOW_THREADS;
    for (size_t k = 0; k < number; k++) {
      kFunction(words + 2 * k, target + k * kPer * draw.count, draw.count);
    }
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
  });
}

PyObject* py_fold_in(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *keys, *data, *out;
    if (!PyArg_ParseTuple(args, "OOO", &keys, &data, &out)) throw Raised();
    View words(keys, 'I', false), folded(data, 'I', false), target(out, 'I', true);
    need_equal(words.size() == target.size() && words.size() == 2 * folded.size());
    for (size_t k = 0; k < folded.size(); k++) {
      const uint32_t* key = words.data<const uint32_t>() + 2 * k;
      uint32_t x = 0, y = folded.data<const uint32_t>()[k];
      threefry(Schedule(key[0], key[1]), &x, &y, 1);
      target.data<uint32_t>()[2 * k] = x;
      target.data<uint32_t>()[2 * k + 1] = y;
    }
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
    {"threefry_bits", py_draw<position_bits, 1>, METH_VARARGS,
     "threefry_bits(keys, out, /)\n--\n\n32 random bits for each position, of each key."},
    {"threefry_split", py_draw<position_words, 2>, METH_VARARGS,
     "threefry_split(keys, out, /)\n--\n\nA new key for each position, of each key."},
    {"threefry_fold_in", py_fold_in, METH_VARARGS,
     "threefry_fold_in(keys, data, out, /)\n--\n\nA new key of each key and a word."},
    {"horner", py_horner, METH_VARARGS,
     "horner(coefficients, v, out, /)\n--\n\nA polynomial of floats, with fused multiply-adds."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_random(nb::module_& m) { checked(PyModule_AddFunctions(m.ptr(), methods)); }

}  // namespace namoo
