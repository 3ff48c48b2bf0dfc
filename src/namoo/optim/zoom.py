"""Line search: an interval that holds a good step size, then ever smaller ones within it."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import debug, lax
from namoo import numpy as jnp
from namoo.api.grad import value_and_grad
from namoo.optim import tree_utils as otu
from namoo.optim.backtracking import bind_extra_args, real_dtype
from namoo.optim.base import GradientTransformationExtraArgs, Updates, require_params


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

    Put it last in a `chain`, after the sign was changed.

    Args:
      max_linesearch_steps: how many step sizes are tried at most.
      max_learning_rate: the largest step size; there is none by default.
      tol: by how much the conditions may be missed.
      increase_factor: by what the step size grows until an interval is found.
      slope_rtol: the factor c₁.
      curv_rtol: the factor c₂.
      approx_dec_rtol: near a minimum, where losses differ by rounding only, the first condition is
        also met by slope_step ≤ (2·c₁ - 1)·slope and a loss that rises by no more than this part;
        None asks for the condition itself.
      stepsize_precision: below this length an interval is not divided further.
      initial_guess_strategy: begin with 'one', or 'keep' the last step size.
      verbose: print when no step size was found.

    Returns:
      a transformation whose `update` takes `value`, `grad` and `value_fn`, and further keyword
      arguments for `value_fn`.

    >>> f = lambda p: jnp.sum(p**2)
    >>> params = jnp.array([1.0, 2.0])
    >>> tx = scale_by_zoom_linesearch(10)
    >>> value, grad = value_and_grad(f)(params)
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

    def errors(point, start):
        """By how much a point misses each of the two conditions."""
        rise = point.value - start.value
        decrease = rise - slope_rtol * point.step * start.slope
        if approx_dec_rtol is not None:
            flatter = point.slope - (2 * slope_rtol - 1.0) * start.slope
            nearly = jnp.maximum(flatter, rise - approx_dec_rtol * jnp.abs(start.value))
            decrease = jnp.minimum(nearly, decrease)
        curvature = jnp.abs(point.slope) - curv_rtol * jnp.abs(start.slope)
        return tuple(
            jnp.where(jnp.isnan(e), jnp.inf, jnp.maximum(e, 0.0)) for e in (decrease, curvature)
        )

    def next_in_interval(search):
        """A step inside the interval: by cubic, by parabola, or its middle."""
        low, high = search.low, search.high
        length = jnp.abs(high.step - low.step)
        left, right = jnp.minimum(low.step, high.step), jnp.maximum(low.step, high.step)

        def inside(step, part):
            return (step > left + part * length) & (step < right - part * length)

        cubic = _cubic_minimum(low, high, search.reference)
        parabola = _parabola_minimum(low, high)
        otherwise = jnp.where(inside(parabola, 0.1), parabola, (low.step + high.step) / 2.0)
        return jnp.where(inside(cubic, 0.2), cubic, otherwise)

    def next_outside(search, guess):
        """A step beyond the last, and whether it is the largest."""
        step = jnp.where(search.count == 0, guess, increase_factor * search.last.step)
        if max_learning_rate is None:
            return step, jnp.array(False)
        return jnp.minimum(step, max_learning_rate), step >= max_learning_rate

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

        def advance(search):
            outside, largest_reached = next_outside(search, guess)
            step = jnp.where(search.found, next_in_interval(search), outside)
            new_value, new_grad = value_and_grad(value_fn)(
                otu.tree_add_scale(params, step, updates)
            )
            new = _Point(step, new_value.astype(dtype), slope_of(new_grad))
            decrease, curvature = errors(new, start)
            good = jnp.maximum(decrease, curvature) <= tol

            # Until there is an interval: the new point ends one, or the search goes on.
            is_high = (decrease > 0.0) | ((new.value >= search.last.value) & (search.count > 0))
            is_low = (new.slope >= 0.0) & ~is_high
            outer_low = otu.tree_where(is_low, new, search.last)
            outer_high = otu.tree_where(is_low, search.last, new)
            outer_found = is_high | is_low | good
            outer_done = good | (largest_reached & ~outer_found)

            # Within it: the new point replaces one of the ends.
            low, high = search.low, search.high
            too_high = (decrease > 0.0) | (new.value >= low.value)
            turns = (new.slope * (high.step - low.step) >= 0.0) & ~too_high
            inner_high = otu.tree_where(too_high, new, otu.tree_where(turns, low, high))
            inner_low = otu.tree_where(too_high, low, new)
            inner_reference = otu.tree_where(too_high | turns, high, low)

            is_safe = (decrease <= tol) & (~search.found | (new.value < search.safe.value))
            safe = otu.tree_where(is_safe, new, search.safe)
            done = jnp.where(search.found, good, outer_done)
            narrow = jnp.abs(high.step - low.step) <= stepsize_precision
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
                failed=((search.count + 1 >= max_linesearch_steps) | given_up) & ~done,
            )

        no, inf = jnp.array(False), jnp.array(jnp.inf, dtype)
        search = lax.while_loop(
            lambda search: ~(search.done | search.failed),
            advance,
            _Search(
                jnp.asarray(0), start, grad, start, start, start, start, grad, inf, inf, no, no, no
            ),
        )
        if verbose:
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
        # Without success: the best point at which the loss falls, or none where it is not finite.
        use_safe = search.failed & ((search.safe.step > 0.0) | jnp.isinf(search.decrease_error))
        end = otu.tree_where(use_safe, search.safe, search.last)
        end_grad = otu.tree_where(use_safe, search.safe_grad, search.grad)
        info = ZoomLinesearchInfo(search.count, search.decrease_error, search.curvature_error)
        new_state = ScaleByZoomLinesearchState(end.step, end.value, end_grad, info)
        return otu.tree_scale(end.step, updates), otu.tree_cast_like(new_state, state)

    return GradientTransformationExtraArgs(init, update)
