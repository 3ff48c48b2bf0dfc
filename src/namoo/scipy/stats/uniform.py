"""The uniform distribution on the interval from `loc` to `loc + scale`."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import exp, log

__all__ = ["cdf", "logpdf", "pdf", "ppf"]
__dir__ = __all__.copy


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
        x: where to evaluate it.
        loc: the start of the interval.
        scale: its length.

    Example:
        >>> logpdf(0.5, scale=2.0).round(4)
        Array(-0.6931, dtype=float32, weak_type=True)
    """
    x, loc, scale = promote_inexact("uniform.logpdf", x, loc, scale)
    return jnp.where((x > loc + scale) | (x < loc), -jnp.inf, -log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    Args:
        x: where to evaluate it.
        loc: the start of the interval.
        scale: its length.

    Example:
        >>> pdf(0.5, scale=2.0).round(4)
        Array(0.5, dtype=float32, weak_type=True)
    """
    return exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    Args:
        x: the upper limit.
        loc: the start of the interval.
        scale: its length.

    Example:
        >>> cdf(0.5, scale=2.0)
        Array(0.25, dtype=float32)
    """
    x, loc, scale = promote_inexact("uniform.cdf", x, loc, scale)
    share = (x - loc) / scale
    value = jnp.where(x < loc, 0, jnp.where(x > loc + scale, 1, share))
    return value.astype(x.dtype)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile: values up to it have probability q.

    Args:
        q: probabilities; NaN outside of [0, 1].
        loc: the start of the interval.
        scale: its length.

    Example:
        >>> ppf(0.5, scale=2.0)
        Array(1., dtype=float32, weak_type=True)
    """
    q, loc, scale = promote_inexact("uniform.ppf", q, loc, scale)
    return jnp.where((q >= 0) & (q <= 1), loc + scale * q, jnp.nan)


_guard(globals())
