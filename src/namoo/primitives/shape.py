"""Operations that move, repeat or retype elements without computing with them.

`broadcast_in_dim` and `reduce_sum` are each other's transpose, so they are defined together.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.caches import cached
from namoo._base.lazy import later
from namoo._base.source_context import warn_user
from namoo.analysis import sharding_rules as rules
from namoo.core.array import EagerArray, owned, to_numpy
from namoo.core.avals import ShapedArray, aval_of, canonical_shape
from namoo.core.primitive import Primitive, Zero
from namoo.core.trace import Tracer, eval_trace
from namoo.dimensions.sizes import broadcast_shapes
from namoo.eager import attach_shortcuts
from namoo.primitives.resharding import with_out_sharding

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcasted_iota",
    "convert_element_type", "convert_element_type_p", "copy_p", "expand_dims", "full", "iota",
    "iota_p", "reduce_sum", "reduce_sum_p", "reshape", "reshape_p", "rev", "rev_p", "squeeze",
    "squeeze_p", "stop_gradient_p", "transpose", "transpose_p",
]  # fmt: skip

checks = later("namoo.analysis.checks")
Axes = Sequence[int]
# `dtype.kind` cannot distinguish the narrow types: int4, bfloat16 and most float8 have kind 'V'.
INTEGERS = dtypes.MEMBERS[np.integer]
FLOATS = dtypes.MEMBERS[np.floating]
_NARROW = frozenset(d for d in FLOATS | INTEGERS if d.itemsize == 1 and d.isbuiltin != 1)


def canonical_axis(axis: Any, ndim: int, what: str = "axis") -> int:
    """A non-negative axis, or a ValueError that names the range."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"{what} {axis} is out of bounds for array of dimension {ndim}")
    return axis + ndim if axis < 0 else axis


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an operand."""
    try:
        return x.shape
    except AttributeError:  # a Python number
        return np.shape(x)


def argsort(values: Sequence[int]) -> list[int]:
    """The indices that sort a few numbers: for axes, faster than NumPy's."""
    return sorted(range(len(values)), key=values.__getitem__)


class ConvertElementType(Primitive):
    """Change the type of the elements."""

    name = "convert_element_type"
    quiet_params = ("sharding",)
    sets_weak = True

    def evaluate(self, x, *, new_dtype, weak_type):
        if x.dtype.kind == "c" and new_dtype.kind != "c":
            x = x.real
        if x.dtype in FLOATS and new_dtype in INTEGERS:
            return _float_to_int(x, new_dtype)
        if x.dtype.itemsize == 1 and x.dtype in _NARROW:
            # NumPy cannot convert between all narrow types.
            x = x.astype(np.int32 if x.dtype in INTEGERS else np.float32)
        return x.astype(new_dtype)

    def abstract(self, x, *, new_dtype, weak_type):
        return ShapedArray(x.shape, new_dtype, weak_type)

    def weak_result(self, weak, params):
        return params["weak_type"]

    def jvp(self, primals, tangents, *, new_dtype, weak_type):
        (x,), (t,) = primals, tangents
        out = self.bind(x, new_dtype=new_dtype, weak_type=weak_type)
        if dtypes.tangent_dtype(new_dtype) == dtypes.float0:
            return out, Zero.of(out)
        return out, self.bind(t, new_dtype=new_dtype, weak_type=weak_type)

    def transpose(self, ct, x, *, new_dtype, weak_type):
        return [self.bind(ct, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type)]

    def batch(self, xs, dims, **params):
        return self.bind(*xs, **params), dims[0]

    def native(self, emit, x, *, new_dtype, weak_type):
        return emit.convert(x, new_dtype)

    def stablehlo(self, hlo, x, *, new_dtype, weak_type):
        if x.dtype.kind == "c" and new_dtype.kind != "c":
            x = hlo.parts(x)[0]
        return hlo.convert(x, new_dtype)


