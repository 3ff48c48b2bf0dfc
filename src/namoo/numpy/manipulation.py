"""Other shapes of the same elements: reshaping, moving, flipping, splitting, repeating axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base.lazy import later
from namoo._base.short import short
from namoo._base.source_context import at_user_line, warn_user
from namoo.core.array import Array
from namoo.core.avals import canonical_shape
from namoo.core.trace import Tracer
from namoo.dimensions.sizes import dimension
from namoo.eager import attach_shortcuts
from namoo.numpy.creation import concrete
from namoo.numpy.promote import array_of, broadcast_to, check_arraylike, is_arraylike
from namoo.numpy.reductions import reduced_axes
from namoo.primitives import shape as lax

slicing = later("namoo.primitives.slicing")
splitting = later("namoo.primitives.split")


def index_tuple(x: Any, what: str = "axis") -> tuple[int, ...]:
    """One integer or several, as a tuple."""
    if isinstance(x, Tracer):
        x = x.concrete(f"a concrete value for {what}")
    try:
        return tuple(map(operator.index, x)) if np.iterable(x) else (operator.index(x),)
    except TypeError:
        raise TypeError(
            f"{what} must be an integer or a tuple of integers, got {short(x)}."
        ) from None


def new_shape(x: Array, shape: Any) -> tuple[int, ...]:
    """A shape in which one length may be -1, to be found from the others."""
    wanted = shape if isinstance(shape, (tuple, list)) or np.ndim(shape) else (shape,)
    sizes = canonical_shape(wanted)
    unknown = [i for i, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1:
        raise TypeError(
            f"can only specify one unknown axis size with a `-1` value, got {shape}"
            + at_user_line()
        )
    known = math.prod(size for size in sizes if size != -1)
    if unknown and known > 0 and not x.size % known:
        (i,) = unknown
        return (*sizes[:i], x.size // known, *sizes[i + 1 :])
    if unknown or known != x.size or any(size < 0 for size in sizes):
        raise TypeError(
            f"cannot reshape array of shape {x.shape} (size {x.size}) into shape {shape} "
            f"(size {known})" + at_user_line()
        )
    return sizes


def reshape(
    a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The same elements with another shape.

    Args:
        a: the array.
        shape: the new shape, or its only length; one length may be -1.
        order: 'C' reads and writes with the last axis fastest, 'F' with the first.
        copy: has no effect.
        out_sharding: the sharding of the result; it has no effect on one device.

    Raises:
        TypeError: sizes that do not agree.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.reshape(jnp.arange(6), (2, -1))
        Array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
    """
    x = array_of("reshape", a)
    sizes = new_shape(x, shape)
    if order == "C":
        return lax.reshape(x, sizes)
    if order == "F":
        turned = lax.reshape(x, sizes[::-1], range(x.ndim)[::-1])
        return lax.transpose(turned, range(len(sizes))[::-1])
    if order == "A":
        raise NotImplementedError("reshape with order='A': choose 'C' or 'F'.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements in one axis.

    Args:
        a: the array.
        order: 'C' for the last axis fastest, 'F' for the first.
        out_sharding: the sharding of the result; it has no effect on one device.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
        Array([1, 2, 3, 4], dtype=int32)
    """
    x = array_of("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K': choose 'C' or 'F'.")
    return reshape(x, (x.size,), order)


def transpose(a: Any, axes: Any = None) -> Array:
    """The array with its axes permuted; reversed by default.

    Args:
        a: the array.
        axes: for each axis of the result, which axis of `a` it is.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.transpose(jnp.zeros((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
    """
    x = array_of("transpose", a)
    if axes is None:
        return lax.transpose(x, range(x.ndim)[::-1])
    return lax.transpose(x, [lax.canonical_axis(i, x.ndim) for i in index_tuple(axes)])


def permute_dims(a: Any, /, axes: Sequence[int]) -> Array:
    """The array with its axes permuted.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.permute_dims(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    return transpose(array_of("permute_dims", a), axes)


def matrix_transpose(x: Any, /) -> Array:
    """The array with its last two axes exchanged.

    Raises:
        ValueError: an array of less than two axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.matrix_transpose(jnp.zeros((5, 2, 3))).shape
        (5, 3, 2)
    """
    x = array_of("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}"
        )
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.swapaxes(jnp.zeros((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    x = array_of("swapaxes", a)
    order = list(range(x.ndim))
    i, j = lax.canonical_axis(axis1, x.ndim), lax.canonical_axis(axis2, x.ndim)
    order[i], order[j] = j, i
    return lax.transpose(x, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """The array with axes moved to other positions; the rest keep their order.

    Args:
        a: the array.
        source: one axis or several.
        destination: as many positions.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.moveaxis(jnp.zeros((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    x = array_of("moveaxis", a)
    sources = [lax.canonical_axis(i, x.ndim) for i in index_tuple(source)]
    places = [lax.canonical_axis(i, x.ndim) for i in index_tuple(destination)]
    if len(sources) != len(places):
        raise ValueError(
            f"Inconsistent number of elements: {len(sources)} vs {len(places)} axes in moveaxis"
        )
    order = [i for i in range(x.ndim) if i not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return lax.transpose(x, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """The array with one axis moved before another; `moveaxis` is easier to use.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.rollaxis(jnp.zeros((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    x = array_of("rollaxis", a)
    place = operator.index(concrete(start, "the 'start' argument of jnp.rollaxis"))
    axis = lax.canonical_axis(axis, x.ndim)
    if not -x.ndim <= place <= x.ndim:
        raise ValueError(f"start={place} must satisfy {-x.ndim}<=start<={x.ndim}")
    place += x.ndim if place < 0 else 0
    return moveaxis(x, axis, place - (place > axis))


def squeeze(a: Any, axis: Any = None) -> Array:
    """The array without axes of length 1.

    Args:
        a: the array.
        axis: which ones; all of length 1 by default.

    Raises:
        ValueError: an axis of another length.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.squeeze(jnp.zeros((1, 3, 1))).shape
        (3,)
    """
    x = array_of("squeeze", a)
    if axis is None:
        return lax.squeeze(x, [i for i, n in enumerate(x.shape) if n == 1])
    return lax.squeeze(x, reduced_axes(index_tuple(axis), x.ndim, "squeeze"))


def expand_dims(a: Any, axis: Any) -> Array:
    """The array with new axes of length 1.

    Args:
        a: the array.
        axis: positions of the new axes in the result.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.expand_dims(jnp.zeros(3), (0, 2)).shape
        (1, 3, 1)
    """
    return lax.expand_dims(array_of("expand_dims", a), index_tuple(axis))


def flip(m: Any, axis: Any = None) -> Array:
    """The array with the order of its elements reversed along axes.

    Args:
        m: the array.
        axis: one axis or several; all by default.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), 1)
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    x = array_of("flip", m)
    return lax.rev(x, reduced_axes(axis, x.ndim, "flip"))


def fliplr(m: Any) -> Array:
    """The array with its columns in reverse order.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """
    return flip(array_of("fliplr", m), 1)


def flipud(m: Any) -> Array:
    """The array with its rows in reverse order.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
        Array([[3, 4],
               [1, 2]], dtype=int32)
    """
    return flip(array_of("flipud", m), 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array rotated by 90° in the plane of two axes.

    Args:
        m: an array of at least two axes.
        k: how many times, from the first axis towards the second.
        axes: the plane.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 4],
               [1, 3]], dtype=int32)
    """
    x = array_of("rot90", m)
    if x.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument "
            f"of shape {x.shape}"
        )
    first, second = (lax.canonical_axis(i, x.ndim) for i in axes)
    if first == second:
        raise ValueError("Axes must be different")
    turns = k % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """The array with its elements moved along axes; elements that leave one end enter at the other.

    Args:
        a: the array.
        shift: how far; one number, or one for each axis. It may be traced.
        axis: which axes; by default those of the flattened array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.roll(jnp.arange(5), 2)
        Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = array_of("roll", a)
    if axis is None:
        return lax.reshape(roll(lax.reshape(x, (x.size,)), shift, 0), x.shape)
    axes = tuple(lax.canonical_axis(i, x.ndim) for i in index_tuple(axis))
    if hasattr(shift, "__jax_array__"):
        shift = shift.__jax_array__()
    if isinstance(shift, Tracer) or (
        isinstance(shift, (list, tuple)) and any(isinstance(s, Tracer) for s in shift)
    ):
        return _roll_traced(x, shift, axes)
    for i, s in zip(*np.broadcast_arrays(axes, shift), strict=True):
        n = x.shape[i]
        if n:
            cut = dimension(-int(s) % n)
            parts = slicing.slice_in_dim(x, cut, n, axis=i), slicing.slice_in_dim(x, 0, cut, axis=i)
            x = slicing.concatenate(parts, int(i))
    return x


def _roll_traced(x: Array, shift: Any, axes: tuple[int, ...]) -> Array:
    from namoo.numpy.arithmetic import remainder, subtract
    from namoo.numpy.creation import asarray

    shifts = asarray(shift)
    shape = np.broadcast_shapes(shifts.shape, (len(axes),))
    if len(shape) != 1:
        raise ValueError("'shift' and 'axis' arguments to roll must be scalars or 1D arrays")
    shifts = broadcast_to(shifts.astype(np.int32), shape)
    for k, i in enumerate(np.broadcast_to(axes, shape).tolist()):
        n = x.shape[i]
        start = subtract(n, remainder(shifts[k], max(n, 1)))
        x = slicing.dynamic_slice_in_dim(slicing.concatenate([x, x], i), start, n, axis=i)
    return x


def _parts(name: str, ary: Any, indices_or_sections: Any, axis: Any) -> list[Array]:
    x = array_of(name, ary)
    axis = operator.index(concrete(axis, f"the axis of jnp.{name}"))
    axis = lax.canonical_axis(axis, x.ndim)
    n = x.shape[axis]
    given = indices_or_sections
    if isinstance(given, (tuple, list)) or np.ndim(given):
        places = index_tuple(
            [concrete(i, f"the indices of jnp.{name}") for i in given]
            if isinstance(given, (tuple, list))
            else concrete(given, f"the indices of jnp.{name}")
        )
        bounds = [0, *places, n]
        sizes = [high - low for low, high in zip(bounds, bounds[1:], strict=False)]
        if min(sizes) < 0:
            raise ValueError(
                f"jnp.{name}: the indices {places} do not increase within an axis of length {n}."
            )
        return list(splitting.split(x, sizes, axis=axis))
    count = int(concrete(given, f"the number of sections of jnp.{name}"))
    size, rest = divmod(n, count)
    if rest and name != "array_split":
        raise ValueError(
            f"array split does not result in an equal division: rest is {rest}. jnp.array_split "
            "takes unequal parts."
        )
    sizes = [size + 1] * rest + [size] * (count - rest)
    return list(splitting.split(x, sizes, axis=axis))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """An array cut into parts along an axis.

    Args:
        ary: the array.
        indices_or_sections: how many equal parts, or where to cut.
        axis: the axis.

    Raises:
        ValueError: a length that the number of parts does not divide.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.split(jnp.arange(6), [2, 3])
        [Array([0, 1], dtype=int32), Array([2], dtype=int32), Array([3, 4, 5], dtype=int32)]
    """
    return _parts("split", ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """`split`, where parts may differ in length by one.

    Example:
        >>> import namoo.numpy as jnp
        >>> [part.shape for part in jnp.array_split(jnp.arange(7), 3)]
        [(3,), (2,), (2,)]
    """
    return _parts("array_split", ary, indices_or_sections, axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along the first axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> [part.shape for part in jnp.vsplit(jnp.zeros((4, 2)), 2)]
        [(2, 2), (2, 2)]
    """
    return _parts("vsplit", ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along the second axis, or the only one.

    Example:
        >>> import namoo.numpy as jnp
        >>> [part.shape for part in jnp.hsplit(jnp.zeros((2, 4)), 2)]
        [(2, 2), (2, 2)]
    """
    x = array_of("hsplit", ary)
    return _parts("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along the third axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> [part.shape for part in jnp.dsplit(jnp.zeros((2, 2, 4)), 2)]
        [(2, 2, 2), (2, 2, 2)]
    """
    return _parts("dsplit", ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, as a tuple.

    Raises:
        ValueError: a scalar.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
        (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = array_of("unstack", x)
    if not x.ndim:
        raise ValueError(
            "Unstack requires arrays with rank > 0, however a scalar array was passed."
        )
    axis = lax.canonical_axis(axis, x.ndim)
    return tuple(slicing.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis]))


def tile(A: Any, reps: Any) -> Array:
    """The array repeated as a whole along axes.

    Args:
        A: the array.
        reps: how often along each axis, aligned at the last one.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.tile(jnp.array([1, 2]), (2, 2))
        Array([[1, 2, 1, 2],
               [1, 2, 1, 2]], dtype=int32)
    """
    x = array_of("tile", A)
    counts = index_tuple(reps, "reps")
    n = max(len(counts), x.ndim)
    counts = (*(1,) * (n - len(counts)), *counts)
    shape = (*(1,) * (n - x.ndim), *x.shape)
    paired = [size for pair in zip(counts, shape, strict=True) for size in pair]
    places = [2 * i + 1 for i in range(n)]
    spread = lax.broadcast_in_dim(lax.reshape(x, shape), paired, places)
    return lax.reshape(spread, [c * s for c, s in zip(counts, shape, strict=True)])


def resize(a: Any, new_shape: Any) -> Array:
    """An array of another size: the elements are repeated, or cut off.

    Args:
        a: the array.
        new_shape: the shape.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
        Array([[1, 2, 3, 1],
               [2, 3, 1, 2]], dtype=int32)
    """
    x = array_of("resize", a)
    shape = index_tuple(new_shape, "new_shape")
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    flat, size = lax.reshape(x, (x.size,)), math.prod(shape)
    if not x.size or not size:
        from namoo.numpy.creation import zeros_like

        return zeros_like(x, shape=shape)
    repeated = tile(flat, -(-size // x.size))
    return lax.reshape(slicing.slice_in_dim(repeated, 0, size), shape)


def atleast_1d(*arys: Any) -> Any:
    """Arrays with at least one axis.

    Returns:
        The array; a list for several.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.atleast_1d(3.0)
        Array([3.], dtype=float32, weak_type=True)
    """
    return _at_least("atleast_1d", arys, lambda x: x if x.ndim else lax.reshape(x, (1,)))


def atleast_2d(*arys: Any) -> Any:
    """Arrays with at least two axes; new ones come first.

    Returns:
        The array; a list for several.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.atleast_2d(jnp.zeros(3)).shape
        (1, 3)
    """
    return _at_least(
        "atleast_2d", arys, lambda x: lax.expand_dims(x, range(2 - x.ndim)) if x.ndim < 2 else x
    )


def atleast_3d(*arys: Any) -> Any:
    """Arrays with at least three axes; vectors get one before and one after.

    Returns:
        The array; a list for several.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.atleast_3d(jnp.zeros(3)).shape
        (1, 3, 1)
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _at_least(
        "atleast_3d", arys, lambda x: lax.expand_dims(x, new[x.ndim]) if x.ndim < 3 else x
    )


def _at_least(name: str, arys: tuple[Any, ...], change: Any) -> Any:
    check_arraylike(name, *arys)
    out = [change(array_of(name, x)) for x in arys]
    return out[0] if len(out) == 1 else out


def _warn_of_list(name: str, x: Any) -> None:
    if not is_arraylike(x):
        warn_user(
            f"{name} requires ndarray or scalar arguments, got {type(x)} at position 0. It is "
            f"converted, as in NumPy; write jnp.{name}(jnp.asarray(x)) instead.",
            DeprecationWarning,
        )


def shape(a: Any) -> tuple[int, ...]:
    """The length of each axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.shape(jnp.zeros((2, 3)))
        (2, 3)
    """
    if hasattr(a, "shape"):
        return tuple(a.shape)
    if hasattr(a, "__jax_array__"):
        return a.__jax_array__().shape
    _warn_of_list("shape", a)
    return np.shape(a)


def ndim(a: Any) -> int:
    """The number of axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ndim(jnp.zeros((2, 3)))
        2
    """
    if hasattr(a, "ndim"):
        return a.ndim
    if hasattr(a, "__jax_array__"):
        return a.__jax_array__().ndim
    _warn_of_list("ndim", a)
    return np.ndim(a)


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or of those along axes.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.size(jnp.zeros((2, 3))), jnp.size(jnp.zeros((2, 3)), 1)
        (6, 3)
    """
    if axis is None and hasattr(a, "size") and not callable(a.size):
        return a.size
    if hasattr(a, "__jax_array__"):
        a = a.__jax_array__()
    if not hasattr(a, "shape"):
        _warn_of_list("size", a)
        a = np.asarray(a)
    sizes = shape(a)
    axes = reduced_axes(axis, len(sizes), "size")
    return math.prod(sizes[i] for i in axes)


attach_shortcuts(globals())
