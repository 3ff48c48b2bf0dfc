"""More special functions under SciPy's names: NumPy runs the programs that are written for XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base.config import enable_x64
from namoo.core.avals import ShapeDtypeStruct
from namoo.core.trace import plain_trace, set_trace
from namoo.primitives.special import programs, without_scipy


def __getattr__(name: str) -> Any:
    return getattr(without_scipy, name)


Function = Callable[..., Any]


class _Host:
    """The emitter that `programs` are written for, computing immediately in double precision."""

    avals = [ShapeDtypeStruct((), np.float64)]

    def alike(self, *values: np.ndarray) -> tuple[np.ndarray, ...]:
        return values

    def convert(self, x: Any, dtype: Any) -> np.ndarray:
        return np.asarray(x, dtype)

    def apply(self, compute: Callable[..., Any], *values: Any) -> Any:
        return compute(*values)

    def constant(self, value: Any, dtype: Any = np.float64, shape: tuple[int, ...] = ()) -> Any:
        return np.full(shape, value, dtype)

    def combine(self, name: str, x: Any, y: Any) -> Any:
        return getattr(np, name)(x, y)

    def reduce(self, name: str, x: Any, start: Any, axes: Any) -> Any:
        return np.any(np.asarray(x))

    def while_loop(self, state: list[Any], unfinished: Function, again: Function) -> list[Any]:
        while unfinished(*state):
            state = list(again(*state))
        return state


def _by_program(name: str) -> Function:
    def compute(*xs: np.ndarray) -> np.ndarray:
        with set_trace(plain_trace), enable_x64(True):
            return getattr(programs, name)(_Host(), *xs)

    return without_scipy.in_double(compute)


gammainc, gammaincc = _by_program("igamma"), _by_program("igammac")
betainc, betaln = _by_program("betainc"), _by_program("betaln")
i0e, erfcx = _by_program("bessel_i0e"), _by_program("erfcx")
log_ndtr, ndtri = _by_program("log_ndtr"), _by_program("ndtri")
