"""Arrays with a pattern: identities, triangles, diagonals, grids and their indices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.config import numpy_dtype_promotion
from namoo.core.array import Array, EagerArray
from namoo.core.avals import canonical_shape
from namoo.core.trace import Tracer
from namoo.dimensions.sizes import larger, smaller
from namoo.eager import attach_shortcuts
from namoo.numpy.arithmetic import power
from namoo.numpy.creation import arange, array, concrete, user_dtype
from namoo.numpy.device_arguments import placed
from namoo.numpy.indexing import getitem
from namoo.numpy.joining import concatenate, stack
from namoo.numpy.promote import array_of, arrays_of, as_type, promote_types
from namoo.numpy.same_type import choose
from namoo.numpy.spaces import linspace
from namoo.primitives import elementwise as lax
from namoo.primitives import shape as shapes


def _length(n: Any, what: str) -> int:
    return operator.index(concrete(n, what))


def _band(shape: tuple[int, int], relation: str, k: Any, dtype: Any) -> Array:
    """Where `row + k` is equal to `column` ("eq") or not below it ("ge"), as numbers of a type."""
    rows = shapes.broadcasted_iota(np.int32, shape, 0)
    columns = shapes.broadcasted_iota(np.int32, shape, 1)
    offset = as_type(array_of("eye", k), np.dtype(np.int32))
    return as_type(getattr(lax, relation)(lax.add(rows, offset), columns), dtype)


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: number of rows.
        M: number of columns; `N` by default.
        k: the offset of the diagonal above the main one.
        dtype: type of the elements; float by default.
        device: the device or the sharding of the array.

    Raises:
        ValueError: negative sizes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.eye(2, 3, k=1)
        Array([[0., 1., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    if device is not None:
        return placed("jnp.eye", eye(N, M, k, dtype), device)
    dtype = user_dtype(float if dtype is None else dtype, "eye")
    (rows,) = canonical_shape((N,))
    columns = rows if M is None else canonical_shape((M,))[0]
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    if isinstance(k, int):
        k = max(-rows, min(k, columns))  # beyond that there is no diagonal
    return _band((rows, columns), "eq", k, dtype)


def identity(n: Any, dtype: Any = None) -> Array:
    """The identity matrix.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.identity(2, int)
        Array([[1, 0],
               [0, 1]], dtype=int32)
    """
    return eye(n, dtype=user_dtype(dtype, "identity"))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """A matrix with ones on and below a diagonal.

    Args:
        N, M: numbers of rows and columns.
        k: the offset of the diagonal above the main one.
        dtype: type of the elements; float32 by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.tri(2, 3)
        Array([[1., 0., 0.],
               [1., 1., 0.]], dtype=float32)
    """
    dtype = np.dtype(np.float32) if dtype is None else user_dtype(dtype, "tri")
    shape = canonical_shape((N, N if M is None else M))
    if not isinstance(k, Tracer):
        k = operator.index(k)
    return _band((shape[0], shape[1]), "ge", k, dtype)


def _triangle(name: str, m: Any, k: int, lower: bool) -> Array:
    x = array_of(name, m)
    if x.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {x.shape}")
    k = _length(k, f"the 'k' argument of jnp.{name}")
    mask = shapes.broadcast(tri(*x.shape[-2:], k=k if lower else k - 1, dtype=bool), x.shape[:-2])
    zero = EagerArray(np.zeros((), x.dtype), x.weak_type)
    return choose(mask, x, zero) if lower else choose(mask, zero, x)


def tril(m: Any, k: int = 0) -> Array:
    """The array with zeros above a diagonal of its last two axes.

    Args:
        m: an array of at least two axes.
        k: the offset of the diagonal above the main one.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 0],
               [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, k, True)


def triu(m: Any, k: int = 0) -> Array:
    """The array with zeros below a diagonal of its last two axes.

    Args:
        m: an array of at least two axes.
        k: the offset of the diagonal above the main one.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
        Array([[1, 2],
               [0, 4]], dtype=int32)
    """
    return _triangle("triu", m, k, False)


