"""Executables of programs with dynamic dimensions.

The native engine compiles such a program once. Where it cannot, and on other engines, the program
is compiled for each size that it is called with; it is traced once in any case.
"""

from __future__ import annotations

from typing import Any

from namoo._base.caches import per_program
from namoo._base.config import config
from namoo.analysis.specialising import specialised
from namoo.core.jaxpr import ClosedJaxpr
from namoo.engines.select import compile as compile_program
from namoo.errors import InconclusiveDimensionOperation

Sizes = tuple[tuple[str, int], ...]


def executable(closed: ClosedJaxpr, sizes: Sizes, engine: str | None) -> Any:
    """Return what runs a program at some sizes: one executable for all, if that is possible."""
    run, _ = for_all_sizes(closed, engine or config.engine, config.trace_id())
    return run or _for_sizes(closed, sizes, engine or config.engine, config.trace_id())


@per_program("executable for all sizes", keyed_by="engine, settings")
def for_all_sizes(closed: ClosedJaxpr, engine: str, settings: Any) -> tuple[Any, str]:
    """Return the executable for all sizes; or None, and why there is none."""
    if engine != "native":
        return None, f"the engine {engine!r} takes no sizes at run time"
    try:
        run = compile_program(closed, {"engine": engine})
    except InconclusiveDimensionOperation as error:
        return None, str(error).split("\n")[0]
    if not getattr(run, "variables", ()):
        return None, "settings ask for another engine"
    return run, ""


@per_program("executable for some sizes", keyed_by="sizes of dimensions, engine, settings")
def _for_sizes(closed: ClosedJaxpr, sizes: Sizes, engine: str, settings: Any) -> Any:
    return compile_program(specialised(closed, sizes), {"engine": engine})
