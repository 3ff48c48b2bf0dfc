"""Rank-one updates of triangular factors, by one Givens rotation for each row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.types import computed_in, size_of
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.routine import Routine, integer


class Update(Routine):
    """The upper triangular factor of RᵀR + w wᵀ, for a stack of R and w.

    The rotation of row k eliminates element k of w against the diagonal. The rest of w is in
    scratch memory.
    """

    takes_over = {0: 0}

    def __init__(self, r: Node):
        self.n = r.shape[-1]
        self.units = math.prod(r.shape[:-2])
        self.work = self.units * self.n**2
        self.scratch = self.units * self.n * size_of(r.elem)

    def key(self):
        return "cholesky update"

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        old, vectors, out, scratch = places
        n, elem = self.n, out.elem
        row_bytes = n * size_of(elem)
        lanes = routine.lanes_of(elem)
        with f.loop(begin, end) as unit:
            at = f.mul(unit, integer(n * row_bytes))
            source, target = f.offset(old.pointer, at, "i8"), f.offset(out.pointer, at, "i8")
            apart = f.emit_here("i1", 0, f"icmp ne ptr {source.name}, {target.name}")
            with f.branch(apart):
                routine.copy(f, target, source, integer(n * row_bytes))
            at = f.mul(unit, integer(row_bytes))
            w = f.offset(scratch.pointer, at, "i8")
            routine.copy(f, w, f.offset(vectors.pointer, at, "i8"), integer(row_bytes))
            with f.loop(0, n) as k:
                row = routine.here(f, f.offset(target, f.mul(k, integer(n)), elem))
                rest = routine.here(f, w)
                x, y = routine.read(f, row, elem, k), routine.read(f, rest, elem, k)
                length = f.sqrt(f.muladd(x, x, f.mul(y, y)))
                one, zero = (constant(computed_in(elem), v) for v in (1.0, 0.0))
                length = f.select(f.compare("eq", length, zero), one, length)
                c, s = f.fdiv(x, length), f.fdiv(y, length)

                def rotate(j, lanes, mask, row=row, rest=rest, c=c, s=s):
                    row, rest = routine.here(f, row), routine.here(f, rest)
                    a, b = (routine.read(f, v, elem, j, lanes, mask) for v in (row, rest))
                    turned = f.muladd(c, a, f.mul(s, b)), f.muladd(c, b, f.neg(f.mul(s, a)))
                    routine.write(f, row, elem, j, turned[0], mask)
                    routine.write(f, rest, elem, j, turned[1], mask)

                routine.along(f, n, lanes, rotate)
