"""The programs that steps of control flow run, and their code in registers.

In registers, each element of a small array is an SSA value. Large arrays remain in memory: a
program may read them, and overwrite some of their elements.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from namoo.analysis.dead_code import has_checks
from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines.native import tuning
from namoo.engines.native.fuse.groups import fuse
from namoo.engines.native.fuse.kinds import KINDS
from namoo.engines.native.fuse.schedule import schedule
from namoo.engines.native.graph.node import CALL, COMPUTE, INPUT, LITERAL, PART, REDUCE, Node
from namoo.engines.native.graph.simplify import simplify
from namoo.engines.native.ir.extents import is_dynamic
from namoo.engines.native.ir.function import Value, constant
from namoo.engines.native.ir.index import Index, ravel, unravel
from namoo.engines.native.kernels.element_codegen import Place, Writer, on_stack
from namoo.engines.native.memory.arena import Plan, allocate
from namoo.engines.native.verify import run_passes

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


class Body:
    """A program that a step runs, with a graph of its own."""

    def __init__(self, closed: ClosedJaxpr, parent: Emitter, operands: Sequence[Node]):
        emitter = type(parent)(parent.strict, parent.graph.structures)
        emitter.graph.variables = parent.graph.variables
        inputs = [emitter.input(a) for a in closed.in_avals]
        # Literals of the surrounding program are literals in the body.
        given = [
            emitter.literal(x.data, x.dtype) if x.kind is LITERAL else node
            for x, node in zip(operands, inputs, strict=False)
        ]
        given += inputs[len(given) :]
        emitter.graph.outputs = emitter.inline(closed, given)
        self.graph = emitter.graph
        self.counted = emitter.strict or has_checks(closed.jaxpr)
        """Whether errors inside name the iteration."""
        self.inputs = inputs
        self.consts = [parent.const(value) for _, value in emitter.graph.consts]
        """Constant arrays of the program: operands of the step."""

    @property
    def held(self) -> list[Node]:
        """The nodes of the program's constant arrays."""
        return [node for node, _ in self.graph.consts]

    def donate(self, inputs: Sequence[int]) -> None:
        """Set which inputs may be overwritten, by the outputs that replace them in the carry."""
        self.graph.donated = {j: i for i, j in enumerate(inputs)}

    def origins(self) -> list[int | None]:
        """For each output, the input whose buffer a chain of overwriting steps starts from."""
        numbers = {node: i for i, node in enumerate(self.inputs)}
        out = []
        for node in self.graph.outputs:
            while node.kind is PART and node.operands[0].kind is CALL:
                (call,) = node.operands
                taken = [i for i, o in call.data.takes_over.items() if o == node.data]
                if not taken:
                    break
                node = call.operands[taken[0]]
            out.append(numbers.get(node))
        return out

    @functools.cached_property
    def plan(self) -> Plan:
        """The kernels of a body that does not fit into registers, and their memory."""
        return run_passes((simplify, fuse, schedule, allocate), self.graph)

    def small(self) -> bool:
        """Return whether the body runs in registers."""
        return self.work <= tuning.REGISTER_WORK

    @functools.cached_property
    def work(self) -> int:
        """About how many operations it takes, unrolled; above the limit if it needs kernels."""
        total, never = 0, tuning.REGISTER_WORK + 1
        for node in self.graph.nodes:
            if node.kind in (INPUT, LITERAL):
                continue
            if node.kind is CALL:
                if not node.data.small():
                    return never
                total += node.data.unrolled_operations()
                continue
            if not node.elem:
                return never
            if is_large(node):  # a view, or an array in memory
                continue
            work = KINDS[node.kind].unrolled_operations(node)
            if work is None:
                return never
            total += work
        return never if total >= never or self.order is None else total

    @functools.cached_property
    def order(self) -> list[Node] | None:
        """The nodes in the order of their code: arrays are read before they are overwritten.

        None if a large value would not be in memory, or is needed after it was overwritten.
        """
        nodes, inputs = self.graph.nodes, {node: i for i, node in enumerate(self.inputs)}
        memory = {node: node for node in nodes if node.kind is INPUT and is_large(node)}
        """For each array in memory, the input whose buffer it is in."""
        writers: dict[Node, Node] = {}
        """The step that overwrites an array."""
        for node in nodes:
            if node.kind is INPUT or not is_large(node) or _is_view(node):
                continue
            source = _source(node)
            if source not in memory or source in writers:
                return None
            memory[node] = memory[source]
            writers[source] = node.operands[0]
        donated = self.graph.donated
        for j, node in enumerate(self.graph.outputs):
            if is_large(node):
                origin = inputs.get(memory.get(node, node), -1)
                if donated.get(origin) != j or node in writers:
                    return None
        for node in writers:
            j = donated.get(inputs.get(memory[node], -1), -1)
            if j < 0 or memory.get(self.graph.outputs[j]) is not memory[node]:
                return None
        return _readers_first(nodes, memory, writers) if writers else nodes


