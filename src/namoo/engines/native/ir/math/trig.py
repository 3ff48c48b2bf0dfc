"""Trigonometric functions and their inverses as straight-line vector code.

`powers` says where the coefficients come from.  Arguments are reduced by a multiple of π in three
parts (Cody and Waite), which is accurate up to `_FAR`.  A vector with a lane beyond that calls a
function for any argument (Payne and Hanek).
"""

from __future__ import annotations

import math

from namoo.engines.native.ir.function import Function, Value, constant, suffix, vector_type
from namoo.engines.native.ir.vectors import (
    INTEGER,
    Number,
    fma,
    horner,
    muladd,
    nearest,
    parts_of,
    reduced,
    through_double,
    vector_rule,
    where,
)

_PI = (3.141592653589793, 1.2246467991473532e-16, -2.9947698097183397e-33)
_HALF_PI = tuple(part / 2 for part in _PI)
# 1/π, as an integer divided by 2¹¹⁷⁰: enough for the greatest double.
_ONE_OVER_PI = int(
    "145f306dc9c882a53f84eafa3ea69bb81b6c52b3278872083fca2c757bd778ac36e48dc74849ba5c00c925dd413a"
    "32439fc3bd63962534e7dd1046bea5d768909d338e04d68befc827323ac7306a673e93908bf177bf250763ff12ff"
    "fbc0b301fde5e2316b414da3eda6cfd9e4f96136e9e8c7ecd3cbfd45aea4f758fd7cbe2f67a0e73ef14a525d4d7f"
    "6bf623f1aba10ac06",
    16,
)
_PIECE, _PIECES = 26, 45

# Up to here three parts of π leave enough bits of the remainder.
_FAR = {"f32": 1e5, "f64": 1e9}

# (sin(r)/r - 1) / r² in r² for |r| ≤ π/2; 2⁻³⁵ and 2⁻⁶¹.
_SIN = {
    "f32": (
        -0.16666666624022178,
        0.008333331016321749,
        -0.0001984085585777987,
        2.752473740994958e-06,
        -2.387730078773781e-08,
    ),
    "f64": (
        -0.16666666666666666,
        0.008333333333333184,
        -0.0001984126984120542,
        2.7557319210470796e-06,
        -2.5052106810472708e-08,
        1.6058936512560009e-10,
        -7.642906935896402e-13,
        2.720270450157284e-15,
    ),
}
# (cos(r) - 1 + r²/2) / r⁴ in r² for |r| ≤ π/4, by Taylor's series; 2⁻³⁴ and 2⁻⁶⁷.
_COS = {
    elem: tuple((-1) ** n / math.factorial(2 * n) for n in range(2, 2 + terms))
    for elem, terms in (("f32", 4), ("f64", 8))
}
# (tan(r)/r - 1) / r² in r² for |r| ≤ π/4; 2⁻³³ and 2⁻⁵⁵.
_TAN_SHORT = (
    0.3333333170514025,
    0.1333341706781195,
    0.05395363239146821,
    0.021991883321041947,
    0.008303740114082697,
    0.005050628188133129,
    -0.0006583321126952257,
    0.0020683545514014,
)
_TAN = (
    0.3333333333333268,
    0.13333333333427533,
    0.053968253920515026,
    0.02186948975602922,
    0.008863217099918459,
    0.003592307640238472,
    0.0014546455765173374,
    0.0005955361951091851,
    0.00022099324066863438,
    0.0001393759486047034,
    -3.0397097182743224e-05,
    9.313302493209947e-05,
    -4.686074092751092e-05,
    2.1339802634855074e-05,
)
# (asin(r)/r - 1) / r² in r² for |r| ≤ 1/2; 2⁻³¹ and 2⁻⁵⁹.
_ASIN = {
    "f32": (
        0.16666659986803525,
        0.0750050444028699,
        0.044516911703304796,
        0.03180803678605608,
        0.014437543524652395,
        0.03751777437468092,
    ),
    "f64": (
        0.1666666666666676,
        0.07499999999970827,
        0.04464285717458948,
        0.030381942708753606,
        0.02237221496242596,
        0.017351612436615062,
        0.013980815784509906,
        0.011398948929762268,
        0.01078005884692767,
        0.003707099587356866,
        0.021705861176715458,
        -0.02099694368449187,
        0.032627371750650544,
    ),
}
# (atan(r)/r - 1) / r² in r² for |r| ≤ 1; 2⁻³¹ and 2⁻⁶⁰.
_ATAN = {
    "f32": (
        -0.33333326904749255,
        0.19999671311486644,
        -0.14279835336248967,
        0.11058237581801511,
        -0.08811140640294174,
        0.06741705144688111,
        -0.04469142569796465,
        0.02254111019484469,
        -0.007318536616754478,
        0.0011139042662142908,
    ),
    "f64": (
        -0.33333333333333287,
        0.1999999999999045,
        -0.14285714285036547,
        0.11111111086440784,
        -0.09090908547075276,
        0.07692299708942735,
        -0.06666583693367509,
        0.0588171593822848,
        -0.05259432625143992,
        0.04744921378107553,
        -0.04286376077033581,
        0.03820970243871391,
        -0.03278474018049498,
        0.02615064148773929,
        -0.018613011582423906,
        0.01131659263430157,
        -0.005611676382084145,
        0.0021512395172648456,
        -0.0005927756920261096,
        0.00010384751143453327,
        -8.651862174812781e-06,
    ),
}


