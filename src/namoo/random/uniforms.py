"""Samples made directly from random bits: uniform floats and integers, booleans."""

from __future__ import annotations

from typing import Any

import numpy as np

import namoo.numpy as jnp
from namoo import lax
from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.source_context import at_user_line
from namoo.core.array import Array, EagerArray
from namoo.dimensions import sizes
from namoo.eager import attach_shortcuts
from namoo.primitives.random.generators import float_form
from namoo.random.arguments import (
    array_of,
    float_dtype,
    param,
    sample_shape,
    sampler,
    shape_tuple,
    spread,
)
from namoo.random.keys import random_bits, single, split

Shape = tuple[int, ...]


def unit(key: Any, shape: Shape, dtype: np.dtype) -> Array:
    """Uniform floats in [0, 1): random bits are the mantissa of a float in [1, 2)."""
    drawn, carrier, shift, one = float_form(dtype)
    words = lax.convert_element_type(random_bits(key, drawn, shape), carrier)
    words = lax.bitwise_or(lax.shift_right_logical(words, shift), one)
    return lax.bitcast_convert_type(words, dtype) - dtype.type(1)


def between(key: Any, shape: Shape, dtype: np.dtype, low: Any, high: Any) -> Array:
    """Uniform floats in [low, high): arrays of the sample's type, or Python numbers."""
    u = unit(key, shape, dtype)
    if type(low) is float and type(high) is float:
        width: Any = float(dtype.type(high) - dtype.type(low))
    else:
        width = high - low
    return jnp.maximum(low, u * width + low)


