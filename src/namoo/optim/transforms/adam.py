"""Adam and its family: averages of the gradients over averages of their squares.

In the formulas m̂ and v̂ are the averages without the bias of their start at zero,
m / (1 - b1ᵗ) and v / (1 - b2ᵗ).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree
from namoo.optim import tree_utils as otu
from namoo.optim.base import GradientTransformation, Updates, map_updates, require_params
from namoo.optim.numerics import abs_sq, safe_increment
from namoo.optim.tree_utils.casting import canonical

__all__ = [
    "scale_by_adam", "scale_by_adamax", "scale_by_adan", "scale_by_amsgrad", "scale_by_belief",
    "scale_by_lion", "scale_by_novograd", "scale_by_radam", "scale_by_yogi", "ScaleByAdamState",
    "ScaleByAdanState", "ScaleByAmsgradState", "ScaleByBeliefState", "ScaleByLionState",
    "ScaleByNovogradState",
]  # fmt: skip


class ScaleByAdamState(NamedTuple):
    """The number of steps, and the averages of gradients and of their squares."""

    count: Any
    mu: Updates
    nu: Updates


def _zero() -> Any:
    return jnp.zeros([], jnp.int32)


def first_moment(updates: Updates, mu: Updates, b1: Any, count: Any, nesterov: bool) -> Updates:
    """m̂, or with Nesterov's look ahead b1·m / (1 - b1ᵗ⁺¹) + (1 - b1)·g / (1 - b1ᵗ)."""
    if not nesterov:
        return otu.tree_bias_correction(mu, b1, count)
    return map_updates(
        lambda g, m: b1 * m + (1 - b1) * g,
        otu.tree_bias_correction(updates, b1, count),
        otu.tree_bias_correction(mu, b1, safe_increment(count)),
    )


def _over_root(mu_hat: Updates, nu_hat: Updates, eps: Any, eps_root: Any) -> Updates:
    return map_updates(lambda m, v: m / (jnp.sqrt(v + eps_root) + eps), mu_hat, nu_hat)


