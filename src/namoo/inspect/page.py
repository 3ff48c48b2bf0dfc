"""A report as HTML: a complete page, or a fragment for a notebook."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from namoo._base import html, units
from namoo._base.html import escape
from namoo.inspect import source
from namoo.inspect.text import headline

if TYPE_CHECKING:
    from namoo.inspect.collect import Line
    from namoo.inspect.report import Inspection

_HEAD = (
    "<tr><th></th><th class='left'>source</th><th class='left'>share</th><th>forward</th>"
    "<th>backward</th><th>FLOPs</th><th>bytes</th><th>memory</th><th class='left'>kernels</th></tr>"
)
_STYLE = """
.namoo tr.cost>td{vertical-align:top}
.namoo tr.cost:hover>td{background:var(--soft)}
.namoo td.number{color:var(--quiet)}
.namoo td.share{min-width:110px;text-align:left}
.namoo h2{font-size:14px;margin:1.4em 0 .4em}
.namoo .equations{color:var(--quiet);white-space:pre-wrap}
.namoo .scroll{overflow-x:auto}
.namoo td summary{list-style:none}
.namoo td summary::before{content:"▸";display:inline-block;width:14px;color:var(--quiet)}
.namoo td details[open]>summary::before{content:"▾"}
.namoo td>code.plain{padding-left:14px}
"""


def page(report: Inspection) -> str:
    """The report as a page."""
    head = f"<h1 style='font-size:18px;margin:0 0 .3em'>{escape(report.name)}</h1>"
    return html.page(f"{report.name}: what each line costs", head + _body(report), _STYLE)


def fragment(report: Inspection) -> str:
    """The report for a notebook."""
    return html.fragment(f"<style>{_STYLE}</style>{_body(report)}")


def _body(report: Inspection) -> str:
    most = max((line.total.seconds for line in report.lines), default=0.0)
    rows = []
    for file, listing in source.listings(report):
        rows.append(
            f"<tr><td></td><td class='left quiet' colspan=8>{escape(os.path.basename(file))}</td>"
            "</tr>"
        )
        for row in listing:
            if row is None:
                rows.append("<tr><td class='number'>⋮</td><td colspan=8></td></tr>")
            else:
                rows.append(_row(*row, most))
    rows += [_row("", "(no line)", line, most) for line in report.lines if not line.file]
    legend = (
        "<p class='quiet'><span class='bar one' style='width:9px'></span> forward "
        "<span class='bar two' style='width:9px'></span> backward. Memory counts the arrays of a "
        "line that are alive when memory use peaks. Click on a line to see its operations.</p>"
    )
    return (
        f"<p>{escape(headline(report))}.</p>{legend}<div class='scroll'><table><thead>{_HEAD}"
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"<h2>Kernels</h2><div class='scroll'>{_kernels(report)}</div>"
    )


def _row(number: object, code: str, line: Line | None, most: float) -> str:
    text = f"<code>{escape(code)}</code>"
    plain = f"<code class='plain'>{escape(code)}</code>"
    if line is None:
        return f"<tr><td class='number'>{number}</td><td class='left'>{plain}</td></tr>"
    eqns = "\n".join(
        f"{'backward  ' if eqn.backward else 'forward   '}{eqn}" for eqn in line.equations
    )
    text = html.folded(text, f"<pre class='equations'>{escape(eqns)}</pre>") if eqns else plain
    bars = "".join(
        f"<span class='bar {kind}' style='width:{100 * cost.seconds / most:.1f}px'></span>"
        for kind, cost in (("one", line.forward), ("two", line.backward))
        if most and cost.seconds
    )
    total = line.total
    cells = [
        units.seconds(line.forward.seconds),
        units.seconds(line.backward.seconds),
        units.count(total.flops),
        units.size(total.bytes),
        units.size(line.alive),
    ]
    links = " ".join(f"<a href='#kernel-{k}'>{k}</a>" for k in line.kernels)
    return (
        f"<tr class='cost'><td class='number'>{number}</td><td class='left'>{text}</td>"
        f"<td class='share'>{bars}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}"
        f"<td class='left'>{links}</td></tr>"
    )


def _kernels(report: Inspection) -> str:
    rows = []
    for kernel in report.kernels:
        lines = " ".join(f"{os.path.basename(file)}:{number}" for file, number in kernel.lines)
        rows.append(
            [
                f"<span id='kernel-{kernel.number}'>{kernel.number}</span>",
                escape(kernel.kind),
                f"<code>{escape(kernel.name)}</code>",
                escape(list(kernel.space)),
                escape(lines),
                units.seconds(kernel.seconds),
                str(kernel.runs or ""),
                units.count(kernel.flops),
                units.size(kernel.bytes),
            ]
        )
    head = ["", "kind", "function", "loops", "lines", "time", "runs", "FLOPs", "bytes"]
    return html.table(head, rows, left=5)
