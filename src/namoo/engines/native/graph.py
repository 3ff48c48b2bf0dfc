"""What a program computes, as a graph that fusion can work on.

The `native` rule of a primitive gets an `Emitter` and describes its result in one of a few forms:

| form      | what it says                                                                      |
|-----------|-----------------------------------------------------------------------------------|
| `map`     | each element from those at the same place, by a named operation of `ops`          |
| `compute` | each element by a function of its index, which reads its operands where it wants   |
| `reindex` | each element is one of the operand's, at another index                            |
| `reduce`  | elements along some axes combined                                                 |
| `dot`     | a contraction                                                                     |
| `call`    | a step that needs its operands in memory: a library, a loop, the host             |

Nothing is emitted here: a `compute` is only a function, called once for each place where its value
is needed.  Equal nodes are one node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo.core.array import to_numpy
from namoo.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, needed
from namoo.engines.native import casts, conv, generators, indexing, matrices, ops, pooling
from namoo.engines.native.index import Index, ravel, unravel
from namoo.engines.native.types import elem_of, is_complex, is_key, is_narrow, numpy_dtype

INPUT, LITERAL, COMPUTE, REDUCE, DOT, CALL, PART = (
    "input", "literal", "compute", "reduce", "dot", "call", "part",
)  # fmt: skip

# Costs in simple operations: what decides whether to compute a value twice or to keep it.
EXPENSIVE = 8
# Elements that are summed by one thread, where many become few.
BLOCK = 4096
# More terms than these are summed in blocks, however many sums there are: each addition rounds.
LONG = 1 << 22


class Node:
    """A value of the program, or a step that has several."""

    __slots__ = (
        "cost", "data", "dtype", "elem", "fn", "form", "key", "kind", "number", "operands",
        "shape", "size",
    )  # fmt: skip

    def __init__(self, kind, shape, dtype, operands=(), *, fn=None, data=None, key=None, cost=1):
        self.kind: str = kind
        self.shape: tuple[int, ...] = shape
        self.dtype: np.dtype = dtype
        self.size = math.prod(shape)
        self.elem = elem_of(dtype)
        self.operands: tuple[Node, ...] = operands
        self.fn: Callable[..., Any] | None = fn
        """What computes an element: a function of a writer, an index and the operands."""
        self.data: Any = data
        self.key: Any = key
        """What it is, apart from its operands: equal keys compute the same."""
        self.cost: int = cost
        self.form = -1
        """The number that nodes of its kind, key and type share; see `Graph.form`."""
        self.number = -1

    def of(self, operands: tuple[Node, ...]) -> Node:
        """A node that computes the same from other operands, of the same forms."""
        node = Node.__new__(Node)
        node.kind, node.shape, node.dtype = self.kind, self.shape, self.dtype
        node.size, node.elem, node.cost = self.size, self.elem, self.cost
        node.fn, node.data, node.key, node.form = self.fn, self.data, self.key, self.form
        node.operands = operands
        return node

    def __repr__(self) -> str:
        return f"%{self.number}:{self.dtype}{list(self.shape)} = {self.kind} {self.key}"


class Reduction:
    """How values are combined: several at once, as for an extreme and its place.

    `combine(f, left, right)` maps tuples of values to a tuple; `identity` has one number each.
    """

    __slots__ = ("axes", "combine", "identity", "name")

    def __init__(self, name: str, axes: tuple[int, ...], combine: Callable, identity: tuple):
        self.name = name
        self.axes = axes
        self.combine = combine
        self.identity = identity


class Contraction:
    """The dimension numbers of a `dot`."""

    __slots__ = ("batch", "contract")

    def __init__(self, contract, batch):
        self.contract = tuple(map(tuple, contract))
        self.batch = tuple(map(tuple, batch))


class Step:
    """What a `call` node does; this one copies bytes.  Others are in `steps`."""

    scratch = 0
    """Bytes of memory that it needs for itself."""
    reuses: int | None = None
    """The operand whose memory the result may take, if nothing else needs it."""

    def overwrites(self, operand: int, result: int) -> bool:
        """Whether a result may lie where an operand does, or elsewhere, as is known at the call."""
        return (operand, result) == (self.reuses, 0)

    def kernel(self, kernels: dict, operands: Sequence[Node], results: Sequence[Node]) -> Any:
        """The kernel that does it, if it is one: of those there are, or written and added."""
        return None

    def emit(self, driver: Any, operands: list, results: list, scratch: Any) -> None:
        """Write the code of what is no kernel; operands and results are nodes with pointers."""
        (x, source), (_, target) = operands[0], results[0]
        driver.copy(target, source, x.size * x.dtype.itemsize)


class HostCall(Step):
    """An equation that Python evaluates."""

    def __init__(self, eqn: JaxprEqn):
        self.eqn = eqn

    def emit(self, driver, operands, results, scratch):
        driver.host_call(self.eqn, operands, results)


class Recipe(NamedTuple):
    """What a rule made of operands, and makes of any of the same forms: layers are often alike."""

    result: Node | int
    """The node that reads just these operands; or which of them the result is."""
    params: dict[str, Any]
    """Those of the equation: it is found by their identity, so they must stay."""


class Graph:
    """A program as nodes, in an order in which they can be computed.

    `forms` are those of the program around it, if it is the body of a step there.
    """

    def __init__(self, forms: dict[tuple, int] | None = None) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[Node] = []
        self.outputs: list[Node] = []
        self.consts: list[tuple[Node, np.ndarray]] = []
        self.forms = {} if forms is None else forms

    def form(self, *what: Any) -> int:
        """A number for something that is compared often: equal things have one number."""
        return self.forms.setdefault(what, len(self.forms))

    def type(self, node: Node) -> int:
        """The form of an input like a node."""
        return self.forms.setdefault((INPUT, None, node.shape, node.dtype), len(self.forms))


class Unsupported(Exception):
    """A rule cannot describe this case: the host computes it."""


class Emitter:
    """Builds a graph: what a `native` rule speaks to."""

    def __init__(self, strict: bool = False, forms: dict[tuple, int] | None = None) -> None:
        self.graph = Graph(forms)
        self.strict = strict
        """Whether operands are checked; see `checks`."""
        self.known: dict[Any, Node] = {}
        self.recipes: dict[tuple, Recipe] = {}
        """By primitive, parameters, and the forms of the operands."""
        self.literals: dict[tuple[np.dtype, bytes], Node] = {}
        self.eqn: JaxprEqn | None = None
        self.used: set[Any] = set()
        """Variables that something needs, of the program that is being written."""

    @property
    def avals(self) -> list[Any]:
        """Types of the results of the equation whose rule is running."""
        return [v.aval for v in self.eqn.outvars] if self.eqn else []

    @staticmethod
    def unsupported() -> Unsupported:
        """What a rule raises for a case that it leaves to the host."""
        return Unsupported()

    # ---- nodes

    def add(self, node: Node, unique: bool = False) -> Node:
        """Put a node into the graph, or return the one that is equal to it."""
        graph = self.graph
        node.form = graph.form(node.kind, node.key, node.shape, node.dtype)
        if not unique:
            known = self.known.setdefault((node.form, node.operands), node)
            if known is not node:
                return known
        node.number = len(graph.nodes)
        graph.nodes.append(node)
        return node

    def input(self, aval: Any) -> Node:
        node = self.add(Node(INPUT, aval.shape, numpy_dtype(aval.dtype)), unique=True)
        self.graph.inputs.append(node)
        return node

    def literal(self, value: Any, dtype: Any) -> Node:
        """A scalar constant."""
        dtype = numpy_dtype(dtype)
        value = np.asarray(value, dtype)
        # Zeros of either sign, and NaNs, are told apart by their bits.
        key = value.tobytes()
        known = self.literals.get((dtype, key))
        if known is None:
            known = self.add(Node(LITERAL, (), dtype, data=value[()], key=key))
            self.literals[dtype, key] = known
        return known

    def const(self, value: Any) -> Node:
        """An array that the program holds."""
        value = to_numpy(value)
        if value.ndim == 0 and elem_of(value.dtype):
            return self.literal(value, value.dtype)
        node = self.add(Node(INPUT, value.shape, value.dtype), unique=True)
        self.graph.consts.append((node, value))
        return node

    def compute(
        self,
        operands: Sequence[Node],
        fn: Callable[..., Any],
        *,
        shape: tuple[int, ...] | None = None,
        dtype: Any = None,
        key: Any,
        cost: int = 1,
    ) -> Node:
        """Each element is `fn(k, index, *operands)`, which reads with `k.at(operand, index)`.

        Args:
          operands: the nodes that `fn` reads.
          fn: what computes an element.  It reads operands that it is given: other nodes that are
            computed alike share it.
          shape, dtype: of the result; the equation's by default.
          key: hashable; whatever `fn` depends on apart from the operands.
          cost: about how many operations it is.
        """
        if shape is None:
            shape = tuple(self.avals[0].shape)
        dtype = numpy_dtype(self.avals[0].dtype) if dtype is None else np.dtype(dtype)
        if not elem_of(dtype) or not all(elem_of(x.dtype) for x in operands):
            raise Unsupported
        if 0 in shape and key != ("broadcast", shape):
            # Without elements there is no index at which `fn` could read.
            return self.filled(0, dtype, shape)
        return self.add(Node(COMPUTE, shape, dtype, tuple(operands), fn=fn, key=key, cost=cost))

    def map(self, name: str, *xs: Node, dtype: Any = None, **params: Any) -> Node:
        """An operation of `ops` on elements at the same place; scalars are repeated."""
        shape = ()
        if name not in ops.TABLE or not ops.accepts(name, *[x.dtype for x in xs]):
            raise Unsupported
        for x in xs:
            shape = shape or x.shape
        dtype = self.avals[0].dtype if dtype is None else dtype
        elem = elem_of(numpy_dtype(dtype))

        def fn(k, index, *xs):
            values = [k.at(x, index if x.shape else []) for x in xs]
            return ops.apply(k.f, name, values, elem, params)

        key = ("map", name, freeze(params) if params else ())
        node = Node(COMPUTE, shape, numpy_dtype(dtype), xs, fn=fn, key=key, cost=ops.cost(name))
        if not node.elem:
            raise Unsupported
        return self.add(node)

    def reindex(self, x: Node, f: Callable[[list[Index]], list[Index]], *, key: Any, shape=None):
        """Each element is the operand's at `f(index)`."""
        return self.compute(
            [x], lambda k, index, x: k.at(x, f(index)), shape=shape, dtype=x.dtype, key=key, cost=0
        )

    def reshape(self, x: Node, shape: tuple[int, ...]) -> Node:
        """The same elements in another shape."""
        if x.shape == shape:
            return x
        if x.kind is COMPUTE and x.key[0] == "reshape":
            return self.reshape(x.operands[0], shape)
        return self.reindex(
            x,
            lambda index: unravel(ravel(index, shape), x.shape),
            key=("reshape", shape),
            shape=shape,
        )

    def broadcast(self, x: Node, shape: tuple[int, ...]) -> Node:
        """A scalar repeated."""
        return self.compute(
            [x],
            lambda k, index, x: k.at(x, []),
            shape=shape,
            dtype=x.dtype,
            key=("broadcast", shape),
            cost=0,
        )

    def reduce(
        self,
        name: str,
        xs: Sequence[Node],
        axes: Sequence[int],
        combine: Callable,
        identity: Sequence[Any],
    ) -> list[Node]:
        """Combine elements along axes: `combine(f, left, right)` maps tuples of values to tuples.

        It must be associative and commutative up to rounding; `identity` changes nothing.
        """
        if not all(elem_of(x.dtype) for x in xs):
            raise Unsupported
        shape = xs[0].shape
        axes = tuple(sorted(axes))
        kept = tuple(n for i, n in enumerate(shape) if i not in axes)
        if 0 in shape:
            return [self.filled(i, x.dtype, kept) for i, x in zip(identity, xs, strict=True)]
        terms = math.prod(shape[i] for i in axes)
        if math.prod(kept) < 64 and math.prod(shape) > 1 << 16 or terms > LONG:
            parts = self._in_blocks(name, xs, axes, combine, identity)
            if parts is not None:
                return parts
        reduction = Reduction(name, axes, combine, tuple(identity))
        key = ("reduce", name, axes, tuple(map(str, identity)))
        if len(xs) == 1:
            return [self.add(Node(REDUCE, kept, xs[0].dtype, tuple(xs), data=reduction, key=key))]
        node = self.add(Node(REDUCE, kept, xs[0].dtype, tuple(xs), data=reduction, key=key))
        return [
            self.add(Node(PART, kept, x.dtype, (node,), data=i, key=("part", i)))
            for i, x in enumerate(xs)
        ]

    def _in_blocks(self, name, xs, axes, combine, identity):
        """Reduce blocks of fixed size, and those in blocks: threads and length do not matter."""
        shape = xs[0].shape
        # Blocks of the first axis are neighbours in memory.
        axis = next((i for i in axes if shape[i] >= 8), max(axes, key=lambda i: shape[i]))
        n, rest = shape[axis], math.prod(shape[i] for i in axes if i != axis)
        most, least = max(BLOCK // rest, 1), max(BLOCK // 16 // rest, 1)
        block = next((b for b in range(most, least - 1, -1) if n % b == 0), n)
        if n * rest <= 2 * BLOCK:
            return None
        if n // block < 2:
            if n * rest <= LONG >> 4 or len(xs) > 1:
                return None
            return self._in_two(name, xs[0], axes, combine, identity, axis, n - n % most)
        split = (*shape[:axis], n // block, block, *shape[axis + 1 :])
        xs = [self.reshape(x, split) for x in xs]
        inner = tuple(i + (i >= axis) for i in axes if i != axis) + (axis + 1,)
        parts = self.reduce(name, xs, inner, combine, identity)
        left = (sum(i not in inner for i in range(axis)),)
        return self.reduce(name, parts, left, combine, identity)

    def _in_two(self, name, x, axes, combine, identity, axis: int, cut: int) -> list[Node]:
        """Reduce what comes before `cut` along an axis, and what comes after, and combine them."""
        sums = []
        for start, stop in ((0, cut), (cut, x.shape[axis])):
            part = self.reindex(
                x,
                lambda index, start=start: [i + start * (a == axis) for a, i in enumerate(index)],
                key=("part of an axis", axis, start),
                shape=(*x.shape[:axis], stop - start, *x.shape[axis + 1 :]),
            )
            sums += self.reduce(name, [part], axes, combine, identity)
        return [
            self.compute(
                sums,
                lambda k, index, a, b: combine(k.f, (k.at(a, index),), (k.at(b, index),))[0],
                shape=sums[0].shape,
                dtype=x.dtype,
                key=("both parts", name),
            )
        ]

    def fold(self, name: str, x: Node, axes: Sequence[int], identity: Any) -> Node:
        """Combine elements along axes by an operation of `ops`; narrow floats are rounded once."""
        operation = ops.TABLE[name]
        if not ops.accepts(name, x.dtype):
            raise Unsupported
        if is_narrow(x.elem) and name not in ops.EXACT:
            wide = self.convert(x, np.float32)
            return self.convert(self.fold(name, wide, axes, identity), x.dtype)
        combine = lambda f, a, b: (operation(f, a[0], b[0]),)  # noqa: E731
        if x.dtype == np.bool_:
            identity = bool(identity)
        elif x.dtype.kind == "u":
            identity = identity % (1 << 8 * x.dtype.itemsize)
        return self.reduce(name, [x], axes, combine, [identity])[0]

    def sum(self, x: Node, axes: Sequence[int]) -> Node:
        """The sum along axes."""
        return self.fold("add", x, axes, 0)

    def extreme(self, x: Node, axes: Sequence[int], name: str) -> Node:
        """The greatest ("max") or least ("min") along axes."""
        return self.fold(name, x, axes, _limit(x.dtype, name == "max"))

    def locate(self, x: Node, axis: int, dtype: Any, relation: str) -> Node:
        """The place of the greatest ("gt") or least ("lt") along an axis: the first of equals."""
        wide = x.shape[axis] >= 2**31
        places = self.iota(np.int64 if wide else np.int32, x.shape, axis)

        def combine(f, a, b):
            (u, i), (v, j) = a, b
            better = f.compare(relation, u, v)
            equal = f.compare("eq", u, v)
            if u.elem[0] in "fb":
                # NaN is beyond all others, and equal to itself.
                nan_u, nan_v = f.unordered(u), f.unordered(v)
                better = f.or_(better, f.and_(nan_u, f.not_(nan_v)))
                equal = f.or_(equal, f.and_(nan_u, nan_v))
            first = f.or_(better, f.and_(equal, f.compare("lt", i, j)))
            return f.select(first, u, v), f.select(first, i, j)

        if is_complex(x.elem or "c64"):
            raise Unsupported
        worst = _limit(x.dtype, relation == "gt")
        _, place = self.reduce(f"locate_{relation}", [x, places], (axis,), combine,
                               [worst, 2**63 - 1 if wide else 2**31 - 1])  # fmt: skip
        return self.convert(place, dtype)

    def convert(self, x: Node, dtype: Any) -> Node:
        """Elements as another type."""
        dtype = numpy_dtype(dtype)
        if x.dtype == dtype:
            return x
        elem = elem_of(dtype)
        if not elem:
            raise Unsupported
        return self.map("convert", x, dtype=dtype)

    def bitcast(self, x: Node, dtype: Any) -> Node:
        """The bits of elements as another type; see `casts`."""
        return casts.bitcast(self, x, dtype)

    def iota(self, dtype: Any, shape: tuple[int, ...], axis: int) -> Node:
        """0, 1, 2, … along an axis."""
        dtype = numpy_dtype(dtype)
        elem = elem_of(dtype)

        def fn(k, index):
            return ops.convert(k.f, k.integer(index[axis]), elem=elem)

        return self.compute([], fn, shape=tuple(shape), dtype=dtype, key=("iota", axis), cost=1)

    def filled(self, value: Any, dtype: Any, shape: tuple[int, ...]) -> Node:
        """An array of one value."""
        scalar = self.literal(value, dtype)
        return self.broadcast(scalar, shape) if shape else scalar

    def contraction(self, x: Node, y: Node, contract, batch) -> Node:
        """Sums of products over the contracted axes; batch axes come first in the result."""
        contract, batch = tuple(map(tuple, contract)), tuple(map(tuple, batch))
        dtype = numpy_dtype(self.avals[0].dtype)
        if not x.elem or not y.elem or not elem_of(dtype):
            raise Unsupported
        wide = np.dtype(np.float32) if elem_of(dtype) in ("f16", "bf16") else dtype
        x, y = self.convert(x, wide), self.convert(y, wide)
        if 0 in x.shape or 0 in y.shape:
            return self.filled(0, dtype, tuple(self.avals[0].shape))
        _, rows, columns, terms = matrices.extents(x.shape, y.shape, contract[0], batch[0])
        thin = rows == 1 or columns == 1 or terms == 1
        if elem_of(wide) not in matrices.BLAS or thin:
            return self.convert(self._sum_of_products(x, y, contract, batch), dtype)
        return self.convert(self.dot(x, y, contract, batch), dtype)

    def _sum_of_products(self, x: Node, y: Node, contract, batch) -> Node:
        """A contraction as a reduction: what it is for vectors, and for integers."""
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
        product = self.compute(
            [x, y],
            lambda k, index, x, y: ops.mul(k.f, k.at(x, at_x(index)), k.at(y, at_y(index))),
            shape=shape + tuple(x.shape[i] for i in contract[0]),
            dtype=x.dtype,
            key=("products", contract, batch),
        )
        return self.sum(product, range(last, last + nk)) if nk else product

    def dot(self, x: Node, y: Node, contract, batch) -> Node:
        """A contraction of floats, by matrix products."""
        left = matrices.side(x.shape, _permutation(x), contract[0], batch[0])
        right = matrices.side(y.shape, _permutation(y), contract[1], batch[1])
        x, y = self._seen(x, left), self._seen(y, right)
        data = Contraction((left.contract, right.contract), (left.batch, right.batch))
        shape = left.kept + right.kept[len(right.batch) :]
        key = ("dot", data.contract, data.batch)
        node = Node(DOT, shape, x.dtype, (x, y), data=data, key=key)
        count = matrices.parts(node.size, left.terms, left.terms)
        product = matrices.Product.of(node) if count > 1 and not is_complex(node.elem) else None
        if product is None or product.columns.right > 1:
            return self.add(node)
        cut, *inner = matrices.split(count, product.inner, node.size)
        product = matrices.Product(
            node.elem, [cut, *product.batch], product.rows, product.columns, inner
        )
        return self.sum(self.product(x, y, product, (count, *shape)), (0,))

    def _seen(self, v: Node, side: matrices.Side) -> Node:
        """An operand of a product as it is read."""
        v, order = v.operands[0] if side.unturned else v, side.order
        if order is None:
            return v
        places = [order.index(i) for i in range(len(order))]
        return self.reindex(
            v,
            lambda index: [index[i] for i in places],
            key=("transpose", order),
            shape=tuple(v.shape[i] for i in order),
        )

    def product(self, x: Node, y: Node, data: matrices.Product, shape: tuple[int, ...]) -> Node:
        """Sums of products, by the strides of their axes."""
        return self.add(Node(DOT, shape, x.dtype, (x, y), data=data, key=("product", data.key)))

    def convolution(self, x: Node, w: Node, **params: Any) -> Node:
        """Sums of products under a window: the parameters are those of the primitive."""
        return conv.convolution(self, x, w, params)

    def concatenate(self, xs: Sequence[Node], axis: int) -> Node:
        """Arrays one after another along an axis."""
        from namoo.engines.native import assemble

        return assemble.concatenate(self, xs, axis)

    def pad(self, x: Node, value: Node, config) -> Node:
        """An array with `value` around and between its elements."""
        from namoo.engines.native import assemble

        return assemble.pad(self, x, value, tuple(map(tuple, config)))

    def update_slice(self, x: Node, update: Node, starts: Sequence[Node]) -> Node:
        """`x` with `update` written at `starts`, which are moved so that it fits."""
        from namoo.engines.native import assemble

        return assemble.update_slice(self, x, update, starts)

    def gather(self, x: Node, indices: Node, numbers, slice_sizes, fill: Any) -> Node:
        """Windows of `x` at starts that `indices` hold; see `indexing`."""
        fill = None if fill is None else self.literal(fill, x.dtype)
        return indexing.gather(self, x, indices, numbers, slice_sizes, fill)

    def scatter(self, x: Node, indices: Node, updates: Node, numbers, name, clip: bool) -> Node:
        """`x` with windows written into it; see `indexing`."""
        return indexing.scatter(self, x, indices, updates, numbers, name, clip)

    def sort(self, xs: Sequence[Node], axis: int, keys: int, top: int | None = None) -> list[Node]:
        """Operands sorted by the first `keys`; or the `top` greatest elements and their places."""
        from namoo.engines.native import sorting

        if not all(x.elem for x in xs) or any(is_key(x.elem) for x in xs[:keys]):
            raise Unsupported
        if xs[0].size == 0 or xs[0].shape[axis] >= 2**32:
            raise Unsupported
        writes: list[int | None] = [0, None]
        if top is None:
            # Numbers of the places need not be read: they are known.
            known = [x.key == ("iota", axis) and x.dtype.kind in "iu" for x in xs]
            given = [x for i, x in enumerate(xs) if i < keys or not known[i]]
            writes = [given.index(x) if x in given else None for x in xs]
            xs = given
        if self.eqn is not None:
            writes = [
                w if v in self.used else sorting.UNUSED
                for v, w in zip(self.eqn.outvars, writes, strict=True)
            ]
        return sorting.sort(self, xs, axis, keys, writes, top)

    def window(self, name: str, *args: Any) -> Node:
        """Reductions over sliding windows, by a function of `pooling`."""
        return getattr(pooling, name)(self, *args)

    def random(self, name: str, *args: Any) -> Any:
        """Keys, or what is drawn with them, by a function of `generators`."""
        return getattr(generators, name)(self, *args)

    def cumulative(self, x: Node, axis: int, reverse: bool, name: str) -> Node:
        """Elements combined up to each place along an axis, by an operation or "logsumexp"."""
        from namoo.engines.native.cumulative import Cumulative, accepts

        if not accepts(x, name):
            raise Unsupported
        if x.size == 0 or x.shape[axis] == 1:
            return x
        return self.call(Cumulative(x, axis, reverse, name), [x], [x])[0]

    def call(self, step: Step, operands: Sequence[Node], results: Sequence[Any]) -> list[Node]:
        """A step on operands in memory; `results` are the types of what it writes."""
        operands = [self.stored(x) if x.kind is LITERAL else x for x in operands]
        node = self.add(Node(CALL, (), np.dtype(np.uint8), tuple(operands), data=step), unique=True)
        return [
            self.add(
                Node(PART, a.shape, numpy_dtype(a.dtype), (node,), data=i, key=("part", i)),
                unique=True,
            )
            for i, a in enumerate(results)
        ]

    def stored(self, x: Node) -> Node:
        """The same values in memory of their own."""
        if not x.elem:
            (out,) = self.call(Step(), [x], [x])
            return out
        return self.add(
            Node(
                COMPUTE, x.shape, x.dtype, (x,),
                fn=lambda k, index, x: k.at(x, index), key=("copy",), cost=0,
            ),
            unique=True,
        )  # fmt: skip

    # ---- control flow

    def scan(self, operands, **params) -> list[Node]:
        """The results of a scan."""
        from namoo.engines.native import loops

        return loops.scan(self, operands, **params)

    def while_loop(self, operands, *params) -> list[Node]:
        """The results of a while loop."""
        from namoo.engines.native import loops

        return loops.while_loop(self, operands, *params)

    def cond(self, index: Node, operands, branches) -> list[Node]:
        """The results of the program with a number."""
        from namoo.engines.native import loops

        return loops.cond(self, index, operands, branches)

    # ---- programs

    def inline(self, closed: ClosedJaxpr, operands: Sequence[Node]) -> list[Node]:
        """Write a program into this one."""
        return self.program(closed.jaxpr, closed.consts, operands)

    def program(self, jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Node]) -> list[Node]:
        """The results of a program on operands."""
        eqns, used = needed(jaxpr)
        env = _Values(zip(jaxpr.invars, operands, strict=True), self)
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            env[var] = const if isinstance(const, Node) else self.const(const)
        recipes = self.recipes
        outer = self.eqn, self.used
        self.used = used
        for eqn in eqns:
            nodes: list[Node] = []
            words: list[Any] = [eqn.primitive, id(eqn.params) if eqn.params else 0]
            for atom in eqn.invars:
                node = env[atom]
                nodes.append(node)
                words.append(node.form)
            operands, key = tuple(nodes), tuple(words)
            recipe = recipes.get(key)
            if recipe is not None:
                env[eqn.outvars[0]] = self._again(recipe.result, operands)
                continue
            self.eqn = eqn
            results = self.equation(eqn, operands)
            if not self.strict:
                self._remember(key, eqn, operands, results)
            for var, node in zip(eqn.outvars, results, strict=True):
                env[var] = node
        self.eqn, self.used = outer
        return [env[atom] for atom in jaxpr.outvars]

    def _again(self, result: Node | int, operands: tuple[Node, ...]) -> Node:
        """What a recipe makes of operands."""
        if isinstance(result, int):
            return operands[result]
        identity = (result.form, operands)
        node = self.known.get(identity)
        if node is None:
            node = self.known[identity] = result.of(operands)
            nodes = self.graph.nodes
            node.number = len(nodes)
            nodes.append(node)
        return node

    def _remember(self, key: tuple, eqn: JaxprEqn, operands: tuple, results: list[Node]) -> None:
        """Keep what a rule did as a recipe, if it is one."""
        # A program may look behind its operands in many ways.  Where two operands are one node,
        # it is not seen which of them a result reads.
        if eqn.primitive.holds_program or not 0 < len(set(operands)) == len(operands):
            return
        for node in results if len(results) == 1 else ():
            if node.operands == operands:
                self.recipes[key] = Recipe(node, eqn.params)
            elif node in operands:
                self.recipes[key] = Recipe(operands.index(node), eqn.params)

    def equation(self, eqn: JaxprEqn, operands: Sequence[Node]) -> list[Node]:
        """The results of an equation, by its primitive's rule or by the host."""
        if self.strict:
            from namoo.engines.native import checks

            checks.check(self, eqn, operands)
        rule = eqn.primitive.native
        if rule is not None:
            if operands and operands[0].kind is LITERAL and self._foldable(eqn, operands):
                return self._folded(eqn, operands)
            try:
                out = rule(self, *operands, **eqn.params)
                return out if eqn.primitive.multiple_results else [out]
            except Unsupported:
                pass
        return self.call(HostCall(eqn), operands, self.avals)

    def _foldable(self, eqn, operands) -> bool:
        return (
            all(x.kind is LITERAL for x in operands)
            and all(v.aval.shape == () and elem_of(v.aval.dtype) for v in eqn.outvars)
            and not eqn.effectful
            and not eqn.primitive.holds_program
        )

    def _folded(self, eqn, operands) -> list[Node]:
        with np.errstate(all="ignore"):
            out = eqn.primitive.evaluate(*(np.asarray(x.data) for x in operands), **eqn.params)
        out = out if eqn.primitive.multiple_results else [out]
        return [self.literal(x, a.dtype) for x, a in zip(out, self.avals, strict=True)]


class _Values(dict[Atom, Node]):
    """The nodes of a program's variables, and of the literals in it that were read."""

    def __init__(self, known: Iterable[tuple[Atom, Node]], emitter: Emitter):
        super().__init__(known)
        self.emitter = emitter

    def __missing__(self, literal: Literal) -> Node:
        emitter, dtype = self.emitter, numpy_dtype(literal.aval.dtype)
        if elem_of(dtype):
            node = emitter.literal(literal.val, dtype)
        else:
            node = emitter.const(np.asarray(literal.val, dtype))
        self[literal] = node
        return node


def _permutation(x: Node) -> tuple[int, ...] | None:
    """The axes of what a node is a transposition of, in the node's order."""
    return x.key[1] if x.kind is COMPUTE and x.key[0] == "transpose" else None


def _limit(dtype: np.dtype, least: bool) -> Any:
    """The least or the greatest value of a type: infinite for floats."""
    if dtype == np.bool_:
        return not least
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.min if least else info.max
    return -math.inf if least else math.inf


def freeze(value: Any) -> Any:
    """A hashable key of a parameter."""
    if isinstance(value, dict):
        return tuple((k, freeze(v)) for k, v in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes()
    return (type(value).__name__, str(value)) if isinstance(value, float) else value
