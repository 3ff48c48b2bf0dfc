"""Triangular systems of small matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.linalg.stack import Cell, Index, StackRoutine, StackWriter, Tile


class TriangularStack(StackRoutine):
    """The X with op(A) X = B or X op(A) = B, one row of X after another.

    All cases are reduced to a lower triangular matrix to the left of X, by exchanging the indices
    of its elements or counting them from the end.
    """

    takes_over = {1: 0}

    def __init__(
        self, a: Node, b: Node, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal
    ):
        super().__init__([a, b], len(a.shape) - 2)
        self.n = a.shape[-1]
        self.left, self.conjugate, self.unit = left_side, conjugate_a, unit_diagonal
        self.swapped = transpose_a == left_side
        self.backwards = lower == self.swapped
        self.columns = b.shape[-1 if left_side else -2]
        self.work = self.count * self.n**2 * self.columns

    def key(self):
        return self.left, self.conjugate, self.unit, self.swapped, self.backwards

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        n, k = self.n, self.columns
        w = self.writer(f, n * max(n, k))
        a = Tile(w, self.elem, n, n)
        x = Tile(w, self.elem, *((n, k) if self.left else (k, n)))
        with f.loop(begin, end) as unit:
            self.load_matrices(w, places[0], unit, a)
            self.load_matrices(w, places[1], unit, x)
            self._solve(w, a, x)
            self.store_matrices(w, places[2], unit, x)

    def _row(self, w: StackWriter, i: Index) -> Index:
        return w.minus(self.n - 1, i) if self.backwards else i

    def _coefficient(self, w: StackWriter, a: Tile, i: Index, j: Index) -> Any:
        i, j = self._row(w, i), self._row(w, j)
        value = a.get(j, i) if self.swapped else a.get(i, j)
        return w.conj(value) if self.conjugate else value

    def _at(self, w: StackWriter, i: Index, column: Index) -> tuple[Index, Index]:
        i = self._row(w, i)
        return (i, column) if self.left else (column, i)

    def _solve(self, w: StackWriter, a: Tile, x: Tile) -> None:
        for i in w.steps(0, self.n):
            pivot = None if self.unit else self._coefficient(w, a, i, i)
            for c, width in w.blocks(0, self.columns):
                sums = [Cell(w, w.elem) for _ in range(width)]
                for r, total in enumerate(sums):
                    total.set(x.get(*self._at(w, i, w.plus(c, r))))
                for k in w.steps(0, i):
                    factor = self._coefficient(w, a, i, k)
                    for r, total in enumerate(sums):
                        known = x.get(*self._at(w, k, w.plus(c, r)))
                        total.set(w.less_product(total.get(), factor, known))
                for r, total in enumerate(sums):
                    value = total.get() if pivot is None else w.div(total.get(), pivot)
                    x.put(*self._at(w, i, w.plus(c, r)), value)
