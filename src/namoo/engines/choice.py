"""Which engine makes a program ready to run."""

from __future__ import annotations

from typing import Any

from namoo import _spans
from namoo._config import config
from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines.base import Executable
from namoo.engines.devices import default, home


def compile(program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Executable:
    """A program made ready by the engine of `config.engine`; engines are loaded when needed.

    While a setting asks to check every value, programs run in the interpreter: native code pays
    nothing for what is off.
    """
    with _spans.span("compile", program.jaxpr.name):
        return _compiled(program, options)


def _compiled(program: ClosedJaxpr, options: dict[str, Any] | None) -> Executable:
    # Looking at every value needs an engine that has every value.
    engine = (options or {}).get("engine") or config.engine
    if engine == "native" and config.default_device is not None and default() != home():
        engine = "xla"  # native code runs where the host is
    looking = config.debug_nans or config.debug_infs or config.debug_key_reuse
    looking = looking or config.strict and engine == "xla"
    if looking or engine == "interpreter":
        from namoo.engines.interpreter import interpreter

        return interpreter.compile(program, options)
    if engine == "xla":
        from namoo.engines.xla.engine import xla

        return xla.compile(program, options)
    from namoo.engines.native.engine import native

    return native.compile(program, {**(options or {}), "strict": config.strict})
