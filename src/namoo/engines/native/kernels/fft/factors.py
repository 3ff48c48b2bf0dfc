"""Lengths of transforms as products of small factors, and the tables of roots of unity."""

from __future__ import annotations

import math

import numpy as np

from namoo._base.caches import cached
from namoo.engines.native import tuning


@cached("native fft: prime factors", bound=1024, keyed_by="length")
def primes(n: int) -> tuple[int, ...]:
    """The prime factors of a number, in ascending order."""
    out, p = [], 2
    while p * p <= n:
        while n % p == 0:
            out.append(p)
            n //= p
        p += 1
    return (*out, n) if n > 1 else tuple(out)


def is_smooth(n: int) -> bool:
    """Whether a length has only small prime factors, so that passes can transform it."""
    return primes(n)[-1:] <= (tuning.FFT_LARGEST_PRIME,)


def smooth_length(n: int) -> int:
    """The smallest length of at least `n` that is a power of two, or three or five times one."""
    power = 1 << (n - 1).bit_length()
    return min(m for m in (power, power // 8 * 5, power // 4 * 3) if m >= n)


@cached("native fft: radices", bound=1024, keyed_by="length, lanes of the first pass")
def radices(n: int, lanes: int) -> tuple[int, ...]:
    """The radix of each pass.

    Args:
        n: the length.
        lanes: the first radix is a power of two up to this number, if possible, so that later
          passes work on runs of at least as many contiguous elements.
    """
    found = primes(n)
    twos, odd = found.count(2), [p for p in found if p > 2]
    out: list[int] = []
    if lanes > 1:
        first = min(twos, lanes.bit_length() - 1)
        twos -= first
        if first:
            out.append(1 << first)
    largest = tuning.FFT_LARGEST_POWER
    passes = -(-twos // largest)
    # Passes of about equal radix: 8·8 rather than 16·4.
    powers = [1 << (twos // passes + (i < twos % passes)) for i in range(passes)] if passes else []
    threes = odd.count(3)
    others = [9] * (threes // 2) + [3] * (threes % 2) + [p for p in odd if p > 3]
    return (*out, *sorted(others, reverse=True), *sorted(powers, reverse=True))


def roots(n: int, exponents: np.ndarray) -> np.ndarray:
    """exp(-2πi k/n) for each exponent k, correctly rounded in nearly all cases."""
    two_pi = 8 * np.arctan(np.longdouble(1))
    angles = np.asarray(exponents % n, np.longdouble) * (-two_pi / n)
    return np.stack([np.cos(angles), np.sin(angles)], -1)


def balanced(n: int) -> tuple[int, int]:
    """Split a number into two factors that are as close as possible, the larger one first."""
    best = 1
    for d in range(1, math.isqrt(n) + 1):
        if n % d == 0:
            best = d
    return n // best, best
