"""Staging: run a function on abstract values and record its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.lazy import later
from namoo._base.source_context import at_user_line, user_source
from namoo.analysis.dead_code import unread
from namoo.analysis.mesh_types import MeshArray
from namoo.analysis.sharding_rules import Undecided, on_mesh
from namoo.core.array import Array, EagerArray, to_numpy
from namoo.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
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
from namoo.core.trace import Trace, Tracer, context, set_trace
from namoo.primitives.resharding import reshard_p
from namoo.transforms.refs import AbstractRef, Ref, StagedRef

leaks = later("namoo.analysis.leaks")

# Names of the inputs, for messages; a function where making them costs time.
ArgNames = Sequence[str] | Callable[[], Sequence[str]] | None


class StageTracer(Tracer):
    """A value that will be known when the program runs."""

    __slots__ = ("_var", "aval")

    def __init__(self, trace: StageTrace, var: Atom):
        self._trace = trace
        self._var = var
        self.aval = var.aval

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"

    def origin(self) -> str:
        return self._trace.explain(self._var)  # type: ignore[attr-defined]

    def static_remedy(self) -> str:
        return self._trace.static_remedy(self._var)  # type: ignore[attr-defined]


# Python's own messages have the name of the class; this is the one that `repr` shows.
StageTracer.__name__ = "JitTracer"


class StageTrace(Trace):
    """Records each operation as an equation."""

    kind = "stage"
    keeps_cells = False
    """Whether references hold values of this trace, so that the program has none."""

    def __init__(self, name: str = "", arg_names: ArgNames = None, how: str = "jit"):
        self.name = name
        self.arg_names = arg_names
        self.how = how
        self.invars: list[Var] = []
        self.eqns: list[JaxprEqn] = []
        self.consts: dict[int, tuple[Any, Var]] = {}
        self.meshed = bool(context.checked)
        """Whether types have a mesh: whether some differ between devices, or are split."""
        self.replays = not self.meshed and config.memo

    def new_input(self, aval: ShapedArray) -> Any:
        """A tracer for one more input of the program, or a reference."""
        var = Var(aval)
        if type(aval) is MeshArray:
            self.meshed, self.replays = True, False
        self.invars.append(var)
        return StagedRef.of(self, var) if type(aval) is AbstractRef else StageTracer(self, var)

    def atom(self, x: Any) -> Atom:
        """The variable or literal of an operand."""
        if type(x) is EagerArray and not x._value.ndim and x._value.dtype.names is None:
            return Literal(x._value, ShapedArray((), x._value.dtype, x._weak))
        if isinstance(x, StageTracer) and x._trace is self:
            return x._var
        if isinstance(x, Tracer):
            if not x._trace.alive:
                x.escaped()
            return self._constant(x, x.aval)
        if isinstance(x, ShapeDtypeStruct):
            return self._constant(x, aval_of(x))
        if isinstance(x, Ref):
            return (
                x._var if type(x) is StagedRef and x._trace is self else self._constant(x, x.aval)
            )
        if not isinstance(x, EagerArray):
            weak = aval_of(x).weak_type
            value = to_numpy(x)
            if value.ndim:
                return self._constant(x, ShapedArray(value.shape, value.dtype, weak))
            x = EagerArray(value, weak)
        if x.ndim or isinstance(x.dtype, dtypes.ExtendedDType) or x.dtype == dtypes.float0:
            return self._constant(x, x.aval)
        return Literal(x._value, x.aval)

    def _constant(self, x: Any, aval: Any) -> Var:
        entry = self.consts.get(id(x))
        if entry is None:
            # Keep `x` alive, so that its id is not reused.
            if type(aval) is MeshArray:
                self.meshed, self.replays = True, False
            entry = self.consts[id(x)] = (x, Var(aval))
        return entry[1]

    def process(self, prim, args, params):
        if prim.higher_order:
            return prim.dispatch_by_trace(self, args, params)
        atoms = []
        for x in args:
            own = type(x) is StageTracer and x._trace is self
            atoms.append(x._var if own else self.atom(x))
        out = prim.abstract(*[a.aval for a in atoms], **params)
        if prim.multiple_results:
            on_a_mesh = prim.holds_program and _any_on_mesh(out)
        else:
            on_a_mesh = type(out) is MeshArray
        if self.meshed or on_a_mesh:
            self.meshed, self.replays = True, False
            try:
                out = on_mesh(prim, [a.aval for a in atoms], out, params)
            except Undecided:
                # The program itself says so, for transformations of it.
                return StageTrace.process(self, prim, tuple(map(self._untyped, args)), params)
        if prim.multiple_results:
            outvars = [Var(a) for a in out]
            self.eqns.append(JaxprEqn(atoms, outvars, prim, params, user_source()))
            return [StageTracer(self, v) for v in outvars]
        var = Var(out)
        self.eqns.append(JaxprEqn(atoms, [var], prim, params, user_source()))
        return StageTracer(self, var)

    def _untyped(self, x: Any) -> Any:
        """A value without a sharding in its type."""
        aval = x.aval if isinstance(x, Array) else None
        if type(aval) is not MeshArray or aval.split is None:
            return x
        return StageTrace.process(self, reshard_p, (x,), {"sharding": None})

    def program(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The program that computes `outs`, and the values of its constants."""
        for i, x in enumerate(outs):
            if isinstance(x, Ref):
                self.refuse_result(i, x)
        outvars = [self.atom(x) for x in outs]
        # The trace keeps its own equations: they show where an escaped value was made.
        used, eqns = set(outvars), [*self.eqns]
        for i in unread(eqns, used):
            kept = [v if v in used else DropVar(v.aval) for v in eqns[i].outvars]
            eqns[i] = eqns[i].replace(outvars=kept)
        constants = [(x, v) for x, v in self.consts.values() if v in used]
        jaxpr = Jaxpr([v for _, v in constants], self.invars, outvars, eqns, name=self.name)
        return jaxpr, [x for x, _ in constants]

    def refuse_result(self, place: int, ref: Ref) -> None:
        """Raise: a function must not return a reference."""
        origin, var = "closed over", getattr(ref, "_var", None)
        names = self.arg_names() if callable(self.arg_names) else self.arg_names
        for name, own in zip(names or (), self.invars, strict=False):
            if own is var:
                origin = f"passed in as the argument {name}"
        for eqn in self.eqns:
            if var in eqn.outvars:
                origin = f"created on line {eqn.source}"
        raise ValueError(
            f"function {self.name} traced for {self.how} returned a mutable array reference of "
            f"type {ref.aval} as result number {place}, but mutable array references cannot be "
            f"returned.\n\nThe returned mutable array was {origin}. Return its value, ref[...]."
            + at_user_line()
        )

    def _inputs(self, var: Var) -> tuple[list[str], list[Var], JaxprEqn | None]:
        """The inputs that a variable was computed from, by name, and the equation that made it."""
        needed: set[Any] = {var}
        source: JaxprEqn | None = None
        for eqn in reversed(self.eqns):
            if any(v in needed for v in eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is not Literal)
                if var in eqn.outvars:
                    source = eqn
        names = self.arg_names() if callable(self.arg_names) else self.arg_names
        names = names or [f"number {i}" for i in range(len(self.invars))]
        inputs = [(n, v) for n, v in zip(names, self.invars, strict=False) if v in needed]
        return [n for n, _ in inputs], [v for _, v in inputs], source

    def explain(self, var: Var) -> str:
        """Which inputs a variable was computed from, as a sentence."""
        inputs, _, source = self._inputs(var)
        text = f"The function {self.name or 'being transformed'} is traced by {self.how}"
        if inputs:
            shown = ", ".join(inputs[:3]) + (", …" if len(inputs) > 3 else "")
            several = "s" * (len(inputs) > 1)
            text += (
                ". This concrete value was not available in Python because it depends on the "
                f"value{several} of the argument{several} {shown}"
            )
        if source is not None and source.source is not None:
            name = source.primitive.name
            text += f"; it was computed by '{name}', and was created on line {source.source}"
        return text + "."

    def static_remedy(self, var: Var) -> str:
        """How to make a value known that was computed from one number, as a sentence, or ''."""
        names, inputs, _ = self._inputs(var)
        if self.how != "jit" or len(inputs) != 1 or not names[0].isidentifier():
            return ""
        if inputs[0].aval.shape or inputs[0].aval.dtype.kind not in "biu":
            return ""
        return (
            f"If {names[0]} is a setting rather than data, mark it static: "
            f"jit({self.name}, static_argnames={names[0]!r})."
        )


