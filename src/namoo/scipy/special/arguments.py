"""Conversion of the arguments of special functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.core.trace import Tracer
from namoo.numpy.promote import promote_inexact
from namoo.numpy.same_type import is_complex
from namoo.primitives.shape import convert_element_type


def reals(name: str, *args: Any) -> list[Array]:
    """Arguments as real arrays of one floating type, with shapes that broadcast.

    Raises:
        ValueError: complex numbers.
    """
    arrays = promote_inexact(name, *args)
    if is_complex(arrays[0]):
        raise ValueError(
            f"special.{name} takes real numbers, got {arrays[0].dtype}." + at_user_line()
        )
    return arrays


def strong_reals(name: str, *args: Any) -> list[Array]:
    """`reals` whose type is not weak, even where they were given as Python numbers."""
    return [strong(x) for x in reals(name, *args)]


def strong(x: Array) -> Array:
    """An array whose type is not weak."""
    return convert_element_type(x, x.dtype)


def single_or_double(name: str, x: Any) -> Array:
    """An argument of type float32 or float64, which are not converted; never weak.

    Raises:
        TypeError: another type.
    """
    x = strong(jnp.asarray(x))
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"special.{name} takes float32 or float64, got {x.dtype}; convert it first with "
            "x.astype(jnp.float32)." + at_user_line()
        )
    return x


def concrete(name: str, argument: str, value: Any) -> Any:
    """An argument that determines the shape of the result: it cannot be traced.

    Raises:
        ConcretizationTypeError: it is traced.
    """
    if isinstance(value, Tracer):
        return value.concrete(f"a concrete value for the argument {argument!r} of special.{name}")
    return value
