"""Calls back into Python: values, effects, and how they go through the transformations."""

from __future__ import annotations

import io
import logging

import jax
import numpy as np
import pytest

import namoo
import namoo.debug
import namoo.numpy as jnp
from jax_oracle import OURS, THEIRS, assert_same
from namoo import lax
from namoo.control.callback import io_callback, pure_callback
from namoo.core.trace import Tracer
from namoo.custom_batching import custom_vmap, sequential_vmap
from namoo.errors import JaxRuntimeError

X = np.arange(3, dtype=np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
SCALAR = namoo.ShapeDtypeStruct((), np.float32)
PAIR = namoo.ShapeDtypeStruct((2,), np.float32)


# pure_callback


def host_sin(x):
    """sin by NumPy, for arrays of any shape."""
    out = namoo.eval_shape(jnp.sin, x)
    return pure_callback(lambda v: np.sin(np.asarray(v)), out, x, vmap_method="expand_dims")


def test_pure_callback_computes_under_every_transformation_but_derivatives():
    wanted = np.sin(ROWS)
    batched = namoo.vmap(host_sin)
    for f in (host_sin, namoo.jit(host_sin), batched, namoo.jit(batched), namoo.vmap(batched)):
        np.testing.assert_allclose(np.asarray(f(jnp.asarray(ROWS))), wanted, rtol=1e-6)
    _, ys = lax.scan(lambda c, x: (c, host_sin(x)), 0, ROWS)
    np.testing.assert_allclose(np.asarray(ys), wanted, rtol=1e-6)


def test_pure_callback_takes_trees_and_keywords():
    def host(pair, *, scale):
        assert isinstance(pair["a"], namoo.Array)
        assert not isinstance(pair["a"], Tracer)
        return {"sum": np.asarray(pair["a"]) + np.asarray(pair["b"]) * int(scale)}, ()

    def f(x):
        return pure_callback(host, ({"sum": PAIR}, ()), {"a": x, "b": 2.0 * x}, scale=3)

    for run in (f, namoo.jit(f)):
        out, rest = run(jnp.asarray(ROWS[1]))
        np.testing.assert_array_equal(np.asarray(out["sum"]), ROWS[1] * 7)
        assert rest == () and not out["sum"].weak_type


def test_pure_callback_is_left_out_where_nothing_needs_it():
    calls = []

    def f(x):
        pure_callback(lambda v: calls.append(1) or v, SCALAR, x)
        return x + 1

    namoo.jit(f)(1.0)
    assert calls == []


def test_results_of_callbacks_are_copies():
    buffer = np.zeros(2, np.float32)
    out = pure_callback(lambda: buffer, PAIR)
    buffer += 1
    np.testing.assert_array_equal(np.asarray(out), [0, 0])


def test_random_keys_arrive_as_their_words():
    seen = []
    key = namoo.random.key(7)
    pure_callback(lambda k: seen.append(np.asarray(k)) or np.float32(0), SCALAR, key)
    np.testing.assert_array_equal(seen[0], np.asarray(namoo.random.key_data(key)))


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((2,), (2,))] * 3),
        ("sequential_unrolled", [((2,), (2,))] * 3),
        ("expand_dims", [((3, 2), (1, 2))]),
        ("broadcast_all", [((3, 2), (3, 2))]),
        ("legacy_vectorized", [((3, 2), (2,))]),
    ],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_vmap_methods(method, shapes, axis):
    def program(lib, seen):
        def host(a, b):
            seen.append((a.shape, b.shape))
            return np.asarray(a) * 10 + np.asarray(b)

        def f(x, y):
            out = jax.ShapeDtypeStruct((2,), np.float32)
            return lib.pure_callback(host, out, x, y, vmap_method=method)

        x = ROWS if axis == 0 else ROWS.T
        return lib.vmap(f, in_axes=(axis, None))(x, np.ones(2, np.float32))

    ours, theirs = [], []
    assert_same(program(OURS, ours), program(THEIRS, theirs))
    assert ours == theirs == shapes


