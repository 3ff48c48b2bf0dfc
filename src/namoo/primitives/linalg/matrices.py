"""What the operations of linear algebra share: stacks of matrices, their types, and the matrix
functions that derivative rules are written with.

An operation works on the last one or two axes of each operand; the axes before them are *batch*
axes, equal in all operands.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes as _dtypes
from namoo._base.caches import cached
from namoo.analysis import sharding_rules as rules
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive
from namoo.eager import attach_shortcuts
from namoo.primitives.contract import batch_matmul
from namoo.primitives.elementwise import (
    add,
    complex,
    conj,
    div,
    eq,
    full_like,
    ge,
    le,
    mul,
    real,
    select,
)
from namoo.primitives.families import accepts, inexact
from namoo.primitives.gather import gather
from namoo.primitives.gather_dimensions import GatherDimensionNumbers
from namoo.primitives.precision import Precision
from namoo.primitives.shape import (
    broadcast,
    broadcast_in_dim,
    broadcast_to,
    broadcasted_iota,
    convert_element_type,
    expand_dims,
    moveaxis,
    reduce_sum,
    shape_of,
    transpose,
    zeros,
)
from namoo.primitives.slicing import slice_in_dim


class MatrixPrimitive(Primitive):
    """An operation on stacks of matrices and vectors.

    A subclass defines `results`, the types for one matrix, and `compute`, the values by NumPy or
    SciPy. If `compute` raises `LinAlgError`, the results for that matrix are NaN.
    """

    ranks: tuple[int, ...] = (2,)
    """The number of axes of one example of each operand."""
    dtypes: tuple[type, ...] = inexact
    stacks = False
    """Whether `compute` takes whole stacks, as NumPy's functions do, or one matrix at a time."""

    def in_stacks(self, **params: Any) -> bool:
        """`stacks`, where it depends on the parameters."""
        return self.stacks

    def results(self, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        """The types of the results for one example."""
        raise self._missing("results")

    def compute(self, *values: Any, **params: Any) -> Sequence[Any]:
        """The results for one example, or for a whole stack."""
        raise self._missing("compute")

    def abstract(self, *avals, **params):
        self._check_types(avals)
        ndims = [len(a.shape) - rank for a, rank in zip(avals, self.ranks, strict=True)]
        for i, (aval, rank) in enumerate(zip(avals, self.ranks, strict=True)):
            if len(aval.shape) < rank:
                raise TypeError(
                    f"Input {i} to {self.name} must have rank at least {rank}, but got "
                    f"shape={aval.shape}."
                )
        shapes = ", ".join(str(a.shape) for a in avals)
        if len(set(ndims)) > 1:
            raise TypeError(
                f"All inputs to {self.name} must have the same number of batch dimensions, but "
                f"got {ndims} batch dimensions for the shapes {shapes}: broadcast them first, or "
                "use vmap."
            )
        batches = [a.shape[:n] for a, n in zip(avals, ndims, strict=True)]
        if len(set(batches)) > 1:
            raise ValueError(
                f"The batch dimensions of the inputs to {self.name} must be equal, got shapes "
                f"{shapes}."
            )
        weak = all(a.weak_type for a in avals)
        inner = [ShapedArray(a.shape[n:], a.dtype) for a, n in zip(avals, ndims, strict=True)]
        outs = [
            ShapedArray((*batches[0], *out.shape), out.dtype, weak)
            for out in self.results(*inner, **params)
        ]
        return outs if self.multiple_results else outs[0]

    def sharded(self, *xs, **params):
        batch = rules.of_matrices(self.name, xs, self.ranks)
        if not self.multiple_results:
            return batch
        one = [ShapedArray(x.shape[len(batch) :], x.dtype) for x in xs]
        return [batch] * len(self.results(*one, **params))

    def _check_types(self, avals):
        for i, aval in enumerate(avals):
            if not accepts(aval.dtype, self.dtypes):
                kinds = ", ".join(kind.__name__ for kind in self.dtypes)
                raise TypeError(
                    f"{self.name} does not accept dtype {aval.dtype} at position {i}. Accepted "
                    f"dtypes at position {i} are subtypes of {kinds}."
                )
        if len({aval.dtype for aval in avals}) > 1:
            raise TypeError(
                f"lax.{self.name} requires arguments to have the same dtypes, got "
                f"{', '.join(str(aval.dtype) for aval in avals)}."
            )

    def evaluate(self, *values, **params):
        types = tuple((x.shape, x.dtype) for x in values)
        avals = _result_types(self, types, tuple(params.items()))
        if all(a.size == 0 for a in avals):
            found: Any = [np.empty(a.shape, a.dtype) for a in avals]
        else:
            # LAPACK has no types narrower than single precision.
            values = [x.astype(np.float32) if _is_narrow(x.dtype) else x for x in values]
            found = self._values(values, avals, params)
        typed = [
            np.asarray(x).astype(a.dtype, copy=False) for x, a in zip(found, avals, strict=True)
        ]
        return typed if self.multiple_results else typed[0]

    def _values(self, values, avals, params):
        ndim = values[0].ndim - self.ranks[0]
        if ndim == 0:
            return self._values_or_nan(values, avals, params)
        if not self.in_stacks(**params):
            return self._one_by_one(values, avals, params, ndim)
        try:
            return self.compute(*values, **params)
        except np.linalg.LinAlgError:
            # One matrix of the stack failed: compute them one by one.
            return self._one_by_one(values, avals, params, ndim)

    def _one_by_one(self, values, avals, params, ndim):
        outs = [np.empty(a.shape, a.dtype) for a in avals]
        inner = [ShapedArray(a.shape[ndim:], a.dtype) for a in avals]
        for index in np.ndindex(avals[0].shape[:ndim]):
            one = self._values_or_nan([x[index] for x in values], inner, params)
            for out, value in zip(outs, one, strict=True):
                out[index] = value
        return outs

    def _values_or_nan(self, values, avals, params):
        try:
            return self.compute(*values, **params)
        except np.linalg.LinAlgError:
            return [self.failed(a) for a in avals]

    def failed(self, aval: ShapedArray) -> np.ndarray:
        """The value of a result that could not be computed."""
        value = {"c": np.nan + 1j * np.nan, "i": 0}.get(aval.dtype.kind, np.nan)
        return np.full(aval.shape, value, aval.dtype)

    def by_lapack(self, emit: Any, *operands: Any, **params: Any) -> list[Any]:
        """The native rule for matrices that are not small, in single or double precision."""
        raise emit.unsupported()

    def native(self, emit, *operands, **params):
        avals = emit.avals
        if all(0 in a.shape for a in avals):
            outs = [emit.filled(0, a.dtype, a.shape) for a in avals]
        else:
            outs = emit.small_matrices(self.name, operands, params)
            if outs is None:
                wide = [emit.convert(x, np.float32) if _is_narrow(x.dtype) else x for x in operands]
                outs = self.by_lapack(emit, *wide, **params)
                outs = [emit.convert(x, a.dtype) for x, a in zip(outs, avals, strict=True)]
        return outs if self.multiple_results else outs[0]

    def batch(self, xs, dims, **params):
        size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        moved = [
            broadcast(x, (size,)) if d is None else moveaxis(x, d, 0)
            for x, d in zip(xs, dims, strict=True)
        ]
        outs = self.bind(*moved, **params)
        return (outs, [0] * len(outs)) if self.multiple_results else (outs, 0)


def nan_where_failed(info: Any, *xs: Any) -> list[Any]:
    """Replace the matrices for which LAPACK failed (its `info` is not zero) by NaN."""
    good = eq(info, full_like(info, 0))

    def chosen(x):
        nan = np.nan + 1j * np.nan if is_complex(x) else np.nan
        mask = broadcast_in_dim(good, shape_of(x), range(len(shape_of(info))))
        return select(mask, x, broadcast_to(full_like(x, nan), shape_of(x)))

    return [chosen(x) for x in xs]


def in_single(rule: Any) -> Any:
    """Wrap a rule for XLA: compute narrow floats in single precision, and skip empty arrays."""

    def stablehlo(self, hlo, *operands, **params):
        if all(0 in a.shape for a in hlo.avals):
            outs = [hlo.constant(0, a.dtype, a.shape) for a in hlo.avals]
        else:
            outs = rule(self, hlo, *map(hlo.widen, operands), **params)
        outs = [hlo.convert(x, a.dtype) for x, a in zip(outs, hlo.avals, strict=True)]
        return outs if self.multiple_results else outs[0]

    return stablehlo


@cached(
    "primitives.linalg result types", bound=4096, keyed_by="primitive, operand types, parameters"
)
def _result_types(prim: MatrixPrimitive, types: tuple, params: tuple) -> list[ShapedArray]:
    """The abstract rule, cached: it takes longer than computing with a small matrix."""
    outs: Any = prim.abstract(*(ShapedArray(*t) for t in types), **dict(params))
    return outs if prim.multiple_results else [outs]


def _is_narrow(dtype: np.dtype) -> bool:
    return dtype.kind in "fV" and dtype.itemsize < 4


def real_dtype(dtype: Any) -> Any:
    """The type of the absolute value."""
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def check_square(name: str, shape: tuple[int, ...]) -> int:
    """Return the size of a square matrix; raise ValueError if it is not square."""
    if shape[0] != shape[1]:
        raise ValueError(f"The input to {name} must be a square matrix, got shape {shape}.")
    return shape[0]


@cached("primitives.linalg SciPy module", bound=1, keyed_by="nothing", kept=True)
def scipy_linalg() -> Any:
    """SciPy's linear algebra, imported at its first use."""
    try:
        import scipy.linalg
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "this factorisation is computed by LAPACK from SciPy, which is not installed. Install "
            "it with `pip install scipy`."
        ) from error
    return scipy.linalg


