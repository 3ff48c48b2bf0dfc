"""Sophia: averages of gradients over averages of the Hessian's diagonal."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import debug, lax, random, tree
from namoo import numpy as jnp
from namoo.api.grad import grad, jvp
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    MaskOrFn,
    ScalarOrSchedule,
    Updates,
    map_updates,
    require_params,
    with_extra_args_support,
)
from namoo.optim.numerics import safe_increment
from namoo.optim.transforms.adding import add_decayed_weights
from namoo.optim.transforms.combining import chain
from namoo.optim.transforms.scaling import scale_by_learning_rate
from namoo.optim.tree_utils.casting import canonical

__all__ = [
    "hutchinson_estimator_diag_hessian", "HutchinsonState", "scale_by_sophia", "sophia",
    "SophiaState",
]  # fmt: skip


class HutchinsonState(NamedTuple):
    """The key of the next estimate."""

    key: Any


def hutchinson_estimator_diag_hessian(
    random_seed: Any = None,
) -> GradientTransformationExtraArgs:
    """An estimate of the Hessian's diagonal; `update` takes the loss as `obj_fn(params)`.

        r·(H r),   r of random signs

    Args:
        random_seed: a key; `PRNGKey(0)` by default.

    Example:
        >>> tx = hutchinson_estimator_diag_hessian()
        >>> params = jnp.array([1.0, 2.0])
        >>> tx.update(None, tx.init(params), params, obj_fn=lambda p: jnp.sum(p**3))[0]
        Array([ 6., 12.], dtype=float32)
    """

    def init(params):
        del params
        return HutchinsonState(random.PRNGKey(0) if random_seed is None else random_seed)

    def update(updates, state, params=None, obj_fn=None, **extra_args):
        del updates, extra_args
        require_params("hutchinson_estimator_diag_hessian", params)
        if obj_fn is None:
            raise ValueError(
                "hutchinson_estimator_diag_hessian: update needs the loss, "
                "`update(..., obj_fn=lambda params: ...)`."
            )
        next_key, this_key = random.split(state.key)
        signs = otu.tree_random_like(this_key, params, random.rademacher, jnp.float32)
        signs = otu.tree_cast(signs, otu.tree_dtype(params, "lowest"))
        product = jvp(grad(obj_fn), (params,), (signs,))[1]
        return tree.map(lambda h, r: h * r, product, signs), HutchinsonState(next_key)

    return GradientTransformationExtraArgs(init, update)


class SophiaState(NamedTuple):
    """The number of steps, averages of gradients and of the diagonal, and the estimator's state."""

    count: Any
    mu: Updates
    nu: Updates
    hessian_fn_state: Any


_HUTCHINSON = hutchinson_estimator_diag_hessian()


def scale_by_sophia(
    b1: Any = 0.965,
    b2: Any = 0.99,
    eps: Any = 1e-8,
    gamma: Any = 0.01,
    clip_threshold: Any = 1.0,
    update_interval: Any = 10,
    hessian_diagonal_fn: GradientTransformation = _HUTCHINSON,
    mu_dtype: Any = None,
    verbose: bool = False,
    print_win_rate_every_n_steps: Any = 0,
) -> GradientTransformationExtraArgs:
    """Averages of gradients over averages of the Hessian's diagonal, clipped.

        u = clip(m̂ / max(γ·h, ε), ±c),   h ← b2·h + (1 - b2)·diag H   every few steps

    Args:
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of the diagonal.
        eps: the smallest denominator.
        gamma: the factor of the diagonal.
        clip_threshold: the bound c; None for no bound.
        update_interval: every how many steps the diagonal is estimated.
        hessian_diagonal_fn: a transformation whose updates are the estimate.
        mu_dtype: the type of the average of gradients.
        verbose: print the fraction of elements that are not clipped.
        print_win_rate_every_n_steps: how often.

    Example:
        >>> tx = scale_by_sophia()
        >>> params = jnp.array([1.0, 2.0])
        >>> tx.update(params, tx.init(params), params, obj_fn=lambda p: jnp.sum(p**2) / 2)[0]
        Array([1., 1.], dtype=float32)
    """
    mu_dtype = canonical(mu_dtype)
    estimator = with_extra_args_support(hessian_diagonal_fn)

    def init(params):
        return SophiaState(
            jnp.zeros([], jnp.int32),
            otu.tree_zeros_like(params, mu_dtype),
            otu.tree_zeros_like(params),
            estimator.init(params),
        )

    def update(updates, state, params=None, **extra_args):
        require_params("scale_by_sophia", params)
        count = safe_increment(state.count)
        mu = otu.tree_update_moment(updates, state.mu, b1, 1)
        new = map_updates(
            lambda m, h: m / jnp.maximum(gamma * h, eps),
            otu.tree_bias_correction(mu, b1, count),
            state.nu,
        )
        if clip_threshold is not None:
            if verbose and print_win_rate_every_n_steps:
                small = tree.map(lambda u: jnp.sum(jnp.abs(u) < clip_threshold), new)
                part = otu.tree_sum(small) / otu.tree_size(new)
                lax.cond(
                    count % print_win_rate_every_n_steps == 0,
                    lambda: debug.print("sophia: {part} of the updates are not clipped", part=part),
                    lambda: None,
                )
            new = otu.tree_clip(new, -clip_threshold, clip_threshold)

        def estimate():
            diagonal, inner = estimator.update(
                updates, state.hessian_fn_state, params, **extra_args
            )
            return inner, otu.tree_update_moment(diagonal, state.nu, b2, 1)

        inner, nu = lax.cond(
            state.count % update_interval == 0, estimate, lambda: (state.hessian_fn_state, state.nu)
        )
        return new, SophiaState(count, otu.tree_cast(mu, mu_dtype), nu, inner)

    return GradientTransformationExtraArgs(init, update)


def sophia(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.965,
    b2: Any = 0.99,
    eps: Any = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    weight_decay_mask: MaskOrFn = None,
    gamma: Any = 0.01,
    clip_threshold: Any = 1.0,
    update_interval: Any = 10,
    hessian_diagonal_fn: GradientTransformation = _HUTCHINSON,
    mu_dtype: Any = None,
    verbose: bool = False,
    print_win_rate_every_n_steps: Any = 0,
) -> GradientTransformationExtraArgs:
    """Sophia, with weight decay; see `scale_by_sophia`. `update` takes `obj_fn(params)`.

    Example:
        >>> opt = sophia(0.1, weight_decay=0.0)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params, obj_fn=lambda p: jnp.sum(p**2) / 2)[0]
        Array([-0.1, -0.1], dtype=float32)
    """
    return chain(
        scale_by_sophia(
            b1,
            b2,
            eps,
            gamma,
            clip_threshold,
            update_interval,
            hessian_diagonal_fn,
            mu_dtype,
            verbose,
            print_win_rate_every_n_steps,
        ),
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_learning_rate(learning_rate),
    )
