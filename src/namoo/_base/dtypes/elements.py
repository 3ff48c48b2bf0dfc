"""The types an array may have: their hierarchy, and conversions between related types."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base.caches import cached
from namoo._base.dtypes.keys import DType, ExtendedDType
from namoo._base.dtypes.narrow import finfo as finfo
from namoo._base.dtypes.narrow import iinfo as iinfo
from namoo._base.dtypes.narrow import is_absent, ml_dtypes, narrow

bool_: DType = np.dtype(np.bool_)
int8: DType = np.dtype(np.int8)
int16: DType = np.dtype(np.int16)
int32: DType = np.dtype(np.int32)
int64: DType = np.dtype(np.int64)
uint8: DType = np.dtype(np.uint8)
uint16: DType = np.dtype(np.uint16)
uint32: DType = np.dtype(np.uint32)
uint64: DType = np.dtype(np.uint64)
float16: DType = np.dtype(np.float16)
float32: DType = np.dtype(np.float32)
float64: DType = np.dtype(np.float64)
complex64: DType = np.dtype(np.complex64)
complex128: DType = np.dtype(np.complex128)
bfloat16: DType = narrow("bfloat16")
int2: DType = narrow("int2")
int4: DType = narrow("int4")
uint2: DType = narrow("uint2")
uint4: DType = narrow("uint4")
float4_e2m1fn: DType = narrow("float4_e2m1fn")
float6_e2m3fn: DType = narrow("float6_e2m3fn")
float6_e3m2fn: DType = narrow("float6_e3m2fn")
float8_e3m4: DType = narrow("float8_e3m4")
float8_e4m3: DType = narrow("float8_e4m3")
float8_e4m3b11fnuz: DType = narrow("float8_e4m3b11fnuz")
float8_e4m3fn: DType = narrow("float8_e4m3fn")
float8_e4m3fnuz: DType = narrow("float8_e4m3fnuz")
float8_e5m2: DType = narrow("float8_e5m2")
float8_e5m2fnuz: DType = narrow("float8_e5m2fnuz")
float8_e8m0fnu: DType = narrow("float8_e8m0fnu")
# The only value of its kind is "no derivative": tangents of integers, booleans and keys.
float0: DType = np.dtype([("float0", np.void, 0)])

# Types of one bit: an older ml_dtypes has none.
int1: DType | None = narrow("int1") if hasattr(ml_dtypes, "int1") else None
uint1: DType | None = narrow("uint1") if hasattr(ml_dtypes, "uint1") else None

NARROW_SIGNED = [d for d in (int1, int2, int4) if d is not None]
NARROW_UNSIGNED = [d for d in (uint1, uint2, uint4) if d is not None]
NARROW_FLOATS = [
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e8m0fnu,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
]
SIGNED = [*NARROW_SIGNED, int8, int16, int32, int64]
UNSIGNED = [*NARROW_UNSIGNED, uint8, uint16, uint32, uint64]
FLOATS = [*NARROW_FLOATS, bfloat16, float16, float32, float64]
COMPLEXES = [complex64, complex128]
NUMBERS = [*SIGNED, *UNSIGNED, *FLOATS, *COMPLEXES]

# All types an array may have, apart from those of keys.
SUPPORTED: frozenset[DType] = frozenset(
    dtype for dtype in [bool_, *NUMBERS, float0] if not is_absent(dtype)
)

KINDS: dict[str, frozenset[DType]] = {
    "bool": frozenset([bool_]),
    "signed integer": frozenset(SIGNED),
    "unsigned integer": frozenset(UNSIGNED),
    "integral": frozenset([*SIGNED, *UNSIGNED]),
    "real floating": frozenset(FLOATS),
    "complex floating": frozenset(COMPLEXES),
    "numeric": frozenset(NUMBERS),
}
# The same by NumPy's abstract types: precomputed answers of `issubdtype`.
MEMBERS: dict[type, frozenset[DType]] = {
    np.bool_: KINDS["bool"],
    np.signedinteger: KINDS["signed integer"],
    np.unsignedinteger: KINDS["unsigned integer"],
    np.integer: KINDS["integral"],
    np.floating: KINDS["real floating"],
    np.complexfloating: KINDS["complex floating"],
    np.inexact: KINDS["real floating"] | KINDS["complex floating"],
    np.number: KINDS["numeric"],
}
TO_32_BITS = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}

# ml_dtypes' scalar types are not in NumPy's hierarchy of abstract types; this adds them.
_ABSTRACT: dict[type, type] = {
    **{dtype.type: np.signedinteger for dtype in NARROW_SIGNED},
    **{dtype.type: np.unsignedinteger for dtype in NARROW_UNSIGNED},
    **{dtype.type: np.floating for dtype in [*NARROW_FLOATS, bfloat16]},
}

PYTHON_64: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}
PYTHON_32: dict[type, DType] = {bool: bool_, int: int32, float: float32, complex: complex64}
# Tables that depend on `enable_x64` come in pairs, to be indexed with it.
PYTHON = (PYTHON_32, PYTHON_64)
CANONICAL = ({d: TO_32_BITS.get(d, d) for d in SUPPORTED}, {d: d for d in SUPPORTED})

# Python types that take the width of the other operand; booleans have one width.
WEAK_TYPES = (int, float, complex)

can_cast = np.can_cast


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a type is a subtype of another: `bfloat16` is `floating`, keys are `prng_key`.

    Args:
        a, b: dtypes, names, scalar types, or NumPy's abstract types such as `numpy.floating`.

    Example:
        >>> issubdtype("bfloat16", np.floating), issubdtype(np.int32, np.floating)
        (True, False)
    """
    # Anything that may not be hashable is converted to a dtype first.
    return _issubdtype(
        a if isinstance(a, _HASHABLE) else np.dtype(a),
        b if isinstance(b, _HASHABLE) else np.dtype(b),
    )


