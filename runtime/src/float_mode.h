// The rounding and subnormal mode of a thread.
#pragma once

#include <cstdint>

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace namoo {

// A new thread inherits its mode from the thread that starts it, which may be running another
// library's code.
using FloatMode = uint64_t;

inline FloatMode float_mode() {
#if defined(__SSE2__) || defined(_M_X64)
  return _mm_getcsr() & ~0x3fu;  // without the exception flags
#elif defined(__GNUC__) && defined(__aarch64__)
  FloatMode mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

inline void set_float_mode(FloatMode mode) {
#if defined(__SSE2__) || defined(_M_X64)
  _mm_setcsr((unsigned)mode);
#elif defined(__GNUC__) && defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

// The same mode, but subnormal numbers are read as zero, and results that would be subnormal are
// zero.
inline FloatMode flushing(FloatMode mode) {
#if defined(__SSE2__) || defined(_M_X64)
  return mode | 0x8040u;
#elif defined(__GNUC__) && defined(__aarch64__)
  return mode | (FloatMode{1} << 24);
#else
  return mode;
#endif
}

}  // namespace namoo
