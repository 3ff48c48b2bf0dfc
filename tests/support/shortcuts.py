"""Calls with eager shortcuts and without them, and the comparison of what they return."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import tree
from namoo._base import dtypes
from namoo._base.config import eager_shortcuts
from namoo.core.array import EagerArray


class Raised:
    """An error in place of a result: its type and its message without the user's line."""

    def __init__(self, error: Exception):
        self.told = type(error), str(error).split("\n  at ")[0]


def outcome(fun: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of a call, or the error it raises.

    Like JAX, the general path lets NumPy warn of a number that overflows in the array's type; a
    shortcut does not see the conversion.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow encountered in cast", RuntimeWarning)
        try:
            return fun(*args, **options)
        except Exception as error:
            return Raised(error)


def without_shortcuts(fun: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The outcome of a call whose operations are all bound."""
    with eager_shortcuts(False):
        return outcome(fun, *args, **options)


def assert_same(found: Any, wanted: Any, ulps: int = 0) -> None:
    """Equal values (NaN included), dtypes, weak types and structures; or equal errors.

    Args:
        ulps: by how many units in the last place floating numbers may differ.
    """
    if isinstance(found, Raised) or isinstance(wanted, Raised):
        assert isinstance(found, Raised) and isinstance(wanted, Raised), (found, wanted)
        assert found.told == wanted.told
        return
    assert tree.structure(found) == tree.structure(wanted)
    for x, y in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
        assert type(x) is type(y)
        if isinstance(x, EagerArray):
            assert (x.dtype, x.shape, x.weak_type) == (y.dtype, y.shape, y.weak_type)
            if ulps and dtypes.issubdtype(x.dtype, np.inexact):
                rtol = ulps * float(dtypes.finfo(x.dtype).eps)
                np.testing.assert_allclose(x._value, y._value, rtol)
            else:
                np.testing.assert_array_equal(x._value, y._value)
        else:
            np.testing.assert_array_equal(x, y)
