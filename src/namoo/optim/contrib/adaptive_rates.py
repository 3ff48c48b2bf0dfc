"""More ways to divide by past gradients: ACProp, AdEMAMix, ADOPT, COCOB, MADGRAD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    MaskOrFn,
    Params,
    ScalarOrSchedule,
    Updates,
    map_updates,
    require_params,
)
from namoo.optim.numerics import safe_increment
from namoo.optim.transforms.adam import ScaleByAdamState, ScaleByBeliefState
from namoo.optim.transforms.adding import add_decayed_weights
from namoo.optim.transforms.combining import chain
from namoo.optim.transforms.scaling import scale_by_learning_rate
from namoo.optim.tree_utils.casting import canonical

__all__ = [
    "acprop", "ademamix", "adopt", "cocob", "COCOBState", "madgrad", "MadgradState",
    "scale_by_acprop", "scale_by_ademamix", "scale_by_adopt", "scale_by_cocob",
    "scale_by_madgrad", "scale_by_simplified_ademamix", "ScaleByAdemamixState",
    "ScaleBySimplifiedAdEMAMixState", "simplified_ademamix",
]  # fmt: skip


def _zero() -> Any:
    return jnp.zeros([], jnp.int32)


def _at(value: ScalarOrSchedule, count: Any) -> Any:
    return value(count) if callable(value) else value


def scale_by_acprop(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-16, eps_root: Any = 1e-16
) -> GradientTransformation:
    """Gradients over the surprises up to the step before, as in ACProp.

        u = g / (√v̂ + ε)   (v̂ = 1 at first),   v ← b2·v + (1 - b2)·(g - m)² + ε_root

    Example:
        >>> tx = scale_by_acprop()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 1., -2.], dtype=float32)
    """

    def init(params):
        return ScaleByBeliefState(_zero(), otu.tree_zeros_like(params), otu.tree_zeros_like(params))

    def update(updates, state, params=None):
        del params
        count = safe_increment(state.count)
        first = state.count == 0
        mu = otu.tree_update_moment(updates, state.mu, b1, 1)
        surprise = map_updates(lambda g, m: g - m, updates, state.mu)
        nu = otu.tree_update_moment_per_elem_norm(surprise, state.nu, b2, 2)
        before = otu.tree_bias_correction(state.nu, b2, jnp.where(first, count, state.count))
        new = map_updates(
            lambda g, v: g / (jnp.sqrt(jnp.where(first, 1, v)) + eps), updates, before
        )
        nu = tree.map(lambda v: v + eps_root, nu)
        return new, ScaleByBeliefState(count, mu, nu)

    return GradientTransformation(init, update)


def acprop(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-16,
    eps_root: Any = 1e-16,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """ACProp: AdaBelief with denominators from the step before; see `scale_by_acprop`.

    Example:
        >>> opt = acprop(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.1, -0.2], dtype=float32)
    """
    return chain(
        scale_by_acprop(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


class ScaleByAdemamixState(NamedTuple):
    """Two averages of gradients, a fast and a slow one, and that of their squares."""

    count: Any
    count_m2: Any
    m1: Updates
    m2: Updates
    nu: Updates


def scale_by_ademamix(
    b1: Any = 0.9,
    b2: Any = 0.999,
    b3: ScalarOrSchedule = 0.9999,
    alpha: ScalarOrSchedule = 6.0,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
) -> GradientTransformation:
    """Adam with a second, slow average of gradients.

        m₁ ← b1·m₁ + (1 - b1)·g,   m₂ ← b3·m₂ + (1 - b3)·g,   v ← b2·v + (1 - b2)·g²
        u = (m̂₁ + α·m₂) / (√(v̂ + ε_root) + ε)

    Args:
        b1: decay rate of the fast average.
        b2: decay rate of the average of squares.
        b3: decay rate of the slow average, a number or a schedule.
        alpha: the weight of the slow average, a number or a schedule.
        eps: added to the root.
        eps_root: added under the root.
        mu_dtype: the type of the averages.

    Example:
        >>> tx = scale_by_ademamix()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 1.0005933, -1.0005933], dtype=float32)
    """
    mu_dtype = canonical(mu_dtype)

    def init(params):
        averages = [otu.tree_zeros_like(params, mu_dtype) for _ in range(3)]
        return ScaleByAdemamixState(_zero(), _zero(), *averages)

    def update(updates, state, params=None):
        del params
        slow, weight = _at(b3, state.count_m2), _at(alpha, state.count_m2)
        count = safe_increment(state.count)
        m1 = otu.tree_update_moment(updates, state.m1, b1, 1)
        m2 = otu.tree_update_moment(updates, state.m2, slow, 1)
        nu = otu.tree_update_moment_per_elem_norm(updates, state.nu, b2, 2)
        new = map_updates(
            lambda m1, m2, v: (m1 + weight * m2) / (jnp.sqrt(v + eps_root) + eps),
            otu.tree_bias_correction(m1, b1, count),
            m2,
            otu.tree_bias_correction(nu, b2, count),
        )
        return new, ScaleByAdemamixState(count, safe_increment(state.count_m2), m1, m2, nu)

    return GradientTransformation(init, update)


def ademamix(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    b3: ScalarOrSchedule = 0.9999,
    alpha: ScalarOrSchedule = 5.0,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """AdEMAMix: Adam with a second, slow average of gradients; see `scale_by_ademamix`.

    Example:
        >>> opt = ademamix(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.10004933, -0.10004933], dtype=float32)
    """
    return chain(
        scale_by_ademamix(b1, b2, b3, alpha, eps, eps_root, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


class ScaleBySimplifiedAdEMAMixState(NamedTuple):
    """The number of steps, the sum of gradients, and the average of their squares."""

    t: Any
    m: Updates
    n: Updates


def scale_by_simplified_ademamix(
    b1: Any = 0.99,
    b2: Any = 0.95,
    alpha: ScalarOrSchedule = 0.0,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
) -> GradientTransformation:
    """AdEMAMix with one average.

        m ← b1·m + g,   n ← b2·n + (1 - b2)·g²,   u = (m + α·g) / (√(n̂ + ε_root) + ε)

    Example:
        >>> tx = scale_by_simplified_ademamix()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 1., -1.], dtype=float32)
    """

    def init(params):
        return ScaleBySimplifiedAdEMAMixState(
            _zero(), otu.tree_zeros_like(params), otu.tree_zeros_like(params)
        )

    def update(updates, state, params=None):
        del params
        weight = _at(alpha, state.t)
        t = safe_increment(state.t)
        m = map_updates(lambda g, m: g + b1 * m, updates, state.m)
        n = map_updates(lambda g, n: g * g + b2 * (n - g * g), updates, state.n)
        new = map_updates(
            lambda g, m, n: (m + weight * g) / (jnp.sqrt(n + eps_root) + eps),
            updates,
            m,
            otu.tree_bias_correction(n, b2, t),
        )
        return new, ScaleBySimplifiedAdEMAMixState(t, m, n)

    return GradientTransformation(init, update)


def simplified_ademamix(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.99,
    b2: Any = 0.95,
    alpha: ScalarOrSchedule = 0.0,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """AdEMAMix with one average; see `scale_by_simplified_ademamix`.

    Example:
        >>> opt = simplified_ademamix(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.1, -0.1], dtype=float32)
    """
    return chain(
        scale_by_simplified_ademamix(b1, b2, alpha, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def _fourth_root(step):
    return step**0.25


def scale_by_adopt(
    b1: Any = 0.9,
    b2: Any = 0.9999,
    eps: Any = 1e-6,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
    use_clipping: bool = True,
    clip_value_fn: Callable[[Any], Any] = _fourth_root,
) -> GradientTransformation:
    """Adam with denominators from the step before, as in ADOPT; the first updates are 0.

        d = clip(g / max(√v, ε), ±c(t)),   m ← b1·m + (1 - b1)·d,   u = m,   v ← b2·v + (1 - b2)·g²

    Args:
        b1: decay rate of the average of updates.
        b2: decay rate of the average of squares.
        eps: the smallest denominator.
        mu_dtype: the type of the average of updates.
        nesterov: use Nesterov momentum.
        use_clipping: False leaves d unchanged.
        clip_value_fn: the bound c, a function of the step.

    Example:
        >>> tx = scale_by_adopt()
        >>> _, state = tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))
        >>> tx.update(jnp.array([1.0, -2.0]), state)[0]
        Array([ 0.10000002, -0.10000002], dtype=float32)
    """
    mu_dtype = canonical(mu_dtype)

    def init(params):
        return ScaleByAdamState(
            _zero(), otu.tree_zeros_like(params, mu_dtype), otu.tree_zeros_like(params)
        )

    def update(updates, state, params=None):
        del params
        started = state.count > 0
        keep_mu, keep_nu = jnp.where(started, b1, 1), jnp.where(started, b2, 0)

        def divide(g, v):
            d = g / jnp.maximum(jnp.sqrt(v), eps)
            if not use_clipping:
                return d
            bound = clip_value_fn(state.count)
            return jnp.clip(d, -bound, bound)

        steps = map_updates(divide, updates, state.nu)
        nu = otu.tree_update_moment_per_elem_norm(updates, state.nu, keep_nu, 2)
        mu = otu.tree_update_moment(steps, state.mu, keep_mu, 1)
        new = otu.tree_update_moment(steps, mu, keep_mu, 1) if nesterov else mu
        count = safe_increment(state.count)
        return new, ScaleByAdamState(count, otu.tree_cast(mu, mu_dtype), nu)

    return GradientTransformation(init, update)


def adopt(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.9999,
    eps: Any = 1e-6,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
    use_clipping: bool = True,
    clip_value_fn: Callable[[Any], Any] = _fourth_root,
) -> GradientTransformationExtraArgs:
    """ADOPT: Adam with denominators from the step before; see `scale_by_adopt`.

    Example:
        >>> opt = adopt(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> _, state = opt.update(params, opt.init(params), params)
        >>> opt.update(params, state, params)[0]
        Array([-0.01, -0.01], dtype=float32)
    """
    return chain(
        scale_by_adopt(
            b1,
            b2,
            eps,
            mu_dtype,
            nesterov=nesterov,
            use_clipping=use_clipping,
            clip_value_fn=clip_value_fn,
        ),
        scale_by_learning_rate(learning_rate),
    )


class COCOBState(NamedTuple):
    """The first parameters, and for each element its scale and what betting on it has won."""

    init_particles: Updates
    cumulative_gradients: Updates
    scale: Updates
    subgradients: Updates
    reward: Updates


def scale_by_cocob(alpha: Any = 100.0, eps: Any = 1e-8) -> GradientTransformation:
    """Steps without a learning rate, as bets on the sign of the gradients (COCOB).

        L ← max(L, |g|),  G ← G + |g|,  R ← max(R - g·(p - p₀), 0),  C ← C - g
        p ← p₀ + C / (L·max(G + L, α·L))·(L + R)

    Args:
        alpha: bounds the first steps.
        eps: the first scale L.

    Example:
        >>> tx = scale_by_cocob()
        >>> params = jnp.array([1.0, 2.0])
        >>> tx.update(params, tx.init(params), params)[0]
        Array([-0.00999999, -0.00999999], dtype=float32)
    """

    def init(params):
        zeros = otu.tree_zeros_like(params)
        return COCOBState(params, zeros, otu.tree_full_like(params, eps), zeros, zeros)

    def update(updates, state, params=None):
        require_params("scale_by_cocob", params)
        largest = map_updates(lambda g, x: jnp.maximum(x, jnp.abs(g)), updates, state.scale)
        total = map_updates(lambda g, x: x + jnp.abs(g), updates, state.subgradients)
        reward = map_updates(
            lambda g, x, p, p0: jnp.maximum(x - g * (p - p0), 0),
            updates,
            state.reward,
            params,
            state.init_particles,
        )
        drift = map_updates(lambda g, x: x - g, updates, state.cumulative_gradients)
        new = tree.map(
            lambda p, p0, c, s, t, r: -p + (p0 + c / (s * jnp.maximum(t + s, alpha * s)) * (s + r)),
            params,
            state.init_particles,
            drift,
            largest,
            total,
            reward,
        )
        return new, COCOBState(state.init_particles, drift, largest, total, reward)

    return GradientTransformation(init, update)


def cocob(
    learning_rate: ScalarOrSchedule = 1.0,
    alpha: Any = 100.0,
    eps: Any = 1e-8,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """COCOB: steps as bets on the sign of the gradients; see `scale_by_cocob`.

    Example:
        >>> opt = cocob()
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.00999999, -0.00999999], dtype=float32)
    """
    return chain(
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate, flip_sign=False),
        scale_by_cocob(alpha, eps),
    )


class MadgradState(NamedTuple):
    """The weighted sums of gradients and of their squares, and the first parameters."""

    count: Any
    grad_sum_sq: Updates
    s: Updates
    x0: Params


def scale_by_madgrad(
    learning_rate: ScalarOrSchedule, momentum: Any = 0.9, eps: Any = 1e-6
) -> GradientTransformation:
    """Dual averaging over cube roots, as in MADGRAD. The updates are downhill already.

        λ = (α + ε)·√(t + 1),   v ← v + λ·g²,   s ← s + λ·g
        z = p₀ - s / (∛v + ε),   p ← momentum·p + (1 - momentum)·z

    Example:
        >>> tx = scale_by_madgrad(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> tx.update(params, tx.init(params), params)[0]
        Array([-0.02154446, -0.02714443], dtype=float32)
    """

    def init(params):
        zeros = otu.tree_zeros_like(params)
        return MadgradState(_zero(), zeros, zeros, params)

    def update(updates, state, params=None):
        require_params("scale_by_madgrad", params)
        weight = (_at(learning_rate, state.count) + eps) * jnp.sqrt(state.count + 1)
        squares = map_updates(
            lambda g, v: v + (weight * g**2).astype(g.dtype), updates, state.grad_sum_sq
        )
        s = map_updates(lambda g, s: s + (weight * g).astype(g.dtype), updates, state.s)

        def move(p, p0, s, v):
            z = p0 - s / (jnp.cbrt(v) + eps)
            return (1 - momentum) * z + momentum * p - p

        new = tree.map(move, params, state.x0, s, squares)
        return new, MadgradState(safe_increment(state.count), squares, s, state.x0)

    return GradientTransformation(init, update)


def madgrad(
    learning_rate: ScalarOrSchedule,
    momentum: Any = 0.9,
    weight_decay: ScalarOrSchedule = 0.0,
    eps: Any = 1e-6,
) -> GradientTransformationExtraArgs:
    """MADGRAD: dual averaging over cube roots; see `scale_by_madgrad`.

    Example:
        >>> opt = madgrad(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.02154446, -0.02714443], dtype=float32)
    """
    return chain(add_decayed_weights(weight_decay), scale_by_madgrad(learning_rate, momentum, eps))
