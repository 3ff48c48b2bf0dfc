"""Special functions that XLA has as operations: error functions, log-gamma, digamma and zeta.

SciPy computes the values; it is imported at its first use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base.caches import cached
from namoo.primitives.elementwise import (
    add,
    exp,
    full_like,
    mul,
    neg,
    square,
)
from namoo.primitives.families import Elementwise, accepts, floating, operands, unary
from namoo.primitives.special.erf_inverse import BLOCK, erf_inv_into

__all__ = [
    "digamma", "digamma_p", "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "lgamma",
    "lgamma_p", "polygamma", "polygamma_p", "zeta", "zeta_p",
]  # fmt: skip

Rule = Callable[..., Any]


@cached("primitives.special SciPy module", bound=1, keyed_by="nothing", kept=True)
def scipy() -> Any:
    """SciPy's special functions, or our replacements."""
    try:
        import scipy.special
    except ModuleNotFoundError:
        from namoo.primitives.special import without_scipy

        return without_scipy
    return scipy.special


def in_dtype(compute: Rule, single: bool = True) -> Rule:
    """Evaluate in single or double precision, and round to the operands' type.

    With `single` false, single precision is computed in double, for functions that would lose
    digits.
    """

    def evaluate(*xs):
        dtype = xs[0].dtype
        # SciPy would convert integers and mixed types by itself; the abstract rule raises the
        # error.
        is_floating = dtype.kind == "f" or dtype.kind == "V" and accepts(dtype, floating)
        if not is_floating or any(x.dtype != dtype for x in xs):
            raise TypeError("special functions take operands of one floating type")
        if dtype == np.float64 or dtype == np.float32 and single:
            return compute(*xs)
        wide = np.float32 if single else np.float64
        return np.asarray(compute(*(x.astype(wide) for x in xs))).astype(dtype)

    return evaluate


def no_derivative(name: str, argument: str, error: type[Exception], advice: str) -> Rule:
    """A jvp rule that raises, for an operand without a known derivative."""

    def rule(*_):
        raise error(f"The derivative of {name} by its argument {argument!r} is not known: {advice}")

    return rule


def _corrected(name: str, formula: str) -> Rule:
    """Make a rule from an operation that XLA has, and a formula that corrects its results."""

    def rule(hlo, *operands):
        from namoo.primitives.special import formulas  # only XLA needs it

        return formulas.corrected(name, getattr(formulas, formula))(hlo, *operands)

    return rule


erf_p = unary(
    "erf",
    in_dtype(lambda x: scipy().erf(x)),
    jvp=lambda t, y, x: mul(t, _gauss(x)),
    dtypes=floating,
    stablehlo="chlo.erf",
)
erfc_p = unary(
    "erfc",
    in_dtype(lambda x: scipy().erfc(x)),
    jvp=lambda t, y, x: neg(mul(t, _gauss(x))),
    dtypes=floating,
    stablehlo="chlo.erfc",
)


def _gauss(x):
    """2/√π · exp(-x²): the derivative of erf."""
    return mul(full_like(x, 2 / np.sqrt(np.pi)), exp(neg(square(x))))


def erf(x: Any) -> Any:
    """The error function, 2/√π ∫₀ˣ exp(-t²) dt.

    Example:
        >>> float(erf(0.0))
        0.0
    """
    return erf_p.bind(x)


def erfc(x: Any) -> Any:
    """1 - erf(x), exact where erf(x) is close to 1."""
    return erfc_p.bind(x)


def _erf_inv(x):
    if x.dtype == np.float64:
        return scipy().erfinv(x)
    out = np.empty(x.size, np.float32)
    flat = x.reshape(-1)
    # In blocks, so that all steps of the polynomial stay in the cache.
    for start in range(0, x.size, BLOCK):
        block = slice(start, start + BLOCK)
        erf_inv_into(flat[block], out[block])
    return out.reshape(x.shape)


