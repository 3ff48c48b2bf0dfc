"""Scientific functions under SciPy's names: special functions, statistics, and more.

A part is loaded when it is first used.

Example:
    >>> import namoo.scipy
    >>> namoo.scipy.special.expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
"""

import importlib
import pkgutil
from typing import Any


def __getattr__(name: str) -> Any:
    if name in _parts():
        return importlib.import_module(f"namoo.scipy.{name}")
    raise AttributeError(f"module 'namoo.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_parts()})


def _parts() -> set[str]:
    return {info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")}
