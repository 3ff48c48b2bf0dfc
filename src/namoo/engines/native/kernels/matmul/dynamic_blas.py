"""Products with sizes that are known at run time: BLAS computes blocks of rows."""

from __future__ import annotations

import math
from typing import Any

from namoo.dimensions.sizes import larger
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.extents import is_dynamic
from namoo.engines.native.ir.function import Value
from namoo.engines.native.ir.sizes import SizedFunction
from namoo.engines.native.ir.types import size_of
from namoo.engines.native.kernels.kernel import Kernel
from namoo.engines.native.kernels.matmul.matrix_layout import BLAS, sides, sizes


def kernel(module: Any, node: Node) -> Kernel:
    """A kernel that calls BLAS for blocks of rows of a product."""
    batch, m, n, k = sizes(node)
    left, right = sides(node)
    key = ("dynamic blas", node.elem, batch, m, n, k, tuple(left.batch), tuple(right.batch),
           left.free, left.contract, right.free, right.contract)  # fmt: skip
    return module.kernel(key, lambda name: blocks(module, node, name))


def blocks(module: Any, node: Node, name: str) -> Kernel:
    """The kernel, under a name."""
    return _Blocks(module, node, name).emit()


class _Blocks:
    """Writes the kernel."""

    def __init__(self, module: Any, node: Node, name: str):
        self.module = module
        self.elem = node.elem
        self.f = SizedFunction(name, ["ptr", "i64", "i64"])
        self.batch, self.m, self.n, self.k = sizes(node)
        self.left, self.right = sides(node)

    def emit(self) -> Kernel:
        f, m, n, k = self.f, self.m, self.n, self.k
        table, begin, end = f.parameters
        pointers = [f.load(f.offset(table, i, "ptr"), "ptr") for i in range(3)]
        f.take_sizes(table, 3, self.module.variables)
        block = tuning.BLAS_BLOCK
        blocks = (m + block - 1) // block
        outs = [math.prod(self.batch[i + 1 :]) * m * n for i in range(len(self.batch))]
        with f.loop(begin, end) as unit:
            rest, row = self._divided(unit, blocks)
            places = []
            for size in reversed(self.batch[1:]):
                rest, place = self._divided(rest, size)
                places.append(place)
            places = [*([rest] if self.batch else []), *reversed(places)]
            at = list(pointers)
            for place, *steps in zip(places, self.left.batch, self.right.batch, outs, strict=True):
                at = [self._moved(p, place, step) for p, step in zip(at, steps, strict=True)]
            start = f.mul(row, f.number(block))
            at[0] = self._moved(at[0], start, self.left.free)
            at[2] = self._moved(at[2], start, n)
            height = f.minimum(f.number(block), f.sub(f.number(m), start))
            self._gemm(height, at)
        f.line("  ret void")
        units = math.prod(self.batch) * blocks
        return Kernel(
            f.name, f.text(), f.declarations, units, math.prod(self.batch) * m * n * k // 4
        )

    def _divided(self, x: Value, size: Any) -> tuple[Value, Value]:
        """Quotient and remainder of a number by a size."""
        f, divisor = self.f, self.f.number(size)
        return f.idiv(x, divisor), f.irem(x, divisor)

    def _moved(self, pointer: Value, i: Value, stride: Any) -> Value:
        step = self.f.number((stride or 0) * size_of(self.elem)) if stride != 0 else None
        return pointer if step is None else self.f.offset(pointer, self.f.mul(i, step), "i8")

    def _gemm(self, height: Value, at: list[Value]) -> None:
        """Call BLAS, which is column-major, so that it computes the transposed product."""
        module, f, x, y = self.module, self.f, self.left, self.right
        a, b, c = at
        name = f"namoo_{BLAS[self.elem]}"
        module.declarations[name] = f"declare void @{name}({', '.join(['ptr'] * 13)})"
        ta, lda = _layout(x.free, x.contract, self.m, self.k)
        tb, ldb = _layout(y.contract, y.free, self.k, self.n)
        arguments = [
            module.letter(tb), module.letter(ta),
            self._integer(self.n), self._integer(height), self._integer(self.k),
            module.real(self.elem, 1), b, self._integer(ldb), a, self._integer(lda),
            module.real(self.elem, 0), c, self._integer(self.n),
        ]  # fmt: skip
        f.line(f"  call void @{name}({', '.join(map(repr, arguments))})")

    def _integer(self, number: Any) -> Value:
        """A 32-bit integer in memory, as Fortran wants its arguments."""
        if not isinstance(number, Value) and not is_dynamic(number):
            return self.module.number(number)
        f, name = self.f, self.f.fresh()
        f.preamble.append(f"  {name} = alloca i32, align 4")
        f.line(f"  store {f.convert(f.number(number), 'i32')!r}, ptr {name}, align 4")
        return Value(name, "ptr")


def _layout(rows: Any, columns: Any, m: Any, n: Any) -> tuple[str, Any]:
    """How BLAS reads an m × n matrix with these strides; an axis of length 1 has stride 0."""
    if columns == 1 or columns == 0 and rows != 1:
        return "N", larger(rows, n)
    return "T", larger(columns, m)
