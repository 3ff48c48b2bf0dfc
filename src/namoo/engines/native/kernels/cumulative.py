"""Running sums, products, extremes and log-sums along an axis.

Along the last axis, a vector is combined with itself shifted by 1, 2, 4, … lanes, and then with the
total of all earlier vectors. Along another axis, vectors run across it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from namoo.engines.native import tuning
from namoo.engines.native.graph.node import Node
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import Function, Value, bits_of, constant, is_float
from namoo.engines.native.ir.types import computed_in, elem_of, is_complex, limit, part_of
from namoo.engines.native.kernels import routine
from namoo.engines.native.kernels.element_codegen import Place, literal_of
from namoo.engines.native.kernels.routine import Routine, integer

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter

# A sequential sum of n terms loses up to log₁₀(n) digits; in the wider type none of the result's.
_WIDE_SUMS = {"f32": "f64", "c64": "c128"}


def log_sum(f: Function, x: Value, y: Value) -> Value:
    """log(eˣ + eʸ), also where both are the same infinity."""
    difference = f.select(f.compare("eq", x, y), constant(x.elem, 0.0), f.sub(x, y))
    smaller = ops.TABLE["exp"](f, f.neg(f.fabs(difference)))
    return f.add(f.maximum(x, y), ops.TABLE["log1p"](f, smaller))


class Kind:
    """How elements are combined, and in which type."""

    __slots__ = ("combine", "elem", "identity", "in_order")

    def __init__(self, name: str, node: Node):
        elem = node.elem
        self.in_order = False
        """Whether elements must be combined in order: 0 times a product that overflowed is NaN."""
        self.combine: Callable[[Function, Any, Any], Any]
        if name == "logsumexp":
            self.elem, identity, self.combine = "f64", -math.inf, log_sum
        else:
            wide = _WIDE_SUMS.get(elem, elem) if name == "add" else elem
            self.elem = computed_in(wide)
            self.combine = ops.TABLE[name]
            floating = is_float(part_of(self.elem))
            if name == "add":
                identity = -0.0 if floating and not is_complex(elem) else 0
            elif name == "mul":
                identity, self.in_order = 1, floating
            else:
                identity = limit(node.dtype, name == "max")
        self.identity = literal_of(identity, self.elem)


def _flat(value: Any) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,)


class Cumulative(Routine):
    """Combine the elements up to each index; `name` is an operation of `ops` or "logsumexp"."""

    takes_over = {0: 0}  # each element is read before it is written

    def __init__(self, x: Node, axis: int, reverse: bool, name: str):
        self.axis, self.reverse, self.name = axis, reverse, name
        self.kind = Kind(name, x)
        self.count = x.shape[axis]
        self.outer = math.prod(x.shape[:axis])
        self.inner = math.prod(x.shape[axis + 1 :])
        if self.inner > 1:
            # Whole cache lines, even if that is more than a vector of the wide type.
            lanes = min(routine.lanes_of(x.elem), 1 << (self.inner - 1).bit_length())
            self.units = self.outer * -(-self.inner // lanes)
        else:
            lanes = 64 * 8 // max(bits_of(part_of(self.kind.elem)), 32)
            self.units = self.outer
        self.lanes = lanes
        self.work = x.size * (32 if name == "logsumexp" else 4)

    def key(self):
        return self.axis, self.reverse, self.name

    def write(self, f: Function, places: Sequence[Place], begin: Value, end: Value) -> None:
        source, target = places
        with f.loop(begin, end) as unit:
            if self.inner > 1:
                self._across(f, source, target, unit)
            else:
                base = f.mul(unit, integer(self.count))
                Row(self.kind, self.lanes, self.reverse).write(
                    f, source, target, base, self.count, self.kind.identity
                )

    def _across(self, f: Function, source: Place, target: Place, unit: Value) -> None:
        """One vector of contiguous elements, down the axis."""
        n, inner, lanes, kind = self.count, self.inner, self.lanes, self.kind
        blocks = integer(-(-inner // lanes))
        first = f.mul(f.irem(unit, blocks), integer(lanes))
        base = f.add(f.mul(f.idiv(unit, blocks), integer(n * inner)), first)
        mask = None
        if inner % lanes:
            mask = f.compare("lt", f.add(first, f.iota("i64", lanes)), integer(inner))
        initial = [f.splat(v, lanes) for v in _flat(kind.identity)]
        with f.loop(0, n) as i:
            phis = [f.carry(v) for v in initial]
            place = f.sub(integer(n - 1), i) if self.reverse else i
            position = f.add(base, f.mul(place, integer(inner)))
            value = routine.read(f, source.pointer, source.elem, position, lanes, mask)
            value = ops.convert(f, value, elem=kind.elem)
            total = kind.combine(f, tuple(phis) if isinstance(value, tuple) else phis[0], value)
            for phi, part in zip(phis, _flat(total), strict=True):
                f.carried(phi, part)
            out = ops.convert(f, total, elem=target.elem)
            routine.write(f, target.pointer, target.elem, position, out, mask)


class Row:
    """A scan of contiguous elements."""

    def __init__(self, kind: Kind, lanes: int, reverse: bool):
        self.kind, self.lanes, self.reverse = kind, lanes, reverse

    def write(self, f: Function, source: Place, target: Place, base: Value, n: int, before: Any):
        """Scan `n` elements from `base` on; `before` is the total of the elements before."""
        kind, lanes = self.kind, self.lanes
        vectors = 0 if kind.in_order or isinstance(before, tuple) else n // lanes
        total = before
        if vectors:
            total = self._vectors(f, source, target, base, n, vectors, before)
        if n > vectors * lanes:
            self._one_by_one(f, source, target, base, n, vectors * lanes, total)

    def _vectors(self, f, source, target, base, n, vectors, before):
        lanes, kind = self.lanes, self.kind
        turns, extra = divmod(vectors, tuning.CUMULATIVE_UNROLL)
        carry = f.splat(before, lanes)

        def one(first: Value, carry: Value) -> Value:
            start = f.sub(integer(n - lanes), first) if self.reverse else first
            position = f.add(base, start)
            value = routine.read(f, source.pointer, source.elem, position, lanes)
            value = self._prefixes(f, cast(Value, ops.convert(f, value, elem=kind.elem)))
            whole = kind.combine(f, carry, value)
            out = ops.convert(f, whole, elem=target.elem)
            routine.write(f, target.pointer, target.elem, position, out)
            last = 0 if self.reverse else lanes - 1
            # Not the last lane of `whole`: the dependency between iterations is one operation.
            return kind.combine(f, carry, f.shuffle(value, [last] * lanes))

        if turns:
            step = tuning.CUMULATIVE_UNROLL * lanes
            with f.loop(0, turns * step, step) as i:
                phi = new = f.carry(carry)
                for u in range(tuning.CUMULATIVE_UNROLL):
                    new = one(f.add(i, integer(u * lanes)), new)
                carry = f.carried(phi, new)
        for u in range(extra):
            carry = one(integer((turns * tuning.CUMULATIVE_UNROLL + u) * lanes), carry)
        return f.lane(carry, 0)

    def _prefixes(self, f: Function, value: Any) -> Value:
        lanes, shift = self.lanes, 1
        neutral = f.splat(self.kind.identity, lanes)
        while shift < lanes:
            if self.reverse:
                order = [i + shift if i + shift < lanes else lanes for i in range(lanes)]
            else:
                order = [i - shift if i >= shift else lanes for i in range(lanes)]
            value = self.kind.combine(f, f.shuffle(value, order, neutral), value)
            shift *= 2
        return value

    def _one_by_one(self, f, source, target, base, n, done, total) -> None:
        kind = self.kind
        with f.loop(done, n) as i:
            phis = [f.carry(v) for v in _flat(total)]
            place = f.sub(integer(n - 1), i) if self.reverse else i
            position = f.add(base, place)
            value = routine.read(f, source.pointer, source.elem, position)
            value = ops.convert(f, value, elem=kind.elem)
            total = kind.combine(f, tuple(phis) if isinstance(value, tuple) else phis[0], value)
            for phi, part in zip(phis, _flat(total), strict=True):
                f.carried(phi, part)
            out = ops.convert(f, total, elem=target.elem)
            routine.write(f, target.pointer, target.elem, position, out)


def cumulative(emit: Emitter, x: Node, axis: int, reverse: bool, name: str) -> Node:
    """Elements combined up to each index along an axis, by an operation or "logsumexp"."""
    if not _accepts(x, name):
        raise emit.unsupported()
    if x.size == 0 or x.shape[axis] == 1:
        return x
    return emit.call(Cumulative(x, axis, reverse, name), [x], [x])[0]


def _accepts(x: Node, name: str) -> bool:
    """Whether there is code for this type."""
    elem = elem_of(x.dtype)
    if name == "logsumexp":
        return bool(elem) and is_float(elem)
    return ops.accepts(name, x.dtype)
