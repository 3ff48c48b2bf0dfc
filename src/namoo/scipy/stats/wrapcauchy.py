"""The wrapped Cauchy distribution of angles.

f(x) = (1 - c²) / (2π (1 + c² - 2c cos x)) for 0 ≤ x ≤ 2π
"""

from __future__ import annotations

import math
from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import cos, exp, log, log1p, square

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


def logpdf(x: Any, c: Any) -> Array:
    """The logarithm of the density.

    Args:
        x: angles in radians.
        c: how concentrated they are, between 0 and 1; otherwise the result is NaN.

    Example:
        >>> logpdf(0.0, 0.5).round(4)
        Array(-0.7393, dtype=float32, weak_type=True)
    """
    x, c = promote_inexact("wrapcauchy.logpdf", x, c)
    valid = (c > 0) & (c < 1)
    safe = jnp.where(valid, c, 0.5)
    spread = 1 + safe * safe - 2 * safe * cos(x)
    value = log1p(-square(safe)) - math.log(2 * math.pi) - log(spread)
    value = jnp.where((x >= 0) & (x <= 2 * math.pi), value, -jnp.inf)
    return jnp.where(valid, value, jnp.nan)


def pdf(x: Any, c: Any) -> Array:
    """The density.

    Args:
        x: angles in radians.
        c: how concentrated they are, between 0 and 1; otherwise the result is NaN.

    Example:
        >>> pdf(0.0, 0.5).round(4)
        Array(0.4775, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, c))


_guard(globals())