@sampler
def uniform(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform floats in [minval, maxval).

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: a floating type; `float32` by default.
        minval: the least value, broadcast to `shape`.
        maxval: the upper bound, broadcast to `shape`.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating.
        TypeError: bounds that do not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.uniform(random.key(0), (3,))
        Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
    """
    one, _ = single("uniform", key)
    dtype = float_dtype("uniform", dtype)
    shape = shape_tuple(shape)
    if type(minval) is float and type(maxval) is float and (minval, maxval) == (0.0, 1.0):
        return unit(one, shape, dtype)
    low = param("uniform", "minval", minval, dtype)
    high = param("uniform", "maxval", maxval, dtype)
    try:
        shape_of_all = sizes.broadcast_shapes(low.shape, high.shape, shape)
    except ValueError:
        shape_of_all = None
    if shape_of_all != shape:
        raise TypeError(
            f"random.uniform: minval of shape {low.shape} and maxval of shape {high.shape} do not "
            f"fit shape={shape}." + at_user_line()
        )
    return between(one, shape, dtype, spread(low, shape), spread(high, shape))


@sampler
def randint(
    key: Any,
    shape: Any,
    minval: Any,
    maxval: Any,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform integers in [minval, maxval).

    Two words of bits are reduced to the span, so that the bias is below 1 in 2³² even where the
    span is not a power of two.  Bounds beyond the type are moved to its ends.

    Args:
        key: a key.
        shape: shape of the sample.
        minval: the least value, broadcast to `shape`.
        maxval: the upper bound, broadcast to `shape`.
        dtype: an integer type; `int32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        TypeError: the type is not an integer type.
        ValueError: bounds that do not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.randint(random.key(0), (3,), 0, 10)
        Array([9, 0, 2], dtype=int32)
    """
    one, _ = single("randint", key)
    if dtype is None:
        wanted = dtypes.default_int_dtype()
    else:
        wanted = dtypes.check_user_dtype_supported(dtype)
        if not dtypes.issubdtype(wanted, np.integer):
            raise TypeError(f"randint only accepts integer dtypes, got {wanted}")
    low = array_of("randint", "minval", minval)
    high = array_of("randint", "maxval", maxval)
    shape = sample_shape("randint", shape_tuple(shape), low.shape, high.shape)
    # Narrow types are drawn as int32: their upper bound may not fit the type.
    wide = wanted if wanted.itemsize >= 4 else np.dtype(np.int32)
    keys = split(one)
    if type(minval) is int and type(maxval) is int:
        low, span, factor = _span_of_numbers(minval, maxval, wanted, wide)
    else:
        low, span, factor = _span_of_arrays(low, high, wanted, wide, shape)
    return _integers(keys, shape, low, span, factor, wide, wanted)


def _integers(
    keys: Any, shape: Shape, low: Any, span: Any, factor: Any, wide: np.dtype, wanted: np.dtype
) -> Array:
    """Integers in a span, drawn as `wide` and returned as `wanted`; see `_span_of_numbers`."""
    first, second = keys
    width = 8 * wide.itemsize
    words = _modulo(random_bits(first, width, shape), span) * factor
    words = words + _modulo(random_bits(second, width, shape), span)
    # Unsigned integers wrap, which signed ones must not in strict mode.
    words = _modulo(words, span) + jnp.asarray(low).astype(words.dtype)
    return words.astype(wide).astype(wanted)


def _modulo(words: Any, span: Any) -> Any:
    """Words modulo a span; a span of 0 means the full range: the words themselves."""
    if not config.strict:
        return lax.rem(words, span)  # x mod 0 is x
    whole = span == 0
    return jnp.where(whole, words, lax.rem(words, jnp.where(whole, span.dtype.type(1), span)))


# Integers in a span are one random word modulo the span, where the word has twice the bits:
# (high·2^width + low) mod span.  The factor is 2^width mod span, as the square of
# 2^(width/2) mod span; the square overflows to 0 for spans beyond 2^(width/2), where the low word
# alone decides, as in JAX.  A span of 0 means all 2^width values: x mod 0 is x.


def _span_of_numbers(low: int, high: int, dtype: np.dtype, wide: np.dtype) -> tuple[Any, ...]:
    """Least value, span and factor for bounds that are Python numbers."""
    info = dtypes.iinfo(dtype)
    low = min(max(low, info.min), info.max)
    high = min(max(high, info.min), info.max + 1)
    unsigned = np.dtype(f"u{wide.itemsize}").type
    size = 1 << 8 * wide.itemsize
    span = max(high - low, 1) % size
    half = (1 << 4 * wide.itemsize) % span if span else 0
    return wide.type(low), unsigned(span), unsigned(half * half % size % span if span else 0)


def _span_of_arrays(
    low: Array, high: Array, dtype: np.dtype, wide: np.dtype, shape: Shape
) -> tuple[Any, ...]:
    """Least value, span and factor for bounds that are arrays."""
    info, wide_info = dtypes.iinfo(dtype), dtypes.iinfo(wide)
    low, high = _as_integers(low), _as_integers(high)
    # If a bound exceeds the greatest value of the widest type, that value is drawn, too.
    whole = high > high.dtype.type(min(info.max, dtypes.iinfo(high.dtype).max))
    whole = whole if dtype == wide else whole & False
    low = _clip(low, info.min, info.max).astype(wide)
    high = _clip(high, info.min, min(info.max + 1, wide_info.max)).astype(wide)
    low, high, whole = (spread(x, shape) for x in (low, high, whole))
    unsigned = np.dtype(f"u{wide.itemsize}")
    some = high > low
    span = jnp.where(some, high.astype(unsigned) - low.astype(unsigned), unsigned.type(1))
    span = jnp.where(whole & some, span + unsigned.type(1), span)
    half = _modulo(jnp.full_like(span, 1 << 4 * wide.itemsize), span)
    return low, span, _modulo(half * half, span)


def _as_integers(x: Array) -> Array:
    return x if dtypes.issubdtype(x.dtype, np.integer) else x.astype(dtypes.default_int_dtype())


def _clip(x: Array, low: int, high: int) -> Array:
    """`x` clipped to two bounds, each of which may be outside its type."""
    own, number = dtypes.iinfo(x.dtype), x.dtype.type
    return jnp.clip(x, number(max(low, own.min)), number(min(high, own.max)))


@sampler
def bernoulli(
    key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None
) -> Array:
    """Booleans that are true with probability p.

    Args:
        key: a key.
        p: the probability, an array or a number of a floating type.
        shape: shape of the sample; that of `p` by default.
        mode: 'low', or 'high' for probabilities below about 1e-7, at twice the random bits.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        TypeError: `p` is not floating.
        ValueError: `p` does not fit the shape, or the mode is unknown.

    Example:
        >>> from namoo import random
        >>> random.bernoulli(random.key(0), 0.5, (4,))
        Array([False, False,  True,  True], dtype=bool)
    """
    one, _ = single("bernoulli", key)
    if mode not in ("low", "high"):
        raise ValueError(f"got mode={mode!r}, expected 'high' or 'low'")
    p = array_of("bernoulli", "p", p)
    if not dtypes.issubdtype(p.dtype, np.floating):
        raise TypeError(f"bernoulli probability `p` must have a floating dtype, got {p.dtype}.")
    return coins(one, p, sample_shape("bernoulli", shape, p.shape), mode)


def coins(key: Any, p: Any, shape: Shape, mode: str = "low") -> Array:
    """Booleans that are true with probability p, given a typed key and a floating array."""
    dtype = p.dtype
    if mode == "low":
        return unit(key, shape, dtype) < spread(p, shape)
    # The second number decides below the resolution of the first.
    first, second = unit(key, (2, *shape), dtype)
    return second * dtype.type(dtypes.finfo(dtype).eps) < spread(p, shape) - first


@sampler
def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Signs: -1 or 1, each with probability 1/2.

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: its type; `int32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Example:
        >>> from namoo import random
        >>> random.rademacher(random.key(0), (4,))
        Array([-1, -1,  1,  1], dtype=int32)
    """
    one, _ = single("rademacher", key)
    if dtype is None:
        dtype = dtypes.default_int_dtype()
    return signs(one, shape_tuple(shape), dtypes.check_user_dtype_supported(dtype))


def signs(key: Any, shape: Shape, dtype: np.dtype) -> Array:
    """-1 or 1, given a typed key."""
    half = EagerArray(np.asarray(0.5, dtypes.default_float_dtype()))
    heads = coins(key, half, shape).astype(dtype)
    return (2 * heads - 1).astype(dtype)


attach_shortcuts(globals())
