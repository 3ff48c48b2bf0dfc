"""Operations on the bits of integers, and reading the bits of one type as another.

NumPy leaves a shift by the width of a type or more to the machine; here, as in compiled programs,
every bit is then shifted out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.primitive import Primitive, Zero
from namoo.primitives.families import accepts, binary, integer, operands, unary
from namoo.primitives.families import bits as bit_types
from namoo.primitives.shape import moveaxis

__all__ = [
    "and_p", "bitcast_convert_type", "bitcast_convert_type_p", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "clz", "clz_p", "mulhi", "mulhi_p", "not_p", "or_p",
    "population_count", "population_count_p", "shift_left", "shift_left_p",
    "shift_right_arithmetic", "shift_right_arithmetic_p", "shift_right_logical",
    "shift_right_logical_p", "xor_p",
]  # fmt: skip


def _narrow(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of integers accept 2- and 4-bit types, which NumPy cannot compute with."""

    def run(x, *others):
        if x.dtype.kind != "V":
            return ufunc(x, *others)
        wide = np.uint8 if accepts(x.dtype, (np.unsignedinteger,)) else np.int8
        return _from_codes(_codes(ufunc(*(v.astype(wide) for v in (x, *others))), x.dtype), x.dtype)

    return run


def _codes(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The low bits of bytes, as many as a type has."""
    return x.view(np.uint8) & np.uint8((1 << dtypes.itemsize_bits(dtype)) - 1)


def _from_codes(codes: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Elements of a type of less than 8 bits, from their bit patterns."""
    if not accepts(dtype, (np.signedinteger,)):
        return codes.view(dtype)
    sign = np.uint8(1 << (dtypes.itemsize_bits(dtype) - 1))
    return ((codes ^ sign) - sign).view(np.int8).astype(dtype)


def _rule(name: str, ufunc: Any, stablehlo: str) -> Any:
    return binary(name, _narrow(ufunc), dtypes=bit_types, stablehlo=stablehlo)


and_p = _rule("and", np.bitwise_and, "and")
or_p = _rule("or", np.bitwise_or, "or")
xor_p = _rule("xor", np.bitwise_xor, "xor")
not_p = unary("not", _narrow(np.bitwise_not), dtypes=bit_types, stablehlo="not")


def bitwise_and(x: Any, y: Any) -> Any:
    """The bits set in both x and y; logical and of booleans.

    Example:
        >>> bitwise_and(6, 3)
        Array(2, dtype=int32, weak_type=True)
    """
    return and_p.bind(*operands("and", x, y))


def bitwise_or(x: Any, y: Any) -> Any:
    """The bits set in x or y; logical or of booleans.

    Example:
        >>> bitwise_or(6, 3)
        Array(7, dtype=int32, weak_type=True)
    """
    return or_p.bind(*operands("or", x, y))


def bitwise_xor(x: Any, y: Any) -> Any:
    """The bits set in exactly one of x and y; inequality of booleans.

    Example:
        >>> bitwise_xor(6, 3)
        Array(5, dtype=int32, weak_type=True)
    """
    return xor_p.bind(*operands("xor", x, y))


def bitwise_not(x: Any) -> Any:
    """The bits not set in x; negation of booleans.

    Example:
        >>> bitwise_not(6)
        Array(-7, dtype=int32, weak_type=True)
    """
    return not_p.bind(x)


_SIGNED = {np.dtype(f"u{n}"): np.dtype(f"i{n}") for n in (1, 2, 4, 8)}
_UNSIGNED = {signed: unsigned for unsigned, signed in _SIGNED.items()}


def _far(y: np.ndarray, width: int) -> Any:
    """Where a shift is as wide as the type or wider, or negative; False if there are none."""
    if y.ndim == 0:
        return not 0 <= int(y) < width
    far = y.view(_UNSIGNED.get(y.dtype, y.dtype)) >= width
    return far if far.any() else False


def _shift(ufunc: np.ufunc, x: np.ndarray, y: np.ndarray, far: Any) -> np.ndarray:
    """Shift, with 0 where `far` is set."""
    if far is False:
        return ufunc(x, y)
    zero = np.zeros((), x.dtype)
    return np.where(far, zero, ufunc(x, np.where(far, zero, y)))


def _shift_left(x, y):
    if x.dtype.kind == "V":
        width = dtypes.itemsize_bits(x.dtype)
        codes = _shift_left(_codes(x.astype(np.int8), x.dtype), _limited(y, width))
        return _from_codes(_codes(codes, x.dtype), x.dtype)
    return _shift(np.left_shift, x, y, _far(y, 8 * x.itemsize))


def _shift_right_logical(x, y):
    if x.dtype.kind == "V":
        width = dtypes.itemsize_bits(x.dtype)
        codes = _shift_right_logical(_codes(x.astype(np.int8), x.dtype), _limited(y, width))
        return _from_codes(codes, x.dtype)
    unsigned = _UNSIGNED.get(x.dtype, x.dtype)
    far = _far(y, 8 * x.itemsize)
    return _shift(np.right_shift, x.view(unsigned), y.view(unsigned), far).view(x.dtype)


def _shift_right_arithmetic(x, y):
    if x.dtype.kind == "V":
        # After the shift, the sign is the top bit of the wider type.
        width = dtypes.itemsize_bits(x.dtype)
        up = (_codes(x.astype(np.int8), x.dtype) << np.uint8(8 - width)).view(np.int8)
        down = _shift_right_arithmetic(up, _limited(y, width).view(np.int8)) >> np.int8(8 - width)
        return _from_codes(_codes(down, x.dtype), x.dtype)
    signed: Any = _SIGNED.get(x.dtype, x.dtype)
    width = 8 * x.itemsize
    far = _far(y, width)
    if far is not False:
        y = np.where(far, np.array(width - 1, y.dtype), y)
    return np.right_shift(x.view(signed), y.view(signed)).view(x.dtype)


def _limited(y: np.ndarray, width: int) -> np.ndarray:
    """Shifts of narrow integers as bytes, limited to 8."""
    y = y.astype(np.int8)
    return np.where((y < 0) | (y >= width), np.int8(8), y).view(np.uint8)


shift_left_p = binary("shift_left", _shift_left, dtypes=integer, stablehlo="shift_left")
shift_right_arithmetic_p = binary(
    "shift_right_arithmetic",
    _shift_right_arithmetic,
    dtypes=integer,
    stablehlo="shift_right_arithmetic",
)
shift_right_logical_p = binary(
    "shift_right_logical", _shift_right_logical, dtypes=integer, stablehlo="shift_right_logical"
)


def shift_left(x: Any, y: Any) -> Any:
    """x with its bits shifted up by y: x · 2ʸ; 0 where y is the width of the type or more.

    Example:
        >>> shift_left(3, 2), shift_left(3, 32)
        (Array(12, dtype=int32, weak_type=True), Array(0, dtype=int32, weak_type=True))
    """
    return shift_left_p.bind(*operands("shift_left", x, y))


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """x with its bits shifted down by y, filled with its highest bit: ⌊x / 2ʸ⌋.

    Example:
        >>> shift_right_arithmetic(-5, 1), shift_right_arithmetic(-5, 32)
        (Array(-3, dtype=int32, weak_type=True), Array(-1, dtype=int32, weak_type=True))
    """
    return shift_right_arithmetic_p.bind(*operands("shift_right_arithmetic", x, y))


def shift_right_logical(x: Any, y: Any) -> Any:
    """x with its bits shifted down by y, filled with zeros.

    Example:
        >>> shift_right_logical(-1, 31), shift_right_logical(-1, 32)
        (Array(1, dtype=int32, weak_type=True), Array(0, dtype=int32, weak_type=True))
    """
    return shift_right_logical_p.bind(*operands("shift_right_logical", x, y))


def _population_count(x):
    if x.dtype.kind == "V":
        return np.bitwise_count(_codes(x.astype(np.int8), x.dtype)).astype(x.dtype)
    return np.bitwise_count(x.view(_UNSIGNED.get(x.dtype, x.dtype))).astype(x.dtype)


def _leading_zeros(x):
    width = dtypes.itemsize_bits(x.dtype)
    if x.dtype.kind == "V":
        code = _codes(x.astype(np.int8), x.dtype)
    else:
        code = x.view(_UNSIGNED.get(x.dtype, x.dtype))
    # Set all bits below the highest one; the bits still unset are the leading zeros.
    reach = 1
    while reach < width:
        code = code | (code >> code.dtype.type(reach))
        reach *= 2
    return (width - np.bitwise_count(code)).astype(x.dtype)


def _population_count_in_xla(hlo, x):
    if (width := dtypes.itemsize_bits(x.dtype)) >= 8:
        return hlo.op("popcnt", x)
    # XLA would also count the copies of the sign bit in the byte.
    mask = hlo.constant((1 << width) - 1, np.uint8, x.shape)
    code = hlo.combine("and", hlo.convert(x, np.uint8), mask)
    return hlo.convert(hlo.op("popcnt", code, result=code), x.dtype)


population_count_p = unary(
    "population_count", _population_count, dtypes=integer, stablehlo=_population_count_in_xla
)
clz_p = unary("clz", _leading_zeros, dtypes=integer, stablehlo="count_leading_zeros")


def population_count(x: Any) -> Any:
    """The number of set bits of x.

    Example:
        >>> population_count(7), population_count(-1)
        (Array(3, dtype=int32, weak_type=True), Array(32, dtype=int32, weak_type=True))
    """
    return population_count_p.bind(x)


def clz(x: Any) -> Any:
    """The number of zeros above the highest set bit of x.

    Example:
        >>> clz(1), clz(0)
        (Array(31, dtype=int32, weak_type=True), Array(32, dtype=int32, weak_type=True))
    """
    return clz_p.bind(x)


def _multiply_high(x, y):
    width = dtypes.itemsize_bits(x.dtype)
    signed = accepts(x.dtype, (np.signedinteger,))
    if width <= 32:
        wide = np.int64 if signed else np.uint64
        product = x.astype(wide) * y.astype(wide) >> wide(width)
        return product.astype(np.int8).astype(x.dtype) if width < 8 else product.astype(x.dtype)
    # By halves of 32 bits: (a·2³² + b)·(c·2³² + d), where b and d are not negative.
    half, mask = x.dtype.type(32), x.dtype.type(0xFFFFFFFF)
    a, b, c, d = x >> half, x & mask, y >> half, y & mask
    low = (b.astype(np.uint64) * d.astype(np.uint64) >> np.uint64(32)).astype(x.dtype)
    first = a * d + low
    second = b * c + (first & mask)
    return a * c + (first >> half) + (second >> half)


def _mulhi_in_xla(hlo, x, y):
    x, y = hlo.alike(x, y)
    width, op = dtypes.itemsize_bits(x.dtype), hlo.combine
    signed = accepts(x.dtype, (np.signedinteger,))
    if width <= 32:
        wide = np.int64 if signed else np.uint64
        product = op("multiply", hlo.convert(x, wide), hlo.convert(y, wide))
        shift = hlo.constant(width, wide, x.shape)
        return hlo.convert(op("shift_right_logical", product, shift), x.dtype)
    down = "shift_right_arithmetic" if signed else "shift_right_logical"
    half, mask = (hlo.constant(n, x.dtype, x.shape) for n in (32, 0xFFFFFFFF))
    a, b, c, d = op(down, x, half), op("and", x, mask), op(down, y, half), op("and", y, mask)
    low = op("shift_right_logical", op("multiply", b, d), half)
    first = op("add", op("multiply", a, d), low)
    second = op("add", op("multiply", b, c), op("and", first, mask))
    return op("add", op("multiply", a, c), op("add", op(down, first, half), op(down, second, half)))


mulhi_p = binary("mulhi", _multiply_high, dtypes=integer, stablehlo=_mulhi_in_xla)


def mulhi(x: Any, y: Any) -> Any:
    """The upper half of the product of two integers, which has twice their width.

    Example:
        >>> mulhi(2**30, 8)
        Array(2, dtype=int32, weak_type=True)
    """
    return mulhi_p.bind(*operands("mulhi", x, y))


class BitcastConvertType(Primitive):
    """The same bits, read as another type; the last axis changes if the widths differ."""

    name = "bitcast_convert_type"
    sets_weak = True

    def evaluate(self, x, *, new_dtype):
        width, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
        if x.dtype == new_dtype:
            return x
        if min(width, new) < 8:
            return self._narrow(x, width, new, new_dtype)
        if width > new:
            return np.ascontiguousarray(x[..., None]).view(new_dtype)
        if width < new:
            if x.shape[-1] * width != new:
                raise ValueError("the last axis does not fill an element")
            return np.ascontiguousarray(x).view(new_dtype)[..., 0]
        return x.view(new_dtype)

    @staticmethod
    def _narrow(x, width: int, new: int, new_dtype) -> np.ndarray:
        """By single bits, lowest first: for types of less than 8 bits."""
        if width < 8:
            x = _codes(x.astype(np.int8) if accepts(x.dtype, integer) else x, x.dtype)
        data = np.ascontiguousarray(x[..., None]).view(np.uint8)
        bits = np.unpackbits(data, axis=-1, bitorder="little")[..., :width]
        if width < new:
            bits = bits.reshape(*bits.shape[:-2], new)
        else:
            bits = bits.reshape(*bits.shape[:-1], width // new, new)
            bits = bits[..., 0, :] if width == new else bits
        if new >= 8:
            return np.packbits(bits, axis=-1, bitorder="little").view(new_dtype)[..., 0]
        weights = (1 << np.arange(new)).astype(np.uint8)
        return _from_codes((bits * weights).sum(axis=-1, dtype=np.uint8), new_dtype)

    def abstract(self, x, *, new_dtype):
        if isinstance(x.dtype, dtypes.ExtendedDType):
            raise ValueError(
                f"bitcast_convert_type: an array of dtype {x.dtype} holds no plain numbers; use "
                "random.key_data to see the numbers of a key."
            )
        if x.dtype != new_dtype and any(d.kind in "bc" for d in (x.dtype, new_dtype)):
            raise TypeError(
                "bitcast_convert_type does not read booleans or complex numbers as other types, "
                f"nor the reverse; got {x.dtype} and new_dtype {new_dtype}. Use x.view(dtype)."
            )
        width, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
        shape = x.shape
        if width > new:
            shape = (*shape, width // new)
        elif width < new:
            if not shape or shape[-1] * width != new:
                raise ValueError(
                    f"bitcast_convert_type: an array of shape {shape} and dtype {x.dtype} "
                    f"({width} bits) cannot be read as {new_dtype} ({new} bits): its last axis "
                    f"must have length {new // width}."
                )
            shape = shape[:-1]
        return ShapedArray(shape, new_dtype)

    def sharded(self, x, *, new_dtype):
        before, after = (dtypes.itemsize_bits(d) for d in (x.dtype, new_dtype))
        if before == after:
            return x.entries
        return (*x.entries, None) if before > after else x.entries[:-1]

    def weak_result(self, weak, params):
        return False

    def jvp(self, primals, tangents, *, new_dtype):
        out = self.bind(*primals, new_dtype=new_dtype)
        return out, Zero.of(out)

    def batch(self, xs, dims, *, new_dtype):
        return self.bind(moveaxis(xs[0], dims[0], 0), new_dtype=new_dtype), 0

    def native(self, emit, x, *, new_dtype):
        return emit.bitcast(x, new_dtype)

    def stablehlo(self, hlo, x, *, new_dtype):
        return hlo.bitcast(x, new_dtype, hlo.avals[0].shape)


bitcast_convert_type_p = BitcastConvertType()


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """Read the bits of an array as elements of another type.

    Where the new type is narrower the result has one more axis, at the end, over the parts of each
    element, lowest first; where it is wider the last axis must hold the parts of one element.

    Args:
        operand: an array of integers or floats.
        new_dtype: the other type.

    Raises:
        TypeError: one type is boolean or complex, and the types differ.
        ValueError: the last axis does not have the length that makes up one element.

    Example:
        >>> import namoo.numpy as jnp
        >>> bitcast_convert_type(jnp.float32(1.0), jnp.int32)
        Array(1065353216, dtype=int32)
        >>> bitcast_convert_type(jnp.float32(1.0), jnp.uint8)
        Array([  0,   0, 128,  63], dtype=uint8)
    """
    new_dtype = dtypes.canonicalize_dtype(new_dtype)
    # NumPy would read booleans and complex numbers, too.
    bitcast_convert_type_p.abstract(aval_of(operand), new_dtype=new_dtype)
    return bitcast_convert_type_p.bind(operand, new_dtype=new_dtype)
