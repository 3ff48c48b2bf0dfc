"""Hypergeometric functions, with derivatives of every order by every argument.

SciPy computes the functions. Their derivatives with respect to x are again hypergeometric; those
with respect to the parameters are other series, which are summed here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo.primitives.elementwise import add, div, full_like, integer_pow, mul
from namoo.primitives.families import Elementwise, floating
from namoo.primitives.special.functions import in_dtype
from namoo.primitives.special.incomplete import scipy

Orders = tuple[int, ...]
"""How often a function is differentiated by each of its parameters."""

_EPS = np.finfo(np.float64).eps
_MOST_TERMS = 5_000
_LARGE = 1e200


def _series(
    upper: Sequence[np.ndarray], lower: Sequence[np.ndarray], x: np.ndarray, orders: Orders
) -> tuple[dict[Orders, np.ndarray], np.ndarray]:
    """Σₖ ∏(uᵢ)ₖ / ∏(lᵢ)ₖ · xᵏ/k! and its derivatives by the parameters up to `orders`, for x ≥ 0.

    A term's derivatives follow from those of the term before, as factors u+k and 1/(l+k) are
    added: (u+k)·T has the derivatives (u+k)·T⁽ⁱ⁾ + i·T⁽ⁱ⁻¹⁾, and R = T/(l+k) has
    R⁽ⁱ⁾ = (T⁽ⁱ⁾ - i·R⁽ⁱ⁻¹⁾) / (l+k).

    Returns:
        The derivatives by their orders, divided by exp(s), and s. NaN where the sum does not
        converge.
    """
    grid = list(itertools.product(*(range(n + 1) for n in orders)))
    zero = np.zeros_like(x)
    term = {i: zero + (not any(i)) for i in grid}
    total = dict(term)
    shift = np.zeros_like(x)
    # Until then, a factor can still change its sign, and a small term does not mean convergence.
    settled = np.maximum.reduce([np.maximum(-p, 0) for p in (*upper, *lower)])
    moving = np.isfinite(x) & np.all([np.isfinite(p) for p in (*upper, *lower)], 0)
    lost = ~moving
    k = 0
    while moving.any() and k < _MOST_TERMS:
        for axis, parameter in enumerate((*upper, *lower)):
            factor = parameter + k
            for i in grid if axis >= len(upper) else reversed(grid):
                lower_order = (*i[:axis], i[axis] - 1, *i[axis + 1 :])
                before = term[lower_order] * i[axis] if i[axis] else zero
                if axis < len(upper):
                    term[i] = factor * term[i] + before
                else:
                    term[i] = (term[i] - before) / factor
        scale = x / (k + 1)
        ended = np.ones(x.shape, bool)
        for i in grid:
            term[i] = term[i] * scale
            total[i] = np.where(moving, total[i] + term[i], total[i])
            ended &= np.abs(term[i]) <= _EPS * np.abs(total[i])
        k += 1
        moving &= ~(ended & (k > settled))
        large = moving & (np.abs(total[grid[0]]) > _LARGE)
        if large.any():
            shift = np.where(large, shift + np.log(_LARGE), shift)
            down = np.where(large, 1 / _LARGE, 1)
            for i in grid:
                term[i], total[i] = term[i] * down, total[i] * down
    lost |= moving
    return {i: np.where(lost, np.nan, total[i]) for i in grid}, shift


def _binomial_sum(n: int, term: Callable[[int], Any]) -> Any:
    return sum(math.comb(n, m) * term(m) for m in range(n + 1))


def _hyp1f1(a, b, x, *, orders):
    if not any(orders):
        return scipy().hyp1f1(a, b, x)
    a, b, x = np.broadcast_arrays(a, b, x)
    i, j = orders
    out, shift = _series([a], [b], np.maximum(x, 0), orders)
    right = out[orders] * np.exp(shift)
    # Left of 0 terms cancel; Kummer's eˣ F(b-a, b, -x) has the same sign throughout.
    out, shift = _series([b - a], [b], np.maximum(-x, 0), (i + j, j))
    left = (-1) ** i * _binomial_sum(j, lambda m: out[i + m, j - m]) * np.exp(shift + x)
    return np.where(x < 0, left, right)


def _hyp2f1(a, b, c, x, *, orders):
    if not any(orders):
        return scipy().hyp2f1(a, b, c, x)
    a, b, c, x = np.broadcast_arrays(a, b, c, x)
    i, j, k = orders
    inside = np.where((x >= 0) & (x < 1), x, 0.0)
    out, shift = _series([a, b], [c], inside, orders)
    right = np.where(x < 1, out[orders] * np.exp(shift), np.nan)
    # Left of 0: Pfaff's (1-x)⁻ᵃ F(a, c-b, c, x/(x-1)).
    below = np.minimum(x, 0)
    out, shift = _series([a, c - b], [c], below / (below - 1), (i, j + k, k))
    slope = -np.log1p(-below)
    left = _binomial_sum(
        i, lambda p: slope ** (i - p) * _binomial_sum(k, lambda m: out[p, j + m, k - m])
    )
    left = (-1) ** j * left * np.exp(shift + a * slope)
    return np.where(x < 0, left, right)


class Hypergeometric(Elementwise):
    """A function of some upper and one lower parameter and x, differentiated `orders` times."""

    def __init__(self, name: str, evaluate: Callable[..., Any], uppers: int):
        count = uppers + 1

        def by_parameter(axis):
            def rule(t, out, *args, orders):
                raised = (*orders[:axis], orders[axis] + 1, *orders[axis + 1 :])
                return mul(t, self.bind(*args, orders=raised))

            return rule

        def by_x(t, out, *args, orders):
            # ∂F/∂x = u₁u₂…/l · F(u₁+1, …, l+1, x), and Leibniz' rule for the parameters.
            *parameters, x = args
            one = full_like(x, 1)
            raised = [add(p, one) for p in parameters]
            total = None
            for used in itertools.product(
                *(range(min(n, 1) + 1) for n in orders[:uppers]), range(orders[uppers] + 1)
            ):
                rest = tuple(n - m for n, m in zip(orders, used, strict=True))
                m = used[uppers]
                ways = math.prod(math.comb(n, m) for n, m in zip(orders, used, strict=True))
                factor = full_like(x, ways * (-1) ** m * math.factorial(m))
                for p, m_upper in zip(parameters[:uppers], used, strict=False):
                    factor = factor if m_upper else mul(factor, p)
                factor = div(factor, integer_pow(parameters[uppers], m + 1))
                term = mul(factor, self.bind(*raised, x, orders=rest))
                total = term if total is None else add(total, term)
            return mul(t, total)

        super().__init__(
            name,
            lambda *args, orders: in_dtype(lambda *a: evaluate(*a, orders=orders), False)(*args),
            jvp=[*map(by_parameter, range(count)), by_x],
            dtypes=floating,
        )


hyp1f1_p = Hypergeometric("hyp1f1", _hyp1f1, uppers=1)
hyp2f1_p = Hypergeometric("hyp2f1", _hyp2f1, uppers=2)


def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's confluent hypergeometric function, Σₖ (a)ₖ / (b)ₖ · xᵏ / k!.

    Operands have one shape or are scalars.

    Example:
        >>> float(hyp1f1(0.0, 1.0, 5.0))
        1.0
    """
    return hyp1f1_p.bind(a, b, x, orders=(0, 0))


def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss' hypergeometric function, Σₖ (a)ₖ (b)ₖ / (c)ₖ · xᵏ / k!, continued to x < 1.

    Operands have one shape or are scalars.

    Example:
        >>> float(hyp2f1(1.0, 1.0, 1.0, 0.5))
        2.0
    """
    return hyp2f1_p.bind(a, b, c, x, orders=(0, 0, 0))
