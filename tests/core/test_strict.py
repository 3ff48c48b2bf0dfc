"""Settings that look at operands and values: in eager mode, in the interpreter, in native code."""

import os
import re
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo._base.source_context import user_source
from namoo.core.trace import context, eval_trace
from namoo.engines.native.engine import native

X = np.arange(5.0, dtype=np.float32)
GRID = np.arange(12.0, dtype=np.float32).reshape(3, 4)


def ints(*values, dtype: type = np.int32):
    return jnp.array(values, dtype) if len(values) != 1 else jnp.array(values[0], dtype)


def _interpreted(fun):
    def call(*args):
        before = namoo.config.engine
        namoo.config.update("engine", "interpreter")
        try:
            return namoo.jit(lambda *xs: fun(*xs))(*args)
        finally:
            namoo.config.update("engine", before)

    return call


WAYS = {"eager": lambda fun: fun, "interpreter": _interpreted, "native": namoo.jit}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture
def strict():
    with namoo.strict(True):
        yield


FULL = 2**31 - 1
# A function; arguments that are right; arguments that are wrong; what the error says.
OVERFLOWS = {
    "add": (jnp.add, (ints(FULL), ints(0)), (ints(FULL), ints(1)), r"\+ 1 = 2147483648"),
    "sub": (jnp.subtract, (ints(-2, 3), ints(1)), (ints(0, -FULL - 1), ints(1)), r"at \[1\]"),
    "mul": (jnp.multiply, (ints(2**15),) * 2, (ints(2**16),) * 2, "= 4294967296 does not fit"),
    "neg": (jnp.negative, (ints(FULL),), (ints(-FULL - 1),), "in neg"),
    "sum": (jnp.sum, (ints(FULL, -1),), (ints(FULL, 1),), "2147483648 does not fit int32"),
    "cumsum": (jnp.cumsum, (ints(FULL, -1),), (ints(1, FULL),), r"at \[1\]"),
    "prod": (jnp.prod, (ints(2**15, 2**15),), (ints(2**16, 2**16),), "in reduce_prod"),
    "power": (lambda x: x**12, (ints(5),), (ints(10),), "1000000000000 does not fit"),
    "uint8 up": (
        jnp.add, (ints(250, 1, dtype=np.uint8),) * 1 + (ints(5, 9, dtype=np.uint8),),
        (ints(250, 1, dtype=np.uint8), ints(6, 9, dtype=np.uint8)), "250 . 6 = 256 does not fit",
    ),
    "uint8 down": (
        jnp.subtract, (ints(3, dtype=np.uint8), ints(3, dtype=np.uint8)),
        (ints(3, dtype=np.uint8), ints(5, dtype=np.uint8)), "-2 does not fit uint8",
    ),
    "in a loop": (
        lambda x: lax.fori_loop(0, 9, lambda i, c: c * 10, x), (ints(2),), (ints(3),),
        "does not fit int32, in iteration 8 of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OVERFLOWS)
def test_integers_that_do_not_fit_are_errors(name, way, strict):
    fun, right, wrong, words = OVERFLOWS[name]
    expected = fun(*right)
    np.testing.assert_array_equal(way(fun)(*right), expected)
    with pytest.raises(OverflowError, match=words):
        way(fun)(*wrong)


@pytest.mark.parametrize("name", OVERFLOWS)
def test_integers_wrap_without_the_setting(name, way):
    fun, _, wrong, _ = OVERFLOWS[name]
    way(fun)(*wrong)


@pytest.mark.parametrize(
    "make",
    [
        jnp.asarray,
        jnp.array,
        namoo.device_put,
        namoo.jit(lambda x: x),
        lambda x: jnp.ones(1, jnp.int32) + x,
        lambda x: namoo.vmap(lambda v: -v)(x),
        lambda x: jnp.sum(x),
        lambda x: jnp.arange(x[0], x[0] + 2),
    ],
)
def test_numbers_of_numpy_that_do_not_fit_are_errors(make, strict):
    for value in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError, match=f"{value} .*does not fit int32"):
            make(np.array([value]))
    make(np.array([2**31 - 3]))


def test_what_is_made_to_wrap_may(way, strict):
    """Random numbers, hashes and bits."""
    key = namoo.random.key(0)
    way(lambda key: namoo.random.randint(key, (99,), -(2**31), 2**31 - 1))(key)
    way(lambda key: namoo.random.randint(key, (99,), -100, 100, jnp.int8))(key)
    way(lambda k: namoo.random.randint(k, (9,), jnp.array(-3), jnp.array(2**31 - 1)))(key)
    way(lambda key: namoo.random.permutation(namoo.random.fold_in(key, 7), 9))(key)
    way(lambda x: x * jnp.uint32(2654435761) + x)(jnp.arange(9, dtype=jnp.uint32))
    way(lambda x: x // 1)(ints(-FULL - 1, FULL))


# A function; arguments that are right; arguments that are wrong; what the error says.
OUTSIDE = {
    "x[i]": (lambda i: jnp.asarray(X)[i], ints(4), ints(5), "index 5 .*axis 0 with size 5"),
    "x[-i]": (lambda i: jnp.asarray(X)[i], ints(-5), ints(-6), "index -1 .*axis 0 with size 5"),
    "x[ids]": (
        lambda i: jnp.asarray(X)[i], ints(0, -5, 4), ints(0, 9, 5),
        r"index 9 .*axis 0 with size 5, encountered in gather at \[1\]",
    ),
    "x[i, j]": (
        lambda i: jnp.asarray(GRID)[i, i], ints(2, -1), ints(2, 3),
        r"index 3 .*axis 0 with size 3, encountered in gather at \[1\]",
    ),
    "x[:, j]": (
        lambda i: jnp.asarray(GRID)[:, i], ints(3, 3), ints(3, 4),
        r"index 4 .*axis 1 with size 4",
    ),
    "x[i] of unsigned": (
        lambda i: jnp.asarray(X)[i], ints(4, 4, dtype=np.uint8), ints(4, 200, dtype=np.uint8),
        "index 200 .*axis 0",
    ),
    "take": (lambda i: jnp.take(X, i), ints(1, -1), ints(1, 7), "index 7 .*axis 0"),
    "take_along_axis": (
        lambda i: jnp.take_along_axis(X, i, 0), ints(1, -1), ints(1, 7), "index 7 .*axis 0"
    ),
    "set": (
        lambda i: jnp.asarray(X).at[i].set(1.0), ints(1, -1), ints(1, 7),
        r"index 7 .*encountered in scatter at \[1\]",
    ),
    "add": (
        lambda i: jnp.asarray(GRID).at[i].add(1.0), ints(1, 1), ints(-4, 1),
        r"index -1 .*encountered in scatter-add at \[0\]",
    ),
    "put_along_axis": (
        lambda i: jnp.put_along_axis(jnp.asarray(X), i, 0.0, 0, inplace=False),
        ints(1, -1), ints(7, 1), "index 7 .*scatter",
    ),
    "dynamic_slice": (
        lambda i: lax.dynamic_slice(jnp.asarray(GRID), (0, i), (3, 2)), ints(2), ints(3),
        "a window of 2 elements at 3 .*axis 1 with size 4, encountered in dynamic_slice",
    ),
    "dynamic_update_slice": (
        lambda i: lax.dynamic_update_slice(jnp.asarray(X), jnp.ones(2), (i,)), ints(3), ints(4),
        "a window of 2 elements at 4 .*dynamic_update_slice",
    ),
    "lax.gather": (
        lambda i: lax.gather(
            jnp.asarray(X), i, lax.GatherDimensionNumbers((), (0,), (0,)), (1,)
        ),
        ints([[1], [4]]), ints([[1], [5]]), "index 5 ",
    ),
    "vmap of x[i]": (
        lambda i: namoo.vmap(lambda j: jnp.asarray(X)[j])(i), ints(1, 4), ints(1, 5),
        r"index 5 .*at \[1\]",
    ),
    "vmap of dynamic_slice": (
        lambda i: namoo.vmap(lambda j: lax.dynamic_slice(jnp.asarray(X), (j,), (2,)))(i),
        ints(0, 3), ints(0, 4), r"a window of 2 elements at 4 .*at \[1\]",
    ),
    "vmap of dynamic_update_slice": (
        lambda i: namoo.vmap(
            lambda j: lax.dynamic_update_slice(jnp.asarray(X), jnp.ones(2), (j,))
        )(i),
        ints(0, 3), ints(0, 4), r"a window of 2 elements at 4 .*at \[1\]",
    ),
    "grad": (
        lambda i: namoo.grad(lambda x: (x[i] ** 2).sum())(jnp.asarray(X)), ints(0, 3), ints(0, 5),
        r"index 5 .*at \[1\]",
    ),
}  # fmt: skip
BY_ZERO = {
    "//": lambda y: 7 // y,
    "%": lambda y: 7 % y,
    "fmod": lambda y: jnp.fmod(7, y),
    "divmod": lambda y: jnp.divmod(7, y)[1],
    "lax.div": lambda y: lax.div(jnp.full_like(y, 7), y),
    "lax.rem": lambda y: lax.rem(jnp.full_like(y, 7), y),
    "vmap": lambda y: namoo.vmap(lambda v: 7 // v)(y),
}
DIVISORS = ["int8", "int32", "uint16", "int4"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_places_outside_are_errors(name, way, strict):
    fun, right, wrong, message = OUTSIDE[name]
    with namoo.strict(False):
        wanted = fun(right)
    np.testing.assert_array_equal(way(fun)(right), wanted)
    with pytest.raises(IndexError, match=rf"{message}[^\n]*\n  at .*test_strict.py:\d+"):
        way(fun)(wrong)


@pytest.mark.parametrize("dtype", DIVISORS)
@pytest.mark.parametrize("name", BY_ZERO)
def test_integers_divided_by_zero_are_errors(name, dtype, way, strict):
    fun = BY_ZERO[name]
    right, wrong = (jnp.array(v, dtype) for v in ([3, 2], [3, 0]))
    with namoo.strict(False):
        wanted = fun(right)
    np.testing.assert_array_equal(way(fun)(right), wanted)
    with pytest.raises(ZeroDivisionError, match=r" at \[1\][^\n]*\n  at .*test_strict.py:\d+"):
        way(fun)(wrong)


MEANT = {
    "fill": lambda i: jnp.asarray(X).at[i].get(mode="fill", fill_value=-1),
    "clip": lambda i: jnp.asarray(X).at[i].get(mode="clip"),
    "clip of one": lambda i: jnp.asarray(X).at[i[1]].get(mode="clip"),
    "drop": lambda i: jnp.asarray(X).at[i].set(9.0, mode="drop"),
    "clipped set": lambda i: jnp.asarray(X).at[i].set(9.0, mode="clip"),
    "take fill": lambda i: jnp.take(X, i, mode="fill", fill_value=0),
    "take fill_value": lambda i: jnp.take(X, i, fill_value=0),
    "take wrap": lambda i: jnp.take(X, i, mode="wrap"),
    "along": lambda i: jnp.take_along_axis(X, i, 0, mode="fill", fill_value=0),
    "segments": lambda i: namoo.ops.segment_sum(jnp.ones(3), i, 4),
    "bincount": lambda i: jnp.bincount(i, length=4),
    "where": lambda i: jnp.where(i < 5, jnp.asarray(X).at[i].get(mode="clip"), 0),
    "division of floats": lambda i: 1.0 / jnp.zeros(3),
    "cond": lambda i: lax.cond(i[1] < 5, lambda: jnp.asarray(X)[i[1]], lambda: 0.0),
    "vmap of cond": lambda i: namoo.vmap(
        lambda j: lax.cond(j < 5, lambda: jnp.asarray(X)[j], lambda: 0.0)
    )(i),
    "vmap of switch": lambda i: namoo.vmap(
        lambda j: lax.switch(j, [lambda: 0.0, lambda: jnp.asarray(X)[j], lambda: 1.0])
    )(i),
    "vmap of while": lambda i: namoo.vmap(
        lambda j: lax.while_loop(lambda k: k < j, lambda k: k + 1 + 0 * (6 // (j - k)), 0)
    )(i),
    "grad of vmap of cond": lambda i: namoo.grad(
        lambda x: namoo.vmap(lambda j: lax.cond(j < 5, lambda: x[j] ** 2, lambda: 0.0))(i).sum()
    )(jnp.asarray(X)),
    "gcd": lambda i: jnp.gcd(i, jnp.array([0, 4, 0])),
    "lcm": lambda i: jnp.lcm(i, jnp.array([0, 4, 0])),
    "sort": lambda i: jnp.argsort(i),
    "searchsorted": lambda i: jnp.searchsorted(X, i.astype(np.float32)),
    "median": lambda i: jnp.median(i),
}


@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_no_error(name, way, strict):
    fun, i = MEANT[name], ints(1, 7, 0)
    with namoo.strict(False):
        wanted = fun(i)
    np.testing.assert_array_equal(way(fun)(i), wanted)


def test_starts_of_no_integer_type_are_refused_as_ever(strict):
    with pytest.raises(TypeError, match="integers of the same type"):
        lax.dynamic_slice(jnp.asarray(GRID), (0.0, 0), (1, 1))


def _scan(x, n):
    return lax.scan(lambda c, i: (c + x[i], c), 0.0, jnp.arange(n))[0]


def _reversed(x, n):
    return lax.scan(lambda c, i: (c + x[i], c), 0.0, jnp.arange(n), reverse=True)[0]


def _fori(x, n):
    return lax.fori_loop(2, n, lambda i, c: c + x[i], 0.0)


def _while(x, n):
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + x[s[0]]), (0, 0.0))[1]


def _condition(x, n):
    return lax.while_loop(lambda i: x[i] < n, lambda i: i + 1, 0)


def _nested(x, n):
    def outer(c, j):
        return c + lax.while_loop(lambda i: i < n, lambda i: i + 1 + 0 * (7 // (j - 2)), 0), None

    return lax.scan(outer, 0, jnp.arange(4))[0]


def _branch(x, n):
    def body(i, c):
        return lax.cond(i % 2 == 0, lambda: c + x[i], lambda: c)

    return lax.fori_loop(0, n, body, 0.0)


def _wide(x, n):
    # Too large for registers, with and without checks.
    rows = jnp.stack([x] * 100)
    return lax.scan(lambda c, i: (c + rows[:, i], None), jnp.zeros(100), jnp.arange(n))[0]


LOOPS = {
    _scan: ["iteration 5 of scan"],
    _reversed: ["iteration 6 of scan"],
    _fori: ["iteration 3 of (scan|while)"],
    _while: ["iteration 5 of while"],
    _condition: ["iteration 5 of while"],
    _nested: ["iteration 0 of while", "iteration 2 of scan"],
    _branch: ["iteration 6 of (scan|while)"],
    _wide: ["iteration 5 of scan"],
    namoo.grad(_scan): ["iteration 5 of scan"],
}


@pytest.mark.parametrize("fun", LOOPS, ids=lambda f: f.__name__)
def test_errors_name_the_iterations_of_loops(fun, way, strict):
    where = ", in ".join(LOOPS[fun])
    line = re.escape(f"{_scan.__code__.co_filename}:")
    with pytest.raises(
        (IndexError, ZeroDivisionError), match=rf", in {where}\.[^\n]*\n  at {line}\d+"
    ) as error:
        way(lambda x: fun(x, 7))(jnp.asarray(X))
    # The line of the body, and not that of the call.
    assert "way(" not in str(error.value)


def test_of_two_errors_the_first_is_told_whatever_the_threads(strict):
    big = np.zeros(1 << 20, np.int32)
    big[[70_000, 900_000]] = 99, 98
    fun, before = namoo.jit(lambda i: jnp.asarray(X)[i]), namoo.get_num_threads()
    try:
        for threads in (1, 4):
            namoo.set_num_threads(threads)
            with pytest.raises(IndexError, match=r"index 99 .*at \[70000\]"):
                fun(big)
    finally:
        namoo.set_num_threads(before)


def test_threads_that_fail_at_once_get_their_own_errors(strict):
    fun = namoo.jit(lambda i: jnp.asarray(X)[i])
    found = {}

    def call(i):
        with namoo.strict(True):
            for _ in range(50):
                try:
                    fun(ints(0, i))
                except IndexError as error:
                    found.setdefault(i, set()).add(str(error).split(" is ")[0])

    threads = [threading.Thread(target=call, args=(i,)) for i in range(10, 14)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {i: {f"index {i}"} for i in range(10, 14)}


@given(
    st.lists(st.integers(-7, 7), min_size=1, max_size=4),
    st.lists(st.integers(-7, 7), min_size=1, max_size=4),
)
def test_all_ways_agree_with_numpy(rows, columns):
    try:
        wanted = GRID[np.array(rows)[:, None], np.array(columns)]
    except IndexError:
        wanted = None
    for name, way in WAYS.items():
        fun = way(lambda i, j: jnp.asarray(GRID)[i[:, None], j])
        with namoo.strict(True):
            if wanted is None:
                with pytest.raises(IndexError):
                    fun(jnp.array(rows), jnp.array(columns))
            else:
                np.testing.assert_array_equal(
                    fun(jnp.array(rows), jnp.array(columns)), wanted, err_msg=name
                )


PROGRAMS = [
    lambda x: x[jnp.argsort(x)] // 3.0,
    lambda x: _while(x, 3),
    lambda x: _wide(x, 3),
    lambda x: jnp.arange(5).at[x.astype(int)].set(7 // (x.astype(int) + 9)),
]


@pytest.mark.parametrize("fun", PROGRAMS)
def test_off_costs_nothing(fun):
    program = namoo.make_jaxpr(fun)(jnp.asarray(X))
    plain = native.compile(program).as_text("llvm")
    assert native.compile(program, {"strict": False}).as_text("llvm") == plain
    assert "turns" not in plain and "call void %a2" not in plain
    with namoo.strict(True):
        program = namoo.make_jaxpr(fun)(jnp.asarray(X))
        checked = native.compile(program, {"strict": True}).as_text("llvm")
    assert len(checked) > len(plain) and "call void %a2" in checked


def test_a_divisor_that_is_known_is_not_looked_at(strict):
    def fun(x):
        return lax.bitwise_or(lax.div(x, jnp.full(5, 3)), lax.rem(x, jnp.full(5, 7)))

    program = namoo.make_jaxpr(fun)(jnp.arange(5))
    assert "call void %a2" not in native.compile(program, {"strict": True}).as_text("llvm")


def test_short_ways_come_back():
    assert context.trace is eval_trace
    fun = namoo.jit(lambda x: x + 1)
    for setting in (namoo.strict, namoo.debug_nans, namoo.debug_infs):
        with setting(True):
            assert context.trace is not eval_trace
            with setting(False):
                assert context.trace is eval_trace
            fun(X)
            assert context.trace is not eval_trace
        assert context.trace is eval_trace
        fun(X)
        assert context.trace is eval_trace


@pytest.mark.parametrize("name", ["strict", "debug_nans"])
def test_update_reaches_threads_that_run(name):
    go, done, found = threading.Semaphore(0), threading.Semaphore(0), []

    def run():
        for _ in range(3):
            go.acquire()
            namoo.grad(lambda x: (x * 2).sum())(jnp.asarray(X))
            found.append(context.trace is eval_trace)
            done.release()

    thread = threading.Thread(target=run)
    thread.start()
    for value in (False, True, False):
        namoo.config.update(name, value)
        go.release()
        done.acquire()
    thread.join()
    assert found == [True, False, True]


def test_settings_change_inside_a_transformation():
    def fun(x):
        y = jnp.log(x)
        with namoo.debug_nans(True), pytest.raises(FloatingPointError, match="in log"):
            jnp.log(x)
        return y + jnp.log(x)

    namoo.grad(fun)(-1.0)
    assert context.trace is eval_trace

    def switch(x):
        namoo.config.update("debug_nans", True)
        return x * 2.0

    try:
        namoo.grad(switch)(1.0)
        with pytest.raises(FloatingPointError):
            jnp.log(-1.0)
    finally:
        namoo.config.update("debug_nans", False)
    assert np.isnan(jnp.log(-1.0))


BAD = {
    "log": ("debug_nans", jnp.log, -1.0),
    "bfloat16": ("debug_nans", lambda x: jnp.sqrt(x.astype(jnp.bfloat16)), -1.0),
    "complex": ("debug_nans", lambda x: x.astype(complex) * complex(np.inf, 0), 1.0),
    "method": ("debug_nans", lambda x: (x - x) / (x - x), 1.0),
    "operator": ("debug_infs", lambda x: 1 / (x - x), 1.0),
    "float16": ("debug_infs", lambda x: x.astype(jnp.float16) * 1e4, 7e3),
    "grad": ("debug_nans", namoo.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)), 0.0),
    "vmap": ("debug_nans", lambda x: namoo.vmap(jnp.log)(x[None]), -1.0),
    "jvp": ("debug_infs", lambda x: namoo.jvp(jnp.sqrt, (x,), (x + 1,))[1], 0.0),
    "softmax": ("debug_nans", lambda x: namoo.nn.softmax(x[None]), np.inf),
    "sum": ("debug_nans", lambda x: jnp.sum(jnp.array([np.inf, -np.inf]) * x), 1.0),
    "constant of a branch": (
        "debug_nans",
        lambda x: lax.cond(x > 0, lambda: np.nan, lambda: 2.0),
        1.0,
    ),
    "constant": ("debug_nans", namoo.jit(lambda x: (x, jnp.nan)), 1.0),
    "linalg": ("debug_nans", lambda x: jnp.linalg.cholesky(x * jnp.eye(2)), -1.0),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values_are_found(name, way):
    setting, fun, value = BAD[name]
    x = jnp.float32(value)
    way(fun)(x)
    with getattr(namoo, setting)(True):
        with pytest.raises(FloatingPointError, match=r"\n  at .*test_strict.py:\d+"):
            way(lambda x: fun(x))(x)
        assert way(lambda x: x * 2.0)(jnp.float32(3.0)) == 6.0
    way(fun)(x)


@pytest.mark.parametrize("name", ["log", "bfloat16", "operator", "grad", "vmap", "float16"])
def test_bad_values_are_those_of_jax(name):
    setting, fun, value = BAD[name]
    theirs = {
        "log": jax.numpy.log,
        "bfloat16": lambda x: jax.numpy.sqrt(x.astype(jax.numpy.bfloat16)),
        "operator": lambda x: 1 / (x - x),
        "float16": lambda x: x.astype(jax.numpy.float16) * 1e4,
        "grad": jax.grad(lambda x: jax.numpy.where(x > 0, jax.numpy.sqrt(x), 0.0)),
        "vmap": lambda x: jax.vmap(jax.numpy.log)(x[None]),
    }[name]
    with getattr(jax, setting)(True), pytest.raises(FloatingPointError):
        theirs(jax.numpy.float32(value))
    with getattr(namoo, setting)(True), pytest.raises(FloatingPointError):
        fun(jnp.float32(value))


@pytest.mark.parametrize("fun", [jnp.median, jnp.nanmax, jnp.nanargmin, jnp.std, jnp.sinc])
def test_constants_that_are_not_chosen_are_not_bad(fun, way):
    with namoo.debug_nans(True), namoo.debug_infs(True):
        way(fun)(jnp.asarray(X))


def test_bad_values_name_the_iteration_of_the_loop(way):
    fun = way(lambda x: lax.fori_loop(0, 9, lambda i, c: jnp.sqrt(c - 1), x))
    with namoo.debug_nans(True), pytest.raises(FloatingPointError, match="in iteration 2 of scan"):
        fun(jnp.float32(4.0))


def test_keys_used_twice_are_found(way):
    def fun(key):
        return namoo.random.normal(key) + namoo.random.uniform(key)

    with namoo.debug_key_reuse(True), pytest.raises(namoo.errors.KeyReuseError):
        way(fun)(namoo.random.key(0))


def test_transformed_programs_keep_their_lines():
    def fun(x):
        y = jnp.sin(x)
        here.append(getattr(user_source(), "line", 0) - 1)
        return lax.fori_loop(0, 3, lambda i, c: jnp.tanh(c), y)

    here = []
    lines = {}

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            lines.setdefault(eqn.primitive.name, set()).add(eqn.source.line)
            for value in eqn.params.values():
                walk(value.jaxpr) if hasattr(value, "jaxpr") else None

    walk(namoo.make_jaxpr(namoo.grad(namoo.jit(fun)))(1.0).jaxpr)
    assert lines["cos"] == {here[0]} and lines["tanh"] == {here[0] + 2}
    # The backward pass, too, comes from what it goes back over.
    assert lines["mul"] <= {here[0], here[0] + 2}


def test_operations_of_the_host_are_told():
    def body(c, x):
        return c + namoo.pure_callback(np.cos, c, c), None

    def fun(a):
        values = namoo.scipy.special.expi(jnp.sin(a))
        return values + lax.scan(body, a[0, 0], a[0])[0]

    compiled = namoo.jit(fun).lower(jnp.eye(2)).compile()
    operations = {o.name: o for o in compiled.host_operations()}
    assert sorted(operations) == ["expi", "pure_callback"]
    assert operations["expi"].operands == ("f32[2,2]",)
    source = operations["expi"].source
    assert source is not None and source.line == fun.__code__.co_firstlineno + 1
    assert re.fullmatch(
        r"expi\(f32\[2,2\]\) -> f32\[2,2\]  at .*test_strict.py:\d+ \(.*fun\)",
        str(operations["expi"]),
    )
    assert repr(operations["expi"]) == str(operations["expi"])  # as a list shows it
    assert namoo.jit(jnp.sin).lower(X).compile().host_operations() == []


def test_checks_are_no_operations_of_the_host(strict):
    compiled = namoo.jit(lambda x, i: x[i]).lower(X, ints(1, 2)).compile()
    assert compiled.host_operations() == []
    with pytest.raises(IndexError):
        compiled(X, ints(1, 9))


@pytest.mark.parametrize("module", ["analysis.checks", "core.trace", "primitives.slicing", "numpy"])
def test_the_environment_switches_it_on_whatever_is_imported_first(module):
    code = f"import namoo.{module}, namoo.numpy as jnp; jnp.ones(3)[jnp.array(5)]"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NAMOO_STRICT": "1"},
        capture_output=True,
        text=True,
    )
    assert "IndexError: index 5 is out of bounds" in done.stderr