def _far_table() -> str:
    """1/π·2¹²⁰ in pieces of 26 bits, whose products with numbers of 27 bits are exact."""
    rest = _ONE_OVER_PI
    pieces = []
    for i in reversed(range(_PIECES)):
        piece, rest = rest >> (i * _PIECE), rest & ((1 << (i * _PIECE)) - 1)
        # 2¹²⁰ keeps the last pieces away from the subnormal numbers.
        pieces.append(constant("f64", math.ldexp(piece, i * _PIECE - _PIECE * _PIECES + 120)))
    return (
        f"@namoo.one_over_pi = internal unnamed_addr constant [{_PIECES} x double] "
        f"[{', '.join(map(repr, pieces))}]"
    )


def _two_sum(x: Number, y: Number) -> tuple[Number, Number]:
    """x + y, and its rounding error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _far_function(outer: Function, name: str, lanes: int, unit: float, phase: float) -> None:
    """Emit the reduction of any double: x/unit - phase = k + r/unit, with k modulo 4.

    The product of x and each piece of 1/π is exact, and is reduced modulo 4 at once.
    """
    f = Function(name, [])
    x = Value("%x", "f64", lanes)
    f.parameters = [x]
    small = Number(f, x) * 2.0**-120
    high = (small.bits() & (-1 << 27)).as_float()
    low = small - high
    f.declarations["namoo.one_over_pi"] = _far_table()
    table = Value("@namoo.one_over_pi", "ptr")
    zero = f.splat(constant("f64", 0.0), lanes) if lanes else constant("f64", 0.0)
    with f.loop(0, _PIECES) as i:
        phis = [f.carry(zero) for _ in range(3)]
        sums = [Number(f, phi) for phi in phis]
        piece = Number(f, f.load(f.offset(table, i, "f64"), "f64"))
        for part in (high, low):
            product = part * (piece * (math.pi / unit))
            turns = Number(f, f.intrinsic("rint", (product * 0.25).value))
            term = muladd(turns, -4.0, product)
            sums[0], term = _two_sum(sums[0], term)
            sums[1], term = _two_sum(sums[1], term)
            sums[2] = sums[2] + term
        totals = [f.carried(phi, s.value) for phi, s in zip(phis, sums, strict=True)]
    first, second, third = (Number(f, total) for total in totals)
    first, lost = _two_sum(first, first.like(-phase))
    k, bits = nearest(first, 1.0)
    first, second = _two_sum(first - k, second + lost)
    rest = second + third
    r = first * unit
    low_unit = _PI[1] * (unit / math.pi)
    r = r + (fma(first, unit, -r) + fma(first, low_unit, rest * unit))
    pair = _pair("f64", lanes)
    f.line(f"  %p = insertvalue {pair} poison, {r.value!r}, 0")
    f.line(f"  %q = insertvalue {pair} %p, {bits.value!r}, 1")
    f.line(f"  ret {pair} %q")
    f.result = f"internal {pair}"
    outer.declarations |= f.declarations
    outer.declarations[name] = f.text("cold noinline nounwind")


def _pair(elem: str, lanes: int) -> str:
    return f"{{ {vector_type(elem, lanes)}, {vector_type(INTEGER[elem], lanes)} }}"


def _with_far(
    x: Number, r: Number, bits: Number, kind: str, unit: float, phase: float
) -> tuple[Number, Number]:
    """r and the bits that hold k, corrected in lanes where |x| is beyond `_FAR`.

    The branch is in a function that LLVM inlines, so the code here stays straight-line.
    """
    f, elem, lanes = x.f, x.elem, x.value.lanes
    kind_name = suffix(elem, lanes)
    name = f"namoo.{kind}.{kind_name}"
    pair = _pair(elem, lanes)
    if name not in f.declarations:
        slow = f"namoo.{kind}_far.{suffix('f64', lanes)}"
        _far_function(f, slow, lanes, unit, phase)
        f.declarations[name] = _branch_to(slow, name, elem, lanes)
        if lanes:
            reduce = f"llvm.vector.reduce.or.v{lanes}i1"
            f.declarations[reduce] = f"declare i1 @{reduce}(<{lanes} x i1>)"
        f.declarations["llvm.expect.i1"] = "declare i1 @llvm.expect.i1(i1, i1)"
    size = abs(x)
    operands = (size.value, r.value, bits.value)
    both = f.emit(elem, lanes, f"call {pair} @{name}({', '.join(map(repr, operands))})", operands)
    parts = [
        f.emit(kind, lanes, f"extractvalue {pair} {both.name}, {i}", (both,))
        for i, kind in enumerate((elem, INTEGER[elem]))
    ]
    return Number(f, parts[0]), Number(f, parts[1])


def _branch_to(slow: str, name: str, elem: str, lanes: int) -> str:
    """The text of a function that calls another one if a lane is far from zero."""
    kind, ints = vector_type(elem, lanes), vector_type(INTEGER[elem], lanes)
    wide, longs = vector_type("f64", lanes), vector_type("i64", lanes)
    flags = vector_type("i1", lanes)
    bound = constant(elem, _FAR[elem])
    limit = f"splat ({bound!r})" if lanes else bound.name
    pair, wide_pair = _pair(elem, lanes), _pair("f64", lanes)
    some = (
        f"call i1 @llvm.vector.reduce.or.v{lanes}i1({flags} %far)" if lanes else "and i1 %far, true"
    )
    if elem == "f64":
        widen, narrow = "", ""
        arg, got_r, got_k = "%x", "%wr", "%wk"
    else:
        widen = f"  %wx = fpext {kind} %x to {wide}\n"
        narrow = f"  %nr = fptrunc {wide} %wr to {kind}\n  %nk = trunc {longs} %wk to {ints}\n"
        arg, got_r, got_k = "%wx", "%nr", "%nk"
    return (
        f"define internal {pair} @{name}({kind} %x, {kind} %r, {ints} %k) "
        f"alwaysinline nounwind {{\n"
        f"entry:\n"
        f"  %far = fcmp ogt {kind} %x, {limit}\n"
        f"  %some = {some}\n"
        f"  %rare = call i1 @llvm.expect.i1(i1 %some, i1 false)\n"
        f"  br i1 %rare, label %slow, label %done\n"
        f"slow:\n"
        f"{widen}"
        f"  %both = call {wide_pair} @{slow}({wide} {arg})\n"
        f"  %wr = extractvalue {wide_pair} %both, 0\n"
        f"  %wk = extractvalue {wide_pair} %both, 1\n"
        f"{narrow}"
        f"  %sr = select {flags} %far, {kind} {got_r}, {kind} %r\n"
        f"  %sk = select {flags} %far, {ints} {got_k}, {ints} %k\n"
        f"  br label %done\n"
        f"done:\n"
        f"  %or = phi {kind} [%r, %entry], [%sr, %slow]\n"
        f"  %ok = phi {ints} [%k, %entry], [%sk, %slow]\n"
        f"  %p = insertvalue {pair} poison, {kind} %or, 0\n"
        f"  %q = insertvalue {pair} %p, {ints} %ok, 1\n"
        f"  ret {pair} %q\n"
        f"}}"
    )


def _sign_of(bits: Number) -> Number:
    """The sign bit alone, set where an integer is odd."""
    return bits << (31 if bits.elem == "i32" else 63)


def sin_series(r: Number) -> Number:
    """sin(r) for |r| ≤ π/2."""
    z = r * r
    return muladd(r * z, horner(z, _SIN[r.elem]), r)


def cos_series(r: Number) -> Number:
    """cos(r) for |r| ≤ π/4, by Taylor's series: exactly 1 at 0."""
    z = r * r
    return muladd(z * z, horner(z, _COS[r.elem]), muladd(z, -0.5, 1.0))


