"""Functions of several operations, whose repeated calls run as one function of NumPy arrays.

`jnp.median` binds forty operations; each of them costs a microsecond or two beyond NumPy's work on
a small array.  When such a function has been called `CALLS` times with the same types, it is
traced, and its program is written as a Python function of NumPy arrays (`memo.numpy_program`).
Later calls run that: the same operations in the same order, with nothing between them.

The operations of the function may depend on types, on other arguments and on settings alone, as
for `memo.recalled`; a function that reads values is found out when it is traced.  In C++, where it
is built, the arguments are described and the program is found in 0.2 microseconds.
"""

from __future__ import annotations

import itertools
import marshal
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from namoo._base.caches import register
from namoo._base.config import config
from namoo._base.floating_errors import (
    floating_errors_ignored,
    floating_errors_off,
    set_floating_errors,
)
from namoo._base.lazy import later
from namoo._base.runtime import native
from namoo._base.source_context import hide_internal_frames
from namoo.core.array import Array, EagerArray
from namoo.core.trace import context, eval_trace
from namoo.eager.shortcuts import Function

tree = later("namoo.tree")

CALLS = 8
"""The call that is traced.  Tracing takes as long as about twenty calls."""
_LIMIT = 2048
_programs: dict[bytes, Any] = register(
    "eager.repeated programs",
    {},
    bound=_LIMIT,
    keyed_by="function, settings, abstract values, other arguments",
)
"""The NumPy function, the weak types of its results and what makes the result from their list; or
None where the general function must run."""
_counts: dict[bytes, int] = register(
    "eager.repeated counts",
    {},
    bound=_LIMIT,
    keyed_by="as the programs",
)
"""How often a call was made that has no program yet."""
_numbers = itertools.count()


def repeated(general: Function) -> Function:
    """Let a function of arrays run as one NumPy function when its calls are repeated.

    Args:
        general: the function.  It returns arrays, or lists, tuples or other trees of arrays.

    Returns:
        A function of the same arguments.
    """
    number = next(_numbers)

    @wraps(general)
    def quick(*args: Any, **options: Any) -> Any:
        try:
            if context.trace is not eval_trace:
                return general(*args, **options)
            found = run_repeated(_programs, number, config.trace_id(), args, options)
            if type(found) is not bytes:
                return general(*args, **options) if found is None else found
            out = general(*args, **options)
            _count(found, general, args, options, out)
            return out
        except (Exception, KeyboardInterrupt) as error:
            hide_internal_frames(error)
            raise

    quick.is_entry_point = True  # type: ignore[attr-defined]
    return quick


def _count(key: bytes, general: Function, args: tuple, options: dict[str, Any], out: Any) -> None:
    """Count a call without a program; make one if there were enough."""
    count = _counts.get(key, 0) + 1
    if count < CALLS:
        if len(_counts) >= _LIMIT:
            _counts.clear()
        _counts[key] = count
        return
    _counts.pop(key, None)
    if len(_programs) >= _LIMIT:
        _programs.clear()
    _programs[key] = _program(general, args, options, out)


def _program(general: Function, args: tuple, options: dict[str, Any], out: Any) -> Any:
    """The entry of a call that returned `out`."""
    from namoo.memo.numpy_program import compile_to_numpy
    from namoo.memo.recalled import traced

    operands: list[Array] = []
    _add_arrays([*args, *options.values()], operands)
    leaves, structure = tree.flatten(out)
    if not all(type(x) is EagerArray for x in leaves):
        return None

    def flat(*values: Any) -> list[Any]:
        rest = iter(values)
        new = [_with_arrays(x, rest) for x in args]
        return tree.flatten(
            general(*new, **{name: _with_arrays(x, rest) for name, x in options.items()})
        )[0]

    program = traced(flat, [x.aval for x in operands])
    if program is None or program.out_avals != [x.aval for x in leaves]:
        return None
    finish: Any = lambda leaves: tree.unflatten(structure, leaves)  # noqa: E731
    if type(out) in (list, tuple) and all(map(isinstance, out, itertools.repeat(Array))):
        finish = type(out)
    elif isinstance(out, Array):
        finish = None
    return compile_to_numpy(program), tuple([x._weak for x in leaves]), finish


def _add_arrays(x: Any, found: list[Array]) -> None:
    """Collect the arrays of an argument, in the order in which `run_repeated` passes them."""
    if isinstance(x, Array):
        found.append(x)
    elif type(x) in (list, tuple):
        for y in x:
            _add_arrays(y, found)


def _with_arrays(x: Any, values: Any) -> Any:
    """The argument with other arrays."""
    if isinstance(x, Array):
        return next(values)
    if type(x) in (list, tuple):
        return type(x)([_with_arrays(y, values) for y in x])
    return x


class _NotComparable(Exception):
    """An argument without a key: the general function must run."""


_PLAIN = frozenset([type(None), bool, int, float, str, type(...)])


def _described(x: Any, values: list[np.ndarray]) -> Any:
    """An argument as part of a key: the type of an array, and another argument itself."""
    if type(x) is EagerArray:
        value = x._value
        if type(value) is not np.ndarray or value.dtype.kind == "V" and value.dtype.names:
            raise _NotComparable
        values.append(value)
        return "array", value.dtype.num, value.dtype.isnative, x._weak, value.shape
    if type(x) in (list, tuple):
        return type(x).__name__, [_described(y, values) for y in x]
    if type(x) not in _PLAIN:
        raise _NotComparable
    return x


def _run_repeated(
    programs: dict[bytes, Any], number: int, settings: int, args: Sequence, options: dict[str, Any]
) -> Any:
    """The result of a call that has a program; the key of one that has none yet; or None."""
    values: list[np.ndarray] = []
    try:
        described = [_described(x, values) for x in [*args, *options.values()]]
    except _NotComparable:
        return None
    # 1, 1.0 and True have different texts, as have 0.0 and -0.0.
    key = marshal.dumps([number, settings, len(args), [*options], described], 2)
    entry = programs.get(key, key)
    if type(entry) is not tuple:
        return entry
    compute, weak, finish = entry
    with floating_errors_ignored():
        outs = compute(*values)
    results = list(map(EagerArray, map(np.asarray, outs), weak))
    return results[0] if finish is None else finish(results)


run_repeated: Callable[..., Any] = _run_repeated
_floating_errors = getattr(set_floating_errors, "__self__", None)
if native is not None and _floating_errors is not None:
    native.bind_repeated(EagerArray, _floating_errors, floating_errors_off)
    run_repeated = native.run_repeated
