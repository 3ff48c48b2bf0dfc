"""Which code computes an operation of linear algebra: the table that `native` rules read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from namoo.engines.native.graph.node import Node
from namoo.engines.native.kernels.linalg import stack
from namoo.engines.native.kernels.linalg.cholesky import CholeskyStack
from namoo.engines.native.kernels.linalg.lu import LUStack, Permutation
from namoo.engines.native.kernels.linalg.qr import ProductStack, QRStack, ReflectorStack
from namoo.engines.native.kernels.linalg.triangular import TriangularStack

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


def small_matrices(
    emit: Emitter, name: str, operands: Sequence[Node], params: dict[str, Any]
) -> list[Node] | None:
    """The results of an operation on small matrices; None for others."""
    if name == "lu_pivots_to_permutation":
        return emit.call(Permutation(operands[0], **params), operands, emit.avals)
    if name not in SMALL or params.get("pivoting"):
        return None
    matrices = [x.shape[-2:] for x in operands if len(x.shape) >= 2]
    count = math.prod(operands[0].shape[:-2])
    if not all(map(math.prod, matrices)) or not stack.suits(matrices, count):
        return None
    return emit.call(SMALL[name](*operands, **params), operands, emit.avals)


def _qr(a: Node, *, pivoting: bool, full_matrices: bool, use_magma: Any) -> QRStack:
    m, n = a.shape[-2:]
    return QRStack(a, m if full_matrices else min(m, n))


SMALL: dict[str, Callable[..., Any]] = {
    "cholesky": CholeskyStack,
    "geqrf": ReflectorStack,
    "householder_product": ProductStack,
    "lu": LUStack,
    "qr": _qr,
    "triangular_solve": TriangularStack,
}
"""Routines for stacks of small matrices."""
