"""Transforms of a few numbers in registers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.kernels.fft.factors import primes

Complex = tuple[Value, Value]
"""The real and the imaginary part."""


def add(f: Function, x: Complex, y: Complex) -> Complex:
    return f.add(x[0], y[0]), f.add(x[1], y[1])


def sub(f: Function, x: Complex, y: Complex) -> Complex:
    return f.sub(x[0], y[0]), f.sub(x[1], y[1])


def times_minus_i(f: Function, x: Complex) -> Complex:
    return x[1], f.neg(x[0])


def multiply(f: Function, x: Complex, w: Complex) -> Complex:
    """A product, with one rounding less where the processor has fused multiply-adds."""
    real = f.muladd(x[0], w[0], f.neg(f.mul(x[1], w[1])))
    return real, f.muladd(x[0], w[1], f.mul(x[1], w[0]))


def transform(f: Function, xs: Sequence[Complex]) -> list[Complex]:
    """yₖ = Σⱼ xⱼ exp(-2πi jk/n) of n numbers."""
    n = len(xs)
    if n == 1:
        return list(xs)
    if n == 2:
        return [add(f, *xs), sub(f, *xs)]
    if n == 4:
        (a, b), (c, d) = transform(f, xs[::2]), transform(f, xs[1::2])
        d = times_minus_i(f, d)
        return [add(f, a, c), add(f, b, d), sub(f, a, c), sub(f, b, d)]
    if len(found := primes(n)) == 1:
        return _prime(f, xs)
    # n = a·b: transforms of a numbers each, twiddles, transforms of b numbers each.
    b = 4 if n % 4 == 0 and n > 8 else found[0]
    a = n // b
    columns = [transform(f, xs[j::b]) for j in range(b)]
    out: list[Complex] = [xs[0]] * n
    for k in range(a):
        row = [_rotated(f, columns[j][k], j * k, n) for j in range(b)]
        out[k::a] = transform(f, row)
    return out


def _rotated(f: Function, x: Complex, k: int, n: int) -> Complex:
    """x·exp(-2πi k/n)."""
    k %= n
    if n % 2 == 0 and 2 * k >= n:
        x, k = (f.neg(x[0]), f.neg(x[1])), k - n // 2
    if k == 0:
        return x
    if 4 * k == n:
        return times_minus_i(f, x)
    if 8 * k in (n, 3 * n):
        root = constant(x[0].elem, math.sqrt(0.5))
        plus, minus = f.add(x[0], x[1]), f.sub(x[1], x[0])
        if 8 * k == n:
            return f.mul(plus, root), f.mul(minus, root)
        return f.mul(minus, root), f.neg(f.mul(plus, root))
    angle = -2 * math.pi * k / n
    w = constant(x[0].elem, math.cos(angle)), constant(x[0].elem, math.sin(angle))
    return multiply(f, x, w)


def _prime(f: Function, xs: Sequence[Complex]) -> list[Complex]:
    """A transform of an odd prime number of values: sums and differences of mirrored pairs."""
    n, elem = len(xs), xs[0][0].elem
    half = range(1, n // 2 + 1)
    sums = [add(f, xs[j], xs[n - j]) for j in half]
    differences = [sub(f, xs[j], xs[n - j]) for j in half]
    total = xs[0]
    for pair in sums:
        total = add(f, total, pair)
    out = [total] * n
    for k in half:
        # exp(-iφ)·x + exp(iφ)·y = cos φ·(x + y) - i·sin φ·(x - y)
        even, odd = xs[0], None
        for j, plus, minus in zip(half, sums, differences, strict=True):
            angle = 2 * math.pi * (j * k % n) / n
            cos, sin = constant(elem, math.cos(angle)), constant(elem, math.sin(angle))
            even = f.muladd(cos, plus[0], even[0]), f.muladd(cos, plus[1], even[1])
            if odd is None:
                odd = f.mul(sin, minus[0]), f.mul(sin, minus[1])
            else:
                odd = f.muladd(sin, minus[0], odd[0]), f.muladd(sin, minus[1], odd[1])
        assert odd is not None
        out[k] = f.add(even[0], odd[1]), f.sub(even[1], odd[0])
        out[n - k] = f.sub(even[0], odd[1]), f.add(even[1], odd[0])
    return out
