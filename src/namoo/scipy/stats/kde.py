"""Densities estimated from samples."""

from __future__ import annotations

import math
from typing import Any

from namoo import numpy as jnp
from namoo import random, tree_util
from namoo._base import dtypes
from namoo._base.source_context import at_user_line, entry_class
from namoo.core.array import Array
from namoo.lax.linalg import cholesky, triangular_solve
from namoo.nn.normalize import logsumexp
from namoo.numpy import linalg
from namoo.numpy.promote import array_of, promote_types
from namoo.numpy.same_type import is_complex
from namoo.scipy.special.normal import ndtr


@tree_util.register_pytree_node_class
@entry_class
class gaussian_kde:
    """A density estimated from samples: the mean of normal densities around each of them.

        f(x) = Σ wᵢ · φ(x - xᵢ; h² Σ), with Σ the covariance of the samples

    An object is a tree, so it can be made inside a compiled function, returned and passed on.

    Args:
        dataset: the samples: a vector, or a matrix with one sample in each column.
        bw_method: the bandwidth h: 'scott' (the default), 'silverman', a number, or a function of
            the object that returns one.
        weights: a weight for each sample; equal ones by default.

    Raises:
        ValueError: there is one sample only; weights of another shape; an unknown bandwidth.
        NotImplementedError: complex samples.

    Example:
        >>> import namoo.numpy as jnp
        >>> density = gaussian_kde(jnp.array([-1.0, 0.0, 1.0]))
        >>> density(jnp.array([0.0])).round(4)
        Array([0.3182], dtype=float32)
    """

    __slots__ = ("neff", "dataset", "weights", "covariance", "inv_cov")

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None):
        dataset = jnp.atleast_2d(array_of("gaussian_kde", dataset))
        if is_complex(dataset):
            raise NotImplementedError(
                f"gaussian_kde takes real samples, got {dataset.dtype}." + at_user_line()
            )
        if not dataset.size > 1:
            raise ValueError(
                f"gaussian_kde: `dataset` must have several elements, got shape {dataset.shape}."
                + at_user_line()
            )
        d, n = dataset.shape
        if weights is None:
            (dataset,) = _promoted("gaussian_kde", dataset)
            weights = jnp.full(n, 1.0 / n, dtype=dataset.dtype)
        else:
            dataset, weights = _promoted("gaussian_kde", dataset, weights)
            weights = jnp.atleast_1d(weights)
            if weights.shape != (n,):
                raise ValueError(
                    f"gaussian_kde: `weights` must be one-dimensional, one for each of {n} "
                    f"samples; got shape {weights.shape}." + at_user_line()
                )
            weights = weights / jnp.sum(weights)
        neff = 1 / jnp.sum(weights**2)
        self._assign(neff=neff, dataset=dataset, weights=weights, covariance=None, inv_cov=None)
        factor = self._bandwidth(bw_method)
        covariance = jnp.atleast_2d(jnp.cov(dataset, rowvar=True, bias=False, aweights=weights))
        self._assign(covariance=covariance * factor**2, inv_cov=linalg.inv(covariance) / factor**2)

    def _bandwidth(self, method: Any) -> Any:
        if method is None or isinstance(method, str):
            if method in (None, "scott"):
                return self.neff ** (-1.0 / (self.d + 4))
            if method == "silverman":
                return (self.neff * (self.d + 2) / 4.0) ** (-1.0 / (self.d + 4))
        elif callable(method):
            return method(self)
        elif jnp.isscalar(method):
            return method
        raise ValueError(
            "gaussian_kde: `bw_method` should be 'scott', 'silverman', a scalar or a function, got "
            f"{method!r}." + at_user_line()
        )

    def _assign(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"cannot assign to field {name!r}: a gaussian_kde is immutable; make another one."
        )

    def __repr__(self) -> str:
        return f"gaussian_kde({', '.join(f'{k}={getattr(self, k)!r}' for k in self.__slots__)})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays, as leaves of a tree."""
        return tuple(getattr(self, name) for name in self.__slots__), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """The object with other leaves."""
        self = object.__new__(cls)
        self._assign(**dict(zip(cls.__slots__, children, strict=True)))
        return self

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def evaluate(self, points: Any) -> Array:
        """The density at points, one in each column."""
        return jnp.exp(self.logpdf(points))

    def __call__(self, points: Any) -> Array:
        """The density at points, one in each column."""
        return self.evaluate(points)

    def pdf(self, x: Any) -> Array:
        """The density at points, one in each column."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Array:
        """The logarithm of the density at points, one in each column."""
        points = self._columns(array_of("gaussian_kde", x))
        dataset, points, weights, precision = _promoted(
            "gaussian_kde", self.dataset, points, self.weights, self.inv_cov
        )
        white = cholesky(precision)
        gaps = (white.T @ points)[:, None, :] - (white.T @ dataset)[:, :, None]
        log_norm = jnp.sum(jnp.log(jnp.diagonal(white))) - self.d / 2 * math.log(2 * math.pi)
        exponents = log_norm - jnp.sum(gaps * gaps, axis=0) / 2
        return logsumexp(exponents, axis=0, b=weights[:, None])

    def integrate_gaussian(self, mean: Any, cov: Any) -> Array:
        """The integral of the density times a normal density.

        Raises:
            ValueError: mean or covariance have another number of dimensions.
        """
        mean = jnp.atleast_1d(jnp.squeeze(array_of("integrate_gaussian", mean)))
        cov = jnp.atleast_2d(array_of("integrate_gaussian", cov))
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}: its shape is {mean.shape}.")
        if cov.shape != (self.d, self.d):
            raise ValueError(
                f"covariance does not have dimension {self.d}: its shape is {cov.shape}."
            )
        return self._overlap(mean[:, None], jnp.ones(1, self.weights.dtype), cov)

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two estimated densities.

        Raises:
            ValueError: they have different numbers of dimensions.
        """
        if other.d != self.d:
            raise ValueError(
                f"KDEs are not the same dimensionality: {self.d} and {other.d} dimensions."
            )
        return self._overlap(other.dataset, other.weights, other.covariance)

    def _overlap(self, points: Array, weights: Array, covariance: Array) -> Array:
        """Σᵢⱼ wᵢ vⱼ φ(xᵢ - yⱼ) of the sum of both covariances."""
        lower = cholesky(self.covariance + covariance)
        solved = [
            triangular_solve(lower, x, left_side=True, lower=True) for x in (self.dataset, points)
        ]
        gaps = solved[0][:, :, None] - solved[1][:, None, :]
        height = (2 * math.pi) ** (self.d / 2) * jnp.prod(jnp.diagonal(lower))
        return self.weights @ jnp.exp(-jnp.sum(gaps * gaps, axis=0) / 2) @ weights / height

    def integrate_box_1d(self, low: Any, high: Any) -> Array:
        """The probability of an interval.

        Raises:
            ValueError: there are several dimensions, or limits that are not scalars.
        """
        if self.d != 1:
            raise ValueError(f"integrate_box_1d() only handles 1D pdfs; this has {self.d}.")
        if jnp.ndim(low) != 0 or jnp.ndim(high) != 0:
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        sigma = jnp.sqrt(self.covariance[0, 0])
        low, high = ((limit - self.dataset[0]) / sigma for limit in (low, high))
        return jnp.sum(self.weights * (ndtr(high) - ndtr(low)))

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Random samples of the density: an array of shape (d, *shape)."""
        chosen_key, noise_key = random.split(key)
        chosen = random.choice(chosen_key, self.n, shape=shape, p=self.weights)
        noise = random.multivariate_normal(
            noise_key,
            jnp.zeros(self.d, self.covariance.dtype),
            self.covariance,
            shape=shape,
            dtype=self.dataset.dtype,
        )
        return self.dataset[:, chosen] + jnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Array:
        """There is no integral over boxes of several dimensions.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("only 1D box integrations are supported; use `integrate_box_1d`")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not supported: objects are immutable.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "dynamically changing the bandwidth method is not supported; make another "
            "gaussian_kde(dataset, bw_method)"
        )

    def _columns(self, points: Array) -> Array:
        if is_complex(points):
            raise NotImplementedError(
                f"gaussian_kde takes real coordinates, got {points.dtype}." + at_user_line()
            )
        points = jnp.atleast_2d(points)
        d, m = points.shape
        if d == 1 and m == self.d:
            return points.reshape(self.d, 1)
        if d != self.d:
            raise ValueError(
                f"points have dimension {d}, dataset has dimension {self.d}: one point is a column."
                + at_user_line()
            )
        return points


def _promoted(name: str, *args: Any) -> list[Array]:
    return promote_types(name, *args, to=dtypes.to_inexact_dtype)
