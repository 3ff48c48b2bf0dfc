"""Compiled functions."""

from namoo.compat.private._names import names_of

__getattr__ = names_of(__name__, "namoo.extend.core.primitives", "namoo.experimental.pjit", "namoo")
