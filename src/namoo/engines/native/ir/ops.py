"""The operations on elements, by the names of the primitives they belong to.

Each is a function `(f, *values, **params)` that emits code into `f` for scalars or vectors.  A
complex value is a pair of real ones.  Values of the narrow float types are float32 here; `apply`
rounds the results.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base.caches import cached
from namoo.engines.native.ir import complex_math
from namoo.engines.native.ir.function import (
    Function,
    Value,
    bits_of,
    constant,
    is_float,
    is_signed,
    vector_type,
)
from namoo.engines.native.ir.math import functions
from namoo.engines.native.ir.types import computed_in, elem_of, is_complex, is_key, is_narrow

TABLE: dict[str, Callable[..., Any]] = {}
# Operations that accept complex numbers.
COMPLEX: set[str] = set()
# Operations whose code depends on the result type: they get it as `elem`, and round themselves.
TYPED = {"convert", "integer_pow", "nextafter"}
# Operations whose results need no rounding: operands, or integers that the type can represent.
EXACT = {"abs", "ceil", "clamp", "floor", "max", "min", "neg", "round", "select_n", "sign"}
_COSTS: dict[str, int] = {}


def operation(*names: str, complex: bool = False, cost: int = 1):
    """Register a function under the names of its primitives."""

    def enter(fun):
        for name in names:
            TABLE[name] = fun
            _COSTS[name] = cost
            if complex:
                COMPLEX.add(name)
        return fun

    return enter


@cached("native ops: accepted types", bound=4096, keyed_by="operation, element types")
def accepts(name: str, *dtypes: np.dtype) -> bool:
    """Whether there is an operation of this name for these types."""
    elems = [elem_of(d) for d in dtypes]
    if not all(elems) or any(map(is_key, elems)):
        return all(elems) and name in ("select_n", "eq", "ne")
    return name in COMPLEX or not any(map(is_complex, elems))


def cost(name: str) -> int:
    """About how many instructions an operation takes."""
    return _COSTS[name]


def apply(f: Function, name: str, values: list[Any], elem: str, params: dict[str, Any]) -> Any:
    """An operation's result as a value of its type: narrow floats are rounded."""
    if name in TYPED:
        return TABLE[name](f, *values, elem=elem, **params)
    out = TABLE[name](f, *values, **params)
    return out if name in EXACT else rounded(f, out, elem)


def rounded(f: Function, x: Any, elem: str) -> Any:
    """Round a value to its type: narrow floats are computed in f32."""
    return f.convert(f.convert(x, elem), "f32") if is_narrow(elem) else x


def number(like: Value, value: Any) -> Value:
    """A constant of the type of another value."""
    return constant(like.elem, value)


def _each(name):
    def run(f, x, y):
        if isinstance(x, tuple):
            return getattr(f, name)(x[0], y[0]), getattr(f, name)(x[1], y[1])
        return getattr(f, name)(x, y)

    return run


TABLE["add"] = TABLE["add_any"] = _each("add")
TABLE["sub"] = _each("sub")
for _name in ("add", "add_any", "sub"):
    COMPLEX.add(_name)
    _COSTS[_name] = 1


@operation("mul", complex=True)
def mul(f: Function, x, y):
    if not isinstance(x, tuple):
        return f.mul(x, y)
    (a, b), (c, d) = x, y
    return f.muladd(a, c, f.neg(f.mul(b, d))), f.muladd(a, d, f.mul(b, c))


@operation("div", complex=True, cost=4)
def div(f: Function, x, y):
    if isinstance(x, tuple):
        return complex_math.divide(f, x, y)
    if is_float(x.elem):
        return f.fdiv(x, y)
    zero = f.compare("eq", y, number(y, 0))
    return f.select(zero, number(x, -1 if is_signed(x.elem) else 2 ** bits_of(x.elem) - 1),
                    _safe(f, _quotient, x, y, zero, f.neg))  # fmt: skip