@cached("primitives.linalg SciPy is installed", bound=1, keyed_by="nothing", kept=True)
def has_scipy() -> bool:
    """Whether SciPy is installed; linear systems and determinants do not need it."""
    return importlib.util.find_spec("scipy") is not None


def numpy_lapack(names: Sequence[str], results: str, a: np.ndarray) -> Any:
    """Call a function of NumPy's LAPACK on a stack, in the operand's dtype; NaN where it fails.

    The functions of `np.linalg` would compute in double precision.

    Args:
        names: the names of the function in different versions of NumPy.
        results: a letter for each result: "t" has the dtype of `a`, "r" that of its real part.
        a: matrices of shape [..., m, n].
    """
    functions: Any = np.linalg._umath_linalg  # pyright: ignore[reportAttributeAccessIssue]
    function = next(getattr(functions, name) for name in names if hasattr(functions, name))
    kinds = {"t": a.dtype.char, "r": a.dtype.char.lower()}
    signature = f"{a.dtype.char}->{''.join(map(kinds.__getitem__, results))}"
    with np.errstate(all="ignore"):
        return function(a, signature=signature)


_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


def lapack(name: str, dtype: np.dtype) -> Any:
    """Return a LAPACK routine by its name without the type letter: "getrf" of float32 is sgetrf."""
    return getattr(scipy_linalg().lapack, _PREFIX[dtype.char] + name)


