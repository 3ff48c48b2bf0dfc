"""NumPy's floating-point warnings, switched off at little cost."""

from __future__ import annotations

from typing import Any

import numpy as np


def _guards() -> tuple[Any, Any, Any]:
    """Functions that switch NumPy's floating-point warnings, and the setting without warnings.

    Entering `np.errstate` costs more than a small operation; its context variable does not.
    """
    try:
        from numpy._core.umath import _extobj_contextvar, _make_extobj
    except ImportError:  # another NumPy
        return lambda s: np.seterr(**s), lambda s: np.seterr(**s), {"all": "ignore"}
    return _extobj_contextvar.set, _extobj_contextvar.reset, _make_extobj(all="ignore")


set_floating_errors, reset_floating_errors, floating_errors_off = _guards()


class floating_errors_ignored:
    """Overflow and invalid operations give inf and NaN, without NumPy's warnings."""

    __slots__ = ("token",)

    def __enter__(self):
        self.token = set_floating_errors(floating_errors_off)

    def __exit__(self, *exc):
        reset_floating_errors(self.token)
