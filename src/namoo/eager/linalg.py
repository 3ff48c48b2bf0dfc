"""Shortcuts of products of arrays and of linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base.lazy import later
from namoo.core.array import Array, EagerArray
from namoo.eager.shortcuts import Entries, Function, quiet
from namoo.primitives.contract import matrix_product

ENTRIES = Entries()

systems = later("namoo.primitives.linalg.systems")


def _product(compute: Function, a: Any, b: Any) -> Array | None:
    if type(a) is not EagerArray or type(b) is not EagerArray:
        return None
    x, y = a._value, b._value
    if x.dtype is not y.dtype or x.dtype.char not in "fdFD":
        return None
    try:
        return EagerArray(quiet(compute, x, y), a._weak and b._weak)
    except ValueError:
        # The shapes do not fit: the general path raises the error with a better message.
        return None


@ENTRIES.shortcut("numpy.contraction.dot", remembers=True)
def dot(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array | None:
    """Floats of one type, of 32 bits or more, and no choice of precision."""
    plain = precision is None and preferred_element_type is None
    return _product(_dot, a, b) if plain else None


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.ndim == 0 or y.ndim == 0:
        return np.asarray(np.multiply(x, y))
    return matrix_product(x, y) if x.ndim <= 2 and y.ndim <= 2 else np.dot(x, y)


@ENTRIES.shortcut("numpy.contraction.matmul", remembers=True)
def matmul(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array | None:
    """Floats of one type, of 32 bits or more, and no choice of precision."""
    plain = precision is None and preferred_element_type is None
    return _product(np.matmul, a, b) if plain else None


ENTRIES.remembered("numpy.contraction", "vdot tensordot inner outer")
ENTRIES.remembered("numpy.einstein", "_default_einsum")


@ENTRIES.shortcut("primitives.linalg.matrices.diagonal")
def diagonal(x: Any) -> Any:
    """Concrete matrices."""
    if type(x) is not EagerArray:
        return None
    return EagerArray(np.diagonal(x._value, axis1=-2, axis2=-1).copy(), x._weak)


@ENTRIES.shortcut("primitives.linalg.matrices.take_rows")
def take_rows(x: Any, rows: Any) -> Any:
    """Concrete matrices that have rows, and concrete indices."""
    if type(x) is not EagerArray or type(rows) is not EagerArray or not x.shape[-2]:
        return None
    value, order = x._value, rows._value
    if value.ndim > 2:
        return EagerArray(np.take_along_axis(value, order[..., None], -2), x._weak)
    return EagerArray(value[order], x._weak)


@ENTRIES.shortcut("numpy.linalg.systems.linear_solution")
def linear_solution(
    matvec: Function,
    b: Array,
    solve: Callable[[Array], Array],
    transpose_solve: Function,
) -> Array:
    """Always: nothing is differentiated, so the rule is not needed."""
    return solve(b)


def _one_matrix(x: Any) -> bool:
    """Whether this is a concrete square matrix of floats of 32 bits or more, strongly typed."""
    if type(x) is not EagerArray or x._weak:
        return False
    shape = x._value.shape
    return len(shape) == 2 and shape[0] == shape[1] > 0 and x._value.dtype.char in "fdFD"


def _solution(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    _, _, x, info = systems.lapack("gesv", a.dtype)(a, b)
    if info == 0:
        return np.ascontiguousarray(x)
    factors, _, order = systems.lu_p.compute(a)
    x = systems.one_triangular_solve(factors, b[order], True, True, False, False, True)
    return systems.one_triangular_solve(factors, x, True, False, False, False, False)


@ENTRIES.shortcut("numpy.linalg.systems.solve")
def solve(a: Any, b: Any) -> Array | None:
    """One concrete matrix, and a right side of its type."""
    if not _one_matrix(a) or type(b) is not EagerArray or not systems.has_scipy():
        return None
    x, y = a._value, b._value
    fits = y.ndim in (1, 2) and y.size and y.shape[0] == x.shape[0] and y.dtype is x.dtype
    if not fits or b._weak:
        return None
    if y.ndim == 2:
        return EagerArray(quiet(_solution, x, y))
    return EagerArray(quiet(_solution, x, y[:, None])[:, 0])


@ENTRIES.shortcut("numpy.linalg.systems.inv")
def inv(a: Any) -> Array | None:
    """One concrete matrix."""
    if not _one_matrix(a) or not systems.has_scipy():
        return None
    return EagerArray(quiet(_solution, a._value, np.eye(a.shape[0], dtype=a._value.dtype)))


def _lu_diagonal(a: np.ndarray) -> tuple[np.ndarray, Any]:
    """The diagonal of U, and the sign of the row exchanges."""
    factors, pivots, _ = systems.lapack("getrf", a.dtype)(a)
    exchanges = np.count_nonzero(pivots != np.arange(len(pivots)))
    return factors.diagonal(), a.dtype.type(1 - 2 * (exchanges % 2))


@ENTRIES.shortcut("numpy.linalg.determinants.det")
def det(a: Any) -> Array | None:
    """One concrete matrix of at least 4 rows."""
    if not _one_matrix(a) or a.shape[0] < 4 or not systems.has_scipy():
        return None
    return EagerArray(quiet(_det, a._value))


def _det(a: np.ndarray) -> np.ndarray:
    pivots, parity = _lu_diagonal(a)
    return parity * np.multiply.reduce(pivots)


@ENTRIES.shortcut("numpy.linalg.determinants._slogdet_of")
def _slogdet_of(a: Any) -> tuple[Array, Array] | None:
    """One concrete matrix of real numbers."""
    if not _one_matrix(a) or a._value.dtype.kind == "c" or not systems.has_scipy():
        return None
    sign, total = quiet(_slogdet, a._value)
    return EagerArray(np.asarray(sign)), EagerArray(np.asarray(total))


def _slogdet(a: np.ndarray) -> np.ndarray:
    pivots, parity = _lu_diagonal(a)
    sign = parity * np.multiply.reduce(np.sign(pivots))
    return np.array([sign, np.add.reduce(np.log(np.abs(pivots)))])


@ENTRIES.shortcut("numpy.linalg.decompositions.cholesky")
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array | None:
    """One concrete matrix that is positive definite."""
    if upper is not False or symmetrize_input is not True or not _one_matrix(a):
        return None
    try:
        return EagerArray(quiet(_cholesky, a._value))
    except np.linalg.LinAlgError:
        return None


def _cholesky(a: np.ndarray) -> np.ndarray:
    adjoint = a.T.conj() if a.dtype.kind == "c" else a.T
    return systems.cholesky_p.compute((a + adjoint) / a.dtype.type(2))[0].astype(a.dtype)


@ENTRIES.shortcut("numpy.linalg.norms.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array | None:
    """The length of a concrete array of floats of 32 bits or more."""
    if ord is not None or axis is not None or keepdims is not False:
        return None
    if type(x) is not EagerArray or x._value.dtype.char not in "fd":
        return None
    return EagerArray(quiet(_length, x._value), x._weak)


def _length(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.add.reduce(np.multiply(x, x), axis=None))
