"""The former name of `namoo._base.dtypes`, for tools that import it from here."""

from typing import Any

from namoo._base import dtypes


def __getattr__(name: str) -> Any:
    return getattr(dtypes, name)
