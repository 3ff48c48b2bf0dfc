"""Staging: run a function on abstract values and write down the program it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo import _dtypes, errors
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
)
from namoo.core.primitive import Primitive
from namoo.core.trace import Trace, Tracer, context, set_trace

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
        values = [*closed.consts, *args] if closed.consts else args
        inputs = jaxpr.cache.get("inputs")
        if inputs is None:
            inputs = jaxpr.cache["inputs"] = _inputs_by_use(jaxpr)
        env: dict[Any, Any] = {}
        atom_of = env.get
        for i, var in inputs:
            x = values[i]
            own = type(x) is StageTracer and x._trace is self
            env[var] = x._var if own else self.atom(x)
        source = errors.user_source()
        for eqn in jaxpr.eqns:
            # Literals are not in `env`, and stay.
            atoms = list(map(atom_of, eqn.invars, eqn.invars))
            outvars = []
            for v in eqn.outvars:
                env[v] = var = Var(v.aval)
                outvars.append(var)
            self.eqns.append(JaxprEqn(atoms, outvars, eqn.primitive, eqn.params, source))
        outs = map(atom_of, jaxpr.outvars, jaxpr.outvars)
        return [StageTracer(self, a) if type(a) is Var else literal_value(a) for a in outs]

    def program(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The program that computes `outs`, and the values of its constants."""
        outvars = [self.atom(x) for x in outs]
        used: set[Atom] = set(outvars)
        used.update(*[eqn.invars for eqn in self.eqns])
        # The trace keeps its own equations: they tell where a value that escapes was made.
        eqns = [
            eqn
            if used.issuperset(eqn.outvars)
            else eqn.replace(outvars=[v if v in used else DropVar(v.aval) for v in eqn.outvars])
            for eqn in self.eqns
        ]
        constants = [(x, v) for x, v in self.consts.values() if v in used]
        jaxpr = Jaxpr([v for _, v in constants], self.invars, outvars, eqns, self.name)
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


def _inputs_by_use(jaxpr: Jaxpr) -> list[tuple[int, Var]]:
    """The inputs that a program uses, with their numbers, the first used first: constants are
    listed in this order."""
    places = {v: i for i, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
    used = [*(a for eqn in jaxpr.eqns for a in eqn.invars), *jaxpr.outvars]
    return [(places[a], a) for a in dict.fromkeys(used) if a in places]


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
            return trace.program(outs)
    finally:
        trace.finish()


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
