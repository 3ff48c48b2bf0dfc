"""The inverse error function in single precision, with XLA's rounding: samples depend on it."""

from __future__ import annotations

import numpy as np

from namoo._base.runtime import native

# Giles (2010), "Approximating the erfinv function": polynomials in w = -log(1 - x²), for the
# centre (w < 5) and for the tails, highest power first.
_CENTRE = np.array(
    [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ],
    np.float32,
)
_TAIL = np.array(
    [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ],
    np.float32,
)

BLOCK = 1 << 16


def erf_inv_into(x: np.ndarray, out: np.ndarray) -> None:
    """The inverse error function of a row of float32 numbers, into another array or in place."""
    w = np.multiply(x, x)
    np.negative(w, out=w)
    np.log1p(w, out=w)
    np.negative(w, out=w)
    ratio = np.empty_like(w)
    _polynomial(_CENTRE, w - np.float32(2.5), ratio)
    tail = np.flatnonzero(~(w < 5))
    if tail.size:
        far = np.empty(tail.size, np.float32)
        _polynomial(_TAIL, np.sqrt(w[tail]) - np.float32(3), far)
        # At ±1 the ratio is infinite, and `far` is not a number.
        far[np.abs(x[tail]) == 1] = np.inf
        ratio[tail] = far
    np.multiply(x, ratio, out=out)


def _polynomial(coefficients: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Horner's rule.

    XLA evaluates these polynomials with fused multiply-adds, that is with one rounding a step.
    Doing the same keeps normal samples equal to JAX's, which an exact erf_inv would not.
    """
    if native is not None:
        native.horner(coefficients, v, out)
        return
    out[...] = coefficients[0]
    for c in coefficients[1:]:
        out[...] = _fused(out, v, c)


def _fused(x: np.ndarray, y: np.ndarray, z: np.float32) -> np.ndarray:
    """x·y + z of float32 numbers, rounded once, as a double that rounds to it.

    The product is exact as a double.  The sum is rounded to an odd number where it is not exact,
    so that rounding it again cannot create a tie.
    """
    product = x.astype(np.float64) * y
    total = product + z
    part = total - product
    lost = (product - (total - part)) + (z - part)
    even = total.view(np.int64) & 1 == 0
    return np.where((lost != 0) & even, np.nextafter(total, np.copysign(np.inf, lost)), total)
