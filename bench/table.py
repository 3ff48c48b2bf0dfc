"""The figures as a table: ratios, goals, and whether they are met."""

from row import Row
from rows import ROWS, SECTIONS

OTHERS = {"jax": "JAX", "torch": "PyTorch", "numpy": "NumPy"}
ABSENT = "–"


def quantity(row: Row, value: float | None) -> str:
    """A time or a size, with three digits and its unit."""
    if value is None:
        return ABSENT
    if row.measure == "peak":
        return f"{value / 1e6:.0f} MB"
    unit, scale = ("s", 1.0) if value >= 1 else ("ms", 1e-3) if value >= 1e-3 else ("µs", 1e-6)
    number = f"{value / scale:.0f}" if value >= 100 * scale else f"{value / scale:.3g}"
    return f"{number} {unit}"


def ratio(best: dict[str, float], other: str) -> float | None:
    """How many times as fast as another framework namoo is."""
    if "namoo" not in best or other not in best:
        return None
    return best[other] / best["namoo"]


def times(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3g}×" if value < 100 else f"{value:.0f}×"


def goals(row: Row, best: dict[str, float], figures: dict[str, dict]) -> dict[str, bool | None]:
    """Each goal of a row, as the table says it, and whether it is met; None if it is not known."""
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
    """Whether all goals are met that can be judged."""
    judged = [met for met in found.values() if met is not None]
    return ABSENT if not judged else "yes" if all(judged) else "no"


def cells(row: Row, figures: dict[str, dict]) -> list[str]:
    """One line of the table."""
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
    """Columns of text, for a terminal."""
    lines = [HEADER, *(cells(row, figures) for row in ROWS.values() if row.name in figures)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in (0, 8) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown_table(figures: dict[str, dict], machine: dict) -> str:
    """The README's table: a section for each kind of work, and what it was measured with."""
    versions = ", ".join(
        f"{name} {machine[key]}" for key, name in OTHERS.items() if machine.get(key)
    )
    lines = [
        f"Best times on {machine['cores']} cores of an {machine['cpu']}, beside {versions}; "
        "× is how many times as fast namoo is. `make bench` measures them.",
        "",
        "| work | namoo | JAX | PyTorch | NumPy | × JAX | × PyTorch | × NumPy |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for title, rows in SECTIONS.items():
        shown = [row for row in rows if row.name in figures]
        if shown:
            lines.append(f"| **{title}** | | | | | | | |")
        for row in shown:
            lines.append("| " + " | ".join(cells(row, figures)[:8]) + " |")
    return "\n".join(lines)
