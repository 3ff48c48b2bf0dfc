"""Why a value is not a number: its operands, and the gradient of `where`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.source_context import Source, at_user_line
from namoo.core.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var


def operands_text(bad: np.ndarray, operands: Sequence[Any]) -> str:
    """Describe the operands of the first bad element of a result, as the end of a sentence.

    Args:
        bad: which elements of the result are bad.
        operands: the operands of the operation.

    Example:
        >>> operands_text(np.array([False, True]), [np.array([1.0, 0.0]), np.array([2.0, 0.0])])
        ', first at [1], where its operands are 0.0 and 0.0'
    """
    place = np.unravel_index(int(np.argmax(bad)), bad.shape)
    first = f", first at [{', '.join(map(str, place))}]" if place else ""
    arrays = _arrays(operands)
    numbers = [x for x in arrays if dtypes.issubdtype(x.dtype, np.number)]
    if not numbers:
        return first
    for number, x in enumerate(arrays):
        if dtypes.issubdtype(x.dtype, np.inexact) and not np.isfinite(x).all():
            at = np.unravel_index(int(np.argmin(np.isfinite(x))), x.shape)
            where = f" at [{', '.join(map(str, at))}]" if at else ""
            return f"{first}; its operand {number} has {x[at]}{where} already"
    if all(x.shape in ((), bad.shape) for x in numbers):
        shown = [str(x[place] if x.shape else x[()]) for x in numbers]
        are = "operand is" if len(shown) == 1 else "operands are"
        return f"{first}, where its {are} {' and '.join(shown)}"
    return first


def _arrays(operands: Sequence[Any]) -> list[np.ndarray]:
    """The operands that are arrays of numbers, and not of keys."""
    keys = dtypes.ExtendedDType
    return [np.asarray(x) for x in operands if not isinstance(getattr(x, "dtype", None), keys)]


def has_zero(bad: np.ndarray, operands: Sequence[Any]) -> bool:
    """Whether an operand of the first bad element is 0, like a cotangent of an unselected value."""
    place = np.unravel_index(int(np.argmax(bad)), bad.shape)
    arrays = _arrays(operands)
    return any(x.shape == bad.shape and x[place] == 0 for x in arrays if x.dtype.kind in "fcV")


def explain_where(error: FloatingPointError, find: Callable[[], str]) -> None:
    """Add a note to the error of a NaN, if its value is one that a `where` did not select.

    Args:
        error: from `checks.check_value`.
        find: returns the note, or ''.
    """
    if getattr(error, "zero_cotangent", False) and not hasattr(error, "__notes__"):
        if note := find():
            error.add_note(note)


def trap_in_program(jaxpr: Jaxpr, eqn: JaxprEqn) -> str:
    """Explain a NaN of a backward pass by the `where` that its cotangent comes from, or ''.

    Args:
        jaxpr: a program with the backward pass.
        eqn: the equation whose result is NaN.
    """
    makers = {v: e for e in jaxpr.eqns for v in e.outvars}
    stack, seen = [eqn], set()
    while stack:
        found = stack.pop()
        for atom in found.invars:
            maker = makers.get(atom) if isinstance(atom, Var) else None
            if maker is None or id(maker) in seen or not _is_backward(maker):
                continue
            seen.add(id(maker))
            if maker.primitive.name == "select_n":
                zeros = [_is_zero(x, makers) for x in maker.invars[1:]]
                if sum(zeros) == 1:
                    return _trap(zeros.index(False), maker.source)
            stack.append(maker)
    return ""


def trap_of_linear(jaxpr: Jaxpr, eqn: JaxprEqn) -> str:
    """Explain a NaN by the `where` that a linear equation leads to, or ''.

    Args:
        jaxpr: a linear program.
        eqn: the equation whose transpose is NaN.
    """
    reached: set[Atom] = set(eqn.outvars)
    after = False
    for other in jaxpr.eqns:
        if after and not reached.isdisjoint(other.invars):
            if other.primitive.name == "select_n":
                branches = [i for i, x in enumerate(other.invars[1:]) if x in reached]
                if len(branches) == 1:
                    return _trap(branches[0], other.source)
            reached.update(other.outvars)
        after = after or other is eqn
    return ""


def _is_backward(eqn: JaxprEqn) -> bool:
    return eqn.source is not None and eqn.source.backward


def _is_zero(atom: Atom, makers: dict[Any, JaxprEqn]) -> bool:
    """Whether an atom is a literal zero, or a broadcast of one."""
    while type(atom) is not Literal:
        maker = makers.get(atom)
        if maker is None or maker.primitive.name != "broadcast_in_dim":
            return False
        atom = maker.invars[0]
    return bool(np.all(np.asarray(atom.val) == 0))


def _trap(branch: int, source: Source | None) -> str:
    where = at_user_line(source) if source is not None else ""
    chosen = ("false", "true")[branch] if branch < 2 else str(branch)
    return (
        f"It belongs to the branch of a `where` for elements whose condition is {chosen},{where}\n"
        "and the branch was not chosen for this element: its cotangent 0, times a derivative that "
        "is not\nfinite, is nan. Give the branch a safe operand, too, in a second `where`:\n"
        "    safe = jnp.where(condition, x, 1.0)\n"
        "    y = jnp.where(condition, f(safe), other)"
    )
