"""Promotion of operands: arrays of one type, whose shapes fit together.

A public function takes arrays, NumPy arrays and Python numbers.  `promote` and its
variants convert them to arrays of the common type, and broadcast explicitly where shapes differ.
Scalars stay scalars, because every elementwise primitive accepts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.floating_errors import floating_errors_ignored
from namoo._base.lazy import later
from namoo._base.source_context import at_user_line, called_by_user, warn_user
from namoo.core.array import Array, EagerArray, own_copy, to_numpy
from namoo.core.avals import ShapeDtypeStruct, canonical_shape
from namoo.core.trace import Tracer, context
from namoo.dimensions import sizes
from namoo.primitives import shape as lax

staging = later("namoo.transforms.stage")

NUMPY = (np.ndarray, np.generic)
OPERANDS = (Array, np.ndarray, np.generic, bool, int, float, complex)
"""The operand types of operators; a foreign type may have its own operator."""


def is_arraylike(x: Any) -> bool:
    """Whether `x` is an array, or a number that becomes one."""
    if isinstance(x, OPERANDS):
        return not isinstance(x, (np.str_, np.bytes_))
    if isinstance(x, ShapeDtypeStruct):
        return not context.trace.eager
    return getattr(x, "__jax_array__", None) is not None


def check_arraylike(name: str, *args: Any) -> None:
    """Raise for an argument that is not an array, with the function and the position.

    Raises:
        TypeError: a list, a string, None, or another object that is not an array.
    """
    for position, x in enumerate(args):
        if not is_arraylike(x):
            advice = ""
            if isinstance(x, (list, tuple)):
                advice = f" Convert it first: {name}(jnp.asarray(x))."
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position "
                f"{position}.{advice}" + at_user_line()
            )


def to_array(x: Any) -> Array:
    """An array for anything that `is_arraylike`: Python numbers become weak.

    Arrays of float0 stay NumPy's: they can be compared, but support nothing else.
    """
    if isinstance(x, Array):
        return x
    if isinstance(x, np.ndarray):
        return x if x.dtype.names else EagerArray(own_copy(x))  # type: ignore[return-value]
    if dtypes.is_python_scalar(x):
        return EagerArray(dtypes.coerce_scalar(x), type(x) is not bool)
    if isinstance(x, np.generic):
        return EagerArray(to_numpy(x))
    if isinstance(x, ShapeDtypeStruct):
        return staging.placeholder(x)
    convert = getattr(x, "__jax_array__", None)
    if convert is not None:
        return to_array(convert())
    # A subclass of a Python number.
    return EagerArray(np.asarray(x, dtypes.dtype_of(x)), not isinstance(x, bool))


def array_of(name: str, x: Any) -> Array:
    """Check the only array argument of a function, and return it as an array."""
    if isinstance(x, Array):
        return x
    check_arraylike(name, x)
    return to_array(x)


def arrays_of(name: str, *args: Any) -> list[Array]:
    """Check the array arguments of a function; each keeps its type and shape."""
    check_arraylike(name, *args)
    return [to_array(x) for x in args]


def as_type(x: Any, dtype: Any, weak: bool = False) -> Array:
    """An operand as an array of a given canonical type.

    Concrete scalars are converted immediately, so that programs hold them as constants.
    """
    kind = type(x)
    if kind is EagerArray:
        value = x._value
        if value.dtype == dtype:
            if x._weak == weak:
                return x
            if not value.ndim:
                return EagerArray(value, weak)
        elif not value.ndim and value.dtype.names is None and not dtypes.is_extended(dtype):
            with floating_errors_ignored():
                return EagerArray(np.asarray(_convert_scalar(value, dtype)), weak)
    elif dtypes.is_python_scalar(x):
        return EagerArray(dtypes.coerce_scalar(x, dtype), weak)
    elif not isinstance(x, Array):
        x = to_array(x)
    if x.dtype == dtype and x.weak_type == weak:
        return x
    return lax.convert_element_type(x, dtype, weak)


def _convert_scalar(value: np.ndarray, dtype: Any) -> Any:
    return lax.convert_element_type_p.evaluate(value, new_dtype=dtype, weak_type=False)


def same(dtype: Any) -> Any:
    return dtype


def promote_types(name: str, *args: Any, to: Callable[[Any], Any] = same) -> list[Array]:
    """Arguments as arrays of their common type (after `to`), with their own shapes."""
    arrays, types, special = [], [], False
    for x in args:
        if isinstance(x, Array):
            aval = x.aval
            pair = aval.dtype, aval.weak_type
        else:
            if not is_arraylike(x):
                check_arraylike(name, *args)
            if not isinstance(x, OPERANDS):
                x = to_array(x)
            pair = dtypes.dtype_and_weak(x)
        arrays.append(x)
        types.append(pair)
        special = special or type(pair[0]) not in _NUMBER_TYPES
    if special:
        _refuse_special(name, [*dict.fromkeys(dtype for dtype, _ in types)])
    # One operand keeps its type; a boolean that is joined with others or converted is not weak.
    alone = len(types) == 1 and to is same
    dtype, weak = types[0] if alone else dtypes.join(*types, name=name)
    wanted = to(dtype), weak
    for i, pair in enumerate(types):
        if pair != wanted or not isinstance(arrays[i], Array):
            arrays[i] = as_type(arrays[i], *wanted)
    return arrays


_NUMBER_TYPES = frozenset(type(dtype) for dtype in dtypes.SUPPORTED if dtype.names is None)


def _refuse_special(name: str, types: list[Any]) -> None:
    """Raise for dtypes that are not promoted: float0, and keys together with other types."""
    if dtypes.float0 in types:
        raise TypeError(
            f"Called {name} with a float0 array. float0s do not support any operations by design: "
            "they are derivatives with respect to integer or boolean arguments, and have no "
            "values. Make it an ordinary array of zeros with np.zeros(x.shape, float), or "
            "differentiate only floating arguments." + at_user_line()
        )
    if len(types) > 1:
        hint = (
            " Keys are not numbers: random.split(key) and random.fold_in(key, i) make new ones."
            if any(map(dtypes.is_extended, types))
            else ""
        )
        raise TypeError(f"{name} does not accept dtypes {', '.join(map(str, types))}.{hint}")


def promote(name: str, *args: Any) -> list[Array]:
    """Arguments as arrays of one type, with shapes that fit (scalars stay scalars).

    Args:
        name: the public function, for messages.
        args: arrays, NumPy arrays, Python numbers.

    Raises:
        TypeError: anything that is not an array; or shapes of one rank that do not fit.
        ValueError: shapes of different rank that do not fit; types without a common one.

    Example:
        >>> import namoo.numpy as jnp
        >>> [x.str_short() for x in map(lambda x: x.aval, promote("f", jnp.arange(3), 1.5))]
        ['f32[3]', 'f32[]']
    """
    return _at_once(args) or fit_shapes(name, promote_types(name, *args))


def _at_once(args: tuple[Any, ...]) -> list[Any] | None:
    """The most common operands of programs: traced floats of one type, or one and a number."""
    if len(args) != 2:
        return None
    x, y = args
    if not isinstance(x, Tracer):
        pair = _at_once((y, x)) if isinstance(y, Tracer) else None
        return pair and pair[::-1]
    aval, kind = x.aval, type(y)
    dtype = aval.dtype
    if dtype not in lax.FLOATS:
        return None
    if kind is float or kind is int and -0x80000000 <= y <= 0x7FFFFFFF:
        if dtype is dtypes.python_scalar_dtype(float):
            return [x, EagerArray(np.asarray(y, dtype), aval.weak_type)]
    elif isinstance(y, Tracer):
        other = y.aval
        if dtype is other.dtype and aval.shape == other.shape:
            return [x, y] if aval.weak_type is other.weak_type else None
    return None


def promote_inexact(name: str, *args: Any) -> list[Array]:
    """`promote` to a floating or complex type."""
    return _at_once(args) or fit_shapes(
        name, promote_types(name, *args, to=dtypes.to_inexact_dtype)
    )


def promote_numeric(name: str, *args: Any) -> list[Array]:
    """`promote`, where booleans become integers."""
    return _at_once(args) or fit_shapes(
        name, promote_types(name, *args, to=dtypes.to_numeric_dtype)
    )


def promote_complex(name: str, *args: Any) -> list[Array]:
    """`promote` to a complex type."""
    return fit_shapes(name, promote_types(name, *args, to=dtypes.to_complex_dtype))


def fit_shapes(name: str, arrays: list[Array]) -> list[Array]:
    """Arrays broadcast to one shape by NumPy's rule; scalars are left unchanged."""
    shapes = [x.shape for x in arrays]
    first = ()
    for shape in shapes:
        if shape and shape != first:
            if first:
                break
            first = shape
    else:
        return arrays
    check_ranks(name, shapes)
    shape = common_shape(name, shapes)
    return [lax.broadcast_to(x, shape) if x.shape else x for x in arrays]


