"""Eager shortcuts: library functions whose concrete calls go straight to NumPy.

A small eager operation takes NumPy a few hundred nanoseconds.  The general path (check, promote,
broadcast, bind, evaluate, wrap) costs ten times that.  The tables of this room list the functions
for which the common cases are recognised: no transformation is running, and the operands are
concrete arrays that NumPy handles exactly as the general path does.  Everything else, including
errors, is left to the general path.

The libraries know nothing of this.  Their functions are plain programs on `bind`; the last
statement of a module that has entries is `attach_shortcuts(globals())`.  With
`config.eager_shortcuts` off (`NAMOO_EAGER_SHORTCUTS=off`) only the general paths run, and only the
speed changes.

| table | functions |
|---|---|
| `elementwise` | arithmetic, comparisons, elementary functions, `where` |
| `operators` | `x + y` and the other operators of arrays, in C++ where it is built |
| `reductions` | sums, extremes, means, and searches along an axis |
| `arranging` | shapes, axes, joining |
| `indexing` | `x[i]`, `x.at[i]`, slices, `take` |
| `creation` | constants, ranges, grids |
| `linalg` | products, diagonals, linear systems |
| `random` | samplers that work in the memory of the random bits |
| `custom_rules` | functions with derivative rules of their own |
| `composed` | functions of several operations, whose repeated calls run as one NumPy function |
"""

from __future__ import annotations

from typing import Any

from namoo._base.lazy import load_module

TABLES: dict[str, str] = {
    "numpy._methods": "operators",
    "numpy.arithmetic": "elementwise",
    "numpy.at": "indexing",
    "numpy.contraction": "linalg",
    "numpy.creation": "creation",
    "numpy.einstein": "linalg",
    "numpy.elementary": "elementwise",
    "numpy.number_parts": "elementwise",
    "numpy.float_parts": "elementwise",
    "numpy.grids": "creation",
    "numpy.indexing": "indexing",
    "numpy.joining": "arranging",
    "numpy.linalg.decompositions": "linalg",
    "numpy.linalg.determinants": "linalg",
    "numpy.linalg.norms": "linalg",
    "numpy.linalg.systems": "linalg",
    "numpy.logic": "elementwise",
    "numpy.manipulation": "arranging",
    "numpy.reductions": "reductions",
    "numpy.searching": "reductions",
    "numpy.selection": "elementwise",
    "numpy.sets": "reductions",
    "numpy.taking": "indexing",
    "primitives.linalg.matrices": "linalg",
    "primitives.shape": "creation",
    "primitives.slicing": "indexing",
    "random.continuous": "random",
    "random.counts": "random",
    "random.uniforms": "random",
    "transforms.custom": "custom_rules",
}
"""The table of each library module that has entries."""


def attach_shortcuts(namespace: dict[str, Any], module: str = "") -> None:
    """Replace functions of a library module by versions that try their shortcut first.

    A table is loaded when the first of its modules is.

    Args:
        namespace: the functions by name: `globals()` of the module.
        module: the module's name inside namoo; that of the namespace by default.
    """
    module = module or namespace["__name__"].removeprefix("namoo.")
    for entry in _entries(module):
        general = namespace[entry.name]
        if hasattr(general, "call"):  # a ufunc keeps its identity
            general.call = entry.install(general.call)
            continue
        quick = entry.install(general)
        for name, thing in list(namespace.items()):
            if thing is general:  # aliases included
                namespace[name] = quick


def _entries(module: str) -> list[Any]:
    """The entries of a library module; shortcuts come last, because they are tried first."""
    tables = ["composed", TABLES[module]] if module in TABLES else ["composed"]
    return [
        entry
        for table in tables
        for entry in load_module(f"namoo.eager.{table}").ENTRIES.of(module)
    ]


def all_shortcuts() -> list[Any]:
    """The entries of all tables, as `eager.shortcuts.Shortcut`.

    Example:
        >>> entry = next(entry for entry in all_shortcuts() if entry.name == "sin")
        >>> entry.module, entry.compute, entry.when
        ('numpy.elementary', <ufunc 'sin'>, 'an array of kind fc')
    """
    names = sorted({"composed", *TABLES.values()})
    tables = (load_module(f"namoo.eager.{name}") for name in names)
    return [entry for table in tables for entry in table.ENTRIES]


def without_shortcut(fun: Any) -> Any:
    """The general function behind one that tries a shortcut or remembers its programs."""
    fun = getattr(fun, "_func", fun)  # a ufunc
    while hasattr(fun, "__wrapped__"):
        fun = fun.__wrapped__
    return fun
