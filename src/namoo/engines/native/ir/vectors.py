"""Numbers with operators that write IR: formulas in generated code read like formulas."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from namoo.engines.native.ir.function import Function, Value, bits_of, constant, is_float

Rule = Callable[..., Value]

# Per type: bits of the fraction, and the exponent's bias.
FRACTION = {"f32": 23, "f64": 52}
BIAS = {"f32": 127, "f64": 1023}
LEAST_NORMAL = {"f32": 2.0**-126, "f64": 2.0**-1022}
INTEGER = {"f32": "i32", "f64": "i64"}


class Number:
    """A value in a function under construction; Python numbers become constants of its type."""

    __slots__ = ("f", "value")

    def __init__(self, f: Function, value: Value):
        self.f = f
        self.value = value

    @property
    def elem(self) -> str:
        return self.value.elem

    def of(self, other: Number | float) -> Value:
        return other.value if isinstance(other, Number) else constant(self.elem, other)

    def like(self, other: float) -> Number:
        """A constant of this type."""
        return Number(self.f, constant(self.elem, other))

    def __add__(self, other):
        return Number(self.f, self.f.add(self.value, self.of(other)))

    __radd__ = __add__

    def __sub__(self, other):
        return Number(self.f, self.f.sub(self.value, self.of(other)))

    def __rsub__(self, other):
        return Number(self.f, self.f.sub(self.of(other), self.value))

    def __mul__(self, other):
        return Number(self.f, self.f.mul(self.value, self.of(other)))

    __rmul__ = __mul__

    def __truediv__(self, other):
        return Number(self.f, self.f.fdiv(self.value, self.of(other)))

    def __rtruediv__(self, other):
        return Number(self.f, self.f.fdiv(self.of(other), self.value))

    def __neg__(self):
        return Number(self.f, self.f.neg(self.value))

    def __abs__(self):
        return Number(self.f, self.f.fabs(self.value))

    def __and__(self, other):
        return Number(self.f, self.f.and_(self.value, self.of(other)))

    def __or__(self, other):
        return Number(self.f, self.f.or_(self.value, self.of(other)))

    def __xor__(self, other):
        return Number(self.f, self.f.xor(self.value, self.of(other)))

    def __invert__(self):
        return Number(self.f, self.f.not_(self.value))

    def __lshift__(self, by):
        return Number(self.f, self.f.shl(self.value, self.of(by)))

    def __rshift__(self, by):
        return Number(self.f, self.f.lshr(self.value, self.of(by)))

    def compared(self, relation: str, other: Number | float) -> Number:
        return Number(self.f, self.f.compare(relation, self.value, self.of(other)))

    def __lt__(self, other):
        return self.compared("lt", other)

    def __le__(self, other):
        return self.compared("le", other)

    def __gt__(self, other):
        return self.compared("gt", other)

    def __ge__(self, other):
        return self.compared("ge", other)

    def equals(self, other: Number | float) -> Number:
        return self.compared("eq", other)

    def differs(self, other: Number | float) -> Number:
        return self.compared("ne", other)

    def to(self, elem: str) -> Number:
        """Converted to another type."""
        return Number(self.f, self.f.convert(self.value, elem))

    def bits(self) -> Number:
        """The same bits as a signed integer."""
        return Number(self.f, self.f.bitcast(self.value, INTEGER[self.elem]))

    def as_float(self) -> Number:
        """The same bits as a floating number."""
        return Number(self.f, self.f.bitcast(self.value, f"f{bits_of(self.elem)}"))

    def copysign(self, sign: Number) -> Number:
        return Number(self.f, self.f.intrinsic("copysign", self.value, sign.value))

    def sqrt(self) -> Number:
        return Number(self.f, self.f.sqrt(self.value))

    def floor(self) -> Number:
        return Number(self.f, self.f.floor(self.value))

    def at_least(self, bound: float) -> Number:
        """The greater of both; NaN stays NaN."""
        # In this order it is one instruction on x86: `max` returns the second operand for NaN.
        low = self.like(bound)
        return where(low > self, low, self)

    def at_most(self, bound: float) -> Number:
        """The less of both; NaN stays NaN."""
        high = self.like(bound)
        return where(high < self, high, self)


def where(condition: Number, x: Number | float, y: Number | float) -> Number:
    """`x` where the condition holds, else `y`: one of them is a Number."""
    known = x if isinstance(x, Number) else y
    assert isinstance(known, Number)
    return Number(known.f, known.f.select(condition.value, known.of(x), known.of(y)))


def fma(x: Number, y: Number | float, z: Number | float) -> Number:
    """x·y + z with one rounding."""
    return Number(x.f, x.f.fma(x.value, x.of(y), x.of(z)))


def muladd(x: Number, y: Number | float, z: Number | float) -> Number:
    """x·y + z with one rounding or two."""
    return Number(x.f, x.f.muladd(x.value, x.of(y), x.of(z)))


def horner(x: Number, coefficients: Sequence[float]) -> Number:
    """A polynomial, with the coefficient of the lowest power first."""
    *rest, last = coefficients
    total = x.like(last)
    for c in reversed(rest):
        total = muladd(x, total, c)
    return total


def vector_rule(rule: Callable[..., Number]) -> Rule:
    """Make a rule on `Value` of a rule on `Number`."""

    @functools.wraps(rule)
    def write(f: Function, *xs: Value, **params) -> Value:
        assert all(is_float(x.elem) and bits_of(x.elem) >= 32 for x in xs), xs
        return rule(*(Number(f, x) for x in xs), **params).value

    return write


def through_double(rule: Callable[..., Number]) -> Callable[..., Number]:
    """A rule for f64 that serves f32 too: computed in f64 lanes and rounded once.

    With `short` the rule may stop at 30 good bits.
    """

    @functools.wraps(rule)
    def compute(*xs: Number, **params) -> Number:
        if xs[0].elem == "f64":
            return rule(*xs, short=False, **params)
        return rule(*(x.to("f64") for x in xs), short=True, **params).to("f32")

    return compute


def nearest(x: Number, factor: float, offset: int = 0) -> tuple[Number, Number]:
    """The integer k nearest to x·factor, as a float and, plus `offset`, in the low bits of an int.

    Adding 1.5·2ⁿ, where n is the number of fraction bits, rounds to an integer.
    """
    anchor = 1.5 * 2.0 ** FRACTION[x.elem] + offset
    moved = muladd(x, factor, anchor)
    return moved - anchor, moved.bits()


def reduced(x: Number, k: Number, parts: Sequence[float]) -> Number:
    """x - k·c for a constant in several parts, the greatest first."""
    for part in parts:
        x = fma(k, -part, x)
    return x


def parts_of(elem: str, digits: Sequence[float]) -> tuple[float, ...]:
    """A constant, given as a sum of doubles, as a sum of three numbers of a type."""
    if elem == "f64":
        return (*digits, 0.0)[:3]
    out, rest = [], [*digits]
    for _ in range(3):
        head = float(np.float32(math.fsum(rest)))
        out.append(head)
        rest.append(-head)
    return tuple(out)


def power_of_two(bits: Number) -> Number:
    """2ᵏ, where the low bits of an integer hold k plus the bias."""
    elem = f"f{bits_of(bits.elem)}"
    return (bits << FRACTION[elem]).as_float()


def scaled(y: Number, k: Number, bits: Number) -> Number:
    """y·2ᵏ, correct from below the subnormals to infinity.

    On machines without an instruction for it, it is a product with two powers of half the exponent:
    the low bits of the integer `bits` hold k plus twice the bias.
    """
    if y.f.can_scale(y.value):
        return Number(y.f, y.f.scale(y.value, k.value))
    half = bits >> 1
    return y * power_of_two(half) * power_of_two(bits - half)


_SQRT_HALF = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}


def split(x: Number) -> tuple[Number, Number, Number]:
    """Positive normal x = m·2ᵉ with m in [√½, √2): m, e as a float, and e moved to its bits."""
    fraction = FRACTION[x.elem]
    start = _SQRT_HALF[x.elem]
    distance = x.bits() - start
    exponent = distance & (-1 << fraction)
    m = (x.bits() - exponent).as_float()
    shifted = Number(x.f, x.f.ashr(distance.value, distance.of(fraction)))
    if x.elem == "f32":
        return m, shifted.to("f32"), exponent
    # Converting 64-bit integers needs AVX-512; adding them to the bits of 1.5·2⁵² does not.
    anchor = 1.5 * 2.0**52
    moved = (shifted + 0x4338000000000000).as_float()
    return m, moved - anchor, exponent
