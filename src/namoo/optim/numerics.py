"""Norms and counters that stay finite, and have finite derivatives."""

from __future__ import annotations

from typing import Any

from namoo import lax, tree
from namoo import numpy as jnp
from namoo.transforms.custom import custom_vjp

__all__ = [
    "safe_increment", "safe_int32_increment", "safe_norm", "safe_root_mean_squares",
    "scale_gradient",
]  # fmt: skip

Array = Any


def abs_sq(x: Array) -> Array:
    """The square of the absolute value, |x|², real also for complex arrays.

    Example:
        >>> abs_sq(jnp.array([3.0 + 4.0j]))
        Array([25.], dtype=float32)
    """
    x = jnp.asarray(x)
    return (x.conj() * x).real if jnp.iscomplexobj(x) else x * x


def safe_increment(count: Array) -> Array:
    """`count + 1`, which stays at the largest value of its type.

    Example:
        >>> safe_increment(jnp.array(255, jnp.uint8))
        Array(255, dtype=uint8)
    """
    dtype = jnp.asarray(count).dtype
    if jnp.issubdtype(dtype, jnp.integer):
        most = jnp.iinfo(dtype).max
    elif jnp.issubdtype(dtype, jnp.floating):
        most = jnp.finfo(dtype).max
    else:
        raise ValueError(f"safe_increment: count must be an integer or a float, got {dtype}.")
    most, one = jnp.array(most, dtype), jnp.array(1, dtype)
    return jnp.where(count < most, count + one, most)


safe_int32_increment = safe_increment


def safe_norm(
    x: Array, min_norm: Any, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Array:
    """A norm of at least `min_norm`, with derivative 0 where that is reached.

        max(‖x‖, min_norm)

    Example:
        >>> safe_norm(jnp.zeros(3), 0.1)
        Array(0.1, dtype=float32)
    """
    size = jnp.linalg.norm(x, ord=ord, axis=axis, keepdims=True)
    # √ has no derivative at 0: small arrays are replaced before the norm that is differentiated.
    x = jnp.where(size <= min_norm, jnp.ones_like(x), x)
    size = size if keepdims else jnp.squeeze(size, axis=axis)
    return jnp.where(
        size <= min_norm, min_norm, jnp.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)
    )


def safe_root_mean_squares(x: Array, min_rms: Any) -> Array:
    """A root mean square of at least `min_rms`, with derivative 0 where that is reached.

        max(√mean(|x|²), min_rms)

    Example:
        >>> safe_root_mean_squares(jnp.array([3.0, 4.0, 5.0]), 1e-3)
        Array(4.082483, dtype=float32)
    """
    rms = jnp.sqrt(jnp.mean(abs_sq(x)))
    x = jnp.where(rms <= min_rms, jnp.ones_like(x), x)
    return jnp.where(rms <= min_rms, min_rms, jnp.sqrt(jnp.mean(abs_sq(x))))


@custom_vjp
def _scaled(inputs, scale):
    del scale
    return inputs


_scaled.defvjp(
    lambda inputs, scale: (inputs, scale),
    lambda scale, ct: (tree.map(lambda c: c * scale, ct), None),
)


def scale_gradient(inputs: Any, scale: float) -> Any:
    """The inputs unchanged; their gradients are multiplied by `scale`.

    Args:
        inputs: a tree of arrays.
        scale: a number; 0 stops the gradient.

    Example:
        >>> from namoo.api.grad import grad
        >>> grad(lambda x: scale_gradient(x, 0.5) ** 2)(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    if scale == 1.0:
        return inputs
    if scale == 0.0:
        return lax.stop_gradient(inputs)
    return _scaled(inputs, scale)