def _safe(f, divide, x, y, zero, by_minus_one):
    """Integer division by any divisor: processors trap on 0, and on the least integer by -1."""
    bad = zero
    if is_signed(x.elem):
        minus = f.compare("eq", y, number(y, -1))
        bad = minus if zero.constant is False else f.or_(zero, minus)
    out = divide(f, x, f.select(bad, number(y, 1), y))
    if is_signed(x.elem):
        out = f.select(minus, by_minus_one(x), out)
    return out


@operation("rem", cost=8)
def rem(f: Function, x, y):
    if is_float(x.elem):
        lanes, (x, y) = f.same_lanes(x, y)
        return f.emit(x.elem, lanes, f"frem {x!r}, {y.name}", (x, y))
    zero = f.compare("eq", y, number(y, 0))
    return f.select(zero, x, _safe(f, _remainder, x, y, zero, lambda v: number(v, 0)))


def _quotient(f: Function, x: Value, y: Value) -> Value:
    """x / y towards zero, for integers whose quotient can be represented."""
    lanes, bits = builtins.max(x.lanes, y.lanes), bits_of(x.elem)
    if not lanes or bits > 32 or y.constant is not None:
        return f.idiv(x, y)
    # Processors divide vectors of floats only. Quotients that are not whole are at least 1/y from
    # the next integer, farther than floats with more bits than the operands round.
    wide = "f32" if bits <= 16 else "f64"
    near = f.fdiv(f.convert(x, wide), f.convert(y, wide))
    name = "fptosi" if is_signed(x.elem) else "fptoui"
    return f.emit(x.elem, lanes, f"{name} {near!r} to {vector_type(x.elem, lanes)}", (near,))


def _remainder(f: Function, x: Value, y: Value) -> Value:
    """x - y · quotient"""
    if x.lanes | y.lanes and bits_of(x.elem) <= 32 and y.constant is None:
        return f.sub(x, f.mul(_quotient(f, x, y), y))
    return f.irem(x, y)


@operation("neg", complex=True)
def neg(f: Function, x):
    return (f.neg(x[0]), f.neg(x[1])) if isinstance(x, tuple) else f.neg(x)


@operation("abs", complex=True)
def abs(f: Function, x):
    if isinstance(x, tuple):
        return functions.FUNCTIONS["hypot"](f, *x)
    if is_float(x.elem):
        return f.fabs(x)
    return f.maximum(x, f.neg(x)) if is_signed(x.elem) else x


@operation("sign")
def sign(f: Function, x):
    zero, one = number(x, 0), number(x, 1)
    positive = f.compare("gt", x, zero)
    if not is_float(x.elem):
        out = f.select(positive, one, zero)
        if is_signed(x.elem):
            out = f.select(f.compare("lt", x, zero), number(x, -1), out)
        return out
    # Zeros keep their sign, NaN stays.
    out = f.select(positive, one, f.select(f.compare("lt", x, zero), number(x, -1), x))
    return out


@operation("square", complex=True)
def square(f: Function, x):
    return mul(f, x, x)


@operation("integer_pow", complex=True, cost=3)
def integer_pow(f: Function, x, *, y: int, elem: str):
    def times(a, b):
        return rounded(f, mul(f, a, b), elem)

    if y < 0:
        return rounded(f, div(f, _one(x), integer_pow(f, x, y=-y, elem=elem)), elem)
    out, base = None, x
    while y:
        if y & 1:
            out = base if out is None else times(out, base)
        y >>= 1
        base = times(base, base) if y else base
    return _one(x) if out is None else out


def _one(x):
    return (number(x[0], 1), number(x[1], 0)) if isinstance(x, tuple) else number(x, 1)


@operation("max")
def maximum(f: Function, x, y):
    return f.or_(x, y) if x.elem == "i1" else f.maximum(x, y)


@operation("min")
def minimum(f: Function, x, y):
    return f.and_(x, y) if x.elem == "i1" else f.minimum(x, y)


