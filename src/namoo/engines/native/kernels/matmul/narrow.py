"""Products of bfloat16 and of bytes, by instructions that multiply several elements of a word.

Both operands are read as words of 32 bits, each of which holds neighbouring terms of a sum. Where
the terms of an operand are contiguous, its own memory is read so. Otherwise a kernel joins them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo._base.dtypes import bfloat16
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import COMPUTE, Node
from namoo.engines.native.ir import words
from namoo.engines.native.ir.function import constant
from namoo.engines.native.ir.index import Index
from namoo.engines.native.ir.types import elem_of
from namoo.engines.native.kernels.bitcast import bits_from
from namoo.engines.native.kernels.matmul import matrix_layout
from namoo.engines.native.kernels.matmul.matrix_layout import Axis, Product, contiguous

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter

SIGN = 128
"""What is added to signed bytes, so that they are unsigned, and subtracted from unsigned ones."""


def kind_of(x: Node, y: Node, dtype: np.dtype, terms: int) -> str:
    """The type as whose words two operands can be multiplied; empty if there is none.

    The result is that of the product in `dtype`: products of bfloat16 are exact in float32, and
    sums of bytes in 32 bits are exact, modulo a power of two that is as large as that of `dtype`.
    """
    x, y = source(x), source(y)
    if x.dtype == y.dtype == bfloat16:
        return "bf16" if dtype in (bfloat16, np.float32) else ""
    if any(v.dtype not in (np.int8, np.uint8) for v in (x, y)) or dtype.kind not in "iu":
        return ""
    return "i8" if dtype.itemsize <= 4 or terms * 255**2 < 2**31 else ""


def source(x: Node) -> Node:
    """The narrow operand of a conversion that changes no value; or the node itself."""
    if x.kind is COMPUTE and x.key[:2] == ("map", "convert"):
        (of,) = x.operands
        if of.dtype == bfloat16 and x.dtype == np.float32:
            return of
        if of.dtype in (np.int8, np.uint8) and x.dtype.kind in "iu" and x.dtype.itemsize > 1:
            return of
    return x


class _Operand:
    """One operand as words in memory.

    Attributes:
        x: the operand, read before a transposition.
        moved: the same, with bytes of the sign that the instruction takes.
        by: what was added to bytes for that.
        node: the node whose memory holds the words.
        batch, free, contract: its strides, in words.
        batches, kept: the sizes of its batch axes and of the others in the result.
        terms: the number of words in a sum.
    """

    def __init__(self, emit: Emitter, kind: str, x: Node, contract, batch, signed: bool):
        self.emit = emit
        x, contract, batch = _before_transposition(source(x), contract, batch)
        self.count = words.WORD_PRODUCTS[kind].count
        self.contracted, self.batched = contract, batch
        self.others = [i for i in range(len(x.shape)) if i not in (*contract, *batch)]
        self.x, self.moved, self.by = x, x, 0
        if kind == "i8" and (x.dtype == np.int8) != signed:
            self.moved, self.by = _exchanged(emit, x), -SIGN if signed else SIGN
        self.batches = tuple(x.shape[i] for i in batch)
        self.kept = tuple(x.shape[i] for i in self.others)
        *more, last = (x.shape[i] for i in contract)
        self.terms = math.prod(more) * -(-last // self.count)
        if not self._in_place():
            self._joined()

    def _in_place(self) -> bool:
        """Try to read the words where the operand is."""
        x, count = self.moved, self.count
        found = matrix_layout.operand(x.shape, self.batched, self.contracted)
        last = x.shape[self.contracted[-1]]
        steps = (*found.batch, found.free or 0)
        whole = last % count == 0 and all(s % count == 0 for s in steps)
        if found.contract != 1 or found.free is None or not whole or self._too_long():
            return False
        self.node, self.contract = x, 1
        *self.batch, self.free = (s // count for s in steps)
        return True

    def _too_long(self) -> bool:
        """Whether a panel of columns with contiguous words would be too large for the stack."""
        return self.terms * tuning.VECTOR_BYTES > tuning.PANEL_BYTES

    def _joined(self) -> None:
        """Join the words in another array."""
        x, count = self.moved, self.count
        sizes = [x.shape[i] for i in self.contracted]
        last, sizes[-1] = sizes[-1], -(-sizes[-1] // count)
        across = (*self.batched, *self.contracted, *self.others)
        along = (*self.batched, *self.others, *self.contracted)
        apart = contiguous(x.shape)[self.contracted[-1]] > 1 or self._too_long()
        order = across if apart else along
        lengths = dict(zip(self.contracted, sizes, strict=True))
        shape = tuple(lengths.get(i, x.shape[i]) for i in order)
        places = [order.index(i) for i in range(len(order))]
        axis, elem = self.contracted[-1], x.elem

        def word(k: Any, index: Sequence[Index], x: Node) -> Any:
            at = [index[p] for p in places]
            first, parts = at[axis] * count, []
            for i in range(count):
                at[axis] = first + i
                if last % count:
                    # The first element of a word exists, so clamping changes only the others.
                    number = k.integer(first + i)
                    inside = k.f.compare("lt", number, constant("i64", last))
                    number = k.f.minimum(number, constant("i64", last - 1))
                    at[axis] = k.symbol(number, 0, last - 1)
                part = bits_from(k.f, k.at(x, at), elem)
                if last % count:
                    part = k.f.select(inside, part, constant(part.elem, 0))
                parts.append(part)
            return words.joined(k.f, parts)

        key = ("words", order, self.contracted)
        self.node = self.emit.compute(
            [x], word, shape=shape, dtype=np.uint32, key=key, cost=2 * count
        )
        terms, kept = self.terms, math.prod(self.kept)
        self.free, self.contract = (1, kept) if apart else (terms, 1)
        self.batch = [size * terms * kept for size in contiguous(self.batches)]

    def sums(self, x: Node, shape: tuple[int, ...], first: int, factor: int) -> Node:
        """Sums of an operand's terms times a factor, as an array of the result's shape.

        `first` is the position of the operand's own axes in the result.
        """
        emit, contracted = self.emit, self.contracted
        total = emit.sum(emit.convert(x, np.int32), contracted)
        axes = [i for i in range(len(x.shape)) if i not in contracted]
        at = [
            self.batched.index(i) if i in self.batched else first + self.others.index(i)
            for i in axes
        ]
        return emit.compute(
            [total],
            lambda k, index, x: k.f.mul(k.at(x, [index[i] for i in at]), constant("i32", factor)),
            shape=shape,
            dtype=np.int32,
            key=("sums of terms", tuple(at), factor),
        )


def _before_transposition(x: Node, contract, batch) -> tuple[Node, Any, Any]:
    """An operand and its axes; or those that it is a transposition of, with kept axes in order."""
    permutation = matrix_layout.permutation(x)
    if permutation is None:
        return x, contract, batch
    kept = [p for i, p in enumerate(permutation) if i not in (*contract, *batch)]
    if kept != sorted(kept):
        return x, contract, batch
    contract, batch = (tuple(permutation[i] for i in axes) for axes in (contract, batch))
    return x.operands[0], contract, batch


def _exchanged(emit: Emitter, x: Node) -> Node:
    """Signed bytes plus 128, as unsigned ones; or unsigned ones minus 128, as signed ones."""
    dtype = np.dtype(np.uint8 if x.dtype == np.int8 else np.int8)

    def element(k: Any, index: Sequence[Index], x: Node) -> Any:
        bits = k.f.bitcast(k.at(x, index), "u8")
        return k.f.bitcast(k.f.xor(bits, constant("u8", SIGN)), elem_of(dtype))

    return emit.compute([x], element, shape=x.shape, dtype=dtype, key=("exchange sign",))


def product(emit: Emitter, kind: str, x: Node, y: Node, contract, batch) -> Node:
    """Sums of products of narrow operands, in float32 or int32; batch axes come first."""
    left = _Operand(emit, kind, x, contract[0], batch[0], signed=True)
    right = _Operand(emit, kind, y, contract[1], batch[1], signed=False)
    m, n = math.prod(left.kept), math.prod(right.kept)
    shape = left.batches + left.kept + right.kept
    steps = [out * m * n for out in contiguous(left.batches)]
    axes = zip(left.batches, left.batch, right.batch, steps, strict=True)
    data = Product(
        words.WORD_PRODUCTS[kind].elem,
        [Axis(*numbers) for numbers in axes],
        [Axis(m, left.free, 0, n)],
        Axis(n, 0, right.free, 1),
        [Axis(left.terms, left.contract, right.contract)],
        kind,
    )
    total = emit.product_in_parts(left.node, right.node, data, shape)
    # Σ (x + a)(y - b) = Σ xy - b Σ x + a Σ (y - b)
    if right.by:
        sums = left.sums(left.moved, shape, len(left.batches), right.by)
        total = emit.map("sub", total, sums, dtype=np.int32)
    if left.by:
        sums = right.sums(right.x, shape, len(left.batches) + len(left.kept), -left.by)
        total = emit.map("add", total, sums, dtype=np.int32)
    return total
