"""Whether a program has effects: from its operations, and from the programs that they hold."""

import sys

import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.extend.core import Primitive, jaxpr_as_fun


def printing(x):
    namoo.debug.print("{}", x)
    return x


def quiet(x):
    return jnp.sin(x)


holder_p = Primitive("holds_a_program")
holder_p.def_impl(lambda x, *, program: jaxpr_as_fun(program)(x)[0])
holder_p.def_abstract_eval(lambda x, *, program: program.out_avals[0])


def held(fun):
    """A user's operation, one of whose parameters is a program."""
    return lambda x: holder_p.bind(x, program=namoo.make_jaxpr(fun)(x))


HOLDERS = {
    "itself": lambda fun: fun,
    "jit": namoo.jit,
    "cond": lambda fun: lambda x: lax.cond(x > 0, fun, quiet, x),
    "scan": lambda fun: lambda x: lax.scan(lambda c, _: (fun(c), None), x, length=2)[0],
    "while": lambda fun: lambda x: lax.while_loop(lambda c: c > 2, fun, x),
    "a user's primitive": held,
    "scan in jit": lambda fun: namoo.jit(HOLDERS["scan"](fun)),
}


@pytest.mark.parametrize("fun", [printing, quiet])
@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_a_program_has_the_effects_of_the_programs_that_it_holds(holder, fun):
    jaxpr = namoo.make_jaxpr(holder(fun))(1.0).jaxpr
    assert jaxpr.effectful is (fun is printing)
    assert any(eqn.effectful for eqn in jaxpr.eqns) is (fun is printing)
    assert bool(jaxpr.effects) is (fun is printing)


def test_asking_for_effects_calls_no_function_for_each_operation():
    def calls(length):
        jaxpr = namoo.make_jaxpr(lambda x: sum([jnp.sin(x)] * length))(1.0).jaxpr
        events = []
        sys.setprofile(lambda frame, event, arg: events.append(event))
        try:
            jaxpr.effectful  # noqa: B018
        finally:
            sys.setprofile(None)
        return events.count("call")

    assert calls(10) == calls(100)
