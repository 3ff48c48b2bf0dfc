"""Checks and conversions of the arguments of samplers: types, shapes, parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from namoo import errors
from namoo._base import dtypes
from namoo._base.source_context import at_user_line, hide_internal_frames
from namoo.analysis.sharding_rules import by_compiler
from namoo.core.array import Array
from namoo.core.avals import canonical_shape
from namoo.dimensions import sizes
from namoo.dimensions.sizes import dimension
from namoo.engines.base import asks_for_nothing
from namoo.numpy.promote import as_type, is_arraylike, to_array
from namoo.primitives.resharding import reshard_p
from namoo.primitives.shape import broadcast_to

F = TypeVar("F", bound=Callable)


def sampler(fun: F) -> F:
    """Make `fun` an entry point whose result is divided over devices as `out_sharding` says."""

    # One frame for both, as in `entry_point`: samplers are called eagerly, and often.
    @functools.wraps(fun)
    def sample(*args, **kwargs):
        try:
            if kwargs.get("out_sharding") is None:
                return fun(*args, **kwargs)
            asked = kwargs.pop("out_sharding")
            with by_compiler():
                x = fun(*args, **kwargs)
            return divided(fun.__name__, x, asked)
        except Exception as error:
            hide_internal_frames(error)
            raise

    sample.is_entry_point = True  # type: ignore[attr-defined]
    return sample  # type: ignore[return-value]


def divided(name: str, x: Array, out_sharding: Any) -> Array:
    """A new array, divided over devices as the user of the function `name` asked for."""
    if out_sharding is None or asks_for_nothing(out_sharding):
        return x
    from namoo.devices.constraints import output_sharding
    from namoo.devices.sharding.shardings import require_divisible

    sharding = output_sharding(name, out_sharding)
    if sharding is None:
        return x
    require_divisible(name, sharding, x.shape)
    return reshard_p.bind(x, sharding=sharding)


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """The floating type that the user named, or the default one."""
    if dtype is None:
        return dtypes.default_float_dtype()
    wanted = dtypes.check_user_dtype_supported(dtype)
    if not dtypes.issubdtype(wanted, np.floating):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {wanted}")
    return wanted


def int_dtype(name: str, dtype: Any) -> np.dtype:
    """The integer type that the user named, or the default one."""
    if dtype is None:
        return dtypes.default_int_dtype()
    wanted = dtypes.check_user_dtype_supported(dtype)
    if not dtypes.issubdtype(wanted, np.integer):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {wanted}")
    return wanted


def array_of(name: str, argument: str, x: Any) -> Array:
    """A parameter as an array of its own type."""
    if isinstance(x, Array):
        return x
    if not is_arraylike(x):
        raise TypeError(
            f"random.{name}: {argument} must be an array or a number, got {type(x)}; convert it "
            f"first, {argument}=jnp.asarray({argument})." + at_user_line()
        )
    return to_array(x)


def param(name: str, argument: str, x: Any, dtype: np.dtype) -> Array:
    """A parameter as an array of the sample's type, with its own shape."""
    if not isinstance(x, Array) and not is_arraylike(x):
        array_of(name, argument, x)
    return as_type(x, dtype)


def shape_tuple(shape: Any) -> tuple[int, ...]:
    """A shape, given as a sequence or as one length."""
    if not isinstance(shape, (tuple, list)):
        try:
            shape = (dimension(shape),)
        except TypeError as error:
            if isinstance(error, errors.TracerIntegerConversionError):
                raise
    out = canonical_shape(shape)
    if any(size < 0 for size in out):
        raise ValueError(f"Shapes cannot have negative lengths, got {out}.")
    return out


def sample_shape(name: str, shape: Any, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a sample: the requested one, which parameters must fit, or the parameters'."""
    if shape is None:
        return _broadcast(name, list(shapes))
    wanted = shape_tuple(shape)
    found = _broadcast(name, [wanted, *shapes])
    if found != wanted:
        raise ValueError(
            f"random.{name}: parameters of shapes {', '.join(map(str, shapes))} do not fit into "
            f"shape={wanted}; together they have shape {found}. Pass shape={found}, or a shape "
            "that ends like it." + at_user_line()
        )
    return wanted


def _broadcast(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    if all(not s for s in shapes[1:]):
        return shapes[0]
    try:
        return sizes.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"random.{name}: incompatible shapes for broadcasting: "
            f"{', '.join(map(str, shapes))}." + at_user_line()
        ) from None


def spread(x: Array, shape: tuple[int, ...]) -> Array:
    """A parameter repeated to the sample's shape; scalars stay scalars."""
    return broadcast_to(x, shape) if x.shape and x.shape != shape else x
