"""Primitives that hold programs, and the rules that calls of a program share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base.caches import per_program
from namoo._base.config import config
from namoo.analysis.dead_code import chosen, dce, dependent, prune, reads
from namoo.core.array import EagerArray, to_numpy
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, eval_jaxpr, subjaxprs
from namoo.core.primitive import Primitive, Zero, is_linear, is_zero
from namoo.core.trace import eval_trace, set_trace
from namoo.transforms.batch import batch_jaxpr, to_front
from namoo.transforms.discharge import bind_with_refs, discharged, has_refs, put_back, values_of
from namoo.transforms.jvp import jvp_jaxpr
from namoo.transforms.linear import linearize_jaxpr, tangents_out
from namoo.transforms.refs import refuse_aliases, refuse_refs
from namoo.transforms.transpose import transpose_jaxpr

Values = Sequence[np.ndarray]
Executable = Callable[[Values], list[np.ndarray]]


def interpret(closed: ClosedJaxpr) -> Executable:
    """Run a program operation by operation: the reference for the engines."""

    def run(values: Values) -> list[np.ndarray]:
        with set_trace(eval_trace):
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *map(EagerArray, values))
        return [to_numpy(x) for x in outs]

    return run


class ProgramPrimitive(Primitive):
    """A primitive that holds programs: many results, and collectives within."""

    multiple_results = True
    holds_program = True
    takes_axis = True

    compiler: Callable[..., Executable] = staticmethod(interpret)
    """Compiles a program, with options of `engines.base`, to a function of NumPy arrays;
    `api.wiring` sets it."""

    on_devices: Callable[..., list[Any]]
    """Runs an operation whose program uses several devices; `api.wiring` sets it."""

    def bind(self, *args: Any, **params: Any) -> Any:
        if has_refs(args, params):
            return bind_with_refs(self, args, params)
        return super().bind(*args, **params)

    def takes_value_of(self, place: int, args: Sequence[Any], params: dict) -> bool:
        """Whether a reference among the operands is always replaced by its value."""
        return False

    def discharge(self, args: Sequence[Any], which: tuple[bool, ...], params: dict) -> list[Any]:
        """The results on values in place of some references, whose last values are put back.

        Args:
            args: the operands.
            which: the operands that are references and become values.
            params: the parameters.
        """
        refuse_refs(self.name, chosen(args, which))
        pure = {key: _without_own_refs(value) for key, value in params.items()}
        return self.bind(*args, **pure)

    def collective_axes(self, params):
        return tuple(name for sub in subjaxprs(params) for name in jaxpr_axes(sub))

    @staticmethod
    def executable(closed: ClosedJaxpr) -> Executable:
        """Compile a program, once for the same settings."""
        return _executable(closed, config.trace_id())


@per_program("executable", keyed_by="settings, the engine among them")
def _executable(closed, settings):
    return ProgramPrimitive.compiler(closed)


@per_program("uses several devices")
def uses_several_devices(jaxpr: Jaxpr) -> bool:
    """Whether a sharding or a mesh in the program has more than one device."""
    return any(
        _has_several_devices(eqn.params.get("sharding"))
        or _has_several_devices(eqn.params.get("mesh"))
        or any(map(uses_several_devices, subjaxprs(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _has_several_devices(x: Any) -> bool:
    """Whether `x` is a sharding or a mesh of more than one actual device."""
    mesh = getattr(x, "mesh", x)
    return mesh is not None and getattr(mesh, "has_devices", False) and mesh.size > 1


@per_program("collective axes")
def jaxpr_axes(jaxpr: Jaxpr) -> tuple:
    """The named axes that a program's collectives work over."""
    return tuple({n for e in jaxpr.eqns for n in e.primitive.collective_axes(e.params)})


@per_program("weak results")
def _weak_results(closed):
    return [a.weak_type for a in closed.out_avals]


def _without_own_refs(value: Any) -> Any:
    """A parameter, whose programs make no references."""
    if isinstance(value, ClosedJaxpr):
        return discharged(value, (False,) * len(value.in_avals))[0]
    return tuple(map(_without_own_refs, value)) if type(value) is tuple else value


