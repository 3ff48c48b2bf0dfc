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
            short=0,
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

    def _is_short(self, groups) -> bool:
        return False

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
        n, at = self.sizes[g], self.f.number(whole)
        self.symbols[g] = Loop(at, 0, n - 1, vector=True)
        return self._lanes_before(n, at)

    def _lanes_before(self, n: Any, at: Value) -> Value:
        """The mask of a vector at an index along an axis of size n."""
        f, lanes = self.f, self.lanes
        left = f.convert(f.sub(f.number(n), at), "i32")
        return f.compare("lt", f.iota("i32", lanes), f.splat(left, lanes))

    def _loops(self, inner, values, point, accumulators, unroll: int) -> list[Any]:
        if not inner or not is_dynamic(self.sizes[inner[0]]):
            return super()._loops(inner, values, point, accumulators, unroll)
        f, g = self.f, inner[0]
        if len(inner) > 1:
            n = self.sizes[g]
            with f.loop_while_less(0, n) as i:
                self.symbols[g] = Loop(i, 0, n - 1)
                phis = [tuple(f.carry(v) for v in value) for value in values]
                outs = _left(f, phis, self._loops(inner[1:], phis, point, accumulators, unroll))
            del self.symbols[g]
            return outs
        n, vector = self.sizes[g], g == self.vector_group
        step = self.lanes if vector else 1
        whole, main = n // step * step, n // (step * unroll) * (step * unroll)

        def run(tracks: list[Any], start: Any, stop: Any, masked: bool = False) -> list[Any]:
            with f.loop_while_less(start, stop, step * len(tracks)) as i:
                if masked:
                    self.w.mask = self._lanes_before(n, i)
                phis = [[tuple(f.carry(v) for v in value) for value in t] for t in tracks]
                base = Loop(i, 0, n - 1, vector)
                outs = []
                for u, track in enumerate(phis):
                    self.symbols[g] = Index({base: 1}, u * step)
                    outs.append(point(track))
                return [_left(f, *both) for both in zip(phis, outs, strict=True)]

        tracks, done = [values], 0
        if unroll > 1:
            more = [[a.initial(self.lanes) for a in accumulators] for _ in range(unroll - 1)]
            tracks, done = run([*tracks, *more], 0, main), main
        while len(tracks) > 1:
            x, y, *others = tracks
            tracks = [*others, [a.pair(f, *z) for a, *z in zip(accumulators, x, y, strict=True)]]
        if done != whole:
            tracks = run(tracks, done, whole)
        if vector and whole != n:
            # A loop that runs once, or not at all.
            mask = self.w.mask
            tracks = run(tracks, whole, n, masked=True)
            self.w.mask = mask
        del self.symbols[g]
        return tracks[0]


def _left(f: Any, phis: list[tuple], values: list[tuple]) -> list[tuple]:
    """Set what a loop carries to its next iteration; return what it is after the loop."""
    return [
        tuple(f.left(p, v) for p, v in zip(phi, value, strict=True))
        for phi, value in zip(phis, values, strict=True)
    ]


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _estimated(position: Index) -> Index:
    """A position with typical strides."""
    terms = {s: about(factor) for s, factor in position.terms.items()}
    return Index(terms, about(position.constant))
