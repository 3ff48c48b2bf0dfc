"""Line search: a step that satisfies the strong Wolfe conditions.

Nocedal and Wright (2006), "Numerical Optimization", algorithms 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from namoo import lax, tree_util
from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.api.grad import value_and_grad
from namoo.core.array import Array

SUFFICIENT = 1e-4
"""The fraction of the first slope by which the value must fall."""
CURVATURE = 0.9
"""The fraction of the first slope that may remain at the end."""
ZOOMS = 30


class Point(NamedTuple):
    """A step: its length, the value and the slope there, and the gradient."""

    step: Any
    value: Any
    slope: Any
    gradient: Any


class Search(NamedTuple):
    """The result of a line search."""

    point: Point
    failed: Any
    status: Any
    evaluations: Any


def choose(condition: Any, a: Any, b: Any) -> Any:
    """The tree `a` where the condition holds, else `b`."""
    return tree_util.tree_map(lambda x, y: jnp.where(condition, x, y), a, b)


def dot(x: Array, y: Array) -> Array:
    return jnp.dot(x, y, precision="highest")


def _cubic_minimum(low: Point, high: Point, third: Any, third_value: Any) -> Any:
    """Where the cubic through three values, with one slope, has its minimum."""
    b, c = high.step - low.step, third - low.step
    rise_b = high.value - low.value - low.slope * b
    rise_c = third_value - low.value - low.slope * c
    denominator = (b * c) ** 2 * (b - c)
    cubic = (c**2 * rise_b - b**2 * rise_c) / denominator
    square = (b**3 * rise_c - c**3 * rise_b) / denominator
    radical = square * square - 3 * cubic * low.slope
    return low.step + (-square + jnp.sqrt(radical)) / (3 * cubic)


def _quadratic_minimum(low: Point, high: Point) -> Any:
    """Where the parabola through two values, with one slope, has its minimum."""
    width = high.step - low.step
    square = (high.value - low.value - low.slope * width) / width**2
    return low.step - low.slope / (2 * square)


class _Line:
    """The function along the line x + t·p, and the conditions of a good step."""

    def __init__(self, fun: Callable, x: Array, direction: Array, start: Point):
        self.fun, self.x, self.direction, self.start = fun, x, direction, start
        self.narrow = 1e-10 if dtypes.finfo(x.dtype).bits == 64 else 1e-5

    def at(self, step: Any) -> Point:
        step = jnp.asarray(step, dtypes.finfo(self.direction.dtype).dtype)
        value, gradient = value_and_grad(self.fun)(self.x + step * self.direction)
        point = Point(step, value, jnp.real(dot(gradient, self.direction)), gradient)
        return tree_util.tree_map(lambda x, like: x.astype(like.dtype), point, self.start)

    def is_too_high(self, point: Point) -> Any:
        drop = SUFFICIENT * point.step * self.start.slope
        return point.value > self.start.value + drop

    def is_flat(self, point: Point) -> Any:
        return jnp.abs(point.slope) <= -CURVATURE * self.start.slope

    def between(self, low: Point, high: Point, old: Point, count: Any) -> Any:
        """A step inside of an interval: the minimum of a cubic, of a parabola, or the midpoint."""
        width = high.step - low.step
        left, right = jnp.minimum(low.step, high.step), jnp.maximum(low.step, high.step)
        size = jnp.abs(width)
        cubic = _cubic_minimum(low, high, old.step, old.value)
        parabola = _quadratic_minimum(low, high)
        out = low.step + width / 2
        out = jnp.where(
            (parabola > left + 0.1 * size) & (parabola < right - 0.1 * size), parabola, out
        )
        is_inside = (cubic > left + 0.2 * size) & (cubic < right - 0.2 * size)
        return jnp.where((count > 0) & is_inside, cubic, out)

    def zoom(self, low: Point, high: Point, is_needed: Any) -> tuple[Point, Any, Any]:
        """A good step between two others; whether there is none; the number of points tried.

        `low` has the smallest value of those that decrease enough, and its slope points to `high`.
        """

        def goes_on(state):
            _, _, _, _, done, failed, _ = state
            return is_needed & ~done & ~failed

        def narrow(state):
            low, high, old, best, done, failed, count = state
            failed = failed | (jnp.abs(high.step - low.step) <= self.narrow)
            new = self.at(self.between(low, high, old, count))
            is_high = self.is_too_high(new) | (new.value >= low.value)
            is_found = ~is_high & self.is_flat(new)
            points_away = ~is_high & ~is_found & (new.slope * (high.step - low.step) >= 0)
            old = choose(is_high | points_away, high, low)
            high = choose(is_high, new, choose(points_away, low, high))
            best = choose(is_found, new, best)
            low = choose(is_high, low, new)
            count = count + 1
            return low, high, old, best, done | is_found, failed | (count >= ZOOMS), count

        no = jnp.asarray(False)
        middle = low._replace(step=(low.step + high.step) / 2, value=(low.value + high.value) / 2)
        state = (low, high, middle, low, no, no, 0)
        low, _, _, best, done, failed, count = lax.while_loop(goes_on, narrow, state)
        # Fall back to the lowest point.
        return choose(done, best, low), is_needed & ~done, count


def line_search(
    fun: Callable,
    x: Array,
    direction: Array,
    value: Array,
    gradient: Array,
    maxiter: int,
    last_value: Array | None = None,
) -> Search:
    """A step along a direction in which a function falls.

    Args:
        fun: the function.
        x: where to start.
        direction: the direction.
        value: the function's value at `x`.
        gradient: its gradient at `x`.
        maxiter: the largest number of doublings of the step.
        last_value: the value before, from which a first step is guessed.

    Returns:
        The point, and a status: 0, or 1 if no step was found between two others, or 3 if none was
        found after `maxiter` doublings.
    """
    slope = jnp.real(dot(gradient, direction))
    start = Point(jnp.zeros((), slope.dtype), value, slope, gradient)
    line = _Line(fun, x, direction, start)
    first: Any = 1.0
    if last_value is not None:
        guess = 1.01 * 2 * (value - last_value) / slope
        first = jnp.where(guess > 1, 1.0, guess)

    def goes_on(state):
        _, _, done, failed, count, _ = state
        return ~done & ~failed & (count <= maxiter)

    def step(state):
        last, best, done, failed, count, evaluations = state
        new = line.at(jnp.where(count == 1, first, 2 * last.step))
        is_high = line.is_too_high(new) | ((new.value >= last.value) & (count > 1))
        is_found = ~is_high & line.is_flat(new)
        is_past = ~is_high & ~is_found & (new.slope >= 0)
        # The best step is between this one and the last.
        low, high = choose(is_high, last, new), choose(is_high, new, last)
        inside, lost, zooms = line.zoom(low, high, is_high | is_past)
        best = choose(is_high | is_past, inside, choose(is_found, new, best))
        done = is_high | is_found | is_past
        return new, best, done, failed | lost, count + 1, evaluations + 1 + zooms

    no = jnp.asarray(False)
    state = (start, start, no, no, 1, 0)
    _, best, done, failed, count, evaluations = lax.while_loop(goes_on, step, state)
    status = jnp.where(failed, 1, jnp.where(count > maxiter, 3, 0))
    if dtypes.finfo(slope.dtype).bits != 64:
        # With a step that is too short to change anything, the search would never end.
        tiny = jnp.abs(best.step) < 1e-8
        best = best._replace(step=jnp.where(tiny, jnp.sign(best.step) * 1e-8, best.step))
    return Search(best, failed | ~done, status, evaluations)
