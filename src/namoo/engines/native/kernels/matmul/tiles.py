"""Tiles and panels of matrix products: sums in registers, and packing.

Code that does not depend on the sizes of a product is in functions that kernels share, since LLVM's
time grows with the length of its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from namoo._base.caches import cached
from namoo.engines.native import tuning
from namoo.engines.native.ir.function import (
    Function,
    Mask,
    Value,
    bits_of,
    constant,
    mask_of,
    storage,
    suffix,
    vector_type,
)
from namoo.engines.native.ir.index import Index, unravel
from namoo.engines.native.ir.words import add_products
from namoo.engines.native.kernels.matmul.matrix_layout import Axis, Product, length

# A range of tiles: the first, the end, and the row after which no tile begins.
Tiles = tuple[Value | int, Value | int, int]
ONE: Tiles = (0, 1, 0)


class Step:
    """The sum of a tile: loops over the terms, with the sums in registers."""

    def __init__(
        self, f: Function, elem: str, lanes: int, offsets: list[int], vectors: int, narrow: str = ""
    ):
        self.f = f
        self.elem = elem
        self.narrow = narrow
        self.lanes = lanes
        self.offsets = offsets
        self.vectors = vectors
        self.last: Mask | None = None
        """The mask of the last vector."""

    def can_call(self, inner: Sequence[Axis]) -> bool:
        """Whether a shared function can compute the sums.

        Loops with few sums are unrolled for one number of terms, which cannot be shared.
        """
        sums = len(self.offsets) * self.vectors
        short = inner[0].size * sums <= tuning.TILE_UNROLLED
        return (
            len(inner) == 1
            and tuning.TILE_LOOP_BODY < 2 * sums
            and not short
            and even(self.offsets)
        )

    def call(
        self,
        a: Value,
        b: Value,
        axis: Axis,
        out: Value,
        width: int,
        some: Tiles,
        mask: Mask | None,
        *,
        copy: Value | None = None,
        apart: bool = False,
    ) -> None:
        """Call a function that computes the sums of tiles; products with equal tiles share it.

        It stores the sums in rows that are `width` apart, the last vector of each under `mask`. If
        there is a pointer for a `copy` of the panel, it also packs the rows that it reads.
        """
        rows, step = len(self.offsets), self.offsets[1]
        extra = [] if copy is None else [copy]
        masks = [x.count if x else self.lanes for x in (mask if extra else self.last, mask)]
        function = _summing(
            self.elem, self.narrow, self.lanes, rows, self.vectors, *masks, bool(extra)
        )
        # Rows of the next tile are spaced as those of this one, or all rows are contiguous.
        following = axis.left if axis.left > step else rows * step // axis.size
        left = step, axis.left, following
        right = axis.right, axis.size
        function.call(self.f, a, *left, b, *right, out, width, *some, *extra, apart=apart)

    def run(self, a: Value, b: Value, inner: Sequence[Axis], sums: list[Value]) -> list[Value]:
        """The sums over some axes."""
        f, (axis, *rest) = self.f, inner
        if length(inner) * len(sums) <= tuning.TILE_UNROLLED or length(inner) < 4:
            return self._written_out(a, b, inner, sums)
        if not rest:
            return self._innermost(a, b, axis, sums)
        with f.loop(0, axis.size) as i:
            phis = [f.carry(s) for s in sums]
            out = self.run(self._at(a, i, axis.left), self._at(b, i, axis.right), rest, phis)
            return_value = [f.carried(p, s) for p, s in zip(phis, out, strict=True)]
        return return_value

    def _at(self, pointer: Value, i: Value, stride: int) -> Value:
        return self.f.offset(pointer, self.f.stepped(i, stride), self.elem)

    def _written_out(self, a, b, inner, sums):
        for n in range(length(inner)):
            at = unravel(Index.of(n), tuple(x.size for x in inner))
            left = sum(i.constant * x.left for i, x in zip(at, inner, strict=True))
            right = sum(i.constant * x.right for i, x in zip(at, inner, strict=True))
            sums = self._term(a, b, left, right, sums)
        return sums

    def _innermost(self, a, b, axis: Axis, sums):
        f = self.f
        most = min(axis.size, max(1, tuning.TILE_LOOP_BODY // len(sums)))
        unroll = next(u for u in range(most, 0, -1) if axis.size % u == 0 or u == most // 2)
        turns = axis.size // unroll
        with f.loop(0, turns * unroll, unroll) as i:
            phis = [f.carry(s) for s in sums]
            left, right = self._at(a, i, axis.left), self._at(b, i, axis.right)
            out = phis
            for u in range(unroll):
                out = self._term(left, right, u * axis.left, u * axis.right, out)
            sums = [f.carried(p, s) for p, s in zip(phis, out, strict=True)]
        for u in range(turns * unroll, axis.size):
            sums = self._term(a, b, u * axis.left, u * axis.right, sums)
        return sums

    def _term(self, a: Value, b: Value, left: int, right: int, sums: list[Value]) -> list[Value]:
        rows = [self.f.offset(a, left + offset, self.elem) for offset in self.offsets]
        return self.term(rows, self.row(self.f.offset(b, right, self.elem)), sums)

    def row(self, b: Value) -> list[Value]:
        """The vectors of a row of the panel."""
        f, out = self.f, []
        for v in range(self.vectors):
            mask = self.last if v == self.vectors - 1 else None
            address = f.offset(b, v * self.lanes, self.elem)
            out.append(f.load(address, self.elem, self.lanes, mask))
        return out

    def term(
        self, rows: Sequence[Value], vectors: Sequence[Value], sums: list[Value]
    ) -> list[Value]:
        """Add one term to all sums: an element of each row times a row of the panel."""
        f, n = self.f, self.vectors
        out = []
        for r, row in enumerate(rows):
            x = f.splat(f.load(row, self.elem), self.lanes)
            add = partial(add_products, f, self.narrow) if self.narrow else f.muladd
            out += [add(x, vectors[v], sums[r * n + v]) for v in range(n)]
        return out


class Packing:
    """Packs a panel of the right operand: for each term, `vectors` vectors of its columns."""

    def __init__(self, f: Function, product: Product, lanes: int, columns: int, vectors: int):
        self.f = f
        self.elem = product.elem
        self.inner = product.inner
        self.stride = product.columns.right
        self.lanes = lanes
        self.columns = columns
        self.vectors = vectors

    def write(self, source: Value, target: Value) -> None:
        """Write the loops."""
        self._nest(source, target, self.inner)

    def _nest(self, source: Value, target: Value, inner: Sequence[Axis]) -> None:
        f, (axis, *rest) = self.f, inner
        width = self.vectors * self.lanes
        if not rest:
            if self.stride == 1 or self.columns == 1:
                self._rows(source, target, axis)
            elif axis.right == 1:
                self._transposed(source, target, axis)
            else:
                self._gathered(source, target, axis)
            return
        with f.loop(0, axis.size) as i:
            step = constant("i64", length(rest) * width)
            self._nest(
                f.offset(source, f.mul(i, constant("i64", axis.right)), self.elem),
                f.offset(target, f.mul(i, step), self.elem),
                rest,
            )

    def _rows(self, source: Value, target: Value, axis: Axis) -> None:
        """Pack a panel whose rows are contiguous in the operand."""
        function = _copying(self.elem, self.lanes, self.columns)
        function.call(self.f, source, axis.right, target, axis.size)

    def _transposed(self, source: Value, target: Value, axis: Axis) -> None:
        """Pack a panel whose columns are contiguous in the operand: transpose it."""
        f, elem, n = self.f, self.elem, self.lanes
        whole, rest = divmod(self.columns, n)
        first = 0
        for vectors, columns in ((whole, n), (1, rest)):
            if vectors and columns:
                function = _transposing(elem, n, columns, min(axis.size, _quarter(elem, n)))
                row = f.offset(source, first * self.stride, elem)
                out = f.offset(target, first, elem)
                width = self.vectors * n
                function.call(f, row, self.stride, out, width, axis.size, vectors)
            first += vectors * columns

    def _gathered(self, source: Value, target: Value, axis: Axis) -> None:
        f, elem, n, width = self.f, self.elem, self.lanes, self.vectors * self.lanes
        kind, size = vector_type(elem, n), bits_of(elem) // 8
        name = f"llvm.masked.gather.{suffix(elem, n)}.v{n}p0"
        f.declarations[name] = f"declare {kind} @{name}(<{n} x ptr>, <{n} x i1>, {kind})"
        with f.loop(0, axis.size) as i:
            row = f.offset(source, f.mul(i, constant("i64", axis.right)), elem)
            out = f.offset(target, f.mul(i, constant("i64", width)), elem)
            for v, mask in enumerate(_masks(self.columns, n)):
                mask = mask or f.splat(constant("i1", True), n)
                first = f.offset(row, v * n * self.stride, elem)
                steps = ", ".join(f"i64 {j * self.stride}" for j in range(n))
                text = f"getelementptr {storage(elem)}, ptr {first.name}, <{n} x i64> <{steps}>"
                addresses = f.emit("ptr", n, text, (first,))
                text = (
                    f"call {kind} @{name}(<{n} x ptr> align {size} {addresses.name}, {mask!r}, "
                    f"{kind} zeroinitializer)"
                )
                f.store(f.emit(elem, n, text, (addresses,)), f.offset(out, v * n, elem))


def _masks(columns: int, lanes: int) -> list[Mask | None]:
    """The masks of the vectors that hold this many columns; None for full vectors."""
    rest = columns % lanes
    return [*[None] * (columns // lanes), *([mask_of(lanes, rest)] if rest else [])]


class Shared:
    """A function that several kernels may call; LLVM inlines it if there is only one call."""

    def __init__(self, f: Function):
        f.line("  ret void")
        self.name = f.name
        self.declarations = f.declarations
        self.text = f.text("nounwind")

    def call(self, f: Function, *arguments: Value | int, apart: bool = False) -> None:
        """Emit a call of it; if `apart`, it is never inlined."""
        values = [constant("i64", x) if isinstance(x, int) else x for x in arguments]
        f.declarations |= self.declarations
        text = self.text
        f.declarations[self.name] = (
            text.replace(") nounwind", ") noinline nounwind", 1) if apart else text
        )
        f.line(f"  call void @{self.name}({', '.join(map(repr, values))})")


@cached("native tiles: summing kernels", bound=256, keyed_by="element type and sizes of the tile")
def _summing(
    elem: str,
    narrow: str,
    lanes: int,
    count: int,
    vectors: int,
    loaded: int,
    stored: int,
    copies: bool,
) -> Shared:
    """A function that computes the sums of the tiles from `first` to `stop`.

    No tile begins after row `end`.  While one is summed, elements of the next are prefetched, which
    are `following` apart.  If it `copies`, it also packs the rows of the panel as it reads them.
    """
    name = f"summed.{narrow}{suffix(elem, lanes)}.{count}.{vectors}.{loaded}.{stored}"
    kinds = "ptr i64 i64 i64 ptr i64 i64 ptr i64 i64 i64 i64".split()
    f = Function(name + copies * ".copied", [*kinds, *copies * ["ptr"]], "internal void")
    a, step, left, following, b, right, terms, out, width, first, stop, end, *copy = f.parameters
    steps = [f.mul(step, constant("i64", r)) for r in range(count)]
    # There are enough registers for this many addresses.
    group = -(-count // 8)
    start = constant("i64", 0)
    zero = Value(f"splat ({constant(elem, 0.0)!r})", elem, lanes)
    tile = Step(f, elem, lanes, [], vectors, narrow)
    tile.last = mask_of(lanes, loaded) if loaded < lanes else None
    last = mask_of(lanes, stored) if stored < lanes else None
    with f.loop(first, stop) as n:
        at = f.minimum(f.mul(n, constant("i64", count)), end)
        top = f.offset(a, f.mul(at, step), elem)
        after = f.offset(top, f.mul(step, constant("i64", count)), elem)
        firsts = [f.offset(top, steps[r], elem) for r in range(0, count, group)]
        with f.loop(0, terms) as k:
            phis = [f.carry(zero) for _ in range(count * vectors)]
            i, j = f.carry(start), f.carry(start)
            shifts = [f.add(i, steps[r]) for r in range(group)]
            rows = [f.offset(firsts[r // group], shifts[r % group], elem) for r in range(count)]
            f.prefetch(f.offset(after, f.mul(k, following), elem))
            row = f.offset(b, j, elem)
            values = tile.row(row)
            if copies:
                ahead = f.offset(row, f.mul(right, constant("i64", tuning.PANEL_PREFETCH)), elem)
                target = f.offset(copy[0], f.mul(k, constant("i64", vectors * lanes)), elem)
                for v, value in enumerate(values):
                    f.prefetch(f.offset(ahead, v * lanes, elem))
                    f.store(value, f.offset(target, v * lanes, elem))
            sums = tile.term(rows, values, phis)
            sums = [f.carried(p, s) for p, s in zip(phis, sums, strict=True)]
            f.carried(i, f.add(i, left))
            f.carried(j, f.add(j, right))
        row = f.offset(out, f.mul(at, width), elem)
        for r in range(count):
            for v in range(vectors):
                mask = last if v == vectors - 1 else None
                f.store(sums[r * vectors + v], f.offset(row, v * lanes, elem), mask)
            row = f.offset(row, width, elem)
    return Shared(f)


@cached("native tiles: copying kernels", bound=256, keyed_by="element type, lanes, columns")
def _copying(elem: str, lanes: int, columns: int) -> Shared:
    """A function that copies rows which are `stride` apart to contiguous memory."""
    name = f"copied.{suffix(elem, lanes)}.{columns}"
    f = Function(name, ["ptr", "i64", "ptr", "i64"], "internal void")
    source, stride, target, count = f.parameters
    masks = _masks(columns, lanes)
    with f.loop(0, count) as i:
        row = f.offset(source, f.mul(i, stride), elem)
        out = f.offset(target, f.mul(i, constant("i64", len(masks) * lanes)), elem)
        for v, mask in enumerate(masks):
            value = f.load(f.offset(row, v * lanes, elem), elem, lanes, mask)
            f.store(value, f.offset(out, v * lanes, elem))
    return Shared(f)


def _quarter(elem: str, lanes: int) -> int:
    """How many elements a shuffle may exchange and still be a single, cheap instruction."""
    return min(lanes, 128 // bits_of(elem))


@cached(
    "native tiles: transposing kernels",
    bound=256,
    keyed_by="element type, lanes, columns, terms",
)
def _transposing(elem: str, lanes: int, columns: int, count: int) -> Shared:
    """A function that transposes rows `stride` apart into rows `width` apart, by `count` terms.

    Quarters of registers are loaded directly into position, so that shuffles exchange elements only
    within a quarter.
    """
    name = f"transposed.{suffix(elem, lanes)}.{columns}.{count}"
    f = Function(name, ["ptr", "i64", "ptr", "i64", "i64", "i64"], "internal void")
    source, stride, target, width, terms, vectors = f.parameters
    quarter = _quarter(elem, lanes)
    steps = [f.mul(stride, constant("i64", r)) for r in range(0, lanes, quarter)]
    zero = Value(f"splat ({constant(elem, 0.0)!r})", elem, quarter)
    mask = mask_of(quarter, count) if count < quarter else None
    with f.loop(0, vectors) as v:
        first = f.offset(source, f.mul(f.mul(v, stride), constant("i64", lanes)), elem)
        out = f.offset(target, f.mul(v, constant("i64", lanes)), elem)
        with f.loop(0, terms, count) as i:
            # If `count` does not divide the terms, the last step repeats some of the one before.
            i = f.minimum(i, f.sub(terms, constant("i64", count)))
            row, rows = f.offset(first, i, elem), []
            for r in range(quarter):
                pieces = [
                    f.load(f.offset(row, step, elem), elem, quarter, mask)
                    if r + s * quarter < columns
                    else zero
                    for s, step in enumerate(steps)
                ]
                rows.append(_joined(f, pieces))
                row = f.offset(row, stride, elem)
            column = f.offset(out, f.mul(i, width), elem)
            for value in _transposed_squares(f, rows)[:count]:
                f.store(value, column)
                column = f.offset(column, width, elem)
    return Shared(f)


def _joined(f: Function, vectors: list[Value]) -> Value:
    """Concatenate vectors; their number is a power of two."""
    while len(vectors) > 1:
        both = range(2 * vectors[0].lanes)
        vectors = [f.shuffle(x, both, y) for x, y in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def _transposed_squares(f: Function, rows: list[Value]) -> list[Value]:
    """Transpose the squares that are side by side in vectors.

    Each of log₂(n) steps interleaves the elements of the first half of the rows with those of the
    second.
    """
    n, lanes = len(rows), rows[0].lanes
    low = [i // n * n + i % n // 2 + i % 2 * lanes for i in range(lanes)]
    high = [i + n // 2 for i in low]
    for _ in range(n.bit_length() - 1):
        pairs = zip(rows[: n // 2], rows[n // 2 :], strict=True)
        rows = [f.shuffle(x, order, y) for x, y in pairs for order in (low, high)]
    return rows


def even(offsets: list[int]) -> bool:
    """Whether offsets are evenly spaced."""
    return all(x == i * offsets[1] for i, x in enumerate(offsets) if i)
