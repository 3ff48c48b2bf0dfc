r"""Select leaves of a tree by patterns of their paths.

The path of a leaf is written with a slash between keys: `layers/0/weight`, whether a key is that of
a dict, an index or an attribute. A pattern is such a path with wildcards:

    *        any one key, or any characters within a key: `*/weight`, `block_*/b`
    **       any number of keys, none included: `**/b` is every leaf named b, `encoder/**` a subtree
    ?        one character
    [ab]     one of these characters; `[!ab]` any other
    {a,b}    either: `**/{bias,scale}`
    \        takes the next character literally: `a\/b` is one key with a slash in it

`paths("**/b")` is a mask: called with a tree, it returns a tree of booleans. It can be used where a
mask, or a function that makes one, is accepted. Masks are combined with `~`, `&` and `|`.

Example:
    >>> params = [{"W": 1.0, "b": 2.0}, {"W": 3.0, "b": 4.0}]
    >>> decay = ~paths("**/b")
    >>> decay(params)
    [{'W': True, 'b': False}, {'W': True, 'b': False}]
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from namoo import tree as _tree
from namoo._base.caches import cached
from namoo.tree.keys import KeyPath, key_value

__all__ = ["Paths", "path_string", "paths"]

_SPECIAL = re.compile(r"([\\/*?\[\]{},])")
_SHOWN = 5


def path_string(path: KeyPath) -> str:
    r"""Write a key path as the pattern that matches it and nothing else.

    Args:
        path: a key path, as `namoo.tree.flatten_with_path` returns it.

    Returns:
        The keys with slashes between them; characters with a meaning in patterns are escaped.

    Example:
        >>> [path_string(path) for path, _ in _tree.leaves_with_path({"w": [0.0], "a/b": 1.0})]
        ['a\\/b', 'w/0']
    """
    return "/".join(_SPECIAL.sub(r"\\\1", key) for key in _words(path))


def _words(path: KeyPath) -> tuple[str, ...]:
    return tuple(str(key_value(key)) for key in path)


class Paths:
    """A set of leaves, described by patterns of their paths: a mask that fits any tree.

    Args:
        *patterns: each a pattern, another `Paths`, a function `(path, leaf) -> bool` that takes the
            path as a string, or a list of these. A leaf is in the set if one of them has it; with
            no patterns, every leaf.
        where: a function of a leaf that must be true as well.
        optional: whether a pattern may match nothing.

    Raises:
        ValueError: if a pattern cannot be read.

    Example:
        >>> params = {"enc": [{"w": 0.0, "b": 0.0}], "head": {"w": 0.0}}
        >>> paths("enc/**")(params)
        {'enc': [{'b': True, 'w': True}], 'head': {'w': False}}
        >>> paths("**/w", "enc/*/b") - paths("head/**")
        Paths('**/w', 'enc/*/b') & ~Paths('head/**')
        >>> paths("encoder/**")(params)
        Traceback (most recent call last):
          ...
        ValueError: the pattern 'encoder/**' matches no leaf. Near it: 'enc/0/b', 'enc/0/w'. ...
    """

    __slots__ = ("_key",)

    def __init__(
        self,
        *patterns: Any,
        where: Callable[[Any], bool] | None = None,
        optional: bool = False,
    ):
        key: tuple[Any, ...] = (
            "or",
            *(_atom(p, optional) for p in _flat(patterns or ("**",), "patterns")),
        )
        self._key = key if where is None else ("and", key, ("where", where))

    @classmethod
    def _of(cls, *key: Any) -> Paths:
        self = object.__new__(cls)
        self._key = key
        return self

    def __call__(self, tree: Any) -> Any:
        """Return the mask of a tree.

        Args:
            tree: a tree.

        Returns:
            A tree of the same structure with True where a leaf is in the set, else False.

        Raises:
            ValueError: if a pattern matches no leaf; the message suggests similar paths.
        """
        pairs, treedef = _tree.flatten_with_path(tree)
        return treedef.unflatten(self._flags(pairs))

    mask = __call__

    def _flags(self, pairs: list[tuple[KeyPath, Any]]) -> list[bool]:
        return _evaluate(self._key, [_words(path) for path, _ in pairs], pairs)

    def select(self, tree: Any) -> dict[str, Any]:
        """Return the leaves in the set, by path.

        Args:
            tree: a tree.

        Returns:
            A dict from path to leaf, in the order of the leaves.

        Raises:
            ValueError: if a pattern matches no leaf.

        Example:
            >>> paths("**/b").select([{"W": 1.0, "b": 2.0}, {"W": 3.0, "b": 4.0}])
            {'0/b': 2.0, '1/b': 4.0}
        """
        pairs, _ = _tree.flatten_with_path(tree)
        chosen = zip(pairs, self._flags(pairs), strict=True)
        return {path_string(path): leaf for (path, leaf), is_in in chosen if is_in}

    def map(self, f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
        """Apply a function to the leaves in the set; the others stay unchanged.

        Args:
            f: takes a leaf of `tree`, and the subtree of each tree in `rest` at the same position.
            tree: a tree.
            *rest: trees with the nodes of `tree`.

        Returns:
            A tree of the same structure.

        Raises:
            ValueError: if a pattern matches no leaf, or a tree of `rest` has other nodes.

        Example:
            >>> paths("**/b").map(lambda x: 0.0, {"W": 1.0, "b": 2.0})
            {'W': 1.0, 'b': 0.0}
        """
        return _tree.map(
            lambda is_in, leaf, *others: f(leaf, *others) if is_in else leaf,
            self(tree),
            tree,
            *rest,
        )

    def partition(self, tree: Any) -> tuple[Any, Any]:
        """Split a tree into the leaves in the set and the others; None fills the gaps.

        Args:
            tree: a tree.

        Returns:
            `(chosen, rest)`; `namoo.combine` is the inverse.

        Raises:
            ValueError: if a pattern matches no leaf.

        Example:
            >>> paths("**/b").partition({"W": 1.0, "b": 2.0})
            ({'W': None, 'b': 2.0}, {'W': 1.0, 'b': None})
        """
        mask = self(tree)
        chosen = _tree.map(lambda is_in, leaf: leaf if is_in else None, mask, tree)
        rest = _tree.map(lambda is_in, leaf: None if is_in else leaf, mask, tree)
        return chosen, rest

    @staticmethod
    def groups(table: Mapping[Any, Any], default: Any = None) -> Callable[[Any], Any]:
        """Return a function that labels each leaf with the first table entry that matches.

        Args:
            table: from patterns (or `Paths`) to labels, in order of precedence.
            default: the label of leaves that no entry has. Without one, such a leaf is an error.

        Returns:
            A function from a tree to the tree of its labels.

        Raises:
            ValueError: when called, if a pattern matches no leaf, or no pattern matches a leaf.

        Example:
            >>> label = paths.groups({"head/**": "fast", "**": "slow"})
            >>> label({"body": {"w": 0.0}, "head": {"w": 0.0}})
            {'body': {'w': 'slow'}, 'head': {'w': 'fast'}}
        """
        entries = [(_as_paths(key), label) for key, label in table.items()]

        def labels(tree: Any) -> Any:
            pairs, treedef = _tree.flatten_with_path(tree)
            columns = [(entry._flags(pairs), label) for entry, label in entries]
            out = []
            for i, (path, _) in enumerate(pairs):
                found = next((label for flags, label in columns if flags[i]), default)
                if found is None:
                    raise ValueError(
                        f"no pattern of {[str(k) for k in table]} matches the leaf "
                        f"{path_string(path)!r}. Add '**' as the last entry for all the others, "
                        "or give a default."
                    )
                out.append(found)
            return treedef.unflatten(out)

        return labels

    def __invert__(self) -> Paths:
        return Paths._of("not", self._key)

    def __and__(self, other: Any) -> Paths:
        return Paths._of("and", self._key, _as_paths(other)._key)

    def __or__(self, other: Any) -> Paths:
        return Paths._of("or", self._key, _as_paths(other)._key)

    def __sub__(self, other: Any) -> Paths:
        return self & ~_as_paths(other)

    def __rand__(self, other: Any) -> Paths:
        return _as_paths(other) & self

    def __ror__(self, other: Any) -> Paths:
        return _as_paths(other) | self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Paths) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return _write(self._key)


paths = Paths


def _as_paths(pattern: Any) -> Paths:
    return pattern if isinstance(pattern, Paths) else Paths(pattern)


def _flat(patterns: Iterable[Any], where: str) -> list[Any]:
    out = []
    for pattern in patterns:
        if isinstance(pattern, (list, tuple, set, frozenset)):
            out += _flat(pattern, where)
        elif isinstance(pattern, (str, Paths)) or callable(pattern):
            out.append(pattern)
        else:
            raise TypeError(
                f"a pattern is a string such as '**/bias', a Paths, or a function of a path and a "
                f"leaf, not {pattern!r} of type {type(pattern).__name__}"
            )
    return out


def _atom(pattern: Any, optional: bool) -> tuple[Any, ...]:
    if isinstance(pattern, Paths):
        return pattern._key
    if not isinstance(pattern, str):
        return "call", pattern
    _compiled(pattern)
    return "glob", pattern, optional


def _evaluate(
    key: tuple[Any, ...], words: list[tuple[str, ...]], pairs: list[tuple[KeyPath, Any]]
) -> list[bool]:
    """Return, for each leaf, whether an expression matches it."""
    match key:
        case "glob", pattern, optional:
            flags = [_matches(pattern, keys) for keys in words]
            if words and not optional and not any(flags):
                raise ValueError(_nothing(pattern, [path_string(path) for path, _ in pairs]))
            return flags
        case "call", function:
            return [bool(function(path_string(path), leaf)) for path, leaf in pairs]
        case "where", function:
            return [bool(function(leaf)) for _, leaf in pairs]
        case "not", inner:
            return [not flag for flag in _evaluate(inner, words, pairs)]
    # Every part is evaluated, so that every pattern without a match is found.
    columns = [_evaluate(part, words, pairs) for part in key[1:]]
    return [*map(all if key[0] == "and" else any, zip(*columns, strict=True))]


def _write(key: tuple[Any, ...]) -> str:
    """Return the source code of an expression."""
    match key:
        case "glob", pattern, optional:
            return f"Paths({pattern!r}{', optional=True' * optional})"
        case "call", function:
            return f"Paths({function!r})"
        case "where", function:
            return f"Paths(where={function!r})"
        case "not", part:
            return f"~{_operand(part)}"
        case op, part:
            return _write(part)
        case "or", *parts if all(p[0] == "glob" and not p[2] for p in parts):
            return f"Paths({', '.join(repr(p[1]) for p in parts)})"
        case op, *parts:
            return (" & " if op == "and" else " | ").join(map(_operand, parts))
    raise AssertionError(key)


def _operand(key: tuple[Any, ...]) -> str:
    while key[0] in ("and", "or") and len(key) == 2:
        key = key[1]
    text = _write(key)
    is_one_call = key[0] == "or" and all(p[0] == "glob" and not p[2] for p in key[1:])
    return f"({text})" if key[0] in ("and", "or") and not is_one_call else text


def _nothing(pattern: str, known: list[str]) -> str:
    """Return the message for a pattern that matches nothing, with suggestions."""
    beneath = [p for p in known if _matches(f"{pattern}/**", _split(p))]
    if beneath:
        return (
            f"the pattern {pattern!r} matches no leaf: it names a subtree. Write "
            f"{pattern + '/**'!r} for the leaves in it, such as {beneath[0]!r}."
        )
    ends = [p for p in known if _matches(f"**/{pattern}", _split(p))]
    if ends:
        return (
            f"the pattern {pattern!r} matches no leaf: a pattern is matched from the root. Write "
            f"{'**/' + pattern!r} to match at any depth, such as {ends[0]!r}."
        )
    near = sorted(known, key=lambda p: -_likeness(pattern, p))[:_SHOWN]
    near = [p for p in near if _likeness(pattern, p) >= 0.4]
    listed = ", ".join(map(repr, near or known[:_SHOWN]))
    rest = len(known) - len(near or known[:_SHOWN])
    return (
        f"the pattern {pattern!r} matches no leaf. "
        + (f"Near it: {listed}." if near else f"The leaves are {listed}{', …' * (rest > 0)}.")
        + " A pattern that may match nothing is paths(…, optional=True)."
    )


def _likeness(pattern: str, path: str) -> float:
    """Return how similar a path is to a pattern: the best of all pairs of keys and of the whole."""
    plain = [k for k in _split(pattern) if k.strip("*?")]
    keys = _split(path)
    if not plain:
        return 0.0
    ratio = lambda a, b: difflib.SequenceMatcher(None, a.lower(), b.lower()).ratio()  # noqa: E731
    return sum(max((ratio(a, b) for b in keys), default=0.0) for a in plain) / len(plain)


@cached("tree.paths patterns", bound=1024, keyed_by="text of the pattern")
def _compiled(pattern: str) -> tuple[tuple[re.Pattern[str] | None, ...], ...]:
    """Return the alternatives of a pattern: for each, one regex per key, and None for `**`."""
    out = []
    for alternative in _expand(pattern):
        keys = _split(alternative)
        if "" in keys and alternative:
            raise ValueError(
                f"the pattern {pattern!r} has an empty key: write one slash between keys, none at "
                "the start or the end"
            )
        out.append(
            tuple(None if k == "**" else re.compile(_regex(k, pattern), re.DOTALL) for k in keys)
        )
    return tuple(out)


def _matches(pattern: str, keys: tuple[str, ...]) -> bool:
    return any(_fits(alternative, keys) for alternative in _compiled(pattern))


def _fits(parts: tuple[re.Pattern[str] | None, ...], keys: tuple[str, ...]) -> bool:
    # How many parts of the pattern the keys so far may have consumed.
    reached = _skip({0}, parts)
    for key in keys:
        step = set()
        for i in reached:
            if i == len(parts):
                continue
            part = parts[i]
            if part is None:
                step.add(i)
            elif part.fullmatch(key):
                step.add(i + 1)
        reached = _skip(step, parts)
        if not reached:
            return False
    return len(parts) in reached


def _skip(reached: set[int], parts: tuple[re.Pattern[str] | None, ...]) -> set[int]:
    """Add the positions after each `**`, which may match no key at all."""
    out = set(reached)
    for i, part in enumerate(parts):
        if part is None and i in out:
            out.add(i + 1)
    return out


def _tokens(text: str) -> list[str]:
    r"""Split a pattern into characters; escaped characters and bracket classes are one token."""
    return re.findall(r"\\.|\[[!^]?\]?[^\]]*\]|.", text, re.DOTALL)


def _split(pattern: str) -> tuple[str, ...]:
    """Split a pattern into keys; the empty pattern, the path of a single leaf, has none."""
    keys, current = [], ""
    for token in _tokens(pattern):
        if token == "/":
            keys.append(current)
            current = ""
        else:
            current += token
    return (*keys, current) if pattern else ()


def _expand(pattern: str) -> list[str]:
    """Return the patterns without braces that a pattern with braces stands for."""
    tokens = _tokens(pattern)
    if "{" not in tokens:
        if "}" in tokens:
            raise ValueError(f"the pattern {pattern!r} has a '}}' without a '{{' before it")
        return [pattern]
    start = tokens.index("{")
    depth, choices, current = 0, [], ""
    for end in range(start, len(tokens)):
        token = tokens[end]
        depth += (token == "{") - (token == "}")
        if depth == 0:
            choices.append(current)
            break
        if token == "," and depth == 1:
            choices.append(current)
            current = ""
        elif end > start:
            current += token
    else:
        raise ValueError(f"the pattern {pattern!r} has a '{{' without a '}}' after it")
    before, after = "".join(tokens[:start]), "".join(tokens[end + 1 :])
    return [whole for choice in choices for whole in _expand(before + choice + after)]


def _regex(key: str, pattern: str) -> str:
    """Return the regular expression of one key of a pattern."""
    out = ""
    for token in _tokens(key):
        if token[0] == "\\" and len(token) == 2:
            out += re.escape(token[1])
        elif token == "*":
            out += ".*"
        elif token == "?":
            out += "."
        elif token[0] == "[" and len(token) > 1:
            negated, body = token[1] in "!^", token[2 if token[1] in "!^" else 1 : -1]
            out += "[" + "^" * negated + re.sub(r"([]^[\\])", r"\\\1", body) + "]"
        elif token == "[":
            raise ValueError(f"the pattern {pattern!r} has a '[' without a ']' after it")
        else:
            out += re.escape(token)
    return out