def _float_to_int(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Round towards zero and saturate; NaN becomes 0, as in compiled code."""
    if x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    info = dtypes.iinfo(dtype)
    low, high = x.dtype.type(info.min), x.dtype.type(info.max)
    inside = (x >= low) & (x < high)
    if inside.all():
        return x.astype(dtype)
    out = np.where(inside, x, 0).astype(dtype)
    out = np.where(x >= high, np.array(info.max, dtype), out)
    return np.where(x < low, np.array(info.min, dtype), out)


convert_element_type_p = ConvertElementType()


def convert_element_type(x: Any, new_dtype: Any, weak_type: bool = False) -> Any:
    """Change the type of an array's elements.

    Example:
        >>> import namoo.numpy as jnp
        >>> convert_element_type(jnp.array([1.7, -1.7]), jnp.int32)
        Array([ 1, -1], dtype=int32)
    """
    new_dtype = dtypes.check_user_dtype_supported(new_dtype, "convert_element_type")
    if type(x) is int and not -(1 << 31) <= x < 1 << 31:
        # The default integer type may be too narrow for it; the new type need not be.
        wide = np.uint64(x & (1 << 64) - 1) if new_dtype in INTEGERS else np.float64(x)
        x = np.asarray(wide).astype(new_dtype)
    aval = aval_of(x)
    if aval.dtype == new_dtype and aval.weak_type == weak_type:
        if isinstance(x, (EagerArray, Tracer)):
            return x
        return owned(x, weak_type)
    if isinstance(new_dtype, dtypes.ExtendedDType) or isinstance(aval.dtype, dtypes.ExtendedDType):
        raise ValueError(
            f"Cannot convert_element_type from {aval.dtype} to {new_dtype}: use random.key_data "
            "and random.wrap_key_data to go between keys and numbers."
        )
    if aval.dtype.kind == "c" and new_dtype.kind != "c":
        warn_user(
            "Casting complex values to real discards the imaginary part",
            np.exceptions.ComplexWarning,
        )
    if not isinstance(x, (EagerArray, Tracer)):
        # A number is converted immediately, so that programs contain the result.
        params = {"new_dtype": new_dtype, "weak_type": weak_type}
        return eval_trace.process(convert_element_type_p, (x,), params)
    return convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)


def check_lengths(name: str, shape: tuple[int, ...]) -> None:
    """Raise if a shape has a negative length."""
    if any(size < 0 for size in shape):
        raise TypeError(f"{name} shape must have every element be nonnegative, got {shape}.")


def common_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that the given shapes broadcast to, by NumPy's rule."""
    if any(size < 0 for shape in shapes for size in shape):
        raise TypeError(f"Only non-negative indices are allowed in shapes, got {shapes}.")
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}.") from None


def given_shape(shape: Any) -> tuple[int, ...]:
    """A shape as the user gives it: a sequence of lengths, or one length."""
    return canonical_shape((shape,) if isinstance(shape, int) else shape)


