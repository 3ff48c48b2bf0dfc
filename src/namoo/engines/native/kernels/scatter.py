"""Scatters: windows are written into an array one after the other.

Windows are written in the order of their indices, so sums do not depend on threads: threads share
the rows of the *result*, and each finds the windows of its own rows. Many updates of few elements
are combined in parts, each with a copy of the result, which are then combined in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.types import is_complex, is_compound, is_key, part_of, parts, size_of
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place, literal, on_stack
from namoo.engines.native.kernels.routine import Routine, integer


def strides_of(shape: Sequence[int]) -> list[int]:
    """Strides of a contiguous array, in elements."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


class Axis:
    """An axis of the loops: its length, and its strides in the arrays."""

    __slots__ = ("size", "strides")

    def __init__(self, size: int, *strides: int):
        self.size = size
        self.strides = strides


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """Merge neighbouring axes that are contiguous in all arrays; drop axes of length 1."""
    out: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if out and all(
            a == b * axis.size for a, b in zip(out[-1].strides, axis.strides, strict=True)
        ):
            axis = Axis(out.pop().size * axis.size, *axis.strides)
        out.append(axis)
    return out


def _positions(axes: Sequence[Axis], arrays: int) -> list[tuple[int, ...]]:
    """The offsets in each array of all points of the axes, in order."""
    out = [(0,) * arrays]
    for axis in axes:
        out = [
            tuple(p + i * stride for p, stride in zip(point, axis.strides, strict=True))
            for point in out
            for i in range(axis.size)
        ]
    return out


def _repeated(f: Function, value: Any, lanes: int) -> Any:
    return (
        tuple(f.splat(v, lanes) for v in value)
        if isinstance(value, tuple)
        else f.splat(value, lanes)
    )


