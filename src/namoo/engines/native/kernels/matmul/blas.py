"""Large products: BLAS computes blocks of the result, which threads share."""

from __future__ import annotations

import functools
import math
from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.types import size_of
from namoo.engines.native.kernels.kernel import Kernel
from namoo.engines.native.kernels.matmul.matrix_layout import BLAS, Operand, sides, sizes


def blocks_kernel(module: Any, node: Node) -> Kernel:
    """A kernel that calls BLAS for the blocks of a product."""
    batch, m, n, k = sizes(node)
    left, right = sides(node)
    key = ("blas", node.elem, batch, m, n, k, tuple(left.batch), tuple(right.batch),
           left.free, left.contract, right.free, right.contract)  # fmt: skip
    return module.kernel(
        key, lambda name: _Blocks(module, node.elem, name).emit(batch, m, n, k, left, right)
    )


class _Blocks:
    """A kernel that calls BLAS for blocks of the result."""

    def __init__(self, module: Any, elem: str, name: str):
        self.module = module
        self.elem = elem
        self.f = Function(name, ["ptr", "i64", "i64"])

    def emit(self, batch, m: int, n: int, k: int, left: Operand, right: Operand) -> Kernel:
        f = self.f
        table, begin, end = f.parameters
        a, b, c = (f.load(f.offset(table, i, "ptr"), "ptr") for i in range(3))
        rows, columns = _cuts(math.prod(batch), m, n, k)
        counts = [*batch, len(rows), len(columns)]
        with f.loop(begin, end) as unit:
            at, rest = [], unit
            for size in reversed(counts):
                at.insert(0, f.irem(rest, constant("i64", size)) if size > 1 else None)
                rest = f.idiv(rest, constant("i64", size)) if size > 1 else rest
            for i, (place, left_step, right_step) in enumerate(
                zip(at, left.batch, right.batch, strict=False)
            ):
                out_step = math.prod(batch[i + 1 :]) * m * n
                a, b, c = (
                    self._moved(p, place, s)
                    for p, s in zip((a, b, c), (left_step, right_step, out_step), strict=True)
                )
            i, j = at[-2:]
            # All blocks have one size, except the last ones.
            for height, some_rows in _kinds(rows, i):
                for width, some_columns in _kinds(columns, j):
                    self._block(
                        (height, width, k, n), left, right, (a, b, c),
                        (i, rows[0], some_rows), (j, columns[0], some_columns),
                    )  # fmt: skip
        f.line("  ret void")
        units = math.prod(counts)
        return Kernel(f.name, f.text(), f.declarations, units, math.prod(batch) * m * n * k // 4)

    def _moved(self, pointer: Value, i: Value | None, stride: int | None) -> Value:
        if i is None:
            return pointer
        step = constant("i64", (stride or 0) * size_of(self.elem))
        return self.f.offset(pointer, self.f.mul(i, step), "i8")

    def _block(self, sizes, left, right, pointers, row, column) -> None:
        f, (height, width, k, n), (a, b, c) = self.f, sizes, pointers
        (i, high, some_rows), (j, wide, some_columns) = row, column
        conditions = [
            f.compare(relation, at, constant("i64", bound))
            for at, (relation, bound) in ((i, some_rows), (j, some_columns))
            if relation
        ]

        def write():
            x = self._moved(a, i, (left.free or 0) * high)
            y = self._moved(b, j, (right.free or 0) * wide)
            out = self._moved(self._moved(c, i, high * n), j, wide)
            self._gemm(height, width, k, n, (x, left), (y, right), out)

        if not conditions:
            write()
            return
        with f.branch(functools.reduce(f.and_, conditions)):
            write()

    def _gemm(self, m, n, k, ldc, left, right, out: Value) -> None:
        """out = left · right; BLAS is column-major, so it computes the transposed product."""
        module = self.module
        (a, x), (b, y) = left, right
        name = f"namoo_{BLAS[self.elem]}"
        module.declarations[name] = f"declare void @{name}({', '.join(['ptr'] * 13)})"
        ta, lda = _layout(x.free, x.contract, m, k)
        tb, ldb = _layout(y.contract, y.free, k, n)
        arguments = [
            module.letter(tb), module.letter(ta),
            module.number(n), module.number(m), module.number(k),
            module.real(self.elem, 1), b, module.number(ldb), a, module.number(lda),
            module.real(self.elem, 0), out, module.number(ldc),
        ]  # fmt: skip
        self.f.line(f"  call void @{name}({', '.join(map(repr, arguments))})")


def _cuts(batch: int, m: int, n: int, k: int) -> tuple[list[int], list[int]]:
    """Lengths of the blocks of rows and of columns: all equal but the last."""
    high, wide = m, n
    while max(high, wide) >= 2 * tuning.BLAS_BLOCK:
        enough = batch * -(-m // high) * -(-n // wide) >= tuning.BLAS_BLOCKS
        if enough and high * wide * k <= tuning.BLAS_LARGEST_BLOCK:
            break
        if high >= wide:
            high = _half(high)
        else:
            wide = _half(wide)
    return _lengths(m, high), _lengths(n, wide)


def _half(size: int) -> int:
    """About a half, in whole vectors."""
    return -(-size // 32) * 16


def _lengths(size: int, block: int) -> list[int]:
    out = [block] * (size // block)
    return out + [size % block] if size % block else out


def _kinds(cuts: list[int], at: Value | None):
    """The different lengths of blocks, and the comparison that selects each."""
    if cuts[0] == cuts[-1]:
        return [(cuts[0], ("", 0))]
    last = len(cuts) - 1
    return [(cuts[0], ("lt", last)), (cuts[-1], ("eq", last))]


def _layout(rows: int, columns: int, m: int, n: int) -> tuple[str, int]:
    """How BLAS reads an m × n matrix with these strides; an axis of length 1 has stride 0."""
    if columns == 1 or columns == 0 and rows > 1:
        return "N", max(rows, n)
    return "T", max(columns, m)
