"""Explain why a function was traced again: how a call differs from the nearest earlier one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from namoo._base.config import TRACED
from namoo._base.source_context import Source
from namoo.core.avals import ShapedArray
from namoo.tree import diff
from namoo.tree_util import PyTreeDef


class Signature:
    """Everything that decides whether a traced program can be used for a call.

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
    """One trace of a function.

    Attributes:
        reasons: how the call differs from the nearest earlier one, argument by argument.
        source: the user's line that made the call.
        seconds: how long tracing took.
    """

    __slots__ = ("reasons", "seconds", "source")

    def __init__(self, reasons: tuple[str, ...], source: Source | None, seconds: float):
        self.reasons, self.source, self.seconds = reasons, source, seconds

    def __str__(self) -> str:
        where = f" at {self.source}" if self.source else ""
        head = f"traced{where} ({self.seconds * 1e3:.1f} ms)"
        if not self.reasons:
            return f"{head}: never seen function"
        return "\n".join([f"{head}, because", *(f"  {r}" for r in self.reasons)])

    __repr__ = __str__


class Explanation(list):
    """The traces of a function, oldest first; prints as one text."""

    def __init__(self, name: str, items: Sequence[Retrace]):
        super().__init__(items)
        self.name = name

    def __str__(self) -> str:
        count = f"{self.name}: traced {len(self)} time{'s' * (len(self) != 1)}"
        return "\n".join([count, *(f"{i + 1}. {t}" for i, t in enumerate(self))])

    __repr__ = __str__


Paths = Callable[[], Sequence[str]]
"""A function that returns the names of all leaves."""


def reasons(new: Signature, paths: Paths, earlier: Sequence[Signature]) -> tuple[str, ...]:
    """Return how a call differs from the nearest of the earlier ones; empty for the first call."""
    return min((tuple(_differences(old, new, paths)) for old in earlier), key=len, default=())


def _differences(old: Signature, new: Signature, paths: Paths):
    if old.tree != new.tree:
        for difference in diff(old.tree, new.tree)[:5]:
            yield f"different input pytree, {difference}"
    else:
        for path, a, b in zip(paths(), old.avals, new.avals, strict=True):
            if a != b:
                yield f"different input types: at {path}, {_change(a, b)}"
    for (name, a), (_, b) in zip(old.static, new.static, strict=False):
        # As the cache does: values of other classes or hashes are not compared, which may raise.
        if type(a) is not type(b) or hash(a) != hash(b) or a != b:
            yield f"different value of static args: at {name}, now {b!r} and before {a!r}"
    if len(old.static) != len(new.static):
        yield "different number of static args"
    if old.axes != new.axes:
        yield (
            f"different tracing context: at the named axes, now {dict(new.axes)} and before "
            f"{dict(old.axes)}"
        )
    if old.config != new.config:
        for name, a, b in zip(TRACED, old.config, new.config, strict=True):
            if a != b:
                yield f"different tracing context: at {name}, now {b} and before {a}"


def _change(a: Any, b: Any) -> str:
    if isinstance(a, ShapedArray) and isinstance(b, ShapedArray):
        if (a.shape, a.dtype) == (b.shape, b.dtype):
            now, before = (f"{x.str_short()}{{weak_type={x.weak_type}}}" for x in (b, a))
            return f"now {now} and before {before} (a Python number is weak, an array is not)"
    return f"now {_words(b)} and before {_words(a)}"


def _words(x: Any) -> str:
    return f"the static value {x.value!r}" if isinstance(x, Fixed) else x.str_short()
