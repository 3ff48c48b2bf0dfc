"""The nodes of a program's graph, and the graph itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from namoo.core.jaxpr import JaxprEqn
from namoo.engines.native.ir.extents import about
from namoo.engines.native.ir.types import elem_of, numpy_dtype

INPUT, LITERAL, COMPUTE, REDUCE, DOT, CALL, PART = (
    "input", "literal", "compute", "reduce", "dot", "call", "part",
)  # fmt: skip

COPY = ("copy",)
"""The key of nodes that copy their operand."""


class Node:
    """A value of the program, or a step with several results.

    Nodes are interned: equal values are one node. A node is never mutated once it is in a graph; a
    pass that replaces a node builds a new one and rebuilds its users.
    """

    __slots__ = (
        "cost", "count", "data", "dtype", "elem", "fn", "key", "kind", "number", "operands",
        "shape", "size", "structure",
    )  # fmt: skip

    def __init__(self, kind, shape, dtype, operands=(), *, fn=None, data=None, key=None, cost=1):
        self.kind: str = kind
        self.shape: tuple[int, ...] = shape
        self.dtype: np.dtype = dtype
        self.size = math.prod(shape)
        self.count: int = about(self.size)
        """The number of elements; if it depends on sizes at run time, a typical one."""
        self.elem = elem_of(dtype)
        self.operands: tuple[Node, ...] = operands
        self.fn: Callable[..., Any] | None = fn
        """`fn(k, index, *operands)` computes one element, with the code generator `k`."""
        self.data: Any = data
        """Depends on the kind: a `Reduction`, a `Step`, a number."""
        self.key: Any = key
        """What the node computes, apart from its operands: equal keys compute the same."""
        self.cost: int = cost
        """About how many simple operations one element takes."""
        self.structure = -1
        """A number shared by nodes of equal kind, key and type; see `Graph.intern_structure`."""
        self.number = -1
        """The position in the graph's list of nodes."""

    def with_operands(self, operands: tuple[Node, ...]) -> Node:
        """Return a node that computes the same from other operands of the same types."""
        node = Node.__new__(Node)
        node.kind, node.shape, node.dtype = self.kind, self.shape, self.dtype
        node.size, node.count, node.elem, node.cost = self.size, self.count, self.elem, self.cost
        node.fn, node.data, node.key = self.fn, self.data, self.key
        node.structure, node.operands = self.structure, operands
        return node

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        reads = "".join(f" %{x.number}" for x in self.operands)
        what = f" {self.key[:2]}" if isinstance(self.key, tuple) else ""
        if self.kind is CALL:
            return f"%{self.number} = call {type(self.data).__name__}{reads}"
        if self.kind is LITERAL:
            what = f" {self.data}"
        return f"%{self.number}: {self.dtype}{list(self.shape)} = {self.kind}{what}{reads}"


