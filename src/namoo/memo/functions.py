"""Remembered programs of the functions that users give to `scan`, `cond` and other loops."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary, ref

from namoo._base.caches import register
from namoo._base.config import config
from namoo.core.trace import Tracer, context
from namoo.memo.identity import reads
from namoo.transforms.refs import is_inner

_LIMIT = 1024
_LIMIT_OF_TYPES = 32
_programs: WeakKeyDictionary[Any, dict[Any, tuple[list[Any], Any]]] = register(
    "memo.functions programs of branches and bodies",
    WeakKeyDictionary(),
    bound=_LIMIT,
    keyed_by="function, then structure and types of the arguments, settings",
)
"""For each function its programs, each with the objects that the function read."""


def program_of(function: Any, key: Any, make: Callable[[], Any]) -> Any:
    """Return the program of a function, which is remembered while the function lives.

    It is traced again if a name that the function reads means another object than before.

    Args:
        function: the user's function.
        key: the types of the arguments, and what else decides the program; the last part is a tuple
          of abstract values.
        make: traces the function; the result has the constants `consts`.
    """
    if type(function) is not FunctionType or not config.memo:
        return make()
    scope = tuple(context.axes.items()), context.checked, context.mesh, config.trace_id()
    found = *key, tuple(a.vma for a in key[-1]), scope
    try:
        table = _programs.setdefault(function, {})
        entry = table.get(found)
    except TypeError:  # a structure that holds something without a hash
        return make()
    if entry is not None and _same(entry[0], reads(function)):
        return entry[1]
    program = make()
    # A constant that belongs to a transformation outside is only good for this call.
    if not any(isinstance(c, Tracer) or is_inner(c) for c in program.consts):
        if len(_programs) > _LIMIT:
            _programs.clear()
        if len(table) >= _LIMIT_OF_TYPES:
            table.clear()
        # Read after tracing: the function may change what it reads, such as a count of its traces.
        table[found] = [*map(_weakly, reads(function))], program
    return program


def _weakly(x: Any) -> Any:
    """A weak reference, if the object supports one: it may itself refer to the function."""
    try:
        return ref(x)
    except TypeError:
        return x


def _same(before: list[Any], now: list[Any]) -> bool:
    return len(before) == len(now) and all(
        (a() if type(a) is ref else a) is b for a, b in zip(before, now, strict=True)
    )