class Scatter(Routine):
    """Combine windows `updates` with an array at starts that `indices` hold.

    `numbers` are `(window, inserted, starts, batching, indices_batching)` axes; `name` is the
    operation that combines, None to overwrite; `clip` moves windows into bounds instead of dropping
    them.  If `fill` is a literal, the array is filled with it, and is not an operand; if `value` is
    one, it is every element of the windows. With `parts`, the result has as many arrays, and each
    is combined with one part of the windows.
    """

    def __init__(
        self, x: Node, indices: Node, updates: Node, numbers, name, clip, fill, value, parts=1
    ):
        self.name, self.clip, self.fill, self.value = name, clip, fill, value
        self.parts = parts
        # If the windows are read from the array itself, it must not be overwritten.
        self.takes_over = {} if fill is not None or x in (indices, updates) else {0: 0}
        self.numbers = numbers
        window, inserted, starts, batching, indices_batching = numbers
        sizes = iter(updates.shape[d] for d in window)
        hidden = {*inserted, *batching}
        self.sizes = [1 if d in hidden else next(sizes) for d in range(len(x.shape))]
        self.last = [x.shape[d] - self.sizes[d] for d in starts]
        to_x, to_updates = strides_of(x.shape), strides_of(updates.shape)
        to_indices = strides_of(indices.shape)
        self.to_starts = [to_x[d] for d in starts]
        shown = [d for d in range(len(x.shape)) if d not in hidden]
        self.window = [
            Axis(updates.shape[e], to_x[d], to_updates[e])
            for d, e in zip(shown, window, strict=True)
        ]
        rest = [e for e in range(len(updates.shape)) if e not in window]
        self.places, first = [], None
        for i, e in enumerate(rest):
            stride = 0
            if i in indices_batching:
                d = batching[indices_batching.index(i)]
                stride = to_x[d]
                if d == 0:
                    first = Axis(updates.shape[e], stride, to_updates[e], to_indices[i])
                    continue
            self.places.append(Axis(updates.shape[e], stride, to_updates[e], to_indices[i]))
        self.first = first
        """The batch axis of indices that is the array's first axis: examples are independent."""
        rows = x.shape[0] if x.shape else 1
        width = math.prod(a.size for a in self.window)
        wide = width >= tuning.SCATTER_SHARED_WINDOW and parts == 1
        self.shared = first is None and 0 in starts and self.sizes[0] == 1 and wide
        """Which component of an index is a row of the array, if rows are shared."""
        self.row = starts.index(0) if self.shared else -1
        shares = tuning.SCATTER_PARTS
        if self.shared:
            shares = min(shares, width // tuning.SCATTER_ELEMENTS_OF_AN_INDEX)
        self.units = min(shares, rows) if self.shared or first else 1
        self.block = -(-rows // self.units)
        self.units = -(-rows // self.block) if parts == 1 else parts
        self.rows = rows
        self.row_size = x.size // max(rows, 1)
        self.work = x.size // 4 + updates.size * 4
        self.updated = updates.size
        limit = tuning.REGISTER_ELEMENTS
        few = updates.size <= limit and indices.size <= limit < x.size
        self._small = few and bool(self.takes_over)

    def key(self):
        constants = [x and (x.dtype, x.key) for x in (self.fill, self.value)]
        return self.numbers, self.name, self.clip, self.parts, *constants

    def small(self):
        return self._small

    def unrolled_operations(self):
        return 4 * self.updated

    def in_registers(self, driver, operands, outer, nodes):
        f, (_, indices, updates) = driver.f, operands
        place, elem = outer.places[nodes[0]], nodes[0].elem
        combine = None if self.name is None else ops.TABLE[self.name]
        axes = self.places if self.first is None else [self.first, *self.places]
        for at_x, at_updates, at_indices in _positions(axes, 3):
            inside, start = constant("i1", True), integer(at_x)
            for c, stride in enumerate(self.to_starts):
                value, checks = self._start(f, indices[at_indices + c], c, alone=True)
                start = f.add(start, f.mul(value, integer(stride)))
                for check in checks:
                    inside = check if inside.constant else f.and_(inside, check)
            with f.branch(inside):
                target = routine.here(f, place.pointer)
                for offset, at in _positions(self.window, 2):
                    position, value = f.add(start, integer(offset)), updates[at_updates + at]
                    if combine is not None:
                        value = combine(f, routine.read(f, target, elem, position), value)
                    routine.write(f, target, elem, position, value)
            f.epoch += 1
        return [None]

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        *operands, out = places
        updates = operands.pop() if self.value is None else None
        *source, indices = operands
        axes: list[tuple] = [(a, 0, a.size) for a in merged(self.places)]
        if self.parts > 1:
            axis, _, count = axes[0]
            with f.loop(begin, end) as unit:
                start, stop = (
                    f.idiv(f.mul(i, integer(count)), integer(self.parts))
                    for i in (unit, f.add(unit, integer(1)))
                )
                size = integer(self.rows * self.row_size)
                own = f.offset(out.pointer, f.mul(unit, size), out.elem)
                part = Place(own, out.elem, out.shape[1:])
                bounds = integer(0), integer(self.rows)
                self._initialise(f, part, source, *bounds)
                axes[0] = axis, start, stop
                self._combine(f, part, indices, updates, axes, *bounds)
            return
        low = f.mul(begin, integer(self.block))
        high = f.minimum(f.mul(end, integer(self.block)), integer(self.rows))
        self._initialise(f, out, source, low, high)
        if self.first is not None:
            axes.insert(0, (self.first, low, high))
        self._combine(f, out, indices, updates, axes, low, high)

    def _combine(
        self, f: Function, out: Place, indices: Place, updates: Place | None, axes, low, high
    ) -> None:
        """Write the windows of the axes' ranges, those of the rows in [low, high)."""
        with ExitStack() as stack:
            at_x, at_updates, at_indices = integer(0), integer(0), integer(0)
            for axis, start, stop in axes:
                i = stack.enter_context(f.loop(start, stop))
                at_x, at_updates, at_indices = (
                    f.add(at, f.mul(i, integer(stride)))
                    for at, stride in zip((at_x, at_updates, at_indices), axis.strides, strict=True)
                )
            inside = None
            for c, stride in enumerate(self.to_starts):
                position = f.offset(indices.pointer, f.add(at_indices, integer(c)), indices.elem)
                start, checks = self._start(f, f.load(position, indices.elem), c)
                if c == self.row:
                    checks += [f.compare("ge", start, low), f.compare("lt", start, high)]
                for check in checks:
                    inside = check if inside is None else f.and_(inside, check)
                at_x = f.add(at_x, f.mul(start, integer(stride)))
            single = all(a.size == 1 for a in self.window) and not is_compound(out.elem)
            if inside is not None and single and self.name is None and updates is not None:
                # Elements that are dropped are written elsewhere: a branch that follows the data
                # would often be predicted wrongly.
                target, spare = f.offset(out.pointer, at_x, out.elem), on_stack(f, out.elem, ())
                both = target, spare.pointer
                text = f"select {inside!r}, ptr {target.name}, ptr {spare.pointer.name}"
                value = routine.read(f, routine.here(f, updates.pointer), out.elem, at_updates)
                routine.write(
                    f, f.emit("ptr", 0, text, (inside, *both)), out.elem, integer(0), value
                )
                return
            if inside is not None:
                stack.enter_context(f.branch(inside))
            self._window(f, out, at_x, updates, at_updates)

    def _start(self, f: Function, value: Value, component: int, alone: bool = False):
        """One component of a start, and the condition for its window to be written.

        Unless one thread works `alone`, the caller checks the component that is a row.
        """
        last = self.last[component]
        if value.elem == "u64":  # values that do not fit i64 are out of bounds anyway
            value = f.minimum(value, constant("u64", np.iinfo(np.int64).max))
        value = f.convert(value, "i64")
        if self.clip:
            return f.minimum(f.maximum(value, integer(0)), integer(last)), []
        if component == self.row and not alone:
            return value, []  # its rows are within the array
        return value, [f.compare("ge", value, integer(0)), f.compare("le", value, integer(last))]

    def _initialise(self, f: Function, out: Place, source, low: Value, high: Value) -> None:
        size = size_of(out.elem) * self.row_size
        target = f.offset(out.pointer, f.mul(low, integer(size)), "i8")
        count = f.mul(f.sub(high, low), integer(size))
        if source:
            own, old = out.pointer, source[0].pointer
            apart = f.emit("i1", 0, f"icmp ne ptr {own.name}, {old.name}", (own, old))
            with f.branch(apart):
                routine.copy(f, target, f.offset(old, f.mul(low, integer(size)), "i8"), count)
        elif not any(self.fill.key):
            routine.clear(f, target, count)
        else:
            value = literal(self.fill)
            with f.loop(low, high) as row:
                first = f.mul(row, integer(self.row_size))

                def body(i, lanes, mask):
                    values = value
                    if lanes:
                        values = _repeated(f, value, lanes)
                    routine.write(f, out.pointer, out.elem, f.add(first, i), values, mask)

                # Words of keys are stored one by one.
                wide = 1 if is_key(out.elem) else routine.lanes_of(out.elem)
                routine.along(f, self.row_size, wide, body)

    def _window(
        self, f: Function, out: Place, at_x: Value, updates: Place | None, at_updates: Value
    ):
        axes, elem = list(self.window), out.elem
        combine = None if self.name is None else ops.TABLE[self.name]
        if is_compound(elem) and self.name in (None, "add", "sub"):
            # The parts of elements are combined separately: they are one more axis.
            count = parts(elem)
            axes = [Axis(a.size, *(s * count for s in a.strides)) for a in axes]
            axes.append(Axis(count, 1, 1))
            at_x, at_updates = f.mul(at_x, integer(count)), f.mul(at_updates, integer(count))
            elem = part_of(elem)
        axes = merged(axes)
        vector = bool(axes) and axes[-1].strides == (1, 1) and not is_complex(elem)
        lanes = routine.lanes_of(elem)
        with ExitStack() as stack:
            for axis in axes[:-1] if vector else axes:
                i = stack.enter_context(f.loop(0, axis.size))
                at_x = f.add(at_x, f.mul(i, integer(axis.strides[0])))
                at_updates = f.add(at_updates, f.mul(i, integer(axis.strides[1])))

            def body(i, lanes=0, mask=None):
                target, p = routine.here(f, out.pointer), f.add(at_x, i)
                if updates is None:
                    value = literal(self.value)
                    value = f.splat(value, lanes) if lanes else value
                else:
                    source = routine.here(f, updates.pointer)
                    value = routine.read(f, source, elem, f.add(at_updates, i), lanes, mask)
                if combine is not None:
                    value = combine(f, routine.read(f, target, elem, p, lanes, mask), value)
                routine.write(f, target, elem, p, value, mask)

            if vector:
                lanes = min(lanes, 1 << max(axes[-1].size - 1, 1).bit_length())
                routine.along(f, axes[-1].size, lanes, body)
            else:
                body(integer(0))
