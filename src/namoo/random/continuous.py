"""Samplers that map a uniform float by the inverse of a distribution function."""

from __future__ import annotations

from typing import Any

import numpy as np

import namoo.numpy as jnp
from namoo import lax
from namoo._base import dtypes
from namoo._base.caches import cached
from namoo._base.config import config
from namoo._base.source_context import entry_point
from namoo.core.array import Array
from namoo.eager import attach_shortcuts
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
from namoo.random.uniforms import Shape, between, signs, unit


class _Constants:
    """Constants of a floating type, as Python floats, which take the type of the other operand."""

    def __init__(self, dtype: np.dtype):
        def number(x: Any) -> float:
            return float(dtype.type(x))

        info = dtypes.finfo(dtype)
        self.above = number(np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype)))
        """The least number above -1."""
        self.root = number(np.sqrt(2))
        self.eps = number(info.eps)
        """The spacing at 1."""
        self.tiny = number(info.tiny)
        """The least normal number."""
        self.pi = number(np.pi)


_constants = cached(
    "random.continuous constants", bound="floating-point types", keyed_by="dtype", kept=True
)(_Constants)


def normals(key: Any, shape: Shape, dtype: np.dtype) -> Array:
    """Standard normal floats, given a typed key."""
    constants = _constants(dtype)
    return lax.erf_inv(between(key, shape, dtype, constants.above, 1.0)) * constants.root


@sampler
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Standard normal numbers.

    √2·erf⁻¹(u) for u uniform in (-1, 1).  Real and imaginary parts of complex numbers have
    variance 1/2 each.

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: a floating or complex type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: another type.

    Example:
        >>> from namoo import random
        >>> random.normal(random.key(0), (3,)).round(3)
        Array([ 1.623,  2.025, -0.434], dtype=float32)
    """
    one, _ = single("normal", key)
    shape = shape_tuple(shape)
    if dtype is None:
        return normals(one, shape, dtypes.default_float_dtype())
    wanted = dtypes.check_user_dtype_supported(dtype)
    if dtypes.issubdtype(wanted, np.floating):
        return normals(one, shape, wanted)
    if not dtypes.issubdtype(wanted, np.complexfloating):
        raise ValueError(
            f"dtype argument to `normal` must be a float or complex dtype, got {wanted}"
        )
    part = np.dtype(np.float32 if wanted == np.complex64 else np.float64)
    first, second = split(one)
    parts = lax.complex(normals(first, shape, part), normals(second, shape, part))
    return parts / wanted.type(np.sqrt(part.type(2)))


@sampler
def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Standard normal numbers, restricted to an interval.

    √2·erf⁻¹(u) for u uniform in (erf(lower/√2), erf(upper/√2)).

    Args:
        key: a key.
        lower: the lower bound.
        upper: the upper bound.
        shape: shape of the sample; that of the bounds by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or bounds that do not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.truncated_normal(random.key(0), -1, 1, (3,)).round(3)
        Array([ 0.862,  0.941, -0.291], dtype=float32)
    """
    one, _ = single("truncated_normal", key)
    dtype = float_dtype("truncated_normal", dtype)
    lower = param("truncated_normal", "lower", lower, dtype)
    upper = param("truncated_normal", "upper", upper, dtype)
    shape = sample_shape("truncated_normal", shape, lower.shape, upper.shape)
    root = _constants(dtype).root
    low, high = (spread(lax.erf(x / root), shape) for x in (lower, upper))
    out = lax.erf_inv(between(one, shape, dtype, low, high)) * root
    # Rounding must not reach or exceed the bounds.
    inside = lax.stop_gradient(lower), lax.stop_gradient(upper)
    least = lax.nextafter(inside[0], jnp.full_like(inside[0], np.inf))
    greatest = lax.nextafter(inside[1], jnp.full_like(inside[1], -np.inf))
    return jnp.clip(out, spread(least, shape), spread(greatest, shape))