def scale_by_adam(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Averages of gradients over the roots of averages of their squares.

        m ← b1·m + (1 - b1)·g,   v ← b2·v + (1 - b2)·g²,   u = m̂ / (√(v̂ + ε_root) + ε)

    Args:
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of squares.
        eps: added to the root.
        eps_root: added under the root, for derivatives through the optimiser.
        mu_dtype: the type of the average of gradients; that of the parameters by default.
        nesterov: use Nesterov momentum, as in Nadam.

    Example:
        >>> tx = scale_by_adam()
        >>> updates, state = tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))
        >>> updates
        Array([ 0.9999933, -0.9999933], dtype=float32)
        >>> state.mu
        Array([ 0.1, -0.2], dtype=float32)
    """
    mu_dtype = canonical(mu_dtype)

    def init(params):
        return ScaleByAdamState(
            _zero(), otu.tree_zeros_like(params, mu_dtype), otu.tree_zeros_like(params)
        )

    def update(updates, state, params=None):
        del params
        count = safe_increment(state.count)
        mu = otu.tree_update_moment(updates, state.mu, b1, 1)
        nu = otu.tree_update_moment_per_elem_norm(updates, state.nu, b2, 2)
        mu_hat = first_moment(updates, mu, b1, count, nesterov)
        nu_hat = otu.tree_bias_correction(nu, b2, count)
        nu = map_updates(lambda v, old: v.astype(old.dtype), nu, state.nu)
        state = ScaleByAdamState(count, otu.tree_cast(mu, mu_dtype), nu)
        return _over_root(mu_hat, nu_hat, eps, eps_root), state

    return GradientTransformation(init, update)


class ScaleByAmsgradState(NamedTuple):
    """The state of Adam, and the largest average of squares so far."""

    count: Any
    mu: Updates
    nu: Updates
    nu_max: Updates


def scale_by_amsgrad(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformation:
    """Adam whose denominators never fall.

        w ← max(w, v̂),   u = m̂ / (√(w + ε_root) + ε)

    Args:
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of squares.
        eps: added to the root.
        eps_root: added under the root.
        mu_dtype: the type of the average of gradients; that of the parameters by default.
        bias_correction_mu: correct the average of gradients for the bias of its start at zero.
        bias_correction_nu: correct the average of squares for the bias of its start at zero.

    Example:
        >>> tx = scale_by_amsgrad()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 0.9999933, -0.9999933], dtype=float32)
    """
    mu_dtype = canonical(mu_dtype)

    def init(params):
        zeros = otu.tree_zeros_like(params)
        return ScaleByAmsgradState(
            _zero(), otu.tree_zeros_like(params, mu_dtype), zeros, otu.tree_zeros_like(params)
        )

    def update(updates, state, params=None):
        del params
        count = safe_increment(state.count)
        mu = mu_hat = otu.tree_update_moment(updates, state.mu, b1, 1)
        nu = nu_hat = otu.tree_update_moment_per_elem_norm(updates, state.nu, b2, 2)
        if bias_correction_mu:
            mu_hat = otu.tree_bias_correction(mu, b1, count)
        if bias_correction_nu:
            nu_hat = otu.tree_bias_correction(nu, b2, count)
        nu_max = map_updates(jnp.maximum, nu_hat, state.nu_max)
        state = ScaleByAmsgradState(count, otu.tree_cast(mu, mu_dtype), nu, nu_max)
        return _over_root(mu_hat, nu_max, eps, eps_root), state

    return GradientTransformation(init, update)


def scale_by_adamax(b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> GradientTransformation:
    """Averages of gradients over decaying maxima of their sizes.

        m ← b1·m + (1 - b1)·g,   v ← max(|g| + ε, b2·v),   u = m̂ / v

    Args:
        b1: decay rate of the average of gradients.
        b2: decay rate of the maxima.
        eps: added to the sizes.

    Example:
        >>> tx = scale_by_adamax()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 0.99999976, -0.99999976], dtype=float32)
    """

    def init(params):
        return ScaleByAdamState(_zero(), otu.tree_zeros_like(params), otu.tree_zeros_like(params))

    def update(updates, state, params=None):
        del params
        count = safe_increment(state.count)
        mu = otu.tree_update_moment(updates, state.mu, b1, 1)
        nu = otu.tree_update_infinity_moment(updates, state.nu, b2, eps)
        new = map_updates(lambda m, v: m / v, otu.tree_bias_correction(mu, b1, count), nu)
        return new, ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


class ScaleByLionState(NamedTuple):
    """The number of steps, and the average of gradients."""

    count: Any
    mu: Updates


_LION_MODES = {
    "hard": lambda x, beta: jnp.sign(x),
    "smooth": lambda x, beta: jnp.tanh(beta * x),
    "refined": lambda x, beta: jnp.where(jnp.abs(x) < 1.0, x, jnp.sign(x)),
}


def scale_by_lion(
    b1: Any = 0.9,
    b2: Any = 0.99,
    mu_dtype: Any = None,
    *,
    mode: str = "hard",
    smooth_beta: float = 1.0,
) -> GradientTransformation:
    """The signs of averages of gradients, as in Lion.

        u = sign((1 - b1)·g + b1·m),   m ← b2·m + (1 - b2)·g

    Args:
        b1: the weight of the average in the update.
        b2: decay rate of the average.
        mu_dtype: the type of the average; that of the parameters by default.
        mode: 'hard' takes the sign, 'smooth' tanh(smooth_beta·x), 'refined' x itself within ±1.
        smooth_beta: the steepness of 'smooth'.

    Example:
        >>> tx = scale_by_lion()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 1., -1.], dtype=float32)
    """
    if mode not in _LION_MODES:
        raise ValueError(f"scale_by_lion: mode must be one of {list(_LION_MODES)}, got {mode!r}.")
    mu_dtype = canonical(mu_dtype)

    def init(params):
        return ScaleByLionState(_zero(), otu.tree_zeros_like(params, mu_dtype))

    def update(updates, state, params=None):
        del params
        new = map_updates(
            lambda g, m: _LION_MODES[mode]((1.0 - b1) * g + b1 * m, smooth_beta), updates, state.mu
        )
        mu = otu.tree_cast(otu.tree_update_moment(updates, state.mu, b2, 1), mu_dtype)
        return new, ScaleByLionState(safe_increment(state.count), mu)

    return GradientTransformation(init, update)


class ScaleByAdanState(NamedTuple):
    """Averages of gradients, of their differences and of squares; the last gradient; the step."""

    m: Updates
    v: Updates
    n: Updates
    g: Updates
    t: Any


def scale_by_adan(
    b1: Any = 0.98, b2: Any = 0.92, b3: Any = 0.99, eps: Any = 1e-8, eps_root: Any = 0.0
) -> GradientTransformation:
    """Adam with Nesterov's momentum through differences of gradients, as in Adan.

        d = gₜ - gₜ₋₁,   m ← b1·m + (1 - b1)·g,   v ← b2·v + (1 - b2)·d
        n ← b3·n + (1 - b3)·(g + (1 - b2)·d)²,    u = (m̂ + (1 - b2)·v̂) / (√(n̂ + ε_root) + ε)

    Args:
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of differences.
        b3: decay rate of the average of squares.
        eps: added to the root.
        eps_root: added under the root.

    Example:
        >>> tx = scale_by_adan()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 1.0000005, -1.0000005], dtype=float32)
    """

    def init(params):
        m, v, n, g = (otu.tree_zeros_like(params) for _ in range(4))
        return ScaleByAdanState(m, v, n, g, _zero())

    def update(updates, state, params=None):
        del params
        t = safe_increment(state.t)
        change = map_updates(
            lambda g, before: jnp.where(state.t == 0, 0, g - before), updates, state.g
        )
        m = otu.tree_update_moment(updates, state.m, b1, 1)
        v = otu.tree_update_moment(change, state.v, b2, 1)
        ahead = map_updates(lambda g, d: g + (1 - b2) * d, updates, change)
        n = otu.tree_update_moment_per_elem_norm(ahead, state.n, b3, 2)
        new = map_updates(
            lambda m, v, n: (m + (1 - b2) * v) / (jnp.sqrt(n + eps_root) + eps),
            otu.tree_bias_correction(m, b1, t),
            otu.tree_bias_correction(v, b2, t),
            otu.tree_bias_correction(n, b3, t),
        )
        return new, ScaleByAdanState(m, v, n, updates, t)

    return GradientTransformation(init, update)


class ScaleByBeliefState(NamedTuple):
    """The number of steps, and averages of gradients and of squared surprises."""

    count: Any
    mu: Updates
    nu: Updates


def scale_by_belief(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-16,
    eps_root: Any = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam whose denominators measure the surprise g - m, as in AdaBelief.

        v ← b2·v + (1 - b2)·(g - m)² + ε_root,   u = m̂ / (√v̂ + ε)

    Args:
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of squares.
        eps: added to the root.
        eps_root: added to the average of squares at each step.
        nesterov: use Nesterov momentum.

    Example:
        >>> tx = scale_by_belief()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 1.1111037, -1.1111037], dtype=float32)
    """

    def init(params):
        return ScaleByBeliefState(_zero(), otu.tree_zeros_like(params), otu.tree_zeros_like(params))

    def update(updates, state, params=None):
        del params
        count = safe_increment(state.count)
        mu = otu.tree_update_moment(updates, state.mu, b1, 1)
        surprise = map_updates(lambda g, m: g - m, updates, mu)
        nu = otu.tree_update_moment_per_elem_norm(surprise, state.nu, b2, 2)
        nu = tree.map(lambda v: v + eps_root, nu)
        mu_hat = first_moment(updates, mu, b1, count, nesterov)
        new = _over_root(mu_hat, otu.tree_bias_correction(nu, b2, count), eps, 0.0)
        return new, ScaleByBeliefState(count, mu, nu)

    return GradientTransformation(init, update)


