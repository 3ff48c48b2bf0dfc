"""The C++ part of namoo, if it was built.

It does what Python is too slow for; everything works without it, but slower. The environment
variable `NAMOO_RUNTIME` can be `python`, to do without it, or `native`, to require it.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any

# Increase it here and in `runtime/src/module.cpp` with every change of the interface between the
# two parts.
INTERFACE = 4


class SlowerRuntimeWarning(UserWarning):
    """The C++ part of namoo is missing: calls of compiled functions and trees are slower."""


def _load() -> Any:
    wanted = os.environ.get("NAMOO_RUNTIME", "")
    if wanted not in ("", "native", "python"):
        raise ValueError(f"NAMOO_RUNTIME is 'native' or 'python', not {wanted!r}")
    if wanted == "python":
        return None
    try:
        module = importlib.import_module("namoo._runtime")
        if getattr(module, "INTERFACE", 1) != INTERFACE:
            raise ImportError("it was built from other sources than these: build it again")
        return module
    except ImportError as error:
        if wanted == "native":
            raise
        if sys.platform == "emscripten":
            return None  # in a browser there is no compiler to advise
        warnings.warn(
            f"namoo runs without its C++ part ({error}): results are the same, but trees and calls "
            "of compiled functions take longer. Install namoo again where a C++ compiler is found, "
            "or set NAMOO_RUNTIME=python to do without it.",
            SlowerRuntimeWarning,
            stacklevel=2,
        )
        return None


def _require_lock() -> None:
    """Refuse to run where several threads may execute Python code at the same time.

    In a free-threaded Python, importing the C++ part switches the lock on; only without it, or with
    `PYTHON_GIL=0`, is the lock still off here.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(
            "namoo needs Python's global interpreter lock, which is off in this free-threaded "
            "Python. Start it with PYTHON_GIL=1 or `python -X gil=1`, or use another build."
        )


native: Any = _load()
"""The module `namoo._runtime`, or None."""
_require_lock()