def _known_indices(name: str, found: tuple[np.ndarray, ...]) -> tuple[Array, ...]:
    return tuple(EagerArray(i.astype(dtypes.default_int_dtype())) for i in found)


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Array, Array]:
    """The indices of the elements on and below a diagonal.

    Args:
        n, m: numbers of rows and columns.
        k: the offset of the diagonal above the main one.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.tril_indices(2)
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, k = _length(n, "n of jnp.tril_indices"), _length(k, "k of jnp.tril_indices")
    m = n if m is None else _length(m, "m of jnp.tril_indices")
    rows, columns = _known_indices("tril_indices", np.tril_indices(n, k, m))
    return rows, columns


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> tuple[Array, Array]:
    """The indices of the elements on and above a diagonal.

    Args:
        n, m: numbers of rows and columns.
        k: the offset of the diagonal above the main one.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.triu_indices(2)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, k = _length(n, "n of jnp.triu_indices"), _length(k, "k of jnp.triu_indices")
    m = n if m is None else _length(m, "m of jnp.triu_indices")
    rows, columns = _known_indices("triu_indices", np.triu_indices(n, k, m))
    return rows, columns


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = arr.shape if hasattr(arr, "shape") else array_of(name, arr).shape
    if len(shape) != 2:
        raise ValueError(f"Only 2-D inputs are accepted by jnp.{name}, got shape {shape}")
    return shape


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of a matrix.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.tril_indices_from(jnp.zeros((2, 2)))
        (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of a matrix.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.triu_indices_from(jnp.zeros((2, 2)))
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """The indices of the elements that a function such as `triu` leaves in an n × n matrix.

    Args:
        n: the size of the matrix.
        mask_func: function of a matrix and `k`.
        k: passed on.
        size: how many indices to return, for use under `jit`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.mask_indices(2, jnp.triu)
        (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    from namoo.numpy.creation import ones
    from namoo.numpy.searching import nonzero

    rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    return rows, columns


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of equal lengths.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.diag_indices(2)
        (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = _length(n, "n of jnp.diag_indices"), _length(ndim, "ndim of jnp.diag_indices")
    for name, value in (("n", n), ("ndim", ndim)):
        if value < 0:
            raise ValueError(f"{name} argument to diag_indices must be nonnegative, got {value}")
    return (arange(n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """`diag_indices` for the shape of an array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.diag_indices_from(jnp.zeros((2, 2)))
        (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    x = array_of("diag_indices_from", arr)
    if x.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(x.shape)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length, got {x.shape}")
    return diag_indices(x.shape[0], x.ndim)


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """The array with other values on its main diagonal.

    Args:
        a: the array.
        val: a number, or numbers that are repeated as needed.
        wrap: not supported.
        inplace: must be False: arrays are immutable.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5, inplace=False)
        Array([[5., 0.],
               [0., 5.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError(
            "Arrays are immutable: write x = jnp.fill_diagonal(x, val, inplace=False)"
        )
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    x, values = arrays_of("fill_diagonal", a, val)
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got {x.shape}")
    n = min(x.shape)
    if values.ndim:
        from namoo.numpy.manipulation import resize

        values = resize(values, (n,))
    return x.at[diag_indices(n, x.ndim)].set(values)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements on a diagonal, in the last axis of the result.

    Args:
        a: an array of at least two axes.
        offset: the offset of the diagonal above the main one.
        axis1, axis2: the axes of the matrices.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
        Array([1, 4], dtype=int32)
    """
    x = array_of("diagonal", a)
    if x.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    offset = _length(offset, "the 'offset' argument of jnp.diagonal")
    first, second = (shapes.canonical_axis(i, x.ndim) for i in (axis1, axis2))
    return _diagonal(x, offset, first, second)


def _diagonal(x: Array, offset: int, first: int, second: int) -> Array:
    others = [i for i in range(x.ndim) if i not in (first, second)]
    x = shapes.transpose(x, (*others, first, second))
    rows, columns = x.shape[-2:]
    size = larger(0, smaller(rows + min(offset, 0), columns - max(offset, 0)))
    line = (np.arange if isinstance(size, int) else arange)(size, dtype=np.int32)
    return getitem(x, (..., line + max(-offset, 0), line + max(offset, 0)))


def diag(v: Any, k: int = 0) -> Array:
    """The matrix with a vector on a diagonal; or the diagonal of a matrix.

    Args:
        v: a vector or a matrix.
        k: the offset of the diagonal above the main one.

    Raises:
        ValueError: an array of another rank.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.diag(jnp.array([1, 2]))
        Array([[1, 0],
               [0, 2]], dtype=int32)
    """
    from namoo.primitives.slicing import pad

    x = array_of("diag", v)
    k = operator.index(k)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {x.shape}")
    n = x.shape[0] + abs(k)
    zero = EagerArray(np.zeros((), x.dtype), x.weak_type)
    column = pad(x, zero, [(max(0, -k), max(0, k), 0)])
    column = shapes.broadcast_in_dim(column, (n, n), (0,))
    return choose(eye(n, k=k, dtype=bool), column, zero)


def diagflat(v: Any, k: int = 0) -> Array:
    """The matrix with all elements of an array on a diagonal.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.diagflat(jnp.array([[1, 2]]), 1)
        Array([[0, 1, 0],
               [0, 0, 2],
               [0, 0, 0]], dtype=int32)
    """
    x = array_of("diagflat", v)
    return as_type(diag(shapes.reshape(x, (x.size,)), k), x.dtype)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """The Vandermonde matrix: columns are powers of a vector.

    Args:
        x: the vector.
        N: number of columns; the length of `x` by default.
        increasing: whether powers rise from left to right.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.vander(jnp.array([1, 2, 3]), 2)
        Array([[1, 1],
               [2, 1],
               [3, 1]], dtype=int32)
    """
    x = array_of("vander", x)
    if x.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array, got shape {x.shape}")
    n = x.shape[0] if N is None else _length(N, "the 'N' argument of jnp.vander")
    if n < 0:
        raise ValueError(f"N must be nonnegative, got {n}")
    exponents = shapes.iota(x.dtype, n)
    if not increasing:
        exponents = lax.sub(np.asarray(n - 1, x.dtype), exponents)
    return power(shapes.reshape(x, (x.shape[0], 1)), shapes.reshape(exponents, (1, n)))


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """The coordinates of a grid, from the coordinates along each axis.

    Args:
        xi: vectors.
        copy: must be True.
        sparse: leave axes that a coordinate does not depend on at length 1.
        indexing: 'xy' puts the first vector along columns, 'ij' along rows.

    Example:
        >>> import namoo.numpy as jnp
        >>> x, y = jnp.meshgrid(jnp.array([1, 2]), jnp.array([3, 4, 5]))
        >>> x.shape, y[:, 0]
        ((3, 2), Array([3, 4, 5], dtype=int32))
    """
    vectors = arrays_of("meshgrid", *xi)
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    if any(v.ndim != 1 for v in vectors):
        raise ValueError(
            f"Arguments to jax.numpy.meshgrid must be 1D, got shapes {[v.shape for v in vectors]}"
        )
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[0], places[1] = 1, 0
    full = [0] * len(vectors)
    for place, v in zip(places, vectors, strict=True):
        full[place] = v.shape[0]
    out = []
    for place, v in zip(places, vectors, strict=True):
        shape = [n if not sparse or i == place else 1 for i, n in enumerate(full)]
        out.append(shapes.broadcast_in_dim(v, shape, (place,)))
    return out


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The index along each axis, for every element of a shape.

    Args:
        dimensions: the shape.
        dtype: type of the indices; the default integer.
        sparse: a tuple of arrays in which other axes have length 1, instead of one array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.indices((2, 2))
        Array([[[0, 0],
                [1, 1]],
        <BLANKLINE>
               [[0, 1],
                [0, 1]]], dtype=int32)
    """
    dtype = user_dtype(int if dtype is None else dtype, "indices")
    sizes = tuple(_length(n, "the dimensions of jnp.indices") for n in dimensions)
    out = []
    for i, n in enumerate(sizes):
        shape = tuple(m if j == i else 1 for j, m in enumerate(sizes)) if sparse else sizes
        out.append(shapes.broadcast_in_dim(shapes.iota(dtype, n), shape, (i,)))
    if sparse:
        return tuple(out)
    return stack(out, 0) if out else array([], dtype=dtype)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Vectors of indices shaped so that together they select a grid.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.arange(6).reshape(2, 3)
        >>> x[jnp.ix_(jnp.array([0, 1]), jnp.array([0, 2]))]
        Array([[0, 2],
               [3, 5]], dtype=int32)
    """
    vectors = arrays_of("ix_", *args)
    out = []
    for i, v in enumerate(vectors):
        if v.ndim != 1:
            raise ValueError(
                f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {v.shape}"
            )
        if v.dtype == np.bool_:
            raise NotImplementedError(
                "Boolean arguments to jax.numpy.ix_ are not implemented: pass jnp.nonzero(mask)[0]"
            )
        if not v.size:
            v = as_type(v, dtypes.default_int_dtype())
        shape = [1] * len(vectors)
        shape[i] = v.shape[0]
        out.append(shapes.reshape(v, shape))
    return tuple(out)


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any
) -> Array:
    """An array computed from the indices of its elements.

    Args:
        function: function of one scalar index for each axis.
        shape: the shape.
        dtype: type of the indices.
        kwargs: passed on to the function.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fromfunction(lambda i, j: i + 10 * j, (2, 3), dtype=int)
        Array([[ 0, 10, 20],
               [ 1, 11, 21]], dtype=int32)
    """
    from namoo.api.map import vmap

    sizes = canonical_shape(shape)
    lines = [arange(n, dtype=dtype) for n in sizes]

    def call(*values):
        return function(*values, **kwargs)

    for i in range(len(sizes)):
        axes = tuple(0 if len(sizes) - 1 - i == j else None for j in range(len(sizes)))
        call = vmap(call, in_axes=axes)
    return call(*lines)


def _line(s: slice, name: str) -> Array:
    """The numbers that a slice in brackets denotes; an imaginary step is their count."""
    start, stop, step = (
        concrete(getattr(s, part), f"the slice {part} of jnp.{name}")
        for part in ("start", "stop", "step")
    )
    start, step = start or 0, step or 1
    if np.iscomplex(step):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """`mgrid` and `ogrid`: grids written as slices."""

    def __init__(self, name: str, sparse: bool):
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key, self.name)
        lines = [_line(k, self.name) for k in key]
        if not lines:
            return [] if self.sparse else arange(0)
        with numpy_dtype_promotion("standard"):  # ranges promote like Python numbers
            lines = promote_types(self.name, *lines)
        grids = meshgrid(*lines, sparse=self.sparse, indexing="ij")
        return grids if self.sparse else stack(grids, 0)

    def __repr__(self) -> str:
        return f"<jnp.{self.name}: index it with slices>"