class BroadcastInDim(Primitive):
    """Repeat an array along new axes and along axes of length 1."""

    name, linear = "broadcast_in_dim", True
    implied_params, quiet_params = ("shape",), ("broadcast_dimensions",)

    def evaluate(self, x, *, shape, broadcast_dimensions):
        if not x.shape:
            return np.full(shape, x)
        expanded, last = [1] * len(shape), -1
        for size, d in zip(x.shape, broadcast_dimensions, strict=True):
            if d <= last:
                return self._permuted(x, shape, broadcast_dimensions)
            expanded[d], last = size, d
        return np.broadcast_to(x.reshape(expanded), shape)

    def kernel(self, x, *, shape, broadcast_dimensions):
        if list(broadcast_dimensions) != sorted(broadcast_dimensions):
            return super().kernel(x, shape=shape, broadcast_dimensions=broadcast_dimensions)
        expanded = self.expanded(x, shape, broadcast_dimensions)
        if expanded == shape:
            return lambda x: x.reshape(shape)
        return lambda x: np.broadcast_to(x.reshape(expanded), shape)

    @staticmethod
    def expanded(x, shape, broadcast_dimensions):
        """The operand's shape with an axis of length 1 for each new one."""
        sizes = dict(zip(broadcast_dimensions, x.shape, strict=True))
        return tuple(sizes.get(i, 1) for i in range(len(shape)))

    def _permuted(self, x, shape, dims):
        if min(dims) < 0 or len(set(dims)) != len(dims):
            raise TypeError(dims)
        order = argsort(dims)
        return self.evaluate(
            x.transpose(order), shape=shape, broadcast_dimensions=tuple(sorted(dims))
        )

    def abstract(self, x, *, shape, broadcast_dimensions):
        check_broadcast(x.shape, shape, broadcast_dimensions)
        return ShapedArray(shape, x.dtype, x.weak_type)

    def sharded(self, x, *, shape, broadcast_dimensions):
        entries = [None] * len(shape)
        for d, size, entry in zip(broadcast_dimensions, x.shape, x.entries, strict=True):
            entries[d] = entry if shape[d] == size else None
        return entries

    def transpose(self, ct, x, *, shape, broadcast_dimensions):
        repeated = [i for i in range(len(shape)) if i not in broadcast_dimensions]
        ones = [
            d
            for size, d in zip(x.aval.shape, broadcast_dimensions, strict=True)
            if size == 1 != shape[d]
        ]
        order = argsort(broadcast_dimensions)
        ct = reduce_sum(ct, sorted((*repeated, *ones)))
        ct = reshape(ct, [x.aval.shape[i] for i in order])
        return [transpose(ct, argsort(order))]

    def batch(self, xs, dims, *, shape, broadcast_dimensions):
        (x,), (d,) = xs, dims
        size = x.shape[d]
        x = moveaxis(x, d, 0)
        dims = (0, *(i + 1 for i in broadcast_dimensions))
        return broadcast_in_dim(x, (size, *shape), dims), 0

    def native(self, emit, x, *, shape, broadcast_dimensions):
        def where(index):
            return [
                index[d] if x.shape[i] != 1 else index[d] * 0
                for i, d in enumerate(broadcast_dimensions)
            ]

        return emit.reindex(x, where, key=("broadcast_in_dim", broadcast_dimensions))

    def stablehlo(self, hlo, x, *, shape, broadcast_dimensions):
        return hlo.broadcast(x, shape, broadcast_dimensions)


@cached("primitives.shape checked broadcasts", bound=4096, keyed_by="shapes, broadcast dimensions")
def check_broadcast(own: tuple[int, ...], shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """Raise unless an operand of shape `own` can be broadcast to `shape` along `dims`."""
    check_lengths("broadcast_in_dim", shape)
    if len(dims) != len(own):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; "
            f"got broadcast_dimensions {dims} for operand shape {own}."
        )
    where = f"shape {own} to {shape} with broadcast_dimensions {dims}"
    if len(own) > len(shape):
        text = "target broadcast shape must have equal or higher rank to the operand shape"
        raise TypeError(f"broadcast_in_dim {text}; got {where}.")
    if not all(0 <= d < len(shape) for d in dims):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions; got "
            f"{where}."
        )
    if any(size not in (1, shape[d]) for size, d in zip(own, dims, strict=True)):
        raise TypeError(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their "
            f"corresponding dimensions in the target broadcast shape; got {where}."
        )
    if len(set(dims)) != len(dims):
        raise TypeError(
            f"broadcast_in_dim broadcast_dimensions must not contain duplicates; got {dims}."
        )


broadcast_in_dim_p = BroadcastInDim()


def broadcast_in_dim(
    x: Any, shape: Any, broadcast_dimensions: Axes, *, out_sharding: Any = None
) -> Any:
    """Put operand axis `i` at result axis `broadcast_dimensions[i]`, and repeat along the others.

    Example:
        >>> import namoo.numpy as jnp
        >>> broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
        Array([[1, 1, 1],
               [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(out_sharding, broadcast_in_dim, x, shape, broadcast_dimensions)
    shape, dims = canonical_shape(shape), tuple(map(operator.index, broadcast_dimensions))
    if shape_of(x) == shape and dims == tuple(range(len(shape))):
        if isinstance(x, (EagerArray, Tracer)):
            return x
        if isinstance(x, (np.ndarray, np.generic)):
            return owned(x)
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=dims)


def broadcast(x: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Any:
    """Repeat an array along new leading axes of the given sizes.

    Example:
        >>> import namoo.numpy as jnp
        >>> broadcast(jnp.array([1, 2]), (2,))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(out_sharding, broadcast, x, sizes)
    n = len(sizes)
    return broadcast_in_dim(x, (*sizes, *shape_of(x)), range(n, n + len(shape_of(x))))


