// Random bits, and the inverse error function for normal numbers. Bitwise equal to
// `namoo.primitives.random.generators` and `namoo.primitives.special.functions`.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arrays.h"

namespace namoo {

namespace {

// Blocks of numbers are computed in a few vectors that stay in registers.
#if defined(__GNUC__)
typedef uint32_t Lane __attribute__((vector_size(64)));
#else
typedef uint32_t Lane;
#endif
constexpr size_t kLane = sizeof(Lane) / 4, kLanes = 4, kBlock = kLane * kLanes;

struct Schedule {
  uint32_t words[3];
  Schedule(uint32_t k0, uint32_t k1) : words{k0, k1, k0 ^ k1 ^ 0x1BD11BDAu} {}
};

template <typename T, size_t N>
inline void mix(T (&x)[N], T (&y)[N], int by) {
  for (size_t i = 0; i < N; i++) {
    x[i] += y[i];
    y[i] = ((y[i] << by) | (y[i] >> (32 - by))) ^ x[i];
  }
}

template <typename T, size_t N>
inline void inject(T (&x)[N], T (&y)[N], uint32_t a, uint32_t b) {
  for (size_t i = 0; i < N; i++) {
    x[i] += a;
    y[i] += b;
  }
}

// Threefry-2x32 with 20 rounds, in place.
template <typename T, size_t N>
inline void threefry(const Schedule& key, T (&x)[N], T (&y)[N]) {
  inject(x, y, key.words[0], key.words[1]);
#pragma GCC unroll 5
  for (uint32_t group = 0; group < 5; group++) {
    bool even = group % 2 == 0;
    mix(x, y, even ? 13 : 17);
    mix(x, y, even ? 15 : 29);
    mix(x, y, even ? 26 : 16);
    mix(x, y, even ? 6 : 24);
    inject(x, y, key.words[(group + 1) % 3], key.words[(group + 2) % 3] + group + 1);
  }
}

// The hash of a block of positions: their high and low words are the counters.
inline void hash_positions(const Schedule& key, uint64_t first, Lane (&x)[kLanes],
                           Lane (&y)[kLanes]) {
  uint32_t low[kBlock], high[kBlock];
  for (size_t i = 0; i < kBlock; i++) {
    low[i] = (uint32_t)(first + i);
    high[i] = (uint32_t)((first + i) >> 32);
  }
  std::memcpy(x, high, sizeof high);
  std::memcpy(y, low, sizeof low);
  threefry(key, x, y);
}

// out[i] = the exclusive or of both words of the hash of i.
NAMOO_WIDE void position_bits(const uint32_t* words, uint32_t* out, size_t count) {
  Schedule key(words[0], words[1]);
  Lane x[kLanes], y[kLanes];
  for (size_t done = 0; done < count; done += kBlock) {
    hash_positions(key, done, x, y);
    for (size_t i = 0; i < kLanes; i++) x[i] ^= y[i];
    std::memcpy(out + done, x, 4 * std::min(count - done, kBlock));
  }
}

// out[i] = the two words of the hash of i.
NAMOO_WIDE void position_words(const uint32_t* words, uint32_t* out, size_t count) {
  Schedule key(words[0], words[1]);
  Lane x[kLanes], y[kLanes];
  uint32_t first[kBlock], second[kBlock];
  for (size_t done = 0; done < count; done += kBlock) {
    hash_positions(key, done, x, y);
    std::memcpy(first, x, sizeof x);
    std::memcpy(second, y, sizeof y);
    for (size_t i = 0; i < kBlock && done + i < count; i++) {
      out[2 * (done + i)] = first[i];
      out[2 * (done + i) + 1] = second[i];
    }
  }
}

// Horner's rule with fused multiply-add.
NAMOO_WIDE void horner(const float* coefficients, size_t degree, const float* v, float* out,
                       size_t count) {
  for (size_t start = 0; start < count; start += kBlock) {
    size_t size = std::min(count - start, kBlock);
    // Always whole blocks, so that the loops are unrolled and the sums stay in registers.
    float at[kBlock] = {}, sum[kBlock];
    std::copy_n(v + start, size, at);
    std::fill_n(sum, kBlock, coefficients[0]);
    for (size_t k = 1; k <= degree; k++) {
      for (size_t i = 0; i < kBlock; i++) sum[i] = std::fma(sum[i], at[i], coefficients[k]);
    }
    std::copy_n(sum, size, out + start);
  }
}

// The memory of a contiguous array of one type, for the duration of a block of code.
class View {
 public:
  View(PyObject* object, char format, bool write) {
    checked(PyObject_GetBuffer(object, &view_,
                               PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (write ? PyBUF_WRITABLE : 0)));
    // On Windows uint32 is `unsigned long`, 'L'.
    char found = !view_.format ? 'B' : view_.format[0] == 'L' ? 'I' : view_.format[0];
    if (view_.itemsize != 4 || found != format) {
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

// The keys, two words each, and an array with `per` words for each number drawn with a key.
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
    PyThreadState* state = PyEval_SaveThread();
    for (size_t k = 0; k < number; k++) {
      kFunction(words + 2 * k, target + k * kPer * draw.count, draw.count);
    }
    while_python_lives([&] { PyEval_RestoreThread(state); });
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
      uint32_t x[] = {0}, y[] = {folded.data<const uint32_t>()[k]};
      threefry(Schedule(key[0], key[1]), x, y);
      target.data<uint32_t>()[2 * k] = x[0];
      target.data<uint32_t>()[2 * k + 1] = y[0];
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
    PyThreadState* state = PyEval_SaveThread();
    horner(coefficients.data<const float>(), coefficients.size() - 1, at.data<const float>(),
           to.data<float>(), to.size());
    while_python_lives([&] { PyEval_RestoreThread(state); });
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
