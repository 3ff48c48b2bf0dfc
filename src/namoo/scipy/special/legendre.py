"""Associated Legendre functions of the first kind, of all degrees and orders up to a bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import lax
from namoo import numpy as jnp
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact, to_array

__all__ = ["lpmn", "lpmn_values"]


def _checked(name: str, m: int, n: int, z: Any) -> Any:
    z = to_array(promote_inexact(name, z)[0])
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name}: z must be of type float32 or float64, got {z.dtype}.")
    if z.ndim != 1:
        raise ValueError(f"{name}: z must be a vector, got shape {z.shape}.{at_user_line()}")
    if m != n:
        raise NotImplementedError(
            f"{name}: computations for m != n are not supported, got m={m} and n={n}. Pass the "
            f"larger one as both, and take a part of the result.{at_user_line()}"
        )
    return z


def _coefficients(n: int, normalized: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How a degree follows from the two before it, for all orders, and the last order's steps.

    P[l, m] = a[l, m] z P[l-1, m] - b[l, m] P[l-2, m] for l > m, and
    P[m, m] = d[0] ... d[m] √(1 - z²)ᵐ.
    """
    l, m = np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0), indexing="ij")  # noqa: E741
    below = np.where(l > m, l, m + 1.0)
    if normalized:
        a = np.sqrt((4 * below**2 - 1) / (below**2 - m**2))
        b = np.sqrt(((below - 1) ** 2 - m**2) / np.maximum(4 * (below - 1) ** 2 - 1, 1)) * a
        d = -np.sqrt((2 * m[0] + 1) / np.maximum(2 * m[0], 1))
    else:
        a, b, d = (2 * below - 1) / (below - m), (below + m - 1) / (below - m), 1 - 2 * m[0]
    d[0] = np.sqrt(1 / (4 * np.pi)) if normalized else 1
    return np.where(l > m, a, 0), np.where(l > m, b, 0), d


def _values(n: int, z: Any, normalized: bool) -> Any:
    """P[m, l, i] at z[i]."""
    a, b, d = (jnp.asarray(x, z.dtype) for x in _coefficients(n, normalized))
    root = jnp.broadcast_to(jnp.sqrt(1 - z * z), (n, z.size))
    steps = jnp.concatenate([jnp.ones((1, z.size), z.dtype), root])
    last = jnp.cumprod(d[:, None] * steps, axis=0)

    def degree(carry: Any, row: Any) -> Any:
        one, two = carry
        a, b, is_last = row
        new = a[:, None] * z * one - b[:, None] * two + is_last[:, None] * last
        return (new, one), new

    zeros = jnp.zeros((n + 1, z.size), z.dtype)
    rows = lax.scan(degree, (zeros, zeros), (a, b, jnp.eye(n + 1, dtype=z.dtype)))[1]
    return jnp.swapaxes(rows, 0, 1)


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Array:
    """Values of the associated Legendre functions of the first kind.

    Args:
        m: the highest order.
        n: the highest degree; the same as `m`.
        z: where to compute them: a vector, in [-1, 1].
        is_normalized: whether spherical harmonics that are made of them are orthonormal.

    Returns:
        an array of shape `(m + 1, n + 1, len(z))`.

    Raises:
        TypeError: `z` is neither float32 nor float64.
        ValueError: `z` is no vector.
        NotImplementedError: `m` and `n` differ.

    Example:
        >>> import namoo.numpy as jnp
        >>> lpmn_values(1, 1, jnp.array([0.6]), False)[:, :, 0]
        Array([[ 1. ,  0.6],
               [ 0. , -0.8]], dtype=float32)
    """
    return _values(n, _checked("lpmn_values", m, n, z), bool(is_normalized))


def lpmn(m: int, n: int, z: Any) -> tuple[Array, Array]:
    """Values and derivatives of the associated Legendre functions of the first kind.

    Args:
        m: the highest order.
        n: the highest degree; the same as `m`.
        z: where to compute them: a vector, in (-1, 1).

    Returns:
        two arrays of shape `(m + 1, n + 1, len(z))`: the values and their derivatives by `z`.

    Raises:
        TypeError: `z` is neither float32 nor float64.
        ValueError: `z` is no vector.
        NotImplementedError: `m` and `n` differ.

    Example:
        >>> import namoo.numpy as jnp
        >>> lpmn(1, 1, jnp.array([0.6]))[1][:, 1, 0].round(2)
        Array([1.  , 0.75], dtype=float32)
    """
    z = _checked("lpmn", m, n, z)
    values = _values(n, z, False)
    order, degree = jnp.arange(n + 1.0)[:, None, None], jnp.arange(n + 1.0)[:, None]
    lower = jnp.pad(values[:, :-1], ((0, 0), (1, 0), (0, 0)))
    slopes = (degree * z * values - (degree + order) * lower) / (z * z - 1)
    return values, slopes.astype(z.dtype)
