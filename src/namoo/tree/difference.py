"""Find where two trees differ. Every mismatch error comes from here.

Either side may be a tree of values or the structure of one. A side that is a *prefix* may have a
leaf where the other has a whole subtree.
"""

from __future__ import annotations

import itertools
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from namoo.tree.keys import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    SequenceKey,
    key_value,
    keystr,
)
from namoo.tree.registry import NodeType, node_type

# How much one message shows; the list of differences is always complete.
_SHOWN_DIFFERENCES = 5
_SHOWN_KEYS = 4
_SHOWN_PATH = 200

# Searching for a near miss compares all pairs of strings.
_SUGGESTIONS = 8
_CANDIDATES = 200

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 80

NONE_HINT = "None is an empty subtree, not a leaf; is_leaf=lambda x: x is None makes it a leaf."


class Difference(NamedTuple):
    """One place where the structures of two trees differ.

    Attributes:
        path: the key path of the difference, including the missing or unexpected key, if any.
        kind: 'type' (other kinds of node, or a node against a leaf), 'length' (of sequences),
            'missing' or 'unexpected' (a key), 'order' (of the keys of an OrderedDict), 'metadata'
            (aux data, static fields) or 'leaf' (where a function to compare leaves was given).
        expected: what one tree has there, in words.
        found: what the other has there, in words.
        message: the difference as a clause without its path.
        hint: what to know or to write instead; often empty.
        node: the name of the class of the node, where both trees have one of that class.
        summary: the difference in the words of `PyTreeDef.flatten_up_to` of JAX.
    """

    path: KeyPath
    kind: str
    expected: str
    found: str
    message: str
    hint: str = ""
    node: str = ""
    summary: str = ""

    @property
    def node_path(self) -> KeyPath:
        """The path of the node that differs: for a missing or unexpected key, its parent."""
        return self.path[:-1] if self.kind in ("missing", "unexpected") else self.path

    def __str__(self) -> str:
        return f"{_place(self.node_path)}: {self.message}"


class TreeMismatchError(ValueError):
    """Trees that should have the same structure do not; `differences` lists where."""

    __module__ = "namoo.tree"

    def __init__(self, message: str, differences: Iterable[Difference] = ()):
        super().__init__(message)
        self.differences = list(differences)


class Node:
    """One opened node: its class, metadata, children, and how to name the children."""

    __slots__ = ("children", "entry", "keys", "meta")

    def __init__(
        self,
        entry: NodeType,
        meta: Any,
        children: Sequence[Any],
        keys: Callable[[], Sequence[Any]],
    ):
        self.entry, self.meta, self.children, self.keys = entry, meta, children, keys


class Values:
    """One side of a comparison: a tree of values."""

    def __init__(self, is_leaf: Callable[[Any], bool] | None = None):
        self.is_leaf = is_leaf

    def open(self, tree: Any) -> Node | None:
        if self.is_leaf is not None and self.is_leaf(tree):
            return None
        entry = node_type(type(tree))
        if entry is None:
            return None
        children, meta = entry.flatten(tree)
        return Node(
            entry, meta, children, lambda: [key for key, _ in entry.flatten_with_keys(tree)[0]]
        )

    def describe_leaf(self, tree: Any) -> str:
        return f"a leaf of type {type(tree).__name__}"


class Structures:
    """One side of a comparison: the structure of a tree, a `PyTreeDef`."""

    def open(self, treedef: Any) -> Node | None:
        data = treedef.node_data()
        if data is None:
            return None
        cls, meta = data
        children = treedef.children()
        entry = node_type(cls)
        assert entry is not None, f"{cls!r} is in a structure, but is not a node"
        return Node(entry, meta, children, lambda: entry.keys(meta, len(children)))

    def describe_leaf(self, treedef: Any) -> str:
        return "a leaf"


Side = Values | Structures


