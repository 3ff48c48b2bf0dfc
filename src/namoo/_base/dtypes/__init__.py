"""Types of elements: which exist, how they are promoted, and what is weak.

Three rules differ from NumPy's.  While `config.enable_x64` is off, 64-bit types become 32-bit.
Python's own `int`, `float` and `complex` are *weak*: they take the width of the other operand.  And
two types promote to their join in a small lattice, drawn in `promotion`, in which an integer and a
float give that float: `int32` and `float16` give `float16`.

Inside the package a dtype is a `numpy.dtype`, or a `KeyDType` for random keys.
"""

from namoo._base.dtypes.canonical import canonicalize_dtype as canonicalize_dtype
from namoo._base.dtypes.canonical import check_fits as check_fits
from namoo._base.dtypes.canonical import check_user_dtype_supported as check_user_dtype_supported
from namoo._base.dtypes.canonical import coerce_scalar as coerce_scalar
from namoo._base.dtypes.canonical import default_complex_dtype as default_complex_dtype
from namoo._base.dtypes.canonical import default_float_dtype as default_float_dtype
from namoo._base.dtypes.canonical import default_int_dtype as default_int_dtype
from namoo._base.dtypes.canonical import default_uint_dtype as default_uint_dtype
from namoo._base.dtypes.canonical import dtype_and_weak as dtype_and_weak
from namoo._base.dtypes.canonical import dtype_of as dtype_of
from namoo._base.dtypes.canonical import is_python_scalar as is_python_scalar
from namoo._base.dtypes.canonical import is_python_type as is_python_type
from namoo._base.dtypes.canonical import is_weak as is_weak
from namoo._base.dtypes.canonical import python_scalar_dtype as python_scalar_dtype
from namoo._base.dtypes.canonical import scalar_type_of as scalar_type_of
from namoo._base.dtypes.elements import MEMBERS as MEMBERS
from namoo._base.dtypes.elements import SUPPORTED as SUPPORTED
from namoo._base.dtypes.elements import bfloat16 as bfloat16
from namoo._base.dtypes.elements import bool_ as bool_
from namoo._base.dtypes.elements import can_cast as can_cast
from namoo._base.dtypes.elements import complex64 as complex64
from namoo._base.dtypes.elements import complex128 as complex128
from namoo._base.dtypes.elements import finfo as finfo
from namoo._base.dtypes.elements import float0 as float0
from namoo._base.dtypes.elements import float4_e2m1fn as float4_e2m1fn
from namoo._base.dtypes.elements import float6_e2m3fn as float6_e2m3fn
from namoo._base.dtypes.elements import float6_e3m2fn as float6_e3m2fn
from namoo._base.dtypes.elements import float8_e3m4 as float8_e3m4
from namoo._base.dtypes.elements import float8_e4m3 as float8_e4m3
from namoo._base.dtypes.elements import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from namoo._base.dtypes.elements import float8_e4m3fn as float8_e4m3fn
from namoo._base.dtypes.elements import float8_e4m3fnuz as float8_e4m3fnuz
from namoo._base.dtypes.elements import float8_e5m2 as float8_e5m2
from namoo._base.dtypes.elements import float8_e5m2fnuz as float8_e5m2fnuz
from namoo._base.dtypes.elements import float8_e8m0fnu as float8_e8m0fnu
from namoo._base.dtypes.elements import float16 as float16
from namoo._base.dtypes.elements import float32 as float32
from namoo._base.dtypes.elements import float64 as float64
from namoo._base.dtypes.elements import iinfo as iinfo
from namoo._base.dtypes.elements import int1 as int1
from namoo._base.dtypes.elements import int2 as int2
from namoo._base.dtypes.elements import int4 as int4
from namoo._base.dtypes.elements import int8 as int8
from namoo._base.dtypes.elements import int16 as int16
from namoo._base.dtypes.elements import int32 as int32
from namoo._base.dtypes.elements import int64 as int64
from namoo._base.dtypes.elements import isdtype as isdtype
from namoo._base.dtypes.elements import issubdtype as issubdtype
from namoo._base.dtypes.elements import itemsize_bits as itemsize_bits
from namoo._base.dtypes.elements import short_name as short_name
from namoo._base.dtypes.elements import supports_inf as supports_inf
from namoo._base.dtypes.elements import tangent_dtype as tangent_dtype
from namoo._base.dtypes.elements import to_complex_dtype as to_complex_dtype
from namoo._base.dtypes.elements import to_floating_dtype as to_floating_dtype
from namoo._base.dtypes.elements import to_inexact_dtype as to_inexact_dtype
from namoo._base.dtypes.elements import to_numeric_dtype as to_numeric_dtype
from namoo._base.dtypes.elements import uint1 as uint1
from namoo._base.dtypes.elements import uint2 as uint2
from namoo._base.dtypes.elements import uint4 as uint4
from namoo._base.dtypes.elements import uint8 as uint8
from namoo._base.dtypes.elements import uint16 as uint16
from namoo._base.dtypes.elements import uint32 as uint32
from namoo._base.dtypes.elements import uint64 as uint64
from namoo._base.dtypes.keys import DType as DType
from namoo._base.dtypes.keys import ExtendedDType as ExtendedDType
from namoo._base.dtypes.keys import KeyDType as KeyDType
from namoo._base.dtypes.keys import define_key_dtype as define_key_dtype
from namoo._base.dtypes.keys import extended as extended
from namoo._base.dtypes.keys import is_extended as is_extended
from namoo._base.dtypes.keys import of_numpy as of_numpy
from namoo._base.dtypes.keys import prng_key as prng_key
from namoo._base.dtypes.promotion import TypePromotionError as TypePromotionError
from namoo._base.dtypes.promotion import join as join
from namoo._base.dtypes.promotion import lattice_result_type as lattice_result_type
from namoo._base.dtypes.promotion import promote_types as promote_types
from namoo._base.dtypes.promotion import result_type as result_type
from namoo._base.dtypes.promotion import safe_to_cast as safe_to_cast
