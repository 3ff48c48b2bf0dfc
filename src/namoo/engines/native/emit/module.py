"""The result of the pass `emit`: the functions of one program, as LLVM IR."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from namoo.core.jaxpr import JaxprEqn
from namoo.engines.native import tuning
from namoo.engines.native.ir.function import Value, constant
from namoo.engines.native.kernels.kernel import Kernel
from namoo.engines.native.memory.arena import Plan


class Part(NamedTuple):
    """A piece of a module that is compiled separately, and the functions that other pieces call."""

    names: list[str]
    text: str


@dataclass
class Module:
    """The functions of one program. Equal kernels are one function.

    Attributes:
        plan: the program that it runs.
        kernels: the kernels, by what they compute.
        functions: the text of the other functions, the entry among them.
        declarations: the functions that it calls, by name.
        globals: constants in memory, by name.
        lists: constants that only the other functions read.
        host: equations that Python evaluates.
        around: for each of them None; or the loops around it, if it only runs to raise an error.
        loops: equations whose loops a signal can stop; loop i then returns i + 2.
    """

    plan: Plan
    kernels: dict[Any, Kernel] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)
    lists: list[str] = field(default_factory=list)
    host: list[JaxprEqn] = field(default_factory=list)
    around: list[list[str] | None] = field(default_factory=list)
    loops: list[JaxprEqn | None] = field(default_factory=list)

    def kernel(self, key: Any, emit: Callable[[str], Kernel]) -> Kernel:
        """Return the kernel with a key; if there is none, `emit` makes it under a new name."""
        kernel = self.kernels.get(key)
        if kernel is None:
            kernel = self.kernels[key] = emit(f"k{len(self.kernels)}")
        return kernel

    def text(self) -> str:
        """The module as LLVM IR."""
        return self._part(list(self.kernels.values()), [*self.lists, *self.functions])

    def parts(self, count: int) -> list[Part]:
        """Split the module into pieces of about equal size; the last one calls the others."""
        rows: list[list[Kernel]] = [[] for _ in range(count)]
        sizes = [0] * (count - 1) + [sum(map(len, self.functions))]
        for kernel in sorted(self.kernels.values(), key=lambda k: -len(k.text)):
            least = sizes.index(min(sizes))
            rows[least].append(kernel)
            sizes[least] += len(kernel.text)
        *others, last = rows
        out = [Part([k.name for k in row], self._part(row, [])) for row in others if row]
        elsewhere = [f"declare void @{k.name}(ptr, i64, i64)" for row in others for k in row]
        return [*out, Part(["entry"], self._part(last, [*elsewhere, *self.lists, *self.functions]))]

    def _part(self, kernels: list[Kernel], others: list[str]) -> str:
        declarations = dict(self.declarations)
        for kernel in kernels:
            declarations |= kernel.declarations
        # LLVM is faster if functions with a single caller are inlined.
        uses = Counter(name for kernel in kernels for name in kernel.declarations)
        for name, text in declarations.items():
            if uses[name] == 1:
                declarations[name] = _inlined(text)
        texts = _with_callers(kernels, "\n".join(others))
        return "\n\n".join([*self.globals.values(), *declarations.values(), *texts, *others])

    def number(self, value: int) -> Value:
        """A 32-bit constant in memory, as Fortran wants its arguments."""
        name = f"@n{value}" if value >= 0 else f"@m{-value}"
        self.globals[name] = f"{name} = private unnamed_addr constant i32 {value}"
        return Value(name, "ptr")

    def letter(self, value: str) -> Value:
        """A character in memory."""
        name = f"@l{value}"
        self.globals[name] = f"{name} = private unnamed_addr constant i8 {ord(value)}"
        return Value(name, "ptr")

    def real(self, elem: str, value: float) -> Value:
        """A floating-point constant in memory; a complex one has a zero after it."""
        one = constant("f64" if elem in ("f64", "c128") else "f32", value)
        zero = constant(one.elem, 0.0)
        name = f"@r{elem}{int(value)}"
        kind = one.type
        self.globals[name] = (
            f"{name} = private unnamed_addr constant [2 x {kind}] [{one!r}, {zero!r}]"
        )
        return Value(name, "ptr")


_LARGE_ARRAY = re.compile(r"alloca \[\d{5,} x")


def _with_callers(kernels: list[Kernel], callers: str) -> Iterator[str]:
    """The texts of kernels; one with a single caller is to be inlined into it.

    LLVM then compiles one function instead of two, and knows which units of the kernel run.  That
    takes a fifth to a half less time for programs of a few kernels.  In a loop, and with large
    arrays on the stack, a kernel stays a function.
    """
    few = len(kernels) <= tuning.INLINED_KERNELS and " phi " not in callers
    for kernel in kernels:
        uses = re.findall(rf"(call void )?@{kernel.name}\b", callers) if few else []
        if uses == ["call void "] and not _LARGE_ARRAY.search(kernel.text):
            head, rest = kernel.text.split("{", 1)
            head = head.replace("define", "define internal", 1)
            yield f"{head}alwaysinline {{{rest}"
        else:
            yield kernel.text


def _inlined(text: str) -> str:
    """The text of a function that kernels share, to be inlined unless it forbids that."""
    return text.replace(") nounwind {", ") alwaysinline nounwind {", 1)
