"""The layers of a model as they are called: what each returns, holds and costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from namoo import tree
from namoo.api.jit import jit
from namoo.core.array import Array
from namoo.core.avals import ShapeDtypeStruct, aval_of
from namoo.core.trace import Tracer
from namoo.module.module import Module
from namoo.tree.paths import path_string

_ROUNDS = 20
_SECONDS = 0.02


@dataclass
class Layer:
    """A call of a layer.

    Attributes:
        path: where the layer is in the model; "" for the model itself and for layers that are made
            while it runs.
        kind: the name of its class.
        depth: how many layers are around it.
        output: the types of its result, as programs print them.
        parameters: how many numbers it holds, those of inner layers included.
        repeated: whether it was called before, so that its parameters are already counted.
        flops: the approximate number of operations; None where the engine does not know.
        seconds: the fastest call of the layer by itself, compiled; None where the values of its
            arguments were not known.
    """

    path: str
    kind: str
    depth: int
    output: str
    parameters: int
    repeated: bool
    flops: float | None = None
    seconds: float | None = None


def called_layers(model: Any, args: Sequence[Any]) -> list[Layer]:
    """Call a model once, and return its layers in the order of their calls.

    Args:
        model: a `Module`.
        args: its arguments, arrays or `ShapeDtypeStruct`s.
    """
    paths: dict[int, str] = {}
    kinds: dict[type, None] = {type(model): None}
    for path, module in _modules(model):
        paths.setdefault(id(module), path_string(path))
        kinds[type(module)] = None
    found: list[Layer] = []
    calls: list[tuple[Any, Any, Any]] = []
    seen: set[int] = set()
    depth = 0

    def recording(call: Callable) -> Callable:
        def recorded(self: Any, *values: Any, **options: Any) -> Any:
            nonlocal depth
            name = type(self).__name__
            layer = Layer(paths.get(id(self), ""), name, depth, "", _size(self), id(self) in seen)
            seen.add(id(self))
            found.append(layer)
            calls.append(tree.map(_known, (self, values, options)))
            depth += 1
            try:
                out = call(self, *values, **options)
            finally:
                depth -= 1
            layer.output = ", ".join(
                aval_of(x).str_short() for x in tree.leaves(out) if isinstance(x, Array)
            )
            return out

        return recorded

    with _replaced(list(kinds), recording):
        if any(isinstance(x, ShapeDtypeStruct) for x in tree.leaves(args)):
            jit(lambda *values: model(*values)).eval_shape(*args)
        else:
            model(*args)
    for layer, call in zip(found, calls, strict=True):
        layer.flops, layer.seconds = _cost(*call)
    return found


def _modules(model: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the modules inside a model, with their paths."""

    def inside(x: Any) -> bool:
        return isinstance(x, Module) and x is not model

    for path, x in tree.leaves_with_path(model, is_leaf=inside):
        if isinstance(x, Module):
            yield path, x
            for more, inner in _modules(x):
                yield (*path, *more), inner


@contextmanager
def _replaced(kinds: Sequence[type], wrap: Callable) -> Iterator[None]:
    """Context manager: wrap the calls of some classes."""
    own = {kind: vars(kind).get("__call__") for kind in kinds if hasattr(kind, "__call__")}  # noqa: B004
    wrapped = {kind: wrap(kind.__call__) for kind in own}
    try:
        for kind, call in wrapped.items():
            setattr(kind, "__call__", call)  # noqa: B010
        yield
    finally:
        for kind, call in own.items():
            if call is None:
                del kind.__call__
            else:
                setattr(kind, "__call__", call)  # noqa: B010


def _known(x: Any) -> Any:
    """A value, or its type where it is traced."""
    return ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, Tracer) else x


def _size(module: Any) -> int:
    return sum(int(np.size(x)) for x in tree.leaves(module) if isinstance(x, (Array, np.ndarray)))


class _Call:
    """Calls a layer. Each is traced once, so warnings about repeated tracing do not apply."""

    def __call__(self, layer: Any, args: Any, options: Any) -> Any:
        return layer(*args, **options)


def _cost(layer: Any, args: Any, options: Any) -> tuple[float | None, float | None]:
    """Operations and seconds of a call."""
    call = jit(_Call())
    compiled = call.lower(layer, args, options).compile()
    costs = compiled.cost_analysis()
    flops = costs["flops"] if costs else None
    if any(isinstance(x, ShapeDtypeStruct) for x in tree.leaves((layer, args, options))):
        return flops, None
    best, until = float("inf"), time.perf_counter() + _SECONDS
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        call(layer, args, options)
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() > until:
            break
    return flops, best
