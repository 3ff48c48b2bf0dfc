"""Contractions: matrix products in generated kernels, or by BLAS where they are large."""

from __future__ import annotations

import functools
import math
from typing import Any

from namoo.engines.native.graph import COMPUTE, DOT, Graph, Node
from namoo.engines.native.ir import Function, Value, constant
from namoo.engines.native.kernel import Emitted, Spec
from namoo.engines.native.matmul import ProductKernel, Tile, choose, machine
from namoo.engines.native.matrices import (
    BLAS,
    Axis,
    Operand,
    Product,
    contiguous,
    merge,
    sides,
    sizes,
)
from namoo.engines.native.types import size_of

# From this many multiplications on, BLAS computes a product in blocks of its own; earlier where the
# rows of the left operand are neighbours in memory and its terms lie far apart: BLAS copies those.
LARGE = 1 << 34
LARGE_TURNED = 1 << 30
# Into how many blocks BLAS's products are cut, unless they would be smaller than this.
BLOCKS = 8
BLOCK = 384
# Blocks have no more multiplications than this: a signal is seen between two of them.
LARGEST_BLOCK = 1 << 32


def product(node: Node) -> Product:
    """The axes of a `dot` node."""
    if isinstance(node.data, Product):
        return node.data
    return Product.of(node)


def generated(node: Node) -> bool:
    """Whether a `dot` node is a kernel of our own, into which other work can be fused."""
    return tile(node) is not None


def tile(node: Node) -> Tile | None:
    """How the kernel of a `dot` node is cut; None if BLAS computes it."""
    if node.size == 0:
        return None
    p = product(node)
    return _tile(p.key, p is not node.data, LARGE, LARGE_TURNED, machine())


@functools.lru_cache(1024)
def _tile(key: tuple, plain: bool, large: int, large_turned: int, processor: Any) -> Tile | None:
    p = Product(*key)
    turned = p.rows[-1].left == 1 and p.inner[-1].left > 1
    _, m, n, k = p.sizes
    if plain and m * n * k >= (large_turned if turned else large):
        return None
    return choose(p, plain)


def kernel(spec: Spec, name: str) -> Emitted:
    """The kernel of a `dot` node and of what is fused into it."""
    node = spec.roots[0]
    cut = tile(node)
    assert cut is not None
    return ProductKernel(spec, name, product(node), cut).emit()


def turn(graph: Graph) -> None:
    """Let products store their results in the order in which they are read.

    A transposition that is the only use of a product becomes that product, with other strides.
    """
    turns = [n for n in graph.nodes if n.kind is COMPUTE and n.key[0] == "transpose"]
    turns = [n for n in turns if n.operands[0].kind is DOT]
    uses = {n.operands[0]: 0 for n in turns}
    for node in graph.nodes if turns else ():
        for x in node.operands:
            if x in uses:
                uses[x] += 1
    for node in turns:
        (dot,) = node.operands
        alone = uses[dot] == 1 and dot not in graph.outputs
        if alone and generated(dot) and product(dot) is not dot.data:
            x, y = dot.operands
            data, exchanged = _turned(
                dot.elem, x.shape, y.shape, dot.data.contract, dot.data.batch, node.key[1]
            )
            if _tile(data.key, False, LARGE, LARGE_TURNED, machine()) is not None:
                node.kind, node.fn, node.cost = DOT, None, dot.cost
                node.operands = (y, x) if exchanged else (x, y)
                node.data, node.key = data, ("product", data.key)
                node.form = graph.form(node.kind, node.key, node.shape, node.dtype)


@functools.lru_cache(1024)
def _turned(elem: str, x, y, contract, batch, permutation) -> tuple[Product, bool]:
    """A product whose result has its axes in another order, and whether its operands have, too."""
    (cx, cy), (bx, by) = contract, batch
    rows = [i for i in range(len(x)) if i not in bx and i not in cx]
    columns = [i for i in range(len(y)) if i not in by and i not in cy]
    sizes = [*(x[i] for i in (*bx, *rows)), *(y[i] for i in columns)]
    steps = contiguous([sizes[i] for i in permutation])
    out = iter([steps[permutation.index(i)] for i in range(len(sizes))])
    xs, ys = contiguous(x), contiguous(y)
    groups = [
        [Axis(x[i], xs[i], ys[j], next(out)) for i, j in zip(bx, by, strict=True)],
        [Axis(x[i], xs[i], 0, next(out)) for i in rows],
        [Axis(y[i], 0, ys[i], next(out)) for i in columns],
        [Axis(x[i], xs[i], ys[j]) for i, j in zip(cx, cy, strict=True)],
    ]
    # Where the rows are neighbours in the result, vectors run along them.
    exchanged = min(a.out for a in groups[1]) < min(a.out for a in groups[2])
    if exchanged:
        turned = [[Axis(a.size, a.right, a.left, a.out) for a in group] for group in groups]
        groups = [turned[0], turned[2], turned[1], turned[3]]
    first, second, third, inner = groups
    *others, last = merge(sorted(third, key=lambda a: -a.out))
    product = Product(
        elem,
        sorted([*first, *others], key=lambda a: -a.out),
        sorted(second, key=lambda a: -a.out),
        last,
        inner,
    )
    return product, exchanged


