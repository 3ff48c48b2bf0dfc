"""Check operations that hold programs: do the programs match the operands and one another?

The rules of these operations trust their callers, but a file is not trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr

Avals = Sequence[ShapedArray]


def check_programs(name: str, avals: Avals, params: dict[str, Any]) -> None:
    """Check the operands of an operation that holds programs; accept all other operations.

    Raises:
        ValueError: a program does not match.
    """
    if name in _CHECKS:
        _CHECKS[name](avals, params)


def _same(found: Avals, wanted: Avals, what: str) -> None:
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in wanted]:
        raise ValueError(f"{what} {[*found]}, where {[*wanted]} are needed")


def _program(params: dict[str, Any], name: str) -> ClosedJaxpr:
    if type(params.get(name)) is not ClosedJaxpr:
        raise ValueError(f"the parameter {name} is not a program")
    return params[name]


def _count(params: dict[str, Any], name: str, most: int) -> int:
    value = params.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"the parameter {name} is {value!r:.40}, but at most {most} is possible")
    return value


def _check_call(avals: Avals, params: dict[str, Any]) -> None:
    _same(avals, _program(params, "jaxpr").in_avals, "the operands are")


def _check_forward(avals: Avals, params: dict[str, Any]) -> None:
    _check_call(avals, params)
    outs = params["jaxpr"].out_avals
    n = _count(params, "num_residuals", len(outs))
    if params.get("function") is not None:
        function = _program(params, "function")
        _same(avals, function.in_avals, "the operands are")
        _same(function.out_avals, outs[n:], "the results of the function are")


def _check_linear_call(avals: Avals, params: dict[str, Any]) -> None:
    callee, back = _program(params, "callee"), _program(params, "transpose_of")
    n = _count(params, "num_residuals", len(avals))
    _same(avals, callee.in_avals, "the operands are")
    _same([*avals[:n], *callee.out_avals], back.in_avals, "the cotangents are")
    _same(back.out_avals, avals[n:], "the results of the transpose are")


def _check_scan(avals: Avals, params: dict[str, Any]) -> None:
    jaxpr = _program(params, "jaxpr")
    fixed = _count(params, "num_consts", len(avals))
    carry = _count(params, "num_carry", len(avals) - fixed)
    length = params.get("length")
    first, xs = avals[: fixed + carry], avals[fixed + carry :]
    if any(x.shape[:1] != (length,) for x in xs):
        raise ValueError(f"the operands {[*xs]} do not all have the length {length!r:.40}")
    items = [x.update(shape=x.shape[1:]) for x in xs]
    _same([*first, *items], jaxpr.in_avals, "the operands of a step are")
    _same(jaxpr.out_avals[:carry], avals[fixed : fixed + carry], "the carried results are")


def _check_while(avals: Avals, params: dict[str, Any]) -> None:
    test, body = _program(params, "cond_jaxpr"), _program(params, "body_jaxpr")
    n = _count(params, "cond_nconsts", len(avals))
    m = _count(params, "body_nconsts", len(avals) - n)
    carry = avals[n + m :]
    _same([*avals[:n], *carry], test.in_avals, "the operands of the condition are")
    _same([*avals[n : n + m], *carry], body.in_avals, "the operands of the body are")
    _same(body.out_avals, carry, "the results of the body are")
    if len(test.out_avals) != 1 or test.out_avals[0].shape or test.out_avals[0].dtype != bool:
        raise ValueError(f"the condition returns {test.out_avals} instead of one boolean")


def _check_cond(avals: Avals, params: dict[str, Any]) -> None:
    branches = params.get("branches")
    if not isinstance(branches, tuple) or not branches:
        raise ValueError("there are no branches")
    if not avals or avals[0].shape or avals[0].dtype not in ("int32", "int64", "bool"):
        raise ValueError("the first operand is not the number of a branch")
    for branch in branches:
        if type(branch) is not ClosedJaxpr:
            raise ValueError("a branch is not a program")
        _same(avals[1:], branch.in_avals, "the operands are")
        _same(branch.out_avals, branches[0].out_avals, "the results of a branch are")


def _check_reduce(avals: Avals, params: dict[str, Any]) -> None:
    jaxpr = _program(params, "jaxpr")
    count = len(jaxpr.out_avals)
    fixed = len(jaxpr.in_avals) - 2 * count
    if fixed < 0 or len(avals) != fixed + 2 * count:
        raise ValueError(f"a program of {len(jaxpr.in_avals)} operands does not reduce {[*avals]}")
    inits = avals[fixed + count :]
    _same([*avals[:fixed], *inits, *inits], jaxpr.in_avals, "the operands of the program are")
    _same(jaxpr.out_avals, inits, "the results of the program are")


def _check_solve(avals: Avals, params: dict[str, Any]) -> None:
    lengths, programs = params["const_lengths"], params["jaxprs"]
    if len(lengths) != 4 or len(programs) != 4:
        raise ValueError("a linear solve must have four programs")
    groups, start = [], 0
    for n in lengths:
        count = n if type(n) is int and 0 <= n <= len(avals) - start else -1
        if count < 0:
            raise ValueError(f"the programs take {lengths!r:.80} of {len(avals)} operands")
        groups.append(avals[start : start + count])
        start += count
    b = avals[start:]
    for i, (program, consts) in enumerate(zip(programs, groups, strict=True)):
        if program is None and i:
            continue
        if type(program) is not ClosedJaxpr:
            raise ValueError("a parameter of a linear solve is not a program")
        _same([*consts, *b], program.in_avals, "the operands are")
        # A solver may return auxiliary results after the solution.
        _same(program.out_avals[: len(b)], b, "the results are")
    if programs[2] is None:
        raise ValueError("a linear solve must have a solution")


_CHECKS: dict[str, Callable[[Avals, dict[str, Any]], None]] = {
    **dict.fromkeys(("call", "checkpoint", "closed_call", "jit"), _check_call),
    **dict.fromkeys(("cond", "run_if"), _check_cond),
    "custom_linear_solve": _check_solve,
    "linear_call": _check_linear_call,
    "remat_opt": _check_forward,
    **dict.fromkeys(("reduce", "reduce_window"), _check_reduce),
    "scan": _check_scan,
    **dict.fromkeys(("bounded_while", "while"), _check_while),
}
