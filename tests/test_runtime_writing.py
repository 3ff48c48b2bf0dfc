"""Equations that are written again in C++: they are those that Python writes."""

import gc
import sys

import pytest

import namoo
import namoo.numpy as jnp
from namoo._accelerator import native
from namoo.core.jaxpr import DropVar, JaxprEqn, Literal, Var
from namoo.errors import UnexpectedTracerError
from namoo.transforms import stage
from namoo.transforms.stage import StageTrace, StageTracer, stage_closed

pytestmark = pytest.mark.skipif(native is None, reason="the C++ part was not built")

AVAL = jnp.ones(4).aval


def two_halves(x, y):
    first, second = jnp.split(jnp.sort(x) * 2.0, 2)
    return [second + y[:2]]


PROGRAMS = {
    "one": lambda x, y: [x * y],
    "many": lambda x, y: [jnp.where(x > 0, jnp.exp(x), y - 1.0), x, jnp.sin(y) / 2.0],
    "of several results": two_halves,
    "inputs as they are": lambda x, y: [y, x, y],
    "numbers": lambda x, y: [jnp.float32(3), x * jnp.float32(2)],
    "constants": lambda x, y: [x + jnp.arange(4.0), y],
    "nothing": lambda x, y: [],
}


def told(write, closed, operands):
    """What a trace holds, and what is returned, after a program was written twice."""
    trace = StageTrace()
    own = [trace.new_input(AVAL), trace.new_input(AVAL)]
    values = [own[x] if isinstance(x, int) else x for x in operands]
    outs = []
    for source in (None, namoo.errors.user_source()):
        outs += write(trace, stage._form(closed.jaxpr), [*closed.consts, *values], source)
    inputs = [*trace.invars, *(v for _, v in trace.consts.values())]
    numbers = {id(v): i for i, v in enumerate(inputs)}

    def name(atom):
        if type(atom) is Literal:
            return "literal", float(atom.val), atom.aval, atom.aval.weak_type
        assert type(atom) is Var
        return numbers.setdefault(id(atom), len(numbers)), atom.aval, atom.aval.weak_type

    for eqn in trace.eqns:
        assert type(eqn) is JaxprEqn and type(eqn.invars) is type(eqn.outvars) is list
    lines = [
        (eqn.primitive, eqn.params, [*map(name, eqn.invars)], [*map(name, eqn.outvars)], eqn.source)
        for eqn in trace.eqns
    ]
    results = [
        (name(x._var), x.aval, x._trace is trace) if type(x) is StageTracer else (float(x), x.aval)
        for x in outs
    ]
    return lines, results


OPERANDS = {
    "own": (0, 1),
    "twice": (1, 1),
    "an array": (0, jnp.ones(4)),
    "NumPy's": (jnp.zeros(4)._value, 1),
}


@pytest.mark.parametrize("operands", OPERANDS.values(), ids=OPERANDS)
@pytest.mark.parametrize("fun", PROGRAMS.values(), ids=PROGRAMS)
def test_equations_are_those_of_python(fun, operands):
    closed = stage_closed(fun, [AVAL, AVAL])
    assert told(native.written, closed, operands) == told(stage._written, closed, operands)


def test_results_that_nothing_uses_are_variables_again():
    closed = stage_closed(two_halves, [AVAL, AVAL])
    assert any(type(v) is DropVar for eqn in closed.eqns for v in eqn.outvars)
    trace = StageTrace()
    xs = [trace.new_input(AVAL), trace.new_input(AVAL)]
    native.written(trace, stage._form(closed.jaxpr), xs, None)
    assert {type(v) for eqn in trace.eqns for v in eqn.outvars} == {Var}


def test_values_of_a_trace_that_is_over_are_refused():
    closed = stage_closed(PROGRAMS["one"], [AVAL, AVAL])
    over, trace = StageTrace(), StageTrace()
    x = over.new_input(AVAL)
    over.finish()
    with pytest.raises(UnexpectedTracerError):
        native.written(trace, stage._form(closed.jaxpr), [trace.new_input(AVAL), x], None)
    assert not trace.eqns


def test_nothing_is_lost_or_kept():
    closed = stage_closed(PROGRAMS["many"], [AVAL, AVAL])
    form, params = stage._form(closed.jaxpr), closed.eqns[0].params

    def counts():
        gc.collect()
        return [sys.getrefcount(x) for x in (AVAL, params, form, closed.eqns[0].primitive)]

    before = counts()
    for _ in range(100):
        trace = StageTrace()
        xs = [trace.new_input(AVAL), trace.new_input(AVAL)]
        native.written(trace, form, xs, None)
        gc.collect(0)
    del trace, xs
    assert counts() == before


@pytest.mark.parametrize(
    ("form", "error"),
    [
        (None, TypeError),
        ((), TypeError),
        (((0,), (), (), [0]), TypeError),
        (((0,), (), ((),), (0,)), TypeError),
        (((7,), (), (), (0,)), IndexError),
        (((0,), (), (), (1,)), IndexError),
        (((0,), (), (((3,), (), None, {}),), (0,)), IndexError),
        (((-1,), (), (), (0,)), OverflowError),
    ],
)
def test_other_forms_are_refused(form, error):
    trace = StageTrace()
    with pytest.raises(error):
        native.written(trace, form, [trace.new_input(AVAL)], None)
