"""Which type a value, or a type that the user names, really has: 64 bits, or 32."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base.caches import register
from namoo._base.config import config
from namoo._base.dtypes.elements import (
    CANONICAL,
    NUMBERS,
    PYTHON,
    PYTHON_64,
    SUPPORTED,
    TO_32_BITS,
    WEAK_TYPES,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    int64,
    issubdtype,
    uint32,
    uint64,
)
from namoo._base.dtypes.keys import DType, ExtendedDType, is_extended, of_numpy
from namoo._base.dtypes.narrow import advice, is_absent
from namoo._base.source_context import at_user_line, warn_user


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
    return PYTHON[config.enable_x64][kind]


_canonical: tuple[dict[Any, DType], dict[Any, DType]] = ({}, {})


def _numpy_dtype(dtype: Any) -> DType:
    """Return NumPy's data type; a misspelt name is a TypeError that suggests another."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        from namoo._base.hints import near  # needed only for errors

        if dtype in [absent.type.__name__ for absent in NUMBERS if is_absent(absent)]:
            raise TypeError(advice(dtype)) from None
        found = near(dtype, map(str, SUPPORTED)) if isinstance(dtype, str) else ""
        hint = f"; did you mean {found!r}?" if found else ""
        raise TypeError(f"data type {dtype!r} not understood{hint}") from None
    if is_absent(found):
        raise TypeError(advice(found.type.__name__))
    return found


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
    if is_extended(dtype):
        if allow_extended:
            return dtype
        raise ValueError(f"{dtype} is a type of random keys; here a type of numbers is needed")
    wide = _numpy_dtype(dtype)
    canonical = wide if config.enable_x64 else TO_32_BITS.get(wide, wide)
    known[dtype] = canonical
    return canonical


def narrow_explicit(dtype: DType, where: str) -> DType:
    """Make a type that the user named canonical, as `explicit_x64_dtypes` says."""
    narrow = TO_32_BITS.get(dtype)
    if narrow is None or config.enable_x64 or config.explicit_x64_dtypes == "allow":
        return dtype
    advice = (
        "64-bit types are switched off; switch them on with config.update('jax_enable_x64', True) "
        "or the environment variable NAMOO_ENABLE_X64=1."
    )
    message = (
        f"Explicitly requested dtype {dtype.name}{where and ' requested' + where} is not available"
    )
    if config.explicit_x64_dtypes == "error":
        raise ValueError(f"{message}: {advice}")
    warn_user(f"{message}, and will be truncated to dtype {narrow.name}: {advice}")
    return narrow


def check_user_dtype_supported(dtype: Any, fun_name: str | None = None) -> Any:
    """The canonical form of a dtype that the user passed to a function.

    Args:
        dtype: what the user wrote: a dtype, a name, a scalar type or a Python type.
        fun_name: name of the public function, for messages.

    Returns:
        A `numpy.dtype`, or an extended type, unchanged.

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
    if is_python_type(dtype):
        return python_scalar_dtype(dtype)
    if type(dtype) in _NAMES and (known := _user_dtypes.get(dtype)) is not None:
        return known
    where = f" in {fun_name}" if fun_name else ""
    if is_extended(dtype):
        return dtype
    if dtype is None:
        raise ValueError(f"a dtype is needed{where}; got None")
    if hasattr(dtype, "shape") and not isinstance(dtype, np.dtype | type):
        raise ValueError(f"dtype{where} is an array; write dtype=x.dtype instead of dtype=x")
    wide = _numpy_dtype(dtype)
    if wide not in SUPPORTED:
        raise TypeError(
            f"arrays cannot have dtype {wide}{where}; use a boolean, integer, float or complex one"
        )
    if wide not in TO_32_BITS and type(dtype) in _NAMES:
        _user_dtypes[dtype] = wide
    return narrow_explicit(wide, where)


_NAMES = frozenset([str, type, *(type(np.dtype(c)) for c in "?bhilBHILefdFD")])
_user_dtypes: dict[Any, Any] = register(
    "base.dtypes what users write",
    {},
    bound="names and classes of dtypes that no setting narrows",
    keyed_by="a name, a scalar type or a dtype",
    kept=True,
)


def is_python_scalar(x: Any) -> bool:
    """Whether `x` is a plain Python `bool`, `int`, `float` or `complex`."""
    return type(x) in PYTHON_64


def is_python_type(dtype: Any) -> bool:
    """Whether a dtype was given as Python's `bool`, `int`, `float` or `complex` itself."""
    # Only a type is looked up: NumPy's dtype float64 equals Python's float.
    return isinstance(dtype, type) and dtype in PYTHON_64