def broadcast_to(x: Any, shape: Sequence[int]) -> Any:
    """Broadcast by NumPy's rule: shapes are aligned at their ends."""
    n = len(shape) - len(shape_of(x))
    return broadcast_in_dim(x, shape, range(n, len(shape)))


def expand_dims(x: Any, dimensions: Axes) -> Any:
    """Insert axes of length 1 at the given positions of the result.

    Example:
        >>> expand_dims(np.zeros(3), (0, 2)).shape
        (1, 3, 1)
    """
    shape = shape_of(x)
    ndim = len(shape) + len(dimensions)
    new = {canonical_axis(d, ndim) for d in dimensions}
    if len(new) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    kept = [i for i in range(ndim) if i not in new]
    out = [1] * ndim
    for i, size in zip(kept, shape, strict=True):
        out[i] = size
    return broadcast_in_dim(x, out, kept)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, sharding: Any = None) -> Any:
    """An array filled with one value.

    Example:
        >>> full((2,), 7, "float32")
        Array([7., 7.], dtype=float32)
    """
    if sharding is not None:
        return with_out_sharding(sharding, full, shape, fill_value, dtype)
    shape = given_shape(shape)
    if shape_of(fill_value):
        raise TypeError(
            "full must be called with scalar fill_value, "
            f"got fill_value.shape {shape_of(fill_value)}."
        )
    aval = aval_of(fill_value)
    if isinstance(dtype, dtypes.ExtendedDType) and aval.dtype != dtype:
        # Every word of the keys has the value.
        kind = dtype.numpy  # pyright: ignore[reportAttributeAccessIssue]
        return broadcast(EagerArray(np.asarray(to_numpy(fill_value)[()], kind)), shape)
    weak = dtype is None and aval.weak_type
    value = convert_element_type(fill_value, aval.dtype if dtype is None else dtype, weak)
    return broadcast(value, shape)


