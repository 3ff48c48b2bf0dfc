"""Shortcuts of elementwise functions: one NumPy ufunc each."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo.core.array import Array, EagerArray
from namoo.eager.shortcuts import ARITHMETIC, INEXACT, INTEGER, ORDERED, REAL, Entries
from namoo.primitives.arithmetic import sign_p

ENTRIES = Entries()
unary, binary = ENTRIES.unary, ENTRIES.binary

binary("numpy.arithmetic.add", np.add, "fiucb", ARITHMETIC)
binary("numpy.arithmetic.subtract", np.subtract, "fiuc", ARITHMETIC)
binary("numpy.arithmetic.multiply", np.multiply, "fiucb", ARITHMETIC)
binary("numpy.arithmetic.true_divide", np.true_divide, "fc", INEXACT)
binary(
    "numpy.arithmetic.floor_divide",
    # The general path decides what integers divided by zero give.
    lambda x, y: np.floor_divide(x, y) if np.all(y) else None,
    "iu",
    INTEGER,
)
binary("numpy.arithmetic.remainder", np.remainder, "iu", INTEGER)
unary("numpy.arithmetic.negative", np.negative, "fiuc")
unary("numpy.arithmetic.positive", lambda x: x, "fiucb")
unary("numpy.arithmetic.absolute", np.abs, "fi")
unary("numpy.arithmetic.fabs", np.fabs, "f")
unary("numpy.arithmetic.sign", sign_p.plain, "fi")
unary("numpy.arithmetic.square", np.square, "fiuc")
unary("numpy.arithmetic.reciprocal", np.reciprocal, "f")

binary("numpy.float_parts.gcd", np.gcd, "iu", INTEGER)
binary("numpy.float_parts.lcm", np.lcm, "iu", INTEGER)
binary("numpy.float_parts.copysign", np.copysign, "f", REAL)
binary("numpy.float_parts.nextafter", np.nextafter, "f", {})
unary("numpy.float_parts.signbit", np.signbit, "f", keeps_weak=False)

binary("numpy.logic.equal", np.equal, "fiucb", ARITHMETIC)
binary("numpy.logic.not_equal", np.not_equal, "fiucb", ARITHMETIC)
binary("numpy.logic.greater", np.greater, "fiub", ORDERED)
binary("numpy.logic.greater_equal", np.greater_equal, "fiub", ORDERED)
binary("numpy.logic.less", np.less, "fiub", ORDERED)
binary("numpy.logic.less_equal", np.less_equal, "fiub", ORDERED)
binary("numpy.logic.minimum", np.minimum, "fiub", ORDERED)
binary("numpy.logic.maximum", np.maximum, "fiub", ORDERED)
binary("numpy.logic.logical_and", np.logical_and, "b", {})
binary("numpy.logic.logical_or", np.logical_or, "b", {})
binary("numpy.logic.logical_xor", np.logical_xor, "b", {})
unary("numpy.logic.logical_not", np.logical_not, "b")
binary("numpy.logic.bitwise_and", np.bitwise_and, "iub", INTEGER)
binary("numpy.logic.bitwise_or", np.bitwise_or, "iub", INTEGER)
binary("numpy.logic.bitwise_xor", np.bitwise_xor, "iub", INTEGER)
unary("numpy.logic.bitwise_not", np.invert, "iub")

unary("numpy.elementary.exp", np.exp)
unary("numpy.elementary.exp2", np.exp2, "f")
unary("numpy.elementary.expm1", np.expm1, "f")
unary("numpy.elementary.log", np.log)
unary("numpy.elementary.log2", np.log2, "f", keeps_weak=False)
unary("numpy.elementary.log10", np.log10, "f", keeps_weak=False)
unary("numpy.elementary.log1p", np.log1p, "f")
unary("numpy.elementary.sqrt", np.sqrt, "f")
unary("numpy.elementary.cbrt", np.cbrt, "f")
unary("numpy.elementary.sin", np.sin)
unary("numpy.elementary.cos", np.cos)
unary("numpy.elementary.tan", np.tan)
unary("numpy.elementary.arcsin", np.arcsin, "f")
unary("numpy.elementary.arccos", np.arccos, "f")
unary("numpy.elementary.arctan", np.arctan, "f")
unary("numpy.elementary.sinh", np.sinh)
unary("numpy.elementary.cosh", np.cosh)
unary("numpy.elementary.tanh", np.tanh)
unary("numpy.elementary.arcsinh", np.arcsinh, "f")
unary("numpy.elementary.arccosh", np.arccosh, "f")
unary("numpy.elementary.arctanh", np.arctanh, "f")
binary("numpy.elementary.arctan2", np.arctan2, "f", REAL)
binary("numpy.elementary.logaddexp", np.logaddexp, "f", REAL)
ENTRIES.remembered("numpy.elementary", "deg2rad rad2deg logaddexp2")

unary("numpy.number_parts.floor", np.floor, "f")
unary("numpy.number_parts.ceil", np.ceil, "f")
unary("numpy.number_parts.trunc", np.trunc, "f")
unary("numpy.number_parts.rint", np.rint, "f")
unary("numpy.number_parts.conjugate", np.conjugate, "fiuc")
unary("numpy.number_parts.real", np.real, "fiucb")
unary("numpy.number_parts.imag", np.imag, "c")
unary("numpy.number_parts.isnan", np.isnan)
unary("numpy.number_parts.isfinite", np.isfinite)
unary("numpy.number_parts.isinf", np.isinf, keeps_weak=False)
binary("numpy.selection.fmax", np.fmax, "fiu", ORDERED)
binary("numpy.selection.fmin", np.fmin, "fiu", ORDERED)
ENTRIES.remembered("numpy.selection", "clip")


@ENTRIES.shortcut("numpy.selection.where", remembers=True)
def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None
) -> Array | None:
    """Boolean condition; two arrays of one dtype, or an inexact array and a Python float."""
    if type(condition) is not EagerArray or size is not None or fill_value is not None:
        return None
    test = condition._value
    if test.dtype.char != "?":
        return None
    if type(x) is EagerArray:
        a, weak = x._value, x._weak
        if type(y) is EagerArray:
            b, weak = y._value, weak and y._weak
            # Promotion makes booleans strongly typed.
            if a.dtype is not b.dtype or weak and a.dtype.char == "?":
                return None
        elif type(y) is float and a.dtype in INEXACT:
            b = y
        else:
            return None
    elif type(y) is EagerArray and type(x) is float and y._value.dtype in INEXACT:
        a, b, weak = x, y._value, y._weak
    else:
        return None
    try:
        return EagerArray(np.where(test, a, b), weak)
    except ValueError:
        # The shapes do not fit: the general path raises the error with a better message.
        return None
