"""Random vectors and matrices."""

from __future__ import annotations

import operator
from typing import Any

import namoo.numpy as jnp
from namoo._base.source_context import at_user_line
from namoo.core.array import Array
from namoo.numpy import linalg
from namoo.random.arguments import float_dtype, param, sample_shape, sampler, shape_tuple
from namoo.random.continuous import normal, normals
from namoo.random.keys import single

_METHODS = ("svd", "eigh", "cholesky")


@sampler
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Normal vectors with a given mean and covariance.

    mean + F·z for z standard normal, where F·Fᵀ is the covariance.

    Args:
        key: a key.
        mean: the means, along the last axis.
        cov: the covariances, along the last two axes.
        shape: shape of the sample, without the last axis; that of the parameters by default.
        dtype: a floating type; `float32` by default.
        method: how F is found: 'cholesky', or 'eigh' or 'svd' for singular covariances.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        ValueError: the type is not floating, the method is unknown, or shapes that do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> from namoo import random
        >>> random.multivariate_normal(random.key(0), jnp.ones(2), jnp.eye(2)).round(3)
        Array([2.623, 3.025], dtype=float32)
    """
    one, _ = single("multivariate_normal", key)
    dtype = float_dtype("multivariate_normal", dtype)
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}; got {method!r}")
    mean = param("multivariate_normal", "mean", mean, dtype)
    cov = param("multivariate_normal", "cov", cov, dtype)
    if mean.ndim < 1:
        raise ValueError(f"multivariate_normal requires mean.ndim >= 1, got {mean.ndim}")
    if cov.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got {cov.ndim}")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape "
            f"== {cov.shape}." + at_user_line()
        )
    shape = sample_shape("multivariate_normal", shape, mean.shape[:-1], cov.shape[:-2])
    if method == "svd":
        u, s, _ = linalg.svd(cov)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = linalg.eigh(cov)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = linalg.cholesky(cov)
    z = normals(one, (*shape, n), dtype)
    return mean + jnp.matmul(factor, z[..., None])[..., 0]


@sampler
def orthogonal(
    key: Any,
    n: int,
    shape: Any = (),
    dtype: Any = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Matrices uniform among those with orthonormal columns or rows (by the Haar measure).

    Q of the QR decomposition of a normal matrix, with the signs of R's diagonal.

    Args:
        key: a key.
        n: number of rows.
        shape: shape of the sample, without its last two axes.
        dtype: a floating or complex type; `float32` by default.
        m: number of columns; `n` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        TypeError: `n` or `m` is not an integer.
        ValueError: another type.

    Example:
        >>> import namoo.numpy as jnp
        >>> from namoo import random
        >>> q = random.orthogonal(random.key(0), 3)
        >>> jnp.abs(q.T @ q - jnp.eye(3)).max() < 1e-6
        Array(True, dtype=bool)
    """
    one, _ = single("orthogonal", key)
    rows = operator.index(n)
    columns = rows if m is None else operator.index(m)
    tall = (max(rows, columns), min(rows, columns))
    q, r = linalg.qr(normal(one, (*shape_tuple(shape), *tall), dtype))
    out = q * jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return jnp.swapaxes(out, -1, -2) if rows < columns else out
