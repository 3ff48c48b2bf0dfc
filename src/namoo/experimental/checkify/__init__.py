"""Checks in programs: a program returns errors as values, and its caller raises them.

Example:
    >>> import namoo, namoo.numpy as jnp
    >>> def f(x):
    ...     check(x > 0, "{x} must be positive", x=x)
    ...     return jnp.log(x)
    >>> error, out = namoo.jit(checkify(f))(jnp.array(-3.0))
    >>> error.get()
    '-3.0 must be positive (`check` failed)'
"""

from namoo.experimental.checkify.checks import check, debug_check
from namoo.experimental.checkify.error import (
    BatchedError,
    CheckError,
    DivisionByZeroError,
    Error,
    ErrorCategory,
    FailedCheckError,
    JaxRuntimeError,
    NaNError,
    OOBError,
    check_error,
    init_error,
)
from namoo.experimental.checkify.interpret import checkify

__all__ = [
    "BatchedError",
    "CheckError",
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "JaxRuntimeError",
    "NaNError",
    "OOBError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]
__dir__ = __all__.copy


user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks
