"""Creation of arrays: from other objects, filled with a value, or as a range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.lazy import later
from namoo._base.short import short
from namoo._base.source_context import at_user_line, warn_user
from namoo.core.array import Array, EagerArray
from namoo.core.avals import canonical_shape
from namoo.core.trace import Tracer
from namoo.dimensions.sizes import as_value, dimension, is_symbolic, larger
from namoo.eager import attach_shortcuts
from namoo.numpy.device_arguments import placed
from namoo.numpy.promote import (
    array_of,
    as_type,
    broadcast_to,
    check_arraylike,
    own_copy,
    to_array,
)
from namoo.primitives import elementwise as lax
from namoo.primitives import shape as shapes
from namoo.primitives.shape import convert_element_type

exchange = later("namoo.numpy.exchange")
staging = later("namoo.transforms.stage")

SHAPE_ADVICE = """\
Cannot interpret '{dtype}' as a data type.
Did you accidentally write `jax.numpy.{name}({shape}, {dtype})` \
when you meant `jax.numpy.{name}(({shape}, {dtype}))`? A shape of several axes is one tuple."""


def user_dtype(dtype: Any, name: str) -> Any:
    """The canonical form of the `dtype` argument of a function; None stays None."""
    return None if dtype is None else dtypes.check_user_dtype_supported(dtype, name)


def array(
    object: Any,
    dtype: Any = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array from a number, nested lists, a NumPy array, or anything with a buffer.

    Python numbers alone make weakly typed arrays; lists of them do not.

    Args:
        object: what to convert; lists may hold arrays and traced values.
        dtype: type of the elements; found from the object by default.
        args: `copy`, `order` and `ndmin` by position, which is deprecated.
        copy: whether the result must have its own memory.
        order: only 'K', which keeps the order in memory.
        ndmin: the least number of axes; axes of length 1 are put in front.
        device, out_sharding: the device or the sharding of the array.

    Raises:
        TypeError: an object that does not hold numbers.
        ValueError: None, or lists of unequal length.
        OverflowError: a Python integer that does not fit the type.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.array([[1, 2], [3, 4]]), jnp.array(1.5)
        (Array([[1, 2],
               [3, 4]], dtype=int32), Array(1.5, dtype=float32, weak_type=True))
    """
    if args:
        copy, order, ndmin = _by_position(args, {"copy": copy, "order": order, "ndmin": ndmin})
    if device is not None or out_sharding is not None:
        out = array(object, dtype, copy=copy, order=order, ndmin=ndmin)
        return placed("jnp.array", out, device, out_sharding)
    if order not in (None, "K"):
        raise NotImplementedError(f"array: only order='K' is supported, got {order!r}.")
    out = _made(_convert(object, user_dtype(dtype, "array"), copy))
    if out.ndim < ndmin:
        out = shapes.expand_dims(out, range(ndmin - out.ndim))
    return out