class Reduction:
    """How a reduction combines values; there may be several, such as a maximum and its index.

    Attributes:
        name: the operation.
        axes: the axes that it runs along.
        combine: `combine(f, left, right)` maps tuples of values to a tuple.
        identity: one neutral element for each value.
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
    """What a `call` node does. This one copies bytes; the others are subclasses in `kernels`."""

    scratch = 0
    """Bytes of scratch memory."""
    takes_sizes = False
    """Whether sizes of its operands and results may be known at run time only."""
    takes_over: Mapping[int, int] = {}
    """Operands whose buffer a result takes over if nothing reads them later, which saves a copy:
    from the number of the operand to that of the result."""

    def overwrites(self, operand: int, result: int) -> bool:
        """Return whether a result may alias an operand, if the caller donates it."""
        return self.takes_over.get(operand) == result

    def kernel(self, module: Any, operands: Sequence[Node], results: Sequence[Node]) -> Any:
        """Return the step's kernel, which is emitted into the module on first use; or None.

        A step without a kernel emits its code into the entry function instead, by `emit`.
        """
        return None

    def computed(self, operands: Sequence[Node]) -> Node | None:
        """Return a node that computes the only result element by element, if that is cheap.

        The step becomes that node where all readers of the result are elementwise.
        """
        return None

    def small(self) -> bool:
        """Return whether the step runs in registers, inside a loop that does."""
        return False

    def unrolled_operations(self) -> int:
        """About how many operations the step emits there."""
        raise NotImplementedError

    def in_registers(self, driver: Any, operands: list, outer: Any, nodes: Sequence[Node]) -> list:
        """Emit the step there; return the elements of each result, None for one in memory.

        Args:
            driver: emits the function.
            operands: the elements of each operand, None for a large one, which is in memory.
            outer: the code generator around the step, with the places of `nodes` in memory.
            nodes: the operands.
        """
        raise NotImplementedError

    def operations(self, operands: Sequence[Node]) -> int:
        """About how many operations the step takes."""
        return sum(x.count for x in operands)

    def emit(self, driver: Any, operands: list, results: list, scratch: Any) -> None:
        """Emit the step; operands and results are pairs of a node and its pointer."""
        (x, source), (_, target) = operands[0], results[0]
        driver.copy(target, source, x.nbytes)


class HostCall(Step):
    """An equation that Python evaluates."""

    takes_sizes = True

    def __init__(self, eqn: JaxprEqn):
        self.eqn = eqn

    def emit(self, driver, operands, results, scratch):
        driver.host_call(self.eqn, operands, results)


@dataclass
class Graph:
    """A program as nodes in topological order.

    Attributes:
        nodes: all nodes; each follows its operands.
        inputs: the program's arguments.
        outputs: the program's results.
        consts: the arrays that the program holds.
        structures: numbers of structures; the body of a loop shares those of the program around it.
        donated: for the body of a loop, the inputs that may be overwritten, each with the output
          that replaces it.
        equations: the equation of each node, where an emitter recorded them for a message.
        variables: the dimension variables in the shapes of the inputs.
    """

    nodes: list[Node] = field(default_factory=list)
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    consts: list[tuple[Node, np.ndarray]] = field(default_factory=list)
    structures: dict[tuple, int] = field(default_factory=dict)
    donated: Mapping[int, int] = field(default_factory=dict)
    equations: dict[Node, JaxprEqn] = field(default_factory=dict)
    variables: tuple[str, ...] = ()

    def intern_structure(self, *what: Any) -> int:
        """Intern a structure: return its number, which equal structures share."""
        return self.structures.setdefault(what, len(self.structures))

    def input_structure(self, node: Node) -> int:
        """Return the structure of an input with a node's type."""
        what = (INPUT, None, node.shape, node.dtype)
        return self.structures.setdefault(what, len(self.structures))

    def append(self, node: Node) -> Node:
        """Add a node, and number it."""
        node.number = len(self.nodes)
        self.nodes.append(node)
        return node

    def new(self, node: Node) -> Node:
        """Add a node without looking for an equal one."""
        node.structure = self.intern_structure(node.kind, node.key, node.shape, node.dtype)
        return self.append(node)

    def call(self, step: Step, operands: Sequence[Node], results: Sequence[Any]) -> list[Node]:
        """Add a step on operands in memory; `results` have the types of what it writes."""
        operands = [self.stored(x) if x.kind is LITERAL else x for x in operands]
        node = self.new(Node(CALL, (), np.dtype(np.uint8), tuple(operands), data=step))
        return [
            self.new(Node(PART, a.shape, numpy_dtype(a.dtype), (node,), data=i, key=("part", i)))
            for i, a in enumerate(results)
        ]

    def stored(self, x: Node) -> Node:
        """Add a copy of a node's value, in a separate buffer."""
        if not x.elem:
            (out,) = self.call(Step(), [x], [x])
            return out
        node = Node(
            COMPUTE, x.shape, x.dtype, (x,),
            fn=lambda k, index, x: k.at(x, index), key=COPY, cost=0,
        )  # fmt: skip
        return self.new(node)

    def replaced(self, nodes: Mapping[Node, Node]) -> Graph:
        """Return a graph in which some nodes are replaced by others, and their users rebuilt."""
        new: dict[Node, Node] = {}
        out = replace(self, nodes=[], equations={**self.equations})
        for node in self.nodes:
            other = nodes.get(node)
            if other is not None:
                other.operands = tuple(new.get(x, x) for x in other.operands)
                out.new(other)
            elif any(x in new for x in node.operands):
                other = out.append(node.with_operands(tuple(new.get(x, x) for x in node.operands)))
            else:
                out.nodes.append(node)
                continue
            new[node] = other
            if node in self.equations:
                out.equations[other] = self.equations[node]
        out.outputs = [new.get(node, node) for node in self.outputs]
        return out

    def text(self) -> str:
        """The nodes, one a line, and the outputs."""
        outputs = " ".join(f"%{node.number}" for node in self.outputs)
        return "\n".join([*map(repr, self.nodes), f"return {outputs}"])


class Unsupported(Exception):
    """Raised by a rule for a case without native code: the host evaluates the equation."""