_HASHABLE = (type, np.dtype, ExtendedDType)


@cached("base.dtypes issubdtype", bound=4096, keyed_by="two types")
def _issubdtype(a: Any, b: Any) -> bool:
    if isinstance(b, ExtendedDType):
        return a == b
    low, high = _scalar_type(a), _scalar_type(b)
    return issubclass(low, high) or issubclass(_ABSTRACT.get(low, low), high)


def _scalar_type(dtype: Any) -> type:
    if isinstance(dtype, ExtendedDType):
        return dtype.type
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtype
    return np.dtype(dtype).type


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind, as the array API standard names kinds.

    Args:
        dtype: the dtype.
        kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
            'complex floating', 'numeric'; or a dtype; or a tuple of these.

    Raises:
        ValueError: a string that is neither a kind nor a dtype's name.
        TypeError: something else that is not a dtype.

    Example:
        >>> isdtype("float32", "real floating"), isdtype("int8", ("bool", "unsigned integer"))
        (True, False)
    """
    members: set[DType] = set()
    for each in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(each, str) and each in KINDS:
            members |= KINDS[each]
            continue
        try:
            members.add(np.dtype(each))
        except TypeError as error:
            if isinstance(each, str):
                kinds = ", ".join(map(repr, KINDS))
                raise ValueError(f"kind {each!r} is neither a dtype nor one of {kinds}") from None
            raise TypeError(
                f"kind {each!r} is not a dtype, a string or a tuple of these"
            ) from error
    return np.dtype(dtype) in members


def itemsize_bits(dtype: Any) -> int:
    """How many bits an element carries: 4 for `int4`, although it occupies a byte; 8 for `bool`.

    Example:
        >>> itemsize_bits("float32"), itemsize_bits("int4"), itemsize_bits("complex64")
        (32, 4, 64)
    """
    if dtype is None:
        raise ValueError("dtype cannot be None: itemsize_bits needs one")
    if dtype == bool_:
        return 8
    if issubdtype(dtype, np.integer):
        return iinfo(dtype).bits
    if issubdtype(dtype, np.floating):
        return finfo(dtype).bits
    if issubdtype(dtype, np.complexfloating):
        return 2 * finfo(dtype).bits
    raise ValueError(f"elements of dtype {dtype} are not numbers and have no width")


def supports_inf(dtype: Any) -> bool:
    """Whether a type of numbers has infinities; some 8-bit floats and all integers do not."""
    return issubdtype(dtype, np.inexact) and np.dtype(dtype) not in (
        float8_e4m3b11fnuz,
        float8_e4m3fn,
        float8_e4m3fnuz,
        float8_e5m2fnuz,
    )


@cached("base.dtypes short names", bound=256, keyed_by="dtype")
def short_name(dtype: Any) -> str:
    """The name of a type in printed programs.

    Example:
        >>> [short_name(d) for d in (float32, bfloat16, uint8, bool_, complex64, float0)]
        ['f32', 'bf16', 'u8', 'bool', 'c64', 'float0']
    """
    if isinstance(dtype, ExtendedDType):
        return str(dtype)
    if dtype == float0:
        return "float0"
    name = np.dtype(dtype).name
    for word, letter in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        name = name.replace(word, letter)
    return name


def _inexact(dtype: Any) -> DType:
    dtype = np.dtype(dtype)
    if dtype in (int64, uint64):
        return float64
    return float32 if dtype == bool_ or dtype in KINDS["integral"] else dtype


def to_inexact_dtype(dtype: Any) -> DType:
    """The type itself if float or complex; `float64` for 64-bit integers; else `float32`."""
    return _inexact(dtype)


def to_numeric_dtype(dtype: Any) -> DType:
    """The type itself, but `int32` for booleans."""
    dtype = np.dtype(dtype)
    return int32 if dtype == bool_ else dtype


def to_floating_dtype(dtype: Any) -> DType:
    """The float type of the real part of `to_inexact_dtype`."""
    return finfo(_inexact(dtype)).dtype


def to_complex_dtype(dtype: Any) -> DType:
    """`complex128` where `to_inexact_dtype` has 64-bit parts, else `complex64`."""
    return complex128 if _inexact(dtype) in (float64, complex128) else complex64


@cached("base.dtypes tangent types", bound=256, keyed_by="dtype")
def tangent_dtype(dtype: Any) -> DType:
    """The type of a value's derivative: itself for floats and complex, else `float0`.

    Example:
        >>> tangent_dtype(float32), tangent_dtype(int32) == float0
        (dtype('float32'), True)
    """
    return dtype if issubdtype(dtype, np.inexact) else float0
