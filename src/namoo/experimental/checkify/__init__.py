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

from namoo.experimental.checkify.checks import check as check
from namoo.experimental.checkify.checks import debug_check as debug_check
from namoo.experimental.checkify.error import BatchedError as BatchedError
from namoo.experimental.checkify.error import CheckError as CheckError
from namoo.experimental.checkify.error import DivisionByZeroError as DivisionByZeroError
from namoo.experimental.checkify.error import Error as Error
from namoo.experimental.checkify.error import ErrorCategory as ErrorCategory
from namoo.experimental.checkify.error import FailedCheckError as FailedCheckError
from namoo.experimental.checkify.error import JaxRuntimeError as JaxRuntimeError
from namoo.experimental.checkify.error import NaNError as NaNError
from namoo.experimental.checkify.error import OOBError as OOBError
from namoo.experimental.checkify.error import check_error as check_error
from namoo.experimental.checkify.error import init_error as init_error
from namoo.experimental.checkify.interpret import checkify as checkify

user_checks = frozenset({FailedCheckError})
nan_checks = frozenset({NaNError})
index_checks = frozenset({OOBError})
div_checks = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks
