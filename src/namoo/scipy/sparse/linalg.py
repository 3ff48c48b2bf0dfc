"""Iterative solutions of linear systems A x = b, where A is a matrix or a function.

Vectors may be trees of arrays.  The iterations are not differentiated: derivatives are solutions of
further systems with A, or with its transpose, found by the same method.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import lax, tree_util
from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.source_context import make_entry_points as _guard
from namoo.control.solves import custom_linear_solve
from namoo.core.array import Array
from namoo.primitives.linalg.qr import qr
from namoo.primitives.linalg.systems import triangular_solve
from namoo.primitives.shape import convert_element_type

__all__ = ["bicgstab", "cg", "gmres"]
__dir__ = __all__.copy

Vector = Any
Operator = Callable[[Vector], Vector]


def _each(fun: Callable[..., Any], *trees: Vector) -> Vector:
    """A function of leaves, whose results keep the types of the first tree."""

    def keep(x, *rest):
        return convert_element_type(fun(x, *rest), x.dtype, x.weak_type)

    return tree_util.tree_map(keep, *trees)


def _total(terms: Any) -> Any:
    return functools.reduce(operator.add, terms)


def _dot(x: Vector, y: Vector) -> Array:
    """Σ conj(x) y over all leaves."""
    pairs = zip(tree_util.tree_leaves(x), tree_util.tree_leaves(y), strict=True)
    return _total(jnp.vdot(a, b, precision="highest") for a, b in pairs)


def _real_dot(x: Vector, y: Vector) -> Array:
    """The real part of the inner product."""
    return jnp.real(_dot(x, y))


def _norm(x: Vector) -> Array:
    return jnp.sqrt(_real_dot(x, x))


def _add_scaled(x: Vector, factor: Any, y: Vector) -> Vector:
    return _each(lambda a, b: a + factor * b, x, y)


def _subtract(x: Vector, y: Vector) -> Vector:
    return _each(operator.sub, x, y)


def _operator(name: str, a: Any) -> Operator:
    """The function x ↦ A x."""
    if callable(a):
        return a
    if not hasattr(a, "__matmul__"):
        raise TypeError(
            f"{name}: a linear operator must be either a function or ndarray, got "
            f"{type(a).__name__}."
        )
    shape = getattr(a, "shape", None)
    if shape is not None and (len(shape) != 2 or shape[0] != shape[1]):
        raise ValueError(f"{name}: a linear operator must be a square matrix, got shape {shape}.")
    if isinstance(a, (np.ndarray, Array)):
        return lambda x: jnp.dot(a, x, precision="highest")
    return lambda x: a @ x


class _System:
    """A x = b, the start, and the stopping rule; checked."""

    def __init__(self, name: str, a: Any, b: Any, x0: Any, maxiter: int | None, m: Any):
        self.a = _operator(name, a)
        self.m = (lambda x: x) if m is None else _operator(name, m)
        self.b = tree_util.tree_map(jnp.asarray, b)
        start = tree_util.tree_map(jnp.zeros_like, self.b) if x0 is None else x0
        self.x0 = tree_util.tree_map(jnp.asarray, start)
        trees = [tree_util.tree_structure(x) for x in (self.x0, self.b)]
        if trees[0] != trees[1]:
            raise ValueError(
                f"{name}: x0 and b must have matching tree structure, got {trees[0]} and "
                f"{trees[1]}."
            )
        leaves = tree_util.tree_leaves(self.b)
        shapes = [[x.shape for x in tree_util.tree_leaves(v)] for v in (self.x0, self.b)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{name}: x0 and b must have matching shape, got {shapes[0]} and {shapes[1]}."
            )
        self.size = sum(x.size for x in leaves)
        self.maxiter = 10 * self.size if maxiter is None else maxiter
        self.dtype = dtypes.to_inexact_dtype(dtypes.result_type(*leaves))
        self.is_real = not jnp.issubdtype(self.dtype, jnp.complexfloating)

    def solve(self, method: Callable[[Operator, Vector], Vector], symmetric: bool) -> Vector:
        return custom_linear_solve(
            self.a, self.b, method, transpose_solve=method, symmetric=symmetric
        )


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x with A x = b by conjugate gradients, for a positive definite A.

    Stops when ‖b - A x‖ ≤ max(tol·‖b‖, atol), or after `maxiter` iterations.

    Args:
        A: a Hermitian positive definite matrix, or a function x ↦ A x.
        b: the right side, an array or a tree of arrays.
        x0: where to start; zeros by default.
        tol: the tolerance relative to ‖b‖.
        atol: the absolute tolerance.
        maxiter: how many iterations at most; ten times the number of unknowns by default.
        M: a preconditioner, an approximation of the inverse of A, as a matrix or a function.

    Returns:
        The solution, and None.

    Raises:
        ValueError: a matrix that is not square, or an `x0` unlike `b`.
        TypeError: an operator that is neither.

    Example:
        >>> import namoo.numpy as jnp
        >>> cg(jnp.array([[4.0, 0.0], [0.0, 2.0]]), jnp.array([8.0, 2.0]))[0].round(4)
        Array([2., 1.], dtype=float32)
    """
    system = _System("cg", A, b, x0, maxiter, M)
    m = system.m

    def method(a, b):
        limit = jnp.maximum(jnp.square(tol) * _real_dot(b, b), jnp.square(atol))

        def goes_on(state):
            _, r, _, _, k = state
            return (_real_dot(r, r) > limit) & (k < system.maxiter)

        def step(state):
            x, r, gamma, p, k = state
            image = a(p)
            alpha = gamma / _real_dot(p, image)
            x, r = _add_scaled(x, alpha, p), _add_scaled(r, -alpha, image)
            z = m(r)
            new = _real_dot(r, z)
            return x, r, new, _add_scaled(z, new / gamma, p), k + 1

        r = _subtract(b, a(system.x0))
        p = m(r)
        return lax.while_loop(goes_on, step, (system.x0, r, _real_dot(r, p), p, 0))[0]

    return system.solve(method, symmetric=system.is_real), None


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x with A x = b by stabilised biconjugate gradients, for any invertible A.

    Args:
        A: a square matrix, or a function x ↦ A x.
        b, x0, tol, atol, maxiter, M: as for `cg`.

    Returns:
        The solution, and None.

    Raises:
        ValueError, TypeError: as for `cg`.

    Example:
        >>> import namoo.numpy as jnp
        >>> bicgstab(jnp.array([[4.0, 1.0], [0.0, 2.0]]), jnp.array([9.0, 2.0]))[0].round(4)
        Array([2., 1.], dtype=float32)
    """
    system = _System("bicgstab", A, b, x0, maxiter, M)
    m = system.m

    def method(a, b):
        limit = jnp.maximum(jnp.square(tol) * _real_dot(b, b), jnp.square(atol))

        def goes_on(state):
            _, r, *_, broken, k = state
            return (_real_dot(r, r) > limit) & (k < system.maxiter) & ~broken

        def step(state):
            x, r, shadow, alpha, omega, rho, p, q, _, k = state
            new_rho = _dot(shadow, r)
            beta = new_rho / rho * alpha / omega
            p = _add_scaled(r, beta, _add_scaled(p, -omega, q))
            direction = m(p)
            q = a(direction)
            alpha = new_rho / _dot(shadow, q)
            s = _add_scaled(r, -alpha, q)
            half = _add_scaled(x, alpha, direction)
            # The first half of the step may be enough.
            is_enough = _real_dot(s, s) < limit
            correction = m(s)
            t = a(correction)
            omega = _dot(t, s) / _dot(t, t)
            full = _add_scaled(half, omega, correction), _add_scaled(s, -omega, t)
            x, r = tree_util.tree_map(functools.partial(jnp.where, is_enough), (half, s), full)
            broken = (omega == 0) | (alpha == 0) | (new_rho == 0)
            return x, r, shadow, alpha, omega, new_rho, p, q, broken, k + 1

        r = _subtract(b, a(system.x0))
        one = jnp.ones((), system.dtype)
        state = (system.x0, r, r, one, one, one, r, r, jnp.asarray(False), 0)
        return lax.while_loop(goes_on, step, state)[0]

    return system.solve(method, symmetric=False), None


class _Krylov:
    """An orthonormal basis of the space of r, MA r, (MA)² r, …, as rows of V.

    H[:, k] holds the coordinates of M A V[k]; columns not computed yet are the identity's.
    """

    def __init__(self, a: Operator, m: Operator, restart: int, dtype: Any):
        self.a, self.m, self.restart, self.dtype = a, m, restart, dtype
        self.eps = float(dtypes.finfo(dtype).eps)

    def start(self, unit: Vector) -> tuple[Vector, Array]:
        """The basis that has one vector, and H."""

        def first(x):
            return jnp.zeros((self.restart + 1, *x.shape), x.dtype).at[0].set(x)

        h = jnp.eye(self.restart + 1, self.restart, dtype=self.dtype)
        return tree_util.tree_map(first, unit), h

    def combine(self, v: Vector, weights: Array) -> Vector:
        """Σ weights[i] V[i]"""
        count = weights.shape[0]
        return _each(lambda rows: jnp.tensordot(weights, rows[:count], 1, precision="highest"), v)

    def project(self, v: Vector, w: Vector) -> Array:
        """The products of all V[i] with w."""
        pairs = zip(tree_util.tree_leaves(v), tree_util.tree_leaves(w), strict=True)
        return _total(
            jnp.matmul(
                jnp.conj(rows).reshape(rows.shape[0], -1), x.reshape(-1), precision="highest"
            )
            for rows, x in pairs
        ).astype(self.dtype)

    def extend(self, v: Vector, k: Any) -> tuple[Vector, Array, Array]:
        """One more vector; its column of H; and whether the space is exhausted."""
        w = self.m(self.a(tree_util.tree_map(lambda rows: rows[k], v)))
        length = _norm(w)
        column = jnp.zeros(self.restart + 1, self.dtype)
        # Gram-Schmidt, twice for accuracy.
        for _ in range(2):
            part = self.project(v, w)
            w = _subtract(w, self.combine(v, part))
            column = column + part
        rest = _norm(w)
        is_last = rest <= self.eps * length
        rest = jnp.where(is_last, 0, rest)
        scale = jnp.where(is_last, 0, 1 / jnp.where(is_last, 1, rest))
        v = tree_util.tree_map(lambda rows, x: rows.at[k + 1].set(scale * x), v, w)
        return v, column.at[k + 1].set(rest.astype(self.dtype)), is_last


def _batched(space: _Krylov, unit: Vector, length: Array, limit: Array) -> tuple[Vector, Array]:
    """The whole basis, then the combination with the smallest residual."""

    def goes_on(state):
        _, _, is_last, k = state
        return (k < space.restart) & ~is_last

    def step(state):
        v, h, _, k = state
        v, column, is_last = space.extend(v, k)
        return v, h.at[:, k].set(column), is_last, k + 1

    v, h = space.start(unit)
    v, h, _, _ = lax.while_loop(goes_on, step, (v, h, jnp.asarray(False), 0))
    q, r = qr(h, full_matrices=False)
    right = jnp.conj(q[0]) * length.astype(space.dtype)
    return v, triangular_solve(r, right[:, None], left_side=True, lower=False)[:, 0]


def _rotation(a: Array, b: Array) -> tuple[Array, Array]:
    """c and s with |c|² + |s|² = 1, such that they rotate (a, b) to (·, 0)."""
    length = jnp.sqrt(jnp.abs(a) ** 2 + jnp.abs(b) ** 2).astype(a.dtype)
    length = jnp.where(length == 0, 1, length)
    is_zero = (a == 0) & (b == 0)
    return jnp.where(is_zero, 1, a / length), b / length


def _rotate(x: Array, k: Any, c: Array, s: Array) -> Array:
    """Rotate the elements k and k + 1 of a vector."""
    a, b = x[k], x[k + 1]
    first = jnp.conj(c) * a + jnp.conj(s) * b
    return x.at[k].set(first).at[k + 1].set(c * b - s * a)


def _incremental(space: _Krylov, unit: Vector, length: Array, limit: Array) -> tuple[Vector, Array]:
    """A basis as large as needed: rotations keep H triangular, and give the residual."""

    def goes_on(state):
        _, _, right, _, is_last, k = state
        return (k < space.restart) & (jnp.abs(right[k]) > limit) & ~is_last

    def step(state):
        v, h, right, turns, _, k = state
        v, column, is_last = space.extend(v, k)
        column = lax.fori_loop(0, k, lambda i, x: _rotate(x, i, turns[0, i], turns[1, i]), column)
        c, s = _rotation(column[k], column[k + 1])
        column, right = _rotate(column, k, c, s), _rotate(right, k, c, s)
        turns = turns.at[:, k].set(jnp.stack([c, s]))
        return v, h.at[:, k].set(column), right, turns, is_last, k + 1

    v, h = space.start(unit)
    right = jnp.zeros(space.restart + 1, space.dtype).at[0].set(length.astype(space.dtype))
    turns = jnp.zeros((2, space.restart), space.dtype)
    state = (v, h, right, turns, jnp.asarray(False), 0)
    v, h, right, _, _, k = lax.while_loop(goes_on, step, state)
    right = jnp.where(np.arange(space.restart) < k, right[:-1], 0)
    y = triangular_solve(h[:-1], right[:, None], left_side=True, lower=False)[:, 0]
    return v, y


_METHODS = {"batched": _batched, "incremental": _incremental}


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Array]:
    """The x with A x = b by GMRES, the generalised minimal residual method, for any invertible A.

    Args:
        A: a square matrix, or a function x ↦ A x.
        b, x0, tol, atol, M: as for `cg`.
        restart: the size of the basis, after which the next one is
            begun.
        maxiter: the largest number of restarts; ten times the number of unknowns by default.
        solve_method: 'batched' for bases of full size, 'incremental' to stop within one.

    Returns:
        The solution, and 0, or -1 if it is not a number.

    Raises:
        ValueError: another `solve_method`; or as for `cg`.
        TypeError: as for `cg`.

    Example:
        >>> import namoo.numpy as jnp
        >>> gmres(jnp.array([[4.0, 1.0], [0.0, 2.0]]), jnp.array([9.0, 2.0]))[0].round(4)
        Array([2., 1.], dtype=float32)
    """
    if solve_method not in _METHODS:
        raise ValueError(
            f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}."
        )
    system = _System("gmres", A, b, x0, maxiter, M)
    m, size = system.m, min(restart, system.size)

    def method(a, b):
        space = _Krylov(a, m, size, system.dtype)
        length = _norm(b)
        limit = jnp.maximum(tol * length, atol)
        # The same, in the norm of the preconditioner.
        part = jnp.minimum(1.0, limit / jnp.where(length == 0, 1, length))
        inner_limit = _norm(m(b)) * part

        def residual(x):
            r = m(_subtract(b, a(x)))
            norm = _norm(r)
            is_zero = norm <= space.eps
            scale = jnp.where(is_zero, 0, 1 / jnp.where(is_zero, 1, norm))
            return _each(lambda y: y * scale, r), jnp.where(is_zero, 0, norm)

        def goes_on(state):
            _, _, norm, k = state
            return (k < system.maxiter) & (norm > limit)

        def step(state):
            x, unit, norm, k = state
            v, y = _METHODS[solve_method](space, unit, norm, inner_limit)
            x = _each(operator.add, x, space.combine(v, y))
            return x, *residual(x), k + 1

        return lax.while_loop(goes_on, step, (system.x0, *residual(system.x0), 0))[0]

    x = system.solve(method, symmetric=False)
    return x, jnp.where(jnp.isnan(_norm(x)), -1, 0)


_guard(globals())
