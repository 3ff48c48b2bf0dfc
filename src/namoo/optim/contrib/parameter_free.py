"""Optimisers that find their own learning rate: D-Adaptation, Prodigy, DoG, MoMo, Mechanic."""

from __future__ import annotations

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
    identity,
    map_updates,
    require_params,
    with_extra_args_support,
)
from namoo.optim.numerics import safe_increment
from namoo.optim.transforms.adding import add_decayed_weights
from namoo.optim.transforms.combining import chain
from namoo.optim.transforms.scaling import scale_by_learning_rate

__all__ = [
    "dadapt_adamw", "DAdaptAdamWState", "dog", "DoGState", "dowg", "DoWGState", "MechanicState",
    "mechanize", "momo", "momo_adam", "MomoAdamState", "MomoState", "prodigy", "ProdigyState",
    "scale_by_dog", "scale_by_dowg",
]  # fmt: skip


def _at(value: ScalarOrSchedule, count: Any) -> Any:
    return value(count) if callable(value) else value


def _l1(values: Updates) -> Any:
    return otu.tree_sum(tree.map(jnp.abs, values))


class DAdaptAdamWState(NamedTuple):
    """Adam's averages, the weighted sum of gradients, and the estimated learning rate."""

    exp_avg: Updates
    exp_avg_sq: Updates
    grad_sum: Updates
    estim_lr: Any
    numerator_weighted: Any
    count: Any


def dadapt_adamw(
    learning_rate: ScalarOrSchedule = 1.0,
    betas: tuple[Any, Any] = (0.9, 0.999),
    eps: Any = 1e-8,
    estim_lr0: Any = 1e-6,
    weight_decay: Any = 0.0,
) -> GradientTransformationExtraArgs:
    """AdamW whose learning rate grows to an estimate of the distance to the solution.

    Args:
        learning_rate: a factor of the estimate, a number or a schedule.
        betas: decay rate of the averages of gradients and of squares.
        eps: added to the root.
        estim_lr0: the first estimate.
        weight_decay: the factor of the parameters.

    Example:
        >>> opt = dadapt_adamw()
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[1].estim_lr
        Array(1.e-06, dtype=float32)
    """
    beta1, beta2 = betas

    def init(params):
        dtype = otu.tree_dtype(params, "lowest")
        return DAdaptAdamWState(
            exp_avg=otu.tree_zeros_like(params),
            exp_avg_sq=otu.tree_zeros_like(params),
            grad_sum=otu.tree_zeros_like(params),
            estim_lr=jnp.asarray(estim_lr0, dtype),
            numerator_weighted=jnp.zeros([], dtype),
            count=jnp.zeros([], jnp.int32),
        )

    def update(updates, state, params=None, **extra_args):
        del extra_args
        require_params("dadapt_adamw", params)
        root = beta2**0.5
        count = safe_increment(state.count)
        correction = (1 - beta2**count) ** 0.5 / (1 - beta1**count)
        rate = state.estim_lr * _at(learning_rate, state.count) * correction
        rate = rate.astype(state.numerator_weighted.dtype)
        weighted = tree.map(lambda s, v: s / (jnp.sqrt(v) + eps), state.grad_sum, state.exp_avg_sq)
        gain = otu.tree_vdot(updates, weighted)
        mu = map_updates(lambda g, m: beta1 * m + (1 - beta1) * rate * g, updates, state.exp_avg)
        nu = map_updates(lambda g, v: beta2 * v + (1 - beta2) * g * g, updates, state.exp_avg_sq)
        total = map_updates(lambda g, s: root * s + (1 - root) * rate * g, updates, state.grad_sum)
        numerator = root * state.numerator_weighted + (1 - root) * rate * gain
        estimate = jnp.maximum(state.estim_lr, numerator / ((1 - root) * _l1(total)))
        new = map_updates(
            lambda m, v, p: -weight_decay * rate * p - m / (jnp.sqrt(v) + eps), mu, nu, params
        )
        return new, DAdaptAdamWState(mu, nu, total, estimate, numerator, count)

    return GradientTransformationExtraArgs(init, update)


class ProdigyState(NamedTuple):
    """Adam's averages, the weighted sum of gradients, and the estimated learning rate."""

    exp_avg: Updates
    exp_avg_sq: Updates
    grad_sum: Updates
    params0: Updates
    estim_lr: Any
    numerator_weighted: Any
    count: Any


