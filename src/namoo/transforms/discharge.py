"""Programs without references: values that are read become inputs, values written become results.

Primitives that hold programs have a rule `discharge`, which takes the values out of cells, runs
programs on values, and puts the last values back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo._base.caches import per_program
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, eval_jaxpr, subjaxprs
from namoo.core.trace import context
from namoo.primitives.shape import convert_element_type
from namoo.transforms.refs import (
    AbstractRef,
    Cell,
    MakesRef,
    Ref,
    RefPrimitive,
    get_p,
    home,
    owns,
    stages_refs,
    swap_p,
)
from namoo.transforms.stage import stage_closed


@per_program("makes references")
def makes_refs(jaxpr: Jaxpr) -> bool:
    """Whether a program creates references."""
    return any(
        isinstance(eqn.primitive, MakesRef) or any(map(makes_refs, subjaxprs(eqn.params)))
        for eqn in jaxpr.eqns
    )


@per_program("without references", keyed_by="references that become values, those returned")
def discharged(
    closed: ClosedJaxpr, which: tuple[bool, ...], returned: tuple[int, ...] | None = None
) -> tuple[ClosedJaxpr, tuple[int, ...]]:
    """A program that takes values in place of references, and makes no references.

    Args:
        closed: the program.
        which: the inputs that are references and become values. Others stay references.
        returned: the inputs among them whose last values are returned, after the results; by
            default those that the program changes.

    Returns:
        The program, and the inputs whose last values it returns.
    """
    found: tuple[int, ...] = ()

    def fun(*args):
        nonlocal found
        trace: Any = context.trace
        trace.keeps_cells = True
        cells = {
            i: Cell.of(trace, x, closed.jaxpr.invars[i].aval)  # type: ignore[arg-type]
            for i, x in enumerate(args)
            if which[i]
        }
        inputs = [cells.get(i, x) for i, x in enumerate(args)]
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *inputs)
        changed = tuple([i for i, cell in cells.items() if cell.changed])
        found = changed if returned is None else returned
        return [*outs, *(strong_value(cells[i]) for i in found)]

    avals = [
        a.inner_aval if w else a  # type: ignore[attr-defined]
        for a, w in zip(closed.in_avals, which, strict=True)
    ]
    return stage_closed(fun, avals, closed.jaxpr.name), found


def strong_value(ref: Ref) -> Any:
    """The value of a reference, of exactly its type."""
    value = ref.value() if type(ref) is Cell else get_p.bind(ref, index=())[0]
    return convert_element_type(value, ref.dtype) if value.weak_type else value


def values_of(args: Sequence[Any], which: Sequence[bool]) -> list[Any]:
    """Operands with values in place of some references."""
    return [strong_value(x) if w else x for x, w in zip(args, which, strict=True)]


def put_back(refs: Sequence[Any], values: Sequence[Any]) -> None:
    """Write last values to references."""
    trace = home(context.trace)
    for ref, value in zip(refs, values, strict=True):
        if owns(trace, ref):
            ref.store(value)
        else:
            swap_p.bind(ref, value, index=())


def has_refs(args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether an operation that holds programs takes references, or its programs make some."""
    for x in args:
        if isinstance(x, Ref):
            return True
    for sub in subjaxprs(params):
        if sub.effectful and makes_refs(sub):
            return True
    return False


def bind_with_refs(prim: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Apply an operation that holds programs, where these read, write or make references.

    Under a trace that stages programs it becomes an ordinary equation. Otherwise the references of
    the current trace become values, and the operation is applied to these. References from outside
    the trace stay operands, which the rules of the operation pass on.
    """
    trace = home(context.trace)
    which = tuple([owns(trace, x) for x in args])
    staged = stages_refs(trace) and not any(which)
    if trace is context.trace and not staged:
        takes = [prim.takes_value_of(i, args, params) for i in range(len(args))]
        which = tuple([own or t for own, t in zip(which, takes, strict=True)])
        staged = not any(which) and not any(map(makes_refs, subjaxprs(params)))
    if trace is not context.trace or staged:
        return context.trace.process(prim, tuple(args), params)
    return prim.discharge(args, which, params)


def uses(jaxpr: Jaxpr, var: Any) -> bool:
    """Whether a program reads or writes a reference itself, not only in a custom derivative."""
    return any(var in eqn.invars and _eqn_uses(eqn, var) for eqn in jaxpr.eqns)


def _eqn_uses(eqn: JaxprEqn, var: Any) -> bool:
    if isinstance(eqn.primitive, RefPrimitive):
        return True
    for sub in subjaxprs(eqn.params):
        # The operands of the program come last; the others, such as an index, come first.
        operands = eqn.invars[len(eqn.invars) - len(sub.invars) :]
        if any(a is var and uses(sub, v) for a, v in zip(operands, sub.invars, strict=True)):
            return True
    return False


def is_ref_type(aval: Any) -> bool:
    """Whether a type is that of a reference."""
    return type(aval) is AbstractRef


def as_cells(
    fun: Callable[..., Any], which: Sequence[bool], avals: Sequence[AbstractRef], changed: list[int]
) -> Callable[..., tuple[list[Any], Any]]:
    """Make a function of references one of values, for which it makes references itself.

    Args:
        fun: a function of flat arguments, some of them references.
        which: the arguments that are references.
        avals: the types of all arguments.
        changed: is filled with the arguments whose values the function changed.

    Returns:
        a function that returns the last values of the references, and what `fun` returned.
    """

    def run(*args):
        cells = {
            i: Cell.of(home(context.trace), x, avals[i]) for i, x in enumerate(args) if which[i]
        }
        out = fun(*(cells.get(i, x) for i, x in enumerate(args)))
        changed[:] = [i for i, cell in cells.items() if cell.changed]
        return [*map(strong_value, cells.values())], out

    return run
