"""Which engine makes a program ready to run."""

from __future__ import annotations

from typing import Any

from namoo._config import config
from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines.base import Executable


def compile(program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Executable:
    """A program made ready by the engine of `config.engine`; engines are loaded when needed."""
    if config.engine == "interpreter":
        from namoo.engines.interpreter import interpreter

        return interpreter.compile(program, options)
    from namoo.engines.native.engine import native

    return native.compile(program, options)
