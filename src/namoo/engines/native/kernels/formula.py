"""Elementwise functions that are written in terms of other operations, with loops in registers.

Engines share these functions: each is a rule that calls an engine to apply functions of arrays to
values, and to repeat steps until no element changes. Here an array is one element, or a vector of
them, and the operations that a function binds are emitted into the kernel directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo._base.config import enable_x64
from namoo.core.array import to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.trace import Trace, Tracer, set_trace
from namoo.engines.native.graph.node import COMPUTE, Node
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import Function, Value
from namoo.engines.native.ir.lane_loops import any_lane
from namoo.engines.native.ir.types import elem_of
from namoo.engines.native.kernels.element_codegen import literal_of

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter

_COST = 256
"""The approximate number of operations of such a function."""


def formula(emit: Emitter, name: str, rule: Callable[..., Any], *xs: Node) -> Node:
    """Compute each element by a rule from the operands' elements at the same index."""
    (out,) = emit.avals
    if not all(x.elem for x in xs):
        raise emit.unsupported()

    def fn(k, index, *xs):
        values = [k.at(x, index if x.shape else []) for x in xs]
        return _Elements(k.f, out.dtype, max(v.lanes for v in values)).run(rule, xs, values)

    # Only the elements of the operands at the same index are read, as by `emit.map`.
    key = ("map", name, ())
    return emit.add(Node(COMPUTE, out.shape, out.dtype, xs, fn=fn, key=key, cost=_COST))


class _Element(Tracer):
    """An array without axes whose value is in a register."""

    __slots__ = ("aval", "value")

    def __init__(self, trace: Trace, aval: ShapedArray, value: Any):
        self._trace, self.aval, self.value = trace, aval, value


class _Elements(Trace):
    """Emits operations on elements into a function; it is also the engine that a rule calls.

    Args:
        f: the function.
        dtype: the type of the rule's result.
        lanes: how many elements are computed at once; 0 for a scalar.
    """

    kind, how = "native", "a compiled program"

    def __init__(self, f: Function, dtype: np.dtype, lanes: int):
        self.f, self.lanes = f, lanes
        self.avals = [ShapedArray((), dtype)]

    def run(self, rule: Callable[..., Any], xs: Sequence[Node], values: Sequence[Value]) -> Value:
        """Run a rule on values and return its result."""
        arrays = [
            _Element(self, ShapedArray((), x.dtype), v) for x, v in zip(xs, values, strict=True)
        ]
        with set_trace(self), enable_x64(True):
            return rule(self, *arrays).value

    def process(self, prim, args, params):
        out = prim.abstract(*map(aval_of, args), **params)
        values = [self.value(x) for x in args]
        if prim.name == "convert_element_type":
            value = ops.convert(self.f, values[0], elem=elem_of(out.dtype))
        else:
            value = ops.apply(self.f, prim.name, values, elem_of(out.dtype), params)
        return _Element(self, ShapedArray((), out.dtype), value)

    def value(self, x: Any) -> Value:
        """An operand's value: a register, or a constant."""
        if isinstance(x, _Element):
            return x.value
        number = to_numpy(x)
        return literal_of(number[()], elem_of(number.dtype))

    def alike(self, *values: _Element) -> tuple[_Element, ...]:
        return values

    def convert(self, x: Any, dtype: Any) -> _Element:
        dtype = np.dtype(dtype)
        value = ops.convert(self.f, self.value(x), elem=elem_of(dtype))
        return _Element(self, ShapedArray((), dtype), value)

    def apply(self, compute: Callable[..., Any], *values: _Element) -> Any:
        return compute(*values)

    def constant(
        self, value: Any, dtype: Any = np.float64, shape: tuple[int, ...] = ()
    ) -> _Element:
        dtype = np.dtype(dtype)
        number = literal_of(dtype.type(value), elem_of(dtype))
        return _Element(self, ShapedArray((), dtype), number)

    def combine(self, name: str, x: _Element, y: _Element) -> _Element:
        return _Element(self, x.aval, ops.TABLE[name](self.f, x.value, y.value))

    def reduce(self, name: str, x: _Element, start: Any, axes: Any) -> _Element:
        """Whether a condition holds in any lane."""
        assert name == "or"
        return _Element(self, x.aval, any_lane(self.f, x.value))

    def while_loop(
        self,
        state: Sequence[_Element],
        unfinished: Callable[..., _Element],
        again: Callable[..., Sequence[_Element]],
    ) -> list[_Element]:
        f = self.f
        first = [f.splat(x.value, self.lanes) if self.lanes else x.value for x in state]
        with f.repeat() as number:
            phis = [f.carry(value) for value in first]
            now = [_Element(self, x.aval, phi) for x, phi in zip(state, phis, strict=True)]
            f.proceed_while(number, unfinished(*now).value)
            for phi, new in zip(phis, again(*now), strict=True):
                f.carried(phi, f.splat(new.value, self.lanes) if self.lanes else new.value)
        return [
            _Element(self, x.aval, Value(phi.name, phi.elem, phi.lanes, f.depth))
            for x, phi in zip(state, phis, strict=True)
        ]