def blas(name: str, dtype: np.dtype) -> Any:
    """Return a BLAS routine by its name without the type letter."""
    return getattr(scipy_linalg().blas, _PREFIX[dtype.char] + name)


def is_complex(x: Any) -> bool:
    """Whether the elements are complex."""
    return aval_of(x).dtype.kind == "c"


def mT(x: Any) -> Any:
    """Each matrix transposed."""
    n = len(shape_of(x))
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; real arrays are unchanged."""
    return conj(x) if is_complex(x) else x


def adjoint(x: Any) -> Any:
    """Each matrix transposed and conjugated."""
    return conjugate(mT(x))


def matmul(x: Any, *others: Any) -> Any:
    """The product of stacks of matrices, from the left, in full precision on every device."""
    for other in others:
        x = batch_matmul(x, other, Precision.HIGHEST)
    return x


def symmetrize(name: str, x: Any) -> Any:
    """(x + xᴴ) / 2; `name` is the function that error messages mention."""
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise TypeError(f"{name} takes square matrices of shape [..., n, n], got shape {shape}.")
    return div(add(x, adjoint(x)), full_like(x, 2))


def _places(x: Any, compare: Any, k: int) -> Any:
    """A mask of the elements [i, j] of each matrix with `compare(i + k, j)`."""
    shape = shape_of(x)
    rows, columns = (broadcasted_iota(np.int32, shape[-2:], d) for d in (0, 1))
    return broadcast_to(compare(add(rows, np.int32(k)), columns), shape)


def tril(x: Any, k: int = 0) -> Any:
    """Each matrix with zeros above its k-th diagonal."""
    return select(_places(x, ge, k), x, zeros(aval_of(x)))


def triu(x: Any, k: int = 0) -> Any:
    """Each matrix with zeros below its k-th diagonal."""
    return select(_places(x, le, k), x, zeros(aval_of(x)))


def identity(x: Any) -> Any:
    """The identity, of the shape and type of the stack of matrices `x`."""
    return convert_element_type(_places(x, eq, 0), aval_of(x).dtype)


def diagonal(x: Any) -> Any:
    """The diagonal of each matrix."""
    n = len(shape_of(x))
    return reduce_sum(select(_places(x, eq, 0), x, zeros(aval_of(x))), (n - 2,))


def along_rows(v: Any, rows: int) -> Any:
    """Repeat the vector `v` as each of `rows` rows."""
    *batch, n = shape_of(v)
    return broadcast_in_dim(v, (*batch, rows, n), (*range(len(batch)), len(batch) + 1))


def along_columns(v: Any, columns: int) -> Any:
    """Repeat the vector `v` as each of `columns` columns."""
    *batch, n = shape_of(v)
    return broadcast_in_dim(v, (*batch, n, columns), range(len(batch) + 1))


def scale_columns(x: Any, v: Any) -> Any:
    """x · diag(v)"""
    return mul(x, along_rows(v, shape_of(x)[-2]))


def real_part(x: Any) -> Any:
    """The real part; real arrays are unchanged."""
    return real(x) if is_complex(x) else x


def as_type_of(x: Any, other: Any) -> Any:
    """A real array in the type of `other`, which may be complex."""
    dtype = aval_of(other).dtype
    if dtype.kind == "c" and not is_complex(x):
        return complex(x, full_like(x, 0))
    return convert_element_type(x, dtype)


def rows(x: Any, start: int, stop: int) -> Any:
    """Some of the rows of each matrix."""
    return slice_in_dim(x, start, stop, axis=len(shape_of(x)) - 2)


def columns(x: Any, start: int, stop: int) -> Any:
    """Some of the columns of each matrix."""
    return slice_in_dim(x, start, stop, axis=len(shape_of(x)) - 1)


def take_rows(x: Any, rows: Any) -> Any:
    """The rows of each matrix in the order given by the integers `rows`."""
    *batch, count, columns = shape_of(x)
    if not count:
        return x
    n = len(batch)
    batch_dims = tuple(range(n))
    numbers = GatherDimensionNumbers(
        offset_dims=(n + 1,),
        collapsed_slice_dims=(n,),
        start_index_map=(n,),
        operand_batching_dims=batch_dims,
        start_indices_batching_dims=batch_dims,
    )
    return gather(
        x,
        expand_dims(rows, (n + 1,)),
        numbers,
        (*(min(1, size) for size in batch), 1, columns),
        unique_indices=True,
        mode="promise_in_bounds",
    )


def canonical(x: Any) -> Any:
    """An operand of a public function: integers and booleans become floats."""
    dtype = aval_of(x).dtype
    return (
        x if accepts(dtype, inexact) else convert_element_type(x, _dtypes.to_inexact_dtype(dtype))
    )


attach_shortcuts(globals())
