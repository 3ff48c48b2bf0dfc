"""When two function objects are the same function.

`jit(obj.method)`, `jit(partial(f, 2))` and `jit(lambda x: x + 1)` make a new function object each
time.  Programs traced for one may serve the other if nothing that tracing reads can differ: code,
defaults, closures, the globals that the code names, bound objects.  A function with anything that
could change unnoticed is only equal to itself.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable
from typing import Any

from namoo._base.caches import cached
from namoo._base.source_context import is_hidden
from namoo.core.array import EagerArray

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_LIMIT = 200
_LOAD_GLOBAL, _LOAD_NAME = dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]


class _Unshareable(Exception):
    """Something may change without being noticed."""


def function_key(fun: Callable) -> tuple[Any, list[Any]] | None:
    """A hashable key that equal functions share, and the objects it names by identity.

    None if the function is only equal to itself.
    """
    walk = _Walk()
    try:
        key = walk.function(fun)
    except _Unshareable:
        return None
    return key, walk.kept


class _Walk:
    def __init__(self):
        self.kept: list[Any] = []
        self.active: dict[int, int] = {}
        """The objects that are being visited, each with a number."""
        self.visited = 0

    def same(self, x: Any) -> tuple:
        """A key of an object that never changes: its identity."""
        self.kept.append(x)
        return "id", id(x)

    def value(self, x: Any) -> Any:
        self.visited += 1
        if self.visited > _LIMIT:
            raise _Unshareable
        if isinstance(x, _ATOMS):
            return type(x), x
        if isinstance(x, (type, types.ModuleType, types.BuiltinFunctionType)) or (
            type(x) is EagerArray
        ):
            return self.same(x)
        if isinstance(x, (tuple, frozenset)) and type(x) in (tuple, frozenset):
            return type(x), tuple(map(self.value, x))
        if isinstance(x, (types.FunctionType, types.MethodType, functools.partial)):
            return self.function(x)
        return self.object(x)

    def object(self, x: Any) -> Any:
        """A key of any other object.

        Objects of namoo are immutable; some list their parts with `_namoo_identity`.  Of other
        objects, all attributes are part of the key.
        """
        cls = type(x)
        if hasattr(cls, "__func__") and hasattr(cls, "__self__"):  # a bound method of a module
            return "method", self.function(x.__func__), self.value(x.__self__)
        if cls.__module__.partition(".")[0] == "namoo" or getattr(cls, "_is_immutable", False):
            parts = x._namoo_identity() if hasattr(cls, "_namoo_identity") else None
            if parts is None or _is_own(parts[0]):
                return self.same(x)
            return self.entered(x, (cls, parts))
        if id(x) in self.active or not hasattr(x, "__dict__") or isinstance(x, (list, dict, set)):
            raise _Unshareable
        return self.same(x), self.entered(x, tuple(sorted(vars(x).items())))

    def entered(self, x: Any, parts: tuple) -> Any:
        """A key of an object's parts, which may refer back to the object."""
        if id(x) in self.active:
            return "recursive", self.active[id(x)]
        self.active[id(x)] = len(self.active)
        key = self.value(parts)
        del self.active[id(x)]
        return key

    def function(self, fun: Any) -> Any:
        if isinstance(fun, functools.partial):
            keywords = tuple((k, self.value(v)) for k, v in sorted(fun.keywords.items()))
            return "partial", self.value(fun.func), tuple(map(self.value, fun.args)), keywords
        if isinstance(fun, types.MethodType):
            return "method", self.function(fun.__func__), self.value(fun.__self__)
        if not isinstance(fun, types.FunctionType):
            return self.value(fun)
        if _is_own(fun):
            return self.same(fun)
        code = fun.__code__
        if id(fun) in self.active:
            return "recursive", self.active[id(fun)]
        self.active[id(fun)] = len(self.active)
        cells = tuple(self.cell(c) for c in fun.__closure__ or ())
        key = (
            code,
            cells,
            tuple(map(self.value, fun.__defaults__ or ())),
            tuple((k, self.value(v)) for k, v in sorted((fun.__kwdefaults__ or {}).items())),
            self.globals(code, fun.__globals__),
            tuple((k, self.value(v)) for k, v in sorted(vars(fun).items())),
        )
        del self.active[id(fun)]
        return key

    def cell(self, cell: Any) -> Any:
        try:
            return self.value(cell.cell_contents)
        except ValueError:  # an empty cell: a function that is being defined
            raise _Unshareable from None

    def globals(self, code: types.CodeType, namespace: dict) -> tuple:
        """The values of the global names that code reads, in nested functions too."""
        return tuple(
            (name, self.value(namespace[name])) for name in _global_names(code) if name in namespace
        )


def _is_own(fun: Any) -> bool:
    """Whether a function belongs to a module of namoo: those never change."""
    return (
        isinstance(fun, types.FunctionType)
        and is_hidden(fun.__code__.co_filename)
        and "<locals>" not in fun.__qualname__
    )


def reads(fun: types.FunctionType) -> list[Any]:
    """The objects that a function reads by name: from its closure, defaults and globals, and from
    those of the functions among them. If one of them is replaced, the function may do something
    else; changes inside an object are not detected."""
    found: list[Any] = []
    walked = set()
    functions = [fun]
    while functions:
        fun = functions.pop()
        if fun in walked:
            continue
        walked.add(fun)
        start = len(found)
        found += fun.__defaults__ or ()
        found += (fun.__kwdefaults__ or {}).values()
        for cell in fun.__closure__ or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:  # not bound yet
                found.append(cell)
        namespace = fun.__globals__
        found += [namespace[name] for name in _global_names(fun.__code__) if name in namespace]
        functions += [
            x
            for x in found[start:]
            if isinstance(x, types.FunctionType) and not is_hidden(x.__code__.co_filename)
        ]
    return found


@cached("memo.identity global names", bound=1024, keyed_by="code object")
def _global_names(code: types.CodeType) -> tuple[str, ...]:
    # `dis.get_instructions` does the same, and takes many times longer.
    names, before = set(), 0
    for op, number in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        number |= before
        before = number << 8 if op == dis.EXTENDED_ARG else 0
        if op == _LOAD_GLOBAL:
            names.add(code.co_names[number >> 1])  # the last bit says that it is called
        elif op == _LOAD_NAME:
            names.add(code.co_names[number])
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names.update(_global_names(const))
    return tuple(sorted(names))
