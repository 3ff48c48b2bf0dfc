"""Executables of programs with dynamic dimensions.

The native engine compiles such a program once. Where it cannot, and on other engines, the program
is compiled for each size that it is called with; it is traced once in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo._base.caches import per_program
from namoo._base.config import config
from namoo.analysis.specialising import specialised
from namoo.api import dispatch
from namoo.api.dynamic import Found
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.trace import wrap
from namoo.engines.select import compile as compile_program
from namoo.errors import InconclusiveDimensionOperation
from namoo.transforms.arguments import is_array

Sizes = tuple[tuple[str, int], ...]


def traced(jitted: Any, found: Found, tree: Any, static: Any) -> Any:
    """Return the program of a function under `jit` for all sizes of the marked axes.

    Raises:
        InconclusiveDimensionOperation: a size decides what the program is.
    """
    args, kwargs = tree.unflatten(found.leaves)
    try:
        return jitted._program(found.leaves, tree, args, kwargs, static)
    except InconclusiveDimensionOperation as error:
        refusal = jitted._dynamic.refusal(error)
    except (TypeError, ValueError) as error:
        names = ", ".join(name for name, _ in found.sizes)
        error.add_note(f"The sizes {names} are dynamic (jit(dynamic=...)): they equal no others.")
        raise
    raise refusal


def call(jitted: Any, found: Found, leaves: Sequence[Any], tree: Any, static: Any) -> Any:
    """Run the program of a function under `jit` for all sizes of the marked axes."""
    records = jitted._cache.records
    before = records[-1] if records else None
    program = traced(jitted, found, tree, static)
    operands = [x for x in leaves if is_array(x)]
    run = executable(program.program, found.sizes, jitted._engine)
    if records and records[-1] is not before:
        records[-1].add_notes(notes(program.program, jitted._engine))
    outs = dispatch.execute(run, (*program.given, *operands))
    if jitted.calls is not None and jitted._dynamic.simple and getattr(run, "variables", ()):
        jitted._learn(program, leaves, tree, static, run, found)
    outs = list(map(wrap, outs, program.weak_out))
    return program.out_tree.unflatten(program.fixed_out.join(outs))


def executable(closed: ClosedJaxpr, sizes: Sizes, engine: str | None) -> Any:
    """Return what runs a program at some sizes: one executable for all, if that is possible."""
    run, _ = for_all_sizes(closed, engine or config.engine, config.trace_id())
    return run or _for_sizes(closed, sizes, engine or config.engine, config.trace_id())


def notes(closed: ClosedJaxpr, engine: str | None) -> list[str]:
    """Return what `f.explain()` says of a program that is not one executable of native code."""
    run, why = for_all_sizes(closed, engine or config.engine, config.trace_id())
    if run is None:
        return [f"compiled again for each size, because {why}"]
    return [
        f"{eqn.primitive.name} runs on the host, since its sizes are dynamic"
        + (f", at {eqn.source}" if eqn.source else "")
        for eqn in run.host_equations
        if eqn.primitive.native is not None
    ]


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
