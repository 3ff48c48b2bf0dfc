"""Student's t-distribution.

f(x) = Γ((df+1)/2) / (√(π df) Γ(df/2)) · (1 + x²/df)^(-(df+1)/2), shifted by `loc` and scaled
by `scale`
"""

from __future__ import annotations

import math
from typing import Any

from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.primitives.elementwise import exp, log, log1p, square
from namoo.scipy.special.gammas import gammaln
from namoo.scipy.stats.arguments import promote_strong

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        df: the degrees of freedom.
        loc: the median.
        scale: the scale of values.

    Example:
        >>> logpdf(0.0, 1.0).round(4)
        Array(-1.1447, dtype=float32, weak_type=True)
    """
    x, df, loc, scale = promote_strong("t.logpdf", x, df, loc, scale)
    power = (df + 1) / 2
    normalizer = gammaln(df / 2) + log(square(scale) * math.pi * df) / 2 - gammaln(power)
    return -(normalizer + power * log1p(square((x - loc) / scale) / df))


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        df: the degrees of freedom.
        loc: the median.
        scale: the scale of values.

    Example:
        >>> pdf(0.0, 1.0).round(4)
        Array(0.3183, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, df, loc, scale))


_guard(globals())
