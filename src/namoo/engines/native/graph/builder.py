"""Builds the graph of a program, equation by equation.

The `native` rule of a primitive gets an emitter and describes its result in one of a few forms:

| form      | what it says                                                                     |
|-----------|----------------------------------------------------------------------------------|
| `map`     | elementwise: a named operation of `ops` on elements at the same index             |
| `compute` | each element is a function of its index, which may read any element of operands   |
| `reindex` | each element is an element of the operand, at another index                       |
| `reduce`  | elements along some axes combined                                                 |
| `dot`     | a contraction                                                                     |
| `call`    | a step that needs its operands in memory: a library, a loop, the host             |

No code is emitted here: a `compute` node holds a function, which is called wherever its value is
needed. Equal nodes are interned, and operations on literals are folded.

`GraphBuilder` has the forms that build nodes of the graph. `kernels.emitter.Emitter` adds those of
the kernels, and is what rules get.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo.analysis.dead_code import needed
from namoo.core.array import to_numpy
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from namoo.engines import base
from namoo.engines.native import tuning
from namoo.engines.native.graph.node import (
    COMPUTE,
    DOT,
    INPUT,
    LITERAL,
    Graph,
    HostCall,
    Node,
    Step,
    Unsupported,
)
from namoo.engines.native.ir import ops
from namoo.engines.native.ir.index import Index, ravel, unravel
from namoo.engines.native.ir.types import elem_of, numpy_dtype


class Recipe(NamedTuple):
    """The node that a rule built; the rule builds an equal one from operands of equal structure."""

    result: Node | int
    """A node whose operands are those of the equation, in order; or the index of the operand that
    the rule returned."""
    params: dict[str, Any]
    """The parameters of the equation, kept alive because recipes are keyed by their identity."""


class GraphBuilder:
    """Builds a graph from equations.

    Args:
        strict: whether operands are checked; see `kernels.checks`.
        structures: the table of structures of the surrounding program, if this is the body of a
          step.
    """

    def __init__(self, strict: bool = False, structures: dict[tuple, int] | None = None) -> None:
        self.graph = Graph(structures={} if structures is None else structures)
        self.strict = strict
        self.known: dict[Any, Node] = {}
        """Interned nodes, by structure and operands."""
        self.recipes: dict[tuple, Recipe] = {}
        """By primitive, parameters, and the structures of the operands."""
        self.literals: dict[tuple[np.dtype, bytes], Node] = {}
        self.eqn: JaxprEqn | None = None
        """The equation whose rule is running."""
        self.used: set[Any] = set()
        """The variables of the current program that are live."""

    @property
    def avals(self) -> list[Any]:
        """Types of the results of the equation whose rule is running."""
        return [v.aval for v in self.eqn.outvars] if self.eqn else []

    @staticmethod
    def unsupported() -> Unsupported:
        """The exception that a rule raises for a case that it leaves to the host."""
        return Unsupported()

    def add(self, node: Node) -> Node:
        """Intern a node: return the equal one of the graph, or add it."""
        graph = self.graph
        node.structure = graph.intern_structure(node.kind, node.key, node.shape, node.dtype)
        known = self.known.setdefault((node.structure, node.operands), node)
        return graph.append(node) if known is node else known

    def input(self, aval: Any) -> Node:
        """An argument of the program."""
        node = self.graph.new(Node(INPUT, aval.shape, numpy_dtype(aval.dtype)))
        self.graph.inputs.append(node)
        return node

    def literal(self, value: Any, dtype: Any) -> Node:
        """A scalar constant."""
        dtype = numpy_dtype(dtype)
        value = np.asarray(value, dtype)
        # Keyed by bits, which distinguish zeros of either sign, and NaNs.
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
        node = self.graph.new(Node(INPUT, value.shape, value.dtype))
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
        rereads: bool = False,
    ) -> Node:
        """Each element is `fn(k, index, *operands)`, which reads with `k.at(operand, index)`.

        Args:
            operands: the nodes that `fn` reads.
            fn: computes an element.  It must read the operands it is passed, not those it closes
              over: nodes of equal structure share it.
            shape, dtype: type of the result; by default that of the equation's result.
            key: hashable; everything that `fn` depends on apart from the operands.
            cost: about how many operations an element takes.
            rereads: whether it reads elements of its operands several times: the operands are then
              stored, not recomputed.
        """
        if shape is None:
            shape = tuple(self.avals[0].shape)
        dtype = numpy_dtype(self.avals[0].dtype) if dtype is None else np.dtype(dtype)
        if not elem_of(dtype) or not all(elem_of(x.dtype) for x in operands):
            raise Unsupported
        if 0 in shape and key != ("broadcast", shape):
            # An empty array has no index at which `fn` could read.
            return self.filled(0, dtype, shape)
        data = "rereads" if rereads else None
        return self.add(
            Node(COMPUTE, shape, dtype, tuple(operands), fn=fn, data=data, key=key, cost=cost)
        )

    def map(self, name: str, *xs: Node, dtype: Any = None, **params: Any) -> Node:
        """An operation of `ops` on elements at the same index; scalars are broadcast."""
        shape = ()
        if name not in ops.TABLE or not ops.accepts(name, *[x.dtype for x in xs]):
            raise Unsupported
        for x in xs:
            shape = shape or x.shape
        dtype = self.avals[0].dtype if dtype is None else dtype
        cheap = ops.cost(name) < tuning.EXPENSIVE
        if cheap and (moved := self._before_transposition(xs)) is not None:
            order, before = moved
            return self.transpose(self.map(name, *before, dtype=dtype, **params), order)
        elem = elem_of(numpy_dtype(dtype))

        def fn(k, index, *xs):
            values = [k.at(x, index if x.shape else []) for x in xs]
            return ops.apply(k.f, name, values, elem, params)

        key = ("map", name, freeze(params) if params else ())
        node = Node(COMPUTE, shape, numpy_dtype(dtype), xs, fn=fn, key=key, cost=ops.cost(name))
        if not node.elem:
            raise Unsupported
        return self.add(node)

    @staticmethod
    def _before_transposition(xs: Sequence[Node]) -> tuple[tuple[int, ...], list[Node]] | None:
        """The operands of a cheap operation on scalars and a transposition, to be transposed later.

        A product then reads what was transposed in the order that it has in memory. The result of
        a product is not transposed later: it can be stored in any order.
        """
        arrays = [x for x in xs if x.shape]
        if len(arrays) != 1 or arrays[0].kind is not COMPUTE or arrays[0].key[0] != "transpose":
            return None
        (array,) = arrays
        (of,) = array.operands
        if of.kind is DOT:
            return None
        return array.key[1], [of if x is array else x for x in xs]

    def transpose(self, x: Node, order: tuple[int, ...]) -> Node:
        """The axes of an array in another order."""
        places = [order.index(i) for i in range(len(order))]
        return self.reindex(
            x,
            lambda index: [index[i] for i in places],
            key=("transpose", order),
            shape=tuple(x.shape[i] for i in order),
        )

    def reindex(self, x: Node, f: Callable[[list[Index]], list[Index]], *, key: Any, shape=None):
        """The element at `index` is the operand's at `f(index)`."""
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
        """A scalar, repeated in a shape."""
        return self.compute(
            [x],
            lambda k, index, x: k.at(x, []),
            shape=shape,
            dtype=x.dtype,
            key=("broadcast", shape),
            cost=0,
        )

    def convert(self, x: Node, dtype: Any) -> Node:
        """Elements as another type."""
        dtype = numpy_dtype(dtype)
        if x.dtype == dtype:
            return x
        elem = elem_of(dtype)
        if not elem:
            raise Unsupported
        return self.map("convert", x, dtype=dtype)

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

    def call(self, step: Step, operands: Sequence[Node], results: Sequence[Any]) -> list[Node]:
        """Add a step on operands in memory; `results` have the types of what it writes."""
        return self.graph.call(step, operands, results)

    def stored(self, x: Node) -> Node:
        """A copy of a value, in a separate buffer."""
        return self.graph.stored(x)

    def inline(self, closed: ClosedJaxpr, operands: Sequence[Node]) -> list[Node]:
        """Inline a program; return its results."""
        return self.program(closed.jaxpr, closed.consts, operands)

    def apply(self, function: Callable[..., Any], *operands: Node) -> list[Node]:
        """The results of a function of arrays, traced; for rules in terms of primitives."""
        avals = [ShapedArray(x.shape, x.dtype) for x in operands]
        jaxpr, consts = base.stage(function, avals, "apply", None)
        return self.program(jaxpr, consts, operands)

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
                words.append(node.structure)
            operands, key = tuple(nodes), tuple(words)
            recipe = recipes.get(key)
            if recipe is not None:
                env[eqn.outvars[0]] = self._apply_recipe(recipe.result, operands)
                continue
            self.eqn = eqn
            results = self.equation(eqn, operands)
            if not self.strict:
                self._remember(key, eqn, operands, results)
            for var, node in zip(eqn.outvars, results, strict=True):
                env[var] = node
        self.eqn, self.used = outer
        return [env[atom] for atom in jaxpr.outvars]

    def _apply_recipe(self, result: Node | int, operands: tuple[Node, ...]) -> Node:
        """The result of a recipe on other operands."""
        if isinstance(result, int):
            return operands[result]
        identity = (result.structure, operands)
        node = self.known.get(identity)
        if node is None:
            node = self.known[identity] = self.graph.append(result.with_operands(operands))
        return node

    def _remember(self, key: tuple, eqn: JaxprEqn, operands: tuple, results: list[Node]) -> None:
        """Keep the result of a rule as a recipe, if it depends on its operands alone."""
        # Rules of primitives that hold programs may inspect the operands of their operands.  If two
        # operands are one node, it is ambiguous which of them the result reads.
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
            self.check(eqn, operands)
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

    def check(self, eqn: JaxprEqn, operands: Sequence[Node]) -> None:
        """Add the checks of an equation's operands, in a strict program."""
        raise NotImplementedError

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

    def __init__(self, known: Iterable[tuple[Atom, Node]], emitter: GraphBuilder):
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


def freeze(value: Any) -> Any:
    """A hashable key of a parameter."""
    if isinstance(value, dict):
        return tuple((k, freeze(v)) for k, v in sorted(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    if isinstance(value, np.ndarray):
        return value.shape, str(value.dtype), value.tobytes()
    return (type(value).__name__, str(value)) if isinstance(value, float) else value