def exponentials(key: Any, shape: Shape, dtype: np.dtype) -> Array:
    """Exponential floats, given a typed key."""
    return -jnp.log1p(-unit(key, shape, dtype))


@sampler
def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Exponential numbers with density exp(-x) on x ≥ 0.

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating.

    Example:
        >>> from namoo import random
        >>> random.exponential(random.key(0), (3,)).round(3)
        Array([2.95 , 3.843, 0.404], dtype=float32)
    """
    one, _ = single("exponential", key)
    return exponentials(one, shape_tuple(shape), float_dtype("exponential", dtype))


@sampler
def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Laplace numbers with density ½·exp(-|x|).

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating.

    Example:
        >>> from namoo import random
        >>> random.laplace(random.key(0)).shape
        ()
    """
    one, _ = single("laplace", key)
    dtype = float_dtype("laplace", dtype)
    u = between(one, shape_tuple(shape), dtype, _constants(dtype).above, 1.0)
    return jnp.sign(u) * jnp.log1p(-jnp.abs(u))


@sampler
def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Logistic numbers with distribution function 1/(1 + exp(-x)).

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating.

    Example:
        >>> from namoo import random
        >>> random.logistic(random.key(0)).shape
        ()
    """
    one, _ = single("logistic", key)
    dtype = float_dtype("logistic", dtype)
    u = between(one, shape_tuple(shape), dtype, _constants(dtype).tiny, 1.0)
    return jnp.log(u) - jnp.log1p(-u)


@sampler
def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Cauchy numbers with density 1/(π·(1 + x²)): tan(π·(u - ½)).

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating.

    Example:
        >>> from namoo import random
        >>> random.cauchy(random.key(0)).shape
        ()
    """
    one, _ = single("cauchy", key)
    dtype = float_dtype("cauchy", dtype)
    constants = _constants(dtype)
    u = between(one, shape_tuple(shape), dtype, constants.eps, 1.0)
    return jnp.tan((u - 0.5) * constants.pi)


def gumbels(key: Any, shape: Shape, dtype: np.dtype, mode: str | None) -> Array:
    """Gumbel floats, given a typed key."""
    if mode is None:
        mode = "high" if config.high_dynamic_range_gumbel else "low"
    if mode not in ("low", "high", "highest"):
        raise ValueError(
            f"Must provide valid mode for gumbel got: {mode}; use 'low', 'high' or 'highest'."
        )
    if mode == "highest" and dtype == np.float32:
        return _gumbels_of_64_bits(*random_bits(key, 32, (2, *shape)))
    tiny, eps = _constants(dtype).tiny, _constants(dtype).eps
    if mode == "low":
        return -jnp.log(-jnp.log(between(key, shape, dtype, tiny, 1.0)))
    # Below ½ a second number fills the bits that the first one lacks.
    first, second = unit(key, (2, *shape), dtype)
    u = jnp.where(first >= 0.5, first, first + second * eps + tiny)
    return -jnp.log(-jnp.log1p(-u))


def _gumbels_of_64_bits(high: Array, low: Array) -> Array:
    """-log(-log(1 - u)), where u has 64 bits, of which the first 32 are `high`."""
    lower = high < np.uint32(1 << 31)
    # 1 - u where u is not below a half, so that the smaller of both is rounded.
    rest = lax.bitwise_not(high) + lax.convert_element_type(lax.eq(low, np.uint32(0)), np.uint32)
    x = _fraction(jnp.where(lower, high, rest), jnp.where(lower, low, -low))
    return -jnp.log(-jnp.where(lower, jnp.log1p(-x), jnp.log(x)))


