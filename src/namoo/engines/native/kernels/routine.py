"""Steps with loops of their own: each is one function, which equal steps share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node, Step
from namoo.engines.native.ir.function import Function, Value, bits_of, constant, mask_of
from namoo.engines.native.ir.types import computed_in, is_compound, part_of, parts
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.kernel import Kernel


class Routine(Step):
    """A step whose code is a function `(table, begin, end)` of a range of its `units`."""

    units = 1
    work = 0
    """About how many operations all units take together."""

    def key(self) -> Any:
        """Everything that the code depends on, besides the types of operands and results."""
        raise NotImplementedError

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        """Emit the body.

        Args:
            f: the function.
            places: the operands in memory, then the results, then the scratch memory, if any.
            begin, end: the range of units.
        """
        raise NotImplementedError

    def kernel(self, module, operands, results):
        if all(n.size == 0 for n in results):
            return None
        nodes = (*operands, *results)
        key = (type(self), self.key(), *((n.shape, n.dtype) for n in nodes))
        return module.kernel(key, lambda name: self._kernel(name, nodes))

    def _kernel(self, name: str, nodes: Sequence[Node]) -> Kernel:
        f = Function(name, ["ptr", "i64", "i64"])
        table, begin, end = f.parameters
        places = [
            Place(f.load(f.offset(table, i, "ptr"), "ptr"), n.elem, n.shape)
            for i, n in enumerate(nodes)
        ]
        if self.scratch:
            places.append(Place(f.load(f.offset(table, len(nodes), "ptr"), "ptr"), "u8", ()))
        self.write(f, places, begin, end)
        f.line("  ret void")
        return Kernel(f.name, f.text(), f.declarations, self.units, self.work)

    def emit(self, driver, operands, results, scratch):
        """Emit nothing: a step without a kernel has empty results."""


def integer(x: int) -> Value:
    """A constant for indices."""
    return constant("i64", x)


def here(f: Function, pointer: Value) -> Value:
    """The same pointer, for loads that must not be hoisted out of the current loop or branch."""
    return Value(pointer.name, "ptr", 0, f.depth)


def lanes_of(elem: str) -> int:
    """How many elements fill a vector, in the type that they are computed in."""
    return min(16, tuning.VECTOR_BYTES * 8 // max(bits_of(computed_in(part_of(elem))), 32))


def read(f: Function, pointer: Value, elem: str, position: Value, lanes=0, mask=None) -> Any:
    """Load an element, or `lanes` contiguous ones, and convert it to the type of computation."""
    if not is_compound(elem):
        value = f.load(f.offset(pointer, position, elem), elem, lanes, mask)
        return f.convert(value, computed_in(elem))
    part, count = part_of(elem), parts(elem)
    first = f.mul(position, integer(count))
    if not lanes:
        return tuple(
            f.load(f.offset(pointer, f.add(first, integer(i)), part), part) for i in range(count)
        )
    wide = None if mask is None else f.shuffle(mask, [i // count for i in range(count * lanes)])
    both = f.load(f.offset(pointer, first, part), part, count * lanes, wide)
    return tuple(f.shuffle(both, range(i, count * lanes, count)) for i in range(count))


def write(f: Function, pointer: Value, elem: str, position: Value, value: Any, mask=None) -> None:
    """Store a value as `read` returns it."""
    if not is_compound(elem):
        f.store(f.convert(value, elem), f.offset(pointer, position, elem), mask)
        return
    part, count = part_of(elem), parts(elem)
    first = f.mul(position, integer(count))
    if not value[0].lanes:
        for i, v in enumerate(value):
            f.store(v, f.offset(pointer, f.add(first, integer(i)), part))
        return
    assert count == 2
    n = value[0].lanes
    order = [i // 2 + n * (i % 2) for i in range(2 * n)]
    wide = None if mask is None else f.shuffle(mask, [i // 2 for i in range(2 * n)])
    f.store(f.shuffle(value[0], order, value[1]), f.offset(pointer, first, part), wide)


def transposed(f: Function, rows: Sequence[Value]) -> list[Value]:
    """Transpose a square of lanes: exchange neighbours, then pairs, and so on."""
    rows, n, step = list(rows), len(rows), 1
    while step < n:
        low = [lane if not lane & step else n + lane - step for lane in range(n)]
        high = [lane + step if not lane & step else n + lane for lane in range(n)]
        for i in range(n):
            if not i & step:
                a, b = rows[i], rows[i + step]
                rows[i], rows[i + step] = f.shuffle(a, low, b), f.shuffle(a, high, b)
        step *= 2
    return rows


def along(f: Function, count: int, lanes: int, body) -> None:
    """Run `body(start, lanes, mask)` over `count` elements in vectors; the last may be partial."""
    if lanes == 1:
        with f.loop(0, count) as i:
            body(i, 0, None)
        return
    main = count // lanes * lanes
    if main == lanes:
        body(integer(0), lanes, None)
    elif main:
        with f.loop(0, main, lanes) as i:
            body(i, lanes, None)
    rest = count - main
    if rest == 1:
        body(integer(main), 0, None)
    elif rest:
        body(integer(main), lanes, mask_of(lanes, rest))


def copy(f: Function, target: Value, source: Value, size: Value) -> None:
    """Copy bytes between ranges that do not overlap."""
    name = "llvm.memcpy.p0.p0.i64"
    f.declarations[name] = f"declare void @{name}(ptr, ptr, i64, i1)"
    f.line(f"  call void @{name}(ptr {target.name}, ptr {source.name}, {size!r}, i1 false)")


def clear(f: Function, target: Value, size: Value) -> None:
    """Set bytes to zero."""
    name = "llvm.memset.p0.i64"
    f.declarations[name] = f"declare void @{name}(ptr, i8, i64, i1)"
    f.line(f"  call void @{name}(ptr {target.name}, i8 0, {size!r}, i1 false)")
