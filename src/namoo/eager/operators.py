"""Shortcuts of the operators of arrays, in C++ where it is built.

`Operator` of the C++ part looks at the operands, calls NumPy's function and wraps the result; small
matrix products it computes itself.  It hands everything else to the Python version, which makes
the same tests and then calls the general method.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from namoo._base.config import config
from namoo._base.floating_errors import floating_errors_off, set_floating_errors
from namoo._base.runtime import native
from namoo.core.array import EagerArray
from namoo.core.trace import context, eval_trace
from namoo.eager.repeated import repeated
from namoo.eager.shortcuts import (
    ARITHMETIC,
    INEXACT,
    INTEGER,
    ORDERED,
    REAL,
    Entries,
    Function,
    Scalars,
    Shortcut,
    binary,
    pair_condition,
)
from namoo.primitives.contract import matrix_product
from namoo.primitives.elementwise import root_by_power

ENTRIES = Entries()


def _power(x: Any, y: Any) -> np.ndarray | None:
    """NumPy's power for floating exponents, and x ** 2.

    Other integer exponents are a chain of multiplications; an array of exponents is not broadcast.
    """
    if type(y) is int:
        return np.square(x) if y == 2 else None
    if type(y) is float:
        return root_by_power(x) if y == 0.5 else np.power(x, y)
    if type(x) is int or y.size < 2 or y.shape != np.shape(x) != ():
        return None
    return np.power(x, y)


def _floor_divide(x: Any, y: Any) -> np.ndarray | None:
    """NumPy's quotient; the general path decides what integers divided by zero give."""
    return np.floor_divide(x, y) if np.all(y) else None


def _matrix_product(x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """The product of matrices or vectors of default precision; None for all else."""
    plain = 0 < x.ndim <= 2 and 0 < y.ndim <= 2 and x.dtype.char in "fdFD"
    return matrix_product(x, y) if plain and config.default_matmul_precision is None else None


_OPERATORS: dict[str, tuple[Function, str, Scalars]] = {
    "add": (np.add, "fiucb", ARITHMETIC),
    "sub": (np.subtract, "fiuc", ARITHMETIC),
    "mul": (np.multiply, "fiucb", ARITHMETIC),
    "truediv": (np.true_divide, "fc", INEXACT),
    "floordiv": (_floor_divide, "iu", INTEGER),
    "mod": (np.remainder, "iu", INTEGER),
    "pow": (_power, "f", REAL),
    "matmul": (_matrix_product, "fc", {}),
    "and": (np.bitwise_and, "iub", INTEGER),
    "or": (np.bitwise_or, "iub", INTEGER),
    "xor": (np.bitwise_xor, "iub", INTEGER),
}
_COMPARISONS: dict[str, tuple[Function, str, Scalars]] = {
    "eq": (np.equal, "fiucb", ARITHMETIC),
    "ne": (np.not_equal, "fiucb", ARITHMETIC),
    "lt": (np.less, "fiub", ORDERED),
    "le": (np.less_equal, "fiub", ORDERED),
    "gt": (np.greater, "fiub", ORDERED),
    "ge": (np.greater_equal, "fiub", ORDERED),
}

# An integer exponent is a parameter of `integer_pow`, not an operand.
_OPERANDS: dict[str, Scalars] = {"pow": {dtype: frozenset([float]) for dtype in REAL}}

# What C++ computes without NumPy where it is small, and the setting that must be None for it.
_SMALL: dict[str, tuple[Function, str]] = (
    {} if native is None else {"matmul": (native.product, "default_matmul_precision")}
)

# The context variable of NumPy's floating-point errors, which C++ sets as Python does.
_floating_errors = getattr(set_floating_errors, "__self__", None)
_cpp = None if _floating_errors is None else native
if _cpp is not None:
    _cpp.bind_operators(
        context, eval_trace, config, EagerArray, _floating_errors, floating_errors_off
    )


def _add(name: str, compute: Function, kinds: str, scalars: Scalars, swap: bool) -> None:
    def install(general: Function) -> Function:
        # Operands of two types are a program of several operations.
        quick = binary(compute, repeated(general), kinds, scalars, swap, _OPERANDS.get(name))
        if _cpp is not None:
            first, setting = _SMALL.get(name, (compute, None))
            quick = _cpp.Operator(first, setting, quick, kinds, scalars, swap)
        return quick

    method = f"__r{name}__" if swap else f"__{name}__"
    condition = pair_condition(kinds, scalars)
    if _cpp is not None:
        condition += "; small products in C++" if name in _SMALL else "; in C++"
    ENTRIES.append(Shortcut("numpy._methods", method, compute, condition, install))


for _name, _entry in _OPERATORS.items():
    _add(_name, *_entry, swap=False)
    _add(_name, *_entry, swap=True)
for _name, _entry in _COMPARISONS.items():
    _add(_name, *_entry, swap=False)
ENTRIES.unary("numpy._methods.__neg__", np.negative, "fiuc", remembers=False)


@ENTRIES.shortcut("numpy._methods.__iter__")
def __iter__(self: Any) -> Iterator[EagerArray] | None:
    """An array on the host that has axes."""
    if type(self) is not EagerArray or not self._value.ndim:
        return None
    weak = self._weak
    return (EagerArray(np.asarray(row), weak) for row in self._value)
