"""Code that layers share: initialisation and checks of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo import numpy as jnp
from namoo import random
from namoo._base import dtypes


def uniform_init(key: Any, shape: tuple[int, ...], dtype: Any, limit: float) -> Any:
    """Return uniform values between -limit and limit; complex ones in both parts."""
    dtype = jnp.zeros((), dtype).dtype
    if not dtypes.issubdtype(dtype, jnp.complexfloating):
        return random.uniform(key, shape, dtype, minval=-limit, maxval=limit)
    real_dtype = jnp.finfo(dtype).dtype
    parts = [
        random.uniform(k, shape, real_dtype, minval=-limit, maxval=limit)
        for k in random.split(key, 2)
    ]
    return parts[0].astype(dtype) + 1j * parts[1].astype(dtype)


def at_least_float32(x: Any) -> Any:
    """Return an array in float32 or a wider dtype, so that sums over it are accurate."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def check_rank(layer: Any, x: Any, axes: Sequence[str]) -> None:
    """Reject an input of the wrong rank, and say how to pass a batch."""
    shape = jnp.shape(x)
    if len(shape) == len(axes):
        return
    name = type(layer).__name__
    raise ValueError(
        f"{name} takes one example with {len(axes)} axes ({', '.join(axes)}), but got an array of "
        f"shape {shape}."
        + (f" For a batch, write vmap({name.lower()})(x)." if len(shape) == len(axes) + 1 else "")
    )


def check_channels(layer: Any, x: Any, channels: int) -> None:
    """Reject an input whose first axis is not the channels."""
    shape = jnp.shape(x)
    if shape[0] != channels:
        last = shape[-1] == channels
        raise ValueError(
            f"{type(layer).__name__} takes {channels} channels first, but got an array of shape "
            f"{shape}." + (" Its channels are last: write jnp.moveaxis(x, -1, 0)." if last else "")
        )


def per_axis(value: Any, count: int, name: str) -> tuple[int, ...]:
    """Return one value per spatial axis, given one for all or a sequence."""
    if isinstance(value, int):
        return (value,) * count
    values = tuple(value)
    if len(values) != count:
        raise ValueError(f"{name} must be an integer or {count} of them, not {value!r}")
    return values


def pads(padding: Any, count: int) -> str | tuple[tuple[int, int], ...]:
    """Return the padding as a string, or as pairs (before, after) for each spatial axis."""
    if isinstance(padding, str):
        word = padding.upper()
        if word not in ("SAME", "SAME_LOWER", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'SAME_LOWER' or 'VALID', not {padding!r}")
        return word
    if isinstance(padding, int):
        return ((padding, padding),) * count
    entries = tuple((p, p) if isinstance(p, int) else tuple(p) for p in padding)
    if len(entries) != count or any(len(entry) != 2 for entry in entries):
        raise ValueError(
            f"padding must be a word, an integer, {count} integers or {count} pairs of them, not "
            f"{padding!r}"
        )
    return entries