def is_weak(x: Any) -> bool:
    """Whether `x` is weakly typed: it takes the width of the other operand.

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
    return kind is float or kind is int or kind is complex or (kind is type and x in WEAK_TYPES)


def dtype_of(x: Any) -> Any:
    """The canonical dtype of a value, or of a dtype passed instead of one.

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
    python = PYTHON[config.enable_x64].get(type(x))
    if python is not None:
        return python
    if getattr(x, "weak_type", None) is not None:
        return x.dtype
    if isinstance(x, _NUMPY) and not isinstance(x, str):
        if type(x) is not np.ndarray and isinstance(x, np.ndarray):
            _refuse_mask(x)
        return CANONICAL[config.enable_x64].get(x.dtype) or _key_dtype(of_numpy(x.dtype), x)
    if x is None:
        raise ValueError("None has no dtype")
    if isinstance(x, str | np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        named: Any = x if is_extended(x) else _numpy_dtype(x)
        return narrow_explicit(named, "") if named in SUPPORTED else _key_dtype(named, x)
    if is_python_type(x):
        return python_scalar_dtype(x)
    if isinstance(x, ExtendedDType):
        raise TypeError(f"{x} is a dtype of random keys; pass the keys themselves")
    dtype = getattr(x, "dtype", None)
    if not isinstance(dtype, np.dtype | ExtendedDType):
        if hasattr(x, "__jax_array__"):
            return dtype_of(x.__jax_array__())
        try:
            # Subclasses of Python's numbers, and anything else that NumPy accepts as a number.
            dtype = np.result_type(x)
        except TypeError as error:
            raise TypeError(
                f"{x!r} of type {type(x).__name__} has no dtype; pass an array, a number or a dtype"
            ) from error
    return CANONICAL[config.enable_x64].get(dtype) or _key_dtype(dtype, x)


_NUMPY = (np.ndarray, np.generic)


def _refuse_mask(x: np.ndarray) -> None:
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to functions of arrays, which "
            "do not support masks. Use x.filled() to give masked elements a value, or "
            "jnp.asarray(x) to take the array without its mask." + at_user_line()
        )


def _key_dtype(dtype: Any, x: Any) -> Any:
    """Return the dtype of random keys; refuse all others that are not of numbers."""
    if is_extended(dtype):
        return dtype
    raise TypeError(
        f"{x!r} of type {type(x)} and dtype {dtype} is not a valid JAX type: arrays hold only "
        "booleans, integers, floats and complex numbers."
    )


def dtype_and_weak(x: Any) -> tuple[Any, bool]:
    """The pair of `dtype_of` and `is_weak`."""
    weak = getattr(x, "weak_type", None)
    if weak is not None:
        return x.dtype, weak
    return _PYTHON_PAIRS[config.enable_x64].get(type(x)) or (dtype_of(x), is_weak(x))


_PYTHON_PAIRS = tuple(
    {kind: (dtype, kind in WEAK_TYPES) for kind, dtype in table.items()} for table in PYTHON
)


def scalar_type_of(x: Any) -> type:
    """The Python type that corresponds to the elements of a value: bool, int, float or complex.

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
    raise TypeError(f"elements of dtype {dtype} are not numbers: {x!r}")


def check_fits(x: Any, dtype: Any) -> None:
    """In strict mode, refuse NumPy integers that do not fit a narrower type.

    Args:
        x: a NumPy array or scalar.
        dtype: the canonical type that it is about to be converted to.

    Raises:
        OverflowError: a value does not fit.
    """
    if not config.strict or x.dtype == dtype or x.dtype.kind not in "iu" or not np.size(x):
        return
    least, most = int(np.min(x)), int(np.max(x))
    limits = np.iinfo(dtype)
    if least < limits.min or most > limits.max:
        wrong = most if most > limits.max else least
        raise OverflowError(
            f"{wrong} in a NumPy array of {x.dtype} does not fit {dtype}, which 64-bit types "
            "become while enable_x64 is off. Switch it on, or convert the array yourself: "
            f"x.astype('{dtype}') says that the value may be lost." + at_user_line()
        )


def coerce_scalar(x: bool | int | float | complex, dtype: DType | None = None) -> np.ndarray:
    """A Python scalar as a NumPy array without axes.

    Args:
        x: the scalar.
        dtype: type to convert to; the scalar's own by default.  Integers wrap around in it, as
            they do when an array is converted.

    Raises:
        OverflowError: an integer that does not fit the default integer type.

    Example:
        >>> coerce_scalar(1.5), coerce_scalar(200, np.dtype("int8"))
        (array(1.5, dtype=float32), array(-56, dtype=int8))
    """
    own = PYTHON[config.enable_x64][type(x)]
    if type(x) is int:
        bits = 63 if own is int64 else 31
        if not -(1 << bits) <= x < (1 << bits):
            advice = "; use a float, or switch 64-bit types on" if own is int32 else "; use a float"
            raise OverflowError(f"Python int {x} too large to convert to {own.name}{advice}")
    value = np.asarray(x, own)
    return value if dtype is None or dtype == own else value.astype(dtype)