erf_inv_p = unary(
    "erf_inv",
    in_dtype(_erf_inv),
    jvp=lambda t, y, x: mul(t, mul(full_like(x, np.sqrt(np.pi) / 2), exp(square(y)))),
    dtypes=floating,
    stablehlo="chlo.erf_inv",
)


def erf_inv(x: Any) -> Any:
    """The inverse of erf: the y with erf(y) = x; infinite at ±1 and NaN beyond.

    Example:
        >>> float(erf_inv(1.0))
        inf
    """
    return erf_inv_p.bind(x)


def _lgamma(x):
    return np.where(np.isneginf(x), -x, scipy().gammaln(x))


def _digamma(x):
    # At zero and below, the integers are poles with both signs.
    pole = (x <= 0) & (x == np.floor(x))
    return np.where(pole, x.dtype.type(np.nan), scipy().psi(x))


lgamma_p = unary(
    "lgamma",
    in_dtype(_lgamma),
    jvp=lambda t, y, x: mul(t, digamma(x)),
    dtypes=floating,
    stablehlo="chlo.lgamma",
)
digamma_p = unary(
    "digamma",
    in_dtype(_digamma),
    jvp=lambda t, y, x: mul(t, polygamma(full_like(x, 1), x)),
    dtypes=floating,
    stablehlo="chlo.digamma",
)


def lgamma(x: Any) -> Any:
    """log |Γ(x)|

    Example:
        >>> float(lgamma(2.0))
        0.0
    """
    return lgamma_p.bind(x)


def digamma(x: Any) -> Any:
    """The derivative of log Γ(x)."""
    return digamma_p.bind(x)


def _zeta(x, q):
    pole = (q <= 0) & (q == np.floor(q))
    two_signed = pole & (x % 2 != 0) & (x != 1)
    return np.where(two_signed, q.dtype.type(np.nan), scipy().zeta(x, q))


def _polygamma(m, x):
    # (-1)ᵐ⁺¹ m! ζ(m+1, x), and digamma for m = 0.
    known = (m >= 0) & (m == np.floor(m))
    order = np.where(known, m, 1.0)
    factorial = scipy().gamma(order + 1)
    series = np.where(order % 2 == 1, factorial, -factorial) * _zeta(order + 1, x)
    return np.where(known, np.where(m == 0, _digamma(x), series), np.nan)


def _zeta_rule(hlo, x, q):
    from namoo.primitives.special import zeta_programs  # few programs need it

    return zeta_programs.zeta(hlo, x, q)


def _polygamma_rule(hlo, m, x):
    from namoo.primitives.special import zeta_programs

    return zeta_programs.polygamma(hlo, m, x, lgamma_p.bind, digamma_p.bind)


zeta_p = Elementwise(
    "zeta",
    in_dtype(_zeta, single=False),
    jvp=[
        no_derivative("zeta", "x", NotImplementedError, "it is differentiable by q only."),
        lambda t, o, x, q: neg(mul(t, mul(x, zeta(add(x, full_like(x, 1)), q)))),
    ],
    dtypes=floating,
    stablehlo=_corrected("chlo.zeta", "zeta_limits"),
    formula=_zeta_rule,
)
polygamma_p = Elementwise(
    "polygamma",
    in_dtype(_polygamma, single=False),
    jvp=[
        no_derivative("polygamma", "m", ValueError, "m is an order; differentiate by x."),
        lambda t, o, m, x: mul(t, polygamma(add(m, full_like(m, 1)), x)),
    ],
    dtypes=floating,
    stablehlo=_corrected("chlo.polygamma", "polygamma_limits"),
    formula=_polygamma_rule,
)


def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function, Σₙ (n + q)⁻ˣ over n = 0, 1, 2, …

    Example:
        >>> round(float(zeta(2.0, 1.0)), 4)
        1.6449
    """
    return zeta_p.bind(*operands("zeta", x, q))


def polygamma(m: Any, x: Any) -> Any:
    """The derivative of order m of digamma at x; m is a non-negative integer of floating type.

    Example:
        >>> round(float(polygamma(1.0, 1.0)), 4)
        1.6449
    """
    return polygamma_p.bind(*operands("polygamma", m, x))
