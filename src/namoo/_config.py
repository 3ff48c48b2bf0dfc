"""The former name of `namoo._base.config`, for tools that import it from here."""

from typing import Any

from namoo._base import config


def __getattr__(name: str) -> Any:
    return getattr(config, name)
