"""Types of elements as a user names them, and constants.

`jnp.float32` names a type, and called with a number it makes an array of that type.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.source_context import entry_point
from namoo.core.array import Array
from namoo.numpy.creation import asarray


class ScalarType(type):
    """The class of `jnp.float32` and its like."""

    dtype: np.dtype

    @property
    def __numpy_dtype__(cls) -> np.dtype:
        return cls.dtype

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        return cls is other or cls.dtype.type == other

    def __ne__(cls, other: object) -> bool:
        return not cls == other

    @entry_point
    def __call__(cls, x: Any) -> Array:  # type: ignore[override]
        return asarray(x, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return builtins.isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'namoo.numpy.{cls.__name__}'>"


def _scalar(dtype: Any) -> Any:
    dtype = np.dtype(dtype)
    doc = f"Numbers of type {dtype.name}; called with a value, an array of that type."
    members = {"dtype": dtype, "__doc__": doc, "__module__": "namoo.numpy"}
    return ScalarType(dtype.type.__name__, (object,), members)


bool_ = bool = _scalar(np.bool_)
# Types of one bit: an older ml_dtypes has none.
int1 = None if dtypes.int1 is None else _scalar(dtypes.int1)
uint1 = None if dtypes.uint1 is None else _scalar(dtypes.uint1)
uint2 = _scalar(dtypes.uint2)
uint4 = _scalar(dtypes.uint4)
uint8 = _scalar(np.uint8)
uint16 = _scalar(np.uint16)
uint32 = _scalar(np.uint32)
uint64 = uint = _scalar(np.uint64)
int2 = _scalar(dtypes.int2)
int4 = _scalar(dtypes.int4)
int8 = _scalar(np.int8)
int16 = _scalar(np.int16)
int32 = _scalar(np.int32)
int64 = int_ = _scalar(np.int64)
float4_e2m1fn = _scalar(dtypes.float4_e2m1fn)
float6_e2m3fn = _scalar(dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar(dtypes.float6_e3m2fn)
float8_e3m4 = _scalar(dtypes.float8_e3m4)
float8_e4m3 = _scalar(dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar(dtypes.float8_e4m3fn)
float8_e4m3fnuz = _scalar(dtypes.float8_e4m3fnuz)
float8_e5m2 = _scalar(dtypes.float8_e5m2)
float8_e5m2fnuz = _scalar(dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar(dtypes.float8_e8m0fnu)
bfloat16 = _scalar(dtypes.bfloat16)
float16 = _scalar(np.float16)
float32 = single = _scalar(np.float32)
float64 = double = float_ = _scalar(np.float64)
complex64 = csingle = _scalar(np.complex64)
complex128 = cdouble = complex_ = _scalar(np.complex128)

generic = np.generic
number = np.number
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
flexible = np.flexible
character = np.character
object_ = np.object_
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning

finfo = dtypes.finfo
iinfo = dtypes.iinfo
can_cast = dtypes.can_cast
isdtype = dtypes.isdtype
promote_types = dtypes.promote_types

pi = np.pi
e = np.e
euler_gamma = np.euler_gamma
inf = np.inf
nan = np.nan
newaxis = None

get_printoptions = np.get_printoptions
printoptions = np.printoptions
set_printoptions = np.set_printoptions


def result_type(*args: Any) -> np.dtype:
    """The type that an operation on values or types would have.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.result_type(jnp.arange(3), 1.5)
        dtype('float32')
    """
    return dtypes.result_type(*args)


def issubdtype(arg1: Any, arg2: Any) -> builtins.bool:
    """Whether one type is another, or a subtype of it.

    Args:
        arg1, arg2: dtypes, names, or abstract types such as `jnp.floating`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype("int32", jnp.floating)
        (True, False)
    """
    return dtypes.issubdtype(arg1, arg2)
