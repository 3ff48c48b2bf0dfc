"""Transposition: run a linear program backward, from cotangents of results to those of inputs.

Reverse mode is linearisation (see `linear`) followed by transposition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo._base.caches import per_program
from namoo._base.lazy import later
from namoo._base.source_context import Source, replays_equations, source_context
from namoo.analysis.mesh_types import MeshArray
from namoo.analysis.sharding_rules import where_clear
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, literal_value
from namoo.core.primitive import Linear, Zero, is_zero
from namoo.core.trace import context
from namoo.primitives.families import add_any
from namoo.primitives.resharding import with_type
from namoo.transforms.stage import stage_closed

nans = later("namoo.analysis.nans")


def sum_over_replicated_axes(ct: Any, aval: ShapedArray) -> Any:
    """Sum a cotangent over the mesh axes along which it differs and its value does not."""
    extra = aval_of(ct).vma - aval.vma
    return sum_over(ct, tuple(sorted(extra, key=str))) if extra else ct


def _no_axes(x: Any, axes: tuple) -> Any:
    raise AssertionError(f"there are no collectives to add over {axes} with")


sum_over: Callable[[Any, tuple], Any] = _no_axes
"""Adds a value over mesh axes; `api.wiring` sets it."""


def backward_pass(
    jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any], cts: Sequence[Any]
) -> list[Any]:
    """Cotangents of the inputs that are `Linear`, given those of the results (may be `Zero`).

    Equations that do not depend on linear inputs are evaluated first, in order; the others are
    then transposed, last one first.
    """
    if any(type(v.aval) is MeshArray for v in (*jaxpr.constvars, *jaxpr.invars)):
        with where_clear():
            return transpose_equations(jaxpr, consts, inputs, cts)
    outs = context.trace.memory.backward(jaxpr, consts, inputs, cts)
    return transpose_equations(jaxpr, consts, inputs, cts) if outs is None else outs


class _Values(dict[Atom, Any]):
    """The values of variables, and of literals."""

    def __missing__(self, literal: Literal) -> Any:
        return literal_value(literal)


def transpose_equations(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    inputs: Sequence[Any],
    cts: Sequence[Any],
    before: Sequence[Any] = (),
    source: Source | None = None,
) -> list[Any]:
    """`backward_pass`, one equation after the other.

    Args:
        jaxpr, consts, inputs, cts: as for `backward_pass`.
        before: for each input, the cotangent so far, or None.
        source: the user's line for equations that have none.
    """
    location = source_context
    outer = location.eqn, location.operation, location.backward
    location.backward = True
    try:
        return _transpose_equations(jaxpr, consts, inputs, cts, before, source, location)
    except FloatingPointError as error:
        eqn = location.eqn
        nans.explain_where(error, lambda: nans.trap_of_linear(jaxpr, eqn))
        raise
    finally:
        location.eqn, location.operation, location.backward = outer


@replays_equations
def _transpose_equations(jaxpr, consts, inputs, cts, before, source, location):
    env = _Values(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, inputs, strict=True))
    read = env.__getitem__
    linear: set[Atom] = {v for v, x in zip(jaxpr.invars, inputs, strict=True) if type(x) is Linear}
    linear_eqns: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if not linear.isdisjoint(eqn.invars):
            for v in eqn.outvars:
                linear.add(v)
                env[v] = Linear(v.aval)
            linear_eqns.append(eqn)
        else:
            if source is None:
                location.eqn, location.operation = eqn, eqn.known_source()
            out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            env.update(
                zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True)
            )

    ct_env = {v: ct for v, ct in zip(jaxpr.invars, before, strict=False) if ct is not None}
    checked = context.checked

    def accumulate(atoms, cts):
        for atom, ct in zip(atoms, cts, strict=True):
            if ct is not None and type(ct) is not Zero and atom in linear:
                if checked:
                    ct = sum_over_replicated_axes(ct, atom.aval)
                if type(atom.aval) is MeshArray:
                    ct = with_type(ct, atom.aval.to_ct_aval())
                ct_env[atom] = add_any(ct_env[atom], ct) if atom in ct_env else ct

    accumulate(jaxpr.outvars, cts)
    for eqn in reversed(linear_eqns):
        prim = eqn.primitive
        out_cts = [ct_env.pop(v, None) for v in eqn.outvars]
        count = len([ct for ct in out_cts if ct is not None])
        if not count:
            continue
        if count < len(out_cts):
            out_cts = [
                Zero(v.aval.tangent()) if ct is None else ct
                for v, ct in zip(eqn.outvars, out_cts, strict=True)
            ]
        if source is None:
            location.eqn, location.operation = eqn, eqn.known_source()
        operands = list(map(read, eqn.invars))
        if prim.add_cotangents is not None:
            ct_env.update(
                prim.add_cotangents(eqn, operands, out_cts, [*map(ct_env.get, eqn.invars)])
            )
            continue
        try:
            ct = out_cts if prim.multiple_results else out_cts[0]
            in_cts = prim.transpose(ct, *operands, **eqn.params)
        except NotImplementedError as error:
            if source or eqn.source:
                error.add_note(f"The operation was asked for at {source or eqn.source}.")
            raise
        accumulate(eqn.invars, in_cts)
    return [
        ct_env.get(var, Zero(var.aval.tangent()))
        for var, x in zip(jaxpr.invars, inputs, strict=True)
        if type(x) is Linear
    ]


def transpose_jaxpr(
    closed: ClosedJaxpr, is_linear: Sequence[bool], nonzero_cts: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """Transpose a program in its linear inputs.

    Args:
        closed: the program.
        is_linear: which inputs are linear.
        nonzero_cts: which results have a cotangent that is not zero.

    Returns:
        The program, and which linear inputs have a nonzero cotangent.  The inputs of the program
        are those that are not linear and then the nonzero cotangents of results; its outputs are
        the nonzero cotangents of the linear inputs.
    """
    return _transpose_jaxpr(closed, tuple(is_linear), tuple(nonzero_cts))


@per_program("transpose", keyed_by="linear inputs, results with cotangents")
def _transpose_jaxpr(closed, is_linear, nonzero_cts):
    nonzero_out: list[bool] = []

    def fun(*args):
        rest = iter(args)
        inputs = [
            Linear(a) if lin else next(rest)
            for a, lin in zip(closed.in_avals, is_linear, strict=True)
        ]
        cts = [
            next(rest) if nz else Zero(a.tangent())
            for a, nz in zip(closed.out_avals, nonzero_cts, strict=True)
        ]
        outs = backward_pass(closed.jaxpr, closed.consts, inputs, cts)
        nonzero_out[:] = [not is_zero(ct) for ct in outs]
        return [ct for ct in outs if not is_zero(ct)]

    known = [a for a, lin in zip(closed.in_avals, is_linear, strict=True) if not lin]
    ct_avals = [a.tangent() for a, nz in zip(closed.out_avals, nonzero_cts, strict=True) if nz]
    return stage_closed(fun, [*known, *ct_avals], closed.jaxpr.name), nonzero_out
