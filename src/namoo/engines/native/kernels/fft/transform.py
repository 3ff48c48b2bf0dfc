"""Discrete Fourier transforms: choose the steps that transform an array, axis by axis.

Elementwise work around the passes is emitted as ordinary nodes, so it is fused into the kernels
before and after them: the symmetry of spectra of real numbers, and the factors of the convolution
that lengths with large prime factors need.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo.core.avals import ShapedArray
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import constant
from namoo.engines.native.ir.types import elem_of, is_complex
from namoo.engines.native.kernels.fft.butterfly import add, multiply, sub
from namoo.engines.native.kernels.fft.factors import balanced, is_smooth, roots, smooth_length
from namoo.engines.native.kernels.fft.lines import Layout, Lines

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


def fft(emit: Emitter, x: Node, kind: str, lengths: tuple[int, ...]) -> Node:
    """A transform over the last axes.

    Args:
        emit: the emitter.
        x: the operand.
        kind: FFT, IFFT, RFFT or IRFFT.
        lengths: of the transformed axes; for IRFFT those of the result.
    """
    out = emit.avals[0]
    if 0 in x.shape or 0 in out.shape:
        return emit.filled(0, out.dtype, out.shape)
    rank = len(x.shape)
    *axes, last = range(rank - len(lengths), rank)
    inverse = kind in ("IFFT", "IRFFT")
    if kind != "IRFFT":
        x = _spectra_of_reals(emit, x) if kind == "RFFT" else _along(emit, x, last, inverse)
    for axis in reversed(axes):
        x = _along(emit, x, axis, inverse)
    return _reals_of_spectra(emit, x, lengths[-1]) if kind == "IRFFT" else x


def _along(emit: Emitter, x: Node, axis: int, inverse: bool) -> Node:
    """A transform of complex numbers along one axis."""
    n = x.shape[axis]
    scale = 1 / n if inverse else 1.0
    if n == 1:
        return x
    if not is_smooth(n):
        return _by_convolution(emit, x, axis, inverse, scale)
    inner = math.prod(x.shape[axis + 1 :])
    if inner == 1:
        out = _rows(emit, x, n, inverse, scale, ShapedArray((x.size // n, n), x.dtype))
        return emit.reshape(out, x.shape)
    layout = Layout(n * inner, 1, inner)
    step = Lines(
        x.elem, n, x.size // (n * inner), inner, layout, layout, inverse=inverse, scale=scale
    )
    return _call(emit, step, x, ShapedArray(x.shape, x.dtype))


def _rows(emit: Emitter, x: Node, n: int, inverse: bool, scale: float, out: ShapedArray) -> Node:
    """A transform of contiguous lines of `n` complex numbers.

    The operand or the result may be real: then pairs of its elements are complex numbers. The
    result may have one more element per line, a copy of the first.
    """
    elem = "c128" if out.dtype in (np.complex128, np.float64) else "c64"
    of_result = out.shape[-1] if is_complex(elem_of(out.dtype)) else out.shape[-1] // 2
    lines = math.prod(out.shape[:-1])
    rows, columns = balanced(n)
    if n < tuning.FFT_LONG_LINE or columns == 1:
        step = Lines(
            elem, n, 1, lines, Layout(0, n, 1), Layout(0, of_result, 1),
            inverse=inverse, scale=scale, closed=of_result > n,
        )  # fmt: skip
        return _call(emit, step, x, out)
    # As matrices: transform columns, multiply by phases, transform rows. With i = i₁·columns + i₂
    # and k = k₁ + rows·k₂, exp(-2πi·ik/n) is a product of the factors of a transform along i₁, of
    # one along i₂, and of exp(-2πi·i₂k₁/n).
    matrix = Layout(n, 1, columns)
    first = Lines(elem, rows, lines, columns, matrix, matrix, inverse=inverse, total=n)
    between = ShapedArray((lines, n), np.dtype(np.complex64 if elem == "c64" else np.complex128))
    second = Lines(
        elem, columns, lines, rows, Layout(n, columns, 1), Layout(of_result, 1, rows),
        inverse=inverse, scale=scale, closed=of_result > n,
    )  # fmt: skip
    return _call(emit, second, _call(emit, first, x, between), out)


def _call(emit: Emitter, step: Lines, x: Node, out: ShapedArray) -> Node:
    (node,) = emit.call(step, [x, emit.const(step.table())], [out])
    return node


def _by_convolution(emit: Emitter, x: Node, axis: int, inverse: bool, scale: float) -> Node:
    """Bluestein's method: 2ik = i² + k² - (k - i)², so a transform is a convolution by a chirp."""
    n, shape = x.shape[axis], x.shape
    m = smooth_length(2 * n - 1)
    numbers = np.arange(n, dtype=object if n >= 1 << 31 else np.int64)
    chirp = _complex(roots(2 * n, numbers * numbers % (2 * n)))
    chirp = chirp.conj() if inverse else chirp
    kernel = np.zeros(m, complex)
    kernel[:n] = chirp.conj()
    kernel[m - n + 1 :] = chirp[:0:-1].conj()
    spectrum = np.fft.fft(kernel)
    padding = [(0, m - n if i == axis else 0, 0) for i in range(len(shape))]
    x = emit.pad(_scaled(emit, x, axis, chirp), emit.literal(0, x.dtype), padding)
    x = _scaled(emit, _along(emit, x, axis, False), axis, spectrum)
    x = _along(emit, x, axis, True)
    x = emit.reindex(x, lambda index: index, key=("first", axis, n), shape=shape)
    return _scaled(emit, x, axis, chirp * scale)