class _Concatenator:
    """`r_` and `c_`: arrays joined in brackets; slices are ranges."""

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int):
        self.name = name
        self.defaults = [axis, ndmin, trans1d, -1]

    def __getitem__(self, key: Any) -> Array:
        items = key if isinstance(key, tuple) else (key,)
        axis, ndmin, trans1d, matrix = self.defaults
        if isinstance(items[0], str):
            axis, ndmin, trans1d, matrix = self._directive(items[0])
            items = items[1:]
        parts = []
        for item in items:
            if isinstance(item, str):
                raise ValueError("string directive must be placed at the beginning")
            is_slice = isinstance(item, slice)
            part = _line(item, self.name) if is_slice else array(item, copy=False)
            ndim = 0 if is_slice else part.ndim
            part = array(part, copy=False, ndmin=ndmin)
            if trans1d != -1 and ndmin > ndim:
                turn = ndmin - abs(ndmin + trans1d + 1) % ndmin
                order = [*range(ndmin)]
                part = shapes.transpose(part, order[turn:] + order[:turn])
            parts.append(part)
        out = concatenate(parts, axis)
        return shapes.expand_dims(out, (matrix,)) if matrix != -1 and out.ndim == 1 else out

    def _directive(self, text: str) -> list[int]:
        axis, ndmin, trans1d, _ = self.defaults
        if text in ("r", "c"):
            return [axis, ndmin, trans1d, "rc".index(text)]
        words: list[Any] = text.split(",")
        words = words + self.defaults[len(words) :] if len(words) < 4 else [*words[:3], -1]
        try:
            return [int(word) for word in words]
        except ValueError:
            raise ValueError(f"could not understand directive {text!r}") from None

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<jnp.{self.name}: index it with arrays and slices>"


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)
r_ = _Concatenator("r_", 0, 1, -1)
c_ = _Concatenator("c_", -1, 2, 0)
s_ = np.s_
index_exp = np.index_exp

__test__ = {
    "mgrid": """
        >>> import namoo.numpy as jnp
        >>> jnp.mgrid[0:2, 0:3].shape, [g.shape for g in jnp.ogrid[0:2, 0:3]]
        ((2, 2, 3), [(2, 1), (1, 3)])
    """,
    "r_": """
        >>> import namoo.numpy as jnp
        >>> jnp.r_[jnp.array([1, 2]), 0, 3:5], jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])].shape
        (Array([1, 2, 0, 3, 4], dtype=int32), (2, 2))
    """,
}


attach_shortcuts(globals())
