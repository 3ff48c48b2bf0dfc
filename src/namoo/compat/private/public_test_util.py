"""Comparisons for tests, beside the checks of derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import dtypes, tree
from namoo.compat.private._names import names_of

__all__ = ["check_close", "default_tolerance"]

_TOLERANCES = {
    np.dtype(dtype): tolerance
    for dtype, tolerance in (
        (dtypes.bfloat16, 1e-2),
        (np.float16, 1e-3),
        (np.float32, 1e-6),
        (np.float64, 1e-15),
        (np.complex64, 1e-6),
        (np.complex128, 1e-15),
    )
}

__getattr__ = names_of(__name__, "namoo.test_util")


def default_tolerance() -> dict[Any, float]:
    """Return how far results may be apart, by dtype; others must be equal."""
    return dict(_TOLERANCES)


def _tolerance(given: Any, dtype: Any) -> float:
    if given is None:
        given = default_tolerance()
    if isinstance(given, dict):
        return {np.dtype(k): v for k, v in given.items()}.get(np.dtype(dtype), 0.0)
    return given


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Compare two trees of arrays; the larger tolerance of two dtypes counts."""

    def compare(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        a, r = (max(_tolerance(g, x.dtype), _tolerance(g, y.dtype)) for g in (atol, rtol))
        wide = np.result_type(x.dtype, y.dtype, np.float32)
        x, y = x.astype(wide), y.astype(wide)
        np.testing.assert_allclose(x, y, atol=a, rtol=r, err_msg=err_msg)

    tree.map(compare, xs, ys)
