"""Norms and condition numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy import reductions
from namoo.numpy.arithmetic import absolute, power
from namoo.numpy.elementary import sqrt
from namoo.numpy.linalg.decompositions import svd
from namoo.numpy.linalg.systems import inv
from namoo.numpy.promote import array_of, promote_inexact
from namoo.primitives import elementwise as lax
from namoo.primitives.linalg import spectral
from namoo.primitives.linalg.matrices import is_complex
from namoo.primitives.shape import canonical_axis, expand_dims, reshape, transpose

Axis = int | Sequence[int] | None


def norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """The norm of a vector or a matrix.

    | ord | vector | matrix |
    |---|---|---|
    | None | √Σ\\|x\\|² | √Σ\\|x\\|² |
    | 'fro' | | √Σ\\|x\\|² |
    | 'nuc' | | the sum of the singular values |
    | inf, -inf | the largest, smallest \\|x\\| | the largest, smallest sum of a row |
    | 1, -1 | Σ\\|x\\|^±1 … | the largest, smallest sum of a column |
    | 2, -2 | √Σ\\|x\\|² … | the largest, smallest singular value |
    | 0 | how many are not zero | |
    | p | (Σ\\|x\\|ᵖ)^(1/p) | |

    Args:
        x: the array.
        ord: which norm.
        axis: one axis for vectors, two for matrices; None for the whole array, of any number of
            axes where `ord` is None.
        keepdims: keep the axes, with length 1.

    Raises:
        ValueError: an `ord` that does not exist, or more than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.norm", x)
    if axis is None:
        if ord is None:
            out = sqrt(reductions.sum(_squares(x)))
            return reshape(out, (1,) * x.ndim) if keepdims else out
        axes = tuple(range(x.ndim))
    else:
        axes = _axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(
        f"jnp.linalg.norm: improper number of axes, axis={axes}. Pass one axis for the norm of "
        "vectors, or two axes for the norm of matrices."
    )


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(canonical_axis(operator.index(a), ndim) for a in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return axes


def _squares(x: Array) -> Array:
    return lax.real(lax.mul(x, lax.conj(x))) if is_complex(x) else lax.mul(x, x)


def _vector_norm(x: Array, ord: Any, axes: tuple[int, ...] | None, keepdims: bool) -> Array:
    if isinstance(ord, str):
        hint = {"inf": " Use jnp.inf.", "-inf": " Use -jnp.inf."}.get(ord, "")
        raise ValueError(f"Invalid order {ord!r} for vector norm: write a number.{hint}")
    if ord == 2:
        return sqrt(reductions.sum(_squares(x), axes, keepdims=keepdims))
    size = absolute(x)
    if ord == math.inf:
        return reductions.max(size, axes, keepdims=keepdims, initial=0)
    if ord == -math.inf:
        return reductions.min(size, axes, keepdims=keepdims)
    if ord == 0:
        present = lax.ne(x, lax.full_like(x, 0))
        return reductions.sum(present, axes, dtype=size.dtype, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axes, keepdims=keepdims)
    exponent = np.asarray(ord, size.dtype)
    total = reductions.sum(power(size, exponent), axes, keepdims=keepdims)
    return power(total, np.asarray(1 / exponent, size.dtype))


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, int], keepdims: bool) -> Array:
    if ord is None or isinstance(ord, str) and ord == "fro":
        return sqrt(reductions.sum(_squares(x), axes, keepdims=keepdims))
    rows, columns = axes
    if not isinstance(ord, str) and ord in (1, -1, math.inf, -math.inf):
        inner, outer = axes if ord in (1, -1) else (columns, rows)
        total = reductions.sum(absolute(x), inner, keepdims=True)
        if ord > 0:
            out = reductions.max(total, outer, keepdims=True, initial=0)
        else:
            out = reductions.min(total, outer, keepdims=True)
    elif ord in ("nuc", 2, -2):
        others = tuple(i for i in range(x.ndim) if i not in axes)
        s = spectral.svd(transpose(x, (*others, rows, columns)), compute_uv=False)
        if ord == "nuc":
            out = reductions.sum(s, -1)
        else:
            out = reductions.max(s, -1, initial=0) if ord == 2 else reductions.min(s, -1)
        out = expand_dims(out, axes)
    else:
        raise ValueError(
            f"Invalid order {ord!r} for matrix norm: write 'fro', 'nuc', 1, -1, 2, -2, jnp.inf or "
            "-jnp.inf."
        )
    kept = [1 if i in axes else size for i, size in enumerate(x.shape)]
    if not keepdims:
        kept = [size for i, size in enumerate(x.shape) if i not in axes]
    return reshape(out, kept)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of matrices, over the last two axes.

    Args:
        x: matrices of shape [..., m, n].
        keepdims: keep the axes, with length 1.
        ord: which norm, as for `norm`.

    Raises:
        ValueError: fewer than two axes, or an `ord` that does not exist.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.matrix_norm(jnp.ones((3, 2, 2)))
        Array([2., 2., 2.], dtype=float32)
    """
    return norm(array_of("jnp.linalg.matrix_norm", x), ord, (-2, -1), keepdims)


def vector_norm(x: Any, /, *, axis: Axis = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of the elements over axes, taken as one vector.

    Args:
        x: the array.
        axis: an axis, several, or None for all.
        keepdims: keep the axes, with length 1.
        ord: which norm, as for vectors in `norm`.

    Raises:
        ValueError: an `ord` that does not exist.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.vector_norm(jnp.ones((2, 2)), ord=1)
        Array(4., dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.vector_norm", x)
    return _vector_norm(x, ord, None if axis is None else _axes(axis, x.ndim), keepdims)


def cond(x: Any, p: Any = None) -> Array:
    """The condition number of matrices: how much solving with them can enlarge errors.

    It is ‖x‖·‖x⁻¹‖; for the norms 2 (None) and -2 the quotient of the extreme singular values.

    Args:
        x: matrices of shape [..., m, n]; square ones where `p` is not None, 2 or -2.
        p: which norm, as for `norm`.

    Raises:
        ValueError: no matrices, none of positive size, or not square where they must be.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]]))
        Array(2., dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.cond", x)
    if x.ndim < 2:
        raise ValueError(f"jnp.linalg.cond: input must be matrices [..., m, n], got {x.shape}.")
    if 0 in x.shape:
        raise ValueError(f"jnp.linalg.cond: input array must not be empty, got {x.shape}.")
    if p is None or p in (2, -2):
        s = svd(x, compute_uv=False)
        assert isinstance(s, Array)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    if x.shape[-2] != x.shape[-1]:
        raise ValueError(f"jnp.linalg.cond: for p={p!r} matrices must be square, got {x.shape}.")
    size, inverse_size = (norm(matrix, p, (-2, -1)) for matrix in (x, inv(x)))
    return size * inverse_size


attach_shortcuts(globals())
