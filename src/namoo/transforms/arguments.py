"""Arguments as trees: names, paths, and leaves that are not arrays."""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base.short import short
from namoo._base.source_context import at_user_line
from namoo.core.array import Array, EagerArray, owned
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from namoo.transforms.refs import Ref
from namoo.tree.metadata import is_immutable
from namoo.tree_util import keystr

_SCALARS = (bool, int, float, complex)


def is_array(x: Any) -> bool:
    """Whether a leaf is data; functions, strings and other values are part of the program."""
    kinds = (Array, np.ndarray, np.generic, ShapeDtypeStruct, ShapedArray, Ref)
    return isinstance(x, kinds) or type(x) in _SCALARS


def as_array_type(x: Any) -> Any:
    """Return a leaf of arguments; an object with only a shape and a dtype counts as an array."""
    if is_array(x) or not hasattr(x, "shape") or not hasattr(x, "dtype"):
        return x
    return ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))


class Static:
    """The leaves of a tree that are not arrays, by position."""

    __slots__ = ("count", "by_position")

    def __init__(self, leaves: Sequence[Any]):
        self.count = len(leaves)
        # Nearly all leaves are of this type, and the test is fast.
        self.by_position = {
            i: x for i, x in enumerate(leaves) if type(x) is not EagerArray and not is_array(x)
        }

    def dynamic(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the leaves that are arrays."""
        if not self.by_position:
            return list(leaves)
        return [x for i, x in enumerate(leaves) if i not in self.by_position]

    def join(self, dynamic: Sequence[Any]) -> list[Any]:
        """Merge the leaves that are arrays with the static ones."""
        if not self.by_position:
            return list(dynamic)
        rest, fixed = iter(dynamic), self.by_position
        return [fixed[i] if i in fixed else next(rest) for i in range(self.count)]

    def check_arguments(self, fun: Callable[..., Any], paths: Callable[[], Sequence[str]]) -> None:
        """Refuse leaves of arguments that could change without being noticed.

        Args:
            fun: the function that is transformed.
            paths: makes the names of all leaves; called only for a message.
        """
        for i, x in self.by_position.items():
            if not is_immutable(x):
                name, path = function_name(fun), paths()[i]
                if hasattr(x, "__jax_array__"):
                    raise ValueError(
                        "Triggering __jax_array__() during abstractification is no longer "
                        f"supported. Pass jnp.asarray(...) of {path}, of type {type(x)}, to {name}."
                    )
                argument = re.split(r"[.\[]", path, maxsplit=1)[0]
                remedy = f"jit({name}, static_argnames={argument!r})"
                raise TypeError(
                    f"Error interpreting argument to {name} as an abstract array. The problematic "
                    f"value is of type {type(x)} and was passed to the function at path {path}.\n"
                    + _advice(x, remedy + "    # part of the program: {} needs __hash__, __eq__")
                )

    def check_results(self, what: str, fun: Callable[..., Any], out: Any) -> None:
        """Refuse leaves of a result that could change without being noticed."""
        for i, x in self.by_position.items():
            if not is_immutable(x):
                path = keystr(tree_util.tree_leaves_with_path(out)[i][0])
                raise TypeError(
                    f"function {function_name(fun)} traced for {what} returned a value of type "
                    f"{type(x)} at output component {path or 'root'}, which is not a valid JAX "
                    "type.\n" + _advice(x, "return the arrays of the {}, in a tuple or a dict")
                )


_INSTEAD = {set: "a frozenset", bytearray: "bytes"}
_VALUES = {
    "to_numpy": ".to_numpy()",
    "to_dataarray": "{name: v.to_numpy() for name, v in dataset.items()}",
}
"""How to read the values of labelled arrays (pandas, polars, xarray), by a method they have."""


def _advice(x: Any, third: str) -> str:
    """Explain why a value cannot be a leaf under a transformation, and what to write instead."""
    while not is_array(x):  # find the mutable value inside a bound method or a partial
        parts = [getattr(x, "__self__", None)]
        if isinstance(x, functools.partial):
            parts = [x.func, *x.args, *x.keywords.values()]
        mutable = [part for part in parts if not is_immutable(part)]
        if not mutable:
            break
        x = mutable[0]
    name = type(x).__name__
    if is_array(x):
        why = "A functools.partial that holds an array hides it: namoo.tree_util.Partial is a tree."
    elif type(x) in _INSTEAD:
        why = f"{name} is not a valid JAX type, because it can change. Pass {_INSTEAD[type(x)]}."
    elif method := next((m for m in _VALUES if callable(getattr(x, m, None))), None):
        why = (
            f"{name} is not a valid JAX type: labels cannot be part of a program. Use the values: "
            + _VALUES[method]
        )
    else:
        why = (
            f"{name} is not a valid JAX type: its class is no registered tree, so its arrays are "
            "hidden, and it can change without being noticed. Write one of\n"
            "    @namoo.struct.dataclass    # or a namoo.Module: the fields are data\n"
            f"    class {name}: ...\n"
            f"    namoo.tree_util.register_dataclass({name})    # if it is a dataclass already\n"
            f"    {third.format(name)}"
        )
    return why + at_user_line()


def function_name(fun: Callable[..., Any]) -> str:
    """Return a function's name, for messages and programs."""
    names = getattr(fun, "__name__", None), getattr(getattr(fun, "func", None), "__name__", None)
    return next((n for n in names if n and isinstance(n, str)), type(fun).__name__)


def wraps(fun: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`functools.wraps` for any callable; a name that is not a string is skipped."""
    names = [n for n in ("__name__", "__qualname__") if isinstance(getattr(fun, n, None), str)]
    return functools.wraps(fun, assigned=("__module__", "__doc__", *names))


def signature(fun: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function; None for built-ins that have none."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def parameter_names(fun: Callable[..., Any]) -> list[str]:
    """Return the names of a function's parameters; none where they are unknown."""
    if type(fun) is FunctionType and not fun.__dict__:
        code = fun.__code__
        # Other parameters are in another order in the code object.
        if not code.co_kwonlyargcount and not code.co_flags & inspect.CO_VARARGS:
            count = code.co_argcount + bool(code.co_flags & inspect.CO_VARKEYWORDS)
            return list(code.co_varnames[:count])
    known = signature(fun)
    return [*known.parameters] if known else []


def argument_paths(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> list[str]:
    """Return the name of every leaf of the arguments, as in `params['w'][0]`."""
    out = []
    for name, value in (
        *zip(argument_names(fun, args), args, strict=True),
        *sorted(kwargs.items()),
    ):
        out += leaf_paths(name, value)
    return out


def leaf_paths(name: str, value: Any) -> list[str]:
    """Return the name of every leaf of one argument."""
    return [name + keystr(path) for path, _ in tree_util.tree_leaves_with_path(value)]


def argument_names(fun: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    """Return the name of every positional argument."""
    names: list[str] = []
    sig = signature(fun)
    if sig is not None:
        for p in sig.parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(len(args) - len(names))]
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
    return [*names, *(f"args[{i}]" for i in range(len(names), len(args)))][: len(args)]


def argnums_tuple(argnums: Any, what: str) -> tuple[int, ...]:
    """Return `argnums` as a tuple of integers."""
    try:
        return (operator.index(argnums),)
    except TypeError:
        pass
    if not isinstance(argnums, (tuple, list)) or not all(isinstance(i, int) for i in argnums):
        raise TypeError(f"{what} must be an integer or a tuple of integers, got {argnums!r}.")
    return tuple(argnums)


def require_callable(fun: Any, what: str) -> None:
    """Refuse a value that is not callable, and explain what the first argument is for."""
    if isinstance(fun, staticmethod):
        raise TypeError(
            f"staticmethod arguments are not supported, got {fun!r}: write @staticmethod above "
            f"@{what}."
        )
    if not callable(fun):
        raise TypeError(
            f"Expected a callable value: {what} expects a function as its first argument, got "
            f"{short(fun)} of type {type(fun).__name__}. Write {what}(f)(x), not {what}(f(x))."
        )
    if inspect.isgeneratorfunction(fun):
        raise TypeError(
            f"Expected a function, got a generator function: {what} cannot transform "
            f"{function_name(fun)}, which yields its results. Return them in a list."
        )
    if inspect.iscoroutinefunction(fun):
        raise TypeError(
            f"Expected a function, got a coroutine function: {what} cannot transform "
            f"{function_name(fun)}, which is awaited. Write it with def, and await outside of it."
        )


def to_array(x: Any) -> Any:
    """Convert an operand to an array; tracers and NumPy arrays of float0 stay unchanged."""
    if isinstance(x, Array) or (isinstance(x, np.ndarray) and x.dtype.names):
        return x
    return owned(x, aval_of(x).weak_type)
