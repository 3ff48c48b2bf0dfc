"""Gradient descent and its kin: momentum, signs, norms, noise, line searches.

Every one has the learning rate first, a number or a schedule, here α.
"""

from __future__ import annotations

from typing import Any

from namoo.optim.adding import add_decayed_weights, add_noise
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    MaskOrFn,
    ScalarOrSchedule,
    identity,
)
from namoo.optim.combine import chain
from namoo.optim.masking import masked
from namoo.optim.momentum import ema, trace
from namoo.optim.quasi_newton import scale_by_lbfgs
from namoo.optim.scaling import (
    scale,
    scale_by_learning_rate,
    scale_by_optimistic_gradient,
    scale_by_polyak,
    scale_by_sign,
    scale_by_trust_ratio,
)
from namoo.optim.sign_steps import scale_by_rprop
from namoo.optim.zoom import scale_by_zoom_linesearch


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
      momentum: how much of the sum of gradients stays; none by default.
      nesterov: look one step ahead.
      accumulator_dtype: the type of the sum.

    >>> from namoo import numpy as jnp
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

    >>> from namoo import numpy as jnp
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

    >>> from namoo import numpy as jnp
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
    """Rprop: step sizes of their own for all elements; see `scale_by_rprop`.

    >>> from namoo import numpy as jnp
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
    """LARS: momentum of gradients as long as the parameters, for large batches.

        d = g + λ·p,   t ← -α·c·‖p‖ / (‖d‖ + ε)·d + momentum·t,   u = t

    Args:
      learning_rate: a number or a schedule.
      weight_decay: the factor λ.
      weight_decay_mask: what decays.
      trust_coefficient: the factor c.
      eps: added to the denominator.
      trust_ratio_mask: what is rescaled.
      momentum: how much of the sum of updates stays.
      nesterov: look one step ahead.

    >>> from namoo import numpy as jnp
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
    """Fromage: gradients as long as the parameters, whose length does not grow.

        k = 1 / √(1 + α²),   u = -α·k·‖p‖ / ‖g‖·g + (k - 1)·p

    >>> from namoo import numpy as jnp
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

    >>> from namoo import numpy as jnp
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

    >>> from namoo import numpy as jnp
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

    >>> from namoo import numpy as jnp
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

    >>> from namoo import numpy as jnp
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