def find_differences(
    expected: Any,
    found: Any,
    expected_side: Side,
    found_side: Side,
    prefix: str | None = None,
    compare_leaves: Callable[[Any, Any], str | None] | None = None,
) -> list[Difference]:
    """List every place where two trees differ, in the order of the leaves.

    Args:
        expected, found: two trees, or structures of trees.
        expected_side, found_side: which of the two each is.
        prefix: 'expected' or 'found', if that side may end before the other.
        compare_leaves: takes two leaves at one place, returns how they differ or None.
    """
    differences: list[Difference] = []
    # An explicit stack, so that trees deeper than Python's recursion limit can be compared.
    todo: list[tuple[KeyPath, Any, Any]] = [((), expected, found)]
    while todo:
        path, a, b = todo.pop()
        node_a, node_b = expected_side.open(a), found_side.open(b)
        if node_a is None and node_b is None:
            message = compare_leaves(a, b) if compare_leaves is not None else None
            if message is not None:
                words = expected_side.describe_leaf(a), found_side.describe_leaf(b)
                differences.append(Difference(path, "leaf", *words, message))
        elif (node_a is None and prefix == "expected") or (node_b is None and prefix == "found"):
            continue
        elif node_a is None or node_b is None or node_a.entry.cls is not node_b.entry.cls:
            words = _describe(node_a, a, expected_side), _describe(node_b, b, found_side)
            differences.append(_type_difference(path, words, (node_a, a), (node_b, b)))
        else:
            # A tree of values knows its keys; those of a structure may be guesses.
            keys_from_b = isinstance(expected_side, Structures) and isinstance(found_side, Values)
            found_here, pairs = _same_class(path, node_a, node_b, keys_from_b)
            summary = _same_class_summary(node_a, node_b, b) if found_here else ""
            name = node_a.entry.cls.__name__
            differences += [d._replace(node=name, summary=summary) for d in found_here]
            todo += [((*path, key), a, b) for key, a, b in reversed(pairs)]
    return differences


def _same_class(
    path: KeyPath, a: Node, b: Node, keys_from_b: bool
) -> tuple[list[Difference], list[tuple[Any, Any, Any]]]:
    """Compare two nodes of one class; return differences and pairs of children left to compare."""
    differences = []
    keys_a, keys_b = list(a.keys()), list(b.keys())
    by_key_a, by_key_b = _by_key(keys_a, a.children), _by_key(keys_b, b.children)
    if by_key_a is None or by_key_b is None:
        if len(a.children) != len(b.children):
            return [_length_difference(path, a, b)], []
        keys = keys_b if keys_from_b else keys_a
        pairs = list(zip(keys, a.children, b.children, strict=True))
    else:
        missing = [key for key in keys_a if key not in by_key_b]
        unexpected = [key for key in keys_b if key not in by_key_a]
        differences += [_missing_key((*path, key)) for key in missing]
        differences += [
            _unexpected_key((*path, key), _near_miss(key, missing) if i < _SUGGESTIONS else None)
            for i, key in enumerate(unexpected)
        ]
        if not missing and not unexpected and keys_a != keys_b:
            differences.append(_order_difference(path, a, keys_a, keys_b))
        pairs = [(key, by_key_a[key], by_key_b[key]) for key in keys_a if key in by_key_b]
    names = a.entry.meta_names
    if names is not None:
        for name, part_a, part_b in zip(names, a.meta, b.meta, strict=False):
            if not _equal(part_a, part_b):
                label = f"the static field {name!r} of {a.entry.cls.__name__}"
                differences.append(_metadata_difference(path, label, part_a, part_b))
    elif not differences and not _equal(a.meta, b.meta):
        label = f"the aux_data of {a.entry.cls.__name__}"
        differences.append(_metadata_difference(path, label, a.meta, b.meta))
    return differences, pairs


def _by_key(keys: list[Any], children: Sequence[Any]) -> dict[Any, Any] | None:
    """Return the children by key, or None if the keys are positions or cannot be dict keys."""
    if all(isinstance(key, (SequenceKey, FlattenedIndexKey)) for key in keys) and keys:
        return None
    try:
        by_key = dict(zip(keys, children, strict=True))
    except (TypeError, ValueError):
        return None
    return by_key if len(by_key) == len(children) else None


def _type_difference(path, words, *sides) -> Difference:
    expected, found = words
    hint = ""
    for node, value in sides:
        if node is not None and node.entry.kind == "none":
            hint = NONE_HINT
        elif node is None and not hint:
            hint = _unregistered_hint(type(value))
    if expected == found:
        [(node_a, _), (node_b, _)] = sides
        expected, found = (
            f"{words} ({node.entry.cls.__module__}.{node.entry.cls.__qualname__})"
            for words, node in zip(words, (node_a, node_b), strict=True)
        )
        if expected == found:
            hint = "These are two classes of one name: was a module reloaded, or a cell run again?"
    message = f"expected {expected}, found {found}"
    summary = _type_summary(*sides)
    return Difference(path, "type", expected, found, message, hint, summary=summary)


