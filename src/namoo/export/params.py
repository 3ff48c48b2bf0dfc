"""The parameters of operations as JSON. Only these kinds of values are supported.

| value | JSON |
|---|---|
| None, a bool, an integer, a string | itself |
| a float | `{"float": "0x1.8p+1"}`, in hexadecimal; or `"nan"`, `"inf"`, `"-inf"` |
| a complex number | `{"complex": [real, imaginary]}`, two such strings |
| a tuple | a list |
| a list | `{"list": [...]}` |
| a dtype | `{"dtype": "float32"}` |
| a symbolic dimension | `{"dim": "2*n + 1"}` |
| an enum member | `{"enum": ["FftType", "RFFT"]}` |
| a named tuple | `{"record": ["GatherDimensionNumbers", {"offset_dims": [1], ...}]}` |
| an operation | `{"operation": "ge"}` |
| a NumPy scalar | `{"number": ["float32", "0000803f"]}`, its bytes in hexadecimal |
| a program | `{"program": 3}`, its number |
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.control.solves import Solve
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.primitive import Primitive
from namoo.dimensions.expression import DimExpr
from namoo.dimensions.parsing import Parser
from namoo.export.elements import array_bytes, dtype_name, read_array, read_dtype
from namoo.export.operations import NAMES, operation
from namoo.primitives.arithmetic import RoundingMethod
from namoo.primitives.conv_shapes import ConvDimensionNumbers
from namoo.primitives.fft import FftType
from namoo.primitives.gather_dimensions import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from namoo.primitives.linalg.spectral import EighImplementation, EigImplementation, SvdAlgorithm
from namoo.primitives.precision import (
    AccuracyMode,
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    Tolerance,
)
from namoo.primitives.random.prng import RandomAlgorithm

_CHOICES: dict[str, type[enum.Enum]] = {
    cls.__name__: cls
    for cls in (
        AccuracyMode, DotAlgorithmPreset, EigImplementation, EighImplementation, FftType,
        GatherScatterMode, Precision, RandomAlgorithm, RoundingMethod, SvdAlgorithm,
    )
}  # fmt: skip
_RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        ConvDimensionNumbers, DotAlgorithm, GatherDimensionNumbers, ScatterDimensionNumbers, Solve,
        Tolerance,
    )
}  # fmt: skip

# The form of `str(dimension)`: parentheses only in function calls, and small exponents, so that a
# short text cannot expand to a long expression.
_DIMENSION = re.compile(r"(?:(?:floordiv|mod|max|min)\(|\^[1-9](?!\d)|[\w \-+*,)])+")
_LONGEST_DIMENSION = 400


class Unwritable(Exception):
    """The format cannot represent a value."""


def write_param(value: Any, number_of: Callable[[ClosedJaxpr], int]) -> Any:
    """Write a parameter as JSON.

    Args:
        value: the parameter.
        number_of: returns the number of a program, and writes the program if it is new.

    Raises:
        Unwritable: the format cannot represent it.
    """
    write = lambda x: write_param(x, number_of)  # noqa: E731
    kind: Any = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return {"float": value.hex()}
    if kind is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if issubclass(kind, tuple) and not hasattr(kind, "_fields"):
        return [write(x) for x in value]
    if kind is list:
        return {"list": [write(x) for x in value]}
    if kind is DimExpr:
        return {"dim": str(value)}
    if kind is ClosedJaxpr:
        return {"program": number_of(value)}
    if isinstance(value, (np.dtype, dtypes.KeyDType)):
        return {"dtype": dtype_name(value)}
    if kind is type and issubclass(value, np.generic):
        return {"dtype": dtype_name(np.dtype(value))}
    if _CHOICES.get(kind.__name__) is kind:
        return {"enum": [kind.__name__, value.name]}
    if _RECORDS.get(kind.__name__) is kind:
        fields = {name: write(x) for name, x in value._asdict().items()}
        return {"record": [kind.__name__, fields]}
    if isinstance(value, (np.generic, np.ndarray)) and not value.shape:
        return {"number": [dtype_name(value.dtype), array_bytes(value).hex()]}
    if isinstance(value, Primitive) and value.name in NAMES and operation(value.name) is value:
        return {"operation": value.name}
    raise Unwritable(f"a value of type {kind.__module__}.{kind.__qualname__}")


def read_param(value: Any, scope: Any, program: Callable[[Any], ClosedJaxpr]) -> Any:
    """Read a parameter that `write_param` wrote.

    Args:
        value: JSON.
        scope: the scope of symbolic dimensions.
        program: returns the program with a number.

    Raises:
        ValueError: `write_param` does not write such JSON.
    """
    read = lambda x: read_param(x, scope, program)  # noqa: E731
    if value is None or type(value) in (bool, int, str):
        return value
    match value:
        case list():
            return tuple(map(read, value))
        case {"float": str(text)}:
            return float.fromhex(text)
        case {"complex": [str(real), str(imaginary)]}:
            return complex(float.fromhex(real), float.fromhex(imaginary))
        case {"list": list(items)}:
            return [*map(read, items)]
        case {"dtype": name}:
            return read_dtype(name)
        case {"dim": str(text)}:
            return read_dimension(text, scope)
        case {"enum": [str(kind), str(name)]} if kind in _CHOICES:
            return _CHOICES[kind][name]
        case {"record": [str(kind), dict(fields)]} if kind in _RECORDS:
            return _RECORDS[kind](**{name: read(x) for name, x in fields.items()})
        case {"number": [name, str(digits)]}:
            return read_array(bytes.fromhex(digits), read_dtype(name), ())._value[()]
        case {"operation": str(name)}:
            return operation(name)
        case {"program": number}:
            return program(number)
    raise ValueError(f"invalid parameter {value!r:.80}")


def read_dimension(text: str, scope: Any) -> Any:
    """Read a symbolic dimension from text.

    Raises:
        ValueError: it is not an expression in normal form.
    """
    if len(text) > _LONGEST_DIMENSION or not _DIMENSION.fullmatch(text):
        raise ValueError(f"invalid dimension {text!r:.80}")
    return Parser(text, scope).expression_only()
