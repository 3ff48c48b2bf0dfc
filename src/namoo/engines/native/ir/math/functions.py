"""Transcendental functions by the names of their primitives.

Each takes the function being written and values of elem "f32" or "f64", scalars or vectors, and
returns a value of the same type.
"""

from __future__ import annotations

from namoo.engines.native.ir.math import gamma, powers, special, trig
from namoo.engines.native.ir.vectors import Rule

FUNCTIONS: dict[str, Rule] = {
    "exp": powers.exp,
    "exp2": powers.exp2,
    "expm1": powers.expm1,
    "log": powers.log,
    "log2": powers.log2,
    "log1p": powers.log1p,
    "logistic": powers.logistic,
    "tanh": powers.tanh,
    "sinh": powers.sinh,
    "cosh": powers.cosh,
    "asinh": powers.asinh,
    "acosh": powers.acosh,
    "atanh": powers.atanh,
    "rsqrt": powers.rsqrt,
    "cbrt": powers.cbrt,
    "hypot": powers.hypot,
    "pow": powers.pow,
    "integer_pow": powers.integer_pow,
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "asin": trig.asin,
    "acos": trig.acos,
    "atan": trig.atan,
    "atan2": trig.atan2,
    "erf": special.erf,
    "erfc": special.erfc,
    "erf_inv": special.erf_inv,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
}
