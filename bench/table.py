"""Print the figures as tables: times, ratios, goals, and whether the goals are met."""

from collections.abc import Iterable

from row import Row
from rows import ROWS, SECTIONS

OTHERS = {"jax": "JAX", "torch": "PyTorch", "numpy": "NumPy"}
ABSENT = "–"
# The rows that the READMEs show; docs/benchmarks.md has all of them.
TELLING = (
    "MLP step, AdamW, batch 512",
    "GPT step, 4 layers, AdamW",
    "CNN step, 28x28, batch 64",
    "Lorenz, 500 steps of RK4, gradient",
    "per-example gradients, MLP, batch 128",
    "softmax (4096, 1024)",
    "matmul 1024",
    "first call, GPT of 12 layers",
    "process to first MLP step, cold cache",
    "eager MLP step, SGD, batch 32",
)


def quantity(row: Row, value: float | None) -> str:
    """Format a time or a size with three significant digits and its unit."""
    if value is None:
        return ABSENT
    if row.measure == "peak":
        return f"{value / 1e6:.0f} MB"
    unit, scale = ("s", 1.0) if value >= 1 else ("ms", 1e-3) if value >= 1e-3 else ("µs", 1e-6)
    number = f"{value / scale:.0f}" if value >= 100 * scale else f"{value / scale:.3g}"
    return f"{number} {unit}"


def ratio(best: dict[str, float], other: str) -> float | None:
    """Return how many times as fast as another framework namoo is."""
    if "namoo" not in best or other not in best:
        return None
    return best[other] / best["namoo"]


def times(value: float | None) -> str:
    """Format a ratio."""
    return ABSENT if value is None else f"{value:.3g}×" if value < 100 else f"{value:.0f}×"


def goals(row: Row, best: dict[str, float], figures: dict[str, dict]) -> dict[str, bool | None]:
    """Map the text of each goal of a row to whether it is met, or to None if that is not known."""
    found: dict[str, bool | None] = {}
    for other, name in OTHERS.items():
        wanted = getattr(row.goal, other)
        if wanted is None or (other != "jax" and not row.runs_in(other)):
            continue
        reached = ratio(best, other)
        found[f"{times(wanted)} {name}"] = None if reached is None else reached >= wanted
    ours = best.get("namoo")
    limits: dict[str, float | None] = {}
    if row.goal.over_numpy is not None:
        least = best.get("numpy")
        text = f"NumPy + {quantity(row, row.goal.over_numpy)}"
        limits[text] = None if least is None else least + row.goal.over_numpy
    if row.goal.of_row is not None:
        name, most = row.goal.of_row
        other = figures.get(name, {}).get("best", {}).get("namoo")
        limits[f'≤ {most:g}× "{name}"'] = None if other is None else most * other
    for text, limit in limits.items():
        found[text] = None if ours is None or limit is None else ours <= limit
    return found


def verdict(found: dict[str, bool | None]) -> str:
    """Say whether every goal that can be judged is met."""
    judged = [met for met in found.values() if met is not None]
    return ABSENT if not judged else "yes" if all(judged) else "no"


def cells(row: Row, figures: dict[str, dict]) -> list[str]:
    """Return the cells of one row of the table."""
    best, failures = figures[row.name]["best"], figures[row.name]["failures"]
    values = [
        "failed" if name in failures and name not in best else quantity(row, best.get(name))
        for name in ("namoo", *OTHERS)
    ]
    ratios = [times(ratio(best, other)) for other in OTHERS]
    found = goals(row, best, figures)
    return [row.name, *values, *ratios, ", ".join(found) or ABSENT, verdict(found)]


HEADER = ["work", "namoo", *OTHERS.values(), *(f"/ {name}" for name in OTHERS.values())]
HEADER += ["goal", "met"]


def plain_table(figures: dict[str, dict]) -> str:
    """Return the figures as aligned columns, for a terminal."""
    lines = [HEADER, *(cells(row, figures) for row in ROWS.values() if row.name in figures)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in (0, 8) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown_table(figures: dict[str, dict], names: Iterable[str] | None = None) -> str:
    """Return a Markdown table of all rows by section, or of the named rows only."""
    lines = [
        "| work | namoo | JAX | PyTorch | NumPy | × JAX | × PyTorch | × NumPy |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]

    def add(rows: Iterable[Row]) -> None:
        lines.extend(f"| {' | '.join(cells(row, figures)[:8])} |" for row in rows)

    if names is not None:
        add(ROWS[name] for name in names if name in figures)
        return "\n".join(lines)
    for title, rows in SECTIONS.items():
        if shown := [row for row in rows if row.name in figures]:
            lines.append(f"| **{title}** | | | | | | | |")
            add(shown)
    return "\n".join(lines)


def conditions(machine: dict) -> str:
    """Return the sentence above the whole table: the machine and the versions."""
    versions = ", ".join(
        f"{name} {machine[key]}" for key, name in OTHERS.items() if machine.get(key)
    )
    return (
        f"Best times on {machine['cores']} cores of an {machine['cpu']}, beside {versions}; "
        "× is how many times as fast namoo is. `make bench` measures them."
    )
