"""Several small steps as one: gradients that are added up before they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from namoo import numpy as jnp
from namoo import tree
from namoo._base.source_context import entry_class
from namoo.control.cond import cond
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    GradientTransformation,
    Params,
    Updates,
    map_updates,
    require_same_shapes,
    with_extra_args_support,
)
from namoo.optim.numerics import safe_increment
from namoo.optim.tree_utils.casting import canonical

__all__ = [
    "apply_every", "ApplyEvery", "MultiSteps", "MultiStepsState", "ShouldSkipUpdateFunction",
    "skip_large_updates", "skip_not_finite",
]  # fmt: skip


class ApplyEvery(NamedTuple):
    """The step within a round, and the sum of its updates."""

    count: Any
    grad_acc: Updates


def apply_every(k: Any = 1) -> GradientTransformation:
    """The sum of `k` updates at every `k`-th step, zero at the others.

    Example:
        >>> tx = apply_every(2)
        >>> state = tx.init(jnp.zeros(1))
        >>> for g in [1.0, 2.0]:
        ...     updates, state = tx.update(jnp.array([g]), state)
        ...     print(updates)
        [0.]
        [3.]
    """

    def init(params):
        return ApplyEvery(jnp.zeros([], jnp.int32), otu.tree_zeros_like(params))

    def update(updates, state, params=None):
        del params
        step = state.count % k
        total = map_updates(lambda g, t: (step != 0) * t + g, updates, state.grad_acc)
        new = tree.map(lambda t: (step == k - 1) * t, total)
        return new, ApplyEvery(safe_increment(state.count) % k, total)

    return GradientTransformation(init, update)


class ShouldSkipUpdateFunction(Protocol):
    """Decides whether a small step is skipped, and keeps its own state."""

    def __call__(
        self, updates: Updates, gradient_step: Any, params: Params | None
    ) -> tuple[Any, Any]: ...


def skip_not_finite(updates: Updates, gradient_step: Any, params: Params | None) -> tuple[Any, Any]:
    """Skip updates that hold inf or nan; for `MultiSteps`.

    Example:
        >>> skip_not_finite([jnp.array([1.0, jnp.nan])], 0, None)[0]
        Array(True, dtype=bool)
    """
    del gradient_step, params
    bad = sum(jnp.sum(~jnp.isfinite(u)) for u in tree.leaves(updates))
    should_skip = jnp.asarray(bad > 0)
    return should_skip, {"should_skip": should_skip, "num_not_finite": bad}


def skip_large_updates(
    updates: Updates, gradient_step: Any, params: Params | None, max_squared_norm: Any
) -> tuple[Any, Any]:
    """Skip updates whose squared norm is not below a bound; for `MultiSteps`.

    Example:
        >>> skip_large_updates([jnp.array([3.0])], 0, None, max_squared_norm=4.0)[0]
        Array(True, dtype=bool)
    """
    del gradient_step, params
    square = sum(jnp.sum(u**2) for u in tree.leaves(updates))
    should_skip = jnp.logical_not(square < max_squared_norm)
    return should_skip, {"should_skip": should_skip, "norm_squared": square}


class MultiStepsState(NamedTuple):
    """The position in a round, the number of rounds, and the accumulated gradients."""

    mini_step: Any
    gradient_step: Any
    inner_opt_state: Any
    acc_grads: Any
    skip_state: Any = ()


def _never_skip(updates, gradient_step, params):
    del updates, gradient_step, params
    return jnp.array(False), ()


@entry_class
class MultiSteps:
    """One step of an optimiser for every `k` gradients, with their mean.

    The updates are zero until the `k`-th gradient.

    Args:
        opt: the optimiser.
        every_k_schedule: `k`, or a function of the number of the optimiser's steps.
        use_grad_mean: the mean of the gradients; False takes their sum.
        should_skip_update_fn: decides which gradients are skipped, such as `skip_not_finite`.
        accumulator_dtype: the type in which gradients are added up.

    Example:
        >>> from namoo.optim import sgd
        >>> opt = MultiSteps(sgd(0.1), every_k_schedule=2)
        >>> params = jnp.array([0.0])
        >>> state = opt.init(params)
        >>> for g in [1.0, 3.0]:
        ...     updates, state = opt.update(jnp.array([g]), state, params)
        ...     print(updates, opt.has_updated(state))
        [0.] False
        [-0.2] True
    """

    def __init__(
        self,
        opt: GradientTransformation,
        every_k_schedule: int | Callable[[Any], Any],
        use_grad_mean: bool = True,
        should_skip_update_fn: ShouldSkipUpdateFunction | None = None,
        accumulator_dtype: Any = jnp.float32,
    ):
        self._opt = with_extra_args_support(opt)
        self._every = every_k_schedule
        self._mean = use_grad_mean
        self._should_skip: Any = should_skip_update_fn or _never_skip
        self._dtype = canonical(accumulator_dtype)

    @property
    def inner_opt(self) -> GradientTransformation:
        """The optimiser that is applied to the sums."""
        return self._opt

    def init(self, params: Params) -> MultiStepsState:
        """The state before the first gradient."""
        step = jnp.zeros([], jnp.int32)
        _, skip_state = self._should_skip(otu.tree_zeros_like(params), step, params)
        return MultiStepsState(
            mini_step=jnp.zeros([], jnp.int32),
            gradient_step=step,
            inner_opt_state=self._opt.init(params),
            acc_grads=otu.tree_zeros_like(params, self._dtype),
            skip_state=skip_state,
        )

    def _accumulate(self, updates, state, params, skip_state, extra_args):
        k = self._every(state.gradient_step) if callable(self._every) else self._every
        if self._mean:
            acc = map_updates(
                lambda g, a: a + (g - a) / (state.mini_step + 1), updates, state.acc_grads
            )
        else:
            acc = map_updates(lambda g, a: g + a, updates, state.acc_grads)
        emit = state.mini_step == k - 1
        new, inner = self._opt.update(
            otu.tree_cast_like(acc, updates), state.inner_opt_state, params, **extra_args
        )
        inner = tree.map(
            lambda old, n: jnp.where(emit, n, old).astype(old.dtype), state.inner_opt_state, inner
        )
        new_state = MultiStepsState(
            mini_step=safe_increment(state.mini_step) % k,
            gradient_step=jnp.where(emit, safe_increment(state.gradient_step), state.gradient_step),
            inner_opt_state=inner,
            acc_grads=tree.map(lambda a: jnp.where(emit, 0, a).astype(self._dtype), acc),
            skip_state=skip_state,
        )
        return tree.map(lambda u: jnp.where(emit, u, jnp.zeros_like(u)), new), new_state

    def update(
        self, updates: Updates, state: MultiStepsState, params: Params | None = None, **extra_args
    ) -> tuple[Updates, MultiStepsState]:
        """Add a gradient; the updates are zero unless it is the `k`-th."""
        new_updates, new_state = self._step(updates, state, params, extra_args)
        require_same_shapes(state, new_state)
        return new_updates, new_state

    def _step(self, updates, state, params, extra_args):
        skip, skip_state = self._should_skip(updates, state.gradient_step, params)
        if self._should_skip is _never_skip:
            return self._accumulate(updates, state, params, skip_state, extra_args)
        if (skip.dtype, skip.shape) != (jnp.bool_, ()):
            raise ValueError(
                "MultiSteps: should_skip_update_fn must return a scalar bool first, got "
                f"{skip.dtype} of shape {skip.shape}."
            )
        new, new_state = self._accumulate(updates, state, params, skip_state, extra_args)
        return cond(
            skip,
            lambda: (otu.tree_zeros_like(new), state._replace(skip_state=skip_state)),
            lambda: (new, new_state),
        )

    def has_updated(self, state: Any) -> Any:
        """Whether the last gradient ended a round."""
        return (state.mini_step == 0) & (state.gradient_step > 0)

    def gradient_transformation(self) -> GradientTransformation:
        """The pair of `init` and `update`."""
        return GradientTransformation(self.init, self.update)
