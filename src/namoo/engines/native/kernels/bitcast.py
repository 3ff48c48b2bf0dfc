"""The bits of elements as elements of another type, perhaps of another width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from namoo.engines.native.ir.function import Function, Value, bits_of, constant
from namoo.engines.native.ir.index import Index
from namoo.engines.native.ir.types import computed_in, elem_of, is_compound, numpy_dtype

if TYPE_CHECKING:
    from namoo.engines.native.graph.node import Node
    from namoo.engines.native.kernels.emitter import Emitter


def bits_from(f: Function, value: Value, elem: str) -> Value:
    """An element as an unsigned integer of its width."""
    return f.bitcast(f.convert(value, elem), f"u{bits_of(elem)}")


def element_of(f: Function, bits: Value, elem: str) -> Value:
    """The element of these bits."""
    return f.convert(f.bitcast(bits, elem), computed_in(elem))


def bitcast(emit: Emitter, x: Node, dtype: Any) -> Node:
    """The bits of `x` read as another type: parts of an element are a last axis."""
    dtype = numpy_dtype(dtype)
    elem, old = elem_of(dtype), x.elem
    if x.dtype == dtype:
        return x
    if not elem or not old or any(e == "i1" or is_compound(e) for e in (elem, old)):
        raise emit.unsupported()
    new_bits, old_bits = bits_of(elem), bits_of(old)

    def same(k, index, x):
        return element_of(k.f, bits_from(k.f, k.at(x, index), old), elem)

    def narrower(k, index, x):
        f, (*at, part) = k.f, index
        bits = bits_from(f, k.at(x, at), old)
        by = k.integer(part * new_bits, bits.elem)
        return element_of(f, f.convert(f.lshr(bits, by), f"u{new_bits}"), elem)

    def wider(k, index, x):
        f, kind = k.f, f"u{new_bits}"
        total = constant(kind, 0)
        for i in range(new_bits // old_bits):
            bits = f.convert(bits_from(f, k.at(x, [*index, Index.of(i)]), old), kind)
            total = f.or_(total, f.shl(bits, constant(kind, i * old_bits)))
        return element_of(f, total, elem)

    shape, fn = x.shape, same
    if new_bits < old_bits:
        shape, fn = (*shape, old_bits // new_bits), narrower
    elif new_bits > old_bits:
        shape, fn = shape[:-1], wider
    return emit.compute([x], fn, shape=shape, dtype=dtype, key=("bitcast", elem))
