"""Print how much of JAX's public API exists, and how much of it the tests compare with JAX.

python tests/support/api_coverage.py            a table, one row per namespace
python tests/support/api_coverage.py --missing  and the names that are absent
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
NAMES: dict[str, list[str]] = json.loads((TESTS / "data" / "jax_names.json").read_text())


def present(space: str) -> list[str]:
    """Return the names of a namespace of JAX that namoo has, too."""
    try:
        module = importlib.import_module(f"namoo.{space}" if space else "namoo")
    except ImportError:
        return []
    return [name for name in NAMES[space] if hasattr(module, name)]


# What test files that use real JAX import: JAX, or a helper that runs programs in it.
ORACLES = ("import jax", "from jax_oracle import", "from scipy_oracle import")


@cache
def words_of_oracle_tests() -> frozenset[str]:
    """Return every attribute and string that occurs in a test file that uses real JAX.

    A table row names the function it tests by one or the other.
    """
    words: set[str] = set()
    for path in TESTS.rglob("*.py"):
        text = path.read_text()
        if not any(mark in text for mark in ORACLES):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute):
                words.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.update(node.value.replace(".", " ").split())
    return frozenset(words)


def table() -> list[tuple[str, int, int, int]]:
    """Return rows: namespace, names present, names in total, names that tests compare with JAX."""
    tested = words_of_oracle_tests()
    rows = []
    for space, names in NAMES.items():
        have = present(space)
        rows.append((space or "namoo", len(have), len(names), sum(n in tested for n in have)))
    return rows


def main() -> None:
    rows = table()
    print(f"{'namespace':32} {'present':>9} {'of':>5} {'':>7} {'tested against JAX':>19}")
    for space, have, of, tested in rows:
        print(f"{space:32} {have:9} {of:5} {have / of:7.0%} {tested:19}")
    _, *columns = zip(*rows, strict=True)
    have, of, tested = map(sum, columns)
    print(f"{'in all':32} {have:9} {of:5} {have / of:7.0%} {tested:19}")
    if "--missing" in sys.argv:
        for space, names in NAMES.items():
            absent = sorted(set(names) - set(present(space)))
            if absent:
                print(f"\n{space or 'namoo'}: {', '.join(absent)}")


if __name__ == "__main__":
    main()
