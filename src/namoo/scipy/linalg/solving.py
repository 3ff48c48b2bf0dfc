"""Solutions of linear equations, differentiated as what they are and not as how they are found."""

from __future__ import annotations

from collections.abc import Callable

from namoo.control.solves import custom_linear_solve
from namoo.core.array import Array
from namoo.core.trace import context, eval_trace
from namoo.primitives import decompositions
from namoo.primitives.matrices import adjoint, matmul, mT
from namoo.primitives.shape import stop_gradient_p

Solver = Callable[[Array], Array]


def linear_solution(matvec: Solver, b: Array, solve: Solver, transpose_solve: Solver) -> Array:
    """The x with matvec(x) = b, found by `solve`; `transpose_solve` is for the transpose.

    The two methods are not differentiated; what they close over needs no derivatives.
    """
    if context.trace is eval_trace:
        # Nothing is being differentiated, batched or staged: a program would be a detour.
        return solve(b)
    return custom_linear_solve(
        matvec, b, lambda _, right: solve(right), lambda _, right: transpose_solve(right)
    )


def solve_anticommutator(p: Array, c: Array) -> Array:
    """The X with P X + X P = C, for stacks of positive definite matrices P."""
    v, w = decompositions.eigh(stop_gradient_p.bind(p))
    sums = w[..., :, None] + w[..., None, :]

    def solve(c):
        return matmul(v, matmul(adjoint(v), c, v) / sums, adjoint(v))

    return linear_solution(
        lambda x: matmul(p, x) + matmul(x, p), c, solve, lambda c: mT(solve(mT(c)))
    )
