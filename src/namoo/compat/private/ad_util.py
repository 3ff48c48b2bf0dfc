"""Symbolic zeros, and sums of tangents."""

from namoo.compat.private._names import names_of

__getattr__ = names_of(__name__, "namoo.interpreters.ad", "namoo.extend.core.primitives")
