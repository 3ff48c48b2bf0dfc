"""Line search: a step that is made shorter until the loss falls enough."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from namoo import debug, lax
from namoo import numpy as jnp
from namoo.api.grad import value_and_grad
from namoo.optim import tree_utils as otu
from namoo.optim.base import GradientTransformationExtraArgs, Updates, require_params


class BacktrackingLinesearchInfo(NamedTuple):
    """How many step sizes were tried, and by how much the last misses the condition."""

    num_linesearch_steps: Any
    decrease_error: Any


class ScaleByBacktrackingLinesearchState(NamedTuple):
    """The last step size, and the loss (and gradient) at its end."""

    learning_rate: Any
    value: Any
    grad: Updates | None
    info: BacktrackingLinesearchInfo


class BacktrackingLineSearchState(NamedTuple):
    """The state of the loop over step sizes."""

    learning_rate: Any
    new_value: Any
    decrease_error: Any
    iter_num: Any


def bind_extra_args(name: str, fn: Callable[..., Any], extra_args: dict[str, Any]) -> Any:
    """`fn` with those keyword arguments of `update` that are its own."""
    unknown = set(extra_args) - set(inspect.signature(fn).parameters)
    if unknown:
        raise TypeError(
            f"{name}: update got the keyword arguments {sorted(unknown)}, which value_fn does not "
            "take. Everything beside value, grad and value_fn is for value_fn."
        )
    return functools.partial(fn, **extra_args)


def real_dtype(params: Any) -> Any:
    """The type of a loss of these parameters."""
    return jnp.real(jnp.zeros([], otu.tree_dtype(params, "lowest"))).dtype


def scale_by_backtracking_linesearch(
    max_backtracking_steps: int,
    slope_rtol: Any = 1e-4,
    decrease_factor: Any = 0.8,
    increase_factor: Any = 1.5,
    max_learning_rate: Any = 1.0,
    atol: Any = 0.0,
    rtol: Any = 0.0,
    store_grad: bool = False,
    verbose: bool = False,
) -> GradientTransformationExtraArgs:
    """Updates times the first of falling step sizes that makes the loss fall enough (Armijo).

        f(p + η·u) ≤ (1 + rtol)·f(p) + η·c·⟨u, ∇f(p)⟩ + atol

    Put it last in a `chain`, after the sign was changed.

    Args:
      max_backtracking_steps: how often the step size is made smaller at most.
      slope_rtol: the factor c.
      decrease_factor: by what it is made smaller.
      increase_factor: the search begins with this multiple of the last step size.
      max_learning_rate: the largest step size.
      atol: an increase that is accepted.
      rtol: an increase relative to the loss that is accepted.
      store_grad: keep the gradient at the end of the step, for `value_and_grad_from_state`.
      verbose: print when no step size was found.

    Returns:
      a transformation whose `update` takes `value`, `grad` and `value_fn`, and further keyword
      arguments for `value_fn`.

    >>> f = lambda p: jnp.sum(p**2)
    >>> params = jnp.array([1.0, 2.0])
    >>> tx = scale_by_backtracking_linesearch(10)
    >>> value, grad = value_and_grad(f)(params)
    >>> updates, state = tx.update(
    ...     -grad, tx.init(params), params, value=value, grad=grad, value_fn=f
    ... )
    >>> updates, state.learning_rate
    (Array([-1.6, -3.2], dtype=float32), Array(0.8, dtype=float32))
    """

    def init(params):
        dtype = real_dtype(params)
        return ScaleByBacktrackingLinesearchState(
            learning_rate=jnp.array(1.0, dtype),
            value=jnp.array(jnp.inf, dtype),
            grad=otu.tree_zeros_like(params) if store_grad else None,
            info=BacktrackingLinesearchInfo(jnp.asarray(0), jnp.array(jnp.inf, dtype)),
        )

    def update(updates, state, params=None, *, value, grad, value_fn, **extra_args):
        require_params("scale_by_backtracking_linesearch", params)
        fn = bind_extra_args("scale_by_backtracking_linesearch", value_fn, extra_args)
        slope = jnp.real(otu.tree_vdot(updates, otu.tree_conj(grad)))

        def error_of(rate, new_value):
            error = new_value - (1.0 + rtol) * value - rate * slope_rtol * slope
            return jnp.maximum(jnp.where(jnp.isnan(error), jnp.inf, error), 0.0)

        def searching(search):
            return ~(search.decrease_error <= atol) & (search.iter_num <= max_backtracking_steps)

        def shorten(search):
            rate = jnp.where(
                search.iter_num > 0, decrease_factor * search.learning_rate, search.learning_rate
            )
            point = otu.tree_add_scale(params, rate, updates)
            new_value = fn(point)
            new = BacktrackingLineSearchState(
                rate, new_value, error_of(rate, new_value), search.iter_num + 1
            )
            return otu.tree_cast_like(new, search)

        rate = jnp.minimum(increase_factor * state.learning_rate, max_learning_rate)
        value = jnp.asarray(value)
        search = lax.while_loop(
            searching,
            shorten,
            BacktrackingLineSearchState(
                rate,
                value,
                jnp.array(jnp.inf, rate.dtype),
                jnp.asarray(0),
            ),
        )
        if verbose:
            lax.cond(
                search.decrease_error > atol,
                lambda: debug.print(
                    "scale_by_backtracking_linesearch: no step size makes the loss fall enough. "
                    "loss {v}, slope {s}, step size {r}, error {e}",
                    v=value,
                    s=slope,
                    r=search.learning_rate,
                    e=search.decrease_error,
                ),
                lambda: None,
            )
        new_grad = None
        if store_grad:
            point = otu.tree_add_scale(params, search.learning_rate, updates)
            new_grad = value_and_grad(fn)(point)[1]
        # No finite loss was found: stay where it is.
        rate = jnp.where(jnp.isinf(search.decrease_error), 0.0, search.learning_rate)
        new_state = ScaleByBacktrackingLinesearchState(
            rate,
            search.new_value,
            new_grad,
            BacktrackingLinesearchInfo(search.iter_num, search.decrease_error),
        )
        return otu.tree_scale(rate, updates), otu.tree_cast_like(new_state, state)

    return GradientTransformationExtraArgs(init, update)


def value_and_grad_from_state(value_fn: Callable[..., Any]) -> Callable[..., tuple[Any, Updates]]:
    """Loss and gradient from the state of a line search that has them; else they are computed.

    Args:
      value_fn: the loss, a function of the parameters and more.

    Returns:
      a function of the same arguments, and of `state`.

    Raises:
      ValueError: (by that function) the state holds no loss or no gradient.

    >>> from namoo.optim import apply_updates, lbfgs
    >>> f = lambda p: jnp.sum((p - 1.0) ** 2)
    >>> params, opt = jnp.array([3.0, -2.0]), lbfgs()
    >>> state = opt.init(params)
    >>> for _ in range(3):
    ...     value, grad = value_and_grad_from_state(f)(params, state=state)
    ...     updates, state = opt.update(grad, state, params, value=value, grad=grad, value_fn=f)
    ...     params = apply_updates(params, updates)
    >>> params
    Array([1., 1.], dtype=float32)
    """

    def from_state(params, *args, state, **kwargs):
        value, grad = otu.tree_get(state, "value"), otu.tree_get(state, "grad")
        if value is None or grad is None:
            raise ValueError(
                "value_and_grad_from_state: the state holds no `value` and `grad`. Use an "
                "optimiser that keeps them, such as lbfgs() or "
                "scale_by_backtracking_linesearch(..., store_grad=True)."
            )
        return lax.cond(
            jnp.isfinite(value),
            lambda: (value, grad),
            lambda: otu.tree_cast_like(
                value_and_grad(value_fn)(params, *args, **kwargs), (value, grad)
            ),
        )

    return from_state