def prodigy(
    learning_rate: ScalarOrSchedule = 1.0,
    betas: tuple[Any, Any] = (0.9, 0.999),
    beta3: Any = None,
    eps: Any = 1e-8,
    estim_lr0: Any = 1e-6,
    estim_lr_coef: Any = 1.0,
    weight_decay: Any = 0.0,
    safeguard_warmup: bool = False,
) -> GradientTransformationExtraArgs:
    """Prodigy: Adam whose learning rate grows to an estimate of the distance to the solution.

        d ← max(d, coef·Σ weighted ⟨g, p₀ - p⟩ / ‖Σ weighted g‖₁)

    Args:
        learning_rate: a factor of the estimate, a number or a schedule.
        betas: decay rate of the averages of gradients and of squares.
        beta3: decay rate of the weighted sums; √beta2 by default.
        eps: added to the root, times the estimate.
        estim_lr0: the first estimate.
        estim_lr_coef: a factor of the estimates.
        weight_decay: the factor of the parameters.
        safeguard_warmup: leave the schedule out of the weighted sum of gradients.

    Example:
        >>> opt = prodigy()
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-9.999929e-07, -9.999932e-07], dtype=float32)
    """
    beta1, beta2 = betas
    beta3 = beta2**0.5 if beta3 is None else beta3

    def init(params):
        dtype = otu.tree_dtype(params, "lowest")
        return ProdigyState(
            exp_avg=otu.tree_zeros_like(params),
            exp_avg_sq=otu.tree_zeros_like(params),
            grad_sum=otu.tree_zeros_like(params),
            params0=params,
            estim_lr=jnp.asarray(estim_lr0, dtype),
            numerator_weighted=jnp.zeros([], dtype),
            count=jnp.zeros([], jnp.int32),
        )

    def update(updates, state, params=None, **extra_args):
        del extra_args
        require_params("prodigy", params)
        count = safe_increment(state.count)
        d = state.estim_lr
        correction = (1 - beta2**count) ** 0.5 / (1 - beta1**count)
        rate = jnp.asarray(d * _at(learning_rate, state.count) * correction, d.dtype)
        scaled = map_updates(lambda g: d * g, updates)
        gain = otu.tree_vdot(updates, otu.tree_sub(state.params0, params))
        mu = map_updates(lambda g, m: beta1 * m + (1 - beta1) * g, scaled, state.exp_avg)
        nu = map_updates(lambda g, v: beta2 * v + (1 - beta2) * g * g, scaled, state.exp_avg_sq)
        weight = d if safeguard_warmup else rate
        total = map_updates(lambda g, s: beta3 * s + weight * g / estim_lr0, scaled, state.grad_sum)
        numerator = beta3 * state.numerator_weighted + d / estim_lr0 * rate * gain
        estimate = jnp.maximum(d, estim_lr_coef * numerator / _l1(total))
        new = map_updates(
            lambda m, v, p: -weight_decay * rate * p - rate * m / (jnp.sqrt(v) + estimate * eps),
            mu,
            nu,
            params,
        )
        return new, ProdigyState(mu, nu, total, state.params0, estimate, numerator, count)

    return GradientTransformationExtraArgs(init, update)


class DoGState(NamedTuple):
    """The first parameters, the largest distance from them, and the sum of squared norms."""

    is_init_step: Any
    init_params: Params
    max_dist: Any
    sum_sq_norm_grads: Any


def scale_by_dog(init_step: tuple[str, Any], eps: Any = 1e-8) -> GradientTransformation:
    """Distance over gradients (DoG), for all parameters as one vector.

        d ← max(d, ‖p - p₀‖),   G ← G + ‖g‖²,   u = d / √(G + ε)·g

    Args:
        init_step: ('distance', d₀), ('heuristic', r) for d₀ = r·(1 + ‖p₀‖), or ('learning_rate', α)
          for a first step with α.
        eps: added to the sum.

    Example:
        >>> tx = scale_by_dog(("distance", 0.1))
        >>> params = jnp.array([3.0, 4.0])
        >>> tx.update(params, tx.init(params), params)[0]
        Array([0.06, 0.08], dtype=float32)
    """
    kind, size = init_step
    if kind not in ("distance", "heuristic", "learning_rate"):
        raise ValueError(
            "scale_by_dog: init_step must begin with 'distance', 'heuristic' or 'learning_rate', "
            f"got {kind!r}."
        )

    def init(params):
        dtype = otu.tree_dtype(params, "lowest")
        first = {"distance": size, "learning_rate": 0.0}.get(kind)
        if first is None:
            first = size * (1 + otu.tree_norm(params))
        return DoGState(jnp.asarray(True), params, jnp.asarray(first, dtype), jnp.zeros([], dtype))

    def update(updates, state, params=None):
        require_params("scale_by_dog", params)
        distance = otu.tree_norm(otu.tree_sub(state.init_params, params))
        largest = jnp.maximum(state.max_dist, distance)
        total = state.sum_sq_norm_grads + otu.tree_norm(updates, squared=True)
        rate = largest / jnp.sqrt(total + eps)
        if kind == "learning_rate":
            rate = jnp.where(state.is_init_step, size, rate)
        new_state = DoGState(jnp.asarray(False), state.init_params, largest, total)
        return otu.tree_scale(rate, updates), new_state

    return GradientTransformation(init, update)


