"""Walks over equations in C++: they find, and write, what those in Python do."""

import gc
import sys

import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo._base.runtime import native
from namoo._base.source_context import user_source
from namoo.analysis import dead_code
from namoo.core.jaxpr import DropVar, JaxprEqn, Literal, Var
from namoo.engines.native.cache import fingerprint
from namoo.errors import UnexpectedTracerError
from namoo.memo import replay
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
    for source in (None, user_source()):
        outs += write(trace, replay.numbered_form(closed.jaxpr), [*closed.consts, *values], source)
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
    assert told(native.written, closed, operands) == told(
        replay._append_equations, closed, operands
    )


def test_results_that_nothing_uses_are_variables_again():
    closed = stage_closed(two_halves, [AVAL, AVAL])
    assert any(type(v) is DropVar for eqn in closed.eqns for v in eqn.outvars)
    trace = StageTrace()
    xs = [trace.new_input(AVAL), trace.new_input(AVAL)]
    native.written(trace, replay.numbered_form(closed.jaxpr), xs, None)
    assert {type(v) for eqn in trace.eqns for v in eqn.outvars} == {Var}


def test_values_of_a_trace_that_is_over_are_refused():
    closed = stage_closed(PROGRAMS["one"], [AVAL, AVAL])
    over, trace = StageTrace(), StageTrace()
    x = over.new_input(AVAL)
    over.finish()
    with pytest.raises(UnexpectedTracerError):
        native.written(trace, replay.numbered_form(closed.jaxpr), [trace.new_input(AVAL), x], None)
    assert not trace.eqns


def test_nothing_is_lost_or_kept():
    closed = stage_closed(PROGRAMS["many"], [AVAL, AVAL])
    form, params = replay.numbered_form(closed.jaxpr), closed.eqns[0].params

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


def with_effects(x, y):
    namoo.debug.print("{}", x + 1.0)
    return [jnp.sin(y)]


WALKED = {
    **PROGRAMS,
    "dead ends": lambda x, y: [x, jnp.exp(x) * jnp.cos(y), y][:1],
    "effects": with_effects,
    "programs within": lambda x, y: [lax.scan(lambda c, t: (c * t, c), 1.0, x)[0], jnp.sum(y)],
    "layers": lambda x, y: [lax.fori_loop(0, 3, lambda i, c: c * 2.0, x * 1.0 + x * 1.0)],
}


@pytest.mark.parametrize("fun", WALKED.values(), ids=WALKED)
def test_walks_find_what_python_finds(fun):
    jaxpr = stage_closed(fun, [AVAL, AVAL]).jaxpr
    for name in ("live", "unread"):
        for wanted in (set(), set(jaxpr.outvars), set(jaxpr.invars)):
            mine, other = set(wanted), set(wanted)
            found = getattr(native, name)(jaxpr.eqns, mine)
            assert found == getattr(dead_code, f"_{name}")(jaxpr.eqns, other)
            assert mine == other


@pytest.mark.parametrize("fun", WALKED.values(), ids=WALKED)
def test_fingerprints_are_those_of_python(monkeypatch, fun):
    closed = stage_closed(fun, [AVAL, AVAL])
    mine = fingerprint.Fingerprint(closed, {})
    monkeypatch.setattr(fingerprint, "numbered", fingerprint._numbered)
    other = fingerprint.Fingerprint(closed, {})
    assert (mine.digest, mine.equations) == (other.digest, other.equations)
    assert [*map(id, mine.arrays)] == [*map(id, other.arrays)]


READ = Var(AVAL)


def equation(**fields):
    eqn = JaxprEqn([], [], lax.sin_p, {})
    for name, value in fields.items():
        setattr(eqn, name, value)
    return eqn


def test_parts_that_were_not_filled_in_are_refused():
    ask = (lambda x: -1,) * 3
    for eqn in (JaxprEqn.__new__(JaxprEqn), equation(outvars=[Var.__new__(Var)])):
        with pytest.raises(TypeError):
            native.numbered([], [eqn], [], *ask)
    for name in ("primitive", "params"):
        eqn = equation()
        delattr(eqn, name)
        with pytest.raises(TypeError):
            native.numbered([], [eqn], [], *ask)
    trace = StageTrace()
    tracer = StageTracer.__new__(StageTracer)
    tracer._trace = trace
    with pytest.raises(TypeError):
        native.written(trace, ((0,), (), (), (0,)), [tracer], None)


@pytest.mark.parametrize(
    "eqns",
    [None, (), [None], [READ], [equation(invars=(), outvars=[READ])], [equation(outvars=None)]],
)
def test_what_are_no_equations_is_refused(eqns):
    with pytest.raises(TypeError):
        native.unread(eqns, set())
    with pytest.raises(TypeError):
        native.live(eqns, {READ})
    with pytest.raises(TypeError):
        native.numbered([], eqns, [], lambda x: -1, lambda x: -1, lambda x: -1)


@pytest.mark.parametrize(
    ("number", "error"), [("1", TypeError), (2**40, TypeError), (None, TypeError)]
)
def test_numbers_that_are_none_are_refused(number, error):
    with pytest.raises(error):
        native.numbered([Var(AVAL)], [], [], lambda x: -1, lambda x: number, lambda x: -1)
    with pytest.raises(error):
        native.numbered([AVAL], [], [], lambda x: -1, lambda x: -1, lambda x: -1)


def test_errors_of_functions_that_are_asked_are_raised():
    def unknown(x):
        raise fingerprint.Unknown("nothing")

    with pytest.raises(fingerprint.Unknown):
        native.numbered([Var(AVAL)], [], [], unknown, unknown, unknown)
