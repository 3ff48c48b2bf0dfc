"""Gamma numbers, by rejection.

Each element has its own key and draws until it is accepted, so that it does not depend on the
others.  Marsaglia and Tsang (2000), "A simple method for generating gamma variables".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.avals import aval_of
from namoo.core.primitive import Primitive, Zero, is_zero
from namoo.primitives.barriers import optimization_barrier_p
from namoo.primitives.bits import (
    bitcast_convert_type_p,
    bitwise_and,
    bitwise_or,
    shift_right_logical,
)
from namoo.primitives.elementwise import (
    add,
    div,
    eq,
    exp,
    full_like,
    ge,
    le,
    log,
    log1p,
    max,
    mul,
    neg,
    pow,
    select,
    sqrt,
    sub,
)
from namoo.primitives.random.generators import Generator, float_form, unit_floats
from namoo.primitives.random.hashing import HASHED, Streamed
from namoo.primitives.random.prng import check_keys, drawn_by, use
from namoo.primitives.shape import (
    broadcast,
    broadcast_to,
    full,
    moveaxis,
    reshape,
    shape_of,
    squeeze,
    zeros,
)
from namoo.primitives.slicing import slice_in_dim
from namoo.primitives.special.functions import erf_inv, erf_inv_p
from namoo.primitives.special.incomplete import random_gamma_grad


class RandomGamma(Primitive):
    """Gamma numbers of given shape parameters; the key array has their first axes."""

    name = "random_gamma"
    sets_weak = True

    def evaluate(self, keys, alpha, *, log_space):
        _, generator, words = use(self.name, keys)
        split = generator.batch_split if keys.ndim else generator.split
        own = split(words, alpha.size // (keys.size or 1)).reshape(alpha.size, generator.key_words)
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
        least = full(sample.shape, dtype.type(dtypes.finfo(dtype).tiny))
        sample = select(eq(sample, dtype.type(0)), least, sample)
        return out, mul(tangent, div(random_gamma_grad(alpha, sample), sample))

    def batch(self, xs, dims, *, log_space):
        size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
        keys, alpha = (
            broadcast(x, (size,)) if d is None else moveaxis(x, d, 0)
            for x, d in zip(xs, dims, strict=True)
        )
        return self.bind(keys, alpha, log_space=log_space), 0

    def native(self, emit, keys, alpha, *, log_space):
        return emit.gamma(keys, alpha, drawn_by(emit, keys), log_space)

    def stablehlo(self, hlo, keys, alpha, *, log_space):
        generator = HASHED[hlo.inputs[0].dtype.impl]
        if isinstance(generator, Streamed) or alpha.dtype.itemsize < 4 or not alpha.size:
            raise hlo.on_the_host()
        size = math.prod(alpha.shape[keys.ndim :])
        return hlo.reshape(
            _draw_in_xla(hlo, generator, keys, size, hlo.reshape(alpha, (alpha.size,)), log_space),
            alpha.shape,
        )


def _uniform(generator: Generator, keys: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return unit_floats(generator.bits(keys, 1, float_form(dtype)[0])[:, 0], dtype)


def _normal(generator: Generator, keys: np.ndarray, dtype: np.dtype) -> np.ndarray:
    one, number = dtype.type(1), dtype.type
    above = number(np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype)))
    u = np.maximum(_uniform(generator, keys, dtype) * (one - above) + above, above)
    return erf_inv_p.evaluate(u) * number(np.sqrt(2))


def _fused(x: np.ndarray, y: np.ndarray, z: Any) -> np.ndarray:
    """x·y + z with one rounding, as in XLA."""
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
    # The elements that are not accepted yet; NaN parameters are skipped.
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


# The same sampler as a program: every iteration computes all elements, and accepted ones keep
# their values.


def _draw_in_xla(
    hlo: Any, generator: Any, keys: Any, size: int, alpha: Any, log_space: bool
) -> Any:
    def begin(alpha, *key):
        own = [reshape(w, shape_of(alpha)) for w in generator.split([*key], size, None)]
        first, boost = _new_keys(generator, own, 2)
        d = sub(select(_is_large(alpha), alpha, add(alpha, _one(alpha))), full_like(alpha, 1 / 3))
        c = div(full_like(alpha, 1 / 3), sqrt(d))
        # NaN parameters are skipped.
        active = ge(full_like(d, np.log(2)), mul(d, full_like(d, 0)))
        return [d, c, broadcast_to(_one(d), shape_of(d)), active, *first, *boost]

    d, c, cube, active, *words = hlo.apply(begin, alpha, *hlo.words(keys))
    key, boost = words[: len(words) // 2], words[len(words) // 2 :]

    def any_active(active, *_):
        return hlo.reduce("or", active, False, [0])

    def normal(c, active, x, v, *key):
        rest, drawn = _new_keys(generator, key, 2)
        new = _normal_program(generator, drawn, c.dtype)
        x, v = select(active, new, x), select(active, add(mul(new, c), _one(c)), v)
        return [bitwise_and(active, le(v, full_like(v, 0))), x, v, *_kept(active, rest, key)]

    def start(active, cube, *key):
        return [w for part in _new_keys(generator, key, 3) for w in part]

    def accept(d, active, cube, x, v, *keys):
        n = len(keys) // 3
        x, v = mul(x, x), mul(mul(v, v), v)
        u = _uniform_program(generator, keys[2 * n :], d.dtype)
        one = _one(d)
        surely = ge(u, sub(one, mul(full_like(d, 0.0331), mul(x, x))))
        bound = add(mul(x, full_like(d, 0.5)), mul(d, add(sub(one, v), log(v))))
        rejected = bitwise_and(surely, ge(log(u), bound))
        cube = select(active, v, cube)
        return [bitwise_and(active, rejected), cube, *_kept(active, keys[n : 2 * n], keys[:n])]

    def step(active, cube, *key):
        words = hlo.apply(start, active, cube, *key)
        n = len(key)
        nothing = hlo.constant(0, c.dtype, c.shape)
        _, x, v, *_ = hlo.while_loop(
            [active, nothing, nothing, *words[n : 2 * n]],
            any_active,
            lambda *state: hlo.apply(normal, c, *state),
        )
        fresh = [*key, *words[:n], *words[2 * n :]]
        return hlo.apply(accept, d, active, cube, x, v, *fresh)

    _, cube, *_ = hlo.while_loop([active, cube, *key], any_active, step)

    def end(alpha, d, cube, *boost):
        u, one = _uniform_program(generator, boost, alpha.dtype), _one(alpha)
        if not log_space:
            factor = pow(sub(one, u), div(one, alpha))
            ones = broadcast_to(one, shape_of(alpha))
            return mul(mul(d, cube), select(_is_large(alpha), ones, factor))
        logarithm, zero = log1p(neg(u)), zeros(aval_of(alpha))
        none = bitwise_or(_is_large(alpha), eq(logarithm, zero))
        factor = select(none, zero, mul(logarithm, div(one, alpha)))
        return add(add(log(d), log(cube)), factor)

    return hlo.apply(end, alpha, d, cube, *boost)


def _one(x: Any) -> Any:
    return full_like(x, 1)


def _is_large(alpha: Any) -> Any:
    return ge(alpha, _one(alpha))


def _kept(active: Any, new: Any, old: Any) -> list[Any]:
    return [select(active, a, b) for a, b in zip(new, old, strict=True)]


def _new_keys(generator: Any, key: Any, n: int) -> list[list[Any]]:
    """n new keys of each key, as lists of words."""
    # Hashed once, and not again in each of the loops that take a part of the words.
    words = optimization_barrier_p.bind(*generator.split([*key], n, None))
    return [[squeeze(slice_in_dim(w, i, i + 1, axis=1), (1,)) for w in words] for i in range(n)]


def _uniform_program(generator: Any, key: Any, dtype: Any) -> Any:
    width, _, shift, one = float_form(dtype)
    (words,) = optimization_barrier_p.bind(generator.bits([*key], 1, width, None))
    words = squeeze(words, (1,))
    words = bitwise_or(shift_right_logical(words, shift), one)
    floats = bitcast_convert_type_p.bind(words, new_dtype=dtype)
    return sub(floats, full_like(floats, 1))


def _normal_program(generator: Any, key: Any, dtype: Any) -> Any:
    above = float(np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype)))
    u = _uniform_program(generator, key, dtype)
    u = add(mul(u, full_like(u, dtype.type(1) - dtype.type(above))), full_like(u, above))
    return mul(erf_inv(max(u, full_like(u, above))), full_like(u, np.sqrt(2)))


random_gamma_p = RandomGamma()


def random_gamma(keys: Any, alpha: Any, log_space: bool) -> Any:
    """Gamma numbers, or their logarithms; `alpha` has the axes of `keys` first."""
    return random_gamma_p.bind(keys, alpha, log_space=log_space)
