"""The types of `ml_dtypes`, which is imported when one of them is first used.

Where it is not installed, as in a browser, each of its types is a placeholder: it can be named and
compared, but no array can have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import ml_dtypes
except ModuleNotFoundError:
    ml_dtypes = None

VERSION: str = "" if ml_dtypes is None else ml_dtypes.__version__
# With `ml_dtypes`, these know its types, too.
finfo: Any = np.finfo if ml_dtypes is None else ml_dtypes.finfo
iinfo: Any = np.iinfo if ml_dtypes is None else ml_dtypes.iinfo


class _Absent(np.void):
    """The base of the scalar types that are not installed."""


def narrow(name: str) -> np.dtype:
    """The dtype of a name of `ml_dtypes`, or a placeholder.

    Raises:
        AttributeError: the installed `ml_dtypes` has no such type.
    """
    if ml_dtypes is not None:
        return np.dtype(getattr(ml_dtypes, name))
    fields = [(name, np.void, 1)]  # placeholders are equal if their names are
    return np.dtype((type(name, (_Absent,), {"dtype": np.dtype(fields)}), fields))


def is_absent(dtype: Any) -> bool:
    """Whether a dtype is a placeholder."""
    return isinstance(dtype, np.dtype) and issubclass(dtype.type, _Absent)


def advice(name: str) -> str:
    """The message for a type that is not installed."""
    return (
        f"dtype {name} needs the package ml_dtypes, which is not installed. Install it with "
        "`pip install ml_dtypes`, or use float16 or float32 instead."
    )