def _type_summary(expected: tuple[Node | None, Any], found: tuple[Node | None, Any]) -> str:
    node, value = expected[0], _short(found[1])
    if node is None:
        return f"Expected a leaf, got {value}."
    match node.entry.kind:
        case "none":
            return f"Expected None, got {value}."
        case "list" | "tuple" | "dict":
            return f"Expected {node.entry.kind}, got {value}."
        case "namedtuple" if not hasattr(found[1], "_fields"):
            return f"Expected named tuple, got {value}."
        case "namedtuple":
            kind, what = "Named tuple", "tuple"
        case _:
            kind, what = "Custom node", "value"
    return f"{kind} type mismatch: expected type: {node.entry.cls}, {what}: {value}."


def _same_class_summary(a: Node, b: Node, value: Any) -> str:
    match a.entry.kind:
        case "list" | "tuple" as kind:
            lengths = f"{len(b.children)} != {len(a.children)}"
            return f"{kind.capitalize()} arity mismatch: {lengths}; {kind}: {_short(value)}."
        case "dict":
            wanted, present = _short(list(a.meta)), _short(list(b.meta))
            return f"Dict key mismatch; expected keys: {wanted}; present keys: {present}."
    metas = f"{_short(a.meta)} != {_short(b.meta)}"
    return f"Mismatch custom node data: {metas}; value: {_short(value)}."


def _unregistered_hint(cls: type) -> str:
    for base in (dict, list, tuple):
        if issubclass(cls, base):
            return (
                f"{cls.__name__} is a subclass of {base.__name__} and so a leaf; "
                "tree_util.register_pytree_node makes it a node."
            )
    if hasattr(cls, "__dataclass_fields__"):
        return f"tree_util.register_dataclass makes the dataclass {cls.__name__} a node."
    return ""


def _length_difference(path, a: Node, b: Node) -> Difference:
    expected, found = (_with_length(node) for node in (a, b))
    return Difference(path, "length", expected, found, f"expected {expected}, found {found}")


def _missing_key(path) -> Difference:
    key = _key_words(path[-1])
    return Difference(path, "missing", f"the key {key}", "no such key", f"missing key {key}")


def _unexpected_key(path, suggestion) -> Difference:
    key = _key_words(path[-1])
    message = f"unexpected key {key}"
    if suggestion is not None:
        message += f" (did you mean {_key_words(suggestion)}?)"
    return Difference(path, "unexpected", "no such key", f"the key {key}", message)


def _order_difference(path, node: Node, keys_a, keys_b) -> Difference:
    expected, found = (f"the {_list_keys(keys)} in this order" for keys in (keys_a, keys_b))
    message = f"expected {expected}, found {found}"
    hint = f"The order of its keys is part of the structure of {_a(node.entry.cls)}."
    return Difference(path, "order", expected, found, message, hint)


def _metadata_difference(path, label, a, b) -> Difference:
    expected, found = _short(a), _short(b)
    hint = ""
    if expected == found:
        if type(a) is not type(b):
            expected, found = (f"{_short(x)} of type {type(x).__name__}" for x in (a, b))
        else:
            hint = (
                f"The two print alike, but == does not say that they are equal; "
                f"does {type(a).__name__} define __eq__ and __hash__?"
            )
    message = f"expected {label} to be {expected}, found {found}"
    return Difference(path, "metadata", expected, found, message, hint)


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a is b or a == b)
    except Exception:
        # An array, for example: it has no plain `==`, so the metadata are reported as different.
        return False


def _describe(node: Node | None, value: Any, side: Side) -> str:
    if node is None:
        return side.describe_leaf(value)
    match node.entry.kind:
        case "none":
            return "None"
        case "list" | "tuple":
            return _with_length(node)
        case "dict":
            keys = list(node.keys())
            return f"a dict with {_list_keys(keys)}" if keys else "an empty dict"
        case _:
            return _a(node.entry.cls)


def _with_length(node: Node) -> str:
    count = len(node.children)
    if node.entry.kind in ("list", "tuple"):
        return f"{_a(node.entry.cls)} of length {count}"
    return f"{_a(node.entry.cls)} with {count} {'child' if count == 1 else 'children'}"


def _a(cls: type) -> str:
    return f"{'an' if cls.__name__[0] in 'AEIOUaeiou' else 'a'} {cls.__name__}"


def _near_miss(key: Any, candidates: list[Any]) -> Any:
    """Return the probably intended candidate: other case or type, abbreviated, or misspelt."""
    text = str(key_value(key)).lower()
    texts = {str(key_value(other)).lower(): other for other in reversed(candidates[:_CANDIDATES])}
    if text in texts:
        return texts[text]
    for other, candidate in texts.items():
        if text and other and (other.startswith(text) or text.startswith(other)):
            return candidate
    import difflib  # needed only for errors

    close = difflib.get_close_matches(text, texts, n=1)
    return texts[close[0]] if close else None


