"""Covariance and correlation."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
from namoo.numpy import reductions
from namoo.numpy.arithmetic import absolute
from namoo.numpy.contraction import dot
from namoo.numpy.creation import full
from namoo.numpy.elementary import sqrt
from namoo.numpy.grids import diag
from namoo.numpy.manipulation import atleast_2d, squeeze
from namoo.numpy.number_parts import real
from namoo.numpy.promote import array_of, check_arraylike, check_ranks
from namoo.numpy.same_type import is_complex, is_kind
from namoo.numpy.selection import clip
from namoo.primitives import elementwise as lax
from namoo.primitives.linalg.matrices import adjoint
from namoo.primitives.slicing import concatenate


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Array:
    """The covariances of variables: Σ w·(xᵢ - x̄ᵢ)·conj(xⱼ - x̄ⱼ) / (Σ w - ddof).

    Args:
        m: observations, a vector for one variable or a matrix for several.
        y: more variables, in the form of `m`.
        rowvar: each row is a variable; otherwise each column is.
        bias: divide by the number of observations, not by one less.
        ddof: what is subtracted from the number of observations; overrides `bias`.
        fweights: how often each observation was made, a vector of integers.
        aweights: how important each observation is, a vector.
        dtype: type of the result.

    Returns:
        A matrix of variables × variables, or a number for one variable.

    Raises:
        ValueError: more than two axes.
        TypeError: `fweights` are not integers.
        RuntimeError: weights that are not a vector, or of another length.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    return _covariances("cov", m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _covariances(
    name: str,
    m: Any,
    y: Any,
    rowvar: bool,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Array:
    arrays = [m] if y is None else [m, y]
    check_arraylike(name, *arrays)
    arrays = [array_of(name, x) for x in arrays]
    check_ranks(name, [x.shape for x in arrays])
    if any(x.ndim > 2 for x in arrays):
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ValueError(f"{name}: observations have at most 2 dimensions, got shapes {shapes}.")
    if dtype is None:
        dtype = dtypes.to_inexact_dtype(dtypes.result_type(*arrays))
    else:
        dtype = dtypes.check_user_dtype_supported(dtype, name)
        if not dtypes.issubdtype(dtype, np.inexact):
            raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype}.")
    rows = [
        atleast_2d(x.astype(dtype)) if rowvar or x.ndim < 2 else x.astype(dtype).T for x in arrays
    ]
    if any(x.shape[1] != rows[0].shape[1] for x in rows):
        raise TypeError(
            f"{name}: m and y have {rows[0].shape[1]} and {rows[1].shape[1]} observations."
        )
    x = concatenate(rows, 0)
    if not x.shape[1]:
        return squeeze(full((x.shape[0], x.shape[0]), np.nan, dtype))
    if ddof is None:
        ddof = 0 if bias else 1
    count = x.shape[1]
    w, total = _weights(fweights, aweights, count)
    if w is None:
        average = reductions.mean(x, axis=1, keepdims=True)
        factor = count - ddof
    else:
        average = reductions.average(x, axis=1, weights=w, keepdims=True)
        if aweights is None or ddof == 0:
            factor = total - ddof
        else:
            factor = total - ddof * reductions.sum(w * array_of("cov", aweights)) / total
    x = x - average
    other = x if w is None else x * w.astype(dtype)
    real_dtype = dtypes.finfo(dtype).dtype
    divisor = array_of("cov", factor).astype(real_dtype)
    return squeeze(dot(x, adjoint(other)) / divisor)


def _weights(fweights: Any, aweights: Any, count: int) -> tuple[Array | None, Any]:
    """The product of the weights that are given, and its sum."""
    w = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        part = array_of("cov", given)
        if part.ndim > 1:
            raise RuntimeError(f"cov: {name} must be a vector, got shape {part.shape}.")
        if part.shape != (count,):
            raise RuntimeError(
                f"cov: {name} has {part.size} elements for {count} observations of each variable."
            )
        if name == "fweights" and not is_kind(part, np.integer):
            raise TypeError(f"cov: fweights must be integers, got dtype {part.dtype}.")
        part = absolute(part)
        w = part if w is None else w * part
    return w, None if w is None else reductions.sum(w)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Array:
    """The correlation coefficients of variables: their covariances over their deviations.

    Args:
        x, y, rowvar, dtype: as for `cov`.

    Returns:
        A matrix of variables × variables, with ones on the diagonal; or 1 for one variable.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.corrcoef(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        Array([[ 1., -1.],
               [-1.,  1.]], dtype=float32)
    """
    c = _covariances("corrcoef", x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviation = sqrt(real(diag(c)))
    c = c / deviation[:, None] / deviation[None, :]
    if is_complex(c):
        return lax.complex(clip(lax.real(c), -1, 1), clip(lax.imag(c), -1, 1))
    return clip(c, -1, 1)


attach_shortcuts(globals())
