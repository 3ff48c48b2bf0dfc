"""Random programs with control flow nested three deep: eager, native, XLA and JAX agree."""

from __future__ import annotations

import pytest

import compare_control_programs
import namoo
from compare_control_programs import differences, run, shrink, statements_of
from random_control_programs import Function, Program, Statement, write

# Each program is compiled by JAX up to three times: as many as fit in some seconds.
WITH_JAX, WITHOUT = range(0, 16), range(1000, 1050)


@pytest.fixture(autouse=True, scope="module")
def _not_on_disk():
    namoo.config.update("enable_compilation_cache", False)
    yield
    namoo.config.update("enable_compilation_cache", True)


def check(program: Program, ways: list[str]) -> None:
    found, _ = differences(program, ways)
    if found:
        check, *difference = found[0]
        small = shrink(program, found[0])
        pytest.fail(f"{difference}\n{small.script(check)}", pytrace=False)


@pytest.mark.parametrize("seed", WITH_JAX)
def test_jax_computes_the_same(seed):
    check(write(seed), ["native", "xla", "jax"])


def test_native_programs_compute_what_eager_ones_do():
    for seed in WITHOUT:
        check(write(seed), ["native"])


# What programs were reduced to that once differed: whether 64-bit types are enabled, a function,
# and its argument.
FOUND = [
    # Results of eager reductions of 32-bit integers have 64 bits where those are enabled.
    (True, "jnp.sum", "jnp.array([2**31 - 2, 5], 'int32')"),
    (True, "lambda x: jnp.sum(x, axis=0)", "jnp.array([2**32 - 2, 5], 'uint32')"),
    (False, "jnp.sum", "jnp.array([2**31 - 2, 5], 'int32')"),
    # A Python number beside a traced bound counts in the type of what it meets.
    (False, "lambda n: lax.fori_loop(0, n, lambda i, c: c + i, jnp.int8(1))", "jnp.array(3)"),
    # Indices wrap around in their own type, and at once.
    (True, "lambda i: jnp.take(jnp.arange(3), i, mode='wrap')", "jnp.array([2**63 + 1], 'uint64')"),
    # What has no elements is not read, wherever its index would be.
    (False, "lambda x: x[jnp.argmax(jnp.ones((2, 2)), axis=0)[0]]", "jnp.zeros((2, 0, 2))"),
    # A choice between weakly typed booleans is strongly typed.
    (
        False,
        "lambda x: jnp.where(x, jnp.logical_and(x, 1), jnp.logical_or(x, 1))",
        "jnp.array(True)",
    ),
    # A place found along the rows of a square is added along its columns.
    (False, "lambda x: x + jnp.argmax(x, 1)", "jnp.array([[1, 2], [2, 1]])"),
    # What two weakly typed booleans make is strongly typed.
    (False, "lambda x: jnp.logical_or(x < 1, x < 1)", "jnp.broadcast_to(0.5, (2,))"),
    (False, "lambda x: (x < 1) | (x < 1)", "jnp.broadcast_to(0.5, (2,))"),
    # An update elsewhere leaves the tangent of a NaN as it is.
    (
        False,
        "lambda x: jax.jvp(lambda y: y.at[1].min(0.5), (x,), (jnp.ones(3),))",
        "jnp.array([1.0, 2.0, jnp.nan])",
    ),
    (
        False,
        "lambda x: jax.jvp(lambda y: y.at[1].max(jnp.nan), (x,), (jnp.ones(3),))",
        "jnp.array([1.0, 2.0, jnp.nan])",
    ),
    # What a scan reads keeps its weak type.
    (True, "lambda x: lax.scan(lambda c, a: (a, a), x[0], x)", "jnp.broadcast_to(0.5, (2, 2))"),
]


@pytest.mark.parametrize("x64, function, argument", FOUND)
def test_what_once_differed(x64, function, argument):
    main = Function("program", ["*args"], [Statement(["v0"], f"({function})(*args)")], "(v0,)")
    program = Program(1, x64, False, [argument], [argument], main, [])
    check(program, ["native", "xla", "jax"])


def test_a_seed_is_a_program():
    assert write(7).script() == write(7).script() != write(8).script()


def test_programs_shrink_to_what_differs(monkeypatch):
    """A difference that one operation makes, somewhere inside, leaves that operation alone."""
    program = next(p for p in map(write, range(100)) if "jnp.tanh" in p.source())

    def broken(program, check, way):
        outcome = run(program, check, way)
        if way == "native" and "jnp.tanh" in program.source():
            outcome.error = "planted"
        return outcome

    monkeypatch.setattr(compare_control_programs, "run", broken)
    found, _ = differences(program, ["native"], ["value"])
    small = shrink(program, found[0])
    assert "jnp.tanh" in small.source() and small.source().count("jnp.tanh") == 1
    assert len(list(statements_of(small.main))) < len(list(statements_of(program.main)))
