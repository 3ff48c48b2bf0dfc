"""Gamma numbers, and samples that are made of them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import namoo.numpy as jnp
from namoo import lax
from namoo.core.array import Array
from namoo.primitives.random.gamma import random_gamma
from namoo.primitives.shape import broadcast_to
from namoo.random.arguments import (
    array_of,
    float_dtype,
    param,
    sample_shape,
    sampler,
    shape_tuple,
    spread,
)
from namoo.random.continuous import exponentials, normals
from namoo.random.keys import single, split
from namoo.random.uniforms import Shape, signs


def _gammas(key: Any, a: Array, shape: Shape, log_space: bool = False) -> Array:
    """Gamma numbers or their logarithms, given a typed key and an array of the sample's type."""
    return random_gamma(key, broadcast_to(a, shape), log_space)


@sampler
def gamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Gamma numbers with density x^(a-1)·exp(-x)/Γ(a) on x ≥ 0.

    Differentiable with respect to `a`: the derivative keeps the sample's probability fixed.

    Args:
        key: a key.
        a: the shape parameter.
        shape: shape of the sample; that of `a` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `a` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.gamma(random.key(0), 1.0).round(3)
        Array(0.618, dtype=float32)
    """
    one, _ = single("gamma", key)
    a = param("gamma", "a", a, float_dtype("gamma", dtype))
    return _gammas(one, a, sample_shape("gamma", shape, a.shape))


@sampler
def loggamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Logarithms of gamma numbers, exact where small `a` would round the numbers to 0.

    Args:
        key: a key.
        a: the shape parameter.
        shape: shape of the sample; that of `a` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `a` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.loggamma(random.key(0), 1e-4) < -1000
        Array(True, dtype=bool)
    """
    one, _ = single("loggamma", key)
    a = param("loggamma", "a", a, float_dtype("loggamma", dtype))
    return _gammas(one, a, sample_shape("loggamma", shape, a.shape), log_space=True)


@sampler
def beta(
    key: Any,
    a: Any,
    b: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Beta numbers with density x^(a-1)·(1-x)^(b-1)/B(a, b) on 0 ≤ x ≤ 1.

    g/(g + h) for gamma numbers g of `a` and h of `b`, computed from their logarithms.

    Args:
        key: a key.
        a: the first parameter.
        b: the second parameter.
        shape: shape of the sample; that of the parameters by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or parameters that do not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.beta(random.key(0), 1, 2).shape
        ()
    """
    one, _ = single("beta", key)
    dtype = float_dtype("beta", dtype)
    a, b = param("beta", "a", a, dtype), param("beta", "b", b, dtype)
    shape = sample_shape("beta", shape, a.shape, b.shape)
    first, second = split(one)
    log_g = _gammas(first, a, shape, log_space=True)
    log_h = _gammas(second, b, shape, log_space=True)
    top = jnp.maximum(log_g, log_h)
    g, h = jnp.exp(log_g - top), jnp.exp(log_h - top)
    return g / (g + h)


@sampler
def dirichlet(
    key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Dirichlet vectors: positive numbers with sum 1, with density ∏ xᵢ^(alphaᵢ-1)/B(alpha).

    Args:
        key: a key.
        alpha: the parameters, along the last axis.
        shape: shape of the sample, without the last axis; that of `alpha` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating; `alpha` has no axis, or does not fit the shape.

    Example:
        >>> import namoo.numpy as jnp
        >>> from namoo import random
        >>> random.dirichlet(random.key(0), jnp.ones(3), (2,)).sum(1).round(3)
        Array([1., 1.], dtype=float32)
    """
    one, _ = single("dirichlet", key)
    alpha = param("dirichlet", "alpha", alpha, float_dtype("dirichlet", dtype))
    if not alpha.ndim:
        raise ValueError(f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {alpha.ndim}")
    shape = sample_shape("dirichlet", shape, alpha.shape[:-1])
    logs = _gammas(one, alpha, (*shape, alpha.shape[-1]), log_space=True)
    top = lax.stop_gradient(jnp.max(logs, axis=-1, keepdims=True, initial=-np.inf))
    weights = jnp.exp(logs - top)
    return weights / jnp.sum(weights, axis=-1, keepdims=True)


def _chisquares(key: Any, df: Array, shape: Shape) -> Array:
    return 2 * jnp.exp(_gammas(key, df / 2, shape, log_space=True))


@sampler
def chisquare(
    key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Chi-square numbers with `df` degrees of freedom: twice a gamma number of df/2.

    Args:
        key: a key.
        df: degrees of freedom.
        shape: shape of the sample; that of `df` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `df` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.chisquare(random.key(0), 3).shape
        ()
    """
    one, _ = single("chisquare", key)
    df = param("chisquare", "df", df, float_dtype("chisquare", dtype))
    return _chisquares(one, df, sample_shape("chisquare", shape, df.shape))


@sampler
def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Numbers of the F distribution: the ratio of two chi-square numbers, each divided by its
    degrees.

    Args:
        key: a key.
        dfnum: degrees of freedom of the numerator.
        dfden: degrees of freedom of the denominator.
        shape: shape of the sample; that of the parameters by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or parameters that do not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.f(random.key(0), 1, 2).shape
        ()
    """
    one, _ = single("f", key)
    dtype = float_dtype("f", dtype)
    above, below = param("f", "dfnum", dfnum, dtype), param("f", "dfden", dfden, dtype)
    shape = sample_shape("f", shape, above.shape, below.shape)
    first, second = split(one)
    numerator = _chisquares(second, above, shape) / spread(above, shape)
    return numerator / (_chisquares(first, below, shape) / spread(below, shape))


@sampler
def t(
    key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Numbers of Student's t distribution.

    z·√(h/g) for z standard normal, h = df/2, and g a gamma number of h.

    Args:
        key: a key.
        df: degrees of freedom.
        shape: shape of the sample; that of `df` by default.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `df` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.t(random.key(0), 3.0).shape
        ()
    """
    one, _ = single("t", key)
    dtype = float_dtype("t", dtype)
    df = param("t", "df", df, dtype)
    shape = sample_shape("t", shape, df.shape)
    first, second = split(one)
    half = df / 2
    return normals(first, shape, dtype) * jnp.sqrt(
        spread(half, shape) / _gammas(second, half, shape)
    )


@sampler
def generalized_normal(
    key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Numbers with density proportional to exp(-|x|^p).

    A gamma number of 1/p to the power 1/p, with a random sign.

    Args:
        key: a key.
        p: the power.
        shape: shape of the sample.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, or `p` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.generalized_normal(random.key(0), 1.5, (3,)).shape
        (3,)
    """
    one, _ = single("generalized_normal", key)
    dtype = float_dtype("generalized_normal", dtype)
    inverse = param("generalized_normal", "p", 1 / array_of("generalized_normal", "p", p), dtype)
    return _generalized_normals(
        one, inverse, sample_shape("generalized_normal", shape_tuple(shape), inverse.shape), dtype
    )


def _generalized_normals(key: Any, inverse: Array, shape: Shape, dtype: np.dtype) -> Array:
    first, second = split(key)
    g = _gammas(first, inverse, shape)
    return signs(second, shape, dtype) * jnp.power(g, spread(inverse, shape))


@sampler
def ball(
    key: Any,
    d: int,
    p: Any = 2,
    shape: Any = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Points uniform in the unit ball of the p-norm in `d` dimensions.

    x/(‖x‖ᵖ + e)^(1/p) for x of the generalized normal distribution and e exponential
    (Barthe, Guédon, Mendelson and Naor, 2005).

    Args:
        key: a key.
        d: the dimension.
        p: the norm.
        shape: shape of the sample, without the axis of length `d` that follows it.
        dtype: a floating type; `float32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        TypeError: `d` is not an integer.
        ValueError: the type is not floating.

    Example:
        >>> from namoo import random
        >>> random.ball(random.key(0), 3, shape=(4,)).shape
        (4, 3)
    """
    one, _ = single("ball", key)
    dtype = float_dtype("ball", dtype)
    d = operator.index(d)
    shape = shape_tuple(shape)
    first, second = split(one)
    p = array_of("ball", "p", p)
    inverse = (1 / p).astype(dtype)
    x = _generalized_normals(first, inverse, (*shape, d), dtype)
    total = jnp.sum(jnp.power(jnp.abs(x), p.astype(dtype)), axis=-1)
    return x / jnp.power(total + exponentials(second, shape, dtype), inverse)[..., None]
