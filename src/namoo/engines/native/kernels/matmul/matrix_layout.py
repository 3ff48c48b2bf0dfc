"""Operands of contractions as matrices in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from namoo._base.caches import cached
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import COMPUTE

BLAS = {"f32": "sgemm", "f64": "dgemm", "c64": "cgemm", "c128": "zgemm"}


class Operand:
    """One side of a contraction as a matrix in memory: its strides in elements."""

    __slots__ = ("batch", "contract", "free")

    def __init__(self, shape: tuple[int, ...], batch, contract):
        strides = contiguous(shape)
        free = [i for i in range(len(shape)) if i not in batch and i not in contract]
        self.batch = [strides[i] for i in batch]
        self.free = _merged(shape, strides, free)
        self.contract = _merged(shape, strides, contract)

    @property
    def usable(self) -> bool:
        """Whether BLAS can read it in place."""
        if self.free is None or self.contract is None:
            return False
        return self.free <= 1 or self.contract <= 1


def contiguous(shape: Sequence[int]) -> list[int]:
    """Strides of a contiguous array, in elements."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _merged(shape, strides, axes) -> int | None:
    """The stride of several axes that are one in memory; 0 for a single element."""
    axes = [i for i in axes if shape[i] > 1]
    for i, j in zip(axes[:-1], axes[1:], strict=True):
        if strides[i] != strides[j] * shape[j]:
            return None
    return strides[axes[-1]] if axes else 0


@cached("native matrices: operands", bound=1024, keyed_by="shape, batch and contracted axes")
def operand(shape: tuple[int, ...], batch: tuple[int, ...], contract: tuple[int, ...]) -> Operand:
    """An operand by its axes; cached, since layers of equal shape share it."""
    return Operand(shape, batch, contract)


def permutation(x: Any) -> tuple[int, ...] | None:
    """The permutation of a node that is a transposition."""
    return x.key[1] if x.kind == COMPUTE and x.key[0] == "transpose" else None


class Side(NamedTuple):
    """How one operand of a contraction is read."""

    reads_through: bool
    """Whether the operand is a transposition, whose own operand is read instead."""
    order: tuple[int, ...] | None
    """A permutation of its axes that makes those of each kind contiguous, if one is needed."""
    contract: tuple[int, ...]
    batch: tuple[int, ...]
    kept: tuple[int, ...]
    """Lengths of the axes that are in the result, batch axes first."""
    terms: int


@cached(
    "native matrices: sides",
    bound=1024,
    keyed_by="shape, permutation, contracted and batch axes",
)
def side(
    shape: tuple[int, ...],
    permutation: tuple[int, ...] | None,
    contract: tuple[int, ...],
    batch: tuple[int, ...],
) -> Side:
    """How an operand is read; `permutation` is set if it is a transposition of another node."""
    rank, reads_through = len(shape), False
    free = [i for i in range(rank) if i not in contract + batch]
    sizes = tuple(shape[i] for i in (*batch, *free)), math.prod(shape[i] for i in contract)
    if permutation is not None:
        places = [permutation[i] for i in free]
        # The free axes keep the order that they have in the result.
        if reads_through := places == sorted(places):
            contract = tuple(permutation[i] for i in contract)
            batch = tuple(permutation[i] for i in batch)
            shape, free = tuple(shape[permutation.index(i)] for i in range(rank)), places
    if operand(shape, batch, contract).usable:
        return Side(reads_through, None, contract, batch, *sizes)
    first, last = tuple(range(len(batch))), tuple(range(rank - len(contract), rank))
    return Side(reads_through, (*batch, *free, *contract), last, first, *sizes)


def sides(node: Any) -> tuple[Operand, Operand]:
    """Both sides of a `dot` node."""
    x, y = node.operands
    (cx, cy), (bx, by) = node.data.contract, node.data.batch
    return operand(x.shape, bx, cx), operand(y.shape, by, cy)


def sizes(node: Any) -> tuple[tuple[int, ...], int, int, int]:
    """Sizes of the batch axes, and m, n, k."""
    x, y = node.operands
    return extents(x.shape, y.shape, node.data.contract[0], node.data.batch[0])