def is_large(node: Node) -> bool:
    """Whether an array has too many elements for registers."""
    return is_dynamic(node.size) or node.size > tuning.REGISTER_ELEMENTS


def _is_view(node: Node) -> bool:
    return node.kind is COMPUTE and node.cost == 0


def _source(node: Node) -> Node | None:
    """The operand of a step whose buffer a result takes over."""
    if node.kind is PART and node.operands[0].kind is CALL:
        (call,) = node.operands
        for i, o in call.data.takes_over.items():
            if o == node.data:
                return call.operands[i]
    return None


def _readers_first(nodes: list[Node], memory, writers: dict[Node, Node]) -> list[Node] | None:
    """Order nodes so that arrays in memory are read before steps overwrite them, if possible."""
    numbers = {node: i for i, node in enumerate(nodes)}
    reads: dict[Node, set[Node]] = {}
    """The arrays that each node reads; a large view is computed where it is read."""
    before: list[set[int]] = [{numbers[x] for x in node.operands} for node in nodes]
    for i, node in enumerate(nodes):
        found = reads[node] = set()
        for x in node.operands:
            if x in memory:
                found.add(x)
            elif is_large(x) or x.kind is REDUCE and len(x.operands) > 1:
                found |= reads[x]
        for x in found:
            if x in writers and writers[x] is not node:
                before[numbers[writers[x]]].add(i)
    after: list[list[int]] = [[] for _ in nodes]
    for i, earlier in enumerate(before):
        for j in earlier:
            after[j].append(i)
    left = [len(earlier) for earlier in before]
    ready, order = [i for i, n in enumerate(left) if not n], []
    while ready:
        i = heapq.heappop(ready)
        order.append(nodes[i])
        for j in after[i]:
            left[j] -= 1
            if not left[j]:
                heapq.heappush(ready, j)
    return order if len(order) == len(nodes) else None


class Registers(Writer):
    """Computes nodes whose elements are SSA values."""

    def __init__(self, driver: Any, body: Body):
        super().__init__(driver.f, {})
        self.driver = driver
        self.body = body
        self.arrays: dict[Node, list[Any]] = {}

    def at(self, node, index):
        array = self.arrays.get(node)
        if array is None:
            return super().at(node, index)
        position = ravel(list(index), node.shape)
        return self._element(node, array, position)

    def _element(self, node: Node, array: list[Any], position: Index) -> Any:
        if not position.terms:
            return array[position.constant]
        if len(array) <= 4:
            value = self.integer(position)
            out = array[-1]
            for i in reversed(range(len(array) - 1)):
                here = self.f.compare("eq", value, constant("i64", i))
                out = self.choose(here, array[i], out)
            return out
        return self.load(self._spilled(node, array), unravel(position, node.shape))

    def _spilled(self, node: Node, array: list[Any]) -> Place:
        """Spill an array to the stack, so that elements at computed indices can be loaded."""
        f = self.f
        place = on_stack(f, node.elem, node.shape)
        key = (self, "spilled", node)
        known = f.levels[-1].memo.get(key)
        if known is not None:
            return known
        pointer = Value(place.pointer.name, "ptr", 0, f.depth)
        place = Place(pointer, place.elem, place.shape)
        for i, value in enumerate(array):
            self.store(place, unravel(Index.of(i), node.shape), value)
        f.levels[-1].memo[key] = place
        return place

    def array(self, node: Node) -> list[Any]:
        """All elements of a node."""
        if node in self.arrays:
            return self.arrays[node]
        return [self.at(node, unravel(Index.of(i), node.shape)) for i in range(node.size)]

    def run(self) -> list[Any]:
        """The elements of the graph's outputs; None for those in memory."""
        late = self.body.order is self.body.graph.nodes  # nothing is overwritten: views may wait
        for node in self.body.order or ():
            if node.kind is CALL:
                operands = [None if self._in_memory(x) else self.array(x) for x in node.operands]
                results = node.data.in_registers(self.driver, operands, self, node.operands)
                self.arrays[node] = results
            elif node.kind is PART and node.operands[0].kind is CALL:
                array = self.arrays[node.operands[0]][node.data]
                if array is None:
                    self.places[node] = self.places[_source(node)]  # type: ignore[index]
                else:
                    self.arrays[node] = array
            elif node.kind not in (INPUT, LITERAL) and not (
                is_large(node) or late and _is_view(node)
            ):
                if node.kind is REDUCE and len(node.operands) > 1:
                    continue
                self.arrays[node] = self.array(node)
        return [None if self._in_memory(x) else self.array(x) for x in self.body.graph.outputs]

    def _in_memory(self, node: Node) -> bool:
        return node in self.places and is_large(node)