def _complex(pairs: np.ndarray) -> np.ndarray:
    return (pairs[..., 0] + 1j * pairs[..., 1]).astype(complex)


def _scaled(emit: Emitter, x: Node, axis: int, factors: np.ndarray) -> Node:
    """An array times factors along an axis."""

    def fn(k, index, x, table):
        return multiply(k.f, k.at(x, index), k.at(table, [index[axis]]))

    operands = [x, emit.const(factors.astype(x.dtype))]
    key = ("fft factors", axis)
    return emit.compute(operands, fn, shape=x.shape, dtype=x.dtype, key=key, cost=4)


def _spectra_of_reals(emit: Emitter, x: Node) -> Node:
    """The first n//2 + 1 frequencies of real lines."""
    *batch, n = x.shape
    dtype = np.dtype(np.complex64 if x.dtype == np.float32 else np.complex128)
    half, shape = n // 2, (*batch, n // 2 + 1)
    if n % 2 or half == 1 or not is_smooth(half):
        whole = _along(emit, emit.convert(x, dtype), len(batch), False)
        return emit.reindex(whole, lambda index: index, key=("first", len(batch)), shape=shape)
    # As complex numbers, pairs of neighbours have the transform of the even elements plus i times
    # that of the odd ones, and the symmetry of both separates them.
    z = _rows(emit, x, half, False, 1.0, ShapedArray(shape, dtype))

    def fn(k, index, z, table):
        f, (*at, i) = k.f, index
        even, odd = _symmetric(k, k.at(z, [*at, i]), k.at(z, [*at, half - i]))
        odd = multiply(f, odd, k.at(table, [i]))
        # even - i·odd
        one_half = constant(even[0].elem, 0.5)
        real, imag = f.add(even[0], odd[1]), f.sub(even[1], odd[0])
        return f.mul(real, one_half), f.mul(imag, one_half)

    operands = [z, emit.const(_complex(roots(n, np.arange(half + 1))).astype(dtype))]
    return emit.compute(operands, fn, shape=shape, dtype=dtype, key=("fft of reals", n), cost=16)


def _reals_of_spectra(emit: Emitter, x: Node, n: int) -> Node:
    """Real lines of length `n`, from their first n//2 + 1 frequencies."""
    batch = x.shape[:-1]
    half = n // 2
    real = np.dtype(np.float32 if x.dtype == np.complex64 else np.float64)
    if n % 2 or half == 1 or not is_smooth(half):
        tail = emit.compute(
            [x],
            lambda k, index, x: ops.conj(k.f, k.at(x, [*index[:-1], (n - 1) // 2 - index[-1]])),
            shape=(*batch, (n - 1) // 2), dtype=x.dtype, key=("fft mirrored", n),
        )  # fmt: skip
        whole = emit.concatenate([x, tail], len(batch)) if tail.size else x
        return emit.map("real", _along(emit, whole, len(batch), True), dtype=real)

    def fn(k, index, x, table):
        f, (*at, i) = k.f, index
        ends = f.compare("eq", k.integer(i), constant("i64", 0))
        numbers = [k.at(x, [*at, i]), k.at(x, [*at, half - i])]
        # The first and the last frequency are real: their imaginary parts are ignored.
        zero = constant(numbers[0][0].elem, 0.0)
        even, odd = _symmetric(k, *((re, f.select(ends, zero, im)) for re, im in numbers))
        odd = multiply(f, odd, k.at(table, [i]))
        # even + i·odd
        return f.sub(even[0], odd[1]), f.add(even[1], odd[0])

    operands = [x, emit.const(_complex(roots(n, np.arange(half))).conj().astype(x.dtype))]
    z = emit.compute(
        operands, fn, shape=(*batch, half), dtype=x.dtype, key=("fft to reals", n), cost=16
    )
    return _rows(emit, z, half, True, 1 / n, ShapedArray((*batch, n), real))


def _symmetric(k: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """x + ȳ and x - ȳ."""
    y = ops.conj(k.f, y)
    return add(k.f, x, y), sub(k.f, x, y)
