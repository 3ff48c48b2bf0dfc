"""Updates divided by the size of past gradients, element by element or in factors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from namoo import lax, tree
from namoo import numpy as jnp
from namoo.optim import tree_utils as otu
from namoo.optim.base import GradientTransformation, Updates, map_updates, require_params
from namoo.optim.numerics import abs_sq, safe_increment

__all__ = [
    "FactoredState", "scale_by_adadelta", "scale_by_factored_rms", "scale_by_rms", "scale_by_rss",
    "scale_by_sm3", "scale_by_stddev", "ScaleByAdaDeltaState", "ScaleByRmsState",
    "ScaleByRmsWithCountState", "ScaleByRssState", "ScaleByRStdDevState",
    "ScaleByRStdDevWithCountState", "ScaleBySM3State",
]  # fmt: skip


class ScaleByRssState(NamedTuple):
    """The sum of squared gradients."""

    sum_of_squares: Updates


def _inverse_root(total, eps):
    return jnp.where(total > 0, lax.rsqrt(total + eps), 0.0)


def scale_by_rss(initial_accumulator_value: Any = 0.1, eps: Any = 1e-7) -> GradientTransformation:
    """Updates over the root of the sum of squared gradients, as in Adagrad.

        s ← s + g²,   u = g / √(s + ε)

    Args:
        initial_accumulator_value: the initial value of the sum.
        eps: added under the root.

    Example:
        >>> tx = scale_by_rss()
        >>> tx.update(jnp.array([1.0, 2.0]), tx.init(jnp.zeros(2)))[0]
        Array([0.95346254, 0.9877296 ], dtype=float32)
    """

    def init(params):
        return ScaleByRssState(otu.tree_full_like(params, initial_accumulator_value))

    def update(updates, state, params=None):
        del params
        total = map_updates(lambda g, s: abs_sq(g) + s, updates, state.sum_of_squares)
        new = map_updates(lambda g, s: _inverse_root(s, eps) * g, updates, total)
        return new, ScaleByRssState(total)

    return GradientTransformation(init, update)


class ScaleByRmsState(NamedTuple):
    """The average of squared gradients."""

    nu: Updates


class ScaleByRmsWithCountState(NamedTuple):
    """The average of squared gradients, and the number of steps."""

    count: Any
    nu: Updates


def _over_root(g, variance, eps, eps_in_sqrt):
    if eps_in_sqrt:
        return lax.rsqrt(variance + eps) * g
    return 1 / (jnp.sqrt(variance) + eps) * g


def scale_by_rms(
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Updates over the root of the average of squared gradients, as in RMSProp.

        v ← decay·v + (1 - decay)·g²,   u = g / √(v + ε)

    Args:
        decay: decay rate of the average.
        eps: added to the denominator.
        initial_scale: the initial value of the average.
        eps_in_sqrt: add `eps` under the root; False adds it to the root.
        bias_correction: correct for the bias of its start at zero.

    Example:
        >>> tx = scale_by_rms()
        >>> tx.update(jnp.array([1.0, 2.0]), tx.init(jnp.zeros(2)))[0]
        Array([3.1622775, 3.1622777], dtype=float32)
    """

    def init(params):
        nu = otu.tree_full_like(params, initial_scale)
        if bias_correction:
            return ScaleByRmsWithCountState(jnp.zeros([], jnp.int32), nu)
        return ScaleByRmsState(nu)

    def update(updates, state, params=None):
        del params
        nu = nu_hat = otu.tree_update_moment_per_elem_norm(updates, state.nu, decay, 2)
        if bias_correction:
            count = safe_increment(state.count)
            nu_hat = otu.tree_bias_correction(nu, decay, count)
            state = ScaleByRmsWithCountState(count, nu)
        else:
            state = ScaleByRmsState(nu)
        return map_updates(lambda g, v: _over_root(g, v, eps, eps_in_sqrt), updates, nu_hat), state

    return GradientTransformation(init, update)


class ScaleByRStdDevState(NamedTuple):
    """The averages of gradients and of their squares."""

    mu: Updates
    nu: Updates


class ScaleByRStdDevWithCountState(NamedTuple):
    """The averages of gradients and of their squares, and the number of steps."""

    count: Any
    mu: Updates
    nu: Updates