def check_ranks(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """Apply the setting `numpy_rank_promotion` where ranks differ."""
    if config.numpy_rank_promotion == "allow" or len({len(s) for s in shapes if s}) < 2:
        return
    if not called_by_user(name):
        return
    operands = f"{name} on shapes {' '.join(map(str, shapes))}"
    text = (
        f"of different rank, and jax_numpy_rank_promotion='{config.numpy_rank_promotion}'. Add the "
        "missing axes explicitly, as in x[None, :], or set the option to 'allow'."
    )
    if config.numpy_rank_promotion == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {operands} {text}" + at_user_line()
        )
    warn_user(f"Following NumPy automatic rank promotion for {operands} {text}")


def check_mixing(name: str, *args: Any) -> None:
    """Refuse operands whose types or ranks may not be mixed, by the settings; convert nothing.

    For functions that pass their operands on to others.
    """
    if config.numpy_dtype_promotion != "standard":
        dtypes.join(*map(dtypes.dtype_and_weak, args), name=name)
    if config.numpy_rank_promotion != "allow":
        check_ranks(name, [np.shape(x) for x in args])


def common_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all shapes broadcast to, or an error that names the function."""
    try:
        return sizes.broadcast_shapes(*shapes)
    except ValueError:
        pass
    text = ", ".join(map(str, shapes))
    if len({len(s) for s in shapes if s}) == 1:
        raise TypeError(
            f"{name} got incompatible shapes for broadcasting: {text}." + at_user_line()
        )
    raise ValueError(
        f"Incompatible shapes for broadcasting in {name}: shapes=[{text}]. Shapes are aligned at "
        "their last axes; add axes with x[:, None] or jnp.expand_dims." + at_user_line()
    )


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that several shapes broadcast to, by NumPy's rule.

    Args:
        shapes: tuples of integers, or single integers.

    Raises:
        ValueError: they do not fit.

    Example:
        >>> broadcast_shapes((3, 1), (4,), ())
        (3, 4)
    """
    return lax.common_shape([canonical_shape(s if np.ndim(s) else (s,)) for s in shapes])


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Array:
    """Repeat an array to a larger shape, by NumPy's rule: shapes are aligned at their ends.

    Args:
        array: the array.
        shape: the new shape, or the length of its one axis.
        out_sharding: the sharding of the result; it has no effect on one device.

    Raises:
        ValueError: the shape does not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> broadcast_to(jnp.arange(3), (2, 3))
        Array([[0, 1, 2],
               [0, 1, 2]], dtype=int32)
    """
    x = array_of("broadcast_to", array)
    wanted = canonical_shape(shape if np.ndim(shape) else (shape,))
    n = len(wanted) - x.ndim
    if n < 0:
        raise ValueError(
            "Cannot broadcast to shape with fewer dimensions: "
            f"{x.shape} and requested shape {wanted}." + at_user_line()
        )
    if any(a not in (1, b) for a, b in zip(x.shape, wanted[n:], strict=False)):
        raise ValueError(
            f"Incompatible shapes for broadcasting: {x.shape} and requested shape {wanted}."
            + at_user_line()
        )
    return lax.broadcast_to(x, wanted)


def broadcast_arrays(*args: Any) -> list[Array]:
    """Arrays broadcast to their common shape.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> [x.shape for x in broadcast_arrays(jnp.zeros((3, 1)), jnp.zeros(2))]
        [(3, 2), (3, 2)]
    """
    arrays = arrays_of("broadcast_arrays", *args)
    if not arrays:
        return []
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [lax.broadcast_to(x, shape) for x in arrays]
