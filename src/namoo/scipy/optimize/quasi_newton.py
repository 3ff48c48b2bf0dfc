"""Minimisation by quasi-Newton methods, which learn the curvature from gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from namoo import lax
from namoo import numpy as jnp
from namoo.api.grad import value_and_grad
from namoo.core.array import Array
from namoo.numpy import linalg
from namoo.scipy.optimize.line_search import dot, line_search


class OptimizeResults(NamedTuple):
    """What `minimize` returns.

    Args:
        x: the solution.
        success: whether the gradient became small enough.
        status: 0 for success; otherwise the reason of the failure.
        fun: the value at `x`.
        jac: the gradient at `x`.
        hess_inv: an approximation of the inverse of the Hessian matrix, or None.
        nfev: the number of evaluations of the function.
        njev: the number of evaluations of its gradient.
        nit: the number of iterations.
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


class _State(NamedTuple):
    """The state of a method: point, value, gradient, and its estimate of the curvature."""

    x: Any
    value: Any
    gradient: Any
    curvature: Any
    last_value: Any
    converged: Any
    failed: Any
    status: Any
    evaluations: Any
    iterations: Any


def _bfgs(
    fun: Callable,
    x0: Array,
    maxiter: int | None = None,
    norm: Any = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 10,
) -> OptimizeResults:
    """Broyden, Fletcher, Goldfarb and Shanno: the inverse H of the Hessian, improved in each step.

        H ← (I - ρ s yᵀ) H (I - ρ y sᵀ) + ρ s sᵀ,    ρ = 1 / yᵀs

    for the last step s and the change y of the gradient.
    """
    limit = x0.size * 200 if maxiter is None else maxiter
    eye = jnp.eye(x0.shape[0], dtype=x0.dtype)

    def is_converged(gradient):
        return linalg.norm(gradient, ord=norm) < gtol

    def goes_on(state):
        return ~state.converged & ~state.failed & (state.iterations < limit)

    def step(state):
        direction = -dot(state.curvature, state.gradient)
        found = line_search(
            fun,
            state.x,
            direction,
            state.value,
            state.gradient,
            line_search_maxiter,
            state.last_value,
        )
        s = found.point.step * direction
        y = found.point.gradient - state.gradient
        rho = 1 / dot(y, s)
        w = eye - rho * s[:, None] * y[None, :]
        improved = dot(dot(w, state.curvature), w.T) + rho * s[:, None] * s[None, :]
        return _State(
            x=state.x + s,
            value=found.point.value,
            gradient=found.point.gradient,
            curvature=jnp.where(jnp.isfinite(rho), improved, state.curvature),
            last_value=state.value,
            converged=is_converged(found.point.gradient),
            failed=found.failed,
            status=found.status,
            evaluations=state.evaluations + found.evaluations,
            iterations=state.iterations + 1,
        )

    value, gradient = value_and_grad(fun)(x0)
    state = _State(
        x=x0,
        value=value,
        gradient=gradient,
        curvature=eye,
        # As if the previous step had half the norm of the gradient.
        last_value=value + linalg.norm(gradient) / 2,
        converged=is_converged(gradient),
        failed=jnp.asarray(False),
        status=0,
        evaluations=1,
        iterations=0,
    )
    state = lax.while_loop(goes_on, step, state)
    ended = jnp.where(state.iterations == limit, 1, jnp.where(state.failed, 2 + state.status, -1))
    return _results(state, jnp.where(state.converged, 0, ended), state.curvature)


class _History(NamedTuple):
    """The last steps and changes of the gradient, newest last, and 1 / yᵀs of each pair."""

    steps: Any
    changes: Any
    weights: Any
    scale: Any


def _two_loops(history: _History, gradient: Array, count: Any) -> Array:
    """The product of the inverse Hessian, estimated from the last pairs, with -gradient."""
    size = history.weights.shape[0]
    known = jnp.minimum(count, size)

    def backward(j, carry):
        q, alphas = carry
        i = size - 1 - j
        product = jnp.real(dot(jnp.conj(history.steps[i]), q)).astype(q.dtype)
        alpha = history.weights[i] * product
        return q - alpha * jnp.conj(history.changes[i]), alphas.at[i].set(alpha)

    def forward(j, q):
        i = size - known + j
        product = jnp.real(dot(history.changes[i], q)).astype(q.dtype)
        return q + (alphas[i] - history.weights[i] * product) * history.steps[i]

    start = (-jnp.conj(gradient), jnp.zeros_like(history.weights))
    q, alphas = lax.fori_loop(0, known, backward, start)
    return lax.fori_loop(0, known, forward, history.scale * q)


def _appended(rows: Array, new: Array) -> Array:
    return jnp.concatenate([rows[1:], jnp.asarray(new, rows.dtype)[None]])


def _lbfgs(
    fun: Callable,
    x0: Array,
    maxiter: float | None = None,
    norm: Any = np.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-5,
    maxfun: float | None = None,
    maxgrad: float | None = None,
    maxls: int = 20,
) -> OptimizeResults:
    """BFGS with a memory of the last `maxcor` steps, instead of a matrix."""
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = x0.size * 200
    limits = [np.inf if n is None else n for n in (maxiter, maxfun, maxgrad)]

    def goes_on(state):
        return ~state.converged & ~state.failed

    def step(state):
        direction = _two_loops(state.curvature, state.gradient, state.iterations)
        found = line_search(fun, state.x, direction, state.value, state.gradient, maxls)
        s = found.point.step.astype(direction.dtype) * direction
        y = found.point.gradient - state.gradient
        product = jnp.real(dot(y, s))
        square = jnp.real(dot(jnp.conj(y), y))
        history = _History(
            _appended(state.curvature.steps, s),
            _appended(state.curvature.changes, y),
            _appended(state.curvature.weights, 1 / product),
            (product / square).astype(x0.dtype),
        )
        status: Any = 0
        reasons = [
            (state.value - found.point.value < ftol, 4),
            (state.evaluations >= limits[2], 3),
            (state.evaluations >= limits[1], 2),
            (state.iterations >= limits[0], 1),
            (found.failed, 5),
        ]
        for happened, code in reasons:
            status = jnp.where(happened, code, status)
        converged = linalg.norm(found.point.gradient, ord=norm) < gtol
        return _State(
            x=(state.x + s).astype(x0.dtype),
            value=found.point.value,
            gradient=found.point.gradient,
            curvature=history,
            last_value=state.value,
            converged=converged,
            failed=(status > 0) & ~converged,
            status=jnp.where(converged, 0, status),
            evaluations=state.evaluations + found.evaluations,
            iterations=state.iterations + 1,
        )

    value, gradient = value_and_grad(fun)(x0)
    rows = jnp.zeros((maxcor, x0.shape[0]), x0.dtype)
    no = jnp.asarray(False)
    state = _State(
        x=x0,
        value=value,
        gradient=gradient,
        curvature=_History(rows, rows, rows[:, 0], jnp.ones((), x0.dtype)),
        last_value=value,
        converged=no,
        failed=no,
        status=0,
        evaluations=1,
        iterations=0,
    )
    state = lax.while_loop(goes_on, step, state)
    return _results(state, state.status, None)


def _results(state: _State, status: Any, hess_inv: Any) -> OptimizeResults:
    return OptimizeResults(
        x=state.x,
        success=state.converged & ~state.failed,
        status=status,
        fun=state.value,
        jac=state.gradient,
        hess_inv=hess_inv,
        nfev=state.evaluations,
        njev=state.evaluations,
        nit=state.iterations,
    )


_METHODS: dict[str, Callable[..., OptimizeResults]] = {
    "bfgs": _bfgs,
    "l-bfgs-experimental-do-not-rely-on-this": _lbfgs,
}


def minimize(
    fun: Callable,
    x0: Any,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A minimum of a function of a vector, found from a start.

    Args:
        fun: a function `fun(x, *args)` that returns a number, and can be differentiated.
        x0: where to start, a vector of floats.
        args: more arguments of the function.
        method: 'BFGS', or 'l-bfgs-experimental-do-not-rely-on-this'.
        tol: the largest component of the gradient at which the method stops; 1e-5 by default.
        options: options of the method: `maxiter`, `norm`, `gtol`, and for BFGS
            `line_search_maxiter`; for L-BFGS `maxcor`, `ftol`, `maxfun`, `maxgrad`, `maxls`.

    Returns:
        The named tuple `OptimizeResults`.

    Raises:
        ValueError: another method, or a start that is not a vector.
        TypeError: `args` is not a tuple, or an unknown option.

    Example:
        >>> import namoo.numpy as jnp
        >>> minimize(lambda x: jnp.sum((x - 3.0) ** 4), jnp.zeros(2), method="BFGS").success
        Array(True, dtype=bool)
    """
    if not isinstance(args, tuple):
        raise TypeError(
            f"args argument to minimize must be a tuple, got {type(args).__name__}: args=(x,)."
        )
    if method.lower() not in _METHODS:
        raise ValueError(f"minimize: method must be one of {tuple(_METHODS)}, got {method!r}.")
    chosen = dict(options or {})
    if tol is not None:
        chosen.setdefault("gtol", tol)
    x0 = jnp.asarray(x0)
    if x0.ndim != 1:
        raise ValueError(f"minimize: x0 must be a vector, got shape {x0.shape}.")
    return _METHODS[method.lower()](lambda x: fun(x, *args), x0, **chosen)
