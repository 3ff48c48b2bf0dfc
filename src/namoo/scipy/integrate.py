"""Integrals of samples: JAX's `jax.scipy.integrate`."""

from __future__ import annotations

from typing import Any

from namoo._base.source_context import make_entry_points as _guard
from namoo.core.array import Array
from namoo.numpy import calculus

__all__ = ["trapezoid"]
__dir__ = __all__.copy


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral of samples by the trapezoidal rule, Σ (x[i+1] - x[i]) (y[i] + y[i+1]) / 2.

    Args:
        y: the samples.
        x: where they were taken; by default at equal distances.
        dx: that distance.
        axis: the axis to integrate over.

    Raises:
        TypeError: anything that is not an array.
        ValueError: an axis out of range.

    Example:
        >>> import namoo.numpy as jnp
        >>> trapezoid(jnp.array([1.0, 2.0, 4.0]), dx=0.5)
        Array(2.25, dtype=float32)
    """
    return calculus.trapezoid(y, x, dx, axis)


_guard(globals())
