"""Control flow: scans, while loops and conditionals as native code.

A body whose values are all small runs in *registers*: each element is an SSA value, carried from
iteration to iteration, and only stacked results are stored. Large arrays that it reads, or updates
a few elements of, remain in memory. Other bodies are plans of kernels that run in each iteration;
their carry is double-buffered.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from namoo.core.jaxpr import JaxprEqn
from namoo.dimensions.sizes import larger
from namoo.engines.native import tuning
from namoo.engines.native.fuse.kinds import operations
from namoo.engines.native.graph.node import (
    CALL,
    LITERAL,
    Node,
    Step,
)
from namoo.engines.native.ir.extents import about, at_least, is_dynamic
from namoo.engines.native.ir.function import Function, Value, constant, storage
from namoo.engines.native.ir.index import Index, unravel
from namoo.engines.native.kernels.element_codegen import Place, Writer, on_stack
from namoo.engines.native.kernels.registers import Body, Registers, is_large
from namoo.engines.native.memory.arena import aligned

if TYPE_CHECKING:
    from namoo.engines.native.kernels.emitter import Emitter


ZERO, ONE = constant("i64", 0), constant("i64", 1)


def _map(fun, array: list[Any]) -> list[Any]:
    """Apply a function to values, and to both parts of complex ones."""
    return [tuple(map(fun, v)) if isinstance(v, tuple) else fun(v) for v in array]


def _carried(f: Function, phis: list[Any], news: list[Any]) -> list[Any]:
    out = []
    for phi, new in zip(phis, news, strict=True):
        if isinstance(phi, tuple):
            out.append(tuple(f.carried(p, v) for p, v in zip(phi, new, strict=True)))
        else:
            out.append(f.carried(phi, new))
    return out


class ControlStep(Step):
    """A step that runs programs."""

    takes_sizes = True
    bodies: list[Body]
    eqn: JaxprEqn | None = None
    """The equation that a loop comes from."""

    def small(self) -> bool:
        return all(b.small() for b in self.bodies)

    def unrolled_operations(self) -> int:
        """About how many operations the step emits in registers."""
        return sum(b.work for b in self.bodies)

    def in_place(self) -> dict[int, int]:
        """In registers: the large operands, each with the result that it becomes in memory."""
        raise NotImplementedError

    def operations(self, operands):
        return max(operations(body.graph) for body in self.bodies)

    def in_registers(self, driver, operands, outer, nodes) -> list[list[Any]]:
        """Return the elements of the results, given those of the operands."""
        raise NotImplementedError

    def emit(self, driver, operands, results, scratch):
        f = driver.f
        if not self.small():
            self.in_memory(driver, [p for _, p in operands], [p for _, p in results], scratch)
            return
        # Memory may hold other values in the next iteration of a loop around this.
        w = Writer(f, {})
        f.epoch += 1

        def here(p):
            return Value(p.name, "ptr", 0, f.depth)

        places = {n: Place(here(p), n.elem, n.shape) for n, p in operands}
        for i, j in self.takes_over.items():
            (n, source), (_, target) = operands[i], results[j]
            driver.copy_unless_aliased(target, source, n.nbytes)
            places[n] = Place(here(target), n.elem, n.shape)
        w.places = places
        arrays: list[Any] = [
            None if is_large(n) else [w.at(n, unravel(Index.of(i), n.shape)) for i in range(n.size)]
            for n, _ in operands
        ]
        outs = self.in_registers(driver, arrays, w, [n for n, _ in operands])
        for (node, p), array in zip(results, outs, strict=True):
            if array is None:
                continue
            place = Place(here(p), node.elem, node.shape)
            for i, value in enumerate(array):
                w.store(place, unravel(Index.of(i), node.shape), value)
        f.epoch += 1

    def in_memory(self, driver, operands, results, scratch) -> None:
        raise NotImplementedError

    @property
    def scratch(self) -> int:  # type: ignore[override]
        return 0 if self.small() else self.memory()

    def memory(self) -> int:
        return functools.reduce(larger, (aligned(b.plan.arena_size) for b in self.bodies))


def _bind(registers: Registers, inputs, arrays, outer: Writer, sources, changes=False) -> None:
    """Bind the inputs of a body to their elements, or to memory if they are large.

    Loads from memory that `changes` in the current loop or branch are not hoisted out of it.
    """
    for node, array, source in zip(inputs, arrays, sources, strict=True):
        if array is not None:
            registers.arrays[node] = array
        else:
            place = outer.places[source]
            if changes:
                pointer = Value(place.pointer.name, "ptr", 0, registers.f.depth)
                place = Place(pointer, place.elem, place.shape)
            registers.places[node] = place


class ScanStep(ControlStep):
    """`length` iterations: constants, the carry and slices of arrays go in; slices come out."""

    def __init__(self, eqn, body: Body, length: int, reverse: bool, consts: int, carry: int):
        self.eqn = eqn
        self.bodies = [body]
        self.body = body
        self.length = length
        self.reverse = reverse
        self.n_consts = consts
        self.n_carry = carry

    def operations(self, operands):
        return about(self.length) * operations(self.body.graph)

    def _is_unrolled(self) -> bool:
        """Whether a body in registers around it has all iterations one after the other."""
        stacks = len(self.body.inputs) + len(self.body.graph.outputs) - self.n_consts
        if is_dynamic(self.length):
            return False
        return self.length <= 8 or stacks > 2 * self.n_carry

    def unrolled_operations(self) -> int:
        if not self._is_unrolled():
            return self.body.work
        # The stacked arrays are in registers, too.
        return tuning.REGISTER_WORK + 1 if self.length > 8 else self.length * self.body.work

    def in_registers(self, driver, operands, outer, nodes):
        f, body = driver.f, self.body
        a, b = self.n_consts, self.n_consts + self.n_carry
        n_in = len(body.inputs)
        if isinstance(outer, Registers) and self._is_unrolled():
            return self._unrolled(driver, operands, outer, nodes)
        f.epoch += 1
        with f.loop(0, self.length) as i, driver.stoppable(self.eqn, self.length):
            driver.work += body.work
            if self.reverse:
                i = f.sub(f.number(self.length - 1), i)
            w = Registers(driver, body)
            _bind(w, body.inputs[:a], operands[:a], outer, nodes[:a])
            _bind(w, body.held, operands[n_in:], outer, nodes[n_in:])
            phis = [array and _map(f.carry, array) for array in operands[a:b]]
            _bind(w, body.inputs[a:b], phis, outer, nodes[a:b], changes=True)
            for node, source in zip(body.inputs[b:], nodes[b:n_in], strict=True):
                place = outer.places[source]
                step = f.mul(i, f.number(node.nbytes))
                pointer = f.offset(place.pointer, step, "i8")
                w.places[node] = Place(pointer, node.elem, node.shape)
            with driver.iteration("scan", i):
                outs = w.run()
            stacked = self.stacked() if outs[self.n_carry :] else ()
            for (node, place), array in zip(stacked, outs[self.n_carry :], strict=True):
                step = f.mul(i, f.number(node.nbytes))
                pointer = f.offset(place, step, "i8")
                for j, value in enumerate(array):
                    w.store(Place(pointer, node.elem, node.shape),
                            unravel(Index.of(j), node.shape), value)  # fmt: skip
            finals = [
                phi and _carried(f, phi, new)
                for phi, new in zip(phis, outs[: self.n_carry], strict=True)
            ]
        f.epoch += 1
        return [*finals, *([None] * (len(body.graph.outputs) - self.n_carry))]

    def _unrolled(self, driver, operands, outer, nodes):
        """Unroll all iterations: inside another body in registers, stacks are registers too."""
        body = self.body
        a, b = self.n_consts, self.n_consts + self.n_carry
        n_in = len(body.inputs)
        carry = operands[a:b]
        turns: list[Any] = [None] * self.length
        for i in reversed(range(self.length)) if self.reverse else range(self.length):
            w = Registers(driver, body)
            _bind(w, body.inputs[:a], operands[:a], outer, nodes[:a])
            _bind(w, body.held, operands[n_in:], outer, nodes[n_in:])
            _bind(w, body.inputs[a:b], carry, outer, nodes[a:b], changes=True)
            xs = zip(body.inputs[b:], operands[b:n_in], nodes[b:n_in], strict=True)
            for node, array, source in xs:
                if array is None:
                    place = outer.places[source]
                    pointer = driver.f.offset(place.pointer, i * node.nbytes, "i8")
                    w.places[node] = Place(pointer, node.elem, node.shape)
                else:
                    w.arrays[node] = array[i * node.size : (i + 1) * node.size]
            with driver.iteration("scan", constant("i64", i)):
                outs = w.run()
            carry, turns[i] = outs[: self.n_carry], outs[self.n_carry :]
        stacks = [
            [v for turn in turns for v in turn[j]]
            for j in range(len(body.graph.outputs) - self.n_carry)
        ]
        return [*carry, *stacks]

    def stacked(self):
        """The nodes that are stacked, and the pointers to their stacks."""
        return zip(self.body.graph.outputs[self.n_carry :], self.targets, strict=True)

    def emit(self, driver, operands, results, scratch):
        if self.length == 0:
            a = self.n_consts
            for (x, source), (_, target) in zip(
                operands[a : a + self.n_carry], results[: self.n_carry], strict=True
            ):
                driver.copy(target, source, x.nbytes)
            return
        f = driver.f
        if at_least(self.length, 1):
            self._emit(driver, operands, results, scratch)
            return
        some = f.compare("gt", f.number(self.length), ZERO)
        with f.branch(some):
            self._emit(driver, operands, results, scratch)
        with f.branch(f.not_(some)):
            for i, (x, target) in enumerate(results[: self.n_carry], self.n_consts):
                driver.copy_unless_aliased(target, operands[i][1], x.nbytes)

    def _emit(self, driver, operands, results, scratch):
        depth = driver.f.depth
        self.targets = [Value(p.name, "ptr", 0, depth) for _, p in results[self.n_carry :]]
        super().emit(driver, operands, results, scratch)

    @functools.cached_property
    def takes_over(self):  # type: ignore[override]
        if self.length == 0:
            return {}
        if self.small():
            return self.in_place()
        return {i: i - self.n_consts for i in self.body.plan.in_place}

    def in_place(self):
        carried = self.body.graph.outputs[: self.n_carry]
        return {self.n_consts + j: j for j, node in enumerate(carried) if is_large(node)}

    def overwrites(self, operand, result):
        return result < self.n_carry and operand == self.n_consts + result

    def _spare(self) -> dict[int, Node]:
        """The carry that needs a second buffer: iterations do not overwrite it in place."""
        carried = enumerate(self.body.graph.outputs[: self.n_carry])
        return {j: n for j, n in carried if self.n_consts + j not in self.body.plan.in_place}

    def memory(self) -> int:
        return super().memory() + sum(aligned(n.nbytes) for n in self._spare().values())

    def in_memory(self, driver, operands, results, scratch):
        f, body, length = driver.f, self.body, self.length
        a, b, n_in = self.n_consts, self.n_consts + self.n_carry, len(self.body.inputs)
        outputs = body.graph.outputs
        spare = carry_buffers(f, scratch, self._spare(), super().memory())
        # The last iteration writes into the result.
        odd = f.compare("ne", f.and_(f.number(length - 1), ONE), ZERO)
        odd = odd if is_dynamic(length) else (length - 1) % 2
        first: list[Value] = []
        for j in range(self.n_carry):
            if j not in spare:
                driver.copy_unless_aliased(results[j], operands[a + j], outputs[j].nbytes)
                first.append(results[j])
            elif isinstance(odd, int) and odd:
                first.append(operands[a + j])
            else:
                aside = self._aside(driver, operands[a + j], results[j], spare[j], outputs[j])
                first.append(aside if odd == 0 else f.select(odd, operands[a + j], aside))
        with f.loop(0, length) as i, driver.stoppable(self.eqn, length):
            now, following = [], []
            for j in range(self.n_carry):
                if j not in spare:
                    now.append(results[j])
                    following.append(results[j])
                    continue
                start, other = spare[j], results[j]
                if isinstance(odd, Value):
                    start, other = f.select(odd, start, other), f.select(odd, other, start)
                elif not odd:
                    start, other = other, start
                now.append(f.carry(first[j]))
                target = f.carry(start)
                f.carried(now[-1], target)
                at_start = f.compare("eq", target, start)
                f.carried(target, f.select(at_start, other, start))
                following.append(target)
            at = f.sub(f.number(length - 1), i) if self.reverse else i

            def moved(pointer, node, at=at):
                return f.offset(pointer, f.mul(at, f.number(node.nbytes)), "i8")

            xs = [moved(p, n) for p, n in zip(operands[b:n_in], body.inputs[b:], strict=True)]
            ys = [
                moved(p, n)
                for p, n in zip(results[self.n_carry :], outputs[self.n_carry :], strict=True)
            ]
            inputs = [*operands[:a], *now, *xs]
            with driver.iteration("scan", at):
                driver.run(body.plan, inputs, operands[n_in:], [*following, *ys], scratch)

    @staticmethod
    def _aside(driver, source: Value, target: Value, spare: Value, node: Node) -> Value:
        """The pointer that the first iteration reads: to a copy, if input and output alias."""
        f = driver.f
        there = f.emit_here("i1", 0, f"icmp eq ptr {target.name}, {source.name}")
        with f.branch(there):
            driver.copy(spare, source, node.nbytes)
        return f.select(there, spare, source)


def carry_buffers(
    f: Function, scratch: Value, nodes: dict[int, Node], offset: int
) -> dict[int, Value]:
    """A buffer for each node, after the arena of the body."""
    out = {}
    for j, node in nodes.items():
        out[j] = f.offset(scratch, offset, "i8")
        offset += aligned(node.nbytes)
    return out


class WhileStep(ControlStep):
    """Iterations of a body while a condition holds."""

    def __init__(self, eqn, condition: Body, body: Body, cond_consts: int, body_consts: int):
        self.eqn = eqn
        self.bodies = [condition, body]
        self.condition, self.body = condition, body
        self.n_cond, self.n_body = cond_consts, body_consts

    def operations(self, operands):
        return sum(operations(body.graph) for body in self.bodies)

    def _cut(self, items):
        a, b = self.n_cond, self.n_cond + self.n_body
        c = b + len(self.body.inputs) - self.n_body
        d = c + len(self.condition.graph.consts)
        return items[:a], items[a:b], items[b:c], items[c:d], items[d:]

    def in_registers(self, driver, operands, outer, nodes):
        f = driver.f
        cc, bc, init, cond_arrays, body_arrays = self._cut(operands)
        cn, bn, carried, cond_nodes, body_nodes = self._cut(nodes)

        def written(body, consts, sources, carry, arrays, array_nodes):
            w = Registers(driver, body)
            n = len(consts)
            _bind(w, body.inputs[:n], consts, outer, sources)
            _bind(w, body.held, arrays, outer, array_nodes)
            _bind(w, body.inputs[n:], carry, outer, carried, changes=True)
            return w.run()

        f.epoch += 1
        with f.repeat() as number, driver.stoppable(self.eqn):
            driver.work += self.unrolled_operations()
            phis = [array and _map(f.carry, array) for array in init]
            turn = constant("i64", 0)
            if self.body.counted:
                turn = f.carry(turn)
                f.carried(turn, f.add(turn, constant("i64", 1)))
            with driver.iteration("while", turn):
                ((go,),) = written(self.condition, cc, cn, phis, cond_arrays, cond_nodes)
                f.proceed_while(number, go)
                news = written(self.body, bc, bn, phis, body_arrays, body_nodes)
            for phi, new in zip(phis, news, strict=True):
                if phi:
                    _carried(f, phi, new)
        f.epoch += 1
        depth = f.depth
        return [phi and _map(lambda v: Value(v.name, v.elem, v.lanes, depth), phi) for phi in phis]

    @functools.cached_property
    def takes_over(self):  # type: ignore[override]
        if self.small():
            return self.in_place()
        first = self.n_cond + self.n_body
        return {first + j: j for j in range(len(self.body.graph.outputs))}

    def in_place(self):
        first, carried = self.n_cond + self.n_body, self.body.graph.outputs
        return {first + j: j for j, node in enumerate(carried) if is_large(node)}

    def overwrites(self, operand, result):
        return operand == self.n_cond + self.n_body + result

    def _spare(self) -> dict[int, Node]:
        """The carry that needs a second buffer: iterations do not overwrite it in place."""
        carried = enumerate(self.body.graph.outputs)
        return {j: n for j, n in carried if self.n_body + j not in self.body.plan.in_place}

    def memory(self) -> int:
        spare = sum(aligned(n.nbytes) for n in self._spare().values())
        return super().memory() + spare + tuning.ALIGNMENT

    def in_memory(self, driver, operands, results, scratch):
        f = driver.f
        cc, bc, init, cond_arrays, body_arrays = self._cut(operands)
        outputs = self.body.graph.outputs
        base = super().memory()
        flag = f.offset(scratch, base, "i8")
        one = carry_buffers(f, scratch, self._spare(), base + tuning.ALIGNMENT)
        for j, node in enumerate(outputs):
            driver.copy_unless_aliased(results[j], init[j], node.nbytes)
        with f.repeat() as number, driver.stoppable(self.eqn):
            now, following = [], []
            for j in range(len(outputs)):
                if j not in one:
                    now.append(results[j])
                    following.append(results[j])
                    continue
                now.append(f.carry(results[j]))
                following.append(f.carry(one[j]))
                f.carried(now[-1], following[-1])
                f.carried(following[-1], now[-1])
            turn = constant("i64", 0)
            if self.body.counted:
                turn = f.carry(turn)
                f.carried(turn, f.add(turn, constant("i64", 1)))
            with driver.iteration("while", turn):
                driver.run(self.condition.plan, [*cc, *now], cond_arrays, [flag], scratch)
                byte = f.emit_here("u8", 0, f"load i8, ptr {flag.name}")
                f.proceed_while(number, f.compare("ne", byte, constant("u8", 0)))
                driver.run(self.body.plan, [*bc, *now], body_arrays, following, scratch)
        for j, node in enumerate(outputs):
            if now[j] is not results[j]:
                last = Value(now[j].name, "ptr", 0, f.depth)
                different = f.compare("ne", f.bitcast_pointer(last), f.bitcast_pointer(results[j]))
                with f.branch(different):
                    driver.copy(results[j], last, node.nbytes)


class CondStep(ControlStep):
    """One of several programs, by number."""

    def __init__(self, bodies: list[Body], index_elem: str):
        self.bodies = bodies
        self.index_elem = index_elem
        origins = [body.origins() for body in bodies]
        self.replaced = {
            i: j
            for j, (i, *others) in enumerate(zip(*origins, strict=True))
            if i is not None and all(i == other for other in others)
        }
        """For each output, the input that every branch transforms into it in place."""
        for body in bodies:
            body.graph.donated = self.replaced

    @functools.cached_property
    def takes_over(self):  # type: ignore[override]
        if self.small():
            return self.in_place()
        in_place = set.intersection(*(body.plan.in_place for body in self.bodies))
        return {1 + i: self.replaced[i] for i in in_place}

    def in_place(self):
        outputs = self.bodies[0].graph.outputs
        return {1 + i: j for i, j in self.replaced.items() if is_large(outputs[j])}

    def _held(self, items, number):
        """The operands that hold the constant arrays of a branch."""
        start = 1 + len(self.bodies[0].inputs)
        for body in self.bodies[:number]:
            start += len(body.graph.consts)
        return items[start : start + len(self.bodies[number].graph.consts)]

    def _conditions(self, f, index: Value) -> list[Value]:
        if index.elem == "i1":
            return [f.not_(index), index]
        last = len(self.bodies) - 1
        index = f.convert(index, "i64")
        conditions = [f.compare("eq", index, constant("i64", i)) for i in range(last + 1)]
        conditions[0] = f.compare("le", index, constant("i64", 0))
        conditions[last] = f.compare("ge", index, constant("i64", last))
        return conditions

    def in_registers(self, driver, operands, outer, nodes):
        f = driver.f
        n = len(self.bodies[0].inputs)
        ((index,), *_) = operands
        outputs = self.bodies[0].graph.outputs
        places = [None if is_large(x) else on_stack(f, x.elem, x.shape) for x in outputs]
        for number, (body, holds) in enumerate(
            zip(self.bodies, self._conditions(f, index), strict=True)
        ):
            with f.branch(holds):
                w = Registers(driver, body)
                _bind(w, body.inputs, operands[1 : n + 1], outer, nodes[1 : n + 1], changes=True)
                _bind(w, body.held, self._held(operands, number), outer, self._held(nodes, number))
                for place, array in zip(places, w.run(), strict=True):
                    if place is not None:
                        for i, value in enumerate(array):
                            w.store(place, unravel(Index.of(i), place.shape), value)
        f.epoch += 1
        out: list[Any] = []
        for place in places:
            if place is None:
                out.append(None)
                continue
            here = Place(Value(place.pointer.name, "ptr", 0, f.depth), place.elem, place.shape)
            count = math.prod(place.shape)
            out.append([outer.load(here, unravel(Index.of(i), place.shape)) for i in range(count)])
        return out

    def in_memory(self, driver, operands, results, scratch):
        f = driver.f
        n = len(self.bodies[0].inputs)
        elem = storage(self.index_elem)
        loaded = f.emit_here(
            "u8" if self.index_elem == "i1" else self.index_elem,
            0,
            f"load {elem}, ptr {operands[0].name}",
        )
        index = f.convert(loaded, "i1") if self.index_elem == "i1" else loaded
        for number, (body, holds) in enumerate(
            zip(self.bodies, self._conditions(f, index), strict=True)
        ):
            with f.branch(holds):
                inputs = [*operands[1 : n + 1]]
                for i in body.plan.in_place:
                    target = results[self.replaced[i]]
                    driver.copy_unless_aliased(target, inputs[i], body.inputs[i].nbytes)
                    inputs[i] = target
                driver.run(body.plan, inputs, self._held(operands, number), results, scratch)


def scan(emit: Emitter, operands, jaxpr, length, reverse, num_consts, num_carry) -> list[Node]:
    """A scan as a step."""
    if any(not x.elem for x in operands):
        raise emit.unsupported()
    body = Body(jaxpr, emit, operands[:num_consts])
    _check(body, emit)
    body.donate(range(num_consts, num_consts + num_carry))
    step = ScanStep(emit.eqn, body, length, reverse, num_consts, num_carry)
    return emit.call(step, _apart(emit, step, [*operands, *body.consts]), emit.avals)


def while_loop(emit: Emitter, operands, cond_jaxpr, body_jaxpr, n_cond, n_body) -> list[Node]:
    """A while loop as a step."""
    condition = Body(cond_jaxpr, emit, operands[:n_cond])
    body = Body(body_jaxpr, emit, operands[n_cond : n_cond + n_body])
    _check(condition, emit)
    _check(body, emit)
    body.donate(range(n_body, len(body.inputs)))
    step = WhileStep(emit.eqn, condition, body, n_cond, n_body)
    arrays = [*operands, *condition.consts, *body.consts]
    return emit.call(step, _apart(emit, step, arrays), emit.avals)


def cond(emit: Emitter, index: Node, operands, branches) -> list[Node]:
    """A conditional as a step; with a literal index, the branch is inlined."""
    if index.kind is LITERAL:
        number = min(max(int(index.data), 0), len(branches) - 1)
        return emit.inline(branches[number], operands)
    bodies = [Body(b, emit, operands) for b in branches]
    for body in bodies:
        _check(body, emit)
    step = CondStep(bodies, index.elem)
    consts = [c for body in bodies for c in body.consts]
    return emit.call(step, _apart(emit, step, [index, *operands, *consts]), emit.avals)


def _apart(emit: Emitter, step: ControlStep, operands: list[Node]) -> list[Node]:
    """The operands of a step, with copies of arrays that it changes and also reads as another."""
    if step.small():
        for i in step.takes_over:
            if operands.count(operands[i]) > 1:
                operands[i] = emit.graph.stored(operands[i])
    return operands


def _check(body: Body, emit: Emitter) -> None:
    """Raise if the body has values that native code cannot hold: the host evaluates the step."""
    for node in body.graph.nodes:
        if node.kind is not CALL and not node.elem:
            raise emit.unsupported()
