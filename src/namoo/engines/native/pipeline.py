"""The compiler: a list of passes, from a program to machine code in memory.

| pass       | result       | file                | what it does                          |
|------------|--------------|---------------------|---------------------------------------|
| `build`    | `Graph`      | `graph/builder.py`  | equations become interned nodes       |
| `simplify` | `Graph`      | `graph/simplify.py` | rewrites, by kind of node             |
| `fuse`     | `Fusion`     | `fuse/groups.py`    | which values share a loop nest        |
| `schedule` | `Schedule`   | `fuse/schedule.py`  | the order of the kernels              |
| `allocate` | `Plan`       | `memory/arena.py`   | buffers                               |
| `emit`     | `Module`     | `emit/driver.py`    | LLVM IR                               |
| `optimise` | `ObjectCode` | `link/code.py`      | LLVM's passes, and machine code       |
| `link`     | `Code`       | `link/code.py`      | code in memory, with its imports      |

Each pass is a function of the result of the one before it. `verify` checks the results in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines.native.emit.driver import emit
from namoo.engines.native.emit.module import Module
from namoo.engines.native.fuse.groups import fuse
from namoo.engines.native.fuse.schedule import schedule
from namoo.engines.native.graph.node import Graph
from namoo.engines.native.graph.simplify import simplify
from namoo.engines.native.ir.extents import variables
from namoo.engines.native.kernels.emitter import Emitter
from namoo.engines.native.link import code
from namoo.engines.native.link.code import Code, ObjectCode
from namoo.engines.native.memory.arena import allocate
from namoo.engines.native.verify import run_passes


@dataclass
class Source:
    """What is compiled.

    Attributes:
        closed: the program.
        strict: whether operands are checked while it runs.
        emitter: what builds the graph.
    """

    closed: ClosedJaxpr
    strict: bool = False
    emitter: type[Emitter] = Emitter

    def text(self) -> str:
        return str(self.closed)


def build(source: Source) -> Graph:
    """Build the graph of a program, by the `native` rules of its primitives."""
    emitter = source.emitter(source.strict)
    emitter.graph.variables = variables(a.shape for a in source.closed.in_avals)
    inputs = [emitter.input(a) for a in source.closed.in_avals]
    emitter.graph.outputs = emitter.inline(source.closed, inputs)
    return emitter.graph


def optimise(module: Module) -> ObjectCode:
    """Let LLVM optimise a module and generate machine code, unless that is on disk."""
    return code.object_code(module.text(), module.parts)


def link(objects: ObjectCode) -> Code:
    """Load machine code, and resolve what it calls."""
    return Code(objects)


PASSES: tuple[Callable[[Any], Any], ...] = (
    build, simplify, fuse, schedule, allocate, emit, optimise, link,
)  # fmt: skip
NAMES = tuple(step.__name__ for step in PASSES)


def result_of(name: str, source: Source) -> Any:
    """The result of the pass with a name."""
    return run_passes(PASSES[: NAMES.index(name) + 1], source)


class Inspection:
    """The results of the passes on one program, computed on demand and kept."""

    def __init__(self, source: Source):
        self.results: list[Any] = [source]

    def after(self, name: str) -> Any:
        """The result of the pass with a name."""
        wanted = NAMES.index(name) + 1
        for step in PASSES[len(self.results) - 1 : wanted]:
            self.results.append(run_passes([step], self.results[-1]))
        return self.results[wanted]
