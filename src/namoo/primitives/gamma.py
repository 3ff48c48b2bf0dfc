"""Gamma numbers, by rejection.

Each element has a key of its own and draws until it is accepted, so that it does not depend on the
others.  Marsaglia and Tsang (2000), "A simple method for generating gamma variables".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import _dtypes
from namoo.core.primitive import Primitive, Zero, is_zero
from namoo.primitives.arithmetic import div, mul
from namoo.primitives.compare import eq, select
from namoo.primitives.elementwise import exp
from namoo.primitives.generators import Generator, float_form, unit_floats
from namoo.primitives.prng import check_keys, use
from namoo.primitives.shape import broadcast, full, moveaxis, shape_of
from namoo.primitives.special import erf_inv_p, random_gamma_grad


class RandomGamma(Primitive):
    """Gamma numbers of given shape parameters; the key array has their first axes."""

    name = "random_gamma"
    sets_weak = True

    def evaluate(self, keys, alpha, *, log_space):
        _, generator, words = use(self.name, keys)
        split = generator.batch_split if keys.ndim else generator.split
        own = split(words, alpha.size // max(keys.size, 1)).reshape(alpha.size, generator.key_words)
        return _draw(generator, own, alpha.reshape(-1), log_space).reshape(alpha.shape)

    def abstract(self, keys, alpha, *, log_space):
        check_keys(self.name, keys)
        if alpha.shape[: keys.ndim] != keys.shape:
            raise TypeError(
                f"random_gamma got keys of shape {keys.shape} for parameters of {alpha.shape}."
            )
        return alpha.strong()

    def weak_result(self, weak, params):
        return False

    def jvp(self, primals, tangents, *, log_space):
        keys, alpha = primals
        out = self.bind(keys, alpha, log_space=log_space)
        tangent = tangents[1]
        if is_zero(tangent):
            return out, Zero.of(out)
        if not log_space:
            return out, mul(tangent, random_gamma_grad(alpha, out))
        sample = exp(out)
        dtype = sample.dtype
        least = full(sample.shape, dtype.type(_dtypes.finfo(dtype).tiny))
        sample = select(eq(sample, dtype.type(0)), least, sample)
        return out, mul(tangent, div(random_gamma_grad(alpha, sample), sample))

    def batch(self, xs, dims, *, log_space):
        size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        keys, alpha = (
            broadcast(x, (size,)) if d is None else moveaxis(x, d, 0)
            for x, d in zip(xs, dims, strict=True)
        )
        return self.bind(keys, alpha, log_space=log_space), 0


def _uniform(generator: Generator, keys: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return unit_floats(generator.bits(keys, 1, float_form(dtype)[0])[:, 0], dtype)


def _normal(generator: Generator, keys: np.ndarray, dtype: np.dtype) -> np.ndarray:
    one, number = dtype.type(1), dtype.type
    above = number(np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype)))
    u = np.maximum(_uniform(generator, keys, dtype) * (one - above) + above, above)
    return erf_inv_p.evaluate(u) * number(np.sqrt(2))


def _fused(x: np.ndarray, y: np.ndarray, z: Any) -> np.ndarray:
    """x·y + z with one rounding, as XLA's code has it."""
    if x.dtype == np.float32:
        return (x.astype(np.float64) * y + z).astype(np.float32)
    return x * y + z


def _draw(generator: Generator, keys: np.ndarray, alpha: np.ndarray, log_space: bool) -> np.ndarray:
    number = alpha.dtype.type
    one, third = number(1), number(1 / 3)
    # Below 1 the density has a pole: draw for alpha + 1, and multiply by u^(1/alpha).
    large = alpha >= one
    d = np.where(large, alpha, alpha + one) - third
    c = third / np.sqrt(d)
    keys, boost_keys = np.ascontiguousarray(generator.split(keys, 2).swapaxes(0, 1))
    cube = np.ones_like(d)
    # The elements that are not accepted yet; a NaN parameter is not even tried.
    active = np.flatnonzero(np.log(number(2)) >= d * number(0))
    while active.size:
        keys[active], x_keys, u_keys = generator.split(keys[active], 3).swapaxes(0, 1)
        x, v = _positive(generator, x_keys, c[active])
        x, v = x * x, v * v * v
        u = _uniform(generator, u_keys, alpha.dtype)
        cube[active] = v
        rejected = u >= one - number(0.0331) * (x * x)
        rejected &= np.log(u) >= x * number(0.5) + d[active] * (one - v + np.log(v))
        active = active[rejected]
    u = _uniform(generator, boost_keys, alpha.dtype)
    if not log_space:
        return d * cube * np.where(large, one, (one - u) ** (one / alpha))
    logarithm = np.log1p(-u)
    boost = np.where(large | (logarithm == 0), number(0), logarithm * (one / alpha))
    return np.log(d) + np.log(cube) + boost


def _positive(
    generator: Generator, keys: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Normal numbers x for which v = 1 + c·x is positive, and v."""
    keys = np.ascontiguousarray(keys)
    x, v = np.empty_like(c), np.empty_like(c)
    active = np.arange(len(c))
    while active.size:
        keys[active], drawn = generator.split(keys[active], 2).swapaxes(0, 1)
        x[active] = _normal(generator, drawn, c.dtype)
        v[active] = _fused(x[active], c[active], c.dtype.type(1))
        active = active[v[active] <= 0]
    return x, v


random_gamma_p = RandomGamma()


def random_gamma(keys: Any, alpha: Any, log_space: bool) -> Any:
    """Gamma numbers, or their logarithms; `alpha` has the axes of `keys` first."""
    return random_gamma_p.bind(keys, alpha, log_space=log_space)
