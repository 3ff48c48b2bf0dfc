"""The C++ part of namoo, where it was built.

It does what Python is too slow for; without it everything works as well, but slower.  The variable
`NAMOO_RUNTIME` chooses: `python` does without it, `native` insists on it.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any

# To be raised, here and in `runtime/src/module.cpp`, with every change of what the two parts expect
# of one another.
INTERFACE = 2


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
            raise ImportError("it was built from other sources than namoo's: build it again")
        return module
    except ImportError as error:
        if wanted == "native":
            raise
        warnings.warn(
            f"namoo runs without its C++ part ({error}): results are the same, but trees and calls "
            "of compiled functions take longer. Install namoo again where a C++ compiler is found, "
            "or set NAMOO_RUNTIME=python to do without it.",
            SlowerRuntimeWarning,
            stacklevel=2,
        )
        return None


native: Any = _load()
"""The module `namoo._runtime`, or None."""
