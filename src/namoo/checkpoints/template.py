"""Put the leaves of a file into a template by path, and describe what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from namoo import tree
from namoo.checkpoints.leaves import Missing, Parts, Tensor, name_of, spec_of
from namoo.core.array import Array, EagerArray, PlacedArray
from namoo.core.avals import ShapeDtypeStruct
from namoo.tree.difference import Difference, Values, find_differences, mismatch
from namoo.tree.keys import DictKey, KeyPath
from namoo.tree.paths import Paths

Rename = Mapping[str, str] | Callable[[str], str] | None


def chosen(only: Any, pairs: list[tuple[KeyPath, Any]]) -> list[bool]:
    """Return which leaves a pattern selects; without one, all."""
    if only is None:
        return [True] * len(pairs)
    return Paths(only)._flags(pairs)


def words_of(name: str) -> tuple[str, ...]:
    r"""Return the keys of a path: `a\/b/0` is `("a/b", "0")`."""
    out, key, escaped = [], "", False
    for c in name:
        if escaped:
            key, escaped = key + c, False
        elif c == "\\":
            escaped = True
        elif c == "/":
            out.append(key)
            key = ""
        else:
            key += c
    return (*out, key)


def renamed(name: str, rename: Rename) -> str:
    """Return the path in the template for a path in the file.

    A mapping renames leaves and whole subtrees by the longest key that is a prefix of the path.
    """
    if rename is None:
        return name
    if callable(rename):
        return rename(name)
    fitting = [old for old in rename if name == old or name.startswith(old + "/") or not old]
    if not fitting:
        return name
    old = max(fitting, key=len)
    rest = name[len(old) :].lstrip("/")
    return "/".join(part for part in (rename[old], rest) if part)


def fit(
    template: Any,
    stored: dict[str, Any],
    read: Callable[[list[str]], dict[str, Any]],
    where: str,
    *,
    only: Any = None,
    rename: Rename = None,
    missing: str = "error",
    extra: str = "error",
    cast: bool = False,
) -> Any:
    """Return the template with its leaves replaced by those of a file.

    Args:
        template: a tree.
        stored: the leaves of the file by path, as `read_leaf` returns them.
        read: takes paths in the file, returns their leaves.
        where: the file's name, for messages.
        only, rename, missing, extra, cast: as in `load`.

    Raises:
        TreeMismatchError: if the two do not fit.
    """
    for option, value, allowed in (
        ("missing", missing, ("error", "keep")),
        ("extra", extra, ("error", "ignore")),
    ):
        if value not in allowed:
            raise ValueError(f"{option} is one of {allowed}, not {value!r}")
    pairs, treedef = tree.flatten_with_path(template)
    wanted = {
        name_of(path): leaf
        for (path, leaf), is_in in zip(pairs, chosen(only, pairs), strict=True)
        if is_in
    }
    source: dict[str, str] = {}
    for name in stored:
        new = renamed(name, rename)
        if new in source:
            raise ValueError(
                f"rename gives {source[new]!r} and {name!r} of {where} the same path, {new!r}"
            )
        source[new] = name
    # Functions are not in files, so they are missing only where the template needs a value.
    found = {
        new: stored[name] for new, name in source.items() if not isinstance(stored[name], Missing)
    }
    needed = {name: leaf for name, leaf in wanted.items() if not _is_static(leaf)}
    expected = needed if missing == "error" else {n: x for n, x in needed.items() if n in found}
    compared = {n: x for n, x in found.items() if n in expected or n not in wanted}
    differences = _differences(expected, compared, cast)
    if extra == "ignore" or only is not None:
        differences = [d for d in differences if d.kind != "unexpected"]
    if differences:
        raise mismatch(
            f"the tree in {where} does not fit the template; rename={{'old/path': 'new/path'}}, "
            "missing='keep', extra='ignore' and only='pattern/**' load what fits",
            differences,
        )
    values = read([source[name] for name in expected])
    leaves = []
    for path, leaf in pairs:
        name = name_of(path)
        if name in expected:
            leaf = _like(leaf, values[source[name]])
        elif isinstance(leaf, ShapeDtypeStruct):
            raise ValueError(
                f"the template has only a shape at {name!r}, and {where} gives it no value: "
                "missing='keep' and only=… need a template with values"
            )
        leaves.append(leaf)
    return treedef.unflatten(leaves)


def _is_static(leaf: Any) -> bool:
    """Return whether files have no value for this leaf of a template."""
    return callable(leaf) and not isinstance(leaf, (Array, ShapeDtypeStruct))


def _differences(expected: dict[str, Any], found: dict[str, Any], cast: bool) -> list[Difference]:
    try:
        sides = _nested(expected), _nested(found)
    except ValueError:
        # A path is both a leaf and a subtree: use whole paths as keys instead.
        sides = expected, found
    return find_differences(
        *sides, Values(_is_end), Values(_is_end), compare_leaves=lambda a, b: _compare(a, b, cast)
    )


def _is_end(x: Any) -> bool:
    return not isinstance(x, dict)


def _nested(leaves: dict[str, Any]) -> Any:
    return nest({words_of(name): leaf for name, leaf in leaves.items()})


def nest(leaves: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    """Return a tree of dicts, given leaves by their keys.

    Raises:
        ValueError: if the path of one leaf is a prefix of another's.
    """
    out: dict[str, Any] = {}
    for words, leaf in leaves.items():
        node = out
        for word in words[:-1]:
            node = node.setdefault(word, {})
            if not isinstance(node, dict):
                raise ValueError(f"{'/'.join(words)!r} has another array's name as a prefix")
        if words[-1] in node:
            raise ValueError(f"{'/'.join(words)!r} is an array, and others have names below it")
        node[words[-1]] = leaf
    return out


def _compare(wanted: Any, stored: Any, cast: bool) -> str | None:
    """Describe how a leaf of the file does not fit one of the template."""
    if isinstance(stored, Parts):
        stored = stored.spec
    elif not isinstance(stored, Tensor):
        is_right = type(wanted) is type(stored)
        return None if is_right else f"expected {_describe(wanted)}, found {_describe(stored)}"
    if not isinstance(wanted, (Array, np.ndarray, np.generic, ShapeDtypeStruct)):
        return f"expected {_describe(wanted)}, found {_describe(stored)}"
    is_same = tuple(wanted.shape) == stored.shape and (
        wanted.dtype == stored.dtype or (cast and _is_number(wanted) and _is_number(stored))
    )
    hint = "" if tuple(wanted.shape) != stored.shape or cast else "; cast=True converts it"
    return None if is_same else (f"expected {_describe(wanted)}, found {_describe(stored)}{hint}")


def _is_number(x: Any) -> bool:
    return isinstance(x.dtype, np.dtype)


def _describe(x: Any) -> str:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return f"{x.dtype}[{','.join(map(str, x.shape))}]"
    return f"a leaf of type {type(x).__name__}"


def _like(wanted: Any, value: Any) -> Any:
    """Convert a leaf of the file to the kind of array that the template has."""
    if not isinstance(wanted, (Array, np.ndarray, np.generic, ShapeDtypeStruct)):
        return value
    is_eager = isinstance(value, EagerArray)
    array: Any = value._value if is_eager else np.asarray(value)
    weak = is_eager and value.weak_type
    if wanted.dtype != (value.dtype if is_eager else array.dtype):
        array = array.astype(wanted.dtype)
        weak = False
    if isinstance(wanted, (Array, ShapeDtypeStruct)):
        value = value if is_eager and array is value._value else EagerArray(array, weak)
        return _placed_like(wanted, value)
    return array[()] if isinstance(wanted, np.generic) else array


def _placed_like(wanted: Any, value: EagerArray) -> EagerArray:
    """Put an array where the template's array is; each process puts its own shards."""
    is_placed = type(wanted) is PlacedArray
    if not is_placed and (isinstance(wanted, Array) or wanted.sharding is None):
        return value
    from namoo.devices.make_array import make_array_from_callback

    whole = value._value
    placed = make_array_from_callback(value.shape, wanted.sharding, lambda index: whole[index])
    if type(placed) is PlacedArray and value.weak_type:
        return PlacedArray(value.aval, placed._sharding, placed._buffer)
    return placed


def pairs_of(stored: dict[str, Any]) -> list[tuple[KeyPath, Any]]:
    """Return paths with what is known of their leaves, for patterns to select from."""
    return [
        (tuple(DictKey(word) for word in words_of(name)), spec_of(leaf))
        for name, leaf in stored.items()
    ]
