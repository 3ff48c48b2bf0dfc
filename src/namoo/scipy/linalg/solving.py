"""Solutions of linear equations, differentiated implicitly, not through the methods."""

from __future__ import annotations

from namoo.core.array import Array
from namoo.numpy.linalg.systems import linear_solution
from namoo.primitives.linalg import spectral
from namoo.primitives.linalg.matrices import adjoint, matmul, mT
from namoo.primitives.shape import stop_gradient_p


def solve_anticommutator(p: Array, c: Array) -> Array:
    """The X with P X + X P = C, for stacks of positive definite matrices P."""
    v, w = spectral.eigh(stop_gradient_p.bind(p))
    sums = w[..., :, None] + w[..., None, :]

    def solve(c):
        return matmul(v, matmul(adjoint(v), c, v) / sums, adjoint(v))

    return linear_solution(
        lambda x: matmul(p, x) + matmul(x, p), c, solve, lambda c: mT(solve(mT(c)))
    )