def blocks(module: Any, node: Node) -> Emitted:
    """A function that calls BLAS, for a product in blocks that threads share."""
    batch, m, n, k = sizes(node)
    left, right = sides(node)
    key = ("blas", node.elem, batch, m, n, k, tuple(left.batch), tuple(right.batch),
           left.free, left.contract, right.free, right.contract)  # fmt: skip
    if key not in module.kernels:
        name = f"k{len(module.kernels)}"
        module.kernels[key] = Blocks(module, node.elem, name).emit(batch, m, n, k, left, right)
    return module.kernels[key]


class Blocks:
    """A kernel that calls BLAS for blocks of the result."""

    def __init__(self, module: Any, elem: str, name: str):
        self.module = module
        self.elem = elem
        self.f = Function(name, ["ptr", "i64", "i64"])

    def emit(self, batch, m: int, n: int, k: int, left: Operand, right: Operand) -> Emitted:
        f = self.f
        table, begin, end = f.parameters
        a, b, c = (f.load(f.offset(table, i, "ptr"), "ptr") for i in range(3))
        rows, columns = _cuts(math.prod(batch), m, n, k)
        counts = [*batch, len(rows), len(columns)]
        with f.loop(begin, end) as unit:
            at, rest = [], unit
            for size in reversed(counts):
                at.insert(0, f.irem(rest, constant("i64", size)) if size > 1 else None)
                rest = f.idiv(rest, constant("i64", size)) if size > 1 else rest
            for i, (place, left_step, right_step) in enumerate(
                zip(at, left.batch, right.batch, strict=False)
            ):
                out_step = math.prod(batch[i + 1 :]) * m * n
                a, b, c = (
                    self._moved(p, place, s)
                    for p, s in zip((a, b, c), (left_step, right_step, out_step), strict=True)
                )
            i, j = at[-2:]
            # The blocks are of one size but for the last ones.
            for height, some_rows in _kinds(rows, i):
                for width, some_columns in _kinds(columns, j):
                    self._block(
                        (height, width, k, n), left, right, (a, b, c),
                        (i, rows[0], some_rows), (j, columns[0], some_columns),
                    )  # fmt: skip
        f.line("  ret void")
        units = math.prod(counts)
        return Emitted(f.name, f.text(), f.declarations, units, math.prod(batch) * m * n * k // 4)

    def _moved(self, pointer: Value, i: Value | None, stride: int | None) -> Value:
        if i is None:
            return pointer
        step = constant("i64", (stride or 0) * size_of(self.elem))
        return self.f.offset(pointer, self.f.mul(i, step), "i8")

    def _block(self, sizes, left, right, pointers, row, column) -> None:
        f, (height, width, k, n), (a, b, c) = self.f, sizes, pointers
        (i, high, some_rows), (j, wide, some_columns) = row, column
        conditions = [
            f.compare(relation, at, constant("i64", bound))
            for at, (relation, bound) in ((i, some_rows), (j, some_columns))
            if relation
        ]

        def write():
            x = self._moved(a, i, (left.free or 0) * high)
            y = self._moved(b, j, (right.free or 0) * wide)
            out = self._moved(self._moved(c, i, high * n), j, wide)
            self._gemm(height, width, k, n, (x, left), (y, right), out)

        if not conditions:
            write()
            return
        with f.branch(functools.reduce(f.and_, conditions)):
            write()

    def _gemm(self, m, n, k, ldc, left, right, out: Value) -> None:
        """out = left · right; BLAS has matrices by columns: it computes the transposes."""
        module = self.module
        (a, x), (b, y) = left, right
        name = f"namoo_{BLAS[self.elem]}"
        module.declarations[name] = f"declare void @{name}({', '.join(['ptr'] * 13)})"
        ta, lda = _layout(x.free, x.contract, m, k)
        tb, ldb = _layout(y.contract, y.free, k, n)
        arguments = [
            module.letter(tb), module.letter(ta),
            module.number(n), module.number(m), module.number(k),
            module.real(self.elem, 1), b, module.number(ldb), a, module.number(lda),
            module.real(self.elem, 0), out, module.number(ldc),
        ]  # fmt: skip
        self.f.line(f"  call void @{name}({', '.join(map(repr, arguments))})")


def _cuts(batch: int, m: int, n: int, k: int) -> tuple[list[int], list[int]]:
    """Lengths of the blocks of rows and of columns: all alike but the last."""
    high, wide = m, n
    while max(high, wide) >= 2 * BLOCK:
        if batch * -(-m // high) * -(-n // wide) >= BLOCKS and high * wide * k <= LARGEST_BLOCK:
            break
        if high >= wide:
            high = _half(high)
        else:
            wide = _half(wide)
    return _lengths(m, high), _lengths(n, wide)


def _half(size: int) -> int:
    """About a half, in whole vectors."""
    return -(-size // 32) * 16


def _lengths(size: int, block: int) -> list[int]:
    out = [block] * (size // block)
    return out + [size % block] if size % block else out


def _kinds(cuts: list[int], at: Value | None):
    """The different lengths of blocks, and the comparison by which they are known."""
    if cuts[0] == cuts[-1]:
        return [(cuts[0], ("", 0))]
    last = len(cuts) - 1
    return [(cuts[0], ("lt", last)), (cuts[-1], ("eq", last))]


def _layout(rows: int, columns: int, m: int, n: int) -> tuple[str, int]:
    """How BLAS reads an m × n matrix with these strides, where 0 is that of an axis of length 1."""
    if columns == 1 or columns == 0 and rows > 1:
        return "N", max(rows, n)
    return "T", max(columns, m)
