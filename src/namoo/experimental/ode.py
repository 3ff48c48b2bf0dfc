"""Solve ordinary differential equations by Dormand and Prince's method with adaptive steps.

The solution is differentiated, not the steps: the adjoint equation is solved backwards in time
(Pontryagin; Chen et al., "Neural Ordinary Differential Equations", 2018, appendix C).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from namoo import lax, tree_util
from namoo import numpy as jnp
from namoo._base.config import default_matmul_precision
from namoo._base.source_context import entry_point
from namoo.api.grad import vjp
from namoo.api.map import vmap
from namoo.core.avals import aval_of
from namoo.flatten_util import ravel_pytree
from namoo.transforms.custom import closure_convert, custom_vjp

__all__ = ["odeint"]
__dir__ = __all__.copy


# Dormand and Prince's tableau: times, and weights of the slopes so far, for slopes 2 to 7.  The
# last row is the fifth-order solution; the next step starts with its slope.
STAGES = (
    (1 / 5, (1 / 5,)),
    (3 / 10, (3 / 40, 9 / 40)),
    (4 / 5, (44 / 45, -56 / 15, 32 / 9)),
    (8 / 9, (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729)),
    (1.0, (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656)),
    (1.0, (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)),
)
# The difference of the embedded fourth-order solution.
ERROR_WEIGHTS = (
    35 / 384 - 1951 / 21600,
    0.0,
    500 / 1113 - 22642 / 50085,
    125 / 192 - 451 / 720,
    -2187 / 6784 + 12231 / 42400,
    11 / 84 - 649 / 6300,
    -1 / 60,
)
# The solution in the middle of a step (Shampine, "Some Practical Runge-Kutta Formulas", 1986).
MIDDLE_WEIGHTS = (
    6025192743 / 30085553152 / 2,
    0.0,
    51252292925 / 65400821598 / 2,
    -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2,
    -1776094331 / 19743644256 / 2,
    11237099 / 235043384 / 2,
)
# Coefficients of the quartic, from the highest power, with given (dt·f₀, dt·f₁, y₀, y₁, y½).
QUARTIC = np.array(
    [
        [-2, 2, -8, -8, 16],
        [5, -3, 18, 14, -32],
        [-4, 1, -11, -5, 16],
        [1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
    ]
)


class State(NamedTuple):
    """The current point of the solution, and the quartic that interpolates the last step."""

    y: Any
    f: Any
    t: Any
    dt: Any
    last_t: Any
    quartic: Any


class Settings(NamedTuple):
    """The tolerances and limits of a solution."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


def _weighted(weights: Any, slopes: list[Any]) -> Any:
    return sum(w * k for w, k in zip(weights, slopes, strict=False) if w)


def _step(func: Callable, state: State) -> tuple[Any, Any, Any, Any]:
    """Take one step; return the solution, its slope, its error, and the interpolating quartic."""
    y, f, t, dt = state[:4]
    h = dt.astype(f.dtype)
    slopes, after = [f], y
    for time, weights in STAGES:
        after = y + h * _weighted(weights, slopes)
        slopes.append(func(after, t + dt * time))
    middle = y + h * _weighted(MIDDLE_WEIGHTS, slopes)
    ends = jnp.stack([h * f, h * slopes[-1], y, after, middle])
    quartic = jnp.tensordot(jnp.asarray(QUARTIC, ends.dtype), ends, 1)
    return after, slopes[-1], h * _weighted(ERROR_WEIGHTS, slopes), quartic


def _first_dt(func: Callable, t: Any, y: Any, f: Any, settings: Settings) -> Any:
    """Return the size of the first step (Hairer, Nørsett, Wanner, Solving ODEs I, section II.4)."""
    dtype = jnp.result_type(y, f)
    scale = (settings.atol + jnp.abs(y) * settings.rtol).astype(dtype)
    size_y, size_f = jnp.linalg.norm(y / scale), jnp.linalg.norm(f / scale)
    tiny = (size_y < 1e-5) | (size_f < 1e-5)
    trial = jnp.where(tiny, 1e-6, 0.01 * size_y / size_f)
    bent = func(y + trial.astype(dtype) * f, t + trial)
    curvature = jnp.linalg.norm((bent - f) / scale) / trial
    steepest = jnp.maximum(size_f, curvature)
    flat = (size_f <= 1e-15) & (curvature <= 1e-15)
    order = 4
    dt = jnp.where(
        flat, jnp.maximum(1e-6, trial * 1e-3), (0.01 / steepest) ** (1.0 / (order + 1.0))
    )
    return jnp.minimum(100.0 * trial, dt)


def _error_ratio(error: Any, y: Any, after: Any, settings: Settings) -> Any:
    """Return the error of a step in units of the tolerance; at most 1 is acceptable."""
    tolerance = settings.atol + settings.rtol * jnp.maximum(jnp.abs(y), jnp.abs(after))
    ratio = error / tolerance.astype(error.dtype)
    return jnp.sqrt(jnp.mean(jnp.real(ratio * jnp.conj(ratio))))


