"""A report as text for a terminal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from namoo._base import units
from namoo.inspect import source

if TYPE_CHECKING:
    from namoo.inspect.report import Inspection

_CODE = 48
_HEAD = f"{'':>{_CODE + 6}} {'forward':>8} {'backward':>8} {'FLOPs':>7} {'bytes':>7} {'memory':>7}"


def text(report: Inspection) -> str:
    """A table of the source with what each line costs, then the kernels."""
    out = [headline(report), "", _HEAD + "  kernels"]
    for file, rows in source.listings(report):
        out.append(_name(file))
        for row in rows:
            if row is None:
                out.append(f"{'⋮':>5}")
                continue
            number, code, line = row
            start = f"{number:>5} {_cut(code, _CODE):<{_CODE}}"
            if line is None:
                out.append(start.rstrip())
                continue
            out.append(f"{start} {_costs(line)}".rstrip())
            for label, backward in (("", False), ("backward: ", True)):
                eqns = [t for b, t in source.equations(line) if b is backward]
                if eqns:
                    out.append(f"{'':>6}{'':>4}└ {label}{_cut('; '.join(eqns), 96)}")
    for line in report.lines:
        if not line.file:
            out.append(f"{'':>5} {'(no line)':<{_CODE}} {_costs(line)}".rstrip())
    return "\n".join([*out, "", *_kernels(report)])


def headline(report: Inspection) -> str:
    """The total cost of a call, in one sentence."""
    peak = units.size(report.memory.peak_memory_in_bytes) or "0 B"
    start = f"{report.name}: {len(report.kernels)} kernels, {peak} of memory"
    if report.wall is None or report.covered is None:
        return f"{start}; not run, because an argument is a ShapeDtypeStruct"
    several = "s" * (report.threads != 1)
    return (
        f"{start}, {units.seconds(report.wall)} a call (fastest of {report.rounds}, "
        f"{report.threads} thread{several}); the lines are {report.covered:.0%} of a call with "
        f"timers, {units.seconds(report.timed_wall or 0.0)}"
    )


def _costs(line) -> str:
    total = line.total
    kernels = " ".join(map(str, line.kernels))
    return (
        f"{units.seconds(line.forward.seconds):>8} {units.seconds(line.backward.seconds):>8} "
        f"{units.count(total.flops):>7} {units.size(total.bytes):>7} {units.size(line.alive):>7}"
        f"  {_cut(kernels, 24)}"
    )


def _kernels(report: Inspection) -> list[str]:
    out = [f"{'kernel':>7}  {'time':>8} {'runs':>6} {'FLOPs':>7} {'bytes':>7}  what it is"]
    for kernel in report.kernels:
        lines = " ".join(f"{_name(file)}:{number}" for file, number in kernel.lines)
        name = f" {kernel.name}" if kernel.name else ""
        what = f"{kernel.kind}{name} over {list(kernel.space)}" + (f" at {lines}" if lines else "")
        out.append(
            f"{kernel.number:>7}  {units.seconds(kernel.seconds):>8} {kernel.runs or '':>6} "
            f"{units.count(kernel.flops):>7} {units.size(kernel.bytes):>7}  {_cut(what, 80)}"
        )
    return out


def _name(file: str) -> str:
    return os.path.basename(file)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
