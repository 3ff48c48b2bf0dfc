"""Types of elements: which exist, how they are promoted, and what is weak.

Three rules differ from NumPy's.  While `config.enable_x64` is off, 64-bit types become 32-bit.
Python's own `int`, `float` and `complex` are *weak*: they take the width of what they meet.  And
two types meet at the least type above both in one small graph, drawn in `_chains` below, in which
an integer and a float give that float: `int32` and `float16` are `float16`.

Inside the package a dtype is a `numpy.dtype`, or a `KeyDType` for random keys.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from namoo._config import config


class extended(np.generic):
    """Scalar type above all types of elements that NumPy does not know; for `issubdtype` only.

    Example:
        >>> issubdtype(KeyDType("threefry2x32"), extended)
        True
    """


class prng_key(extended):
    """Scalar type of random keys; for `issubdtype` only.

    Example:
        >>> issubdtype(KeyDType("rbg"), prng_key), issubdtype("float32", prng_key)
        (True, False)
    """


class ExtendedDType:
    """Base class of dtypes that are not NumPy's.  `type` is a subclass of `extended`."""

    __slots__ = ()
    type: type[extended] = extended


class TypePromotionError(ValueError):
    """Operands have types that are not promoted to a common one."""


# name of the generator -> (tag in the printed name, shape of the words of one key)
_KEY_FORMS: dict[str, tuple[str, tuple[int, ...]]] = {
    "threefry2x32": ("fry", (2,)),
    "threefry4x32": ("fry4", (4,)),
    "rbg": ("rbg", (4,)),
    "unsafe_rbg": ("urbg", (4,)),
    "philox2x32": ("phx2", (1,)),
    "philox4x32": ("phx4", (2,)),
}


class KeyDType(ExtendedDType):
    """Type of random keys of one generator.

    Keys are stored in NumPy arrays of the structured type `numpy`, with one field for each word
    and the logical shape, so that NumPy's indexing, `reshape`, `where` and `concatenate` handle
    keys as they handle numbers.  The fields' *titles* carry the generator's tag: NumPy compares
    them, so keys of two generators never mix even where their words have the same number.

    Attributes:
        impl: name of the generator.
        name: printed name.
        key_shape: shape of the 32-bit words of one key.
        numpy: the structured type in which keys are stored.
        itemsize: bytes of one key.

    Example:
        >>> fry = KeyDType("threefry2x32")
        >>> fry, fry.key_shape, fry.itemsize
        (key<fry>, (2,), 8)
        >>> keys = fry.from_words(np.arange(6, dtype=np.uint32).reshape(3, 2))
        >>> keys.shape, of_numpy(keys.dtype)
        ((3,), key<fry>)
        >>> fry.to_words(keys[1:]).tolist()
        [[2, 3], [4, 5]]
    """

    __slots__ = ("impl", "name", "key_shape", "numpy", "itemsize")
    type = prng_key
    _made: dict[str, KeyDType] = {}

    def __new__(cls, impl: str) -> KeyDType:
        made = cls._made.get(impl)
        if made is not None:
            return made
        if impl not in _KEY_FORMS:
            raise ValueError(
                f"there is no random generator {impl!r}; choose one of {', '.join(_KEY_FORMS)}"
            )
        tag, key_shape = _KEY_FORMS[impl]
        count = int(np.prod(key_shape))
        self = super().__new__(cls)
        self.impl = impl
        self.name = f"key<{tag}>"
        self.key_shape = key_shape
        self.numpy = np.dtype([((f"{tag}.{i}", f"k{i}"), np.uint32) for i in range(count)])
        self.itemsize = self.numpy.itemsize
        _BY_NUMPY[self.numpy] = self
        return cls._made.setdefault(impl, self)

    def __reduce__(self):
        return KeyDType, (self.impl,)

    def __repr__(self) -> str:
        return self.name

    def from_words(self, words: np.ndarray) -> np.ndarray:
        """Keys of shape `words.shape` without the trailing `key_shape`, from `uint32` words."""
        words = np.asarray(words)
        split = words.ndim - len(self.key_shape)
        if split < 0 or words.shape[split:] != self.key_shape or words.dtype != np.uint32:
            raise TypeError(
                f"words of {self.name} keys have dtype uint32 and a shape that ends in "
                f"{self.key_shape}; got {words.dtype} of shape {words.shape}"
            )
        flat = np.ascontiguousarray(words).reshape(*words.shape[:split], self.numpy.itemsize // 4)
        return flat.view(self.numpy)[..., 0]

    def to_words(self, keys: np.ndarray) -> np.ndarray:
        """The `uint32` words of keys, in a trailing `key_shape`."""
        flat = np.ascontiguousarray(keys)[..., None] if keys.ndim else keys.reshape(1)
        return flat.view(np.uint32).reshape(keys.shape + self.key_shape)


DType: TypeAlias = "np.dtype[Any]"

_BY_NUMPY: dict[DType, KeyDType] = {}


def define_key_dtype(impl: str, tag: str, key_shape: tuple[int, ...]) -> KeyDType:
    """The key type of a new random generator.

    Args:
        impl: name of the generator.
        tag: short name, printed as `key<tag>`.
        key_shape: shape of the 32-bit words of one key.

    Raises:
        ValueError: another form is known under this name.

    Example:
        >>> define_key_dtype("threefry2x32", "fry", (2,))
        key<fry>
    """
    form = (tag, tuple(key_shape))
    if _KEY_FORMS.setdefault(impl, form) != form:
        raise ValueError(f"random generator {impl!r} is defined already, as {_KEY_FORMS[impl]}")
    return KeyDType(impl)


def of_numpy(dtype: DType) -> DType | KeyDType:
    """The dtype that a NumPy array shows: the key type of a structured one, else itself."""
    return dtype if dtype.names is None else _BY_NUMPY.get(dtype, dtype)


def _dtypes_of(*names: str) -> list[DType]:
    # A name that the installed ml_dtypes does not have yet (int1, uint1) is left out.
    return [np.dtype(getattr(ml_dtypes, name)) for name in names if hasattr(ml_dtypes, name)]


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
bfloat16: DType = np.dtype(ml_dtypes.bfloat16)
int2: DType = np.dtype(ml_dtypes.int2)
int4: DType = np.dtype(ml_dtypes.int4)
uint2: DType = np.dtype(ml_dtypes.uint2)
uint4: DType = np.dtype(ml_dtypes.uint4)
float4_e2m1fn: DType = np.dtype(ml_dtypes.float4_e2m1fn)
float6_e2m3fn: DType = np.dtype(ml_dtypes.float6_e2m3fn)
float6_e3m2fn: DType = np.dtype(ml_dtypes.float6_e3m2fn)
float8_e3m4: DType = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3: DType = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz: DType = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn: DType = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz: DType = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2: DType = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz: DType = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu: DType = np.dtype(ml_dtypes.float8_e8m0fnu)
# The only value of its kind is "no derivative": tangents of integers, booleans and keys.
float0: DType = np.dtype([("float0", np.void, 0)])

_NARROW_SIGNED = _dtypes_of("int1", "int2", "int4")
_NARROW_UNSIGNED = _dtypes_of("uint1", "uint2", "uint4")
_NARROW_FLOATS = [
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
_SIGNED = [*_NARROW_SIGNED, int8, int16, int32, int64]
_UNSIGNED = [*_NARROW_UNSIGNED, uint8, uint16, uint32, uint64]
_FLOATS = [*_NARROW_FLOATS, bfloat16, float16, float32, float64]
_COMPLEXES = [complex64, complex128]
_NUMBERS = [*_SIGNED, *_UNSIGNED, *_FLOATS, *_COMPLEXES]

# All types an array may have, apart from those of keys.
SUPPORTED: frozenset[DType] = frozenset([bool_, *_NUMBERS, float0])

_KINDS: dict[str, frozenset[DType]] = {
    "bool": frozenset([bool_]),
    "signed integer": frozenset(_SIGNED),
    "unsigned integer": frozenset(_UNSIGNED),
    "integral": frozenset([*_SIGNED, *_UNSIGNED]),
    "real floating": frozenset(_FLOATS),
    "complex floating": frozenset(_COMPLEXES),
    "numeric": frozenset(_NUMBERS),
}
_TO_32_BITS = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}

# ml_dtypes' scalar types stand outside NumPy's hierarchy of abstract types; this places them.
_ABSTRACT: dict[type, type] = {
    **{dtype.type: np.signedinteger for dtype in _NARROW_SIGNED},
    **{dtype.type: np.unsignedinteger for dtype in _NARROW_UNSIGNED},
    **{dtype.type: np.floating for dtype in [*_NARROW_FLOATS, bfloat16]},
}

_PYTHON_64: dict[type, DType] = {bool: bool_, int: int64, float: float64, complex: complex128}
_PYTHON_32: dict[type, DType] = {bool: bool_, int: int32, float: float32, complex: complex64}
# Tables that depend on `enable_x64` come in pairs, to be indexed with it.
_PYTHON = (_PYTHON_32, _PYTHON_64)

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo
can_cast = np.can_cast


# Canonical types


def default_int_dtype() -> DType:
    """`int32`, or `int64` while `enable_x64` is on."""
    return int64 if config.enable_x64 else int32


def default_uint_dtype() -> DType:
    """`uint32`, or `uint64` while `enable_x64` is on."""
    return uint64 if config.enable_x64 else uint32


def default_float_dtype() -> DType:
    """`float32`, or `float64` while `enable_x64` is on."""
    return float64 if config.enable_x64 else float32


def default_complex_dtype() -> DType:
    """`complex64`, or `complex128` while `enable_x64` is on."""
    return complex128 if config.enable_x64 else complex64


def python_scalar_dtype(kind: type) -> DType:
    """The dtype of values of Python's `bool`, `int`, `float` or `complex`.

    Example:
        >>> python_scalar_dtype(float)
        dtype('float32')
    """
    return _PYTHON[config.enable_x64][kind]


_canonical: tuple[dict[Any, DType], dict[Any, DType]] = ({}, {})


def canonicalize_dtype(dtype: Any, allow_extended: bool = False) -> Any:
    """The dtype that values of a type really have: 64 bits become 32 unless `enable_x64` is on.

    Args:
        dtype: a dtype, its name, a scalar type, Python's `bool`, `int`, `float` or `complex`, or
            None for the default float.
        allow_extended: whether random keys' types pass.

    Returns:
        A `numpy.dtype`; or the given extended type, where allowed.

    Raises:
        TypeError: not a dtype.
        ValueError: an extended type where none is allowed.

    Example:
        >>> canonicalize_dtype("float64"), canonicalize_dtype(int), canonicalize_dtype("bfloat16")
        (dtype('float32'), dtype('int32'), dtype(bfloat16))
    """
    known = _canonical[config.enable_x64]
    try:
        return known[dtype]
    except KeyError:
        pass
    except TypeError:
        raise TypeError(
            f"a value of type {type(dtype).__name__} is not a data type; "
            "for the type of an array x write x.dtype"
        ) from None
    if _is_extended(dtype):
        if allow_extended:
            return dtype
        raise ValueError(f"{dtype} is a type of random keys; here a type of numbers is needed")
    try:
        wide = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"{dtype!r} is not a data type") from error
    canonical = wide if config.enable_x64 else _TO_32_BITS.get(wide, wide)
    known[dtype] = canonical
    return canonical


