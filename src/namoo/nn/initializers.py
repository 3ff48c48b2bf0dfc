"""Functions that create the initial values of parameters: `init(key, shape, dtype)`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from namoo import numpy as jnp
from namoo import random
from namoo._base import dtypes
from namoo._base.source_context import entry_point
from namoo._base.source_context import make_entry_points as _guard
from namoo.random.arguments import divided

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]
__dir__ = __all__.copy


Array = Any


class Initializer(Protocol):
    """A function from a key, a shape and a dtype to an array."""

    def __call__(
        self, key: Array, shape: Any, dtype: Any = None, out_sharding: Any = None
    ) -> Array: ...


def _dtype(dtype: Any) -> Any:
    if dtype is None:
        return dtypes.default_float_dtype()
    return dtypes.canonicalize_dtype(dtype)


def _initializer(name: str, draw: Callable[..., Array], dtype: Any) -> Initializer:
    """Return an initialiser, from a function of a key, a shape and a type."""

    @entry_point
    def init(key, shape, dtype=dtype, out_sharding=None):
        return divided(name, draw(key, shape, _dtype(dtype)), out_sharding)

    return init


def zeros(key: Array, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
    """Return an array of zeros; the key has no effect.

    Example:
        >>> zeros(None, (2,))
        Array([0., 0.], dtype=float32)
    """
    return divided("zeros", jnp.zeros(shape, _dtype(dtype)), out_sharding)


def ones(key: Array, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Array:
    """Return an array of ones; the key has no effect.

    Example:
        >>> ones(None, (2,))
        Array([1., 1.], dtype=float32)
    """
    return divided("ones", jnp.ones(shape, _dtype(dtype)), out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Return an initialiser that fills arrays with one value.

    Example:
        >>> constant(3.0)(None, (2,))
        Array([3., 3.], dtype=float32)
    """

    def fill(key, shape, dtype):
        return jnp.full(shape, value, dtype)

    return _initializer("constant", fill, dtype)


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initialiser with uniform values in [0, scale).

    Example:
        >>> import namoo
        >>> uniform(10.0)(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def draw(key, shape, dtype):
        return random.uniform(key, shape, dtype) * jnp.array(scale, dtype)

    return _initializer("uniform", draw, dtype)


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initialiser with normal values of mean 0.

    Example:
        >>> import namoo
        >>> normal(5.0)(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def draw(key, shape, dtype):
        return random.normal(key, shape, dtype) * jnp.array(stddev, dtype)

    return _initializer("normal", draw, dtype)


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """Return an initialiser with normal values, limited to [lower, upper] standard deviations.

    Example:
        >>> import namoo
        >>> truncated_normal(5.0)(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def draw(key, shape, dtype):
        return random.truncated_normal(key, lower, upper, shape, dtype) * jnp.array(stddev, dtype)

    return _initializer("truncated_normal", draw, dtype)


def _fans(
    shape: Sequence[int],
    in_axis: int | Sequence[int],
    out_axis: int | Sequence[int],
    batch_axis: int | Sequence[int],
) -> tuple[float, float]:
    """Return the number of inputs and of outputs of a layer, from the shape of its weights."""
    if len(shape) <= 1 and in_axis == -2:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor "
            "with default in_axis. Must be at least 2D or specify in_axis explicitly."
        )

    def size(axis: int | Sequence[int]) -> int:
        return math.prod(shape[a] for a in ([axis] if isinstance(axis, int) else axis))

    field = math.prod(shape) / size(in_axis) / size(out_axis) / size(batch_axis)
    return size(in_axis) * field, size(out_axis) * field


def variance_scaling(
    scale: Any,
    mode: Literal["fan_in", "fan_out", "fan_avg", "fan_geo_avg"],
    distribution: Literal["truncated_normal", "normal", "uniform"],
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """Return an initialiser whose variance follows the size of the layer.

        variance = scale / n,  where n is fan_in, fan_out, or their mean

    Args:
        scale: a positive number.
        mode: what n is.
        distribution: the kind of values.
        in_axis: the axis, or axes, of inputs.
        out_axis: the axis, or axes, of outputs.
        batch_axis: axes that count as separate layers.
        dtype: the type of the arrays.

    Example:
        >>> import namoo
        >>> variance_scaling(1.0, "fan_in", "normal")(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def draw(key, shape, dtype):
        shape = tuple(shape)
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        sizes = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": (fan_in * fan_out) ** 0.5,
        }
        if mode not in sizes:
            raise ValueError(
                f"invalid mode for variance scaling initializer: {mode}; use one of {list(sizes)}."
            )
        variance = jnp.array(scale / sizes[mode], dtype=dtype)
        if distribution == "normal":
            return random.normal(key, shape, dtype) * jnp.sqrt(variance)
        if distribution == "uniform":
            if jnp.issubdtype(dtype, jnp.floating):
                return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
            return _complex_uniform(key, shape, dtype) * jnp.sqrt(variance)
        if distribution == "truncated_normal":
            if jnp.issubdtype(dtype, jnp.floating):
                # The standard deviation of a normal distribution truncated at ±2.
                stddev = jnp.sqrt(variance) / jnp.array(0.87962566103423978, dtype)
                return random.truncated_normal(key, -2, 2, shape, dtype) * stddev
            stddev = jnp.sqrt(variance) / jnp.array(0.95311164380491208, dtype)
            return _complex_truncated_normal(key, 2, shape, dtype) * stddev
        raise ValueError(
            f"invalid distribution for variance scaling initializer: {distribution}; use "
            "'truncated_normal', 'normal' or 'uniform'."
        )

    return _initializer("variance_scaling", draw, dtype)


def _polar(key, shape, dtype, radius):
    """Return complex values with uniform angles and the given distribution of radii."""
    key_r, key_theta = random.split(key)
    real = dtypes.finfo(dtype).dtype
    r = radius(random.uniform(key_r, shape, real)).astype(dtype)
    theta = 2 * jnp.pi * random.uniform(key_theta, shape, real).astype(dtype)
    return r * jnp.exp(1j * theta)


def _complex_uniform(key, shape, dtype):
    """Return values that are uniform in a disk, with mean 0 and variance 1."""
    return _polar(key, shape, dtype, lambda u: jnp.sqrt(2 * u))


def _complex_truncated_normal(key, upper, shape, dtype):
    """Complex normal values whose size is limited."""

    def radius(u):
        u = u.astype(dtype)
        return jnp.sqrt(-jnp.log(1 - (1 - jnp.exp(jnp.array(-(upper**2), dtype))) * u))

    return _polar(key, shape, dtype, radius)


def glorot_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None) -> Initializer:
    """Return an initialiser: uniform, variance 1 / mean(fan_in, fan_out) (Glorot and Bengio, 2010).

    Example:
        >>> import namoo
        >>> glorot_uniform()(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None) -> Initializer:
    """Return an initialiser: normal, variance 1 / mean(fan_in, fan_out) (Glorot and Bengio, 2010).

    Example:
        >>> import namoo
        >>> glorot_normal()(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(
        1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype
    )


def lecun_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None) -> Initializer:
    """Return an initialiser: uniform, variance 1 / fan_in (LeCun et al., 1998).

    Example:
        >>> import namoo
        >>> lecun_uniform()(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None) -> Initializer:
    """Return an initialiser: normal, variance 1 / fan_in (LeCun et al., 1998).

    Example:
        >>> import namoo
        >>> lecun_normal()(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None) -> Initializer:
    """Return an initialiser: uniform, variance 2 / fan_in (He et al., 2015).

    Example:
        >>> import namoo
        >>> he_uniform()(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None) -> Initializer:
    """Return an initialiser: normal, variance 2 / fan_in (He et al., 2015).

    Example:
        >>> import namoo
        >>> he_normal()(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Return an initialiser with scaled orthogonal matrices (Saxe et al., 2014).

    Args:
        scale: the factor.
        column_axis: the axis whose slices are orthogonal.
        dtype: the type of the arrays.

    Example:
        >>> import namoo
        >>> orthogonal()(namoo.random.key(0), (2, 3)).shape
        (2, 3)
    """

    def draw(key, shape, dtype):
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        if 0 in shape:
            return jnp.zeros(shape, dtype)
        columns = shape[column_axis]
        q = random.orthogonal(key, math.prod(shape) // columns, (), dtype, columns)
        q = jnp.reshape(q, (*np.delete(shape, column_axis), columns))
        return jnp.array(scale, dtype) * jnp.moveaxis(q, -1, column_axis)

    return _initializer("orthogonal", draw, dtype)


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Return an initialiser for convolutions that act as one orthogonal matrix (Xiao et al., 2018).

    Args:
        scale: the factor.
        column_axis: the axis whose slices are orthogonal.
        dtype: the type of the arrays.

    Example:
        >>> import namoo
        >>> delta_orthogonal()(namoo.random.key(0), (3, 3, 2, 4)).shape
        (3, 3, 2, 4)
    """

    def draw(key, shape, dtype):
        if len(shape) not in (3, 4, 5):
            raise ValueError("Delta orthogonal initializer requires a 3D, 4D or 5D shape.")
        if shape[-1] < shape[-2]:
            raise ValueError(
                "`fan_in` must be less or equal than `fan_out`. "
                f"Got: fan_in={shape[-2]}, fan_out={shape[-1]}."
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:], dtype)
        center = tuple((k - 1) // 2 for k in shape[:-2])
        return jnp.zeros(shape, dtype).at[center].set(matrix)

    return _initializer("delta_orthogonal", draw, dtype)


_guard(globals())