@pytest.mark.parametrize(
    ("host", "message"),
    [
        (lambda x: np.zeros(3, np.float32), r"f32\[3\].*specifies f32\[2\]"),
        (lambda x: np.zeros(2, np.int32), r"i32\[2\].*specifies f32\[2\]"),
        (lambda x: 1.0, r"f32\[\].*specifies f32\[2\]"),
        (lambda x: (x, x), "returned 2 arrays.*specifies 1"),
        (lambda x: None, "returned 0 arrays"),
        (lambda x: {}["missing"], "raised KeyError: 'missing'"),
    ],
)
@pytest.mark.parametrize("call", [pure_callback, io_callback])
def test_wrong_results_and_errors_are_told(call, host, message):
    for wrap in (lambda f: f, namoo.jit):
        with pytest.raises(JaxRuntimeError, match=message):
            wrap(lambda x: call(host, PAIR, x))(X[:2])


def test_the_cause_of_an_error_is_kept():
    with pytest.raises(JaxRuntimeError) as info:
        namoo.jit(lambda x: pure_callback(lambda v: 1 / 0, SCALAR, x))(1.0)
    assert isinstance(info.value.__cause__, ZeroDivisionError)


def test_wide_results_become_narrow_as_everywhere():
    out = pure_callback(lambda: np.zeros(2, np.float64), PAIR)
    assert out.dtype == np.float32
    with namoo.enable_x64(True), pytest.raises(JaxRuntimeError, match="f64"):
        pure_callback(lambda: np.zeros(2, np.float64), PAIR)


WIDE = jax.ShapeDtypeStruct((), np.float64)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            lambda lib: lib.grad(lambda x: lib.pure_callback(np.sin, SCALAR, x))(1.0),
            "custom_jvp",
        ),
        (
            lambda lib: lib.jvp(lambda x: lib.io_callback(np.sin, SCALAR, x), (1.0,), (1.0,)),
            "do not support JVP",
        ),
        (
            lambda lib: lib.linear_transpose(lambda x: lib.io_callback(np.sin, SCALAR, x), 1.0)(
                1.0
            ),
            "do not support transpose",
        ),
        (lambda lib: lib.pure_callback(np.sin, WIDE, 1.0), "64-bit"),
        (lambda lib: lib.pure_callback(np.sin, SCALAR, 1.0, vmap_method="all"), "'all'"),
        (lambda lib: lib.pure_callback(np.sin, SCALAR, "one"), r"\[0\].*'one'"),
        (lambda lib: lib.vmap(lambda x: lib.pure_callback(np.sin, SCALAR, x))(X), "sequential"),
        (
            lambda lib: lib.vmap(lambda x: lib.io_callback(np.sin, SCALAR, x, ordered=True))(X),
            "ordered",
        ),
        (lambda lib: lib.debug.callback("print", 1.0), "callable"),
        (lambda lib: lib.debug.print("{} {}", 1.0), "index"),
        (lambda lib: lib.debug.print("{z}", y=1.0), "z"),
        (lambda lib: lib.debug.print("{}", 1.0, 2.0), "Unused positional"),
        (lambda lib: lib.debug.print("{}", 1.0, y=2.0), "f-string"),
        (lambda lib: lib.debug.print(ordered=True, a=42), "in the two-call form"),
        (lambda lib: lib.debug.print(None, 42, ordered=True), "in the two-call form"),
        (lambda lib: lib.debug.print(ordered=True)("{}", 1, ordered=True), r"\['ordered'\]"),
        (lambda lib: lib.debug.callback(ordered=True, a=42), "in the two-call form"),
        (lambda lib: lib.debug.print("{ y"), "'}'"),
        (lambda lib: lib.debug.print(3.0), "str"),
        (lambda lib: lib.jit(lambda x: lib.debug.print("{} {}", x))(1.0), "index"),
        (
            lambda lib: lib.vmap(
                lambda p: lib.lax.cond(
                    p > 0, lambda: lib.io_callback(lambda: None, None), lambda: None
                )
            )(X),
            "IO effect",
        ),
        (
            lambda lib: lib.grad(
                lib.checkpoint(lambda x: lib.io_callback(lambda: x, SCALAR) + x * x)
            )(1.0),
            "(?i)effect",
        ),
        (lambda lib: lib.custom_batching.custom_vmap(lambda x: x)(1.0), "def_vmap"),
    ],
)
def test_what_is_refused(program, message):
    with pytest.raises(Exception) as theirs:
        program(THEIRS)
    with pytest.raises(type(theirs.value), match=message):
        program(OURS)


