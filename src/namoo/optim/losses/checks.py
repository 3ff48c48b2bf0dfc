"""Checks of the arguments of losses."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp


def check_dtype(loss: str, name: str, x: Any, kind: Any) -> None:
    """Raise TypeError unless `x` has a type of this kind."""
    dtype = jnp.result_type(x)
    if not jnp.issubdtype(dtype, kind):
        article = "an" if kind is jnp.integer else "a"
        raise TypeError(f"{loss}: {name} must be of {article} {kind.__name__} type, got {dtype}.")


def check_floating(loss: str, **arrays: Any) -> None:
    """Raise TypeError unless all are floats."""
    for name, x in arrays.items():
        check_dtype(loss, name, x, jnp.floating)


def check_same_shape(loss: str, **arrays: Any) -> None:
    """Raise ValueError unless all have one shape."""
    shapes = {name: jnp.shape(x) for name, x in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"{loss}: the arguments must have one shape, got {shapes}.")


def check_rank(loss: str, name: str, x: Any, rank: int) -> None:
    """Raise ValueError unless `x` has this rank."""
    if jnp.ndim(x) != rank:
        raise ValueError(f"{loss}: {name} must have rank {rank}, got shape {jnp.shape(x)}.")
