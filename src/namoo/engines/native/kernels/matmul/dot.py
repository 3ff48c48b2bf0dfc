"""The kind `dot`: contractions as matrix products.

Small and medium products are kernels of our own, with their elementwise consumers fused in; large
ones are left to BLAS. Contractions of vectors and of integers are reductions.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo._base.caches import cached
from namoo.engines.native import tuning
from namoo.engines.native.fuse.kinds import Reads, RootKind, register
from namoo.engines.native.graph.node import COMPUTE, DOT, Contraction, Graph, Node
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.function import bits_of
from namoo.engines.native.ir.index import Index, ravel, unravel
from namoo.engines.native.ir.types import computed_in, elem_of, is_complex, numpy_dtype
from namoo.engines.native.ir.words import word_product
from namoo.engines.native.kernels import access
from namoo.engines.native.kernels.element_codegen import literal_of
from namoo.engines.native.kernels.kernel import KernelSpec
from namoo.engines.native.kernels.matmul import blas, matrix_layout, narrow
from namoo.engines.native.kernels.matmul.matrix_layout import (
    Axis,
    Product,
    contiguous,
    length,
    merge,
)
from namoo.engines.native.kernels.matmul.product import ProductKernel, Tile, choose, machine

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


class _Dot(RootKind):
    """Sums of products of two operands in memory."""

    reads_memory = True

    def simplify(self, graph):
        return fold_output_transposes(graph)

    def is_step(self, root):
        return tile(root) is None

    def accepts(self, group, root, reads):
        """An elementwise root joins if each of its elements depends on one of the product's."""
        if root.kind is not COMPUTE or root.size != group.roots[0].size or not root.elem:
            return False
        return _reads_own_index(root, reads, set(group.roots))

    def kernel(self, module, group):
        node = group.roots[0]
        if group.is_step:
            return blas.blocks_kernel(module, node), (*node.operands, node)
        spec = KernelSpec(group)
        return (
            module.kernel(spec.key, lambda name: _kernel(spec, name)),
            (*spec.inputs, *spec.stored),
        )

    def overwrites(self, group, node, result, reads):
        if node in group.roots[0].operands:
            return False
        return all(_reads_own_index(root, reads[root], {node}) for root in group.roots[1:])

    def element(self, k, node, index):
        return _unrolled(k, node, index)

    def operations(self, node):
        p = product(node)
        return 2 * math.prod(a.size for a in (*p.batch, *p.rows, p.columns, *p.inner))

    def unrolled_operations(self, node):
        if isinstance(node.data, Product):
            return None
        return node.size * math.prod(node.operands[0].shape[i] for i in node.data.contract[0])


register(DOT, _Dot())

_SUMS = {"f32": np.dtype(np.float32), "i32": np.dtype(np.int32)}
"""The types of sums of products of narrow numbers."""


def _reads_own_index(root: Node, reads: Reads, nodes: set[Node]) -> bool:
    """Whether a root reads some nodes only at its own position in memory."""
    index = access.loop_indices(root.shape)
    position = ravel(index, root.shape)
    found = access.probe(reads, [(root, index)])
    return all(ravel(at, n.shape) == position for n, at in found if n in nodes)


def product(node: Node) -> Product:
    """The axes of a `dot` node."""
    if isinstance(node.data, Product):
        return node.data
    return Product.of(node)


def tile(node: Node) -> Tile | None:
    """How the kernel of a `dot` node is tiled; None if BLAS computes it."""
    if node.size == 0:
        return None
    p = product(node)
    return _tile(p.key, p is not node.data, *_limits())


class _Choice(threading.local):
    """Whether this thread may leave products to BLAS."""

    blas = True


_choice = _Choice()


@contextmanager
def without_blas() -> Iterator[None]:
    """Compile products as kernels of our own, however large they are.

    Complex ones, and some with very long sums, have no such kernel and stay calls of BLAS.
    """
    before, _choice.blas = _choice.blas, False
    try:
        yield
    finally:
        _choice.blas = before


def blas_allowed() -> bool:
    """Whether programs may call BLAS and LAPACK."""
    return _choice.blas


def _limits() -> tuple[float, float, Any]:
    """Everything that `_tile` depends on besides the product."""
    if not _choice.blas:
        return math.inf, math.inf, machine()
    return tuning.BLAS_WORK, tuning.BLAS_WORK_TRANSPOSED, machine()


@cached(
    "native dot: tiles",
    bound=1024,
    keyed_by="sizes and strides of the product, tuning limits, processor",
)
def _tile(
    key: tuple, plain: bool, large: float, large_turned: float, processor: Any
) -> Tile | None:
    p = Product(*key)
    turned = p.rows[-1].left == 1 and p.inner[-1].left > 1
    _, m, n, k = p.sizes
    if plain and m * n * k >= (large_turned if turned else large):
        return None
    return choose(p, plain and large < math.inf)