def test_a_derivative_can_be_given():
    @namoo.custom_jvp
    def sin(x):
        return host_sin(x)

    sin.defjvps(lambda t, y, x: t * jnp.cos(x))
    np.testing.assert_allclose(float(namoo.grad(sin)(1.0)), np.cos(1.0), rtol=1e-6)
    found = namoo.vmap(namoo.grad(lambda x: sin(x) * x))(jnp.asarray(X))
    np.testing.assert_allclose(np.asarray(found), np.cos(X) * X + np.sin(X), rtol=1e-5)


# Effects


def effects(program, lib, *args):
    """What a program noted, in order."""
    seen = []
    program(lib, lambda *values: seen.append([np.asarray(v).tolist() for v in values]), *args)
    THEIRS.effects_barrier()
    return seen


def noted(lib, note, value):
    lib.debug.callback(note, value)
    return value


def grad_of(lib, note):
    lib.grad(lambda a: noted(lib, note, a) ** 2)(2.0)


def grad_of_jit(lib, note):
    lib.grad(lib.jit(lambda a: noted(lib, note, a) ** 2))(2.0)


def jit_of_grad_twice(lib, note):
    lib.jit(lib.grad(lib.grad(lambda a: noted(lib, note, a) ** 3)))(2.0)


def hessian(lib, note):
    lib.hessian(lambda a: noted(lib, note, a) ** 3)(2.0)


def vmap_of(lib, note):
    lib.vmap(lambda a: noted(lib, note, a))(X)


def vmap_of_vmap(lib, note):
    lib.vmap(lib.vmap(lambda a: noted(lib, note, a)))(ROWS)


def vmap_of_grad(lib, note):
    lib.vmap(lib.grad(lambda a: noted(lib, note, a) ** 2))(X)


def vmap_of_something_else(lib, note):
    lib.vmap(lambda a: (noted(lib, note, 7.0), a)[1])(X)


def vmap_of_both(lib, note):
    lib.vmap(lambda a, b: lib.debug.callback(note, a, b), in_axes=(0, None))(X, 7.0)


def linearized(lib, note):
    _, f = lib.linearize(lambda a: noted(lib, note, a) ** 2, 2.0)
    f(1.0)
    f(2.0)


def checkpointed(lib, note):
    lib.grad(lib.checkpoint(lambda a: noted(lib, note, lib.jnp.sin(a)) * a))(2.0)


def scanned(lib, note):
    lib.lax.scan(lambda c, a: (noted(lib, note, c + a), None), 0.0, X)


def grad_of_scan(lib, note):
    lib.grad(lambda w: lib.lax.scan(lambda c, a: (noted(lib, note, c * a + w), None), w, X)[0])(1.0)


def vmap_of_scan(lib, note):
    lib.vmap(lambda w: lib.lax.scan(lambda c, a: (noted(lib, note, c * a + w), None), w, X))(X)


def while_body(lib, note):
    lib.lax.while_loop(lambda c: c < 3, lambda c: noted(lib, note, c) + 1, 0)


def while_condition(lib, note):
    lib.lax.while_loop(lambda c: noted(lib, note, c) < 3, lambda c: c + 1, 0)


def vmap_of_while(lib, note):
    lib.vmap(lambda n: lib.lax.while_loop(lambda c: c < 3, lambda c: noted(lib, note, c) + 1, n))(
        np.arange(3)
    )


def one_branch(lib, note):
    lib.lax.cond(True, lambda: noted(lib, note, 1.0), lambda: noted(lib, note, 2.0))


def vmap_of_branches(lib, note):
    pick = lambda p: lib.lax.cond(  # noqa: E731
        p > 0, lambda: noted(lib, note, 1.0), lambda: noted(lib, note, 2.0)
    )
    lib.vmap(pick)(X)


def io_in_jit_whose_result_is_not_used(lib, note):
    lib.jit(lambda x: (lib.io_callback(note, None, x), x)[1])(1.0)


def io_in_vmap(lib, note):
    lib.vmap(lambda x: lib.io_callback(lambda v: (note(v), v)[1], SCALAR, x))(X)


def ordered_io_in_scan(lib, note):
    def body(c, x):
        lib.io_callback(note, None, c, x, ordered=True)
        return c + 1, None

    lib.lax.scan(body, 0, X)


def eval_shape_of(lib, note):
    lib.eval_shape(lambda a: noted(lib, note, a), 1.0)


