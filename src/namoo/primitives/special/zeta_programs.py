"""Zeta and polygamma as programs, for engines without SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo.primitives.special.formulas import (
    Number,
    as_function,
    exp,
    formula,
    power,
    program,
    repeat,
    rounded,
    where,
)

Operation = Callable[[Any], Any]

_FARTHEST = 1e7
"""Zeta is not computed below minus this number, because its sum would have as many terms."""
# (2j)! / B₂ⱼ for j = 1, 2, …, the divisors in Euler's and Maclaurin's formula.
_BERNOULLI = (
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1892437580.3183791606, 74724249600.0,
    -2950130727918.1642244, 1.1646782814350067249e14, -4.5979787224074726105e15,
    1.8152105401943546773e17, -7.1661652561756670113e18,
)  # fmt: skip


def _zeta_step(n, x, q, a, total):
    """One more term, until there are nine and the last is beyond 9."""
    a = a + 1
    return (n < 9) | (a <= 9), a, total + power(a, -x)


def _zeta(hlo: Any, x: Any, q: Any) -> Any:
    def begin(x, q):
        x, q = Number(x), Number(q)
        good = (x > 1) & x.finite & q.finite & (q > -_FARTHEST)
        x, q = where(good, x, 2.0), where(good, q, 1.0)
        return [x.x, q.x, q.x, power(q, -x).x]

    def finish(x0, q0, x, q, a, total):
        term = power(a, -x)
        total = total + term * a / (x - 1) - 0.5 * term
        factor = x
        for j, divisor in enumerate(_BERNOULLI):
            term = term / a
            total = total + factor * term / divisor
            term = term / a
            factor = factor * (x + (2 * j + 1)) * (x + (2 * j + 2))
        whole, whole_x = rounded(q0).equals(q0), rounded(x0).equals(x0)
        half = x0 * 0.5
        even = rounded(half).equals(half)
        out = where((x0 > 1) & x0.finite & q0.finite & (q0 > -_FARTHEST), total, np.nan)
        limit = where(q0.equals(1), 1.0, where(q0 < 1, q0 * 0 + np.inf, np.nan))
        out = where(x0.equals(np.inf), limit, out)
        out = where(q0.equals(np.inf) & (x0 > 1), 0.0, out)
        out = where((q0 < 0) & ~whole_x, np.nan, out)  # a complex number
        out = where((q0 <= 0) & whole, where(even, x0 * 0 + np.inf, np.nan), out)
        return where(x0.equals(1), np.inf, where(x0 < 1, np.nan, out))

    x1, q1, *state = hlo.apply(begin, x, q)
    return formula(finish)(hlo, x, q, x1, q1, *repeat(hlo, _zeta_step, [x1, q1], state))


zeta = program(_zeta)


def polygamma(hlo: Any, m: Any, x: Any, lgamma: Operation, digamma: Operation) -> Any:
    """The rule of polygamma, (-1)ᵐ⁺¹ m! ζ(m+1, x), given the primitives lgamma and digamma."""
    log_gamma, psi = as_function(lgamma), as_function(digamma)

    def order(m):
        return where((m >= 1) & rounded(m).equals(m), m, 1.0)

    def finish(m, x, series):
        n = order(m)
        half = n * 0.5
        sign = where(rounded(half).equals(half), -1.0, n * 0 + 1)
        out = sign * exp(log_gamma(n + 1)) * series
        out = where(m.equals(0), psi(x), out)
        return where((m >= 0) & rounded(m).equals(m), out, np.nan)

    def compute(hlo, m, x):
        series = _zeta(hlo, formula(lambda m: order(m) + 1)(hlo, m), x)
        return formula(finish)(hlo, m, x, series)

    return program(compute)(hlo, m, x)