def _decay(weight_decay: Any, mask: MaskOrFn) -> GradientTransformation:
    return identity() if weight_decay is None else add_decayed_weights(weight_decay, mask)


def dog(
    learning_rate: ScalarOrSchedule = 1.0,
    init_step: tuple[str, Any] = ("heuristic", 1e-6),
    eps: Any = 1e-8,
    weight_decay: ScalarOrSchedule | None = None,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """Gradient descent with distance over gradients as learning rate; see `scale_by_dog`.

    Example:
        >>> opt = dog()
        >>> params = jnp.array([3.0, 4.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-3.6000001e-06, -4.8000002e-06], dtype=float32)
    """
    return chain(
        _decay(weight_decay, mask),
        scale_by_dog(init_step, eps),
        scale_by_learning_rate(learning_rate),
    )


class DoWGState(NamedTuple):
    """The first parameters, the weighted sum of squared norms, and the squared distance."""

    init_params: Params
    weighted_sq_norm_grads: Any
    estim_sq_dist: Any


def scale_by_dowg(init_estim_sq_dist: Any = None, eps: Any = 1e-4) -> GradientTransformation:
    """Distance over weighted gradients (DoWG), for all parameters as one vector.

        r ← max(r, ‖p - p₀‖²),   G ← G + r·‖g‖²,   u = r / (√G + ε)·g

    Args:
        init_estim_sq_dist: the first squared distance; `eps` by default.
        eps: added to the root.

    Example:
        >>> tx = scale_by_dowg()
        >>> params = jnp.array([3.0, 4.0])
        >>> tx.update(params, tx.init(params), params)[0]
        Array([0.00598802, 0.00798403], dtype=float32)
    """

    def init(params):
        dtype = otu.tree_dtype(params, "lowest")
        first = eps if init_estim_sq_dist is None else init_estim_sq_dist
        return DoWGState(params, jnp.zeros([], dtype), jnp.asarray(first, dtype))

    def update(updates, state, params=None):
        require_params("scale_by_dowg", params)
        distance = otu.tree_norm(otu.tree_sub(state.init_params, params), squared=True)
        largest = jnp.maximum(state.estim_sq_dist, distance)
        square = otu.tree_norm(updates, squared=True)
        total = largest * square + state.weighted_sq_norm_grads
        new = otu.tree_scale(largest / (jnp.sqrt(total) + eps), updates)
        return new, DoWGState(state.init_params, total, largest)

    return GradientTransformation(init, update)


def dowg(
    learning_rate: ScalarOrSchedule = 1.0,
    init_estim_sq_dist: Any = None,
    eps: Any = 1e-4,
    weight_decay: ScalarOrSchedule | None = None,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """Gradient descent with distance over weighted gradients; see `scale_by_dowg`.

    Example:
        >>> opt = dowg()
        >>> params = jnp.array([3.0, 4.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.00598802, -0.00798403], dtype=float32)
    """
    return chain(
        _decay(weight_decay, mask),
        scale_by_dowg(init_estim_sq_dist, eps),
        scale_by_learning_rate(learning_rate),
    )


class MomoState(NamedTuple):
    """Averages of gradients, of losses and of ⟨g, p⟩, and the lower bound of the loss."""

    exp_avg: Updates
    barf: Any
    gamma: Any
    lb: Any
    count: Any


class MomoAdamState(NamedTuple):
    """The same, with the average of squares."""

    exp_avg: Updates
    exp_avg_sq: Updates
    barf: Any
    gamma: Any
    lb: Any
    count: Any


def _polyak_step(loss, bound, gamma, inner, square, decay, largest):
    """min(largest, (what the model of the loss has left above its bound) / ‖m‖²)."""
    gap = jnp.maximum(decay * (loss - bound - gamma) + inner, 0.0) / square
    return jnp.minimum(largest, jnp.where(square <= jnp.finfo(float).eps, 0.0, gap))


def momo(
    learning_rate: ScalarOrSchedule = 1.0,
    beta: Any = 0.9,
    lower_bound: Any = 0.0,
    weight_decay: Any = 0.0,
    adapt_lower_bound: bool = False,
) -> GradientTransformationExtraArgs:
    """Momentum with Polyak's step size on averages (MoMo); `update` takes the loss as `value`.

        τ = min(α, ((1 + α·λ)·(f̄ - bound - γ) + ⟨m, p⟩)⁺ / ‖m‖²),   u = -τ·m - α·λ / (1 + α·λ)·p

    Args:
        learning_rate: the largest step size, a number or a schedule.
        beta: decay rate of the averages.
        lower_bound: a lower bound of the loss.
        weight_decay: the factor λ.
        adapt_lower_bound: improve the bound by estimates during the run.

    Example:
        >>> opt = momo()
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(2 * params, opt.init(params), params, value=5.0)[0]
        Array([-0.5, -1. ], dtype=float32)
    """

    def init(params):
        dtype = otu.tree_dtype(params, "lowest")
        zero = jnp.zeros([], dtype)
        bound = jnp.array(lower_bound, dtype)
        return MomoState(otu.tree_zeros_like(params), zero, zero, bound, jnp.zeros([], jnp.int32))

    def update(updates, state, params=None, *, value, **extra_args):
        del extra_args
        require_params("momo", params)
        keep = jnp.where(state.count == 0, 0.0, beta)
        loss = keep * state.barf + (1 - keep) * jnp.asarray(value, state.barf.dtype)
        mean = map_updates(lambda g, m: keep * m + (1 - keep) * g, updates, state.exp_avg)
        gamma = keep * state.gamma + (1 - keep) * otu.tree_vdot(updates, params)
        square = otu.tree_norm(mean, squared=True)
        inner = otu.tree_vdot(mean, params)
        alpha = _at(learning_rate, state.count)
        decay = 1 + alpha * weight_decay
        bound = state.lb
        if adapt_lower_bound:
            cap = decay * (loss - gamma) + inner
            bound = jnp.where(
                cap < decay * bound, jnp.maximum(cap / (2 * decay), lower_bound), bound
            )
        tau = _polyak_step(loss, bound, gamma, inner, square, decay, alpha)
        new = map_updates(lambda m, p: -(alpha * weight_decay) / decay * p - tau * m, mean, params)
        lb = state.lb
        if adapt_lower_bound:
            lb = jnp.maximum(loss + inner - gamma - 0.5 * tau * square, lower_bound)
        return new, MomoState(mean, loss, gamma, lb, safe_increment(state.count))

    return GradientTransformationExtraArgs(init, update)


def momo_adam(
    learning_rate: ScalarOrSchedule = 1e-2,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    lower_bound: Any = 0.0,
    weight_decay: Any = 0.0,
    adapt_lower_bound: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam with Polyak's step size on averages; `update` takes the loss as `value`.

        D = ε + √v̂,   τ = min(α / (1 - b1ᵗ), (…)⁺ / ⟨m, m / D⟩),   u = -τ·m / D - α·λ / (1 + α·λ)·p

    Args:
        learning_rate: the largest step size, a number or a schedule.
        b1: decay rate of the averages of gradients and losses.
        b2: decay rate of the average of squares.
        eps: added to the root.
        lower_bound: a lower bound of the loss.
        weight_decay: the factor λ.
        adapt_lower_bound: improve the bound by estimates during the run.

    Example:
        >>> opt = momo_adam(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(2 * params, opt.init(params), params, value=5.0)[0]
        Array([-0.09999934, -0.09999934], dtype=float32)
    """

    def init(params):
        dtype = otu.tree_dtype(params, "lowest")
        zero = jnp.zeros([], dtype)
        mu, nu = otu.tree_zeros_like(params), otu.tree_zeros_like(params)
        bound = jnp.array(lower_bound, dtype)
        return MomoAdamState(mu, nu, zero, zero, bound, jnp.zeros([], jnp.int32))

    def update(updates, state, params=None, *, value, **extra_args):
        del extra_args
        require_params("momo_adam", params)
        count = safe_increment(state.count)
        dtype = state.barf.dtype
        loss = b1 * state.barf + (1 - b1) * jnp.asarray(value, dtype)
        mean = map_updates(lambda g, m: b1 * m + (1 - b1) * g, updates, state.exp_avg)
        nu = map_updates(lambda g, v: b2 * v + (1 - b2) * g * g, updates, state.exp_avg_sq)
        c1 = jnp.asarray(1 - b1**count, dtype)
        c2 = jnp.asarray(1 - b2**count, dtype)
        divisor = tree.map(lambda v: eps + jnp.sqrt(v / c2), nu)
        square = otu.tree_vdot(mean, otu.tree_div(mean, divisor))
        gamma = b1 * state.gamma + (1 - b1) * otu.tree_vdot(updates, params)
        inner = otu.tree_vdot(mean, params)
        alpha = _at(learning_rate, state.count)
        decay = 1 + alpha * weight_decay
        bound = state.lb
        if adapt_lower_bound:
            cap = decay * (loss - gamma) + inner
            raised = jnp.maximum(cap / (2 * c1 * decay), lower_bound)
            bound = jnp.where(cap < decay * c1 * bound, raised, bound)
        tau = _polyak_step(loss, c1 * bound, gamma, inner, square, decay, alpha / c1)
        new = map_updates(
            lambda m, d, p: -(alpha * weight_decay) / decay * p - tau * m / d,
            mean,
            divisor,
            params,
        )
        lb = state.lb
        if adapt_lower_bound:
            lb = jnp.maximum((loss + inner - gamma - 0.5 * tau * square) / c1, lower_bound)
        return new, MomoAdamState(mean, nu, loss, gamma, lb, count)

    return GradientTransformationExtraArgs(init, update)


class MechanicState(NamedTuple):
    """The inner state, the first parameters, and what each of several bettors has won."""

    base_optimizer_state: Any
    count: Any
    r: Any
    m: Any
    v: Any
    s: Any
    x0: Updates


def mechanize(
    base_optimizer: GradientTransformation,
    weight_decay: Any = 1e-2,
    eps: Any = 1e-8,
    s_init: Any = 1e-6,
    num_betas: int = 6,
) -> GradientTransformationExtraArgs:
    """Find the scale of another optimiser's steps (Mechanic).

        Δ = Σ steps,   p = p₀ + s·Δ,   s from bets on ⟨g, Δ⟩ with several memories

    Args:
        base_optimizer: the optimiser, with a learning rate of about 1.
        weight_decay: a factor of the parameters, relative to the gradient.
        eps: added to denominators.
        s_init: the first scale.
        num_betas: how many memories, 1 - 10⁻¹, 1 - 10⁻², …

    Example:
        >>> from namoo.optim import sgd
        >>> opt = mechanize(sgd(1.0))
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-1.013279e-06, -2.026558e-06], dtype=float32)
    """
    base_optimizer = with_extra_args_support(base_optimizer)

    def init(params):
        dtype = otu.tree_dtype(params, "lowest")
        zeros = jnp.zeros([num_betas], dtype)
        return MechanicState(
            base_optimizer_state=base_optimizer.init(params),
            count=jnp.zeros([], jnp.int32),
            r=zeros,
            m=zeros,
            v=zeros,
            s=jnp.ones([num_betas], dtype) * s_init,
            x0=params,
        )

    def update(updates, state, params=None, **extra_args):
        require_params("mechanize", params)
        steps, inner = base_optimizer.update(
            updates, state.base_optimizer_state, params, **extra_args
        )
        x0 = otu.tree_where(state.count == 0, params, state.x0)
        scale = jnp.sum(state.s)
        pull = weight_decay * scale * otu.tree_norm(updates) / (otu.tree_norm(params) + eps)
        decayed = map_updates(lambda g, p: g + pull * p, updates, params)
        # All steps so far, negated.
        before = tree.map(lambda p, p0: (p0 - p) / (scale + eps), params, x0)
        after = otu.tree_sub(before, steps)
        h = otu.tree_vdot(decayed, before)
        betas = jnp.array([1.0 - 0.1**i for i in range(1, num_betas + 1)], state.s.dtype)
        m = jnp.maximum(betas * state.m, jnp.abs(h) + eps)
        v = betas**2 * state.v + h**2
        r = betas * state.r + jnp.clip(h, -state.m, state.m) * state.s
        wealth = (s_init / num_betas) * m + jnp.maximum(0.0, r)
        s = wealth / (jnp.sqrt(v) + eps)
        new = tree.map(lambda p, p0, d: p0 - jnp.sum(s) * d - p, params, x0, after)
        return new, MechanicState(inner, safe_increment(state.count), r, m, v, s, x0)

    return GradientTransformationExtraArgs(init, update)