@pytest.mark.parametrize(
    "program",
    [
        grad_of,
        grad_of_jit,
        jit_of_grad_twice,
        hessian,
        vmap_of,
        vmap_of_vmap,
        vmap_of_grad,
        vmap_of_something_else,
        vmap_of_both,
        linearized,
        checkpointed,
        scanned,
        grad_of_scan,
        vmap_of_scan,
        while_body,
        while_condition,
        vmap_of_while,
        one_branch,
        vmap_of_branches,
        io_in_jit_whose_result_is_not_used,
        io_in_vmap,
        ordered_io_in_scan,
        eval_shape_of,
    ],
    ids=lambda p: p.__name__,
)
def test_effects_happen_as_often_as_in_jax(program):
    ours, theirs = effects(program, OURS), effects(program, THEIRS)
    # JAX promises no order unless asked; here the order is the program's.
    np.testing.assert_allclose(sorted(ours), sorted(theirs), rtol=1e-6)


def test_effects_happen_in_the_order_of_the_program():
    seen = []

    @namoo.jit
    def f(x):
        namoo.debug.callback(lambda v: seen.append(("a", float(v))), x)
        namoo.vmap(lambda y: namoo.debug.callback(lambda v: seen.append(("b", float(v))), y))(X)
        io_callback(lambda v: seen.append(("c", float(v))), None, x + 1)
        return x

    f(5.0)
    assert seen == [("a", 5), ("b", 0), ("b", 1), ("b", 2), ("c", 6)]


def test_a_compiled_function_has_its_effects_at_every_call():
    seen = []
    f = namoo.jit(lambda x: namoo.debug.callback(lambda v: seen.append(int(v)), x))
    for i in range(3):
        f(i)
    assert seen == [0, 1, 2]


def test_callbacks_may_use_the_library():
    def host(x):
        return namoo.jit(namoo.grad(lambda v: jnp.sin(v) * v))(x)

    f = namoo.jit(lambda x: pure_callback(host, SCALAR, x) + 1)
    np.testing.assert_allclose(float(f(1.0)), np.sin(1.0) + np.cos(1.0) + 1, rtol=1e-6)


def test_debug_callback_passes_other_values_along():
    seen = []

    def look(x, *rest, **named):
        seen.append((float(x), rest, named))

    f = namoo.jit(lambda x: namoo.debug.callback(look, x, "word", None, flag=len))
    f(1.5)
    assert seen == [(1.5, ("word", None), {"flag": len})]


# debug.print


@pytest.mark.parametrize(
    ("fmt", "args", "kwargs", "wanted"),
    [
        ("x {} {y}", (X,), {"y": 2}, "x [0. 1. 2.] 2"),
        ("hello", (), {}, "hello"),
        ("{:.3f}|{:>5}", (1.5, 7), {}, "1.500|    7"),
        ("{0} {0}", (3,), {}, "3 3"),
        ("{} {}", ("abc", None), {}, "abc None"),
        ("{0.shape} {y.dtype}", (X,), {"y": X}, "(3,) float32"),
        ("{0[1]}", (X,), {}, "1.0"),
        ("{!r}", (X,), {}, "Array([0., 1., 2.], dtype=float32)"),
        ("{{}} {}", (3,), {}, "{} 3"),
        ("{:{width}}", (3,), {"width": "5"}, "    3"),
        (
            "{}",
            ({"a": X, "b": ["s"]},),
            {},
            "{'a': Array([0., 1., 2.], dtype=float32), 'b': ['s']}",
        ),
    ],
)
def test_print_formats(capsys, fmt, args, kwargs, wanted):
    namoo.jit(lambda x: namoo.debug.print(fmt, *args, **kwargs))(0)
    namoo.debug.print(fmt, *args, **kwargs)
    assert capsys.readouterr().out == f"{wanted}\n" * 2


def test_print_under_transformations(capsys):
    def f(x):
        namoo.debug.print("x = {:.1f}", x)
        return x * x

    namoo.jit(namoo.vmap(namoo.grad(f)))(X)
    assert capsys.readouterr().out == "x = 0.0\nx = 1.0\nx = 2.0\n"
    assert "debug_print" in str(namoo.make_jaxpr(f)(1.0))


def test_an_unknown_format_can_be_let_pass(capsys):
    namoo.debug.print("{}", 1, 2, skip_format_check=True)
    assert capsys.readouterr().out == "1\n"