def _quarters(size: Number) -> tuple[Number, Number]:
    """r and the bits that hold k, where size = k·π/2 + r and |r| ≤ π/4."""
    k, bits = nearest(size, 2 / math.pi)
    r = reduced(size, k, parts_of(size.elem, _HALF_PI))
    return _with_far(size, r, bits, "quarter", math.pi / 2, 0.0)


@vector_rule
def sin(x: Number) -> Number:
    """sin(x) with at most 2 ulp of error, for any x."""
    size = abs(x)
    r, bits = _quarters(size)
    value = where((bits & 1).differs(0), cos_series(r), sin_series(r))
    sign = x.bits() ^ size.bits()
    return (value.bits() ^ _sign_of(bits >> 1) ^ sign).as_float()


@vector_rule
def cos(x: Number) -> Number:
    """cos(x) with at most 2 ulp of error, for any x."""
    r, bits = _quarters(abs(x))
    value = where((bits & 1).differs(0), sin_series(r), cos_series(r))
    return (value.bits() ^ _sign_of((bits + 1) >> 1)).as_float()


@vector_rule
@through_double
def tan(x: Number, *, short: bool) -> Number:
    """tan(x) with at most 1 ulp of error in f32, 3 in f64, for any x."""
    size = abs(x)
    k, bits = nearest(size, 2 / math.pi)
    r = reduced(size, k, _HALF_PI[: 2 if short else 3])
    r, bits = _with_far(size, r, bits, "tan", math.pi / 2, 0.0)
    z = r * r
    t = muladd(r * z, horner(z, _TAN_SHORT if short else _TAN), r)
    odd = (bits & 1).differs(0)
    return (where(odd, -1.0 / t, t).bits() ^ x.bits() ^ size.bits()).as_float()


