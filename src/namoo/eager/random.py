"""Shortcuts of samplers: they work in the memory of the random bits, and loop in Python.

The general path of a sampler by rejection is a compiled loop; nothing has to be compiled here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import namoo.numpy as jnp
from namoo.core.array import Array, EagerArray
from namoo.eager.shortcuts import Entries, Function
from namoo.primitives.random.generators import float_form, unit_floats
from namoo.primitives.random.prng import random_bits_p
from namoo.primitives.special.erf_inverse import BLOCK, erf_inv_into

ENTRIES = Entries()

Shape = tuple[int, ...]

_ABOVE = np.nextafter(np.float32(-1), np.float32(0))
_ROOT = np.float32(np.sqrt(2))


def _scale(floats: np.ndarray, low: Any, high: Any) -> None:
    """Change floats in [0, 1) to floats in [low, high), in place."""
    floats *= high - low
    floats += low
    np.maximum(floats, low, out=floats)


def _unit(key: EagerArray, shape: Shape, dtype: np.dtype) -> np.ndarray:
    words = random_bits_p.evaluate(key._value, bit_width=float_form(dtype)[0], shape=shape)
    return unit_floats(words, dtype)


@ENTRIES.shortcut("random.uniforms.unit")
def unit(key: Any, shape: Shape, dtype: np.dtype) -> Array | None:
    """A concrete key."""
    return EagerArray(_unit(key, shape, dtype)) if type(key) is EagerArray else None


@ENTRIES.shortcut("random.uniforms.between")
def between(key: Any, shape: Shape, dtype: np.dtype, low: Any, high: Any) -> Array | None:
    """A concrete key, and bounds that are Python floats."""
    if type(key) is not EagerArray or type(low) is not float or type(high) is not float:
        return None
    floats = _unit(key, shape, dtype)
    _scale(floats, dtype.type(low), dtype.type(high))
    return EagerArray(floats)


@ENTRIES.shortcut("random.uniforms._integers")
def _integers(
    keys: Any, shape: Shape, low: Any, span: Any, factor: Any, wide: np.dtype, wanted: np.dtype
) -> Array | None:
    """Concrete keys, and bounds that are Python integers."""
    first, second = keys
    if type(first) is not EagerArray or not isinstance(span, np.generic):
        return None
    width = 8 * wide.itemsize
    words = random_bits_p.evaluate(second._value, bit_width=width, shape=shape)
    if span:
        np.remainder(words, span, out=words)
    if factor:
        high = random_bits_p.evaluate(first._value, bit_width=width, shape=shape)
        np.remainder(high, span, out=high)
        high *= factor
        words += high
        np.remainder(words, span, out=words)
    return EagerArray((words.view(wide) + low).astype(wanted, copy=False))


@ENTRIES.shortcut("random.continuous.normals")
def normals(key: Any, shape: Shape, dtype: np.dtype) -> Array | None:
    """A concrete key and float32.

    Every step is done in the memory of the random bits, block by block.  For many numbers that
    takes half the time: no memory is allocated, and each block stays in the cache.
    """
    if dtype != np.float32 or type(key) is not EagerArray:
        return None
    words = random_bits_p.evaluate(key._value, bit_width=32, shape=shape)
    flat = words.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        floats = unit_floats(flat[start : start + BLOCK], np.dtype(np.float32))
        _scale(floats, _ABOVE, np.float32(1))
        erf_inv_into(floats, floats)
        floats *= _ROOT
    return EagerArray(words.view(np.float32))


@ENTRIES.shortcut("random.counts._repeat")
def _repeat(body: Function, going: Callable[..., Any], most: int, *state: Any) -> tuple[Any, ...]:
    """Always: a Python loop, and nothing is traced."""
    for _ in range(most):
        if not going(*state)._value.any():
            break
        state = body(*state)
    return state


@ENTRIES.shortcut("random.counts._either")
def _either(mask: Any, chosen: Callable[[], Array], other: Callable[[], Array]) -> Array | None:
    """A concrete mask that is true everywhere, or nowhere: only one side is computed."""
    if type(mask) is not EagerArray:
        return None
    if mask._value.all():
        return chosen()
    return None if mask._value.any() else other()


@ENTRIES.shortcut("random.counts._draw_categories")
def _draw_categories(
    step: Function, n: Array, ratios: Array, keys: Any, unroll: Any
) -> Array | None:
    """At least one category: a Python loop, and nothing is traced."""
    counts = []
    for pair in zip(ratios, keys, strict=True):
        n, count = step(n, pair)
        counts.append(count)
    return jnp.stack(counts) if counts else None
