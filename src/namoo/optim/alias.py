"""Optimisers: chains of transformations, by the names that people know.

Each takes the learning rate first, a number or a schedule; the formulas call it α.
"""

from __future__ import annotations

import functools
from typing import Any

from namoo import numpy as jnp
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    MaskOrFn,
    ScalarOrSchedule,
    identity,
)
from namoo.optim.linesearch import scale_by_zoom_linesearch
from namoo.optim.transforms.adam import (
    scale_by_adam,
    scale_by_adamax,
    scale_by_adan,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_lion,
    scale_by_novograd,
    scale_by_radam,
    scale_by_yogi,
)
from namoo.optim.transforms.adding import add_decayed_weights, add_noise
from namoo.optim.transforms.clipping import clip_by_block_rms
from namoo.optim.transforms.combining import chain
from namoo.optim.transforms.lbfgs import scale_by_lbfgs
from namoo.optim.transforms.masking import masked
from namoo.optim.transforms.momentum import ema, trace
from namoo.optim.transforms.rms import (
    scale_by_adadelta,
    scale_by_factored_rms,
    scale_by_rms,
    scale_by_rss,
    scale_by_sm3,
    scale_by_stddev,
)
from namoo.optim.transforms.rprop import scale_by_rprop
from namoo.optim.transforms.scaling import (
    scale,
    scale_by_learning_rate,
    scale_by_optimistic_gradient,
    scale_by_param_block_rms,
    scale_by_polyak,
    scale_by_sign,
    scale_by_trust_ratio,
)

__all__ = [
    "adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "adan",
    "amsgrad", "fromage", "lamb", "lars", "lbfgs", "lion", "nadam", "nadamw", "noisy_sgd",
    "novograd", "optimistic_adam", "optimistic_adam_v2", "optimistic_gradient_descent",
    "polyak_sgd", "radam", "rmsprop", "rprop", "sgd", "sign_sgd", "signum", "sm3", "yogi",
]  # fmt: skip


def adam(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam: gradients over the roots of their squares, both averaged.

        m ← b1·m + (1 - b1)·g,   v ← b2·v + (1 - b2)·g²
        u = -α·m̂ / (√(v̂ + ε_root) + ε),   m̂ = m / (1 - b1ᵗ),   v̂ = v / (1 - b2ᵗ)

    Args:
        learning_rate: a number or a schedule.
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of squares.
        eps: added to the root.
        eps_root: added under the root.
        mu_dtype: the type of the average of gradients.
        nesterov: use Nesterov momentum, as `nadam` does.

    Example:
        >>> opt = adam(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> updates, state = opt.update(params, opt.init(params), params)
        >>> updates, state[0].mu
        (Array([-0.09999933, -0.09999933], dtype=float32), Array([0.1, 0.2], dtype=float32))
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


nadam = functools.partial(adam, nesterov=True)


def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: MaskOrFn = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam with weight decay that does not pass through the averages.

        u = -α·(m̂ / (√(v̂ + ε_root) + ε) + λ·p)

    Args:
        learning_rate: a number or a schedule.
        b1: decay rate of the average of gradients.
        b2: decay rate of the average of squares.
        eps: added to the root.
        eps_root: added under the root.
        mu_dtype: the type of the average of gradients.
        weight_decay: the factor λ, a number or a schedule.
        mask: which parameters decay: a tree of bools, or a function such as `~paths("**/b")`.
        nesterov: use Nesterov momentum, as `nadamw` does.

    Example:
        >>> opt = adamw(0.1, weight_decay=0.5)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.14999934, -0.19999933], dtype=float32)
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


nadamw = functools.partial(adamw, nesterov=True)


