"""Sums of products of narrow numbers, several in a word of 32 bits.

Some processors multiply all pairs of elements of two vectors of words and add the products of each
word to a sum, in one instruction.
"""

from __future__ import annotations

from typing import NamedTuple

from namoo.engines.native.ir.function import Function, Value, constant, vector_type
from namoo.engines.native.ir.target import has


class WordProduct(NamedTuple):
    """An instruction that adds the products of the elements of words.

    Attributes:
        elem: the type of the sums, as wide as a word.
        count: the elements of a word.
        part: LLVM's type of an element.
        intrinsic: the name, without the number of bits.
        feature: what the processor must have.
    """

    elem: str
    count: int
    part: str
    intrinsic: str
    feature: str


WORD_PRODUCTS = {
    "bf16": WordProduct("f32", 2, "bfloat", "llvm.x86.avx512bf16.dpbf16ps", "avx512bf16"),
    # The elements of the right operand are unsigned, those of the left one are signed.
    "i8": WordProduct("i32", 4, "i8", "llvm.x86.avx512.vpdpbusd", "avx512vnni"),
}
"""By the type of the elements."""
FEWEST_LANES = 4
"""The instructions take vectors of 128 bits or more."""


def word_product(kind: str) -> WordProduct | None:
    """The instruction for a type of elements; None if the processor has none."""
    found = WORD_PRODUCTS.get(kind)
    return found if found and has("avx512vl") and has(found.feature) else None


def add_products(f: Function, kind: str, left: Value, right: Value, total: Value) -> Value:
    """Add the products of the elements of each word to the sum of its lane."""
    found, lanes = WORD_PRODUCTS[kind], total.lanes
    parts = f"<{lanes * found.count} x {found.part}>"
    name, sums = f"{found.intrinsic}.{32 * lanes}", vector_type(found.elem, lanes)
    f.declarations[name] = f"declare {sums} @{name}({sums}, {parts}, {parts})"
    # The first factor is the unsigned one.
    casts = [f.emit(found.elem, lanes, f"bitcast {v!r} to {parts}", (v,)) for v in (right, left)]
    arguments = ", ".join(f"{parts} {v.name}" for v in casts)
    text = f"call {sums} @{name}({total!r}, {arguments})"
    return f.emit(found.elem, lanes, text, (total, *casts))


def joined(f: Function, parts: list[Value]) -> Value:
    """A word from the bits of its elements, the first of which is the lowest."""
    width = 32 // len(parts)
    total = f.convert(parts[0], "u32")
    for i, part in enumerate(parts[1:], 1):
        part = f.shl(f.convert(part, "u32"), constant("u32", i * width))
        total = f.or_(total, part)
    return total