def _kernel(spec: KernelSpec, name: str):
    """The kernel of a `dot` node and of the roots fused into it."""
    node = spec.roots[0]
    cut = tile(node)
    assert cut is not None
    return ProductKernel(spec, name, product(node), cut).emit()


def _unrolled(k: Any, node: Node, index) -> Any:
    """One element of a small product, with its sum unrolled."""
    x, y = node.operands
    (cx, cy), (bx, by) = node.data.contract, node.data.batch
    free = iter(index)
    batch = [next(free) for _ in bx]
    sides: list[list[Any]] = []
    for operand, contracted, batched in ((x, cx, bx), (y, cy, by)):
        at: list[Any] = [None] * len(operand.shape)
        for i, b in zip(batched, batch, strict=True):
            at[i] = b
        for i in range(len(at)):
            if at[i] is None and i not in contracted:
                at[i] = next(free)
        sides.append(at)
    sizes = tuple(x.shape[i] for i in cx)
    total: Any = None
    for position in range(math.prod(sizes)):
        for i, j, n in zip(cx, cy, unravel(Index.of(position), sizes), strict=True):
            sides[0][i] = sides[1][j] = n
        a: Any = _in(k, k.at(x, sides[0]), node)
        b: Any = _in(k, k.at(y, sides[1]), node)
        if total is None:
            total = ops.mul(k.f, a, b)
        elif isinstance(a, tuple) or a.elem[0] != "f":
            total = ops.TABLE["add"](k.f, total, ops.mul(k.f, a, b))
        else:
            total = k.f.muladd(a, b, total)
    return literal_of(0, node.elem) if total is None else total


def _in(k: Any, value: Any, node: Node) -> Any:
    return ops.convert(k.f, value, elem=computed_in(node.elem))


def fold_output_transposes(graph: Graph) -> Graph:
    """Let products store their results in the layout in which they are read.

    A product that is only transposed is replaced by one with other output strides.
    """
    transposes = [
        n
        for n in graph.nodes
        if n.kind is COMPUTE and n.key[0] == "transpose" and n.operands[0].kind is DOT
    ]
    if not transposes:
        return graph
    uses = {n.operands[0]: 0 for n in transposes}
    for node in graph.nodes:
        for x in node.operands:
            if x in uses:
                uses[x] += 1
    folded: dict[Node, Node] = {}
    for node in transposes:
        (dot,) = node.operands
        alone = uses[dot] == 1 and dot not in graph.outputs
        if alone and tile(dot) is not None and product(dot) is not dot.data:
            x, y = dot.operands
            data, exchanged = _transposed(
                dot.elem, x.shape, y.shape, dot.data.contract, dot.data.batch, node.key[1]
            )
            if _tile(data.key, False, *_limits()) is not None:
                operands = (y, x) if exchanged else (x, y)
                folded[node] = _product_node(operands, data, node.shape, cost=dot.cost)
    return graph.replaced(folded) if folded else graph


def _product_node(operands, data: Product, shape: tuple[int, ...], cost: int = 1) -> Node:
    """A `dot` node, described by the strides of its axes."""
    key = ("product", data.key)
    dtype = _SUMS[data.elem] if data.narrow else operands[0].dtype
    return Node(DOT, shape, dtype, operands, data=data, key=key, cost=cost)


@cached(
    "native dot: transposed products",
    bound=1024,
    keyed_by="element type, shapes, dimension numbers, permutation",
)
def _transposed(elem: str, x, y, contract, batch, permutation) -> tuple[Product, bool]:
    """A product whose result is permuted, and whether its operands are swapped."""
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
    # Vectors run along columns: swap the operands if the axis of rows is contiguous in the result.
    exchanged = min(a.out for a in groups[1]) < min(a.out for a in groups[2])
    if exchanged:
        swapped = [[Axis(a.size, a.right, a.left, a.out) for a in group] for group in groups]
        groups = [swapped[0], swapped[2], swapped[1], swapped[3]]
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


def contraction(emit: Emitter, x: Node, y: Node, contract, batch) -> Node:
    """Sums of products over the contracted axes; batch axes come first in the result."""
    contract, batch = tuple(map(tuple, contract)), tuple(map(tuple, batch))
    dtype = numpy_dtype(emit.avals[0].dtype)
    if not x.elem or not y.elem or not elem_of(dtype):
        raise emit.unsupported()
    if 0 in x.shape or 0 in y.shape:
        return emit.filled(0, dtype, tuple(emit.avals[0].shape))
    shape, rows, columns, terms = matrix_layout.extents(x.shape, y.shape, contract[0], batch[0])
    thin = rows == 1 or columns == 1 or terms == 1
    kind = "" if thin else narrow.kind_of(x, y, dtype, terms)
    many = math.prod(shape) * rows * columns * terms >= tuning.NARROW_WORK
    if kind and many and word_product(kind):
        return emit.convert(narrow.product(emit, kind, x, y, contract, batch), dtype)
    wide = np.dtype(np.float32) if elem_of(dtype) in ("f16", "bf16") else dtype
    x, y = emit.convert(x, wide), emit.convert(y, wide)
    if elem_of(wide) not in matrix_layout.BLAS or thin:
        return emit.convert(_sum_of_products(emit, x, y, contract, batch), dtype)
    return emit.convert(dot(emit, x, y, contract, batch), dtype)


