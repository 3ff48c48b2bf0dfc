"""Namespaces whose names are loaded when they are first used.

A namespace's `__init__.py` has a table: the module, then the names that come from it, `public=own`
where the two differ.  Its `__init__.pyi` has the same table as imports, for editors and type
checkers; a test holds the two together.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from _thread import RLock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

# After how many ticks of the clock, as a power of two, threads of NumPy's BLAS that find no work
# sleep.  By default it is 26: each takes a core for as long as all that a first step of training
# needs.  With 20, half a millisecond, they are still awake for the next product of a program.
_TIMEOUT, _TICKS = "OPENBLAS_THREAD_TIMEOUT", "20"

# After how many new objects the collector looks through them while a function is traced.
_PATIENCE = 50_000

_lock = RLock()
_loads = _rests = _waits = 0
_paused = _shortened = False
_thresholds = gc.get_threshold()


@contextmanager
def collector_rests() -> Iterator[None]:
    """Python's garbage collector rests, while something makes many objects and is soon done.

    To look through them again and again would take a tenth of the time.
    """
    global _rests, _paused
    with _lock:
        _rests += 1
        if _rests == 1:
            _paused = gc.isenabled()
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            _rests -= 1
            if not _rests and _paused:
                gc.enable()


@contextmanager
def collector_waits() -> Iterator[None]:
    """The garbage collector looks less often, while a user's function makes many objects that stay.

    It does not rest: nobody knows what the function does, and for how long.
    """
    global _waits, _thresholds
    with _lock:
        _waits += 1
        if _waits == 1:
            _thresholds = gc.get_threshold()
            if 0 < _thresholds[0] < _PATIENCE:
                gc.set_threshold(_PATIENCE, *_thresholds[1:])
    try:
        yield
    finally:
        with _lock:
            _waits -= 1
            if not _waits and gc.get_threshold()[0] == _PATIENCE:
                gc.set_threshold(*_thresholds)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """The collector rests, and NumPy, if it is loaded now, is told of `_TIMEOUT`."""
    global _loads, _shortened
    with _lock:
        _loads += 1
        if _loads == 1:
            _shortened = "numpy" not in sys.modules and _TIMEOUT not in os.environ
            if _shortened:
                os.environ[_TIMEOUT] = _TICKS
    with collector_rests():
        try:
            yield
        finally:
            with _lock:
                _loads -= 1
                if not _loads and _shortened:
                    os.environ.pop(_TIMEOUT, None)
                if not _loads and _paused and not gc.get_freeze_count():
                    # What was loaded stays, and need not be looked through when the rest is over.
                    # Together these do nothing but to call all objects old.
                    gc.freeze()
                    gc.unfreeze()


def load_module(name: str) -> ModuleType:
    """A module; while it is loaded, nothing else is done that can wait.

    >>> load_module("namoo.tree").__name__
    'namoo.tree'
    """
    if name in sys.modules:
        return importlib.import_module(name)  # another thread may still be loading it
    with _undisturbed():
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
    """A module that stands for another one, which is loaded when something of it is used.

    For what few programs need of the modules that all of them do.

    >>> slicing = later("namoo.primitives.slicing")
    >>> slicing.concatenate.__name__
    'concatenate'
    """
    return _Later(name)


def names_of(table: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Where each public name comes from: the module, and the name there ('' is the module itself).

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


class _Homonyms(ModuleType):
    """A namespace with a name that is also that of the module it comes from, as `paths.paths`.

    Importing such a module makes it an attribute of its package, in the place of the name.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        is_homonym = isinstance(value, ModuleType) and hasattr(value, name)
        super().__setattr__(name, getattr(value, name) if is_homonym else value)

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)


def lazy(
    package: str, table: dict[str, str], guarded: bool = False
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a namespace.

    Args:
      package: the namespace's own name.
      table: for each module inside namoo, the names it gives, with spaces between; `.` is the
        module itself.
      guarded: make functions entry points, whose errors are free of namoo's own frames.
    """
    for module, entries in table.items():
        name = f"namoo.{module}".removeprefix(f"{package}.")
        if name in entries and names_of({module: entries}).get(name, ("", ""))[1]:
            sys.modules[package].__class__ = _Homonyms

    def load(name: str) -> Any:
        # Most modules are not split into their names: few names of a namespace are ever used.
        for module, entries in table.items():
            if name in entries or module.endswith(name):
                found = names_of({module: entries}).get(name)
                if found is not None:
                    break
        else:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
        module, own = found
        thing: Any = load_module(f"namoo.{module}")
        if own:
            thing = getattr(thing, own)
            if guarded and isinstance(thing, FunctionType):
                from namoo.errors import guarded as entry_point

                thing = entry_point(thing, package)
        # The next access finds it there, and does not ask again.
        setattr(sys.modules[package], name, thing)
        return thing

    def listing() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names_of(table)})

    return load, listing
