"""The path of a call under `jit`: arguments that were seen before are recognised in C++.

`Dispatcher` is the base of functions under `jit`.  In C++ it looks for the arguments in its `calls`
and runs the program that serves them; what it does not find goes to the method `general`.  Without
the C++ part every call goes there, and this module has nothing to remember.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np

from namoo import _config, errors
from namoo._accelerator import native
from namoo._config import config
from namoo.core.array import Deleted, EagerArray, PlacedArray, to_numpy
from namoo.core.avals import aval_of
from namoo.core.trace import context, eval_trace, wrap

_SCALARS = (bool, int, float, complex)


class _Dispatcher:
    """A function whose calls go to its method `general`."""

    calls: Any = None

    def general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError(type(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.general(args, kwargs)
        except (Exception, KeyboardInterrupt) as error:
            errors.tidy(error)
            raise


if native is None:
    Dispatcher: Any = _Dispatcher
else:
    Dispatcher = native.Dispatcher
    native.bind_call(
        context,
        eval_trace,
        config,
        vars(_config),
        EagerArray,
        PlacedArray,
        to_numpy,
        wrap,
        errors.tidy,
    )


def execute(run: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of an executable on arrays: NumPy's, or arrays of a device."""
    if getattr(run, "on_devices", False):
        from namoo.api.placement import with_buffers

        return with_buffers(run).buffers(operands)
    return run(numbers(operands))


def numbers(operands: Sequence[Any]) -> list[np.ndarray]:
    """NumPy's arrays behind operands; refuses those that were deleted."""
    values = [to_numpy(x) for x in operands]
    for value in values:
        if type(value) is Deleted:
            value._refuse()
    return values


def new_calls() -> Any:
    """An empty table of calls, or None where there is no C++ part to use it."""
    return None if native is None else native.Calls()


def remember(
    calls: Any,
    leaves: Sequence[Any],
    tree: Any,
    static: Sequence[tuple[int | str, Any]],
    run: Any,
    takes_arrays: bool,
    consts: Sequence[Any],
    weak: Sequence[bool],
    out_tree: Any,
    fixed_out: dict[int, Any],
    unused: Collection[int],
) -> None:
    """Let a program serve the arguments it was just called with.

    Args:
      calls: the table, from `new_calls`.
      leaves, tree: the arguments that are data, as a tree of positional ones and a dict.
      static: the other arguments, by number or by name.
      run: the executable.
      takes_arrays: it is given Arrays, in a tuple, and not a list of NumPy's.
      consts: its first operands.
      weak: the weak types of its results.
      out_tree: the structure of the function's result.
      fixed_out: the leaves of the result that are not arrays, by their places.
      unused: the numbers of leaves that the executable is not given.
    """
    # Programs that work on buffers of devices tell how to make one, and what theirs are.
    buffers = getattr(run, "buffers", None)
    described = [_describe(x, buffers is not None) for x in leaves]
    if None in described:
        return
    positions, names = tree.children()
    data = iter([(False, child._structure, None, None) for child in positions.children()])
    numbers = {n: (True, v, None, _hash(v)) for n, v in static if isinstance(n, int)}
    total = len(numbers) + len(positions.children())
    positional = [numbers[i] if i in numbers else next(data) for i in range(total)]
    code, *finish = (run,) if buffers is None else buffers.program.steps
    keys = names.node_data()[1]
    children = zip(keys, names.children(), strict=True)
    named = [(False, child._structure, k, None) for k, child in children]
    named += [(True, v, n, _hash(v)) for n, v in static if isinstance(n, str)]
    calls.add(
        trace_id=config.trace_id(),
        positional=positional,
        named=named,
        leaves=described,
        # Native code is called without Python in between.
        run=getattr(run, "runtime_entry", None) or code,
        takes_arrays=takes_arrays,
        consts=_constants(consts, takes_arrays, buffers),
        weak=weak,
        structure=out_tree._structure,
        fixed=sorted(fixed_out.items()),
        puts=_puts(described, len(consts), buffers, unused),
        results=None if buffers is None else buffers.results,
        finish=tuple(finish) or None,
        place=None if buffers is None else buffers.sharding,
        unused=unused,
    )


def _constants(consts: Sequence[Any], takes_arrays: bool, buffers: Any) -> list[Any]:
    if buffers is not None:
        return [put(c) for put, c in zip(buffers.puts, consts, strict=False)]
    return list(consts) if takes_arrays else [to_numpy(c) for c in consts]


def _puts(
    described: Sequence[Any], consts: int, buffers: Any, unused: Collection[int]
) -> list[Any] | None:
    """For each leaf what makes a buffer of it; None for leaves that the program is not given."""
    if buffers is None:
        return None
    rest = iter(buffers.puts[consts:])
    return [
        None if leaf[0] == "fixed" or i in unused else next(rest)
        for i, leaf in enumerate(described)
    ]


def _type_of(x: EagerArray) -> Any:
    from namoo.api.placement import the

    return the(aval_of(x))


def _describe(x: Any, buffers: bool) -> tuple[Any, ...] | None:
    """What of a leaf decides that a program serves it; None where only the general way can tell."""
    kind = type(x)
    if kind is PlacedArray:
        return ("placed", x._type, x._sharding) if buffers else None
    if kind is EagerArray:
        return ("array", x._value.shape, x._value.dtype, x._weak, _type_of(x) if buffers else None)
    if kind is np.ndarray:
        canonical = np.dtype(getattr(aval_of(x).dtype, "numpy", aval_of(x).dtype))
        return ("numpy", x.shape, x.dtype, x.dtype if canonical == x.dtype else canonical)
    if kind in _SCALARS:
        return ("scalar", kind, aval_of(x).dtype)
    if isinstance(x, np.generic):
        return None if x.dtype.names or x.dtype.kind in "SUmMO" else ("other", kind)
    return None if hasattr(x, "aval") or hasattr(x, "dtype") else ("fixed", kind, x, _hash(x))


def _hash(x: Any) -> int | None:
    """The hash of a value that could change; None if its identity says that it is the same.

    A class of a user's own may have a `__hash__` and attributes that can be set. The program of
    before does not serve such an object after a change, though it is the same object.
    """
    cls = type(x)
    parameters = getattr(cls, "__dataclass_params__", None)
    if isinstance(x, Enum) or (parameters is not None and parameters.frozen):
        return None
    return hash(x) if isinstance(cls.__hash__, FunctionType) else None
