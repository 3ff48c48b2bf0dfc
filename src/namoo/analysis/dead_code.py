"""Which parts of a program its results need, and what they depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo._base.caches import per_program
from namoo._base.runtime import native
from namoo.core.jaxpr import Atom, Jaxpr, JaxprEqn, Var, subjaxprs


def has_io(jaxpr: Jaxpr) -> bool:
    """Whether a program has effects that must happen exactly as often as it says."""
    return jaxpr.effectful and any(
        eqn.primitive.exactly_once or any(map(has_io, subjaxprs(eqn.params))) for eqn in jaxpr.eqns
    )


def has_checks(jaxpr: Jaxpr) -> bool:
    """Whether a program has operations that raise for some operands."""
    return jaxpr.effectful and any(
        eqn.primitive.may_fail or any(map(has_checks, subjaxprs(eqn.params))) for eqn in jaxpr.eqns
    )


def dce(jaxpr: Jaxpr, keep: Sequence[bool]) -> Jaxpr:
    """The program that computes only the results in `keep`, without equations nothing needs."""
    outvars = [v for v, k in zip(jaxpr.outvars, keep, strict=True) if k]
    return jaxpr.replace(outvars=outvars, eqns=live(jaxpr.eqns, set(outvars)))


def prune(jaxpr: Jaxpr) -> Jaxpr:
    """The program without equations that its results do not need; and without the results of
    nested programs that nothing reads."""
    read, eqns = set(jaxpr.outvars), []
    for eqn in reversed(jaxpr.eqns):
        used = [v in read for v in eqn.outvars]
        if any(used) or eqn.effectful:
            eqns.append(eqn if all(used) else eqn.primitive.narrowed(eqn, used))
            read.update(eqns[-1].invars)
    return jaxpr.replace(eqns=eqns[::-1])


def reads(jaxpr: Jaxpr) -> list[bool]:
    """Which inputs a program reads, or returns."""
    read = {*jaxpr.outvars}.union(*(eqn.invars for eqn in jaxpr.eqns))
    return [v in read for v in jaxpr.invars]


def chosen(items: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The items whose flag is set."""
    return [x for x, flag in zip(items, flags, strict=True) if flag]


def dependent(jaxpr: Jaxpr, given: Sequence[bool]) -> list[bool]:
    """Which results of a program depend on the inputs in `given`."""
    found: set[Atom] = {v for v, g in zip(jaxpr.invars, given, strict=True) if g}
    for eqn in jaxpr.eqns:
        operands = [a in found for a in eqn.invars]
        if any(operands):
            results = eqn.primitive.dependent(operands, eqn.params)
            if results is None:
                found.update(eqn.outvars)
            else:
                found.update(v for v, r in zip(eqn.outvars, results, strict=True) if r)
    return [a in found for a in jaxpr.outvars]


@per_program("needed equations")
def needed(jaxpr: Jaxpr) -> tuple[list[JaxprEqn], set[Atom]]:
    """The equations that the results need, and everything that is read."""
    read = set(jaxpr.outvars)
    return live(jaxpr.eqns, read), read


def _live(eqns: list[JaxprEqn], read: set[Atom]) -> list[JaxprEqn]:
    """The equations that compute what is read, or have effects; adds to `read` what they read."""
    found = []
    for eqn in reversed(eqns):
        # `effectful` is slow to compute, so it is checked last.
        if not read.isdisjoint(eqn.outvars) or eqn.effectful:
            found.append(eqn)
            read.update(eqn.invars)
    return found[::-1]


def _unread(eqns: list[JaxprEqn], used: set[Atom]) -> list[int]:
    """The positions of equations with unused results; adds to `used` what equations read."""
    used.update(*[eqn.invars for eqn in eqns])
    return [i for i, eqn in enumerate(eqns) if not used.issuperset(eqn.outvars)]


live: Callable[[list[JaxprEqn], set[Atom]], list[JaxprEqn]] = _live
unread: Callable[[list[JaxprEqn], set[Atom]], list[int]] = _unread
if native is not None:
    native.bind_equations(Var, JaxprEqn)
    live, unread = native.live, native.unread
