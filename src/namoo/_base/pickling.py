"""Pickle objects by name, like functions: the other process imports them.

`__main__` is a different module in every process, so objects defined there are pickled by value,
which needs a pickler such as cloudpickle.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def load(module: str, name: str) -> Any:
    """Return an object that a module defines.

    Example:
        >>> load("namoo._base.pickling", "load").__name__
        'load'
    """
    thing: Any = importlib.import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def by_name(thing: Any) -> tuple[Any, tuple[str, str]] | None:
    """Return how to pickle a function-like object by its own name; None if that is impossible.

    Args:
        thing: an object with the attributes `__module__` and `__qualname__` of a function.

    Example:
        >>> by_name(by_name)
        (<function load at ...>, ('namoo._base.pickling', 'by_name'))
    """
    module, name = thing.__module__, thing.__qualname__
    if module == "__main__" or module not in sys.modules or "<locals>" in name:
        return None
    try:
        loaded = load(module, name)
    except AttributeError:
        return None
    return (load, (module, name)) if loaded is thing else None


def by_variable(thing: Any) -> tuple[Any, tuple[str, str]] | None:
    """Return how to pickle an object by the module variable that holds it."""
    first = type(thing).__module__.partition(".")[0]
    names = [name for name in list(sys.modules) if name != "__main__"]
    for name in sorted(names, key=lambda name: name.partition(".")[0] != first):
        for attribute, value in list(vars(sys.modules[name]).items()):
            if value is thing:
                return load, (name, attribute)
    return None