def scale_by_yogi(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-3,
    eps_root: Any = 0.0,
    initial_accumulator_value: Any = 1e-6,
) -> GradientTransformation:
    """Adam whose denominators change by at most a multiple of g², as in Yogi.

        v ← v - (1 - b2)·sign(v - g²)·g²,   u = m̂ / (√(v̂ + ε_root) + ε)

    Args:
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of squares.
        eps: added to the root.
        eps_root: added under the root.
        initial_accumulator_value: the initial value of both averages.

    Example:
        >>> tx = scale_by_yogi()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 0.99850476, -0.9993644 ], dtype=float32)
    """

    def init(params):
        start = [otu.tree_full_like(params, initial_accumulator_value) for _ in range(2)]
        return ScaleByAdamState(_zero(), *start)

    def update(updates, state, params=None):
        del params
        count = safe_increment(state.count)
        mu = otu.tree_update_moment(updates, state.mu, b1, 1)
        nu = map_updates(
            lambda g, v: v - (1 - b2) * jnp.sign(v - abs_sq(g)) * abs_sq(g), updates, state.nu
        )
        mu_hat = otu.tree_bias_correction(mu, b1, count)
        new = _over_root(mu_hat, otu.tree_bias_correction(nu, b2, count), eps, eps_root)
        return new, ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