def _is_extended(dtype: Any) -> bool:
    return isinstance(dtype, ExtendedDType) or (
        isinstance(dtype, type) and issubclass(dtype, extended)
    )


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _warn_user(message: str) -> None:
    """Warn at the user's own line: the nearest frame outside the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def _narrow_explicit(dtype: DType, where: str) -> DType:
    """Make a type that the user named canonical, as `explicit_x64_dtypes` says."""
    narrow = _TO_32_BITS.get(dtype)
    if narrow is None or config.enable_x64 or config.explicit_x64_dtypes == "allow":
        return dtype
    message = (
        f"dtype {dtype.name} was requested{where}, but 64-bit types are switched off; "
        "switch them on with config.update('jax_enable_x64', True) or the environment variable "
        "NAMOO_ENABLE_X64=1"
    )
    if config.explicit_x64_dtypes == "error":
        raise ValueError(message)
    _warn_user(f"{message}. The result has dtype {narrow.name}.")
    return narrow


def check_user_dtype_supported(dtype: Any, fun_name: str | None = None) -> Any:
    """The canonical form of a dtype that the user passed to a function.

    Args:
        dtype: what the user wrote: a dtype, a name, a scalar type or a Python type.
        fun_name: name of the public function, for messages.

    Returns:
        A `numpy.dtype`, or an extended type as it is.

    Raises:
        TypeError: not a dtype, or not one of arrays, such as `object` or `str`.
        ValueError: an array was passed, or nothing; or a 64-bit type while they are switched off
            and `explicit_x64_dtypes` is 'error'.

    Warns:
        UserWarning: a 64-bit type was named while they are switched off.

    Example:
        >>> check_user_dtype_supported(float, "zeros")
        dtype('float32')
    """
    where = f" in {fun_name}" if fun_name else ""
    if isinstance(dtype, type):
        python = _PYTHON[config.enable_x64].get(dtype)
        if python is not None:
            return python
    if _is_extended(dtype):
        return dtype
    if dtype is None:
        raise ValueError(f"a dtype is needed{where}; got None")
    if hasattr(dtype, "shape") and not isinstance(dtype, np.dtype | type):
        raise ValueError(f"dtype{where} is an array; write dtype=x.dtype instead of dtype=x")
    wide = np.dtype(dtype)
    if wide not in SUPPORTED:
        raise TypeError(
            f"arrays cannot have dtype {wide}{where}; use a boolean, integer, float or complex one"
        )
    return _narrow_explicit(wide, where)


# Types of values


def is_python_scalar(x: Any) -> bool:
    """Whether `x` is a plain Python `bool`, `int`, `float` or `complex`."""
    return type(x) in _PYTHON_64


def is_weak(x: Any) -> bool:
    """Whether `x` takes the width of what it meets.

    True for Python's numbers, for the types `int`, `float` and `complex` themselves, and for
    arrays computed from such numbers only.  Booleans have one width and are never weak.

    Example:
        >>> is_weak(1), is_weak(True), is_weak(np.float32(1)), is_weak(float)
        (True, False, False, True)
    """
    weak = getattr(x, "weak_type", None)
    if weak is not None:
        return bool(weak)
    kind = type(x)
    return kind is float or kind is int or kind is complex or (kind is type and x in _WEAK_NODES)


def dtype_of(x: Any) -> Any:
    """The canonical dtype of a value, or of a dtype given in its place.

    An array that was made while `enable_x64` was on keeps its dtype.

    Args:
        x: an array, a NumPy array or scalar, a Python scalar, an object with a `dtype`, or a
            dtype, its name or a scalar type.

    Raises:
        TypeError: the value has no dtype that an array may have.
        ValueError: None was passed.

    Example:
        >>> dtype_of(1.5), dtype_of(np.arange(3)), dtype_of("bfloat16")
        (dtype('float32'), dtype('int32'), dtype(bfloat16))
    """
    python = _PYTHON[config.enable_x64].get(type(x))
    if python is not None:
        return python
    if getattr(x, "weak_type", None) is not None:
        return x.dtype
    if isinstance(x, np.ndarray | np.generic):
        return _canonical_element(of_numpy(x.dtype), x)
    if x is None:
        raise ValueError("None has no dtype")
    if isinstance(x, str | np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        dtype = _canonical_element(x if _is_extended(x) else np.dtype(x), x, wide=True)
        return _narrow_explicit(dtype, "") if isinstance(dtype, np.dtype) else dtype
    if isinstance(x, ExtendedDType):
        raise TypeError(f"{x} is a dtype of random keys; pass the keys themselves")
    if isinstance(x, type) and x in _PYTHON_64:
        return python_scalar_dtype(x)
    dtype = getattr(x, "dtype", None)
    if isinstance(dtype, np.dtype | ExtendedDType):
        return _canonical_element(dtype, x)
    raise TypeError(
        f"{x!r} of type {type(x).__name__} has no dtype; pass an array, a number or a dtype"
    )


def _canonical_element(dtype: Any, x: Any, wide: bool = False) -> Any:
    if dtype in SUPPORTED:
        return dtype if wide else canonicalize_dtype(dtype)
    if isinstance(dtype, ExtendedDType):
        return dtype
    raise TypeError(
        f"arrays cannot hold {x!r} of dtype {dtype}; "
        "only booleans, integers, floats and complex numbers"
    )


def scalar_type_of(x: Any) -> type:
    """Python's type that stands for the elements of a value: bool, int, float or complex.

    Example:
        >>> scalar_type_of(np.float32(1)), scalar_type_of(np.arange(3))
        (<class 'float'>, <class 'int'>)
    """
    dtype = dtype_of(x)
    if dtype == bool_:
        return bool
    for abstract, python in (
        (np.integer, int),
        (np.floating, float),
        (np.complexfloating, complex),
    ):
        if issubdtype(dtype, abstract):
            return python
    raise TypeError(f"elements of dtype {dtype} are no numbers: {x!r}")


def coerce_scalar(x: bool | int | float | complex, dtype: DType | None = None) -> np.ndarray:
    """A Python scalar as a NumPy array without axes.

    Args:
        x: the scalar.
        dtype: type to convert to; the scalar's own by default.  Integers wrap around in it, as
            they do when an array is converted.

    Raises:
        OverflowError: an integer that does not fit the default integer type.

    Example:
        >>> coerce_scalar(1.5), coerce_scalar(200, int8)
        (array(1.5, dtype=float32), array(-56, dtype=int8))
    """
    own = _PYTHON[config.enable_x64][type(x)]
    if type(x) is int:
        bits = 63 if own is int64 else 31
        if not -(1 << bits) <= x < (1 << bits):
            advice = "; use a float, or switch 64-bit types on" if own is int32 else "; use a float"
            raise OverflowError(f"Python integer {x} is too large for {own.name}{advice}")
    value = np.asarray(x, own)
    return value if dtype is None or dtype == own else value.astype(dtype)


# The hierarchy of types


def issubdtype(a: Any, b: Any) -> bool:
    """Whether one type is, or lies below, another: `bfloat16` is `floating`, keys are `prng_key`.

    Args:
        a, b: dtypes, names, scalar types, or NumPy's abstract types such as `numpy.floating`.

    Example:
        >>> issubdtype("bfloat16", np.floating), issubdtype(np.int32, np.floating)
        (True, False)
    """
    # What is not hashable for certain is made a dtype first.
    direct = (type, np.dtype, ExtendedDType)
    return _issubdtype(
        a if isinstance(a, direct) else np.dtype(a), b if isinstance(b, direct) else np.dtype(b)
    )


@lru_cache(4096)
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
        TypeError: something else that is no dtype.

    Example:
        >>> isdtype("float32", "real floating"), isdtype("int8", ("bool", "unsigned integer"))
        (True, False)
    """
    members: set[DType] = set()
    for each in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(each, str) and each in _KINDS:
            members |= _KINDS[each]
            continue
        try:
            members.add(np.dtype(each))
        except TypeError as error:
            if isinstance(each, str):
                kinds = ", ".join(map(repr, _KINDS))
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
        raise ValueError("a dtype is needed; got None")
    if dtype == bool_:
        return 8
    if issubdtype(dtype, np.integer):
        return iinfo(dtype).bits
    if issubdtype(dtype, np.floating):
        return finfo(dtype).bits
    if issubdtype(dtype, np.complexfloating):
        return 2 * finfo(dtype).bits
    raise ValueError(f"elements of dtype {dtype} are no numbers and have no width")


