"""The call path of a function under `jit`: C++ recognises arguments that were seen before.

`Dispatcher` is the base class of functions under `jit`. The C++ version looks the arguments up in
its table `calls` and runs the program found there; on a miss it calls the method `general`. Without
the C++ part every call goes to `general`, and there is no table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np

from namoo._base import config as _config
from namoo._base.config import config
from namoo._base.deleted import Deleted
from namoo._base.runtime import native
from namoo._base.source_context import hide_internal_frames
from namoo.core.array import EagerArray, PlacedArray, to_numpy
from namoo.core.avals import aval_of
from namoo.core.trace import context, eval_trace, wrap

_SCALARS = (bool, int, float, complex)


class _Dispatcher:
    """The Python version: every call goes to the method `general`."""

    calls: Any = None

    def general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError(type(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.general(args, kwargs)
        except (Exception, KeyboardInterrupt) as error:
            hide_internal_frames(error)
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
        hide_internal_frames,
    )


def execute(run: Any, operands: Sequence[Any]) -> list[Any]:
    """Run an executable on arrays; the results are NumPy arrays, or arrays on a device."""
    if getattr(run, "on_devices", False):
        from namoo.devices.buffers import buffers_of

        return buffers_of(run)(operands)
    return run(numbers(operands))


def numbers(operands: Sequence[Any]) -> list[np.ndarray]:
    """Return the NumPy arrays of operands; refuse those that were deleted."""
    values = [to_numpy(x) for x in operands]
    for value in values:
        if type(value) is Deleted:
            value._refuse()
    return values


def new_calls() -> Any:
    """Return an empty table of calls, or None without the C++ part."""
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
    shapes: Sequence[Any] | None = None,
) -> None:
    """Add a call to the table: these arguments are served by this program.

    Args:
        calls: the table, made by `new_calls`.
        leaves, tree: the arguments that are data, as a tree of positional ones and a dict.
        static: the static arguments, by position or by name.
        run: the executable.
        takes_arrays: whether it takes a tuple of `Array`s instead of a list of NumPy arrays.
        consts: its first operands.
        weak: the weak types of its results.
        out_tree: the structure of the function's result.
        fixed_out: the leaves of the result that are not arrays, by position.
        unused: the positions of leaves that the executable does not take.
        shapes: for arrays with dynamic dimensions their shapes, with -1 - k as the size of
            dimension k; None for the others.
    """
    # Programs that work on device buffers make a buffer of each input in their own way.
    buffers = getattr(run, "buffers", None)
    described: list[Any] = [_describe(x, buffers is not None) for x in leaves]
    if None in described:
        return
    for i, shape in enumerate(shapes or ()):
        if shape is not None:
            kind, _, *rest = described[i]
            described[i] = (kind, shape, *rest)
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
        # C++ calls native code directly, without Python in between.
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
    """Return for each leaf the function that makes its buffer; None for unused leaves."""
    if buffers is None:
        return None
    rest = iter(buffers.puts[consts:])
    return [
        None if leaf[0] == "fixed" or i in unused else next(rest)
        for i, leaf in enumerate(described)
    ]


def _type_of(x: EagerArray) -> Any:
    from namoo.devices.buffers import intern

    return intern(aval_of(x))


def _describe(x: Any, buffers: bool) -> tuple[Any, ...] | None:
    """Describe a leaf for the C++ fast path; None if only `general` can handle it."""
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
    """Return the hash of a value that could change; None if identity implies equality.

    A user-defined class may have a `__hash__` and attributes that can be set. After such a change
    the same object needs another program.
    """
    cls = type(x)
    parameters = getattr(cls, "__dataclass_params__", None)
    if isinstance(x, Enum) or (parameters is not None and parameters.frozen):
        return None
    return hash(x) if isinstance(cls.__hash__, FunctionType) else None
