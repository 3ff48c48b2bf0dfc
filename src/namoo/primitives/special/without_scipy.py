"""Special functions under SciPy's names, for machines on which SciPy is not installed.

Python's `math` has the error functions and gamma. Digamma, zeta, the inverse error function and
others are written with NumPy. All compute in double precision and are slower than SciPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from namoo.primitives.special.erf_inverse import erf_inv_into

Function = Callable[..., np.ndarray]


# Functions that only SciPy computes.
_NEED_SCIPY = frozenset(
    "dawsn expi expn fresnel hyp1f1 hyp2f1 jv loggamma owens_t sici spence sph_harm_y wofz".split()
)


def __getattr__(name: str) -> NoReturn:
    if name not in _NEED_SCIPY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise ModuleNotFoundError(
        f"the special function {name} is computed by SciPy, which is not installed. Install it "
        "with `pip install scipy`."
    )


def in_double(compute: Function) -> Function:
    """Compute in double precision, and round to the type of the first operand."""

    def rounded(*operands: Any) -> np.ndarray:
        xs = np.broadcast_arrays(*map(np.asarray, operands))
        with np.errstate(all="ignore"):
            out = compute(*(x.astype(np.float64) for x in xs))
            return np.asarray(out).astype(xs[0].dtype)

    return rounded


def _each(compute: Callable[[float], float]) -> Function:
    """Apply a function of a number to each element."""
    function = np.frompyfunc(compute, 1, 1)
    return in_double(lambda x: np.asarray(function(x), np.float64))


erf, erfc = _each(math.erf), _each(math.erfc)


@_each
def gammaln(x: float) -> float:
    """log |Γ(x)|, infinite at the poles."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


@_each
def gamma(x: float) -> float:
    """Γ(x); NaN at its poles, except at 0."""
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


# B₂ₖ / 2k for k = 1 … 8.
_STIRLING = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)


@in_double
def psi(x: np.ndarray) -> np.ndarray:
    """Digamma: shifted by its recurrence to where Stirling's series has all digits."""
    left = x < 0.5
    right = np.where(left, 1 - x, x)
    far = right + 8
    out = np.log(far) - 0.5 / far
    for k, c in enumerate(_STIRLING, 1):
        out = out - c / far ** (2 * k)
    for k in range(8):
        out = out - 1 / (right + k)
    out = np.where(np.isposinf(right), np.inf, out)
    return np.where(left, out - np.pi / np.tan(np.pi * (x - np.round(x))), out)


# (2k)! / B₂ₖ for k = 1 … 12.
_EULER_MACLAURIN = (
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1307674368000 / 691,
    74724249600.0,
    -10670622842880000 / 3617,
    5109094217170944000 / 43867,
    -802857662698291200000 / 174611,
    14101100039391805440000 / 77683,
    -1693824136731743669452800000 / 236364091,
)


@in_double
def zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hurwitz' zeta function by its first terms and the formula of Euler and Maclaurin."""
    # Left of 0 only integer powers are real numbers.
    valid = (x >= 1) & ((q > 0) | (x == np.floor(x))) & ~np.isnan(q)
    pole = (q <= 0) & (q == np.floor(q))
    far = q > 1e8
    limit = (1 / (x - 1) + 1 / (2 * q)) * q ** (1 - x)
    inside = valid & ~pole & ~far & (x > 1) & np.isfinite(q)
    s, w = np.where(inside, x, 2.0), np.where(inside, q, 1.0)
    power = w**-s
    total, step = power, 0
    moving = np.ones(x.shape, bool)
    while moving.any():
        step += 1
        w = np.where(moving, w + 1, w)
        power = np.where(moving, w**-s, power)
        total = np.where(moving, total + power, total)
        moving &= (step < 9) | (w <= 9)
    total = total + power * w / (s - 1) - 0.5 * power
    factor = np.ones_like(s)
    for k, c in enumerate(_EULER_MACLAURIN):
        factor, power = factor * (s + 2 * k), power / w
        total = total + factor * power / c
        factor, power = factor * (s + 2 * k + 1), power / w
    out = np.where(far, np.where(np.isposinf(q), 0.0, limit), total)
    out = np.where((x == 1) | pole, np.inf, out)
    return np.where(valid, out, np.nan)


@in_double
def erfinv(x: np.ndarray) -> np.ndarray:
    """The inverse error function: Halley's steps from its values in single precision."""
    size = np.abs(x)
    inner = np.where(size < 1, size, 0.0)
    rest = 1 - inner
    start = np.empty(x.size, np.float32)
    erf_inv_into(np.minimum(inner, 0.999).astype(np.float32).ravel(), start)
    log = -np.log(rest * np.sqrt(np.pi))
    y = np.where(inner < 0.999, start.reshape(x.shape), np.sqrt(log - np.log(log) / 2))
    for _ in range(4):
        # Above 1/2 the difference of complements has more digits.
        lost = np.where(inner < 0.5, erf(y) - inner, rest - erfc(y))
        step = lost / (2 / np.sqrt(np.pi) * np.exp(-y * y))
        y = y - step / (1 + y * step)
    out = np.where(size == 1, np.inf, np.where(size < 1, y, np.nan))
    return np.copysign(out, x)


@in_double
def i1e(x: np.ndarray) -> np.ndarray:
    """exp(-|x|) I₁(x): its power series up to 20, and from there the asymptotic one."""
    size = np.abs(x)
    near, far = np.minimum(size, 20.0), np.maximum(size, 20.0)
    term = near / 2
    series = term
    for k in range(1, 60):
        term = term * (near / 2) ** 2 / (k * (k + 1))
        series = series + term
    asymptotic = change = np.ones_like(far)
    for k in range(1, 20):
        change = change * ((2 * k - 1) ** 2 - 4) / (8 * k * far)
        asymptotic = asymptotic + change
    away = np.where(np.isposinf(size), 0.0, asymptotic / np.sqrt(2 * np.pi * far))
    return np.copysign(np.where(size <= 20, series * np.exp(-near), away), x)


@in_double
def poch(z: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Γ(z+m) / Γ(z): a product for small whole m, else from logarithms and signs."""
    whole = (m == np.floor(m)) & (np.abs(m) <= 64)
    product = np.ones_like(z)
    for k in range(64):
        product = np.where(whole & (k < m), product * (z + k), product)
        product = np.where(whole & (k < -m), product / (z - k - 1), product)

    def sign(v: np.ndarray) -> np.ndarray:
        return np.where((v < 0) & (np.floor(v) % 2 != 0), -1.0, 1.0)

    ratio = sign(z + m) * sign(z) * np.exp(gammaln(z + m) - gammaln(z))
    return np.where(whole, product, ratio)
