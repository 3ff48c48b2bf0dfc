// Handlers of XLA's typed FFI, and plain functions, for tests/control/test_foreign_calls.py.

#include <cstdint>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Scale(float factor, int64_t power, ffi::Buffer<ffi::F32> x,
                        ffi::ResultBuffer<ffi::F32> y) {
  if (factor < 0) return ffi::Error::InvalidArgument("the factor is negative");
  float by = 1;
  for (int64_t i = 0; i < power; ++i) by *= factor;
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = by * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale,
                              ffi::Ffi::Bind()
                                  .Attr<float>("factor")
                                  .Attr<int64_t>("power")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// The dimensions of the operand, and its elements in the order of memory.
static ffi::Error Describe(std::string_view text, ffi::Span<const int64_t> numbers,
                           ffi::AnyBuffer x, ffi::ResultBuffer<ffi::S64> dims,
                           ffi::ResultBuffer<ffi::F32> flat) {
  auto shape = x.dimensions();
  for (size_t i = 0; i < shape.size(); ++i) dims->typed_data()[i] = shape[i];
  dims->typed_data()[shape.size()] = text.size() + numbers[1];
  auto* data = static_cast<float*>(x.untyped_data());
  for (size_t i = 0; i < x.element_count(); ++i) flat->typed_data()[i] = data[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(describe, Describe,
                              ffi::Ffi::Bind()
                                  .Attr<std::string_view>("text")
                                  .Attr<ffi::Span<const int64_t>>("numbers")
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::Buffer<ffi::S64>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error AddOne(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.typed_data() != y->typed_data()) return ffi::Error::Internal("not in place");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(add_one, AddOne,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

static int64_t count = 0;

static ffi::Error Count(ffi::ResultBuffer<ffi::S64> y) {
  y->typed_data()[0] = ++count;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(count_calls, Count,
                              ffi::Ffi::Bind().Ret<ffi::Buffer<ffi::S64>>());

extern "C" int64_t calls() { return count; }

extern "C" void saxpy(int64_t n, float a, const float* x, const float* y, int8_t sign, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = a * x[i] + sign * y[i];
}

extern "C" int root(const double* x, double* out) {
  if (*x < 0) return 3;
  double y = *x;
  for (int i = 0; i < 60; ++i) y = 0.5 * (y + *x / y);
  *out = y;
  return 0;
}
