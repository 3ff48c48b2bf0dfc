"""HTML for notebooks and reports: one style, light and dark, and nothing from a network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_LIGHT = (
    "--ink:#1b1f24;--quiet:#626c77;--line:#d8dee4;--paper:#ffffff;--soft:#f4f6f8;"
    "--one:#2463b4;--two:#c2570c;--good:#1a7f37;--bad:#b42318"
)
_DARK = (
    "--ink:#e3e7ec;--quiet:#97a1ac;--line:#39414a;--paper:#15181c;--soft:#1f242a;"
    "--one:#6aa5f2;--two:#f0934a;--good:#57ab5a;--bad:#f47067"
)
# Notebooks have themes of their own, which need not be that of the system.
STYLE = f"""
.namoo{{{_LIGHT};color:var(--ink);background:var(--paper);font:13px/1.45 system-ui,sans-serif}}
@media (prefers-color-scheme:dark){{.namoo{{{_DARK}}}}}
[data-jp-theme-light=true] .namoo,.vscode-light .namoo{{{_LIGHT}}}
[data-jp-theme-light=false] .namoo,.vscode-dark .namoo{{{_DARK}}}
.namoo table{{border-collapse:collapse;font-variant-numeric:tabular-nums;color:inherit}}
.namoo th,.namoo td{{padding:2px 8px;text-align:right;border:0;white-space:nowrap;background:none}}
.namoo th{{color:var(--quiet);font-weight:500;border-bottom:1px solid var(--line)}}
.namoo .left{{text-align:left}}
.namoo .quiet{{color:var(--quiet)}}
.namoo a{{color:var(--one)}}
.namoo code,.namoo pre,.namoo .code{{font:12px/1.45 ui-monospace,Menlo,Consolas,monospace;
color:inherit;background:none;white-space:pre;margin:0;padding:0}}
.namoo summary{{cursor:pointer}}
.namoo details>div{{margin-left:1.2em}}
.namoo .bar{{display:inline-block;height:9px;vertical-align:baseline;border-radius:1px}}
.namoo .one{{background:var(--one)}}
.namoo .two{{background:var(--two)}}
.namoo svg text{{fill:var(--quiet);font:11px system-ui,sans-serif}}
""".strip()


def escape(text: object) -> str:
    """Text for HTML.

    Example:
        >>> escape("a < b")
        'a &lt; b'
    """
    return html.escape(str(text))


def fragment(body: str) -> str:
    """A piece of HTML with the style, for a notebook."""
    return f'<div class="namoo"><style>{STYLE}</style>{body}</div>'


def page(title: str, body: str, style: str = "", script: str = "") -> str:
    """A whole page that needs no other file."""
    end = f"<script>{script}</script>" if script else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>'
        f"<style>{STYLE}\nbody{{margin:0;padding:1.5em 2em;min-height:100vh;"
        f"box-sizing:border-box}}\n{style}</style></head>"
        f'<body class="namoo">{body}{end}</body></html>\n'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table of cells that are HTML already; the first `left` columns are aligned to the left."""

    def row(cells: Sequence[str], tag: str) -> str:
        kinds = ['class="left"' if i < left else "" for i in range(len(cells))]
        return "".join(
            f"<{tag} {kind}>{cell}</{tag}>" for cell, kind in zip(cells, kinds, strict=True)
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><thead><tr>{row(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def folded(head: str, body: str, is_open: bool = False) -> str:
    """HTML that is shown on a click on its head."""
    return (
        f"<details{' open' if is_open else ''}><summary>{head}</summary><div>{body}</div></details>"
    )
