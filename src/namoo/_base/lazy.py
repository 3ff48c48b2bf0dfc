"""Namespaces whose names are loaded when they are first used.

A namespace's `__init__.py` has a table: the module, then the names that come from it, `public=own`
where the two differ. `make stubs` writes the same table as imports to its `__init__.pyi`, for
editors and type checkers. `dir()` and `from … import *` see the names of the table. A public module
without a table does the same with `__all__` and `__dir__ = __all__.copy`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from namoo._base.startup import loading


def load_module(name: str) -> ModuleType:
    """Import a module.

    Example:
        >>> load_module("namoo.tree").__name__
        'namoo.tree'
    """
    if name in sys.modules:
        return importlib.import_module(name)  # another thread may still be loading it
    with loading():
        return importlib.import_module(name)


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        thing = getattr(load_module(self.__name__), name)
        # The next access finds it here.
        self.__dict__[name] = thing
        return thing

    def __reduce__(self) -> tuple[Any, ...]:
        return later, (self.__name__,)


def later(name: str) -> Any:
    """Return a stand-in for a module, which is imported when an attribute of it is first used.

    It is for modules that few programs need, in modules that all programs import.

    Example:
        >>> slicing = later("namoo.primitives.slicing")
        >>> slicing.concatenate.__name__
        'concatenate'
    """
    return _Later(name)


def names_of(table: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return where each public name comes from: a module, and the name there.

    The name is '' for the module itself.

    Example:
        >>> names_of({"api.jit": "jit", "core.array": "ndarray=Array", "lax": "."})
        {'jit': ('api.jit', 'jit'), 'ndarray': ('core.array', 'Array'), 'lax': ('lax', '')}
    """
    found: dict[str, tuple[str, str]] = {}
    for module, names in table.items():
        for entry in names.split():
            public, _, own = entry.partition("=")
            if public == ".":
                found[module.rpartition(".")[2]] = module, ""
            else:
                found[public] = module, own or public
    return found


class _Namespace(ModuleType):
    """A namespace with public names that are also names of its submodules, as `namoo.devices`.

    Importing a submodule sets it as an attribute of its package. Here the public name stays.
    """

    homonyms: set[str] = set()

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in type(self).homonyms and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)


def _homonyms(package: str, table: dict[str, str]) -> set[str]:
    """Return the submodules of a package that have the name of something else in its table."""
    start = f"{package}.".removeprefix("namoo.")
    modules = {m[len(start) :].partition(".")[0] for m in table if m.startswith(start)}
    words = " ".join(table.values())
    found = {name for name in modules if name in words}
    names = names_of(table) if found else {}
    return {name for name in found if names.get(name, ("", ""))[1]}


_IMPORTS = "<frozen importlib"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _missing(package: str, name: str, table: dict[str, str]) -> AttributeError:
    """Make the error for a name that a namespace does not have."""
    message = f"module {package!r} has no attribute {name!r}"
    # `from package import submodule` and namoo's own questions whether there is such a name come
    # here, too. Nobody reads those errors, and a hint takes a millisecond.
    asking = sys._getframe(3).f_code.co_filename
    if name.startswith("_") or asking.startswith((_IMPORTS, _PACKAGE)):
        return AttributeError(message, name=name, obj=sys.modules[package])
    from namoo._base.hints import name_hint  # needed only for errors

    known = {*names_of(table), *vars(sys.modules[package])}
    hint = name_hint(package, name, known)
    # Python adds a suggestion of its own if it knows the object.
    return AttributeError(message + hint, name=name, obj=None if hint else sys.modules[package])


def lazy(
    package: str, table: dict[str, str], guarded: bool = False
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a namespace.

    Args:
        package: The name of the namespace.
        table: For each module inside namoo, the names that come from it, with spaces between; `.`
            is the module itself.
        guarded: Whether functions become entry points, whose errors hide namoo's own frames.
    """
    if homonyms := _homonyms(package, table):
        sys.modules[package].__class__ = type("Namespace", (_Namespace,), {"homonyms": homonyms})

    def attribute(name: str) -> Any:
        if name == "__all__":
            return listing()
        try:
            return load(name)
        except AttributeError as error:
            from namoo._base.source_context import hide_internal_frames

            hide_internal_frames(error)
            raise

    def load(name: str) -> Any:
        # Few names of a namespace are ever used, so the table is not split into names up front.
        for module, entries in table.items():
            if name in entries or module.endswith(name):
                found = names_of({module: entries}).get(name)
                if found is not None:
                    break
        else:
            raise _missing(package, name, table)
        module, own = found
        thing: Any = load_module(f"namoo.{module}")
        if own:
            thing = getattr(thing, own)
            if guarded and isinstance(thing, FunctionType):
                from namoo._base.source_context import entry_point

                thing = entry_point(thing, package)
        # The next access finds it there.
        setattr(sys.modules[package], name, thing)
        return thing

    def listing() -> list[str]:
        # A namespace that also has names of its own declares them.
        return sorted({*vars(sys.modules[package]).get("__all__", ()), *names_of(table)})

    return attribute, listing
