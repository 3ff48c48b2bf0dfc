"""Concatenation, padding, and writing a slice.

Each piece is copied row by row. If the array that a slice is written into is not read later, the
result takes over its buffer, and only the slice is written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from namoo.core.avals import ShapedArray
from namoo.dimensions.sizes import larger
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import COMPUTE, Node, Step
from namoo.engines.native.ir import target
from namoo.engines.native.ir.extents import about, at_least, is_dynamic
from namoo.engines.native.ir.function import Function, Value, storage
from namoo.engines.native.ir.types import is_compound, is_signed_integer, size_of
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place
from namoo.engines.native.kernels.routine import Routine, integer
from namoo.engines.native.kernels.scatter import strides_of

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


def copy_block(
    driver: Any,
    target: Value,
    shape: Sequence[int],
    starts: Sequence[Value | int],
    source: Value,
    block: Sequence[int],
    size: int,
) -> None:
    """Copy a contiguous block into an array at `starts`; elements have `size` bytes."""
    f = driver.f
    row, axes = size, len(block)
    while axes and block[axes - 1] == shape[axes - 1]:
        axes -= 1
        row *= block[axes]
    if axes:  # the last axis that is not whole is contiguous too
        row *= block[axes - 1]
    strides = [math.prod(shape[i + 1 :]) * size for i in range(len(shape))]
    for start, stride in zip(starts, strides, strict=True):
        if isinstance(start, int):
            target = f.offset(target, start * stride, "i8")
        else:
            target = f.offset(target, f.mul(start, f.number(stride)), "i8")

    def nest(axis: int, target: Value, source: Value) -> None:
        if axis >= axes - 1:
            driver.copy(target, source, row)
            return
        if block[axis] == 1:
            nest(axis + 1, target, source)
            return
        inner = math.prod(block[axis + 1 :]) * size
        with f.loop(0, block[axis]) as i:
            nest(
                axis + 1,
                f.offset(target, f.mul(i, f.number(strides[axis])), "i8"),
                f.offset(source, f.mul(i, f.number(inner)), "i8"),
            )

    nest(0, target, source)


class Join(Routine):
    """Concatenates arrays along an axis."""

    def __init__(self, axis: int, xs: Sequence[Node]):
        self.axis = axis
        self.units = math.prod(xs[0].shape[:axis])
        self.work = sum(x.size for x in xs)

    def key(self):
        return self.axis

    def computed(self, operands):
        """A few pieces that are at hand, or all of one array: a vector reads both sides of a cut.

        Lanes on either side are read by loads with masks, which narrow types lack on many
        processors.
        """
        elem, sources = operands[0].elem, {_source(x) for x in operands}
        masked = target.has("avx2") if size_of(elem) >= 4 else target.has("avx512bw")
        if not masked or is_compound(elem) or len(operands) > tuning.COMPUTED_PIECES:
            return None
        if len(sources) > 1 and max(map(_weight, sources)) >= tuning.EXPENSIVE:
            return None
        shape = [*operands[0].shape]
        shape[self.axis] = sum(x.shape[self.axis] for x in operands)
        fn, key = _element(operands, self.axis)
        cost = 2 * len(operands)
        return Node(
            COMPUTE, tuple(shape), operands[0].dtype, tuple(operands), fn=fn, key=key, cost=cost
        )

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        *sources, target = places
        rows = [math.prod(x.shape[self.axis :]) * size_of(target.elem) for x in sources]
        with f.loop(begin, end) as i:
            out = f.offset(target.pointer, f.stepped(i, sum(rows)), "i8")
            for x, row in zip(sources, rows, strict=True):
                source = f.offset(x.pointer, f.stepped(i, row), "i8")
                routine.copy(f, out, source, routine.integer(row))
                out = f.offset(out, row, "i8")


class Write(Step):
    """Writes the second operand into the first, at the starts in the others.

    The result takes over the buffer of the first operand if nothing reads it later.
    """

    takes_sizes = True
    takes_over = {0: 0}

    def __init__(self, starts: Sequence[int] | None = None, written: int = 0):
        self.starts = starts
        self.written = written
        """How many elements are written, if the starts are operands."""

    def small(self):
        return not is_dynamic(self.written) and 0 < self.written <= tuning.REGISTER_ELEMENTS

    def unrolled_operations(self):
        return 2 * self.written

    def in_registers(self, driver, operands, outer, nodes):
        f, (_, updates, *starts) = driver.f, operands
        (x, part, *_), first = nodes, integer(0)
        strides = strides_of(x.shape)
        for (start,), stride, n, m in zip(starts, strides, x.shape, part.shape, strict=True):
            first = f.add(first, f.mul(_clamped(f, start, n - m), f.number(stride)))
        place = outer.places[x]
        for at, value in zip(itertools.product(*map(range, part.shape)), updates, strict=True):
            offset = sum(i * stride for i, stride in zip(at, strides, strict=True))
            routine.write(f, place.pointer, x.elem, f.add(first, f.number(offset)), value)
        f.epoch += 1
        return [None]

    def emit(self, driver, operands, results, scratch):
        (x, source), (part, written), *rest = operands
        ((_, target),) = results
        size = size_of(x.elem)
        driver.copy_unless_aliased(target, source, x.size * size)
        starts = self.starts or [
            _start(driver, node, p, n - m)
            for (node, p), n, m in zip(rest, x.shape, part.shape, strict=True)
        ]
        copy_block(driver, target, x.shape, starts, written, part.shape, size)


def _start(driver: Any, node: Node, pointer: Value, last: int) -> Value | int:
    """A start in memory, clamped to [0, last]."""
    if last == 0:
        return 0
    f = driver.f
    value = f.emit_here(node.elem, 0, f"load {storage(node.elem)}, ptr {pointer.name}")
    return _clamped(f, value, last)


def _clamped(f: Function, value: Value, last: int) -> Value:
    """A start as an index in [0, last]."""
    signed = is_signed_integer(value.elem)
    value = f.convert(value, "i64")
    if signed:
        value = f.maximum(value, integer(0))
    return f.minimum(value, f.number(last))


def concatenate(emit: Emitter, xs: Sequence[Node], axis: int) -> Node:
    """Arrays one after another along an axis."""
    shape, dtype = [*xs[0].shape], xs[0].dtype
    shape[axis] = sum(x.shape[axis] for x in xs)
    out = ShapedArray(tuple(shape), dtype)
    xs = [x for x in xs if x.shape[axis] != 0]
    if not all(at_least(x.shape[axis], 1) for x in xs):
        raise emit.unsupported()
    dynamic = any(is_dynamic(n) for x in xs for n in x.shape)
    many = sum(x.count for x in xs) > tuning.INLINE_CONCATENATION
    if all(x.elem for x in xs) and many and not dynamic:
        return emit.call(Join(axis, xs), xs, [out])[0]
    fn, key = _element(xs, axis)
    return emit.compute(xs, fn, shape=out.shape, dtype=dtype, key=key, cost=2 * len(xs))


def _element(xs: Sequence[Node], axis: int) -> tuple[Any, Any]:
    """The function that computes an element of a concatenation, and its key."""
    ends = list(itertools.accumulate(x.shape[axis] for x in xs))

    def element(k, index, *xs):
        out = None
        for end, x in zip(reversed(ends), reversed(xs), strict=True):
            at = [*index]
            at[axis] = index[axis] - (end - x.shape[axis])
            inside = k.within(at[axis], 0, x.shape[axis])
            if inside is not None and inside.constant is False:
                continue
            value = k.at_within(x, at, axis, inside)
            if inside is None or inside.constant is True:
                return value
            out = value if out is None else k.choose(inside, value, out)
        return out

    return element, ("concatenate", axis)


def _source(x: Node) -> Node:
    """What an array is a slice, or another arrangement, of."""
    while x.kind is COMPUTE and x.cost == 0 and len(x.operands) == 1:
        (x,) = x.operands
    return x


def _weight(x: Node) -> int:
    """The cost of an element, up to the limit for values that are computed where they are read."""
    if x.kind is not COMPUTE:
        return 0
    total = x.cost
    for operand in x.operands:
        if total >= tuning.EXPENSIVE:
            break
        total += _weight(operand)
    return total


def pad(emit: Emitter, x: Node, value: Node, config: tuple[tuple[int, int, int], ...]) -> Node:
    """An array with `value` around it (low, high) and between its elements (interior)."""
    spans = (
        n + larger(n - 1, 0) * interior if interior else n
        for n, (_, _, interior) in zip(x.shape, config, strict=True)
    )
    shape = tuple(low + n + high for n, (low, high, _) in zip(spans, config, strict=True))
    if 0 in x.shape:
        return emit.broadcast(value, shape)
    plain = all(low >= 0 and high >= 0 and not interior for low, high, interior in config)
    if not all(at_least(n, 1) for n in x.shape):
        raise emit.unsupported()
    if plain and x.elem and about(math.prod(shape)) > tuning.INLINE_CONCATENATION:
        frame = emit.stored(emit.broadcast(value, shape))
        return emit.call(Write([low for low, _, _ in config]), [frame, x], [frame])[0]

    def element(k, index, x, value):
        inside, at = None, []
        for i, n, (low, _, interior) in zip(index, x.shape, config, strict=True):
            i = i - low
            span = (n - 1) * (interior + 1) + 1
            checks = [k.within(i, 0, span)]
            i = k.clamp(i, 0, span - 1)
            if interior:
                checks.append(k.within(i % (interior + 1), 0, 1))
                i = i // (interior + 1)
            inside = _both(k, inside, *checks)
            at.append(i)
        return _chosen(k, inside, lambda: k.at(x, at), lambda: k.at(value, []))

    return emit.compute([x, value], element, shape=shape, dtype=x.dtype, key=("pad", config))


def update_slice(emit: Emitter, x: Node, update: Node, starts: Sequence[Node]) -> Node:
    """`x` with `update` written at `starts`, which are clamped so that it fits."""
    if not x.elem or not all(s.elem for s in starts):
        raise emit.unsupported()
    if 0 in update.shape:
        return x
    if not all(at_least(n, 1) for n in update.shape):
        raise emit.unsupported()
    if x.count > tuning.INLINE_CONCATENATION:
        return emit.call(Write(written=update.size), [x, update, *starts], [x])[0]

    def element(k, index, x, update, *starts):
        inside, at = None, []
        for i, start, n, size in zip(index, starts, x.shape, update.shape, strict=True):
            i = i - k.start(start, n - size)
            inside = _both(k, inside, k.within(i, 0, size))
            at.append(k.clamp(i, 0, size - 1))
        return _chosen(k, inside, lambda: k.at(update, at), lambda: k.at(x, index))

    return emit.compute(
        [x, update, *starts],
        element,
        shape=x.shape,
        dtype=x.dtype,
        key=("update_slice", update.shape),
        cost=4,
    )


def _both(k: Any, *conditions: Value | None) -> Value | None:
    """The conjunction of conditions; None is one that always holds."""
    out = None
    for condition in conditions:
        if condition is not None:
            out = condition if out is None else k.f.and_(out, condition)
    return out


def _chosen(k: Any, condition: Value | None, then: Any, otherwise: Any) -> Any:
    """One of two values; only one is emitted where the condition is known."""
    if condition is None or condition.constant is True:
        return then()
    if condition.constant is False:
        return otherwise()
    return k.choose(condition, then(), otherwise())
