"""Arguments as trees: names, paths, and leaves that are not arrays."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo.core.array import Array, EagerArray, to_numpy
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from namoo.tree_util import keystr

_SCALARS = (bool, int, float, complex)


def is_array(x: Any) -> bool:
    """Whether a leaf is data; functions, strings and other objects are part of the program."""
    kinds = (Array, np.ndarray, np.generic, ShapeDtypeStruct, ShapedArray)
    return isinstance(x, kinds) or type(x) in _SCALARS


class Static:
    """Leaves of a tree that are not arrays, with their places."""

    __slots__ = ("count", "places")

    def __init__(self, leaves: Sequence[Any]):
        self.count = len(leaves)
        # Nearly all leaves are of this type, which is quick to tell.
        self.places = {
            i: x for i, x in enumerate(leaves) if type(x) is not EagerArray and not is_array(x)
        }

    def dynamic(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves that are arrays."""
        if not self.places:
            return list(leaves)
        return [x for i, x in enumerate(leaves) if i not in self.places]

    def join(self, dynamic: Sequence[Any]) -> list[Any]:
        """All leaves, from those that are arrays."""
        if not self.places:
            return list(dynamic)
        rest = iter(dynamic)
        return [self.places[i] if i in self.places else next(rest) for i in range(self.count)]


def function_name(fun: Callable) -> str:
    """A function's name, for messages and programs."""
    return getattr(fun, "__name__", None) or getattr(
        getattr(fun, "func", None), "__name__", type(fun).__name__
    )


def signature(fun: Callable) -> inspect.Signature | None:
    """The signature of a function; None for built-ins that have none."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def argument_paths(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """The name of every leaf of the arguments: `params['w'][0]`."""
    names: list[str] = []
    sig = signature(fun)
    if sig is not None:
        for p in sig.parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(len(args) - len(names))]
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
    names += [f"args[{i}]" for i in range(len(names), len(args))]
    out = []
    for name, value in (*zip(names, args, strict=False), *sorted(kwargs.items())):
        out += [name + keystr(path) for path, _ in tree_util.tree_leaves_with_path(value)]
    return out


def argnums_tuple(argnums: Any, what: str) -> tuple[int, ...]:
    """`argnums` as a tuple of integers."""
    try:
        return (operator.index(argnums),)
    except TypeError:
        pass
    if not isinstance(argnums, (tuple, list)) or not all(isinstance(i, int) for i in argnums):
        raise TypeError(f"{what} must be an integer or a tuple of integers, got {argnums!r}.")
    return tuple(argnums)


def require_callable(fun: Any, what: str) -> None:
    """Refuse what is not a function, saying what the first argument is for."""
    if not callable(fun):
        raise TypeError(
            f"{what} expects a function as its first argument, got {fun!r} of type "
            f"{type(fun).__name__}."
        )
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"{what} cannot transform the generator function {function_name(fun)}.")


def to_array(x: Any) -> Any:
    """An array around a concrete operand; tracers stay."""
    if isinstance(x, Array):
        return x
    return EagerArray(to_numpy(x), aval_of(x).weak_type)
