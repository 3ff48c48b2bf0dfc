"""`jit` as an operation: one equation that holds a whole program."""

from __future__ import annotations

from typing import Any

from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr
from namoo.transforms.program import Call
from namoo.transforms.stage import close, stage


class Jit(Call):
    """A call of a program that is compiled as one."""

    name = "jit"


jit_p = Jit()


class ClosedCall(Call):
    """A call of a program, under JAX's parameter name `call_jaxpr`."""

    name = "closed_call"

    def bind(self, *args: Any, call_jaxpr: ClosedJaxpr | None = None, **params: Any) -> Any:
        if call_jaxpr is not None:
            params["jaxpr"] = call_jaxpr
        return super().bind(*args, **params)


class CallPrimitive(Call):
    """A user-defined operation that calls a function: `bind(fun, *args)`.

    Args:
        name: what it is called in programs.

    `fun` is a `namoo.extend.linear_util.WrappedFun` of flat arguments that returns a list.
    """

    call_primitive = True

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        if "jaxpr" in params:  # a program that a transformation made
            return super().bind(*args, **params)
        fun, *operands = args
        jaxpr, consts = stage(fun.call_wrapped, [aval_of(x) for x in operands], self.name)
        closed, constants = close(jaxpr, consts)
        return super().bind(*constants, *operands, jaxpr=closed, **params)


closed_call_p = ClosedCall()
call_p = CallPrimitive("call")


def call_impl(fun: Any, *args: Any, **params: Any) -> Any:
    """Call a `WrappedFun` without staging it."""
    return fun.call_wrapped(*args, **params)