def adamax(
    learning_rate: ScalarOrSchedule, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8
) -> GradientTransformationExtraArgs:
    """Adam with decaying maxima instead of averages of squares.

        v ← max(|g| + ε, b2·v),   u = -α·m̂ / v

    Args:
        learning_rate: a number or a schedule.
        b1: decay rate of the average of gradients.
        b2: decay rate of the maxima.
        eps: added to the sizes.

    Example:
        >>> opt = adamax(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.09999998, -0.09999998], dtype=float32)
    """
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adamaxw(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """Adamax with weight decay that does not pass through the averages.

        u = -α·(m̂ / v + λ·p)

    Args:
        learning_rate: a number or a schedule.
        b1: decay rate of the average of gradients.
        b2: decay rate of the maxima.
        eps: added to the sizes.
        weight_decay: the factor λ.
        mask: which parameters decay.

    Example:
        >>> opt = adamaxw(0.1, weight_decay=0.5)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.14999998, -0.19999997], dtype=float32)
    """
    return chain(
        scale_by_adamax(b1, b2, eps),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def amsgrad(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:
    """Adam whose denominators never fall; see `scale_by_amsgrad`.

        w ← max(w, v̂),   u = -α·m̂ / (√(w + ε_root) + ε)

    Example:
        >>> opt = amsgrad(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.09999933, -0.09999933], dtype=float32)
    """
    return chain(
        scale_by_amsgrad(b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu),
        scale_by_learning_rate(learning_rate),
    )


def adan(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.98,
    b2: Any = 0.92,
    b3: Any = 0.99,
    eps: Any = 1e-8,
    eps_root: Any = 1e-8,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """Adan: Adam with Nesterov's momentum through differences of gradients; see `scale_by_adan`.

        u = -α·((m̂ + (1 - b2)·v̂) / (√(n̂ + ε_root) + ε) + λ·p)

    Example:
        >>> opt = adan(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.10000005, -0.10000005], dtype=float32)
    """
    return chain(
        scale_by_adan(b1, b2, b3, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def adabelief(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-16,
    eps_root: Any = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """AdaBelief: Adam whose denominators measure the surprise g - m; see `scale_by_belief`.

        v ← b2·v + (1 - b2)·(g - m)² + ε_root,   u = -α·m̂ / (√v̂ + ε)

    Example:
        >>> opt = adabelief(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.11111037, -0.11111037], dtype=float32)
    """
    return chain(
        scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


def yogi(
    learning_rate: ScalarOrSchedule, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-3
) -> GradientTransformationExtraArgs:
    """Yogi: Adam whose denominators change slowly; see `scale_by_yogi`.

        v ← v - (1 - b2)·sign(v - g²)·g²,   u = -α·m̂ / (√v̂ + ε)

    Example:
        >>> opt = yogi(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.09985048, -0.09993734], dtype=float32)
    """
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


def radam(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    threshold: Any = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """RAdam: Adam that divides once the average of squares can be trusted; see `scale_by_radam`.

    Example:
        >>> opt = radam(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.09999998, -0.19999996], dtype=float32)
    """
    return chain(
        scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


def novograd(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.25,
    eps: Any = 1e-6,
    eps_root: Any = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
) -> GradientTransformationExtraArgs:
    """NovoGrad: momentum of gradients over the norms of their arrays; see `scale_by_novograd`.

        v ← b2·v + (1 - b2)·‖g‖²,   m ← b1·m + g / (√(v + ε_root) + ε) + λ·p,   u = -α·m

    Example:
        >>> opt = novograd(0.1)
        >>> params = jnp.array([3.0, 4.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.05999999, -0.07999998], dtype=float32)
    """
    return chain(
        scale_by_novograd(b1, b2, eps, eps_root, weight_decay),
        scale_by_learning_rate(learning_rate),
    )


def lion(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.99,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-3,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """Lion: the signs of averages of gradients.

        u = -α·(sign((1 - b1)·g + b1·m) + λ·p),   m ← b2·m + (1 - b2)·g

    Args:
        learning_rate: a number or a schedule.
        b1: the weight of the average in the update.
        b2: decay rate of the average.
        mu_dtype: the type of the average.
        weight_decay: the factor λ.
        mask: which parameters decay.

    Example:
        >>> opt = lion(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.1001, -0.1002], dtype=float32)
    """
    return chain(
        scale_by_lion(b1, b2, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def adagrad(
    learning_rate: ScalarOrSchedule, initial_accumulator_value: Any = 0.1, eps: Any = 1e-7
) -> GradientTransformationExtraArgs:
    """Adagrad: gradients over the root of the sum of their squares.

        s ← s + g²,   u = -α·g / √(s + ε)

    Example:
        >>> opt = adagrad(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.09534626, -0.09877297], dtype=float32)
    """
    return chain(
        scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate)
    )


def adadelta(
    learning_rate: ScalarOrSchedule | None = None,
    rho: Any = 0.9,
    eps: Any = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """Adadelta: updates in the units of the parameters.

        v ← ρ·v + (1 - ρ)·g²,   d = √(x + ε) / √(v + ε)·g,   x ← ρ·x + (1 - ρ)·d²,   u = -α·d

    Without a learning rate the updates keep the sign of the gradients, as in Optax.

    Example:
        >>> opt = adadelta(1.0)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.00316226, -0.00316227], dtype=float32)
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_adadelta(rho, eps),
        scale_by_learning_rate(learning_rate),
    )


def rmsprop(
    learning_rate: ScalarOrSchedule,
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: Any = None,
    nesterov: bool = False,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """RMSProp: gradients over the root of the average of their squares.

        v ← decay·v + (1 - decay)·g²,   u = -α·g / √(v + ε)

    Args:
        learning_rate: a number or a schedule.
        decay: decay rate of the average.
        eps: added to the denominator.
        initial_scale: the initial value of the average.
        eps_in_sqrt: add `eps` under the root; False adds it to the root.
        centered: divide by the standard deviation, √(v - m² + ε).
        momentum: decay rate of the sum of updates; none by default.
        nesterov: use Nesterov momentum.
        bias_correction: correct for the bias of its start at zero.

    Example:
        >>> opt = rmsprop(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.31622776, -0.31622776], dtype=float32)
    """
    divide = scale_by_stddev if centered else scale_by_rms
    return chain(
        divide(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
        identity() if momentum is None else trace(momentum, nesterov),
    )


def adafactor(
    learning_rate: ScalarOrSchedule | None = None,
    min_dim_size_to_factor: int = 128,
    decay_rate: Any = 0.8,
    decay_offset: Any = 0,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: Any = 1.0,
    momentum: Any = None,
    dtype_momentum: Any = jnp.float32,
    weight_decay_rate: ScalarOrSchedule | None = None,
    eps: Any = 1e-30,
    factored: bool = True,
    weight_decay_mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """Adafactor: Adam with little memory, for large matrices; see `scale_by_factored_rms`.

    Args:
        learning_rate: a number or a schedule; 1 without it.
        min_dim_size_to_factor: arrays whose second longest axis is shorter are kept whole.
        decay_rate: the exponent of the decay.
        decay_offset: the step to count from.
        multiply_by_parameter_scale: updates times the root mean square of the parameter.
        clipping_threshold: the largest root mean square of an update before that; None: no bound.
        momentum: decay rate of an average of updates; none by default.
        dtype_momentum: the type of that average.
        weight_decay_rate: the factor of the parameters; none by default.
        eps: added to the squares.
        factored: False keeps all averages whole.
        weight_decay_mask: which parameters decay.

    Example:
        >>> opt = adafactor(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.15811388, -0.15811388], dtype=float32)
    """
    parts: list[GradientTransformation] = [
        scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)
    ]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return chain(*parts, scale(-1))


def sm3(learning_rate: Any, momentum: Any = 0.9) -> GradientTransformationExtraArgs:
    """SM3: Adagrad with little memory; see `scale_by_sm3`.

    Example:
        >>> opt = sm3(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.01, -0.01], dtype=float32)
    """
    return chain(scale_by_sm3(momentum), scale_by_learning_rate(learning_rate))


def lamb(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-6,
    eps_root: Any = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn = None,
) -> GradientTransformationExtraArgs:
    """LAMB: AdamW whose updates have the norm of the parameters, for large batches.

        d = m̂ / (√(v̂ + ε_root) + ε) + λ·p,   u = -α·‖p‖ / ‖d‖·d

    Example:
        >>> opt = lamb(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.15811385, -0.15811393], dtype=float32)
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
    )


def optimistic_adam(
    learning_rate: Any,
    optimism: Any = None,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """Optimistic Adam without schedules; `optimistic_adam_v2` takes them.

        d = Adam's update,   u = -((α + o)·dₜ - o·dₜ₋₁),   o = optimism, by default α

    Example:
        >>> opt = optimistic_adam(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params))[0]
        Array([-0.14736743, -0.14736743], dtype=float32)
    """
    if callable(learning_rate):
        raise ValueError(
            "optimistic_adam: the learning rate must be a number here; use optimistic_adam_v2 with "
            "a schedule."
        )
    optimism = learning_rate if optimism is None else optimism
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_optimistic_gradient(learning_rate, optimism),
        scale_by_learning_rate(1.0),
    )


def optimistic_adam_v2(
    learning_rate: ScalarOrSchedule,
    *,
    alpha: Any = 1.0,
    beta: Any = 1.0,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """Adam that expects its updates to go on changing, for games.

        d = Adam's update,   u = -lr·((α + β)·dₜ - β·dₜ₋₁)

    Example:
        >>> opt = optimistic_adam_v2(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params))[0]
        Array([-0.14736743, -0.14736743], dtype=float32)
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_optimistic_gradient(alpha, beta),
        scale_by_learning_rate(learning_rate),
    )


def sgd(
    learning_rate: ScalarOrSchedule,
    momentum: Any = None,
    nesterov: bool = False,
    accumulator_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Gradient descent, with momentum if it is given.

        t ← g + momentum·t,   u = -α·t       (nesterov: u = -α·(g + momentum·t))

    Args:
        learning_rate: a number or a schedule.
        momentum: decay rate of the sum of gradients; none by default.
        nesterov: use Nesterov momentum.
        accumulator_dtype: the type of the sum.

    Example:
        >>> opt = sgd(0.1, momentum=0.9)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.1, -0.2], dtype=float32)
    """
    first = identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype)
    return chain(first, scale_by_learning_rate(learning_rate))


def sign_sgd(learning_rate: ScalarOrSchedule) -> GradientTransformationExtraArgs:
    """Steps of one size, along the signs of the gradients.

        u = -α·sign(g)

    Example:
        >>> opt = sign_sgd(0.1)
        >>> opt.update(jnp.array([1.0, -2.0]), opt.init(None))[0]
        Array([-0.1,  0.1], dtype=float32)
    """
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


def signum(
    learning_rate: ScalarOrSchedule, beta: Any = 0.9, accumulator_dtype: Any = None
) -> GradientTransformationExtraArgs:
    """Steps of one size, along the signs of averages of gradients.

        m ← β·m + (1 - β)·g,   u = -α·sign(m)

    Example:
        >>> opt = signum(0.1)
        >>> params = jnp.array([1.0, -2.0])
        >>> opt.update(params, opt.init(params))[0]
        Array([-0.1,  0.1], dtype=float32)
    """
    return chain(
        ema(beta, debias=False, accumulator_dtype=accumulator_dtype),
        scale_by_sign(),
        scale_by_learning_rate(learning_rate),
    )


def rprop(
    learning_rate: Any,
    eta_minus: Any = 0.5,
    eta_plus: Any = 1.2,
    min_step_size: Any = 1e-6,
    max_step_size: Any = 50.0,
) -> GradientTransformationExtraArgs:
    """Rprop: one step size per element; see `scale_by_rprop`.

    Example:
        >>> opt = rprop(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> _, state = opt.update(params, opt.init(params))
        >>> opt.update(params, state)[0]
        Array([-0.1, -0.1], dtype=float32)
    """
    return chain(
        scale_by_rprop(learning_rate, eta_minus, eta_plus, min_step_size, max_step_size),
        scale(-1.0),
    )


def lars(
    learning_rate: ScalarOrSchedule,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn = True,
    trust_coefficient: Any = 0.001,
    eps: Any = 0.0,
    trust_ratio_mask: MaskOrFn = True,
    momentum: Any = 0.9,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """LARS: momentum of gradients scaled to the norm of the parameters, for large batches.

        d = g + λ·p,   t ← -α·c·‖p‖ / (‖d‖ + ε)·d + momentum·t,   u = t

    Args:
        learning_rate: a number or a schedule.
        weight_decay: the factor λ.
        weight_decay_mask: which parameters decay.
        trust_coefficient: the factor c.
        eps: added to the denominator.
        trust_ratio_mask: which updates are rescaled.
        momentum: decay rate of the sum of updates.
        nesterov: use Nesterov momentum.

    Example:
        >>> opt = lars(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.0001, -0.0002], dtype=float32)
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        masked(
            scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps), trust_ratio_mask
        ),
        scale_by_learning_rate(learning_rate),
        trace(momentum, nesterov),
    )


def fromage(
    learning_rate: ScalarOrSchedule, min_norm: Any = 1e-6
) -> GradientTransformationExtraArgs:
    """Fromage: gradients scaled to the norm of the parameters, which does not grow.

        k = 1 / √(1 + α²),   u = -α·k·‖p‖ / ‖g‖·g + (k - 1)·p

    Example:
        >>> opt = fromage(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.10446653, -0.20893306], dtype=float32)
    """

    def shrink(rate):
        return 1 / (1 + rate**2) ** 0.5

    rate: Any
    decay: Any
    if callable(learning_rate):
        rate = lambda count: learning_rate(count) * shrink(learning_rate(count))  # noqa: E731
        decay = lambda count: shrink(learning_rate(count)) - 1  # noqa: E731
    else:
        rate, decay = learning_rate * shrink(learning_rate), shrink(learning_rate) - 1
    return chain(
        scale_by_trust_ratio(min_norm), scale_by_learning_rate(rate), add_decayed_weights(decay)
    )


def noisy_sgd(
    learning_rate: ScalarOrSchedule,
    eta: Any = 0.01,
    gamma: Any = 0.55,
    key: Any = None,
    *,
    seed: int | None = None,
) -> GradientTransformationExtraArgs:
    """Gradient descent with noise of falling variance; see `add_noise`.

        u = -α·(g + ε),   ε ~ N(0, η / tᵞ)

    Example:
        >>> opt = noisy_sgd(0.1, key=0)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params), params)[0]
        Array([-0.10198908, -0.19229823], dtype=float32)
    """
    return chain(add_noise(eta, gamma, key, seed=seed), scale_by_learning_rate(learning_rate))


def optimistic_gradient_descent(
    learning_rate: ScalarOrSchedule, alpha: Any = 1.0, beta: Any = 1.0
) -> GradientTransformationExtraArgs:
    """Gradient descent that expects gradients to go on changing, for games.

        u = -lr·((α + β)·gₜ - β·gₜ₋₁)

    Example:
        >>> opt = optimistic_gradient_descent(0.1)
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(params, opt.init(params))[0]
        Array([-0.1, -0.2], dtype=float32)
    """
    return chain(scale_by_optimistic_gradient(alpha, beta), scale_by_learning_rate(learning_rate))


def polyak_sgd(
    max_learning_rate: Any = 1.0,
    scaling: ScalarOrSchedule = 1.0,
    f_min: Any = 0.0,
    eps: Any = 0.0,
    variant: str = "sps",
) -> GradientTransformationExtraArgs:
    """Gradient descent with Polyak's step size; `update` takes the loss as `value`.

        u = -min((f(p) - f_min) / (‖g‖² + ε), max_learning_rate)·scaling·g

    Example:
        >>> opt = polyak_sgd()
        >>> params = jnp.array([1.0, 2.0])
        >>> opt.update(2 * params, opt.init(params), params, value=5.0)[0]
        Array([-0.5, -1. ], dtype=float32)
    """
    return chain(sgd(scaling), scale_by_polyak(f_min, max_learning_rate, eps, variant))


_ZOOM = scale_by_zoom_linesearch(max_linesearch_steps=20, initial_guess_strategy="one")


def lbfgs(
    learning_rate: ScalarOrSchedule | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: GradientTransformation | None = _ZOOM,
) -> GradientTransformationExtraArgs:
    """L-BFGS with a line search; `update` takes `value`, `grad` and `value_fn`.

        u = -η·P·g,   P an estimate of the inverse Hessian; see `scale_by_lbfgs`

    Args:
        learning_rate: a factor of the direction; 1 by default, for a line search.
        memory_size: how many steps are kept.
        scale_init_precond: begin with a multiple of the identity.
        linesearch: finds η, by default with at most 20 steps from 1; None takes 1.

    Example:
        >>> from namoo.api.grad import value_and_grad
        >>> f = lambda p: jnp.sum((p - 1.0) ** 2)
        >>> opt, params = lbfgs(), jnp.array([3.0, 1.0])
        >>> value, grad = value_and_grad(f)(params)
        >>> opt.update(grad, opt.init(params), params, value=value, grad=grad, value_fn=f)[0]
        Array([-1., -0.], dtype=float32)
    """
    downhill = scale(-1.0) if learning_rate is None else scale_by_learning_rate(learning_rate)
    return chain(
        scale_by_lbfgs(memory_size, scale_init_precond),
        downhill,
        identity() if linesearch is None else linesearch,
    )