def scale_by_radam(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    threshold: Any = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam that divides only once the average of squares can be trusted, as in RAdam.

        ρ∞ = 2 / (1 - b2) - 1,   ρ = ρ∞ - 2t·b2ᵗ / (1 - b2ᵗ)
        r² = (ρ - 4)(ρ - 2)ρ∞ / ((ρ∞ - 4)(ρ∞ - 2)ρ)
        u  = r·m̂ / (√(v̂ + ε_root) + ε)   where ρ ≥ threshold, else m̂

    Args:
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of squares.
        eps: added to the root.
        eps_root: added under the root.
        threshold: the ρ from which on the average is used.
        nesterov: use Nesterov momentum.

    Example:
        >>> tx = scale_by_radam()
        >>> tx.update(jnp.array([1.0, -2.0]), tx.init(jnp.zeros(2)))[0]
        Array([ 0.99999976, -1.9999995 ], dtype=float32)
    """
    rho_inf = 2.0 / (1.0 - b2) - 1.0

    def init(params):
        return ScaleByAdamState(_zero(), otu.tree_zeros_like(params), otu.tree_zeros_like(params))

    def update(updates, state, params=None):
        del params
        count = safe_increment(state.count)
        mu = otu.tree_update_moment(updates, state.mu, b1, 1)
        nu = otu.tree_update_moment_per_elem_norm(updates, state.nu, b2, 2)
        mu_hat = first_moment(updates, mu, b1, count, nesterov)
        nu_hat = otu.tree_bias_correction(nu, b2, count)
        b2t = b2**count
        rho = rho_inf - 2 * count * b2t / (1 - b2t)
        trusted = rho >= threshold
        r = jnp.sqrt(
            (rho - 4.0) * (rho - 2.0) * rho_inf / ((rho_inf - 4.0) * (rho_inf - 2.0) * rho)
        )

        def rectify(m, v):
            return jnp.where(trusted, r.astype(m.dtype) * m / (jnp.sqrt(v + eps_root) + eps), m)

        return map_updates(rectify, mu_hat, nu_hat), ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


class ScaleByNovogradState(NamedTuple):
    """The number of steps, the average of updates, and one squared norm for each array."""

    count: Any
    mu: Updates
    nu: Updates


def scale_by_novograd(
    b1: Any = 0.9,
    b2: Any = 0.25,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    weight_decay: Any = 0.0,
    mu_dtype: Any = None,
) -> GradientTransformation:
    """Momentum of gradients over the norms of their arrays, as in NovoGrad.

        v ← b2·v + (1 - b2)·‖g‖²,   m ← b1·m + g / (√(v + ε_root) + ε) + λ·p,   u = m

    Args:
        b1: decay rate of the momentum.
        b2: decay rate of the average of squared norms.
        eps: added to the root.
        eps_root: added under the root.
        weight_decay: the factor λ of the parameters.
        mu_dtype: the type of the momentum; that of the parameters by default.

    Example:
        >>> tx = scale_by_novograd()
        >>> params = jnp.array([1.0, 1.0])
        >>> tx.update(jnp.array([3.0, 4.0]), tx.init(params), params)[0]
        Array([0.6, 0.8], dtype=float32)
    """
    mu_dtype = canonical(mu_dtype)

    def init(params):
        nu = tree.map(lambda p: jnp.zeros([], p.dtype), params)
        return ScaleByNovogradState(_zero(), otu.tree_zeros_like(params, mu_dtype), nu)

    def update(updates, state, params=None):
        require_params("scale_by_novograd", params)
        count = safe_increment(state.count)
        # The first step takes the norm and the gradient themselves, not averages with zero.
        first = count == 1

        def norms(g, v):
            square = jnp.linalg.norm(g) ** 2
            return jnp.where(first, square, (1 - b2) * square + b2 * v).astype(v.dtype)

        def momentum(g, p, m, v):
            new = g / (jnp.sqrt(v + eps_root) + eps) + weight_decay * p
            return jnp.where(first, new, b1 * m + new)

        nu = map_updates(norms, updates, state.nu)
        mu = otu.tree_cast(map_updates(momentum, updates, params, state.mu, nu), mu_dtype)
        return mu, ScaleByNovogradState(count, mu, nu)

    return GradientTransformation(init, update)
