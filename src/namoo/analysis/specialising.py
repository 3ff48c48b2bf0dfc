"""Specialise programs with symbolic dimensions to the sizes of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from namoo._base.caches import per_program
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from namoo.dimensions.expression import DimExpr


def sized(value: Any, sizes: Mapping[str, Any]) -> Any:
    """Replace the dimension variables in a type or a parameter by sizes.

    Example:
        >>> from namoo.export import symbolic_shape
        >>> sized(symbolic_shape("a, 2*b"), {"a": 3, "b": 5})
        (3, 10)
    """
    if isinstance(value, DimExpr):
        return value.evaluate(sizes)
    if isinstance(value, ShapedArray):
        return value.update(shape=sized(value.shape, sizes))
    if isinstance(value, ClosedJaxpr):
        return specialised(value, tuple(sizes.items()))
    if isinstance(value, tuple):
        items = [sized(x, sizes) for x in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, list):
        return [sized(x, sizes) for x in value]
    return value


@per_program("specialised to sizes", keyed_by="the sizes of dimension variables")
def specialised(closed: ClosedJaxpr, sizes: tuple[tuple[str, Any], ...]) -> ClosedJaxpr:
    """Specialise a program to given sizes, which may be dimensions of another scope."""
    known = dict(sizes)
    jaxpr = closed.jaxpr
    atoms: dict[Any, Any] = {}

    def new(var: Var) -> Any:
        atoms[var] = type(var)(sized(var.aval, known))
        return atoms[var]

    def read(atom: Any) -> Any:
        return atom if type(atom) is Literal else atoms[atom]

    constvars, invars = [*map(new, jaxpr.constvars)], [*map(new, jaxpr.invars)]
    eqns = []
    for eqn in jaxpr.eqns:
        params = {name: sized(value, known) for name, value in eqn.params.items()}
        if eqn.primitive.name == "dim_as_value" and isinstance(params["dim"], int):
            (var,) = eqn.outvars
            atoms[var] = Literal(np.asarray(params["dim"], var.aval.dtype), var.aval)
            continue
        invars_ = [*map(read, eqn.invars)]
        eqns.append(JaxprEqn(invars_, [*map(new, eqn.outvars)], eqn.primitive, params, eqn.source))
    outvars = [*map(read, jaxpr.outvars)]
    return ClosedJaxpr(Jaxpr(constvars, invars, outvars, eqns, name=jaxpr.name), closed.consts)