def supports_inf(dtype: Any) -> bool:
    """Whether a type of numbers has infinities; some 8-bit floats and all integers do not."""
    return issubdtype(dtype, np.inexact) and np.dtype(dtype) not in (
        float8_e4m3b11fnuz,
        float8_e4m3fn,
        float8_e4m3fnuz,
        float8_e5m2fnuz,
    )


@lru_cache(256)
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


# From one type to a related one


def _inexact(dtype: Any) -> DType:
    dtype = np.dtype(dtype)
    if dtype in (int64, uint64):
        return float64
    return float32 if dtype == bool_ or dtype in _KINDS["integral"] else dtype


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


@lru_cache(256)
def tangent_dtype(dtype: Any) -> DType:
    """The type of a value's derivative: itself for floats and complex, else `float0`.

    Example:
        >>> tangent_dtype(float32), tangent_dtype(int32) == float0
        (dtype('float32'), True)
    """
    return dtype if issubdtype(dtype, np.inexact) else float0


# Promotion

# A weak type is a node of the graph under Python's type; a strong one under its dtype.
Node: TypeAlias = "DType | type"
_WEAK_NODES = (int, float, complex)


def _chains(mode: str, x64: bool) -> Iterable[tuple[Node, ...]]:
    """The graph of promotion as chains, each from a type up to those it may be promoted to."""
    if mode == "strict":
        yield int, float, complex
        yield from ((int, dtype) for dtype in [*_SIGNED, *_UNSIGNED])
        yield from ((float, dtype) for dtype in _FLOATS)
        yield from ((complex, dtype) for dtype in _COMPLEXES)
        return
    yield bool_, int
    yield int, uint8, uint16, uint32, uint64, float
    yield int, int8, int16, int32, int64, float
    yield uint8, int16
    yield uint16, int32
    # Without 64-bit types no pair of 32-bit types may meet in one.
    yield uint32, int64 if x64 else int32
    yield float, bfloat16, float32, float64, complex128
    yield float, float16, float32, complex64, complex128
    yield float, complex, complex64
    # Narrow types meet weak ones only: going through them by accident loses too much.
    yield from ((int, dtype) for dtype in [*_NARROW_SIGNED, *_NARROW_UNSIGNED])
    yield from ((float, dtype) for dtype in _NARROW_FLOATS)


