"""The von Mises distribution of angles.

f(x) = exp(κ cos x) / (2π I₀(κ))
"""

from __future__ import annotations

import math
from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import cos, exp, log
from namoo.scipy.special.functions import i0e

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


def logpdf(x: Any, kappa: Any) -> Array:
    """The logarithm of the density.

    Args:
        x: angles in radians.
        kappa: how concentrated they are, above 0; otherwise the result is NaN.

    Example:
        >>> logpdf(0.0, 1.0).round(4)
        Array(-1.0738, dtype=float32, weak_type=True)
    """
    x, kappa = promote_inexact("vonmises.logpdf", x, kappa)
    value = kappa * (cos(x) - 1) - log(2 * math.pi * i0e(kappa))
    return jnp.where(kappa > 0, value, jnp.nan)


def pdf(x: Any, kappa: Any) -> Array:
    """The density.

    Args:
        x: angles in radians.
        kappa: how concentrated they are, above 0; otherwise the result is NaN.

    Example:
        >>> pdf(0.0, 1.0).round(4)
        Array(0.3417, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, kappa))


_guard(globals())