def _key_words(key: Any) -> str:
    match key:
        case DictKey(value) | GetAttrKey(value):
            return _short(value)
        case _:
            return str(key)


def _list_keys(keys: list[Any]) -> str:
    noun = "key" if len(keys) == 1 else "keys"
    shown = ", ".join(_key_words(key) for key in keys[:_SHOWN_KEYS])
    more = f" and {len(keys) - _SHOWN_KEYS} more" if len(keys) > _SHOWN_KEYS else ""
    return f"{noun} {shown}{more}"


def _short(value: Any) -> str:
    text = " ".join(_repr.repr(value).split())
    return text if len(text) <= 100 else f"{text[:60]}...{text[-30:]}"


def _place(path: KeyPath) -> str:
    if not path:
        return "at the root"
    text = " ".join(keystr(path).split())
    if len(text) > _SHOWN_PATH:
        text = f"{text[: _SHOWN_PATH // 2]}...{text[-_SHOWN_PATH // 2 :]}"
    return f"at {text}"


def groups(differences: Iterable[Difference]) -> list[list[Difference]]:
    """Group the differences by node: missing and unexpected keys of one node belong together."""
    return [list(group) for _, group in itertools.groupby(differences, _group_of)]


def headline(group: Sequence[Difference], name: str) -> str:
    """Describe the differences of one node in JAX's words: the kind, and where.

    Args:
        group: one of `groups`.
        name: what the tree is called, before the path.
    """
    kinds = [difference.kind for difference in group]
    match kinds[0]:
        case "type":
            what = "different types"
        case "length" if group[0].node in ("list", "tuple"):
            what = f"different lengths of {group[0].node}"
        case "length":
            what = "different numbers of pytree children"
        case "missing" | "unexpected" if kinds.count("missing") != kinds.count("unexpected"):
            what = "different numbers of pytree children"
        case "leaf":
            what = "different leaves"
        case _:
            what = "different pytree metadata"
    place = f"{name}{keystr(group[0].node_path)}"
    return f"pytree structure error: {what} at key path\n    {place}"


def describe(title: str, differences: Sequence[Difference]) -> str:
    """Write a message of at most 25 lines: the title, the first differences, their hints."""
    if not differences:
        return f"{title}: their nodes compare unequal, but no difference can be shown."
    lines, hints, listed = [], [], 0
    for group in groups(differences):
        if len(lines) == _SHOWN_DIFFERENCES:
            break
        lines.append(f"  {_place(group[0].node_path)}: {clauses(group)}")
        hints += [difference.hint for difference in group if difference.hint]
        listed += len(group)
    count = "1 difference" if len(differences) == 1 else f"{len(differences)} differences"
    if listed < len(differences):
        lines.append(f"  ... and {len(differences) - listed} more")
    return "\n".join([f"{title} ({count}):", *lines, *dict.fromkeys(hints)])


def _group_of(difference: Difference) -> Any:
    """Return the key by which missing and unexpected keys of one node are grouped."""
    if difference.kind in ("missing", "unexpected"):
        return [str(key) for key in difference.node_path], "keys"
    return id(difference)


def clauses(group: Sequence[Difference]) -> str:
    """Describe the differences of one node, without its path."""
    if group[0].kind not in ("missing", "unexpected"):
        return group[0].message
    parts = []
    for kind in ("missing", "unexpected"):
        keys = [difference for difference in group if difference.kind == kind]
        if 0 < len(keys) <= _SHOWN_KEYS:
            parts += [difference.message for difference in keys]
        elif keys:
            parts.append(f"{kind} {_list_keys([difference.path[-1] for difference in keys])}")
    return "; ".join(parts)


def mismatch(
    title: str,
    differences: Sequence[Difference],
    error: type[TreeMismatchError] | None = None,
    name: str | None = None,
) -> TreeMismatchError:
    """Return the error to raise where two trees differ.

    Args:
        title: one clause that says who found which two trees to differ.
        differences: from `find_differences`.
        error: a subclass of `TreeMismatchError`, where another type of exception is expected too.
        name: the name of the second tree, if the message should start with `headline`.
    """
    message = describe(title, differences)
    if name is not None and differences:
        message += f"\nMismatch details ({len(differences)} found)"
        message += f"\n{headline(groups(differences)[0], name)}"
    return (error or TreeMismatchError)(message, differences)