@lru_cache(4)
def _upper_bounds(mode: str, x64: bool) -> dict[Node, frozenset[Node]]:
    """For each type, itself and all types above it."""
    above: dict[Node, set[Node]] = {node: {node} for node in [bool_, *_NUMBERS, *_WEAK_NODES]}
    links = [pair for chain in _chains(mode, x64) for pair in zip(chain, chain[1:], strict=False)]
    grown = True
    while grown:
        before = sum(map(len, above.values()))
        for low, high in links:
            above[low] |= above[high]
        grown = sum(map(len, above.values())) != before
    return {node: frozenset(bounds) for node, bounds in above.items()}


@lru_cache(4096)
def _least_upper_bound(mode: str, x64: bool, nodes: frozenset[Node]) -> Node:
    above = _upper_bounds(mode, x64)
    for node in nodes:
        if node not in above:
            raise ValueError(
                f"values of dtype {node} are not promoted: they meet only their own type"
            )
    common = frozenset.intersection(*(above[node] for node in nodes))
    for node in common:
        if common <= above[node]:
            return node
    raise TypePromotionError(_no_promotion(mode, nodes))


def _no_promotion(mode: str, nodes: frozenset[Node]) -> str:
    names = sorted(f"Python {n.__name__}" if isinstance(n, type) else str(n) for n in nodes)
    message = f"no type is common to {' and '.join(names)}"
    narrow = [node for node in nodes if node in [*_NARROW_SIGNED, *_NARROW_UNSIGNED]]
    if mode == "strict":
        return (
            f"{message} while numpy_dtype_promotion is 'strict': convert an operand, as in "
            "x.astype(y.dtype), or set the option to 'standard'"
        )
    target = "int32" if narrow else "float32"
    return (
        f"{message}: types narrower than {'8 bits' if narrow else '16 bits'} are not promoted "
        f"by themselves; convert the operand, as in x.astype('{target}')"
    )


