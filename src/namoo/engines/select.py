"""Selects the engine that compiles a program."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import Any

from namoo._base import instrument
from namoo._base.caches import cached, per_program
from namoo._base.config import config
from namoo._base.source_context import warn_user
from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines.base import Executable
from namoo.engines.registry import default, home


def compile(program: ClosedJaxpr, options: dict[str, Any] | None = None) -> Executable:
    """Compile a program with the engine of `config.engine`; engines are loaded when needed.

    While a setting asks to check every value, programs run in the interpreter, so native code has
    no overhead when the setting is off.
    """
    start = time.perf_counter()
    with instrument.span("compile", program.jaxpr.name):
        executable = _compiled(program, options)
    compile_times(program).append(time.perf_counter() - start)
    return executable


@per_program("seconds of compilation")
def compile_times(program: ClosedJaxpr) -> list[float]:
    """How long each compilation of a program took; the list grows with the next ones."""
    return []


def _compiled(program: ClosedJaxpr, options: dict[str, Any] | None) -> Executable:
    # Checking every value needs an engine that materialises every value.
    engine = (options or {}).get("engine") or config.engine
    if engine == "native" and config.default_device is not None and default() != home():
        engine = "xla"  # native code runs on the host's first CPU only
    looking = config.debug_nans or config.debug_infs or config.debug_key_reuse
    looking = looking or config.strict and engine == "xla"
    if looking or engine == "interpreter" or engine == "native" and not _has_llvm():
        from namoo.engines.interpreter import interpreter

        return interpreter.compile(program, options)
    if engine == "xla":
        from namoo.engines.xla.engine import xla

        return xla.compile(program, options)
    from namoo.engines.native.engine import native

    return native.compile(program, {**(options or {}), "strict": config.strict})


@cached("engines llvmlite is installed", bound=1, keyed_by="nothing", kept=True)
def _has_llvm() -> bool:
    """Whether native code can be made; warn once if not."""
    if importlib.util.find_spec("llvmlite") is not None:
        return True
    if sys.platform == "emscripten":
        return False  # in a browser there is nothing to install
    warn_user(
        "llvmlite is not installed, so compiled functions run operation by operation: results are "
        "the same, but they take longer. Install it with `pip install llvmlite`, or choose the "
        "interpreter with NAMOO_ENGINE=interpreter."
    )
    return False