def _by_position(args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The options of `array` where some are given by position."""
    if len(args) > len(options):
        given = len(args) + 2
        raise TypeError(f"array() takes at most 5 positional arguments but {given} were given")
    for name, default, value in zip(options, (True, "K", 0), args, strict=False):
        if options[name] != default:
            raise TypeError(f"array() got multiple values for argument '{name}'")
        options[name] = value
    warn_user(
        "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated. "
        "Use keyword arguments instead.",
        DeprecationWarning,
    )
    return options.values()


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array from anything array-like; an array of the wanted type is returned unchanged.

    Args:
        a: what to convert, as for `array`.
        dtype: type of the elements.
        order: only None or 'K'.
        copy: True copies always; None only what others could change; False never copies a NumPy
            array of the right type, which must then not be written to.
        device, out_sharding: the device or the sharding of the array.

    Raises:
        TypeError, ValueError, OverflowError: as for `array`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.asarray([1, 2.5])
        Array([1. , 2.5], dtype=float32)
    """
    if type(a) is EagerArray and dtype is device is out_sharding is None and not copy:
        return a
    if device is not None or out_sharding is not None:
        return placed("jnp.asarray", asarray(a, dtype, order, copy=copy), device, out_sharding)
    if order not in (None, "K"):
        raise NotImplementedError(f"asarray: only order='K' is supported, got {order!r}.")
    dtype = user_dtype(dtype, "asarray")
    if copy is False and type(a) is np.ndarray and a.dtype == dtypes.dtype_of(a):
        if dtype is None or dtype == a.dtype:
            return EagerArray(a)
    return _made(_convert(a, dtype, bool(copy)))


def _made(x: Array) -> Array:
    """A new array as the current trace sees it."""
    return staging.as_traced(x) if type(x) is EagerArray and config.trace_new_arrays else x


def _convert(x: Any, dtype: Any, copy: bool) -> Array:
    """An array of anything; `dtype` is canonical or None."""
    if isinstance(x, Array):
        if dtype is not None:
            out = convert_element_type(x, dtype)
            if out is not x:
                return out
        return shapes.copy_p.bind(x) if copy else x
    if dtypes.is_python_scalar(x):
        if dtype is None:
            return EagerArray(dtypes.coerce_scalar(x), type(x) is not bool)
        return EagerArray(_numpy_array(x, dtype))
    if type(x) is np.ndarray or isinstance(x, np.generic):
        own = dtypes.dtype_of(x)
        if dtype is None or dtype == own:
            if own == dtypes.float0:
                return np.asarray(x)  # type: ignore[return-value]
            return EagerArray(own_copy(np.asarray(x)))
        return EagerArray(_numpy_array(x, dtype))
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, dtype)
    convert = getattr(x, "__jax_array__", None)
    if convert is not None:
        return _convert(convert(), dtype, False)
    return _from_object(x, dtype)


def _numpy_array(x: Any, dtype: Any) -> np.ndarray:
    """NumPy's own conversion to a type, without warnings about lost values."""
    with np.errstate(all="ignore"):
        try:
            return np.array(x, dtype)
        except OverflowError as error:
            narrow = dtype is not None and np.dtype(dtype).itemsize < 4
            hint = (
                "Choose a wider type"
                if narrow
                else "Switch on 64-bit types with namoo.config.update('jax_enable_x64', True)"
            )
            raise OverflowError(f"{error}. {hint}, or convert the values to floats.") from None
        except ValueError as error:
            if "inhomogeneous" not in str(error):
                raise
            raise ValueError(f"{error} All rows of an array must have the same length.") from None


def _from_object(x: Any, dtype: Any) -> Array:
    """An array of something that NumPy knows how to read: a buffer, a range, a table."""
    if x is None:
        raise ValueError("None is not a valid value for jnp.array" + at_user_line())
    if isinstance(x, (str, bytes)) and dtype is not None:
        return EagerArray(_numpy_array(x, dtype))
    value = np.asarray(x)
    own = value.dtype
    if own not in dtypes.SUPPORTED and not own.names:
        raise TypeError(
            f"Value {short(x)} with dtype {own} is not a valid array: only numbers and booleans "
            "can be elements." + at_user_line()
        )
    return EagerArray(own_copy(value) if dtype is None else _numpy_array(value, dtype))


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, (list, tuple)):
        for item in x:
            yield from _leaves(item)
    else:
        yield x


def _from_sequence(x: Any, dtype: Any) -> Array:
    leaves = list(_leaves(x))
    kinds = set(map(type, leaves))
    if not leaves:
        return EagerArray(np.asarray(x, dtype or dtypes.default_float_dtype()))
    if not kinds <= _PYTHON:
        if type(None) in kinds:
            raise ValueError("None is not a valid value for jnp.array" + at_user_line())
        foreign = [leaf for leaf in leaves if not isinstance(leaf, (Array, *_NUMBERS))]
        if foreign:
            made = {id(leaf): _convert(leaf, None, False) for leaf in foreign}
            return _from_sequence(_replaced(x, lambda v: made.get(id(v), v)), dtype)
    if dtype is None:
        types = kinds if kinds <= _PYTHON else leaves
        dtype = dtypes.join(*{dtypes.dtype_and_weak(t) for t in types})[0]
    if any(kind is EagerArray or issubclass(kind, Tracer) for kind in kinds):
        return _stack(_alike([_convert(item, dtype, False) for item in x]))
    return EagerArray(_numpy_array(x, dtype))