def test_options_come_first_too(capsys):
    namoo.debug.print(ordered=True)("{}", 1)
    namoo.debug.callback(ordered=True)(lambda v: print("got", int(v)), 2)
    assert capsys.readouterr().out == "1\ngot 2\n"


@pytest.mark.parametrize("transform", [lambda f: f, namoo.jit, namoo.vmap])
def test_print_respects_numpys_options(capsys, transform):
    def show(x):
        with np.printoptions(precision=2, suppress=True):
            namoo.debug.print("{}", x)

    transform(show)(np.array([[1.2345, 1e-7]], np.float32))
    assert capsys.readouterr().out.strip("[]\n") == "1.23 0.  "


def test_log_goes_to_the_logger(caplog):
    with caplog.at_level(logging.INFO, "namoo.debug"):
        namoo.jit(lambda x: namoo.debug.log("x is {}", x))(3)
    assert [(r.name, r.getMessage()) for r in caplog.records] == [("namoo.debug", "x is 3")]


def stopped_inside(x, commands, out, **options):
    def inner(h):
        twice = h * 2
        namoo.debug.breakpoint(stdin=io.StringIO(commands + "c\n"), stdout=out, **options)
        return twice

    def middle(x):
        more = x + 1
        return inner(more)

    return middle(x)


@pytest.mark.parametrize(
    ("options", "commands", "shown"),
    [
        ({}, "p twice\n", "Array([4., 6.], dtype=float32)"),
        ({}, "up\np more\n", "Array([2., 3.], dtype=float32)"),
        ({}, "up\nup\np x\n", "Array([1., 2.], dtype=float32)"),
        ({"num_frames": 1}, "up\np more\n", "NameError"),
    ],
)
def test_a_breakpoint_has_the_frames_of_its_callers(options, commands, shown):
    out = io.StringIO()
    namoo.jit(lambda x: stopped_inside(x, commands, out, **options))(jnp.array([1.0, 2.0]))
    assert shown in out.getvalue()


@pytest.mark.parametrize(("filter_frames", "hidden"), [(True, True), (False, False)])
@pytest.mark.parametrize("transform", [lambda f: f, namoo.jit], ids=["eager", "jit"])
def test_the_stack_of_a_breakpoint(filter_frames, hidden, transform):
    out = io.StringIO()
    transform(lambda x: stopped_inside(x, "w\n", out, filter_frames=filter_frames))(jnp.ones(2))
    assert ("namoo/debug.py" not in out.getvalue()) is hidden
    assert "middle()" in out.getvalue()


def test_breakpoint_shows_the_values_of_the_run():
    out = io.StringIO()

    @namoo.jit
    def f(x):
        double = {"value": 2 * x}
        word = "static"  # noqa: F841
        namoo.debug.breakpoint(stdin=io.StringIO("p double, word\nl\nc\n"), stdout=out)
        return double["value"]

    assert float(f(3.0)) == 6.0
    text = out.getvalue()
    assert "{'value': Array(6., dtype=float32)}, 'static'" in text
    assert 'word = "static"' in text
    with pytest.raises(ValueError, match="'web'"):
        namoo.debug.breakpoint(backend="web")


def test_leaving_the_debugger_stops_the_program():
    import bdb

    def f(x):
        namoo.debug.breakpoint(stdin=io.StringIO("q\n"), stdout=io.StringIO())
        return x

    with pytest.raises(bdb.BdbQuit):
        namoo.jit(f)(1.0)


# custom_batching


def times(lib, calls):
    """x·y + y, whose batching rule notes what it gets and adds 100."""

    @lib.custom_batching.custom_vmap
    def f(x, y):
        return x * y + y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched))
        return x * y + y + 100 * x * x, in_batched[0] or in_batched[1]

    return f


