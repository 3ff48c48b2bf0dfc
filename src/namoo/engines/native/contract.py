"""Contractions: matrix products by BLAS, over loops of their batch axes."""

from __future__ import annotations

import math
from typing import Any

from namoo.engines.native.graph import Node
from namoo.engines.native.ir import Value, constant
from namoo.engines.native.matrices import BLAS, Operand
from namoo.engines.native.types import size_of


def sides(node: Node) -> tuple[Operand, Operand]:
    """Both sides of a `dot` node."""
    x, y = node.operands
    (cx, cy), (bx, by) = node.data.contract, node.data.batch
    return Operand(x.shape, bx, cx), Operand(y.shape, by, cy)


def sizes(node: Node) -> tuple[tuple[int, ...], int, int, int]:
    """Sizes of the batch axes, and m, n, k."""
    x, y = node.operands
    (cx, _), (bx, _) = node.data.contract, node.data.batch
    batch = tuple(x.shape[i] for i in bx)
    k = math.prod(x.shape[i] for i in cx)
    m = x.size // math.prod(batch) // k
    n = y.size // math.prod(batch) // k
    return batch, m, n, k


def emit(driver: Any, node: Node, operands: list[Value], out: Value) -> None:
    """Write the products, one for each point of the batch axes."""
    f = driver.f
    batch, m, n, k = sizes(node)
    x, y = sides(node)
    elem = node.elem
    size = size_of(elem)

    def nest(axes: int, a: Value, b: Value, c: Value) -> None:
        if axes == len(batch):
            gemm(driver, elem, m, n, k, (a, x), (b, y), c)
            return
        if batch[axes] == 1:
            nest(axes + 1, a, b, c)
            return
        step = math.prod(batch[axes + 1 :]) * m * n
        with f.loop(0, batch[axes]) as i:

            def moved(pointer, stride):
                return f.offset(pointer, f.mul(i, constant("i64", stride * size)), "i8")

            nest(axes + 1, moved(a, x.batch[axes]), moved(b, y.batch[axes]), moved(c, step))

    nest(0, *operands, out)


def gemm(driver, elem, m, n, k, left, right, out: Value) -> None:
    """out = left · right by BLAS, whose matrices lie by columns: it computes the transposes."""
    module = driver.module
    (a, x), (b, y) = left, right
    name = f"namoo_{BLAS[elem]}"
    module.declarations[name] = f"declare void @{name}({', '.join(['ptr'] * 13)})"
    ta, lda = _layout(x.free, x.contract, m, k)
    tb, ldb = _layout(y.contract, y.free, k, n)
    arguments = [
        module.letter(tb), module.letter(ta),
        module.number(n), module.number(m), module.number(k),
        module.real(elem, 1), b, module.number(ldb), a, module.number(lda),
        module.real(elem, 0), out, module.number(n),
    ]  # fmt: skip
    driver.f.line(f"  call void @{name}({', '.join(map(repr, arguments))})")


def _layout(rows: int, columns: int, m: int, n: int) -> tuple[str, int]:
    """How BLAS reads an m × n matrix with these strides, where 0 is that of an axis of length 1."""
    if columns == 1 or columns == 0 and rows > 1:
        return "N", max(rows, n)
    return "T", max(columns, m)
