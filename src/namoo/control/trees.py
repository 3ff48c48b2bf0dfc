"""From functions of trees to programs: what branches and loops have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo import tree_util
from namoo._base.caches import per_program
from namoo.analysis.mesh_types import same_split
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, Var
from namoo.primitives.shape import convert_element_type
from namoo.transforms.staged import Staged
from namoo.tree import diff


def leaf_avals(tree: Any, what: str) -> list[ShapedArray]:
    """The types of a tree's leaves; a leaf that is not an array is refused by its path."""
    out = []
    for path, leaf in tree_util.tree_leaves_with_path(tree):
        try:
            out.append(aval_of(leaf))
        except TypeError:
            where = tree_util.keystr(path) or "the root"
            raise TypeError(
                f"{what[0].upper()}{what[1:]} must be a tree of arrays, but at {where} there is "
                f"{leaf!r} of type {type(leaf).__name__}. Close over values that are not arrays."
            ) from None
    return out


def as_arrays(tree: Any) -> Any:
    """A tree with Python numbers and NumPy arrays converted to our arrays, as in tracing."""

    def convert(x):
        aval = aval_of(x)
        return convert_element_type(x, aval.dtype, aval.weak_type)

    return tree_util.tree_map(convert, tree)


def share_consts(programs: Sequence[Staged]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Programs that take the same leading constants: the union of what each closes over."""
    consts: dict[int, Any] = {id(c): c for p in programs for c in p.consts}
    number = {i: n for n, i in enumerate(consts)}
    numbers = tuple(tuple(number[id(c)] for c in p.consts) for p in programs)
    first, *others = [p.jaxpr for p in programs]
    return list(_with_shared_consts(first, tuple(others), numbers)), list(consts.values())


@per_program("shared constants", keyed_by="the other branches, which constants are the same")
def _with_shared_consts(first, others, numbers):
    jaxprs = [first, *others]
    avals = {
        n: v.aval
        for jaxpr, own in zip(jaxprs, numbers, strict=True)
        for v, n in zip(jaxpr.constvars, own, strict=True)
    }
    out = []
    for jaxpr, own in zip(jaxprs, numbers, strict=True):
        variables = dict(zip(own, jaxpr.constvars, strict=True))
        shared = [variables[n] if n in variables else Var(avals[n]) for n in range(len(avals))]
        out.append(ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*shared, *jaxpr.invars])))
    return out


def type_words(expected: Any, found: Any) -> str | None:
    """How two leaf types differ, or None; weak types do not count."""
    a, b = aval_of(expected), aval_of(found)
    if a.shape == b.shape and a.dtype == b.dtype:
        return None
    what = [
        w
        for w, same in (("shapes", a.shape == b.shape), ("dtypes", a.dtype == b.dtype))
        if not same
    ]
    types = [x.str_short(short_dtypes=False) for x in (a, b)]
    return f"expected type {types[0]}, found {types[1]}: the {' and '.join(what)} differ"


def type_differences(expected: Any, found: Any) -> list:
    """Differences in structure and in leaf types between two trees."""
    return diff(expected, found, compare_leaves=type_words)


def carry_differences(expected: Any, found: Any) -> list:
    """The same, but values inside `shard_map` must also vary along the same mesh axes."""
    return diff(expected, found, compare_leaves=_carry_words)


def _carry_words(expected: Any, found: Any) -> str | None:
    a, b = aval_of(expected), aval_of(found)
    words = None
    if type_words(expected, found) is not None:
        names = [n for n in ("shape", "dtype") if getattr(a, n) != getattr(b, n)]
        words = (
            f"the input carry has type {a.str_short(short_dtypes=False)} but the corresponding "
            f"output carry component has type {b.str_short(short_dtypes=False)}, so the "
            f"{' and '.join(n + 's' for n in names)} do not match"
        )
    if words is None and not same_split(a, b):
        words = (
            f"the input carry has type {a.str_short(short_dtypes=False)} but the corresponding "
            f"output carry component has type {b.str_short(short_dtypes=False)}: their shardings "
            "do not match. Change the result with namoo.sharding.reshard"
        )
    if words is None and a.vma != b.vma:
        names = tuple(sorted(a.vma - b.vma, key=str))
        words = (
            f"expected type {a.str_short()}, found {b.str_short()}: the first may differ along the "
            f"mesh axes {names}, the second does not. Write lax.pcast(x, {names}, to='varying') "
            "for what the function returns"
        )
    return words