@pytest.mark.parametrize(
    "program",
    [
        lambda lib, f: f(2.0, 3.0),
        lambda lib, f: lib.jit(f)(2.0, 3.0),
        lambda lib, f: lib.vmap(f)(X, X),
        lambda lib, f: lib.vmap(f, in_axes=(0, None))(X, 3.0),
        lambda lib, f: lib.vmap(f, in_axes=(1, None))(ROWS, np.float32(3)),
        lambda lib, f: lib.jit(lib.vmap(f))(X, X),
        lambda lib, f: lib.vmap(lib.jit(f))(X, X),
        lambda lib, f: lib.vmap(lib.vmap(f))(ROWS, ROWS),
        lambda lib, f: lib.vmap(lambda x: f(1.0, 2.0) + x)(X),
        lambda lib, f: lib.jvp(f, (2.0, 3.0), (1.0, 0.5)),
        lambda lib, f: lib.jvp(lib.vmap(f), (X, X), (X, X + 1)),
        lambda lib, f: lib.grad(lambda x: lib.vmap(f)(x, x).sum())(X),
        lambda lib, f: lib.vmap(lambda x: lib.lax.scan(lambda c, _: (f(c, 0.1), None), x, None, 2))(
            X
        ),
        lambda lib, f: lib.grad(lambda w: lib.vmap(lambda x: f(x, w))(X).sum())(2.0),
    ],
)
def test_custom_vmap_agrees_with_jax(program):
    ours, theirs = [], []
    found, wanted = program(OURS, times(OURS, ours)), program(THEIRS, times(THEIRS, theirs))
    assert_same(found, wanted, weak=False)
    assert (ours == []) == (theirs == [])


def test_custom_vmap_of_a_forward_derivative_uses_the_rule():
    f = times(OURS, [])
    found = namoo.vmap(lambda x: namoo.jvp(f, (x, 3.0), (1.0, 0.0)))(jnp.asarray(X))
    np.testing.assert_allclose(np.asarray(found[0]), X * 3 + 3 + 100 * X * X)
    np.testing.assert_allclose(np.asarray(found[1]), 3 + 200 * X)


def test_custom_vmap_has_derivatives_in_reverse():
    """Of the function itself: JAX has none."""
    f = times(OURS, [])
    assert float(namoo.grad(f)(2.0, 3.0)) == 3.0
    np.testing.assert_allclose(np.asarray(namoo.vmap(namoo.grad(f))(X, X)), X)


def test_custom_vmap_takes_trees_and_keywords():
    def program(lib, calls):
        @lib.custom_batching.custom_vmap
        def f(d, k=1):
            return {"a": d["u"] * k, "b": d["v"]}

        @f.def_vmap
        def rule(size, batched, d, k):
            calls.append((size, batched))
            return {"a": d["u"] * k * 10, "b": d["v"]}, {"a": True, "b": batched[0]["v"]}

        mapped = lib.vmap(lambda d, k: f(d, k=k), in_axes=({"u": 0, "v": None}, None))
        return mapped({"u": X, "v": 2.0}, 3)

    ours, theirs = [], []
    assert_same(program(OURS, ours), program(THEIRS, theirs))
    assert ours == theirs


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: (x, True), "expected PyTreeDef"),
        (lambda x: ((x, x), True), "structure of output value and output batching specification"),
        (lambda x: x, "must return a pair"),
        (lambda x: ((x[None], x), (True, True)), r"shape \(1, 3\).*length 3"),
    ],
)
def test_wrong_custom_vmap_rules_are_told(result, message):
    f = custom_vmap(lambda x: (x, x))
    f.def_vmap(lambda size, batched, x: result(x))
    with pytest.raises(ValueError, match=message):
        namoo.vmap(f)(X)


def test_custom_vmap_does_not_see_batched_values_around_it():
    def f(w):
        g = custom_vmap(lambda x: x * w)
        g.def_vmap(lambda size, batched, x: (x, batched[0]))
        return g(1.0)

    with pytest.raises(ValueError, match="as an argument"):
        namoo.vmap(f)(X)


def test_sequential_vmap_calls_for_one_example_after_another():
    shapes = []

    @sequential_vmap
    def f(x, y):
        shapes.append(x.shape)
        return jnp.sin(x) * y, y

    out, same = namoo.vmap(f, in_axes=(0, None))(ROWS, 3.0)
    np.testing.assert_allclose(np.asarray(out), np.sin(ROWS) * 3, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(same), [3.0, 3.0, 3.0])
    assert set(shapes) == {(2,)}
    jaxpr = namoo.make_jaxpr(namoo.vmap(f, in_axes=(0, None)))(ROWS, 3.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["scan"]
    nested = namoo.vmap(namoo.vmap(f))(ROWS, ROWS)[0]
    np.testing.assert_allclose(np.asarray(nested), np.sin(ROWS) * ROWS, rtol=1e-6)
