"""Flatten functions of trees to functions of lists of leaves."""

from namoo.compat.private._names import names_of

__getattr__ = names_of(__name__, "namoo.api_util")
