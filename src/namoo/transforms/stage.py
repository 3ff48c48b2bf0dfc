"""Staging: run a function on abstract values and write down the program it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo import _dtypes, errors
from namoo._accelerator import native
from namoo._config import config
from namoo._lazy import later
from namoo.core.array import EagerArray, to_numpy
from namoo.core.avals import ShapedArray, VaryingArray, aval_of
from namoo.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    literal_value,
    unread,
)
from namoo.core.primitive import Primitive
from namoo.core.trace import Trace, Tracer, context, set_trace

leaks = later("namoo.core.leaks")

# Names of the inputs, for messages; a function where making them costs time.
ArgNames = Sequence[str] | Callable[[], Sequence[str]] | None


class StageTracer(Tracer):
    """A value that will be known when the program runs."""

    __slots__ = ("_var", "aval")

    def __init__(self, trace: StageTrace, var: Var):
        self._trace = trace
        self._var = var
        self.aval = var.aval

    def origin(self) -> str:
        return self._trace.explain(self._var)  # type: ignore[attr-defined]


class StageTrace(Trace):
    """Writes down each operation as an equation."""

    kind = "stage"

    def __init__(self, name: str = "", arg_names: ArgNames = None, how: str = "jit"):
        self.name = name
        self.arg_names = arg_names
        self.how = how
        self.invars: list[Var] = []
        self.eqns: list[JaxprEqn] = []
        self.consts: dict[int, tuple[Any, Var]] = {}
        self.recalls = not context.checked

    def new_input(self, aval: ShapedArray) -> StageTracer:
        """A tracer for one more input of the program."""
        var = Var(aval)
        self.invars.append(var)
        return StageTracer(self, var)

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for an operand."""
        if type(x) is EagerArray and not x._value.ndim and x._value.dtype.names is None:
            return Literal(x._value, ShapedArray((), x._value.dtype, x._weak))
        if isinstance(x, StageTracer) and x._trace is self:
            return x._var
        if isinstance(x, Tracer):
            if not x._trace.alive:
                x.escaped()
            return self._constant(x, x.aval)
        if not isinstance(x, EagerArray):
            weak = aval_of(x).weak_type
            value = to_numpy(x)
            if value.ndim:
                return self._constant(x, ShapedArray(value.shape, value.dtype, weak))
            x = EagerArray(value, weak)
        if x.ndim or isinstance(x.dtype, _dtypes.ExtendedDType) or x.dtype == _dtypes.float0:
            return self._constant(x, x.aval)
        return Literal(x._value, x.aval)

    def _constant(self, x: Any, aval: ShapedArray) -> Var:
        entry = self.consts.get(id(x))
        if entry is None:
            # `x` is kept, so that its id stays its own.
            entry = self.consts[id(x)] = (x, Var(aval))
        return entry[1]

    def process(self, prim, args, params):
        if prim.takes_functions:
            return prim.under(self, args, params)
        atoms = []
        for x in args:
            own = type(x) is StageTracer and x._trace is self
            atoms.append(x._var if own else self.atom(x))
        out = prim.abstract(*[a.aval for a in atoms], **params)
        if context.checked:
            out = _varying(prim, atoms, out, params)
        if prim.multiple_results:
            outvars = [Var(a) for a in out]
            self.eqns.append(JaxprEqn(atoms, outvars, prim, params, errors.user_source()))
            return [StageTracer(self, v) for v in outvars]
        var = Var(out)
        self.eqns.append(JaxprEqn(atoms, [var], prim, params, errors.user_source()))
        return StageTracer(self, var)

    def replay(self, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """Write a program's equations down as they are, on other operands."""
        jaxpr = closed.jaxpr
        form = jaxpr.cache.get("form")
        if form is None:
            form = jaxpr.cache["form"] = _form(jaxpr)
        values = [*closed.consts, *args] if closed.consts else args
        return written(self, form, values, errors.user_source())

    def program(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The program that computes `outs`, and the values of its constants."""
        outvars = [self.atom(x) for x in outs]
        # The trace keeps its own equations: they tell where a value that escapes was made.
        used, eqns = set(outvars), [*self.eqns]
        for i in unread(eqns, used):
            kept = [v if v in used else DropVar(v.aval) for v in eqns[i].outvars]
            eqns[i] = eqns[i].replace(outvars=kept)
        constants = [(x, v) for x, v in self.consts.values() if v in used]
        jaxpr = Jaxpr([v for _, v in constants], self.invars, outvars, eqns, name=self.name)
        return jaxpr, [x for x, _ in constants]

    def explain(self, var: Var) -> str:
        """Which inputs a variable was computed from, as a sentence."""
        needed: set[Any] = {var}
        sources: list[JaxprEqn] = []
        for eqn in reversed(self.eqns):
            if any(v in needed for v in eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is not Literal)
                if var in eqn.outvars:
                    sources = [eqn]
        names = self.arg_names() if callable(self.arg_names) else self.arg_names
        names = names or [f"number {i}" for i in range(len(self.invars))]
        inputs = [n for n, v in zip(names, self.invars, strict=False) if v in needed]
        text = f"The function {self.name or 'being transformed'} is traced by {self.how}"
        if inputs:
            shown = ", ".join(inputs[:3]) + (", …" if len(inputs) > 3 else "")
            text += f", and the value depends on its argument{'s'[: len(inputs) > 1]} {shown}"
        if sources and sources[0].source is not None:
            text += f"; it was computed by '{sources[0].primitive.name}' at {sources[0].source}"
        return text + "."


Form = tuple[tuple[int, ...], tuple[Atom, ...], tuple[tuple, ...], tuple[int, ...]]


def _form(jaxpr: Jaxpr) -> Form:
    """A program by the places of its atoms: inputs, then literals, then results of equations.

    Returns:
      of each input its place among all inputs, the first used first (constants are listed in this
      order); the literals; of each equation the places of operands, the types of results, and what
      it does; the places of the results.
    """
    numbers = {v: i for i, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
    used = dict.fromkeys([*(a for eqn in jaxpr.eqns for a in eqn.invars), *jaxpr.outvars])
    inputs = [a for a in used if a in numbers]
    literals = [a for a in used if type(a) is Literal]
    places: dict[Atom, int] = {a: i for i, a in enumerate([*inputs, *literals])}
    steps = []
    for eqn in jaxpr.eqns:
        operands = tuple([places[a] for a in eqn.invars])
        types = tuple([v.aval for v in eqn.outvars])
        steps.append((operands, types, eqn.primitive, eqn.params))
        for v in eqn.outvars:
            places[v] = len(places)
    return (
        tuple([numbers[v] for v in inputs]),
        tuple(literals),
        tuple(steps),
        tuple([places[a] for a in jaxpr.outvars]),
    )


def _written(
    trace: StageTrace, form: Form, values: Sequence[Any], source: errors.Source | None
) -> list[Any]:
    """Write the equations of a program down on other operands; its results."""
    inputs, literals, steps, results = form
    atoms: list[Atom] = []
    for i in inputs:
        x = values[i]
        own = type(x) is StageTracer and x._trace is trace
        atoms.append(x._var if own else trace.atom(x))
    atoms += literals
    for operands, types, primitive, params in steps:
        outvars = [Var(aval) for aval in types]
        invars = [atoms[i] for i in operands]
        trace.eqns.append(JaxprEqn(invars, outvars, primitive, params, source))
        atoms += outvars
    outs = [atoms[i] for i in results]
    return [literal_value(a) if isinstance(a, Literal) else StageTracer(trace, a) for a in outs]


written: Callable[..., list[Any]] = _written
if native is not None:
    native.bind_writing(StageTracer, literal_value)
    written = native.written


def _varying(prim: Primitive, atoms: Sequence[Atom], out: Any, params: dict) -> Any:
    """The types of results with the mesh axes along which they differ."""
    union = frozenset().union(*(a.aval.vma for a in atoms))
    vma = prim.varies(union, params)

    def typed(aval: ShapedArray) -> ShapedArray:
        # Of a program that an operation holds, the types tell it already.
        return aval if type(aval) is VaryingArray else VaryingArray(aval, vma)

    return [typed(a) for a in out] if prim.multiple_results else VaryingArray(out, vma)


def stage(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    name: str = "",
    arg_names: ArgNames = None,
    how: str = "jit",
) -> tuple[Jaxpr, list[Any]]:
    """The program of a function of flat arguments that returns a flat list, and its constants.

    The constants are arrays, or tracers of transformations outside, that `fun` closes over.
    """
    trace = StageTrace(name, arg_names, how)
    try:
        with set_trace(trace):
            outs = fun(*(trace.new_input(aval) for aval in avals))
            found = trace.program(outs)
    finally:
        trace.finish()
    if config.check_tracer_leaks:
        del outs  # what is kept here is no leak
        leaks.refuse_leaks(trace)
    return found


def close(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """Make constants ordinary leading inputs: a program without any, and the operands to add."""
    if not consts:
        return ClosedJaxpr(jaxpr), []
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])), [
        *consts
    ]


def stage_closed(
    fun: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], name: str = ""
) -> ClosedJaxpr:
    """`stage` for functions that close over no tracers."""
    jaxpr, consts = stage(fun, avals, name)
    return ClosedJaxpr(jaxpr, consts)


def derived(jaxpr: Jaxpr, key: Any, make: Callable[[], Any]) -> Any:
    """A program derived from another one, made once and kept with it."""
    try:
        return jaxpr.cache[key]
    except KeyError:
        value = jaxpr.cache[key] = make()
        return value