@operation("clamp", cost=2)
def clamp(f: Function, low, x, high):
    return minimum(f, maximum(f, x, low), high)


@operation("floor")
def floor(f: Function, x):
    return f.floor(x)


@operation("ceil")
def ceil(f: Function, x):
    return f.intrinsic("ceil", x)


@operation("round", cost=4)
def round(f: Function, x, *, rounding_method):
    return f.intrinsic("round" if int(rounding_method) == 0 else "roundeven", x)


@operation("is_finite")
def is_finite(f: Function, x):
    return f.compare("lt", f.fabs(x), number(x, float("inf")))


@operation("sqrt", cost=6)
def sqrt(f: Function, x):
    return f.sqrt(x)


def _comparison(relation):
    def run(f: Function, x, y):
        if isinstance(x, tuple):
            parts = [f.compare(relation, a, b) for a, b in zip(x, y, strict=True)]
            return functools.reduce(f.or_ if relation == "ne" else f.and_, parts)
        return f.compare(relation, x, y)

    return run


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    operation(_name, complex=_name in ("eq", "ne"))(_comparison(_name))


@operation("select_n", complex=True)
def select_n(f: Function, which, *cases):
    if len(cases) == 1:
        return cases[0]
    if which.elem == "i1":
        return choose(f, which, cases[1], cases[0])
    out = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        out = choose(f, f.compare("le", which, number(which, i)), cases[i], out)
    return out


def choose(f: Function, condition, x, y):
    """`select` for values that may be complex, or keys."""
    if isinstance(x, tuple):
        return tuple(f.select(condition, a, b) for a, b in zip(x, y, strict=True))
    return f.select(condition, x, y)


for _name, _method in (("and", "and_"), ("or", "or_"), ("xor", "xor"), ("not", "not_")):
    TABLE[_name] = lambda f, *xs, method=_method: getattr(f, method)(*xs)
    _COSTS[_name] = 1


def _shift(method, fill):
    def run(f: Function, x, y):
        # A shift by the width or more, or by a negative number, shifts every bit out.
        width = bits_of(x.elem)
        count = f.bitcast(y, f"u{width}")
        near = f.compare("lt", count, number(count, width))
        count = f.bitcast(f.select(near, count, number(count, width - 1)), x.elem)
        out = getattr(f, method)(x, count)
        return f.select(near, out, out if fill else number(x, 0))

    return run


operation("shift_left", cost=2)(_shift("shl", False))
operation("shift_right_logical", cost=2)(_shift("lshr", False))
operation("shift_right_arithmetic", cost=2)(_shift("ashr", True))


@operation("population_count", cost=2)
def population_count(f: Function, x):
    return f.intrinsic("ctpop", x)


@operation("clz", cost=2)
def clz(f: Function, x):
    return f.intrinsic("ctlz", x, extra="i1 false")


@operation("mulhi", cost=3)
def mulhi(f: Function, x, y):
    width = bits_of(x.elem)
    wide = f"{x.elem[0]}{2 * width}"
    product = f.mul(f.convert(x, wide), f.convert(y, wide))
    shifted = f.lshr(product, constant(wide, width))
    return f.convert(shifted, x.elem)


@operation("nextafter", cost=8)
def nextafter(f: Function, x, y, *, elem: str):
    bits = f"i{bits_of(elem)}"

    def as_number(pattern):
        return f.convert(f.bitcast(pattern, elem), x.elem)

    at = f.bitcast(f.convert(x, elem), bits)
    # Away from zero the bits increase by one, towards it they decrease; from zero, the least float.
    up = f.compare("eq", f.compare("lt", x, y), f.compare("gt", x, number(x, 0)))
    moved = as_number(f.add(at, f.select(up, constant(bits, 1), constant(bits, -1))))
    least = f.intrinsic("copysign", as_number(constant(bits, 1)), y)
    out = f.select(f.compare("eq", x, number(x, 0)), least, moved)
    out = f.select(f.compare("eq", x, y), y, out)
    return f.select(f.or_(f.unordered(x), f.unordered(y)), f.add(x, y), out)


