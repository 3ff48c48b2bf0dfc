"""Which code computes an operation of linear algebra: the table that `native` rules read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from namoo.engines.native.graph.node import Node
from namoo.engines.native.kernels.linalg import stack
from namoo.engines.native.kernels.linalg.cholesky import CholeskyStack
from namoo.engines.native.kernels.linalg.lu import LUStack
from namoo.engines.native.kernels.linalg.qr import ProductStack, QRStack, ReflectorStack
from namoo.engines.native.kernels.linalg.triangular import TriangularStack

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


def linalg(
    emit: Emitter, name: str, operands: Sequence[Node], params: dict[str, Any]
) -> list[Node]:
    """The results of an operation, by name."""
    avals = emit.avals
    if all(0 in aval.shape for aval in avals):
        return [emit.filled(0, aval.dtype, aval.shape) for aval in avals]
    if name in SMALL:
        matrices = [x.shape[-2:] for x in operands if len(x.shape) >= 2]
        count = math.prod(operands[0].shape[:-2])
        if all(map(math.prod, matrices)) and stack.suits(matrices, count):
            return emit.call(SMALL[name](*operands, **params), operands, avals)
    raise emit.unsupported()


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
