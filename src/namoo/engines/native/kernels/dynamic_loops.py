"""Kernels of loops over sizes that are known at run time.

They are those of `elementwise`, with the number of iterations computed from the program's sizes. A
vector that does not fit at the end of an axis has a mask, computed at run time too.
"""

from __future__ import annotations

from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import REDUCE
from namoo.engines.native.ir.extents import about, is_dynamic, typical
from namoo.engines.native.ir.function import Value
from namoo.engines.native.ir.index import Index, Loop
from namoo.engines.native.kernels.elementwise import KernelEmitter
from namoo.engines.native.kernels.vector_axis import Choice, Width, Work, choose


class DynamicEmitter(KernelEmitter):
    """Writes the code of a kernel whose space has sizes that are known at run time."""

    def _choice(self, loads, stores, symbols) -> Choice:
        groups = self._merge(loads + stores, symbols)
        space, split = typical(self.space), self.split
        points = _product(space)
        roots = self.spec.roots
        work = Work(
            space,
            split,
            [*map(_estimated, loads)],
            [*map(_estimated, stores)],
            symbols,
            operations=max(1, sum(n.cost for n in self.computed if n.count >= points)),
            sums=sum(r.kind is REDUCE for r in roots),
            per_row=0,
            shares_rows=any(r.shape == self.spec.space for r in roots) and self.reduces,
            joins=False,
        )
        choice = choose(work, groups, self._width)
        if choice.vector is None:
            return choice
        dynamic = any(is_dynamic(self.spec.space[a]) for a in choice.groups[choice.vector])
        narrow = choice.width.narrow
        return choice._replace(width=Width(narrow, narrow)) if dynamic else choice

    def _across(self, outer, loads, bytes_loaded, stores, symbols) -> int | None:
        return None

    def _finishes_together(self, g: int) -> bool:
        return False

    def _prefetch(self, ahead, roots) -> None:
        pass

    def _unroll(self, roots) -> int:
        return 1 if self.shuffles else max(1, tuning.UNROLL // self.registers)

    def _outer(self, loops: list[int], inner: list[int], first: bool = False) -> None:
        if not loops or loops[0] != self.vector_group or not is_dynamic(self.sizes[loops[0]]):
            super()._outer(loops, inner, first)
            return
        f, g, lanes = self.f, loops[0], self.lanes
        n = self.sizes[g]
        whole = n // lanes * lanes
        start, stop = f.number(0), f.number(whole)
        if first:
            self.units = (n + lanes - 1) // lanes
            width = f.number(lanes)
            start, stop = f.mul(self.begin, width), f.minimum(f.mul(self.end, width), stop)
        with f.loop_while_less(start, stop, lanes) as i:
            self.symbols[g] = Loop(i, 0, n - 1, vector=True)
            self.row(inner)
        if whole == n:
            return
        rest = f.compare("lt", f.number(whole), f.number(n))
        if first:
            rest = f.and_(rest, f.compare("eq", self.end, f.number(self.units)))
        with f.branch(rest):
            self.w.mask = self._end_of(g, whole)
            self.row(inner)
            self.w.mask = None

    def _end_of(self, g: int, whole: Any) -> Value:
        """Set the last vector along an axis, after `whole` elements; return its mask."""
        f, lanes, n = self.f, self.lanes, self.sizes[g]
        self.symbols[g] = Loop(f.number(whole), 0, n - 1, vector=True)
        left = f.convert(f.sub(f.number(n), f.number(whole)), "i32")
        return f.compare("lt", f.iota("i32", lanes), f.splat(left, lanes))

    def _loops(self, inner, values, point, accumulators, unroll: int) -> list[Any]:
        if len(inner) != 1 or not is_dynamic(self.sizes[inner[0]]):
            return super()._loops(inner, values, point, accumulators, unroll)
        f, g = self.f, inner[0]
        n, vector = self.sizes[g], g == self.vector_group
        step = self.lanes if vector else 1
        whole, main = n // step * step, n // (step * unroll) * (step * unroll)

        def run(tracks: list[Any], start: Any, stop: Any) -> list[Any]:
            with f.loop_while_less(start, stop, step * len(tracks)) as i:
                phis = [[tuple(f.carry(v) for v in value) for value in t] for t in tracks]
                base = Loop(i, 0, n - 1, vector)
                outs = []
                for u, track in enumerate(phis):
                    self.symbols[g] = Index({base: 1}, u * step)
                    outs.append(point(track))
                return [
                    [
                        tuple(f.left(p, v) for p, v in zip(phi, out, strict=True))
                        for phi, out in zip(*both, strict=True)
                    ]
                    for both in zip(phis, outs, strict=True)
                ]

        tracks, done = [values], 0
        if unroll > 1:
            more = [[a.initial(self.lanes) for a in accumulators] for _ in range(unroll - 1)]
            tracks, done = run([*tracks, *more], 0, main), main
        while len(tracks) > 1:
            x, y, *others = tracks
            tracks = [*others, [a.pair(f, *z) for a, *z in zip(accumulators, x, y, strict=True)]]
        if done != whole:
            tracks = run(tracks, done, whole)
        values = tracks[0]
        if vector and whole != n:
            mask, self.w.mask = self.w.mask, self._end_of(g, whole)
            values = point(values)
            self.w.mask = mask
        del self.symbols[g]
        return values


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _estimated(position: Index) -> Index:
    """A position with typical strides."""
    terms = {s: about(factor) for s, factor in position.terms.items()}
    return Index(terms, about(position.constant))
