"""Line searches: step sizes chosen by evaluating the loss.

Backtracking shortens a step until the loss falls enough. The zoom search finds an interval that
contains a good step size, and shrinks it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from namoo import lax
from namoo import numpy as jnp
from namoo._base.lazy import later
from namoo.optim import tree_utils as otu
from namoo.optim.base import GradientTransformationExtraArgs, Updates, require_params

__all__ = [
    "BacktrackingLinesearchInfo", "scale_by_backtracking_linesearch", "scale_by_zoom_linesearch",
    "ScaleByBacktrackingLinesearchState", "ScaleByZoomLinesearchState",
    "value_and_grad_from_state", "ZoomLinesearchInfo",
]  # fmt: skip

# Most optimisers have no line search, and need not load the modules it uses.
debug = later("namoo.debug")
gradients = later("namoo.api.grad")


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
    """`fn` with those keyword arguments of `update` that it takes."""
    unknown = set(extra_args) - set(inspect.signature(fn).parameters)
    if unknown:
        raise TypeError(
            f"{name}: update got the keyword arguments {sorted(unknown)}, which value_fn does not "
            "take. All but value, grad and value_fn are passed to value_fn."
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

    Put it last in a `chain`, after the change of sign.

    Args:
        max_backtracking_steps: the largest number of reductions of the step size.
        slope_rtol: the factor c.
        decrease_factor: the factor of a reduction.
        increase_factor: the search begins with this multiple of the last step size.
        max_learning_rate: the largest step size.
        atol: an increase that is accepted.
        rtol: an increase relative to the loss that is accepted.
        store_grad: keep the gradient at the end of the step, for `value_and_grad_from_state`.
        verbose: print when no step size was found.

    Returns:
        a transformation whose `update` takes `value`, `grad` and `value_fn`, and further keyword
        arguments for `value_fn`.

    Example:
        >>> import namoo
        >>> f = lambda p: jnp.sum(p**2)
        >>> params = jnp.array([1.0, 2.0])
        >>> tx = scale_by_backtracking_linesearch(10)
        >>> value, grad = namoo.value_and_grad(f)(params)
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
            new_grad = gradients.value_and_grad(fn)(point)[1]
        # No finite loss was found: do not move.
        rate = jnp.where(jnp.isinf(search.decrease_error), 0.0, search.learning_rate)
        new_state = ScaleByBacktrackingLinesearchState(
            rate,
            search.new_value,
            new_grad,
            BacktrackingLinesearchInfo(search.iter_num, search.decrease_error),
        )
        return otu.tree_scale(rate, updates), otu.tree_cast_like(new_state, state)

    return GradientTransformationExtraArgs(init, update)


class ZoomLinesearchInfo(NamedTuple):
    """How many step sizes were tried, and by how much the last misses the two conditions."""

    num_linesearch_steps: Any
    decrease_error: Any
    curvature_error: Any


class ScaleByZoomLinesearchState(NamedTuple):
    """The last step size, the loss and gradient at its end, and how it was found."""

    learning_rate: Any
    value: Any
    grad: Updates
    info: ZoomLinesearchInfo


class _Point(NamedTuple):
    """A step size, and the loss and its slope there."""

    step: Any
    value: Any
    slope: Any


class _Search(NamedTuple):
    """The last point that was tried, the ends of the interval, the best safe point so far."""

    count: Any
    last: _Point
    grad: Updates
    low: _Point
    high: _Point
    reference: _Point
    safe: _Point
    safe_grad: Updates
    decrease_error: Any
    curvature_error: Any
    found: Any
    done: Any
    failed: Any


class _Options(NamedTuple):
    """The arguments of `scale_by_zoom_linesearch` that a search needs."""

    max_linesearch_steps: int
    max_learning_rate: Any
    tol: Any
    increase_factor: Any
    slope_rtol: Any
    curv_rtol: Any
    approx_dec_rtol: Any
    stepsize_precision: Any


def _cubic_minimum(a: _Point, b: _Point, c: _Point) -> Any:
    """Where the cubic through three points, with the slope of the first, has its minimum."""
    db, dc = b.step - a.step, c.step - a.step
    rb = b.value - a.value - a.slope * db
    rc = c.value - a.value - a.slope * dc
    scale = (db * dc) ** 2 * (db - dc)
    third = (dc**2 * rb - db**2 * rc) / scale
    second = (db**3 * rc - dc**3 * rb) / scale
    root = jnp.sqrt(second * second - 3.0 * third * a.slope)
    return a.step + (root - second) / (3.0 * third)


def _parabola_minimum(a: _Point, b: _Point) -> Any:
    """Where the parabola through two points, with the slope of the first, has its minimum."""
    d = b.step - a.step
    second = (b.value - a.value - a.slope * d) / d**2
    return a.step - a.slope / (2.0 * second)


def _wolfe_errors(new: _Point, start: _Point, options: _Options) -> tuple[Any, Any]:
    """By how much a point misses each of the two conditions."""
    rise = new.value - start.value
    decrease = rise - options.slope_rtol * new.step * start.slope
    if options.approx_dec_rtol is not None:
        flatter = new.slope - (2 * options.slope_rtol - 1.0) * start.slope
        nearly = jnp.maximum(flatter, rise - options.approx_dec_rtol * jnp.abs(start.value))
        decrease = jnp.minimum(nearly, decrease)
    curvature = jnp.abs(new.slope) - options.curv_rtol * jnp.abs(start.slope)

    def missed(error):
        return jnp.where(jnp.isnan(error), jnp.inf, jnp.maximum(error, 0.0))

    return missed(decrease), missed(curvature)


def _step_in_interval(search: _Search) -> Any:
    """A step inside the interval: the minimum of a cubic, of a parabola, or the midpoint."""
    low, high = search.low, search.high
    length = jnp.abs(high.step - low.step)
    left, right = jnp.minimum(low.step, high.step), jnp.maximum(low.step, high.step)

    def inside(step, margin):
        return (step > left + margin * length) & (step < right - margin * length)

    cubic = _cubic_minimum(low, high, search.reference)
    parabola = _parabola_minimum(low, high)
    otherwise = jnp.where(inside(parabola, 0.1), parabola, (low.step + high.step) / 2.0)
    return jnp.where(inside(cubic, 0.2), cubic, otherwise)


def _next_step(search: _Search, guess: Any, options: _Options) -> tuple[Any, Any]:
    """The next step to try, and whether it is the largest one, outside of an interval."""
    outside = jnp.where(search.count == 0, guess, options.increase_factor * search.last.step)
    is_largest = jnp.array(False)
    if options.max_learning_rate is not None:
        is_largest = outside >= options.max_learning_rate
        outside = jnp.minimum(outside, options.max_learning_rate)
    return jnp.where(search.found, _step_in_interval(search), outside), is_largest


def _advance(
    search: _Search, new: _Point, new_grad: Updates, start: _Point, is_largest: Any, o: _Options
) -> _Search:
    """The search after a point was tried."""
    decrease, curvature = _wolfe_errors(new, start, o)
    good = jnp.maximum(decrease, curvature) <= o.tol

    # Until there is an interval: the new point ends one, or the search goes on.
    is_high = (decrease > 0.0) | ((new.value >= search.last.value) & (search.count > 0))
    is_low = (new.slope >= 0.0) & ~is_high
    outer_low = otu.tree_where(is_low, new, search.last)
    outer_high = otu.tree_where(is_low, search.last, new)
    outer_found = is_high | is_low | good
    outer_done = good | (is_largest & ~outer_found)

    # Within it: the new point replaces one of the ends.
    low, high = search.low, search.high
    too_high = (decrease > 0.0) | (new.value >= low.value)
    turns = (new.slope * (high.step - low.step) >= 0.0) & ~too_high
    inner_high = otu.tree_where(too_high, new, otu.tree_where(turns, low, high))
    inner_low = otu.tree_where(too_high, low, new)
    inner_reference = otu.tree_where(too_high | turns, high, low)

    is_safe = (decrease <= o.tol) & (~search.found | (new.value < search.safe.value))
    safe = otu.tree_where(is_safe, new, search.safe)
    done = jnp.where(search.found, good, outer_done)
    narrow = jnp.abs(high.step - low.step) <= o.stepsize_precision
    given_up = search.found & narrow & (safe.step > 0.0)
    return _Search(
        count=search.count + 1,
        last=new,
        grad=otu.tree_cast_like(new_grad, search.grad),
        low=otu.tree_where(search.found, inner_low, outer_low),
        high=otu.tree_where(search.found, inner_high, outer_high),
        reference=otu.tree_where(search.found, inner_reference, outer_low),
        safe=safe,
        safe_grad=otu.tree_cast_like(
            otu.tree_where(is_safe, new_grad, search.safe_grad), search.safe_grad
        ),
        decrease_error=decrease,
        curvature_error=curvature,
        found=search.found | outer_found,
        done=done,
        failed=((search.count + 1 >= o.max_linesearch_steps) | given_up) & ~done,
    )


def _report_failure(search: _Search, start: _Point) -> None:
    """Prints a search that found no step size."""
    lax.cond(
        search.failed,
        lambda: debug.print(
            "scale_by_zoom_linesearch: no step size meets both conditions. loss {v}, "
            "slope {s} (negative downhill), last step size {r}, step size after which the "
            "loss falls {safe}, errors {d} and {c}",
            v=start.value,
            s=start.slope,
            r=search.last.step,
            safe=search.safe.step,
            d=search.decrease_error,
            c=search.curvature_error,
        ),
        lambda: None,
    )


def scale_by_zoom_linesearch(
    max_linesearch_steps: int,
    max_learning_rate: Any = None,
    tol: Any = 0.0,
    increase_factor: Any = 2.0,
    slope_rtol: Any = 1e-4,
    curv_rtol: Any = 0.9,
    approx_dec_rtol: Any = 1e-6,
    stepsize_precision: Any = 1e-5,
    initial_guess_strategy: str = "keep",
    verbose: bool = False,
) -> GradientTransformationExtraArgs:
    """Updates times a step size after which the loss is lower and flatter (strong Wolfe).

        f(p + η·u) ≤ f(p) + c₁·η·⟨u, ∇f(p)⟩,   |⟨u, ∇f(p + η·u)⟩| ≤ c₂·|⟨u, ∇f(p)⟩|

    Put it last in a `chain`, after the change of sign.

    Args:
        max_linesearch_steps: the largest number of step sizes to try.
        max_learning_rate: the largest step size; there is none by default.
        tol: the tolerance of the conditions.
        increase_factor: the growth factor of the step size until an interval is found.
        slope_rtol: the factor c₁.
        curv_rtol: the factor c₂.
        approx_dec_rtol: near a minimum, where losses differ only by rounding, the first condition
            is also met by slope_step ≤ (2·c₁ - 1)·slope and a loss that rises by no more than this
            fraction; None requires the condition itself.
        stepsize_precision: the length below which an interval is not divided.
        initial_guess_strategy: begin with 'one', or 'keep' the last step size.
        verbose: print when no step size was found.

    Returns:
        a transformation whose `update` takes `value`, `grad` and `value_fn`, and further keyword
        arguments for `value_fn`.

    Example:
        >>> import namoo
        >>> f = lambda p: jnp.sum(p**2)
        >>> params = jnp.array([1.0, 2.0])
        >>> tx = scale_by_zoom_linesearch(10)
        >>> value, grad = namoo.value_and_grad(f)(params)
        >>> updates, state = tx.update(
        ...     -grad, tx.init(params), params, value=value, grad=grad, value_fn=f
        ... )
        >>> updates, state.learning_rate
        (Array([-1., -2.], dtype=float32), Array(0.5, dtype=float32))
    """
    if initial_guess_strategy not in ("one", "keep"):
        raise ValueError(
            "scale_by_zoom_linesearch: initial_guess_strategy must be 'one' or 'keep', got "
            f"{initial_guess_strategy!r}."
        )

    options = _Options(
        max_linesearch_steps,
        max_learning_rate,
        tol,
        increase_factor,
        slope_rtol,
        curv_rtol,
        approx_dec_rtol,
        stepsize_precision,
    )

    def init(params):
        dtype = real_dtype(params)
        inf = jnp.array(jnp.inf, dtype)
        return ScaleByZoomLinesearchState(
            learning_rate=jnp.array(1.0, dtype),
            value=inf,
            grad=otu.tree_zeros_like(params),
            info=ZoomLinesearchInfo(jnp.asarray(0), inf, inf),
        )

    def update(updates, state, params=None, *, value, grad, value_fn, **extra_args):
        require_params("scale_by_zoom_linesearch", params)
        value_fn = bind_extra_args("scale_by_zoom_linesearch", value_fn, extra_args)
        dtype = state.value.dtype
        guess = state.learning_rate if initial_guess_strategy == "keep" else jnp.array(1.0, dtype)

        def slope_of(gradient):
            return jnp.real(otu.tree_vdot(otu.tree_conj(gradient), updates)).astype(dtype)

        start = _Point(jnp.array(0.0, dtype), jnp.asarray(value).astype(dtype), slope_of(grad))

        def try_step(search):
            step, is_largest = _next_step(search, guess, options)
            new_value, new_grad = gradients.value_and_grad(value_fn)(
                otu.tree_add_scale(params, step, updates)
            )
            new = _Point(step, new_value.astype(dtype), slope_of(new_grad))
            return _advance(search, new, new_grad, start, is_largest, options)

        no, inf = jnp.array(False), jnp.array(jnp.inf, dtype)
        search = lax.while_loop(
            lambda search: ~(search.done | search.failed),
            try_step,
            _Search(
                jnp.asarray(0), start, grad, start, start, start, start, grad, inf, inf, no, no, no
            ),
        )
        if verbose:
            _report_failure(search, start)
        # Without success: the best point at which the loss falls, or none where it is not finite.
        use_safe = search.failed & ((search.safe.step > 0.0) | jnp.isinf(search.decrease_error))
        end = otu.tree_where(use_safe, search.safe, search.last)
        end_grad = otu.tree_where(use_safe, search.safe_grad, search.grad)
        info = ZoomLinesearchInfo(search.count, search.decrease_error, search.curvature_error)
        new_state = ScaleByZoomLinesearchState(end.step, end.value, end_grad, info)
        return otu.tree_scale(end.step, updates), otu.tree_cast_like(new_state, state)

    return GradientTransformationExtraArgs(init, update)


def value_and_grad_from_state(value_fn: Callable[..., Any]) -> Callable[..., tuple[Any, Updates]]:
    """Loss and gradient from the state of a line search that has them; else they are computed.

    Args:
        value_fn: the loss, a function of the parameters and more.

    Returns:
        a function of the same arguments, and of `state`.

    Raises:
        ValueError: (by that function) the state holds no loss or no gradient.

    Example:
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
                gradients.value_and_grad(value_fn)(params, *args, **kwargs), (value, grad)
            ),
        )

    return from_state
