"""Cholesky factors of small matrices."""

from __future__ import annotations

from collections.abc import Sequence

from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.linalg.stack import Cell, StackRoutine, StackWriter, Tile


class CholeskyStack(StackRoutine):
    """The lower triangular L with L Lᴴ = A, column by column; NaN if A is not positive definite."""

    takes_over = {0: 0}

    def __init__(self, a: Node):
        super().__init__([a], len(a.shape) - 2)
        self.n = a.shape[-1]
        self.work = self.count * self.n**3 // 3

    def key(self):
        return "cholesky"

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        n = self.n
        w = self.writer(f, n * n)
        tile, good = Tile(w, self.elem, n, n), Cell(w, w.part)
        with f.loop(begin, end) as unit:
            self.load_matrices(w, places[0], unit, tile)
            good.set(w.wide(constant(w.part, 1.0)))
            self._factorise(w, tile, good)
            self._finish(w, tile, f.compare("ne", good.get(), constant(w.part, 0.0)))
            self.store_matrices(w, places[1], unit, tile)

    def _factorise(self, w: StackWriter, a: Tile, good: Cell) -> None:
        f = w.f
        for j in w.steps(0, self.n):
            square = Cell(w, w.part)
            square.set(w.real(a.get(j, j)))
            for k in w.steps(0, j):
                x = a.get(j, k)
                square.set(f.sub(square.get(), w.real(w.mul(x, w.conj(x)))))
            found = square.get()
            zero = constant(w.part, 0.0)
            good.set(f.select(f.compare("gt", found, zero), good.get(), zero))
            length = f.sqrt(found)
            a.put(j, j, w.from_real(length))
            inverse = f.fdiv(constant(w.part, 1.0), length)
            for i, rows in w.blocks(w.plus(j, 1), self.n):
                sums = [Cell(w, w.elem) for _ in range(rows)]
                for r, total in enumerate(sums):
                    total.set(a.get(w.plus(i, r), j))
                for k in w.steps(0, j):
                    other = w.conj(a.get(j, k))
                    for r, total in enumerate(sums):
                        total.set(w.less_product(total.get(), a.get(w.plus(i, r), k), other))
                for r, total in enumerate(sums):
                    a.put(w.plus(i, r), j, w.scale(total.get(), inverse))

    def _finish(self, w: StackWriter, a: Tile, good: Value) -> None:
        """Zeros above the diagonal, and NaN where there is no factor."""
        nan = w.joined([w.wide(constant(w.part, float("nan")))] * (2 if w.complex else 1))
        for i in w.steps(0, self.n):
            for j in w.steps(0, w.plus(i, 1)):
                a.put(i, j, w.select(good, a.get(i, j), nan))
            for j in w.steps(w.plus(i, 1), self.n):
                a.put(i, j, w.number(0.0))
