"""Why functions are traced again, and how a program learns of it."""

import logging

import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.api import retrace

pytest_plugins = ["pytester"]


def body(x, scale=1.0, shift=0.0):
    leaves = namoo.tree.leaves((x, scale, shift))
    return sum(jnp.sum(leaf) for leaf in leaves)


TREE = {"enc": [1.0], "dec": 2.0}

# Cause: the earlier call, the call, and the reasons for tracing again.
CAUSES = {
    "keyword": (
        lambda f: f(1.0, 2.0),
        lambda f: f(1.0, scale=2.0),
        ["different input pytree, at scale, now by keyword and before by position"],
    ),
    "position": (
        lambda f: f(1.0, scale=2.0),
        lambda f: f(1.0, 2.0),
        ["different input pytree, at scale, now by position and before by keyword"],
    ),
    "default": (
        lambda f: f(1.0, shift=2.0),
        lambda f: f(1.0),
        ["different input pytree, at shift, now left out and before by keyword"],
    ),
    "structure": (
        lambda f: f(1.0, TREE),
        lambda f: f(1.0, {"enc": [1.0, 2.0], "dec": 2.0}),
        [
            "different input pytree, at scale['enc']: expected a list of length 1, found a list of "
            "length 2"
        ],
    ),
    "structure of a keyword": (
        lambda f: f(1.0, shift=TREE),
        lambda f: f(1.0, shift={"enc": [1.0], "dec": {"w": 1.0}}),
        ["different input pytree, at shift['dec']: expected a leaf, found a dict with key 'w'"],
    ),
    "number and array": (
        lambda f: f(1.0),
        lambda f: f(jnp.float32(1.0)),
        [
            "different input types: at x, now f32[]{weak_type=False} and before "
            "f32[]{weak_type=True} (a Python number is weak, an array is not)"
        ],
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_cause_is_named_as_the_user_wrote_it(cause):
    earlier, call, reasons = CAUSES[cause]
    f = namoo.jit(body)
    f.clear_cache()
    earlier(f)
    call(f)
    assert list(f.explain()[-1].reasons) == reasons


def test_the_static_argument_that_changed_is_named():
    f = namoo.jit(lambda x, rows, columns: x * rows * columns, static_argnums=(1, 2))
    for columns in (2, 3):
        f(1.0, 5, columns)
    assert f.explain()[-1].reasons == (
        "different value of static args: at columns, now 3 and before 2",
    )


def power(n):
    return namoo.jit(lambda x: x**n)


def test_a_new_function_of_the_same_line_is_told_with_what_it_closes_over():
    namoo.clear_caches()
    for n in (2, 3):
        f = power(n)
        f(1.0)
    (record,) = f.explain()
    assert record.reasons == (
        "new function, number 2 of this definition: at the closed-over n, now 3 and before 2",
    )


def test_the_time_of_tracing_and_of_compiling_is_told():
    f = namoo.jit(lambda x: x - 17.25)
    f.lower(1.0)
    (record,) = f.explain()
    assert record.seconds > 0 and record.compiling == []
    f(1.0)
    assert len(record.compiling) == 1
    assert "ms, compiled in " in str(record)


def different_sizes(f):
    for n in range(2, 12):
        f(jnp.zeros(n))


def new_functions(f):
    for n in range(100, 110):
        power(n)(1.0)


@pytest.mark.parametrize(
    ("calls", "reason", "remedy"),
    [
        (different_sizes, "at x, now f32[7] and before f32[6]", "pad arrays"),
        (new_functions, "the closed-over n, now 105 and before 104", "define the function once"),
    ],
)
def test_a_line_that_traces_again_and_again_is_reported_once(calls, reason, remedy, caplog):
    namoo.clear_caches()
    with caplog.at_level(logging.WARNING):
        calls(namoo.jit(body))
    (message,) = [r.getMessage() for r in caplog.records]
    assert "was traced 6 times" in message and f"{__file__}:" in message
    assert reason in message and remedy in message


def unrolled(x):
    for _ in range(600):
        x = x * 2.0
    return x


LARGE = jnp.zeros((1024, 1024))


def capturing(x):
    return x + LARGE


@pytest.mark.parametrize(
    ("fun", "start", "line", "remedy"),
    [
        (unrolled, "600 of 600 operations come from ", 2, "lax.scan"),
        (capturing, "float32[1024,1024] of 4 MB is closed over at ", 1, "as an argument"),
    ],
)
def test_what_makes_a_program_large_is_named_by_line(fun, start, line, remedy):
    f = namoo.jit(fun)
    f.clear_cache()
    f.lower(1.0)
    (note,) = f.explain()[0].notes
    place = f"{__file__}:{fun.__code__.co_firstlineno + line}"
    assert note.startswith(start + place) and remedy in note


def test_programs_of_usual_size_have_no_notes():
    f = namoo.jit(lambda x: lax.fori_loop(0, 600, lambda i, v: v * 2.0, x))
    f.lower(1.0)
    assert f.explain()[0].notes == ()


def test_all_functions_are_explained_the_most_traced_first():
    namoo.clear_caches()
    f, g = namoo.jit(lambda x: x + 1), namoo.jit(lambda y: y - 1)
    for call in (lambda: f(1.0), lambda: g(1.0), lambda: g(jnp.zeros(2))):
        call()
    assert [len(e) for e in namoo.explain()] == [2, 1]
    assert "now f32[2] and before f32[]" in str(namoo.explain())


def test_more_traces_than_allowed_are_an_error_that_explains_them():
    f = namoo.jit(lambda x: x + 2)
    f(1.0)
    with namoo.max_traces(f, 0):
        f(2.0)
    with pytest.raises(AssertionError, match=r"(?s)allowed 1.*now f32\[3\] and before f32\[2\]"):
        with namoo.max_traces(f, 1):
            f(jnp.zeros(2))
            f(jnp.zeros(3))
    with pytest.raises(TypeError, match="under jit"):
        with namoo.max_traces(lambda x: x, 1):
            pass


def test_the_fixture_fails_a_test_that_traces_too_often(pytester):
    pytester.makeconftest('pytest_plugins = ["namoo.pytest_plugin"]')
    pytester.makepyfile(
        """
        import namoo, namoo.numpy as jnp

        step = namoo.jit(lambda x: x + 1)

        def test_once(max_traces):
            max_traces(step, 1)
            step(jnp.zeros(2)), step(jnp.zeros(2))

        def test_twice(max_traces):
            max_traces(step, 1)
            step(jnp.zeros(3)), step(jnp.zeros(4))
        """
    )
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*more traces than the allowed 1*"])


def test_notes_are_made_when_they_are_read_or_the_function_is_traced_again(monkeypatch):
    made, make = [], retrace._unrolled
    monkeypatch.setattr(retrace, "_unrolled", lambda sources: made.append(sources) or make(sources))
    f = namoo.jit(unrolled)
    f.clear_cache()
    f.lower(1.0)
    assert len(made) == 0
    f.lower(jnp.ones(3))
    assert len(made) == 1  # that of the first trace: at most one program's sources are kept
    assert [len(record.notes) for record in f.explain()] == [1, 1] and len(made) == 2