def _node(dtype: Any, weak: bool) -> Node:
    if not weak or dtype == bool_:
        return dtype
    if dtype.kind == "c":
        return complex
    return int if issubdtype(dtype, np.integer) else float


_joins: dict[tuple[Any, ...], tuple[DType, bool]] = {}


def join(*pairs: tuple[Any, bool]) -> tuple[Any, bool]:
    """The common type of operands given as pairs of dtype and weakness.

    Args:
        pairs: for each operand, its canonical dtype and whether it is weak.

    Returns:
        The dtype, and whether the result is weak.

    Raises:
        TypePromotionError: there is no common type.

    Example:
        >>> join((int32, False), (float32, True)), join((float16, False), (float32, True))
        ((dtype('float32'), True), (dtype('float16'), False))
    """
    mode, x64 = config.numpy_dtype_promotion, config.enable_x64
    key = (mode, x64, pairs)
    found = _joins.get(key)
    if found is not None:
        return found
    dtypes = {dtype for dtype, _ in pairs}
    all_weak = all(weak for _, weak in pairs)
    if len(dtypes) == 1 and not all_weak or len(pairs) == 1:
        joined, weak = pairs[0][0], all_weak
    else:
        # Among weak operands only, the widths they happen to have decide, as strong ones' do.
        weak = all_weak and mode == "standard"
        node = _least_upper_bound(
            mode, x64, frozenset(_node(dtype, w and not weak) for dtype, w in pairs)
        )
        if isinstance(node, type):
            joined, weak = python_scalar_dtype(node), True
        else:
            # Only arrays made under `enable_x64` bring a 64-bit type here while it is off.
            joined = _narrow_explicit(node, " by an array made with 64-bit types")
            if joined is not node:
                return joined, weak
    result = joined, weak and joined != bool_
    if x64 or joined not in _TO_32_BITS:
        _joins[key] = result
    return result


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """The common dtype of values or dtypes, and whether the result is weak.

    Example:
        >>> lattice_result_type(np.int8(1), 2), lattice_result_type(1, 2.0)
        ((dtype('int8'), False), (dtype('float32'), True))
    """
    return join(*[(dtype_of(x), is_weak(x)) for x in args])


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that an operation on values or dtypes would have.

    Args:
        args: arrays, scalars, dtypes; None stands for the default float.
        return_weak_type_flag: also say whether the result is weak.

    Returns:
        The dtype, or a pair of it and the flag.

    Raises:
        ValueError: no argument, or types without a common one.
        TypeError: an argument without dtype.

    Example:
        >>> result_type(np.arange(3), 1.5), result_type("int8", "uint8")
        (dtype('float32'), dtype('int16'))
    """
    if not args:
        raise ValueError("result_type needs at least one array or dtype")
    dtype, weak = lattice_result_type(*(default_float_dtype() if x is None else x for x in args))
    if weak:
        dtype = python_scalar_dtype(scalar_type_of(dtype))
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: Any, b: Any) -> DType:
    """The least type above two types; Python's `int`, `float` and `complex` count as weak.

    Example:
        >>> promote_types("int32", "float16"), promote_types("uint8", int)
        (dtype('float16'), dtype('uint8'))
    """
    # By identity, because NumPy's float64 equals Python's float.
    nodes = frozenset(x if any(x is weak for weak in _WEAK_NODES) else np.dtype(x) for x in (a, b))
    return np.dtype(_least_upper_bound(config.numpy_dtype_promotion, config.enable_x64, nodes))


def safe_to_cast(source: Any, target: Any) -> bool:
    """Whether promotion would turn the first type (or value) into the second.

    Example:
        >>> safe_to_cast("int16", "float32"), safe_to_cast("float32", "int16")
        (True, False)
    """
    output = dtype_of(target)
    return dtype_of(source) == output or result_type(source, output) == output