def _sum_of_products(emit: Emitter, x: Node, y: Node, contract, batch) -> Node:
    """A contraction as a reduction, for vectors and for integers."""
    nb, nk = len(batch[0]), len(contract[0])
    free = [
        [i for i in range(len(v.shape)) if i not in batch[s] and i not in contract[s]]
        for s, v in enumerate((x, y))
    ]
    starts = (nb, nb + len(free[0]))
    last = nb + len(free[0]) + len(free[1])

    def where(side):
        places = {i: n for n, i in enumerate(batch[side])}
        places |= {i: starts[side] + n for n, i in enumerate(free[side])}
        places |= {i: last + n for n, i in enumerate(contract[side])}
        return lambda index: [index[places[i]] for i in range(len(places))]

    at_x, at_y = where(0), where(1)
    shape = tuple(x.shape[i] for i in (*batch[0], *free[0]))
    shape += tuple(y.shape[i] for i in free[1])
    product = emit.compute(
        [x, y],
        lambda k, index, x, y: ops.mul(k.f, k.at(x, at_x(index)), k.at(y, at_y(index))),
        shape=shape + tuple(x.shape[i] for i in contract[0]),
        dtype=x.dtype,
        key=("products", contract, batch),
    )
    return emit.sum(product, range(last, last + nk)) if nk else product


def dot(emit: Emitter, x: Node, y: Node, contract, batch) -> Node:
    """A contraction of floats, by matrix products."""
    left = matrix_layout.side(x.shape, matrix_layout.permutation(x), contract[0], batch[0])
    right = matrix_layout.side(y.shape, matrix_layout.permutation(y), contract[1], batch[1])
    x, y = _seen(emit, x, left), _seen(emit, y, right)
    data = Contraction((left.contract, right.contract), (left.batch, right.batch))
    shape = left.kept + right.kept[len(right.batch) :]
    key = ("dot", data.contract, data.batch)
    node = Node(DOT, shape, x.dtype, (x, y), data=data, key=key)
    if _is_narrow(node):
        turned = _exchanged(Product.of(node))
        return in_parts(emit, y, x, turned, shape)
    if is_complex(node.elem) or matrix_layout.parts(node.size, left.terms, left.terms) <= 1:
        return emit.add(node)
    data = Product.of(node)
    return emit.add(node) if data.columns.right > 1 else in_parts(emit, x, y, data, shape)


def _seen(emit: Emitter, v: Node, side: matrix_layout.Side) -> Node:
    """An operand in the layout in which the product reads it."""
    v, order = v.operands[0] if side.reads_through else v, side.order
    if order is None:
        return v
    return emit.transpose(v, order)


def _is_narrow(node: Node) -> bool:
    """Whether a product has few columns, while its rows are contiguous in the left operand."""
    if is_complex(node.elem):
        return False
    product = Product.of(node)
    _, rows, columns, terms = product.sizes
    lanes = machine().vector_bytes // (bits_of(node.elem) // 8)
    few = 2 * columns <= lanes <= rows
    # The results are stored one by one, which many terms hide.
    return few and terms >= tuning.TERMS_TO_EXCHANGE and product.rows[-1].left == 1


def _exchanged(product: Product) -> Product:
    """The same product with its operands exchanged: the rows are the lanes of vectors."""
    (row,), column = product.rows, product.columns
    return Product(
        product.elem,
        [Axis(a.size, a.right, a.left, a.out) for a in product.batch],
        [Axis(column.size, column.right, 0, column.out)],
        Axis(row.size, 0, row.left, row.out),
        [Axis(a.size, a.right, a.left) for a in product.inner],
    )


def in_parts(emit: Emitter, x: Node, y: Node, data: Product, shape: tuple[int, ...]) -> Node:
    """Sums of products, in parts if they are long and few."""
    count = matrix_layout.parts(math.prod(shape), length(data.inner), data.inner[0].size)
    if count <= 1 or data.columns.right > 1:
        return strided_product(emit, x, y, data, shape)
    cut, *inner = matrix_layout.split(count, data.inner, math.prod(shape))
    data = Product(data.elem, [cut, *data.batch], data.rows, data.columns, inner, data.narrow)
    return emit.sum(strided_product(emit, x, y, data, (count, *shape)), (0,))


def strided_product(emit: Emitter, x: Node, y: Node, data: Product, shape: tuple[int, ...]) -> Node:
    """Sums of products, by the strides of their axes."""
    return emit.add(_product_node((x, y), data, shape))
