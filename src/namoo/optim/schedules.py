"""Numbers that change with the step: functions of the step's number, from 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo.optim.base import Schedule

__all__ = [
    "constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule", "exponential_decay",
    "join_schedules", "linear_onecycle_schedule", "linear_schedule",
    "piecewise_constant_schedule", "piecewise_interpolate_schedule", "polynomial_schedule",
    "sgdr_schedule", "warmup_constant_schedule", "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule",
]  # fmt: skip
__dir__ = __all__.copy


def constant_schedule(value: Any) -> Schedule:
    """The same value at every step.

    Example:
        >>> constant_schedule(0.1)(7)
        0.1
    """
    return lambda count: value


def polynomial_schedule(
    init_value: Any,
    end_value: Any,
    power: Any,
    transition_steps: int,
    transition_begin: int = 0,
) -> Schedule:
    """From one value to another along a power of the remaining steps.

        s(t) = (init - end)·(1 - (t - begin) / steps)^power + end    for begin ≤ t ≤ begin + steps

    Args:
        init_value: the value until `transition_begin`.
        end_value: the value from `transition_begin + transition_steps` on.
        power: the exponent; 1 is a line.
        transition_steps: the number of steps; if it is not positive, the value stays `init_value`.
        transition_begin: the step at which it begins.

    Example:
        >>> print(polynomial_schedule(1.0, 0.0, power=2, transition_steps=10)(5))
        0.25
    """
    if transition_steps <= 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count):
        done = jnp.clip(count - begin, 0, transition_steps)
        return (init_value - end_value) * (1 - done / transition_steps) ** power + end_value

    return schedule


def linear_schedule(
    init_value: Any, end_value: Any, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """From one value to another along a line.

    Args:
        init_value: the value until `transition_begin`.
        end_value: the value from `transition_begin + transition_steps` on.
        transition_steps: the number of steps.
        transition_begin: the step at which it begins.

    Example:
        >>> print(linear_schedule(0.0, 1.0, transition_steps=10)(3))
        0.3
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def _not_negative(name: str, scales: Iterable[float]) -> None:
    if any(scale < 0 for scale in scales):
        raise ValueError(f"{name}: the factors must not be negative, got {list(scales)}.")


def piecewise_constant_schedule(
    init_value: Any, boundaries_and_scales: dict[int, float] | None = None
) -> Schedule:
    """A value that is multiplied by a factor at some steps.

    Args:
        init_value: the first value.
        boundaries_and_scales: for each step at which the value changes, the factor.

    Example:
        >>> schedule = piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.1})
        >>> [float(schedule(t)) for t in (9, 10, 20)]
        [1.0, 0.5, 0.05000000074505806]
    """
    changes = sorted((boundaries_and_scales or {}).items())
    _not_negative("piecewise_constant_schedule", [scale for _, scale in changes])

    def schedule(count):
        value = init_value
        for boundary, scale in changes:
            before = jnp.maximum(0.0, jnp.sign(boundary - count))
            value = value * before + (1 - before) * scale * value
        return value

    return schedule


def exponential_decay(
    init_value: Any,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """A value that is multiplied by a rate every `transition_steps`.

        s(t) = init·rate^((t - begin) / steps)

    Args:
        init_value: the value until `transition_begin`.
        transition_steps: the number of steps over which the rate applies once.
        decay_rate: the rate; 0 leaves the value unchanged.
        transition_begin: the step at which it begins.
        staircase: change only at whole multiples of `transition_steps`.
        end_value: a bound of the value: below for a rate less than 1, else above.

    Example:
        >>> print(exponential_decay(1.0, transition_steps=10, decay_rate=0.5)(20))
        0.25
    """
    if transition_steps <= 0 or decay_rate == 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count):
        since = count - begin
        power = since / transition_steps
        if staircase:
            power = jnp.floor(power)
        value = jnp.where(since <= 0, init_value, init_value * jnp.power(decay_rate, power))
        if end_value is None:
            return value
        return (jnp.maximum if decay_rate < 1.0 else jnp.minimum)(value, end_value)

    return schedule


def cosine_decay_schedule(
    init_value: Any, decay_steps: int, alpha: Any = 0.0, exponent: Any = 1.0
) -> Schedule:
    """Decay along half a period of the cosine.

        s(t) = init·((1 - α)·(½ + ½·cos(π·t / steps))^exponent + α),   t ≤ steps

    Args:
        init_value: the value at step 0.
        decay_steps: the number of steps.
        alpha: the last value, as a fraction of the first.
        exponent: the exponent of the wave.

    Raises:
        ValueError: `decay_steps` is not positive.

    Example:
        >>> print(cosine_decay_schedule(1.0, decay_steps=10)(10))
        0.0
    """
    if not decay_steps > 0:
        raise ValueError(
            f"cosine_decay_schedule: decay_steps must be positive, got {decay_steps!r}."
        )
    # As floats, the products below do not overflow at large steps.
    steps = float(decay_steps) if isinstance(decay_steps, int) else decay_steps

    def schedule(count):
        done = jnp.minimum(float(count) if isinstance(count, int) else count, steps)
        wave = 0.5 * (1 + jnp.cos(jnp.pi * done / steps))
        return init_value * ((1 - alpha) * wave**exponent + alpha)

    return schedule


_BETWEEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "linear": lambda start, end, part: (end - start) * part + start,
    "cosine": lambda start, end, part: end + (start - end) / 2.0 * (jnp.cos(jnp.pi * part) + 1),
}


def piecewise_interpolate_schedule(
    interpolate_type: str, init_value: Any, boundaries_and_scales: dict[int, float] | None = None
) -> Schedule:
    """From value to value along lines or cosines.

    Args:
        interpolate_type: 'linear' or 'cosine'.
        init_value: the value at step 0.
        boundaries_and_scales: for each step the factor by which the value has changed there, since
          the boundary before.

    Example:
        >>> schedule = piecewise_interpolate_schedule("linear", 1.0, {10: 3.0, 20: 0.5})
        >>> [float(schedule(t)) for t in (5, 10, 15, 20)]
        [2.0, 3.0, 2.25, 1.5]
    """
    if interpolate_type not in _BETWEEN:
        raise ValueError(
            "piecewise_interpolate_schedule: interpolate_type must be 'linear' or 'cosine', got "
            f"{interpolate_type!r}."
        )
    between = _BETWEEN[interpolate_type]
    changes = sorted((boundaries_and_scales or {}).items())
    scales = [scale for _, scale in changes]
    _not_negative("piecewise_interpolate_schedule", scales)
    bounds = np.array([0, *(boundary for boundary, _ in changes)])
    lengths = np.maximum(bounds[1:] - bounds[:-1], 1)

    def schedule(count):
        values = jnp.cumprod(jnp.stack([jnp.asarray(v) for v in (init_value, *scales)]))
        inside = (bounds[:-1] <= count) & (count < bounds[1:])
        pieces = between(values[:-1], values[1:], (count - bounds[:-1]) / lengths)
        return jnp.dot(inside, pieces) + (bounds[-1] <= count) * values[-1]

    return schedule


def linear_onecycle_schedule(
    transition_steps: int,
    peak_value: Any,
    pct_start: float = 0.3,
    pct_final: float = 0.85,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """One cycle: up along a line, down along a line, then further down to almost zero.

    Args:
        transition_steps: the length of the cycle.
        peak_value: the largest value.
        pct_start: the fraction of the cycle that goes up.
        pct_final: the fraction of the cycle after which the last piece begins.
        div_factor: how much smaller the first value is.
        final_div_factor: how much smaller than the first the last value is.

    Example:
        >>> print(linear_onecycle_schedule(100, 1.0)(30))
        1.0
    """
    if transition_steps <= 0:
        raise ValueError(
            f"linear_onecycle_schedule: transition_steps must be positive, got {transition_steps}."
        )
    return piecewise_interpolate_schedule(
        "linear",
        peak_value / div_factor,
        {
            int(pct_start * transition_steps): div_factor,
            int(pct_final * transition_steps): 1.0 / div_factor,
            transition_steps: 1.0 / final_div_factor,
        },
    )


def cosine_onecycle_schedule(
    transition_steps: int,
    peak_value: Any,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """One cycle: up and down along half periods of the cosine.

    Args:
        transition_steps: the length of the cycle.
        peak_value: the largest value.
        pct_start: the fraction of the cycle that goes up.
        div_factor: how much smaller the first value is.
        final_div_factor: how much smaller than the first the last value is.

    Example:
        >>> print(cosine_onecycle_schedule(100, 1.0)(30))
        1.0
    """
    if transition_steps <= 0:
        raise ValueError(
            f"cosine_onecycle_schedule: transition_steps must be positive, got {transition_steps}."
        )
    return piecewise_interpolate_schedule(
        "cosine",
        peak_value / div_factor,
        {
            int(pct_start * transition_steps): div_factor,
            int(transition_steps): 1.0 / (div_factor * final_div_factor),
        },
    )


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Schedules one after the other, each counting from its own beginning.

    Args:
        schedules: the schedules.
        boundaries: the steps at which the second, the third … begin.

    Example:
        >>> warm = join_schedules([linear_schedule(0.0, 1.0, 10), constant_schedule(1.0)], [10])
        >>> [float(warm(t)) for t in (5, 10, 50)]
        [0.5, 1.0, 1.0]
    """

    def schedule(count):
        value = schedules[0](count)
        for boundary, following in zip(boundaries, schedules[1:], strict=False):
            value = jnp.where(count < boundary, value, following(count - boundary))
        return value

    return schedule


def warmup_constant_schedule(init_value: Any, peak_value: Any, warmup_steps: int) -> Schedule:
    """Up along a line, then constant.

    Example:
        >>> print(warmup_constant_schedule(0.0, 1.0, warmup_steps=10)(5))
        0.5
    """
    return linear_schedule(init_value, peak_value, warmup_steps)


def warmup_cosine_decay_schedule(
    init_value: Any,
    peak_value: Any,
    warmup_steps: int,
    decay_steps: int,
    end_value: Any = 0.0,
    exponent: Any = 1.0,
) -> Schedule:
    """Up along a line, then down along half a period of the cosine.

    Args:
        init_value: the value at step 0.
        peak_value: the value at the end of the line.
        warmup_steps: the length of the line.
        decay_steps: the length of line and wave together.
        end_value: the value at the end.
        exponent: the exponent of the wave.

    Example:
        >>> schedule = warmup_cosine_decay_schedule(0.0, 1.0, warmup_steps=10, decay_steps=30)
        >>> [round(float(schedule(t)), 4) for t in (5, 10, 20, 30)]
        [0.5, 1.0, 0.5, 0.0]
    """
    alpha = 0.0 if peak_value == 0.0 else end_value / peak_value
    line = linear_schedule(init_value, peak_value, warmup_steps)
    wave = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules([line, wave], [warmup_steps])


def warmup_exponential_decay_schedule(
    init_value: Any,
    peak_value: Any,
    warmup_steps: int,
    transition_steps: int,
    decay_rate: Any,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """Up along a line, then down exponentially.

    Args:
        init_value: the value at step 0.
        peak_value: the value at the end of the line.
        warmup_steps: the length of the line.
        transition_steps: the number of steps over which the rate applies once.
        decay_rate: the rate.
        transition_begin: how many steps after the line the decay begins.
        staircase: change only at whole multiples of `transition_steps`.
        end_value: a bound of the value.

    Example:
        >>> schedule = warmup_exponential_decay_schedule(0.0, 1.0, 10, 10, 0.5)
        >>> [float(schedule(t)) for t in (5, 10, 20)]
        [0.5, 1.0, 0.5]
    """
    line = linear_schedule(init_value, peak_value, warmup_steps)
    fall = exponential_decay(
        peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value
    )
    return join_schedules([line, fall], [warmup_steps])


def sgdr_schedule(cosine_kwargs: Iterable[dict[str, Any]]) -> Schedule:
    """Several `warmup_cosine_decay_schedule` one after the other: warm restarts.

    Args:
        cosine_kwargs: for each of them its arguments.

    Example:
        >>> cycle = {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 10, "decay_steps": 30}
        >>> schedule = sgdr_schedule([cycle, cycle | {"peak_value": 0.5}])
        >>> [float(schedule(t)) for t in (10, 40)]
        [1.0, 0.5]
    """
    cycles = list(cosine_kwargs)
    ends = np.cumsum([cycle["decay_steps"] for cycle in cycles]).tolist()
    return join_schedules([warmup_cosine_decay_schedule(**c) for c in cycles], ends[:-1])