_PYTHON = {bool, int, float, complex}
_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex)


def _replaced(x: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(x, (list, tuple)):
        return [_replaced(item, change) for item in x]
    return change(x)


def _alike(rows: list[Array]) -> list[Array]:
    """The elements of a list, which must have one shape."""
    if len({row.shape for row in rows}) > 1:
        raise TypeError(
            "jnp.array: the elements of a list must have equal shapes, got "
            f"{', '.join(str(row.shape) for row in rows)}." + at_user_line()
        )
    return rows


def _stack(rows: list[Array]) -> Array:
    # Imported here because few programs need it.
    from namoo.primitives.slicing import concatenate

    return concatenate([shapes.expand_dims(row, (0,)) for row in rows], 0)


def shape_argument(shape: Any, name: str) -> tuple[int, ...]:
    """The shape argument of a function: a tuple of integers, or one integer."""
    if isinstance(shape, GeneratorType):
        raise TypeError(f"jnp.{name}: expected a sequence of integers or one integer as shape.")
    several = isinstance(shape, (tuple, list)) or type(shape) is not int and np.ndim(shape) > 0
    sizes = canonical_shape(shape if several else (shape,))
    if any(size < 0 for size in sizes):
        raise TypeError(f"jnp.{name}: shape must have no negative element, got {sizes}.")
    return sizes


def _filled(name: str, shape: Any, dtype: Any, value: int) -> Array:
    if isinstance(dtype, int) and isinstance(shape, int):
        raise TypeError(SHAPE_ADVICE.format(name=name, shape=shape, dtype=dtype))
    kind = dtypes.check_user_dtype_supported(float if dtype is None else dtype, name)
    return constant(shape_argument(shape, name), value, kind)


def constant(shape: tuple[int, ...], value: Any, dtype: Any, weak: bool = False) -> Array:
    """An array of one value; a program computes it instead of holding it.

    For random keys, every word has the value.
    """
    dtype = getattr(dtype, "numpy", dtype)
    if dtype == dtypes.float0:
        return np.zeros(shape, dtype)  # type: ignore[return-value]
    return shapes.broadcast(EagerArray(np.asarray(value, dtype), weak), shape)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros.

    Args:
        shape: a tuple of integers, or one integer.
        dtype: type of the elements; float by default.
        device, out_sharding: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.zeros((2, 3), int)
        Array([[0, 0, 0],
               [0, 0, 0]], dtype=int32)
    """
    if device is not None or out_sharding is not None:
        return placed("jnp.zeros", zeros(shape, dtype), device, out_sharding)
    return _filled("zeros", shape, dtype, 0)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of ones.

    Args:
        shape: a tuple of integers, or one integer.
        dtype: type of the elements; float by default.
        device, out_sharding: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ones(3)
        Array([1., 1., 1.], dtype=float32)
    """
    if device is not None or out_sharding is not None:
        return placed("jnp.ones", ones(shape, dtype), device, out_sharding)
    return _filled("ones", shape, dtype, 1)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array whose values do not matter; they are zeros.

    Args:
        shape: a tuple of integers, or one integer.
        dtype: type of the elements; float by default.
        device, out_sharding: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.empty((2, 3)).shape
        (2, 3)
    """
    if device is not None or out_sharding is not None:
        return placed("jnp.empty", empty(shape, dtype), device, out_sharding)
    return _filled("empty", shape, dtype, 0)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with one value, or with an array that is broadcast.

    Args:
        shape: a tuple of integers, or one integer.
        fill_value: a number or an array.
        dtype: type of the elements; that of `fill_value` by default.
        device, out_sharding: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.full((2, 2), jnp.array([1.5, 2.5]))
        Array([[1.5, 2.5],
               [1.5, 2.5]], dtype=float32)
    """
    if device is not None or out_sharding is not None:
        return placed("jnp.full", full(shape, fill_value, dtype), device, out_sharding)
    check_arraylike("full", fill_value)
    dtype = user_dtype(dtype, "full")
    shape = shape_argument(shape, "full")
    if dtypes.is_extended(dtype) and dtypes.is_python_scalar(fill_value):
        return constant(shape, fill_value, dtype)
    return broadcast_to(_as_fill(fill_value, dtype), shape)


def _as_fill(value: Any, dtype: Any) -> Array:
    """A fill value as an array: Python integers wrap around in narrow types."""
    if dtype is None:
        if type(value) is int:
            return EagerArray(_wrapped(value), True)
        return to_array(value)
    return as_type(_wrapped(value) if type(value) is int else value, dtype)


def _wrapped(value: int) -> np.ndarray:
    own = dtypes.default_int_dtype()
    return np.asarray(value & (1 << 64) - 1, np.uint64).astype(own)


def _prototype(name: str, a: Any) -> tuple[tuple[int, ...], Any, bool]:
    """Shape, dtype and weak type of an array, or of anything that has the first two."""
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = array_of(name, a)
    dtype = a.dtype if isinstance(a, Array) else dtypes.canonicalize_dtype(a.dtype, True)
    return tuple(a.shape), dtype, bool(getattr(a, "weak_type", False))


def _like(name: str, a: Any, dtype: Any, shape: Any, value: int) -> Array:
    own_shape, own_dtype, weak = _prototype(name, a)
    weak = weak and dtype is None
    dtype = own_dtype if dtype is None else user_dtype(dtype, name)
    shape = own_shape if shape is None else shape_argument(shape, name)
    return constant(shape, value, dtype, weak)


def zeros_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Zeros of the shape and type of another array.

    Args:
        a: an array, or anything with `shape` and `dtype`.
        dtype, shape: instead of those of `a`.
        device, out_sharding: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.zeros_like(jnp.array([1, 2]))
        Array([0, 0], dtype=int32)
    """
    return placed(
        "jnp.zeros_like", _like("zeros_like", a, dtype, shape, 0), device, out_sharding, a
    )


def ones_like(
    a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """Ones of the shape and type of another array.

    Args:
        a: an array, or anything with `shape` and `dtype`.
        dtype, shape: instead of those of `a`.
        device, out_sharding: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.ones_like(jnp.array([1, 2]), dtype=float)
        Array([1., 1.], dtype=float32)
    """
    return placed("jnp.ones_like", _like("ones_like", a, dtype, shape, 1), device, out_sharding, a)


def empty_like(
    prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None
) -> Array:
    """An array of the shape and type of another one, whose values do not matter.

    Args:
        prototype: an array, or anything with `shape` and `dtype`.
        dtype, shape: instead of those of `prototype`.
        device: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.empty_like(jnp.array([1, 2])).shape
        (2,)
    """
    made = _like("empty_like", prototype, dtype, shape, 0)
    return placed("jnp.empty_like", made, device, like=prototype)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of the shape and type of another one, filled with a value.

    Args:
        a: an array, or anything with `shape` and `dtype`.
        fill_value: a number, or an array that is broadcast.
        dtype, shape: instead of those of `a`.
        device, out_sharding: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.full_like(jnp.array([1, 2]), 7)
        Array([7, 7], dtype=int32)
    """
    made = _full_like(a, fill_value, dtype, shape)
    return placed("jnp.full_like", made, device, out_sharding, a)


def _full_like(a: Any, fill_value: Any, dtype: Any, shape: Any) -> Array:
    own_shape, own_dtype, weak = _prototype("full_like", a)
    check_arraylike("full_like", fill_value)
    weak = weak and dtype is None
    dtype = own_dtype if dtype is None else user_dtype(dtype, "full_like")
    shape = own_shape if shape is None else shape_argument(shape, "full_like")
    if dtypes.is_extended(dtype) and dtypes.is_python_scalar(fill_value):
        return constant(shape, fill_value, dtype)
    value = as_type(_as_fill(fill_value, None), dtype)
    return broadcast_to(as_type(value, dtype, weak and not value.ndim), shape)


def concrete(x: Any, what: str, advice: str = "") -> Any:
    """A number that must be known while a program is traced; arrays become NumPy scalars."""
    if isinstance(x, Tracer):
        x = to_array(x.concrete(f"a concrete value for {what}", advice))
    return x._value[()] if isinstance(x, EagerArray) and not x.ndim else x


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Numbers from `start` (0 by default) up to, not including, `stop`.

    Args:
        start, stop, step: concrete scalars; one alone is `stop`.
        dtype: type of the elements; that of the scalars by default.
        device, out_sharding: the device or the sharding of the array.

    Raises:
        ConcretizationTypeError: a traced bound: the length of an array must be known.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.arange(3), jnp.arange(1, 2, 0.25)
        (Array([0, 1, 2], dtype=int32), Array([1.  , 1.25, 1.5 , 1.75], dtype=float32))
    """
    if device is not None or out_sharding is not None:
        return placed("jnp.arange", arange(start, stop, step, dtype), device, out_sharding)
    dtype = user_dtype(dtype, "arange")
    first = "stop" if stop is None and step is None else "start"
    given = {first: start, "stop": stop, "step": step} if first == "start" else {"stop": start}
    for name, value in given.items():
        if value is not None:
            _check_arange("jnp.arange", name, value)
    start, stop, step = (
        concrete(
            v,
            f"the argument '{n}' of jnp.arange",
            f"It arose in the jnp.arange argument '{n}', which decides the shape of the result.",
        )
        for n, v in ((first, start), ("stop", stop), ("step", step))
    )
    if any(map(is_symbolic, (start, stop, step))):
        return _symbolic_arange(start, stop, step, dtype)
    bounds = [v for v in (start, stop, step) if v is not None]
    dtype = dtypes.result_type(*bounds) if dtype is None else dtype
    if dtype == np.bool_:
        raise TypeError("jnp.arange does not accept dtype bool: there are only two of them.")
    if stop is None:
        start, stop = 0, start
    if step is None:
        size = max(0, int(np.ceil(stop - start)))
        counted = shapes.iota(dtype, size)
        if _is_zero(start):
            return counted
        dtypes.check_fits(np.asarray(start), dtype)
        return lax.add(counted, np.asarray(start).astype(dtype))
    size = max(0, int(np.ceil((stop - start) / step)))
    wide = dtype
    if dtypes.issubdtype(dtype, np.floating) and dtypes.finfo(dtype).bits < 32:
        wide = np.dtype(np.float32)
    scaled = lax.mul(shapes.iota(wide, size), np.asarray(step).astype(wide))
    return convert_element_type(lax.add(scaled, np.asarray(start).astype(wide)), dtype)


def _symbolic_arange(start: Any, stop: Any, step: Any, dtype: Any) -> Array:
    """`arange` whose length is not known yet: of integers and symbolic dimensions."""
    start, stop = (0, start) if stop is None else (start, stop)
    start, stop, step = (dimension(v) for v in (start, stop, 1 if step is None else step))
    sign = 1 if step > 0 else -1
    size = larger(-(-(stop - start) * sign // (step * sign)), 0)
    dtype = dtypes.default_int_dtype() if dtype is None else dtype
    ends = [convert_element_type(as_value(v), dtype) for v in (step, start)]
    return lax.add(lax.mul(shapes.iota(dtype, size), ends[0]), ends[1])


def _is_zero(x: Any) -> bool:
    return bool(x == 0)


def _check_arange(function: str, name: str, value: Any) -> None:
    check_arraylike("arange", value)
    if np.ndim(value):
        raise ValueError(f"{function}: arguments must be scalars; got {name}={value!r}")
    if dtypes.issubdtype(dtypes.dtype_of(value), np.complexfloating):
        raise ValueError(
            f"Passing complex start/stop/step to {function} is no longer supported; got "
            f"{name}={value!r}. Use jnp.linspace, or the real part of the numbers."
        )


def static_count(num: Any, what: str) -> int:
    """A length that must be a known integer."""
    return dimension(concrete(num, what))


def copy(a: Any, order: str | None = None) -> Array:
    """A copy of an array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.copy(jnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """An array with its elements converted to another type.

    Floats are rounded towards zero on the way to integers, and saturate there.

    Args:
        x: the array.
        dtype: the new type; None means the default float.
        copy: whether to copy where nothing changes.
        device: the device or the sharding of the array.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.astype(jnp.array([1.7, -1.7]), int)
        Array([ 1, -1], dtype=int32)
    """
    if device is not None:
        return placed("jnp.astype", astype(x, dtype, copy=copy), device)
    x = array_of("astype", x)
    if dtype is None:
        dtype = dtypes.default_float_dtype()
    else:
        dtype = dtypes.check_user_dtype_supported(dtype, "astype")
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        if dtype == np.bool_:
            return lax.ne(x, np.zeros((), x.dtype))
        if not dtypes.issubdtype(dtype, np.complexfloating):
            warn_user(
                "Casting from complex to real dtypes will soon raise a ValueError. Please first "
                "use jnp.real or jnp.imag to take the real/imaginary component of your input.",
                DeprecationWarning,
            )
            x = lax.real(x)
    out = as_type(x, dtype)
    return shapes.copy_p.bind(out) if copy and out is x else out


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """A one-dimensional array of the bytes of a buffer.

    Args:
        buffer: bytes, or anything with a buffer.
        dtype: how the bytes are read.
        count: how many elements; -1 for all.
        offset: how many bytes to leave out at the beginning.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.frombuffer(bytes([1, 0, 2, 0]), dtype="int16")
        Array([1, 2], dtype=int16)
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """A one-dimensional array of the numbers written in a text.

    Args:
        string: the text.
        dtype: type of the numbers.
        count: how many to read; -1 for all.
        sep: the separator between numbers.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.fromstring("1 2.5 3", sep=" ")
        Array([1. , 2.5, 3. ], dtype=float32)
    """
    return asarray(np.fromstring(string, dtype, count, sep=sep))


PURITY_ADVICE = (
    "jnp.{name}() does not exist, because reading from {what} has a side effect, which a traced "
    "program would not repeat. Use jnp.asarray(np.{name}(...)) outside of transformed functions."
)


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Not available, as in JAX: reading has a side effect.

    Raises:
        NotImplementedError: always, with what to write instead.
    """
    raise NotImplementedError(PURITY_ADVICE.format(name="fromfile", what="a file"))


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Not available, as in JAX: consuming an iterator has a side effect.

    Raises:
        NotImplementedError: always, with what to write instead.
    """
    raise NotImplementedError(PURITY_ADVICE.format(name="fromiter", what="an iterator"))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array that shares memory with another library's tensor.

    Args:
        x: an object with `__dlpack__` on the CPU.
        device: the device or the sharding of the array.
        copy: True copies; otherwise the memory is shared, and must not be written to.

    Example:
        >>> import numpy as np, namoo.numpy as jnp
        >>> jnp.from_dlpack(np.arange(3, dtype=np.int32))
        Array([0, 1, 2], dtype=int32)
    """
    if device is not None:
        return placed("jnp.from_dlpack", from_dlpack(x, copy=copy), device)
    if isinstance(x, Array):  # of any type, including types that NumPy does not share
        return array(x, copy=bool(copy))
    value = exchange.take(x)
    if copy or value.dtype != dtypes.dtype_of(value):
        value = own_copy(value)
    return EagerArray(value)


attach_shortcuts(globals())