class Call(ProgramPrimitive):
    """A call of the program in the parameter `jaxpr`; transformed calls are calls again."""

    value_params = ("jaxpr",)

    def evaluate(self, *values, jaxpr, **params):
        if uses_several_devices(jaxpr.jaxpr):
            return self.on_devices(self, values, {"jaxpr": jaxpr, **params})
        return self.executable(jaxpr)(values)

    def abstract(self, *avals, jaxpr, **params):
        return jaxpr.out_avals

    def discharge(self, args, which, params):
        names = lambda: [f"operand {i}" for i in range(len(args))]  # noqa: E731
        refuse_aliases(params["jaxpr"].jaxpr.name, self.name, args, names)
        program, changed = discharged(params["jaxpr"], which)
        outs = self.bind(*values_of(args, which), **{**params, "jaxpr": program})
        n = len(outs) - len(changed)
        put_back([args[i] for i in changed], outs[n:])
        return outs[:n]

    def dependent(self, given, params):
        return dependent(params["jaxpr"].jaxpr, given)

    def narrowed(self, eqn, used):
        closed = eqn.params["jaxpr"]
        jaxpr = prune(dce(closed.jaxpr, used))
        needed = reads(jaxpr)
        jaxpr = jaxpr.replace(invars=chosen(jaxpr.invars, needed))
        return eqn.replace(
            invars=chosen(eqn.invars, needed),
            outvars=chosen(eqn.outvars, used),
            params={**eqn.params, "jaxpr": ClosedJaxpr(jaxpr, closed.consts)},
        )

    def split_by_policy(self, eqn, part):
        return split_equation(eqn, part, lambda aval: aval)

    def weak_results(self, weak, count, params):
        return _weak_results(params["jaxpr"])

    def jvp(self, primals, tangents, *, jaxpr, **params):
        program, nonzero_out = jvp_jaxpr(jaxpr, [not is_zero(t) for t in tangents])
        given = [t for t in tangents if not is_zero(t)]
        outs = self.bind(*primals, *given, jaxpr=program, **params)
        n = len(jaxpr.out_avals)
        return outs[:n], tangents_out(nonzero_out, outs[:n], outs[n:])

    def linearize(self, primals, tangents, *, jaxpr, **params):
        split = linearize_jaxpr(jaxpr, [not is_zero(t) for t in tangents])
        outs = self.bind(*primals, jaxpr=split.primal, **params)
        n = len(jaxpr.out_avals)
        residuals = split.residuals(primals, outs[n:])
        given = [t for t in tangents if not is_zero(t)]
        out_tangents = []
        if any(split.nonzero_out):
            out_tangents = self.bind(*residuals, *given, jaxpr=split.tangent, **params)
        return outs[:n], tangents_out(split.nonzero_out, outs[:n], out_tangents)

    def transpose(self, cts, *operands, jaxpr, **params):
        linear = [is_linear(x) for x in operands]
        program, nonzero_out = transpose_jaxpr(jaxpr, linear, [not is_zero(ct) for ct in cts])
        known = [x for x in operands if not is_linear(x)]
        given = [ct for ct in cts if not is_zero(ct)]
        outs, nonzero = iter(self.bind(*known, *given, jaxpr=program, **params)), iter(nonzero_out)
        return [
            (next(outs) if next(nonzero) else Zero(x.aval.tangent())) if lin else None
            for x, lin in zip(operands, linear, strict=True)
        ]

    def batch(self, xs, dims, *, axis, jaxpr, **params):
        xs, batched = to_front(xs, dims)
        program, batched_out = batch_jaxpr(jaxpr, axis, batched)
        outs = self.bind(*xs, jaxpr=program, **params)
        return outs, [0 if b else None for b in batched_out]

    def native(self, emit, *operands, jaxpr, **params):
        return emit.inline(jaxpr, operands)

    def stablehlo(self, hlo, *operands, jaxpr, **params):
        return hlo.call(jaxpr, operands, jaxpr.jaxpr.name)


def split_equation(
    eqn: JaxprEqn,
    part: Callable[[Any], Any],
    type_outside: Callable[[ShapedArray], ShapedArray],
) -> tuple[JaxprEqn, JaxprEqn, list[Var]] | None:
    """Split an equation with a parameter `jaxpr`: the rule `Primitive.split_by_policy`.

    Args:
        eqn: the equation.
        part: maps a program to the variables that are saved, the program that computes them, and
          the program that takes them as inputs.
        type_outside: maps the type of a saved variable to the type of its value outside of the
          program, where a loop stacks it.
    """
    closed = eqn.params["jaxpr"]
    kept, forward, again = part(closed.jaxpr)
    if not kept:
        return None
    forward = forward.replace(outvars=[*forward.outvars, *kept])
    again = again.replace(invars=[*again.invars, *kept])
    saved = [Var(type_outside(v.aval)) for v in kept]
    return (
        eqn.replace(
            outvars=[*eqn.outvars, *saved],
            params={**eqn.params, "jaxpr": ClosedJaxpr(forward, closed.consts)},
        ),
        eqn.replace(
            invars=[*eqn.invars, *saved],
            params={**eqn.params, "jaxpr": ClosedJaxpr(again, closed.consts)},
        ),
        saved,
    )
