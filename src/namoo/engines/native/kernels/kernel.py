"""Kernels: what one computes, and its code."""

from __future__ import annotations

from typing import Any

from namoo.engines.native.fuse.kinds import FusionGroup
from namoo.engines.native.graph.node import Node


class KernelSpec:
    """What a kernel computes.

    Attributes:
        roots: the values, in an order in which they can be computed.
        stored: the roots that are written to memory.
        inputs: the nodes that are read from memory.
        space: the sizes of the loops, the first `split` of which are outer ones.
        key: equal keys mean equal code.
        variables: the dimension variables of the program, whose sizes it gets after its arrays.
    """

    __slots__ = ("inputs", "key", "roots", "space", "split", "stored", "variables")

    def __init__(self, group: FusionGroup):
        self.roots: list[Node] = group.roots
        self.stored: list[Node] = group.stored
        self.inputs: list[Node] = list(group.inputs)
        self.space: tuple[int, ...] = group.space
        self.split: int = group.split
        self.variables: tuple[str, ...] = ()
        stored = [group.numbering[n] for n in group.stored]
        self.key: Any = (group.nest, *group.signature, "stored", *stored)


class Kernel:
    """The code of a kernel: a function of a table of pointers and a range of its `units`.

    Attributes:
        name: the name of the function.
        text: its LLVM IR.
        declarations: the functions that it calls, by name.
        units: the number of independent pieces of work.
        work: about how many operations all units take together.
    """

    __slots__ = ("declarations", "name", "text", "units", "work")

    def __init__(self, name: str, text: str, declarations: dict[str, str], units: int, work: int):
        self.name = name
        self.text = text
        self.declarations = declarations
        self.units = units
        self.work = work
