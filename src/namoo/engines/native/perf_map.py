"""Names of kernels for Linux's `perf`, which reads them from a file for each process.

With the setting `perf_map`, or `NAMOO_PERF_MAP=1` in the environment, `perf report` shows
`loss k3 loop model.py:12` where it would show an address.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from namoo.engines.native.attribution import kind_of, lines_of
from namoo.engines.native.emit.timed import emit_timed

if TYPE_CHECKING:
    from namoo.engines.native.engine import Program

# `perf` looks in this folder, whatever the environment says.
_FOLDER = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()


def file() -> str:
    """The file that `perf` reads for this process."""
    return os.path.join(_FOLDER, f"perf-{os.getpid()}.map")


def symbols(program: Program) -> list[tuple[int, int, str]]:
    """The address, size and name of each function of a program."""
    plan = program.sourced_plan()
    titles: dict[str, str] = {}
    for timer in emit_timed(plan)[1]:
        if timer.kernel is not None:
            title = f"{kind_of(timer.group)} {lines_of(timer.plan, timer.group)}".strip()
            titles.setdefault(timer.kernel.name, title)
    found = []
    whole = program.closed.jaxpr.name or "program"
    for library in program.made.code.libraries:
        sizes = getattr(library, "sizes", {})  # LLVM's own linker does not say
        for name, at in library.addresses.items():
            found.append((at, sizes.get(name, 1), f"{whole} {name} {titles.get(name, '')}".strip()))
    return found


def write(program: Program) -> None:
    """Add the functions of a program to the file."""
    with open(file(), "a", encoding="utf-8") as out:
        for at, size, name in symbols(program):
            out.write(f"{at:x} {size:x} {name}\n")
