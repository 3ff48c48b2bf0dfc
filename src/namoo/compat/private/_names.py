"""Build modules whose names come from several modules of namoo."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def names_of(own: str, *modules: str) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that looks a name up in other modules, in order.

    Args:
        own: the module that has the function, for the message.
        *modules: where to look.
    """

    def __getattr__(name: str) -> Any:
        for module in modules:
            try:
                return getattr(importlib.import_module(module), name)
            except AttributeError:
                continue
        private = own.replace("namoo.compat.private", "jax._src")
        raise AttributeError(f"namoo's stand-in for {private} has no name {name!r}.")

    return __getattr__