def _fraction(high: Array, low: Array) -> Array:
    """(2³²·high + low) / 2⁶⁴ in float32, rounded towards zero; 2⁻⁶⁵ instead of zero."""
    zeros, later = lax.clz(high), lax.clz(low)
    top = jnp.where(high == 0, low << later, high << zeros | low >> (np.uint32(32) - zeros))
    exponent = np.uint32(126) - jnp.where(high == 0, zeros + later, zeros)
    digits = top >> np.uint32(8) & np.uint32((1 << 23) - 1)
    return lax.bitcast_convert_type(exponent << np.uint32(23) | digits, np.float32)


@sampler
def gumbel(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Gumbel numbers with distribution function exp(-exp(-x)).

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: a floating type; `float32` by default.
        mode: 'low'; 'high' for a far tail at twice the random bits; or 'highest', which in float32
            uses all of these bits in both tails. By default as `config.high_dynamic_range_gumbel`
            says.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or the mode is unknown.

    Example:
        >>> from namoo import random
        >>> random.gumbel(random.key(0)).shape
        ()
    """
    one, _ = single("gumbel", key)
    return gumbels(one, shape_tuple(shape), float_dtype("gumbel", dtype), mode)


@sampler
def lognormal(
    key: Any,
    sigma: Any = 1.0,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Log-normal numbers: exp(sigma·z) for z standard normal.

    Args:
        key: a key.
        sigma: standard deviation of the logarithm.
        shape: shape of the sample; that of `sigma` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `sigma` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.lognormal(random.key(0), 0.5).shape
        ()
    """
    one, _ = single("lognormal", key)
    dtype = float_dtype("lognormal", dtype)
    sigma = param("lognormal", "sigma", sigma, dtype)
    shape = sample_shape("lognormal", shape, sigma.shape)
    return jnp.exp(normals(one, shape, dtype) * spread(sigma, shape))


def maxwells(key: Any, shape: Shape, dtype: np.dtype) -> Array:
    """Lengths of standard normal vectors of three numbers, given a typed key."""
    z = normals(key, (*shape, 3), dtype)
    return jnp.sqrt(jnp.sum(z * z, axis=-1))


@sampler
def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Maxwell numbers with density √(2/π)·x²·exp(-x²/2) on x ≥ 0.

    Args:
        key: a key.
        shape: shape of the sample.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating.

    Example:
        >>> from namoo import random
        >>> random.maxwell(random.key(0)).shape
        ()
    """
    one, _ = single("maxwell", key)
    return maxwells(one, shape_tuple(shape), float_dtype("maxwell", dtype))


@entry_point
def double_sided_maxwell(
    key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None
) -> Array:
    """Maxwell numbers with a random sign, scaled and moved: loc + scale·s·x.

    Args:
        key: a key.
        loc: the centre.
        scale: the scale.
        shape: shape of the sample, before the axes of `loc` and `scale`.
        dtype: a floating type; `float32` by default.

    Raises:
        ValueError: the type is not floating, or `loc` and `scale` do not fit.

    Example:
        >>> from namoo import random
        >>> random.double_sided_maxwell(random.key(0), 1.0, 2.0, (3,)).shape
        (3,)
    """
    one, _ = single("double_sided_maxwell", key)
    dtype = float_dtype("double_sided_maxwell", dtype)
    loc = param("double_sided_maxwell", "loc", loc, dtype)
    scale = param("double_sided_maxwell", "scale", scale, dtype)
    own = sample_shape("double_sided_maxwell", None, loc.shape, scale.shape)
    shape = (*(shape_tuple(shape) or own), *own)
    first, second = split(one)
    out = signs(second, shape, dtype) * maxwells(first, shape, dtype)
    return out * spread(scale, shape) + spread(loc, shape)


@sampler
def pareto(
    key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Pareto numbers with density b/x^(b+1) on x ≥ 1.

    Args:
        key: a key.
        b: the power.
        shape: shape of the sample; that of `b` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `b` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.pareto(random.key(0), 2.0).shape
        ()
    """
    one, _ = single("pareto", key)
    dtype = float_dtype("pareto", dtype)
    b = param("pareto", "b", b, dtype)
    shape = sample_shape("pareto", shape, b.shape)
    return jnp.exp(exponentials(one, shape, dtype) / spread(b, shape))


@sampler
def rayleigh(
    key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Rayleigh numbers with density x/s²·exp(-x²/(2s²)) on x ≥ 0.

    Args:
        key: a key.
        scale: the scale s.
        shape: shape of the sample; that of `scale` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `scale` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.rayleigh(random.key(0), 2.0).shape
        ()
    """
    one, _ = single("rayleigh", key)
    dtype = float_dtype("rayleigh", dtype)
    scale = param("rayleigh", "scale", scale, dtype)
    shape = sample_shape("rayleigh", shape, scale.shape)
    return spread(scale, shape) * jnp.sqrt(jnp.log(unit(one, shape, dtype)) * -2.0)


@sampler
def triangular(
    key: Any,
    left: Any,
    mode: Any,
    right: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers whose density is a triangle over [left, right] with its top at `mode`.

    Args:
        key: a key.
        left: the least value.
        mode: where the density is largest.
        right: the greatest value.
        shape: shape of the sample; that of the parameters by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or parameters that do not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.triangular(random.key(0), 0.0, 1.0, 3.0).shape
        ()
    """
    one, _ = single("triangular", key)
    dtype = float_dtype("triangular", dtype)
    given = (("left", left), ("mode", mode), ("right", right))
    params = [param("triangular", name, x, dtype) for name, x in given]
    shape = sample_shape("triangular", shape, *(x.shape for x in params))
    left, mode, right = (spread(x, shape) for x in params)
    u = unit(one, shape, dtype)
    rising = left + jnp.sqrt(u * (right - left) * (mode - left))
    falling = right - jnp.sqrt((1 - u) * (right - left) * (right - mode))
    return jnp.where(u < (mode - left) / (right - left), rising, falling)


@sampler
def wald(
    key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Inverse Gaussian (Wald) numbers with scale 1.

    The smaller root of a quadratic in z² (Michael, Schucany and Haas, 1976), or the larger one,
    mean²/root, with probability root/(mean + root).

    Args:
        key: a key.
        mean: the mean.
        shape: shape of the sample; that of `mean` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `mean` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.wald(random.key(0), 2.0).shape
        ()
    """
    one, _ = single("wald", key)
    dtype = float_dtype("wald", dtype)
    mean = param("wald", "mean", mean, dtype)
    shape = sample_shape("wald", shape, mean.shape)
    mean = spread(mean, shape)
    first, second = split(one)
    z = normals(first, shape, dtype)
    u = unit(second, shape, dtype)
    z2, mean2 = z * z, mean * mean
    width = jnp.sqrt(4 * mean * z2 + mean2 * (z2 * z2))
    root = mean + mean2 * z2 / 2 - mean / 2 * width
    return jnp.where(u <= mean / (mean + root), root, mean2 / root)


@entry_point
def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None
) -> Array:
    """Weibull numbers with density c/s·(x/s)^(c-1)·exp(-(x/s)^c) on x ≥ 0.

    Args:
        key: a key.
        scale: the scale s.
        concentration: the power c.
        shape: shape of the sample; parameters with more axes repeat it.
        dtype: a floating type; `float32` by default.

    Raises:
        ValueError: the type is not floating.

    Example:
        >>> from namoo import random
        >>> random.weibull_min(random.key(0), 2.0, 3.0, (3,)).shape
        (3,)
    """
    one, _ = single("weibull_min", key)
    dtype = float_dtype("weibull_min", dtype)
    power = 1.0 / array_of("weibull_min", "concentration", concentration)
    scale = param("weibull_min", "scale", scale, dtype)
    return jnp.power(exponentials(one, shape_tuple(shape), dtype), power.astype(dtype)) * scale


attach_shortcuts(globals())
