"""Which loop of a kernel is vectorised: the one that needs the fewest instructions.

Each load and store is weighted by how often it runs and by its cost: a contiguous vector is one
instruction, an element that all lanes share is one, and elements at other offsets are shuffled from
a few vectors, or take an instruction each.

The last axis may be short, such as that of RGB images or of points in a plane. It can be joined
with the one before: vectors run along both axes, and values that vary along one of them only repeat
with a period of a few vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from namoo.engines.native import tuning
from namoo.engines.native.ir.index import Index, Quotient, Symbol


class Width(NamedTuple):
    """How wide vectors are.

    Attributes:
        lanes: the elements of a vector.
        narrow: the elements of one register.
    """

    lanes: int
    narrow: int

    @property
    def registers(self) -> int:
        return self.lanes // self.narrow


class Choice(NamedTuple):
    """The loops of a kernel.

    Attributes:
        groups: the axes of each loop.
        vector: the loop whose variable is a vector.
        width: how wide it is.
        copies: if it runs along two joined axes, the period of a pattern along the second one, in
          vectors; else 0.
        cost: about how many instructions it takes.
    """

    groups: list[list[int]]
    vector: int | None
    width: Width
    copies: int = 0
    cost: float = math.inf


class Work(NamedTuple):
    """What a kernel computes.

    Attributes:
        space: the sizes of its axes, the first `split` of which are outer ones.
        loads, stores: the positions that it touches, in terms of one symbol for each axis.
        symbols: these symbols.
        operations: the cost of a point, without loads and stores.
        sums: the number of reductions.
        per_row: the cost of what is computed once for all inner axes, and needed along them.
        shares_rows: whether rows of values are shared by the lanes of a vector along an outer axis.
        short: the length of a row that a vector of rows keeps in registers; 0 for longer rows.
    """

    space: tuple[int, ...]
    split: int
    loads: Sequence[Index]
    stores: Sequence[Index]
    symbols: Sequence[Symbol]
    operations: int
    sums: int
    per_row: int
    shares_rows: bool
    short: int


def choose(work: Work, groups: list[list[int]], width: Callable[[int, bool], Width]) -> Choice:
    """Choose the loop to vectorise.

    Args:
        work: the kernel.
        groups: the axes that can be merged into one loop.
        width: `width(size, columns)` is the width of vectors along an axis of some size; `columns`
          says whether sums along other axes read contiguous pieces along this one.
    """
    best, chosen = math.inf, Choice(groups, None, Width(0, 0))
    for choice in _choices(work, groups, width):
        cost = _cost(work, choice)
        # The last axis breaks ties: it has the longest contiguous runs.
        if cost <= best:
            best, chosen = cost, choice._replace(cost=cost)
    return chosen


def _choices(work: Work, groups: list[list[int]], width: Callable[[int, bool], Width]):
    reduces = work.split < len(work.space)
    sizes = [math.prod(work.space[a] for a in group) for group in groups]
    for g, group in enumerate(groups):
        is_outer = reduces and group[-1] < work.split
        if not (work.shares_rows and is_outer):
            contiguous = any(p.terms.get(work.symbols[group[-1]]) == 1 for p in work.loads)
            yield Choice(groups, g, width(sizes[g], is_outer and contiguous))
    if len(groups) < 2 or reduces:
        return
    *others, before, last = groups
    lanes = width(sizes[-2] * sizes[-1], False).narrow
    copies = math.lcm(sizes[-1], lanes) // lanes
    if sizes[-1] < lanes and copies <= tuning.JOINED_COPIES:
        yield Choice([*others, [*before, *last]], len(others), Width(lanes, lanes), copies)


def _cost(work: Work, choice: Choice) -> float:
    space, split, groups, vector = work.space, work.split, choice.groups, choice.vector
    assert vector is not None
    reduces = split < len(space)
    is_outer = groups[vector][-1] < split
    sizes = [math.prod(space[a] for a in group) for group in groups]
    lanes, narrow = choice.width
    registers = choice.width.registers
    trips = [*sizes]
    trips[vector] = -(-sizes[vector] // lanes)
    order = sorted(range(len(groups)), key=lambda g: (groups[g][-1] >= split, g == vector, g))
    partial = 2.0 if sizes[vector] < lanes else 1.0

    def executions(symbols: set[Symbol]) -> int:
        """How often an instruction runs that depends on some loop variables, after hoisting."""
        total = count = 1
        for g in order:
            total *= trips[g]
            if any(work.symbols[a] in symbols for a in groups[g]):
                count = total
        return count

    total = float(math.prod(trips) * registers * work.operations)
    for positions, single in ((work.loads, tuning.GATHERED), (work.stores, tuning.SCATTERED)):
        for p in set(positions):
            offsets = _lanes_apart(work, p, groups[vector], lanes)
            if offsets is None:
                price = lanes * single
            elif not any(offsets):
                price = 1.0
            elif offsets[-1] == lanes - 1 and offsets == [*range(lanes)]:
                price = registers * partial
            elif positions is work.stores and is_outer and offsets[1] == work.short:
                price = float(registers * work.short)  # rows are interleaved
            elif positions is work.stores:
                price = 2.0 * registers if offsets == [*range(0, -lanes, -1)] else lanes * single
            else:
                pieces = windows(offsets[:narrow], narrow)
                price = lanes * single if pieces is None else registers * (2.0 * len(pieces) - 1)
            total += executions(symbols_of(p)) * price
    if reduces:
        rows = math.prod(space[:split])
        total += rows * work.per_row / (lanes if is_outer else 1)
        if not is_outer:
            total += rows * work.sums * tuning.FOLDED
    return total


def _lanes_apart(work: Work, position: Index, axes: list[int], lanes: int) -> list[int] | None:
    """The positions of lanes relative to the first lane; None if they are irregular."""
    along = [work.symbols[a] for a in axes]
    for symbol in position.terms:
        if isinstance(symbol, Quotient) and not symbols_of(symbol.base).isdisjoint(along):
            return None
    steps = [position.terms.get(s, 0) for s in along]
    if not any(steps) and any(type(s) is Symbol for s in position.terms):
        return None  # the position depends on data, which may differ from lane to lane
    sizes = [work.space[a] for a in axes]
    if all(a == n * b for a, b, n in zip(steps[:-1], steps[1:], sizes[1:], strict=True)):
        return [steps[-1] * lane for lane in range(lanes)]
    out = [0] * lanes
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    for step, stride, n in zip(steps, strides, sizes, strict=True):
        out = [o + step * (lane // stride % n) for lane, o in enumerate(out)]
    return out


def split_axes(
    positions: Sequence[Index], symbols: Sequence[Symbol], sizes: Sequence[int]
) -> list[tuple[int, ...]] | None:
    """The loops into which each axis must be split so that no position divides it.

    Reshaping cuts axes: the elements of the last 24 of an axis of 192 may be a row of an operand.
    None if no axis is cut.
    """
    cuts: dict[Symbol, set[int]] = {s: set() for s in symbols}
    for position in positions:
        for symbol in position.terms:
            _cut(symbol, cuts)
    parts = []
    for symbol, n in zip(symbols, sizes, strict=True):
        ends = [*sorted(d for d in cuts[symbol] if d < n), n]
        if any(b % a for a, b in zip(ends, ends[1:], strict=False)):
            ends = [n]
        parts.append(tuple(b // a for a, b in zip([1, *ends], ends, strict=False))[::-1])
    return parts if any(len(part) > 1 for part in parts) else None


def _cut(symbol: Symbol, cuts: dict[Symbol, set[int]]) -> tuple[Symbol, int] | None:
    """Note at which distances divisions cut an axis; return the axis and the divisor."""
    if not isinstance(symbol, Quotient):
        return (symbol, 1) if symbol in cuts else None
    inner = [(_cut(s, cuts), factor) for s, factor in symbol.base.terms.items()]
    if len(inner) != 1 or inner[0][0] is None or inner[0][1] != 1 or symbol.base.constant:
        return None
    axis, divisor = inner[0][0]
    divisor *= symbol.divisor
    cuts[axis].add(divisor)
    return None if symbol.remainder else (axis, divisor)


def symbols_of(index: Index) -> set[Symbol]:
    """All symbols of an index, those in quotients too."""
    out = set()
    for s in index.terms:
        out |= {s} | (symbols_of(s.base) if isinstance(s, Quotient) else set())
    return out


def windows(offsets: Sequence[int], lanes: int) -> list[tuple[int, int]] | None:
    """Cover some elements by contiguous pieces of memory; return their starts and lengths.

    A piece is at most `lanes` long, and stays between the first and the last element.  None if
    there were so many that loading elements one by one is better.
    """
    needed = sorted(set(offsets))
    low, high = needed[0], needed[-1]
    out: list[tuple[int, int]] = []
    for o in needed:
        if out and o < out[-1][0] + out[-1][1]:
            continue
        start = max(min(o, high - lanes + 1), low)
        last = max(p for p in needed if p < start + lanes)
        # The elements in between are loaded, too, if that fills a whole vector.
        whole = start + lanes - 1 <= high
        out.append((start, lanes if whole else last - start + 1))
        if len(out) > max(lanes // 2, 2):
            return None
    return out