def scale_by_stddev(
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    """Updates over the standard deviation of past gradients, as in centred RMSProp.

        m ← decay·m + (1 - decay)·g,   v ← decay·v + (1 - decay)·g²,   u = g / √(v - m² + ε)

    Args:
        decay: decay rate of the averages.
        eps: added to the denominator.
        initial_scale: the initial value of the average of squares.
        eps_in_sqrt: add `eps` under the root; False adds it to the root.
        bias_correction: correct for the averages' start.

    Example:
        >>> tx = scale_by_stddev()
        >>> tx.update(jnp.array([1.0, 2.0]), tx.init(jnp.zeros(2)))[0]
        Array([3.3333333, 3.3333333], dtype=float32)
    """

    def init(params):
        mu, nu = otu.tree_zeros_like(params), otu.tree_full_like(params, initial_scale)
        if bias_correction:
            return ScaleByRStdDevWithCountState(jnp.zeros([], jnp.int32), mu, nu)
        return ScaleByRStdDevState(mu, nu)

    def update(updates, state, params=None):
        del params
        mu = mu_hat = otu.tree_update_moment(updates, state.mu, decay, 1)
        nu = nu_hat = otu.tree_update_moment_per_elem_norm(updates, state.nu, decay, 2)
        if bias_correction:
            count = safe_increment(state.count)
            mu_hat = otu.tree_bias_correction(mu, decay, count)
            nu_hat = otu.tree_bias_correction(nu, decay, count)
            state = ScaleByRStdDevWithCountState(count, mu, nu)
        else:
            state = ScaleByRStdDevState(mu, nu)
        new = map_updates(
            lambda g, m, v: _over_root(g, v - abs_sq(m), eps, eps_in_sqrt), updates, mu_hat, nu_hat
        )
        return new, state

    return GradientTransformation(init, update)


class ScaleByAdaDeltaState(NamedTuple):
    """The averages of squared gradients and of squared updates."""

    e_g: Updates
    e_x: Updates


def scale_by_adadelta(rho: Any = 0.9, eps: Any = 1e-6) -> GradientTransformation:
    """Updates in the units of the parameters, as in Adadelta.

        v ← ρ·v + (1 - ρ)·g²,   u = √(x + ε) / √(v + ε)·g,   x ← ρ·x + (1 - ρ)·u²

    Args:
        rho: decay rate of the averages.
        eps: added under the roots.

    Example:
        >>> tx = scale_by_adadelta()
        >>> tx.update(jnp.array([1.0, 2.0]), tx.init(jnp.zeros(2)))[0]
        Array([0.00316226, 0.00316227], dtype=float32)
    """

    def init(params):
        return ScaleByAdaDeltaState(otu.tree_zeros_like(params), otu.tree_zeros_like(params))

    def update(updates, state, params=None):
        del params
        e_g = otu.tree_update_moment(updates, state.e_g, rho, 2)
        new = map_updates(
            lambda g, v, x: jnp.sqrt(x + eps) / jnp.sqrt(v + eps) * g, updates, e_g, state.e_x
        )
        e_x = otu.tree_update_moment(new, state.e_x, rho, 2)
        return new, ScaleByAdaDeltaState(e_g, e_x)

    return GradientTransformation(init, update)


class ScaleBySM3State(NamedTuple):
    """For each array one vector for each axis, and the average of updates."""

    mu: Updates
    nu: Updates


def scale_by_sm3(b1: Any = 0.9, b2: Any = 1.0, eps: Any = 1e-8) -> GradientTransformation:
    """Adagrad's sums with little memory: one vector for each axis of an array, as in SM3.

        a = minᵢ(vᵢ) + g²,   vᵢ ← max of a over all other axes,   n ← b1·n + (1 - b1)·g / √(a + ε)

    Args:
        b1: decay rate of the average of updates.
        b2: decay rate of the vectors; with less than 1 the squares are averaged.
        eps: added under the root.

    Example:
        >>> tx = scale_by_sm3()
        >>> tx.update(jnp.array([[1.0, 2.0]]), tx.init(jnp.zeros((1, 2))))[0]
        Array([[0.1, 0.1]], dtype=float32)
    """
    fresh = 1.0 if b2 == 1.0 else 1.0 - b2

    def init(params):
        if any(jnp.iscomplexobj(p) for p in tree.leaves(params)):
            raise ValueError("scale_by_sm3: parameters must be real, got complex ones.")
        mu = tree.map(lambda p: [jnp.zeros(n, p.dtype) for n in p.shape or [()]], params)
        return ScaleBySM3State(mu, otu.tree_zeros_like(params))

    def along(vector, axis, ndim):
        return jnp.expand_dims(vector, [i for i in range(ndim) if i != axis])

    def accumulate(g, vectors):
        bounds = [along(v, i, g.ndim) for i, v in enumerate(vectors)]
        return fresh * g**2 + b2 * functools.reduce(jnp.minimum, bounds)

    def summarise(a):
        return [jnp.max(a, [j for j in range(a.ndim) if j != i]) for i in range(a.ndim or 1)]

    def update(updates, state, params=None):
        del params
        total = map_updates(accumulate, updates, state.mu)
        new = map_updates(lambda g, a: g * _inverse_root(a, eps), updates, total)
        nu = otu.tree_update_moment(new, state.nu, b1, 1)
        return nu, ScaleBySM3State(tree.map(summarise, total), nu)

    return GradientTransformation(init, update)


class FactoredState(NamedTuple):
    """Averages of squared gradients: of rows and columns, or whole where not factored."""

    count: Any
    v_row: Updates
    v_col: Updates
    v: Updates


def _power_decay(step, exponent=0.8):
    return 1.0 - jnp.array(step + 1, jnp.float32) ** (-exponent)


def _factored_axes(shape: tuple[int, ...], factored: bool, least: int) -> tuple[int, int] | None:
    """The axes of the second largest and the largest length, where both are long enough."""
    if not factored or len(shape) < 2:
        return None
    *_, second, largest = np.argsort(shape)
    return None if shape[second] < least else (int(second), int(largest))


def scale_by_factored_rms(
    factored: bool = True,
    decay_rate: Any = 0.8,
    step_offset: Any = 0,
    min_dim_size_to_factor: int = 128,
    epsilon: Any = 1e-30,
    decay_rate_fn: Callable[[Any, Any], Any] = _power_decay,
) -> GradientTransformation:
    """Updates over root mean squares that are kept as rows and columns, as in Adafactor.

        r ← β·r + (1 - β)·mean_cols(g² + ε),   c ← β·c + (1 - β)·mean_rows(g² + ε)
        u = g / √(r / mean(r)) / √c,           β = 1 - (t + 1)^(-decay_rate)

    Args:
        factored: False keeps all averages whole.
        decay_rate: the exponent of the decay.
        step_offset: the step to count from.
        min_dim_size_to_factor: arrays whose second longest axis is shorter are kept whole.
        epsilon: added to the squares.
        decay_rate_fn: the decay β, a function of the step and of `decay_rate`.

    Example:
        >>> tx = scale_by_factored_rms(min_dim_size_to_factor=2)
        >>> params = jnp.array([[1.0, 2.0], [3.0, 4.0]])
        >>> tx.update(params, tx.init(params), params)[0]
        Array([[0.77459663, 1.095445  ],
               [1.0392305 , 0.97979593]], dtype=float32)
    """

    def axes_of(p):
        return _factored_axes(p.shape, factored, min_dim_size_to_factor)

    def without(p, axis):
        return jnp.zeros([n for i, n in enumerate(p.shape) if i != axis], p.dtype)

    def init(params):
        def unused(p):
            return jnp.zeros((1,), p.dtype)

        def row(p):
            return unused(p) if (axes := axes_of(p)) is None else without(p, axes[1])

        def col(p):
            return unused(p) if (axes := axes_of(p)) is None else without(p, axes[0])

        def whole(p):
            return jnp.zeros_like(p) if axes_of(p) is None else unused(p)

        return FactoredState(
            jnp.zeros([], jnp.int32),
            tree.map(row, params),
            tree.map(col, params),
            tree.map(whole, params),
        )

    def update(updates, state, params=None):
        require_params("scale_by_factored_rms", params)
        decay = decay_rate_fn(state.count - step_offset, decay_rate)

        def average(old, new, p):
            return (decay * old + (1.0 - decay) * new).astype(p.dtype)

        def row(g, v, p):
            if (axes := axes_of(p)) is None:
                return v
            return average(v, jnp.mean(abs_sq(g) + epsilon, axis=axes[1]), p)

        def col(g, v, p):
            if (axes := axes_of(p)) is None:
                return v
            return average(v, jnp.mean(abs_sq(g) + epsilon, axis=axes[0]), p)

        def whole(g, v, p):
            return average(v, abs_sq(g) + epsilon, p) if axes_of(p) is None else v

        def rescale(g, r, c, v, p):
            if (axes := axes_of(p)) is None:
                return g * v**-0.5
            second, largest = axes
            kept = second - 1 if second > largest else second
            r_factor = (r / jnp.mean(r, axis=kept, keepdims=True)) ** -0.5
            return g * jnp.expand_dims(r_factor, largest) * jnp.expand_dims(c**-0.5, second)

        v_row = map_updates(row, updates, state.v_row, params)
        v_col = map_updates(col, updates, state.v_col, params)
        v = map_updates(whole, updates, state.v, params)
        new = map_updates(rescale, updates, v_row, v_col, v, params)
        return new, FactoredState(safe_increment(state.count), v_row, v_col, v)

    return GradientTransformation(init, update)