@operation("convert", complex=True)
def convert(f: Function, x, *, elem: str):
    """Convert to another type; of complex values the real part, if the result is real."""
    if is_complex(elem):
        part = {"c64": "f32", "c128": "f64"}[elem]
        if isinstance(x, tuple):
            return f.convert(x[0], part), f.convert(x[1], part)
        return f.convert(x, part), constant(part, 0.0)
    if isinstance(x, tuple):
        x = x[0]
    if x.lanes and is_float(x.elem) and elem[0] in "iu" and elem != "i1":
        return _to_integers(f, x, elem)
    return f.convert(f.convert(x, elem), computed_in(elem))


def _to_integers(f: Function, x: Value, elem: str) -> Value:
    """As `f.convert`; LLVM's intrinsic for what is out of range converts each lane separately."""
    bits = bits_of(elem)
    low = -(1 << bits - 1) if is_signed(elem) else 0
    high = low + (1 << bits) - 1
    below = f.compare("lt", x, number(x, low))
    above = f.compare("ge", x, number(x, high + 1))
    outside = f.or_(f.or_(below, above), f.unordered(x))
    x = f.select(outside, number(x, 0), x)
    wide = elem if bits >= 32 else "i32"
    name = "fptosi" if is_signed(wide) else "fptoui"
    out = f.emit(wide, x.lanes, f"{name} {x!r} to {vector_type(wide, x.lanes)}", (x,))
    out = f.select(above, number(out, high), f.select(below, number(out, low), out))
    return f.convert(out, elem)


@operation("reduce_precision", cost=8)
def reduce_precision(f: Function, x, *, exponent_bits: int, mantissa_bits: int):
    width = bits_of(x.elem)
    bits = f"u{width}"
    fraction, exponent = (23, 8) if width == 32 else (52, 11)

    def word(value: int) -> Value:
        return constant(bits, value)

    code = f.bitcast(f.fabs(x), bits)
    drop = fraction - mantissa_bits
    if drop > 0:
        # To nearest, ties to even: add one where the remainder is more than half.
        last = f.and_(f.lshr(code, word(drop)), word(1))
        code = f.add(f.add(code, word((1 << drop - 1) - 1)), last)
        code = f.and_(code, word((1 << width) - (1 << drop)))
    if exponent_bits < exponent:
        bias, reach = (1 << exponent - 1) - 1, (1 << exponent_bits - 1) - 1
        high = f.lshr(code, word(fraction))
        infinity = word(((1 << exponent) - 1) << fraction)
        code = f.select(f.compare("gt", high, word(bias + reach)), infinity, code)
        code = f.select(f.compare("le", high, word(bias - reach)), word(0), code)
    out = f.intrinsic("copysign", f.bitcast(code, x.elem), x)
    return f.select(f.unordered(x), x, out)


@operation("real", complex=True)
def real(f: Function, x):
    return x[0]


@operation("imag", complex=True)
def imag(f: Function, x):
    return x[1]


@operation("conj", complex=True)
def conj(f: Function, x):
    return x[0], f.neg(x[1])


@operation("complex", complex=True)
def complex_(f: Function, x, y):
    return x, y


for _name, _fun in functions.FUNCTIONS.items():
    if _name not in TABLE:
        operation(_name, cost=16)(_fun)


@operation("pow", cost=32)
def pow(f: Function, x, y):
    if y.elem != x.elem:
        y = f.convert(y, x.elem)
    return functions.FUNCTIONS["pow"](f, x, y)


for _name, _fun in complex_math.FUNCTIONS.items():
    TABLE[_name] = complex_math.either(TABLE[_name], _fun)
    COMPLEX.add(_name)
