"""Checks whose failures are values."""

from typing import TypeVar

from namoo.compat.private._names import names_of
from namoo.experimental.checkify.error import CheckError as JaxException

__all__ = ["JaxException", "Out"]

Out = TypeVar("Out")

__getattr__ = names_of(__name__, "namoo.experimental.checkify")