def _next_dt(dt: Any, ratio: Any, settings: Settings) -> Any:
    """Return the size of the next step or attempt, at most ten times as long."""
    least = jnp.where(ratio < 1, 1.0, 0.2)
    factor = jnp.minimum(10.0, jnp.maximum(ratio ** (-1.0 / 5.0) * 0.9, least))
    return jnp.clip(dt * jnp.where(ratio == 0, 10.0, factor), 0.0, settings.hmax)


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _solve(func: Callable, settings: Settings, y0: Any, ts: Any, *args: Any) -> Any:
    """Return the solution at all times, for a state that is one vector."""

    def slope(y, t):
        return func(y, t, *args)

    def attempt(carry):
        count, state = carry
        y, f, error, quartic = _step(slope, state)
        ratio = _error_ratio(error, state.y, y, settings)
        dt = _next_dt(state.dt, ratio, settings)
        new = State(y, f, state.t + state.dt, dt, state.t, quartic)
        accept = functools.partial(jnp.where, ratio <= 1.0)
        return count + 1, State(*map(accept, new, state._replace(dt=dt)))

    def advance(state, target):
        def goes_on(carry):
            count, state = carry
            return (state.t < target) & (count < settings.mxstep) & (state.dt > 0)

        _, state = lax.while_loop(goes_on, attempt, (0, state))
        part = (target - state.last_t) / (state.t - state.last_t)
        return state, jnp.polyval(state.quartic, part.astype(state.quartic.dtype))

    f0 = slope(y0, ts[0])
    dt = jnp.clip(_first_dt(slope, ts[0], y0, f0, settings), 0.0, settings.hmax)
    start = State(y0, f0, ts[0], dt, ts[0], jnp.stack([y0] * 5))
    _, ys = lax.scan(advance, start, ts[1:])
    return jnp.concatenate([y0[None], ys])


def _forward(func, settings, y0, ts, *args):
    ys = _solve(func, settings, y0, ts, *args)
    return ys, (ys, ts, args)


def _backward(func, settings, kept, ct):
    """Solve the adjoint equation from each time back to the one before."""
    ys, ts, ct = map(jnp.asarray, (*kept[:2], ct))
    args = kept[2]
    # Integers have no derivative, so they are not part of the adjoint state.
    smooth = [i for i, x in enumerate(args) if jnp.issubdtype(aval_of(x).dtype, jnp.inexact)]

    def slope(y, t, *chosen):
        all_args = list(args)
        for i, x in zip(smooth, chosen, strict=True):
            all_args[i] = x
        return func(y, t, *all_args)

    def augmented(state, t, *chosen):
        y, y_ct, *_ = state
        # Time is negated, so that it increases for the solver.
        f, pull = vjp(slope, y, -t, *chosen)
        return (-f, *pull(y_ct))

    chosen = [args[i] for i in smooth]

    def back(carry, i):
        y_ct, t0_ct, *arg_cts = carry
        # The derivative with respect to the time of this observation; time is real.
        t_ct = jnp.dot(slope(ys[i], ts[i], *chosen), ct[i]).real.astype(ts.dtype)
        state = (ys[i], y_ct, t0_ct - t_ct, *arg_cts)
        times = jnp.stack([-ts[i], -ts[i - 1]])
        solution = odeint(augmented, state, times, *chosen, **settings._asdict())
        _, y_ct, t0_ct, *arg_cts = (x[1] for x in solution)
        return (y_ct + ct[i - 1], t0_ct, *arg_cts), t_ct

    start = (ct[-1], jnp.zeros((), ts.dtype), *map(jnp.zeros_like, chosen))
    steps = jnp.arange(len(ts) - 1, 0, -1)
    (y_ct, t0_ct, *arg_cts), t_cts = lax.scan(back, start, steps)
    ts_ct = jnp.concatenate([t0_ct[None], t_cts[::-1]])
    found = dict(zip(smooth, arg_cts, strict=True))
    return (y_ct, ts_ct, *(found.get(i) for i in range(len(args))))


_solve.defvjp(_forward, _backward)


@entry_point
def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solve dy/dt = func(y, t, *args) from y(t[0]) = y0.

    Args:
        func: the derivative of the state, a tree like it.
        y0: the state at the first time, an array or a tree of arrays.
        t: increasing times at which to return the solution, an array of floats.
        *args: more arguments of `func`, trees of arrays; derivatives with respect to them are
            known.
        rtol: the tolerance relative to the state.
        atol: the absolute tolerance.
        mxstep: the largest number of steps from one time to the next.
        hmax: the largest size of a step.

    Returns:
        the states at the times, a tree like `y0` with one more leading axis.

    Raises:
        TypeError: the times are not floats, or an argument is not an array.

    Example:
        >>> decay = lambda y, t, rate: -rate * y
        >>> odeint(decay, jnp.array(1.0), jnp.array([0.0, 1.0, 2.0]), 0.5).round(4)
        Array([1.    , 0.6065, 0.3679], dtype=float32)
    """
    leaves, tree = tree_util.tree_flatten(args)
    for path, leaf in tree_util.tree_leaves_with_path(args):
        try:
            aval_of(leaf)
        except TypeError:
            raise TypeError(
                "The contents of odeint *args must be arrays or scalars, but at "
                f"args{tree_util.keystr(path)} there is {leaf!r}. Close over values that are not "
                "arrays."
            ) from None
    if not jnp.issubdtype(t.dtype, jnp.floating):
        raise TypeError(
            f"odeint: t must be an array of floats, but got {aval_of(t).str_short()}. "
            "Write t.astype(float)."
        )
    with default_matmul_precision("highest"):
        converted, consts = closure_convert(func, y0, t[0], *args)
        flat, unravel = ravel_pytree(y0)

        def slope(y, t, *values):
            inner, extra = values[: len(leaves)], values[len(leaves) :]
            return ravel_pytree(converted(unravel(y), t, *tree.unflatten(inner), *extra))[0]

        settings = Settings(rtol, atol, mxstep, hmax)
        ys = _solve(slope, settings, flat, jnp.asarray(t), *leaves, *consts)
        return vmap(unravel)(ys)