@cached("native matrices: extents", bound=1024, keyed_by="shapes, contracted and batch axes")
def extents(
    x: tuple[int, ...], y: tuple[int, ...], contract: tuple[int, ...], batch: tuple[int, ...]
) -> tuple[tuple[int, ...], int, int, int]:
    """As `sizes`, from the operands' shapes and the axes of the left one."""
    shape = tuple(x[i] for i in batch)
    k = math.prod(x[i] for i in contract)
    return shape, math.prod(x) // math.prod(shape) // k, math.prod(y) // math.prod(shape) // k, k


class Axis(NamedTuple):
    """An axis of a product: its length, and its strides in the operands and in the result."""

    size: int
    left: int
    right: int
    out: int = 0


class Product:
    """Sums of products of two operands, as axes with strides.

    result[batch, row, column] = Σ left[batch, row, inner] · right[batch, inner, column], where
    batch, row and inner are any number of axes each, and column is one axis. If the operands hold
    narrow numbers, `narrow` is their type: strides are then in words of several, and a term is the
    sum of the products of two words.
    """

    __slots__ = ("batch", "columns", "elem", "inner", "narrow", "rows")

    def __init__(
        self,
        elem: str,
        batch: Sequence[Axis],
        rows: Sequence[Axis],
        columns: Axis,
        inner: Sequence[Axis],
        narrow: str = "",
    ):
        self.elem = elem
        self.narrow = narrow
        self.batch = merge(batch)
        self.rows = merge(rows) or (Axis(1, 0, 0),)
        self.columns = columns
        self.inner = merge(inner) or (Axis(1, 0, 0),)

    @classmethod
    def of(cls, node: Any) -> Product:
        """The axes of a `dot` node."""
        x, y = node.operands
        return _product(node.elem, x.shape, y.shape, node.data.contract, node.data.batch)

    @property
    def key(self) -> tuple:
        """Equal keys mean equal products."""
        return self.elem, self.batch, self.rows, self.columns, self.inner, self.narrow

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Points of the batch axes, rows, columns, and terms of a sum."""
        return length(self.batch), length(self.rows), self.columns.size, length(self.inner)

    @property
    def multiplications(self) -> int:
        return math.prod(self.sizes)


@cached(
    "native matrices: products",
    bound=1024,
    keyed_by="element type, shapes, dimension numbers",
)
def _product(elem: str, x: tuple[int, ...], y: tuple[int, ...], contract, batch) -> Product:
    (cx, cy), (bx, by) = contract, batch
    left, right = operand(x, bx, cx), operand(y, by, cy)
    shape, m, n, k = extents(x, y, cx, bx)
    assert left.free is not None and right.free is not None
    assert left.contract is not None and right.contract is not None
    steps = [math.prod(shape[i + 1 :]) * m * n for i in range(len(shape))]
    return Product(
        elem,
        [Axis(*numbers) for numbers in zip(shape, left.batch, right.batch, steps, strict=True)],
        [Axis(m, left.free, 0, n)],
        Axis(n, 0, right.free, 1),
        [Axis(k, left.contract, right.contract)],
    )


def length(axes: Sequence[Axis]) -> int:
    """Points of several axes."""
    return math.prod(a.size for a in axes)


def merge(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Drop axes of length 1, and merge axes that are contiguous in all arrays."""
    out: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if out and tuple(out[-1][1:]) == tuple(stride * axis.size for stride in axis[1:]):
            out[-1] = Axis(out[-1].size * axis.size, *axis[1:])
            continue
        out.append(axis)
    return tuple(out)


def parts(results: int, terms: int, size: int) -> int:
    """The number of equal parts into which the first axis of a sum, of length `size`, is split."""
    if terms < tuning.LONG_SUM:
        return 1
    most = min(
        tuning.SUM_PARTS, tuning.SUM_PARTS_ELEMENTS // results, terms * 4 // tuning.LONG_SUM, size
    )
    return next((count for count in range(most, 0, -1) if size % count == 0), 1)


def split(count: int, inner: Sequence[Axis], out: int) -> list[Axis]:
    """Split the first axis of a sum into `count` parts, which become an axis of the result."""
    first, *rest = inner
    size = first.size // count
    part = Axis(count, first.left * size, first.right * size, out)
    return [part, Axis(size, first.left, first.right), *rest]