def _asin_parts(x: Number) -> tuple[Number, Number, Number]:
    """Whether |x| > 1/2; s, which is |x| or √((1 - |x|)/2); and asin(s) - s."""
    size = abs(x)
    large = size > 0.5
    z = where(large, muladd(size, -0.5, 0.5), size * size)
    s = where(large, z.sqrt(), size)
    return large, s, s * z * horner(z, _ASIN[x.elem])


@vector_rule
def asin(x: Number) -> Number:
    """asin(x) with at most 1.5 ulp of error."""
    high, low, _ = parts_of(x.elem, _HALF_PI)
    large, s, rest = _asin_parts(x)
    first = muladd(s, -2.0, high)
    lost = muladd(s, -2.0, high - first)
    far = first + (muladd(rest, -2.0, low) + lost)
    return where(large, far, s + rest).copysign(x)


@vector_rule
def acos(x: Number) -> Number:
    """acos(x) with at most 2 ulp of error."""
    high, low, _ = parts_of(x.elem, _HALF_PI)
    large, s, rest = _asin_parts(x)
    negative = x < 0.0
    twice = (s + rest) * 2.0
    far = where(negative, muladd(s, -2.0, 2 * high) + muladd(rest, -2.0, 2 * low), twice)
    near = high - (s.copysign(x) + (rest.copysign(x) - low))
    return where(large, far, near)


def _atan_unit(t: Number) -> Number:
    """atan(t) for 0 ≤ t ≤ 1."""
    z = t * t
    return muladd(t * z, horner(z, _ATAN[t.elem]), t)


@vector_rule
def atan(x: Number) -> Number:
    """atan(x) with at most 2 ulp of error."""
    high, low, _ = parts_of(x.elem, _HALF_PI)
    size = abs(x)
    large = size > 1.0
    angle = _atan_unit(where(large, 1.0 / size, size))
    return where(large, high - (angle - low), angle).copysign(x)


@vector_rule
def atan2(x: Number, y: Number) -> Number:
    """The angle of the point (y, x) with at most 2 ulp of error; signs of zeros count."""
    high, low, _ = parts_of(x.elem, _HALF_PI)
    rise, run = abs(x), abs(y)
    steep = rise > run
    small, great = where(steep, run, rise), where(steep, rise, run)
    # 0/0 is 0 here, and ∞/∞ is 1: the corners of the plane have their diagonals.
    ratio = where(great.equals(0.0), 0.0, small / great)
    ratio = where(small.equals(math.inf), 1.0, ratio)
    angle = _atan_unit(ratio)
    left = y.bits() < 0
    upright = high - (where(left, -angle, angle) - low)
    flat = where(left, 2 * high - (angle - 2 * low), angle)
    out = where(steep, upright, flat).copysign(x)
    return where(Number(x.f, x.f.unordered(x.value)), x, where(run >= 0.0, out, y))