def placeholder(x: ShapeDtypeStruct) -> Any:
    """A tracer for a constant of which only the type is known.

    A program with such a constant has types, for `eval_shape`, but cannot run.

    Raises:
        TypeError: no program is being staged.
    """
    traced = as_traced(x)
    return to_numpy(x) if traced is x else traced  # which refuses it


def as_traced(x: Any) -> Any:
    """A tracer for a constant of the program that is being staged; `x` itself if there is none."""
    trace: Any = context.trace
    while type(trace) is not StageTrace:
        if trace.kind in ("eval", "fold"):
            return x
        trace = trace.parent
    return StageTracer(trace, trace.atom(x))


def _any_on_mesh(avals: Sequence[Any]) -> bool:
    """Whether some results of a program have a mesh."""
    return any(type(a) is MeshArray for a in avals)


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
            program = trace.program(outs)
    finally:
        trace.finish()
    if config.check_tracer_leaks:
        del outs  # local references are not leaks
        leaks.refuse_leaks(trace)
    return program


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


def bind_each(trace: Trace, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program under a trace. Errors and equations name the line of the caller, not the lines
    that the program was traced from."""
    inputs = [*closed.jaxpr.constvars, *closed.jaxpr.invars]
    env = dict(zip(inputs, [*closed.consts, *args], strict=True))

    def read(atom):
        return literal_value(atom) if type(atom) is Literal else env[atom]

    with set_trace(trace):
        for eqn in closed.jaxpr.eqns:
            out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            out = out if eqn.primitive.multiple_results else [out]
            env.update(zip(eqn.outvars, out, strict=True))
    return [read(a) for a in closed.jaxpr.outvars]