def zeros(aval: ShapedArray) -> Any:
    """An array of zeros of a given type."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    if isinstance(aval.dtype, dtypes.ExtendedDType):
        return EagerArray(np.zeros(aval.shape, aval.dtype.numpy))  # type: ignore[attr-defined]
    return broadcast(EagerArray(np.zeros((), aval.dtype), aval.weak_type), aval.shape)


def ones(aval: ShapedArray) -> Any:
    """An array of ones of a given type."""
    return broadcast(EagerArray(np.ones((), aval.dtype), aval.weak_type), aval.shape)


def instantiate(t: Any) -> Any:
    """An actual array instead of a symbolic zero."""
    return zeros(t.aval) if type(t) is Zero else t


class ReduceSum(Primitive):
    """Add elements along axes."""

    name, linear = "reduce_sum", True

    def guards(self, x, *, axes):
        return checks.overflow(self, x, {"axes": axes})

    def evaluate(self, x, *, axes):
        if x.dtype == np.bool_ or (axes and min(axes) < 0):
            raise TypeError(x.dtype)
        if x.dtype.kind in "iufc" and x.dtype.itemsize >= 4:
            return x.sum(axis=axes, dtype=x.dtype)
        if x.dtype in FLOATS:  # they sum in float32, and round once
            return x.astype(np.float32).sum(axis=axes).astype(x.dtype)
        return x.astype(np.int32).sum(axis=axes, dtype=np.int32).astype(x.dtype)

    def kernel(self, x, *, axes):
        if x.dtype.kind in "iufc" and x.dtype.itemsize >= 4:
            return lambda value: np.add.reduce(value, axes, value.dtype)
        return super().kernel(x, axes=axes)

    def abstract(self, x, *, axes):
        if x.dtype == dtypes.bool_:
            raise TypeError(
                "reduce_sum does not accept dtype bool: convert it to an integer type to count, or "
                "use reduce_or."
            )
        return ShapedArray(reduced_shape("reduce_sum", x.shape, axes), x.dtype, x.weak_type)

    def sharded(self, x, *, axes):
        return rules.without(x.entries, axes)

    def transpose(self, ct, x, *, axes):
        shape = x.aval.shape
        return [broadcast_in_dim(ct, shape, [i for i in range(len(shape)) if i not in axes])]

    def batch(self, xs, dims, *, axes):
        return batch_reduction(self, xs[0], dims[0], axes)

    def native(self, emit, x, *, axes):
        return emit.sum(x, axes)

    def stablehlo(self, hlo, x, *, axes):
        return hlo.convert(hlo.reduce("add", hlo.widen(x), 0, axes), x.dtype)


@cached("primitives.shape reduced shapes", bound=4096, keyed_by="operation, shape, axes")
def reduced_shape(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without the axes that are reduced over."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of {name}: {axes}")
    if not all(0 <= a < len(shape) for a in axes):
        raise ValueError(f"{name} axes {axes} are out of range for an operand of shape {shape}.")
    return tuple(size for i, size in enumerate(shape) if i not in axes)


def batch_reduction(prim: Primitive, x: Any, d: int, axes: Axes, **params: Any) -> tuple[Any, int]:
    """Batch rule of a reduction over `axes` that removes them."""
    axes = tuple(a + (a >= d) for a in axes)
    return prim.bind(x, axes=axes, **params), d - sum(a < d for a in axes)


reduce_sum_p = ReduceSum()


def reduce_sum(x: Any, axes: Axes, *, out_sharding: Any = None) -> Any:
    """Add the elements along `axes`.

    Example:
        >>> import namoo.numpy as jnp
        >>> reduce_sum(jnp.ones((2, 3)), (0,))
        Array([2., 2., 2.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(out_sharding, reduce_sum, x, axes)
    if not len(axes) and isinstance(x, (EagerArray, Tracer)):
        return x
    return reduce_sum_p.bind(x, axes=tuple(map(operator.index, axes)))


class Reshape(Primitive):
    """The same elements in the same order, with another shape."""

    name, linear = "reshape", True
    quiet_params = ("sharding",)

    def evaluate(self, x, *, new_sizes, dimensions):
        return (x if dimensions is None else np.transpose(x, dimensions)).reshape(new_sizes)

    def kernel(self, x, *, new_sizes, dimensions):
        if dimensions is None:
            return lambda value: value.reshape(new_sizes)
        return super().kernel(x, new_sizes=new_sizes, dimensions=dimensions)

    def abstract(self, x, *, new_sizes, dimensions):
        if math.prod(new_sizes) != x.size or any(d < 0 for d in new_sizes):
            raise TypeError(
                f"reshape total size must be unchanged, got new_sizes {new_sizes} "
                f"(total size {math.prod(new_sizes)}) for shape {x.shape} (total size {x.size})."
            )
        if dimensions is not None and sorted(dimensions) != list(range(x.ndim)):
            raise TypeError(
                "reshape dimensions must be a permutation of operand dimensions, "
                f"got dimensions {dimensions} for shape {x.shape}."
            )
        return x.update(shape=new_sizes)

    def sharded(self, x, *, new_sizes, dimensions):
        return rules.reshaped(x, new_sizes, dimensions)

    def transpose(self, ct, x, *, new_sizes, dimensions):
        shape = x.aval.shape
        if dimensions is None:
            return [reshape(ct, shape)]
        moved = reshape(ct, [shape[d] for d in dimensions])
        return [transpose(moved, argsort(dimensions))]

    def batch(self, xs, dims, *, new_sizes, dimensions):
        x = moveaxis(xs[0], dims[0], 0)
        if dimensions is not None:
            dimensions = (0, *(d + 1 for d in dimensions))
        return self.bind(x, new_sizes=(x.shape[0], *new_sizes), dimensions=dimensions), 0

    def native(self, emit, x, *, new_sizes, dimensions):
        if dimensions is not None:
            x = Transpose.native(transpose_p, emit, x, permutation=tuple(dimensions))
        return emit.reshape(x, tuple(new_sizes))

    def stablehlo(self, hlo, x, *, new_sizes, dimensions):
        return hlo.reshape(x if dimensions is None else hlo.transpose(x, dimensions), new_sizes)


reshape_p = Reshape()


def reshape(
    x: Any, new_sizes: Any, dimensions: Axes | None = None, *, out_sharding: Any = None
) -> Any:
    """Give an array another shape of the same size.

    Example:
        >>> import namoo.numpy as jnp
        >>> reshape(jnp.arange(4), (2, 2))
        Array([[0, 1],
               [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(out_sharding, reshape, x, new_sizes, dimensions)
    new_sizes = given_shape(new_sizes)
    if dimensions is not None:
        dimensions = tuple(map(operator.index, dimensions))
        if dimensions == tuple(range(len(shape_of(x)))):
            dimensions = None
    if dimensions is None and shape_of(x) == new_sizes and isinstance(x, (EagerArray, Tracer)):
        return x
    if type(x) is EagerArray:
        reshape_p.abstract(x.aval, new_sizes=new_sizes, dimensions=dimensions)
    return reshape_p.bind(x, new_sizes=new_sizes, dimensions=dimensions)


class Squeeze(Primitive):
    """Remove axes of length 1."""

    name, linear = "squeeze", True

    def evaluate(self, x, *, dimensions):
        return x.reshape([n for i, n in enumerate(x.shape) if i not in dimensions])

    def abstract(self, x, *, dimensions):
        return x.update(shape=reduced_shape("squeeze", x.shape, dimensions))

    def sharded(self, x, *, dimensions):
        return rules.without(x.entries, dimensions)

    def transpose(self, ct, x, *, dimensions):
        return [expand_dims(ct, dimensions)]

    def batch(self, xs, dims, *, dimensions):
        (x,), (d,) = xs, dims
        dimensions = tuple(i + (i >= d) for i in dimensions)
        return self.bind(x, dimensions=dimensions), d - sum(i < d for i in dimensions)

    def native(self, emit, x, *, dimensions):
        return emit.reshape(x, tuple(emit.avals[0].shape))

    def stablehlo(self, hlo, x, *, dimensions):
        return hlo.reshape(x, hlo.avals[0].shape)


squeeze_p = Squeeze()


def squeeze(x: Any, dimensions: Axes) -> Any:
    """Remove axes of length 1.

    Example:
        >>> squeeze(np.ones((1, 3)), (0,)).shape
        (3,)
    """
    shape = shape_of(x)
    dims = {canonical_axis(d, len(shape)) for d in dimensions}
    if len(dims) != len(dimensions):
        raise ValueError(f"squeeze dimensions are not unique: {tuple(dimensions)}")
    if any(shape[d] != 1 for d in dims):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, "
            f"got shape={shape} and dimensions={tuple(dimensions)}"
        )
    if not dims and isinstance(x, (EagerArray, Tracer)):
        return x
    return squeeze_p.bind(x, dimensions=tuple(sorted(dims)))


class Transpose(Primitive):
    """Permute the axes of an array."""

    name, linear = "transpose", True

    def evaluate(self, x, *, permutation):
        if permutation and min(permutation) < 0:
            raise TypeError(permutation)
        return x.transpose(permutation)

    def abstract(self, x, *, permutation):
        if sorted(permutation) != list(range(len(x.shape))):
            raise TypeError(
                "transpose permutation isn't a permutation of operand dimensions, "
                f"got permutation {permutation} for operand shape {x.shape}."
            )
        return x.update(shape=tuple(x.shape[i] for i in permutation))

    def sharded(self, x, *, permutation):
        return [x.entries[i] for i in permutation]

    def transpose(self, ct, x, *, permutation):
        return [transpose(ct, argsort(permutation))]

    def batch(self, xs, dims, *, permutation):
        (x,), (d,) = xs, dims
        return transpose(x, (d, *(i + (i >= d) for i in permutation))), 0

    def native(self, emit, x, *, permutation):
        inverse = argsort(permutation)
        return emit.reindex(
            x,
            lambda index: [index[i] for i in inverse],
            key=("transpose", tuple(permutation)),
            shape=tuple(x.shape[i] for i in permutation),
        )

    def stablehlo(self, hlo, x, *, permutation):
        return hlo.transpose(x, permutation)


transpose_p = Transpose()


def transpose(x: Any, permutation: Any) -> Any:
    """Permute axes: result axis `i` is operand axis `permutation[i]`.

    Example:
        >>> transpose(np.zeros((2, 3)), (1, 0)).shape
        (3, 2)
    """
    permutation = tuple(map(operator.index, permutation))
    if permutation == tuple(range(len(shape_of(x)))) and isinstance(x, (EagerArray, Tracer)):
        return x
    return transpose_p.bind(x, permutation=permutation)


def moveaxis(x: Any, source: int, destination: int) -> Any:
    """Move one axis to another position."""
    if source == destination:
        return x
    order = [i for i in range(len(shape_of(x))) if i != source]
    order.insert(destination, source)
    return transpose(x, order)


class Rev(Primitive):
    """Reverse the order of elements along axes."""

    name, linear = "rev", True

    def evaluate(self, x, *, dimensions):
        if dimensions and min(dimensions) < 0:
            raise TypeError(dimensions)
        return np.flip(x, dimensions)

    def abstract(self, x, *, dimensions):
        if len(set(dimensions)) != len(dimensions):
            raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
        if not all(0 <= d < len(x.shape) for d in dimensions):
            raise TypeError(
                f"rev dimensions must be from 0 to {len(x.shape) - 1} for an operand of shape "
                f"{x.shape}, got {dimensions}."
            )
        return x

    def transpose(self, ct, x, *, dimensions):
        return [rev(ct, dimensions)]

    def batch(self, xs, dims, *, dimensions):
        return rev(xs[0], [i + (i >= dims[0]) for i in dimensions]), dims[0]

    def native(self, emit, x, *, dimensions):
        def where(index):
            return [-i + (x.shape[d] - 1) if d in dimensions else i for d, i in enumerate(index)]

        return emit.reindex(x, where, key=("rev", tuple(dimensions)))

    def stablehlo(self, hlo, x, *, dimensions):
        return hlo.op("reverse", x, dimensions=dimensions)


rev_p = Rev()


def rev(x: Any, dimensions: Axes) -> Any:
    """Reverse an array along the given axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> rev(jnp.array([1, 2, 3]), (0,))
        Array([3, 2, 1], dtype=int32)
    """
    return rev_p.bind(x, dimensions=tuple(map(operator.index, dimensions)))


class Iota(Primitive):
    """0, 1, 2, … along one axis."""

    name = "iota"

    def evaluate(self, *, dtype, shape, dimension):
        expanded = [1] * len(shape)
        expanded[dimension] = shape[dimension]
        line = np.arange(shape[dimension]).astype(dtype).reshape(expanded)
        return line if len(shape) == 1 else np.broadcast_to(line, shape)

    def abstract(self, *, dtype, shape, dimension):
        return ShapedArray(shape, dtype)

    def native(self, emit, *, dtype, shape, dimension):
        return emit.iota(dtype, shape, dimension)

    def stablehlo(self, hlo, *, dtype, shape, dimension):
        return hlo.iota(shape, dtype, dimension)


iota_p = Iota()


def iota(dtype: Any, size: int) -> Any:
    """The numbers 0 to `size` - 1.

    Example:
        >>> iota("int32", 3)
        Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Any, dimension: int, *, out_sharding: Any = None) -> Any:
    """An array of a shape, whose elements count along one axis.

    Example:
        >>> broadcasted_iota('int32', (2, 3), 1)
        Array([[0, 1, 2],
               [0, 1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(out_sharding, broadcasted_iota, dtype, shape, dimension)
    dtype = dtypes.check_user_dtype_supported(dtype, "iota")
    shape, dimension = given_shape(shape), operator.index(dimension)
    if dtype == np.bool_:
        raise TypeError("iota does not accept dtype bool: use an integer or inexact dtype.")
    check_lengths("iota", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension {dimension} is out of range for shape {shape}")
    return iota_p.bind(dtype=dtype, shape=shape, dimension=dimension)


class _Identity(Primitive):
    """The values unchanged."""

    def evaluate(self, x):
        return x

    def abstract(self, x):
        return x

    def batch(self, xs, dims):
        return self.bind(*xs), dims[0]

    def native(self, emit, x):
        return x

    def stablehlo(self, hlo, x):
        return x


class Copy(_Identity):
    """A copy."""

    name, linear = "copy", True

    def evaluate(self, x):
        return np.array(x)

    def transpose(self, ct, x):
        return [ct]


copy_p = Copy()


class StopGradient(_Identity):
    """The identity, with derivative zero."""

    name = "stop_gradient"

    def jvp(self, primals, tangents):
        out = self.bind(*primals)
        return out, Zero.of(out)


stop_gradient_p = StopGradient()


def unbroadcast(ct: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent down to the shape of an operand that was a broadcast scalar."""
    return ct if shape_of(ct) == shape else reduce_sum(ct, range(len(shape_of(ct))))


attach_shortcuts(globals())
