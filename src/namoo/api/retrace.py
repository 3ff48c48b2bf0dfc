"""Why a function was traced again: the nearest earlier call, and what differs from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from namoo import errors
from namoo._config import TRACED
from namoo.core.avals import ShapedArray
from namoo.tree import diff
from namoo.tree_util import PyTreeDef


class Signature:
    """What decides whether a traced program can be used for a call.

    Attributes:
      tree: the structure of the arguments.
      avals: the type of each array leaf; for other leaves, `Fixed` values.
      static: names and values of static arguments.
      axes, config: the named axes and the settings.
    """

    __slots__ = ("avals", "axes", "config", "static", "tree")

    def __init__(self, tree: PyTreeDef, avals: tuple, static: tuple, axes: tuple, config: tuple):
        self.tree, self.avals, self.static = tree, avals, static
        self.axes, self.config = axes, config


class Fixed(NamedTuple):
    """A leaf that is not an array: part of the program."""

    kind: type
    value: Any


class Retrace:
    """One tracing of a function.

    Attributes:
      reasons: how the call differs from the nearest earlier one, argument by argument.
      source: the user's line that made the call.
      seconds: how long tracing took.
    """

    __slots__ = ("reasons", "seconds", "source")

    def __init__(self, reasons: tuple[str, ...], source: errors.Source | None, seconds: float):
        self.reasons, self.source, self.seconds = reasons, source, seconds

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source else ""
        head = f"traced{where} ({self.seconds * 1e3:.1f} ms)"
        if not self.reasons:
            return f"{head}: first call"
        return "\n".join([f"{head}, because", *(f"  {r}" for r in self.reasons)])

    __repr__ = __str__


class Explanation(list):
    """The tracings of a function, oldest first; prints as one text."""

    def __init__(self, name: str, items: Sequence[Retrace]):
        super().__init__(items)
        self.name = name

    def __str__(self) -> str:
        count = f"{self.name}: traced {len(self)} time{'s' * (len(self) != 1)}"
        return "\n".join([count, *(f"{i + 1}. {t}" for i, t in enumerate(self))])

    __repr__ = __str__


Paths = Callable[[], Sequence[str]]
"""Makes the names of all leaves."""


def reasons(new: Signature, paths: Paths, earlier: Sequence[Signature]) -> tuple[str, ...]:
    """How a call differs from the nearest of the earlier ones; empty for the first."""
    return min((tuple(_differences(old, new, paths)) for old in earlier), key=len, default=())


def _differences(old: Signature, new: Signature, paths: Paths):
    if old.tree != new.tree:
        for difference in diff(old.tree, new.tree)[:5]:
            yield f"the structure of the arguments differs {difference}"
    else:
        for path, a, b in zip(paths(), old.avals, new.avals, strict=True):
            if a != b:
                yield f"{path}: {_change(a, b)}"
    for (name, a), (_, b) in zip(old.static, new.static, strict=False):
        if a != b:
            yield f"the static argument {name} changed: {a!r} → {b!r}"
    if len(old.static) != len(new.static):
        yield "other static arguments were given"
    if old.axes != new.axes:
        yield f"other named axes are in scope: {dict(old.axes)} → {dict(new.axes)}"
    if old.config != new.config:
        for name, a, b in zip(TRACED, old.config, new.config, strict=True):
            if a != b:
                yield f"the setting {name} changed: {a!r} → {b!r}"


def _change(a: Any, b: Any) -> str:
    if isinstance(a, ShapedArray) and isinstance(b, ShapedArray):
        if (a.shape, a.dtype) == (b.shape, b.dtype):
            words = {False: "not weak", True: "weak"}
            return (
                f"weak type changed: {a.str_short()} {words[a.weak_type]} → {words[b.weak_type]} "
                "(a Python number is weak, an array is not)"
            )
        what = "shape" if a.dtype == b.dtype else "dtype" if a.shape == b.shape else "type"
        return f"{what} changed: {a.str_short()} → {b.str_short()}"
    return f"{_words(a)} → {_words(b)}"


def _words(x: Any) -> str:
    return f"the static value {x.value!r}" if isinstance(x, Fixed) else f"an array {x.str_short()}"
