"""Error functions as straight-line vector code.

`powers` says where the coefficients come from.
"""

from __future__ import annotations

import math

from namoo.engines.native.ir.math.powers import (
    exp_closer,
    exp_normal,
    exp_short,
    log1p_of,
    log_short,
)
from namoo.engines.native.ir.vectors import (
    Number,
    fma,
    horner,
    muladd,
    through_double,
    vector_rule,
    where,
)

_INF = math.inf
_NAN = math.nan

# erf(x)/x - 1 in x² for |x| ≤ 1; 2⁻²⁹ and 2⁻⁶².
_ERF = {
    "f32": (
        0.12837916572569604,
        -0.37612625818421275,
        0.11283585095118086,
        -0.026853810068146567,
        0.005188324618112313,
        -0.0008010169756788541,
        7.853790585581664e-05,
    ),
    "f64": (
        0.12837916709551256,
        -0.3761263890318375,
        0.11283791670954857,
        -0.02686617064507288,
        0.0052239776247807205,
        -0.0008548326978734217,
        0.0001205533103662178,
        -1.4925593500529538e-05,
        1.6460972719942074e-06,
        -1.6350024244367848e-07,
        1.4657873591782683e-08,
        -1.1365643019778602e-09,
        5.945224901483219e-11,
    ),
}
# -log(erfc(x)) for x in [0.9, 4]; relative error of erf: 2⁻²⁹.
_LOG_ERFC = (
    0.0001665292128871949,
    1.1277968640166909,
    0.6369768067823843,
    0.10411295069633833,
    -0.02231480733110312,
    0.0030653720437548806,
    -0.0001982056606515326,
)
# exp(x²)·erfc(x) in t = (x - 4)/(x + 4) for x in [0, 10.3]; 2⁻³².
_ERFCX_SHORT = (
    0.13699945761586305,
    -0.2590680492421572,
    0.21871968143884019,
    -0.16425778801183544,
    0.10896309655878127,
    -0.06310833287112898,
    0.03129979299875259,
    -0.012839757386032158,
    0.004058720155507365,
    -0.0008150666462140088,
    -2.8224847152042444e-05,
    0.00010151827725866642,
)
# (1 + 2x)·exp(x²)·erfc(x) in the same t for x in [0, 28]; 2⁻⁵⁶.
_ERFCX = (
    1.2329951186255526,
    -0.1396211168405629,
    0.015379652102619767,
    0.06809705425473661,
    -0.10103906603630126,
    0.09373283499682351,
    -0.06633036581256258,
    0.0371675155618566,
    -0.01619773404843209,
    0.005031969763541716,
    -0.0007577734048380384,
    -0.00019925556115684846,
    0.00015062247153246024,
    -2.440294175888111e-05,
    -1.1225283007645124e-05,
    5.717295612407991e-06,
    3.0195638996737295e-07,
    -8.342407254458605e-07,
    6.238909798588503e-08,
    1.1456147446867973e-07,
    -7.778879184121291e-09,
    -1.3386304176259527e-08,
    -1.7176347994939653e-09,
)


def _erfcx(x: Number) -> Number:
    """exp(x²)·erfc(x) in f64 for 0 ≤ x ≤ 28."""
    return horner((x - 4.0) / (x + 4.0), _ERFCX) / muladd(x, 2.0, 1.0)


def _gauss(x: Number) -> Number:
    """exp(-x²) in f64."""
    square = x * x
    # x² in two parts: the exponential amplifies its rounding error.
    lost = fma(x, x, -square)
    power = exp_closer(-square)
    return fma(power, -lost, power)


@vector_rule
def erf(x: Number) -> Number:
    """The error function, with at most 1.5 ulp of error."""
    size = abs(x)
    near = muladd(x, horner(x * x, _ERF[x.elem]), x)
    if x.elem == "f32":
        far = 1.0 - exp_normal(-horner(size.at_most(4.0), _LOG_ERFC))
    else:
        cut = size.at_most(6.0)
        far = 1.0 - _gauss(cut) * _erfcx(cut)
    return where(size < 1.0, near, far.copysign(x))


@vector_rule
@through_double
def erfc(x: Number, *, short: bool) -> Number:
    """1 - erf(x) with at most 1 ulp of error in f32, 4 in f64."""
    if short:
        size = abs(x).at_most(10.3)
        series = horner((size - 4.0) / (size + 4.0), _ERFCX_SHORT)
        positive = exp_short(-(size * size)) * series
    else:
        size = abs(x).at_most(28.0)
        positive = _gauss(size) * _erfcx(size)
    return where(x < 0.0, 2.0 - positive, positive)


# Giles (2010), "Approximating the erfinv function": in w = -log(1 - x²), around 2.5 where w < 5
# and in √w around 3 beyond.  Eager code has the same polynomials: samples drawn by either agree.
_ERF_INV_CENTRE = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
_ERF_INV_TAIL = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)
# The tail of doubles: √w in [√5, 6.25], around 4; 2⁻²⁰, before the Halley step.
_ERF_INV_FAR = (
    3.839781844734059,
    1.0095035489833235,
    0.001286545653020104,
    -0.0009124591849070127,
    0.00027010907869923787,
    -5.9591988579189313e-05,
    8.186401354915916e-05,
    -6.615259713511002e-05,
    1.9411258143462435e-05,
    -1.719753417591521e-06,
)


@vector_rule
def erf_inv(x: Number) -> Number:
    """The y with erf(y) = x: Giles' formula in f32, within 50 ulp near ±1; 3 in f64."""
    size = abs(x)
    return where(size.equals(1.0), x * _INF, _erf_inv32(x) if x.elem == "f32" else _erf_inv64(x))


def _erf_inv32(x: Number) -> Number:
    w = -log1p_of(-x * x)
    centre = horner(w - 2.5, _ERF_INV_CENTRE)
    tail = horner(w.sqrt() - 3.0, _ERF_INV_TAIL)
    return where(w < 5.0, centre, tail) * x


def _erf_inv64(x: Number) -> Number:
    size = abs(x)
    rest = 1.0 - size
    w = -log_short(rest * (size + 1.0))
    centre = horner(w - 2.5, _ERF_INV_CENTRE)
    tail = horner(w.sqrt() - 4.0, _ERF_INV_FAR)
    y = where(w < 5.0, centre, tail) * size
    # One Halley step, of third order: on erf(y) = |x| or, where y > 1, erfc(y) = 1 - |x|.
    power = _gauss(y)
    far = rest / power - _erfcx(y)
    near = muladd(y, horner(y * y, _ERF["f64"]), y - size) / power
    step = where(size > 0.84, far, near) * (math.sqrt(math.pi) / 2)
    y = y - step / fma(y, step, 1.0)
    return where(size < 2.0**-500, size * (math.sqrt(math.pi) / 2), y).copysign(x)
