"""Branches and loops: against JAX, against plain Python loops, and what they refuse."""

from __future__ import annotations

import functools
import gc
import operator
import weakref
from itertools import accumulate

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given, settings

import namoo
import namoo.numpy as jnp
from jax_oracle import OURS, THEIRS, agree, assert_same
from namoo import lax

X = np.array([0.7, -0.4, 1.3], np.float32)
ROWS = np.stack([X, -X, X / 2, X[::-1]])

# XLA's own optimisations take most of the time of these tests, and are not what is tested.


# Programs of one vector that can be differentiated in both modes.


def scan_carry_and_results(lib, x):
    return lib.lax.scan(lambda c, a: (c + a * a, lib.jnp.sin(c) * a), 0.0, x)


def scan_of_trees_that_closes_over(lib, x):
    w = lib.jnp.cos(x)

    def body(c, a):
        return {"u": c["v"] * w, "v": c["u"] + a}, (a * w.sum(), {"k": c["u"]})

    return lib.lax.scan(body, {"u": x, "v": lib.jnp.ones(3)}, x)


def scan_backwards(lib, x):
    return lib.lax.scan(lambda c, a: (c * a + 1.0, c), x[0], x, reverse=True)


def scan_without_xs(lib, x):
    return lib.lax.scan(lambda c, _: (lib.jnp.sin(c) * 1.1, c), x, None, length=4)


def scan_that_counts(lib, x):
    return lib.lax.scan(lambda c, a: ((c[0] + 1, c[1] * a + c[0]), c), (0, 1.0), x)


def scan_where_derivatives_spread(lib, x):
    def body(c, a):
        return (c[1], c[2], a * c[0] + c[1] + a), c[0]

    return lib.lax.scan(body, (0.0, 0.0, 1.0), x)


def scan_in_scan(lib, x):
    def outer(c, a):
        d, ys = lib.lax.scan(lambda e, b: (e * b + a, e * c), c, x)
        return d, ys.sum()

    return lib.lax.scan(outer, 0.5, x)


def cond_in_scan(lib, x):
    def body(c, a):
        d = lib.lax.cond(a > 0, lambda c: c * a, lambda c: c + lib.jnp.sin(a), c)
        return d, d

    return lib.lax.scan(body, 1.0, x)


def scan_unrolled(lib, x):
    return lib.lax.scan(lambda c, a: (c * a + 1.0, c), 1.0, x, unroll=2)


def scan_of_length_zero(lib, x):
    return lib.lax.scan(lambda c, a: (c * a + 1.0, c * 2), x[0], x[:0])


def scan_with_booleans(lib, x):
    def body(c, a):
        return (~c[0], lib.jnp.where(c[0], a, c[1])), c[0]

    return lib.lax.scan(body, (True, 0.0), x)


def scan_with_work_that_never_changes(lib, x):
    w = lib.jnp.exp(x)
    return lib.lax.scan(lambda c, a: (c + lib.jnp.sin(w).sum() * a, w), 0.0, lib.jnp.arange(3.0))


def scan_whose_carry_is_not_used(lib, x):
    return lib.lax.scan(lambda c, a: ((c[0] * 2, c[1]), a * 0 + 1), (x[0], x[1]), x)[1]


def scan_of_jit(lib, x):
    return lib.lax.scan(lib.jit(lambda c, a: (c * a + 1.0, lib.jnp.sin(c))), x[1], x)


def scan_of_checkpoint(lib, x):
    body = lib.checkpoint(lambda c, a: (lib.jnp.sin(c * a) + 1.0, lib.jnp.sin(c)))
    return lib.lax.scan(body, x[1], x)


def scan_of_custom_jvp(lib, x):
    @lib.custom_jvp
    def g(c, a):
        return c * a

    @g.defjvp
    def g_jvp(primals, tangents):
        return g(*primals), primals[1] * tangents[0] + tangents[1] * primals[0]

    return lib.lax.scan(lambda c, a: (g(c, a), g(a, c)), 1.0, x)


def scan_that_writes_in_place(lib, x):
    def body(c, i):
        return c.at[i].multiply(c[2 - i]), c[i]

    return lib.lax.scan(body, lib.jnp.asarray(x), lib.jnp.arange(3))


def cond_of_operands(lib, x):
    return lib.lax.cond(x[0] > 0, lambda x: lib.jnp.sin(x), lambda x: x * x, x)


def cond_that_closes_over(lib, x):
    return lib.lax.cond(x[0] > 0.1, lambda: (1.0, x.sum()), lambda: (x[1] * 3, 2.0))


def cond_with_integers(lib, x):
    return lib.lax.cond(x[0] < 0, lambda x: (1, x), lambda x: (2, lib.jnp.exp(x)), x)


def cond_in_cond(lib, x):
    def inner(x):
        return lib.lax.cond(x[1] > 0, lambda y: y * 2, lambda y: y * y * x[2], x)

    return lib.lax.cond(x[0] > 0, inner, lambda x: x, x)


def cond_with_a_constant_branch(lib, x):
    return lib.lax.cond(x[0] > 0, lambda x: lib.jnp.zeros(3), lambda x: x * x, x)


def switch_of_three(lib, x):
    branches = [lambda x: x * 2.0, lib.jnp.sin, lambda x: lib.jnp.exp(x) * x[0]]
    return lib.lax.switch(lib.jnp.int32(x[0] * 3), branches, x)


def cond_where_the_other_branch_has_no_derivative(lib, x):
    return lib.lax.cond(x[0] > 0, lambda x: lib.jnp.sqrt(x[0]) * x, lambda x: x * 2, x)


def switch_over_loops_without_a_derivative_elsewhere(lib, x):
    w = lib.jnp.sin(x)

    def roots(x):
        return lib.lax.scan(lambda c, a: (lib.jnp.sqrt(c) * a, c * w), x[0], w)[0] * x

    branches = [lambda x: x * w, roots, lambda x: lib.jnp.log(x[0] - 0.5) * w]
    return lib.lax.switch(lib.jnp.int32(x[0] > 0) + lib.jnp.int32(x[0] > 0.5), branches, x)


def cond_in_scan_without_a_derivative_elsewhere(lib, x):
    def body(c, a):
        inner = lambda c: lib.lax.cond(a > 0, lib.jnp.log, lambda c: c / 2, c)  # noqa: E731
        return lib.lax.cond(c > 0, inner, lambda c: a * a - c, c), c

    return lib.lax.scan(body, x[0], x)


def fori_with_known_bounds(lib, x):
    return lib.lax.fori_loop(0, 4, lambda i, v: v * x + i, x)


def fori_of_trees(lib, x):
    def body(i, v):
        return {"a": v["b"], "b": v["a"] * x.sum()}

    return lib.lax.fori_loop(1, 3, body, {"a": x, "b": x * 2})


def fori_with_floating_bounds(lib, x):
    return lib.lax.fori_loop(0.0, 2.5, lambda i, v: v * x + i, x)


def scan_of_floating_length(lib, x):
    return lib.lax.scan(lambda c, _: (c * x, c), x, None, length=2.0)


def map_of_slices(lib, x):
    return lib.lax.map(lambda a: (lib.jnp.sin(a) * x, a * 2), x)


def map_in_batches(lib, x):
    return lib.lax.map(lambda a: lib.jnp.sin(a) * x, x, batch_size=2)


def associative_scan_of_products(lib, x):
    elems = lib.jnp.concatenate([x, x * 2, x[:1]])
    return lib.lax.associative_scan(lambda a, b: a * b, elems)


def associative_scan_of_maps(lib, x):
    def then(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    return lib.lax.associative_scan(then, (x, lib.jnp.sin(x)))


def associative_scan_backwards(lib, x):
    elems = lib.jnp.outer(x, lib.jnp.concatenate([x, x]))
    return lib.lax.associative_scan(lambda a, b: a * b, elems, reverse=True, axis=1)


REVERSIBLE = [
    scan_carry_and_results,
    scan_of_trees_that_closes_over,
    scan_backwards,
    scan_without_xs,
    scan_that_counts,
    scan_where_derivatives_spread,
    scan_in_scan,
    cond_in_scan,
    scan_unrolled,
    scan_of_length_zero,
    scan_with_booleans,
    scan_with_work_that_never_changes,
    scan_whose_carry_is_not_used,
    scan_of_jit,
    scan_of_checkpoint,
    scan_of_custom_jvp,
    scan_that_writes_in_place,
    cond_of_operands,
    cond_that_closes_over,
    cond_with_integers,
    cond_in_cond,
    cond_with_a_constant_branch,
    switch_of_three,
    cond_where_the_other_branch_has_no_derivative,
    switch_over_loops_without_a_derivative_elsewhere,
    cond_in_scan_without_a_derivative_elsewhere,
    fori_with_known_bounds,
    fori_of_trees,
    map_of_slices,
    map_in_batches,
    fori_with_floating_bounds,
    scan_of_floating_length,
    associative_scan_of_products,
    associative_scan_of_maps,
    associative_scan_backwards,
]


# Programs with loops of unknown length: forward mode only.


def while_with_a_counter(lib, x):
    return lib.lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, lib.jnp.sin(s[1]) * x), (0, x)
    )


def while_that_each_example_leaves_by_itself(lib, x):
    return lib.lax.while_loop(lambda s: s.sum() < 4, lambda s: s * 1.5 + 0.9, x)


def while_where_derivatives_spread(lib, x):
    def body(s):
        return s[0] + 1, s[2], s[1] * x[0]

    return lib.lax.while_loop(lambda s: s[0] < 3, body, (0, 1.0, x[1]))


def while_with_a_limit_from_outside(lib, x):
    limit = x.sum()
    return lib.lax.while_loop(lambda s: s < limit, lambda s: s + 0.3 * abs(x[2]), 0.0)


def fori_with_traced_bounds(lib, x):
    return lib.lax.fori_loop(0, lib.jnp.int32(abs(x[0]) * 5), lambda i, v: v * x + i, x)


FORWARD_ONLY = [
    while_with_a_counter,
    while_that_each_example_leaves_by_itself,
    while_where_derivatives_spread,
    while_with_a_limit_from_outside,
    fori_with_traced_bounds,
]


def total(lib, tree):
    """A number that depends on every floating-point result."""
    floats = [
        y for y in lib.tree_util.tree_leaves(tree) if lib.jnp.issubdtype(y.dtype, lib.jnp.floating)
    ]
    return sum(((lib.jnp.cos(y) * y).sum() for y in floats), lib.jnp.float32(0))


def forward(lib, fun):
    def run(x, rows):
        return {
            "value": fun(x),
            "vmap": lib.vmap(fun)(rows),
            "jvp": lib.jvp(fun, (x,), (x * 2,)),
            "vmap of jvp": lib.vmap(lambda t: lib.jvp(fun, (x,), (t,)))(rows),
        }

    return run


def both_modes(lib, fun):
    def loss(x):
        return total(lib, fun(x))

    def run(x, rows):
        return {
            **forward(lib, fun)(x, rows),
            "vmap of grad": lib.vmap(lib.grad(loss))(rows),
            "grad of vmap": lib.grad(lambda b: total(lib, lib.vmap(fun)(b)))(rows),
            "forward over reverse": lib.jacfwd(lib.grad(loss))(x),
            "reverse over reverse": lib.jacrev(lib.grad(loss))(x),
        }

    return run


def check_against_jax(transformed, program, x, rows):
    theirs = transformed(THEIRS, functools.partial(program, THEIRS))
    wanted = jax.jit(theirs)(x, rows)
    fun = functools.partial(program, OURS)
    run = transformed(OURS, fun)
    assert_same(run(jnp.asarray(x), jnp.asarray(rows)), wanted, rtol=2e-4)
    assert_same(namoo.jit(run)(x, rows), wanted, rtol=2e-4)
    last = namoo.vmap(fun, in_axes=1, out_axes=0)(jnp.asarray(rows.T))
    assert_same(last, wanted["vmap"], rtol=2e-4)
    if transformed is both_modes:
        for wrap in (namoo.jit, namoo.checkpoint):
            gradient = namoo.vmap(namoo.grad(wrap(lambda x: total(OURS, fun(x)))))
            assert_same(gradient(jnp.asarray(rows)), wanted["vmap of grad"], rtol=2e-4)


@pytest.mark.parametrize("program", REVERSIBLE, ids=lambda p: p.__name__)
def test_every_transformation_agrees_with_jax(program):
    check_against_jax(both_modes, program, X, ROWS)


@pytest.mark.parametrize("program", FORWARD_ONLY, ids=lambda p: p.__name__)
def test_forward_transformations_agree_with_jax(program):
    check_against_jax(forward, program, X, ROWS)


def test_a_custom_vjp_in_a_loop_agrees_with_jax():
    def program(lib, x, rows):
        @lib.custom_vjp
        def g(c, a):
            return c * a

        g.defvjp(lambda c, a: (c * a, (c, a)), lambda r, ct: (ct * r[1] * 2.0, ct * r[0]))
        loop = lambda x: total(lib, lib.lax.scan(lambda c, a: (g(c, a), g(a, c)), 1.0, x))  # noqa: E731
        return loop(x), lib.grad(loop)(x), lib.jit(lib.vmap(lib.grad(loop)))(rows)

    agree(program, X, ROWS)


def test_a_custom_jvp_in_a_loop_is_used_to_second_order():
    @namoo.custom_jvp
    def g(c, a):
        return c * a

    @g.defjvp
    def g_jvp(primals, tangents):
        return g(*primals), 2.0 * primals[1] * tangents[0] + primals[0] * tangents[1]

    def scanned(x):
        return total(OURS, lax.scan(lambda c, a: (g(c, a), g(a, c)), 1.0, x))

    def looped(x):
        return total(OURS, python_scan(lambda c, a: (g(c, a[0]), [g(a[0], c)]), 1.0, [x], 3, False))

    for derivative in (
        namoo.grad,
        lambda f: namoo.jacfwd(namoo.jacrev(f)),
        lambda f: namoo.jacrev(namoo.jacrev(f)),
        lambda f: namoo.jacrev(namoo.jacfwd(f)),
    ):
        found, wanted = derivative(scanned)(jnp.asarray(X)), derivative(looped)(jnp.asarray(X))
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("program", REVERSIBLE + FORWARD_ONLY, ids=lambda p: p.__name__)
def test_without_jit_the_loops_are_python_loops(program):
    wanted = program(OURS, jnp.asarray(X))
    with namoo.disable_jit():
        if program is scan_of_length_zero:
            with pytest.raises(ValueError, match="zero-length scan"):
                program(OURS, jnp.asarray(X))
            return
        found = program(OURS, jnp.asarray(X))
    for a, b in zip(namoo.tree.leaves(found), namoo.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)


# Loops that hypothesis makes, against Python loops.


@st.composite
def linear_loops(draw):
    """A loop body: which carry and slice goes into which, and by what factor."""
    carries, slices, results = (
        draw(st.integers(0, 3)),
        draw(st.integers(0, 2)),
        draw(st.integers(0, 2)),
    )
    edge = st.sampled_from([None, 0.5, -1.5, "w", "sin"])
    table = [[draw(edge) for _ in range(carries + slices)] for _ in range(carries + results)]
    length = draw(st.integers(1, 4))
    return carries, slices, table, length, draw(st.booleans()), draw(st.sampled_from([1, 2, True]))


def loop_body(carries, table, w):
    def term(kind, value):
        if kind == "w":
            return value * w
        return jnp.sin(value) if kind == "sin" else kind * value

    def body(carry, xs):
        values = [*carry, *xs]
        outs = [
            sum(
                (term(k, v) for k, v in zip(row, values, strict=True) if k is not None),
                jnp.float32(0.25),
            )
            for row in table
        ]
        return outs[:carries], outs[carries:]

    return body


def python_scan(body, carry, xs, length, reverse):
    ys = []
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = body(carry, [x[i] for x in xs])
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    return carry, [jnp.stack(column) for column in zip(*ys, strict=True)]


@given(linear_loops())
@settings(max_examples=30)
def test_scan_is_a_python_loop(loop):
    carries, slices, table, length, reverse, unroll = loop
    rng = np.random.default_rng(0)
    init = [jnp.float32(v) for v in rng.normal(size=carries)]
    xs = [jnp.asarray(rng.normal(size=length), jnp.float32) for _ in range(slices)]
    w = jnp.float32(0.7)

    def scanned(w, init, xs):
        body = loop_body(carries, table, w)
        return lax.scan(body, init, xs, length=length, reverse=reverse, unroll=unroll)

    def looped(w, init, xs):
        return python_scan(loop_body(carries, table, w), init, xs, length, reverse)

    def scores(fun):
        return lambda *args: total(OURS, fun(*args))

    def everything(fun):
        args = (w, init, xs)
        batch = namoo.tree.map(lambda v: jnp.stack([v, v * 2, -v]), args)
        gradient = namoo.grad(scores(fun), argnums=(0, 1, 2))
        return (
            fun(*args),
            gradient(*args),
            namoo.vmap(fun)(*batch),
            namoo.vmap(gradient, in_axes=(0, None, None))(batch[0], init, xs),
            namoo.jvp(fun, args, args),
            namoo.jvp(lambda w: gradient(w, init, xs), (w,), (w,)),
        )

    found, wanted = everything(scanned), everything(looped)
    assert namoo.tree.structure(found) == namoo.tree.structure(wanted)
    for a, b in zip(namoo.tree.leaves(found), namoo.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-4)


@given(st.integers(0, 20), st.booleans(), st.integers(0, 1))
def test_associative_scan_is_a_running_total(n, reverse, axis):
    x = np.random.default_rng(n).integers(-5, 5, (n, n + 1))
    found = lax.associative_scan(jnp.add, jnp.asarray(x), reverse=reverse, axis=axis)
    rows = np.moveaxis(x, axis, 0)
    rows = list(accumulate(rows[::-1]))[::-1] if reverse else list(accumulate(rows))
    wanted = np.moveaxis(np.array(rows).reshape(np.moveaxis(x, axis, 0).shape), 0, axis)
    np.testing.assert_array_equal(np.asarray(found), wanted)


@given(st.integers(-3, 6), st.integers(-3, 6))
def test_fori_loop_counts_as_range_does(low, high):
    for loop in (
        lambda: lax.fori_loop(low, high, lambda i, s: 3 * s + i, 1),
        lambda: namoo.jit(lambda a, b: lax.fori_loop(a, b, lambda i, s: 3 * s + i, 1))(low, high),
    ):
        wanted = functools.reduce(lambda s, i: 3 * s + i, range(low, high), 1)
        assert int(loop()) == wanted


# Types of results.


@pytest.mark.parametrize(
    "program",
    [
        lambda lib: lib.lax.scan(lambda c, _: (c + 0.5, c), 0, None, 3),
        lambda lib: lib.lax.scan(lambda c, a: (c + a, c), 0, X),
        lambda lib: lib.lax.scan(lambda c, a: (c + a, c), 0.0, X.astype(np.float16)),
        lambda lib: lib.lax.scan(lambda c, a: (c * 2, c), 0.0, X.astype(np.float16)),
        lambda lib: lib.lax.scan(lambda c, a: (a, c), 0, X),
        lambda lib: lib.lax.scan(lambda c, a: (c + a, c), 0.0, np.arange(3)),
        lambda lib: lib.lax.scan(lambda c, a: (c + a, c), 0, np.arange(3, dtype=np.int8)),
        lambda lib: lib.lax.scan(lambda c, a: [c * 2, {"y": a + 1}], 1.5, X),
        lambda lib: lib.lax.while_loop(lambda c: c < 3, lambda c: c + 0.5, 0),
        lambda lib: lib.lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2], c[1] * lib.jnp.float32(2)), (0, 1.0, 1.0)
        ),
        lambda lib: lib.lax.fori_loop(0, 3, lambda i, c: c + i, 0),
        lambda lib: lib.lax.fori_loop(0, 3, lambda i, c: c + i, 0.0),
        lambda lib: lib.lax.fori_loop(np.int32(0), 3, lambda i, c: c + i, 0.0),
        lambda lib: lib.lax.fori_loop(0, lib.jnp.int16(3), lambda i, c: (i, c[0]), (0, 0)),
        lambda lib: lib.lax.fori_loop(0, 3, lambda i, c: c + i, 0, unroll=True),
        lambda lib: lib.lax.fori_loop(5, 3, lambda i, c: c + i + 1, 0),
        lambda lib: lib.lax.cond(True, lambda: 1.0, lambda: lib.jnp.float32(2)),
        lambda lib: lib.lax.cond(True, lambda: lib.jnp.float32(2), lambda: 1.0),
        lambda lib: lib.lax.cond(1.5, lambda: 1.0, lambda: 2.0),
        lambda lib: lib.lax.cond(0, lambda x: x * 2, lambda x: x * 3, operand=3),
        lambda lib: lib.lax.cond(True, 1, lambda x: x * 2, 2.0, lambda y: 7),
        lambda lib: lib.lax.switch(5, [lambda: 1, lambda: 2]),
        lambda lib: lib.lax.switch(-1, [lambda: 1, lambda: 2]),
        lambda lib: lib.lax.switch(np.uint8(1), (lambda: 1, lambda: 2)),
        lambda lib: lib.lax.map(lambda a: a * 2, X, batch_size=5),
        lambda lib: lib.lax.associative_scan(
            lib.jnp.logical_and, np.array([True, True, False, True])
        ),
        lambda lib: lib.lax.associative_scan(lambda a, b: a * b, X + 1j),
        lambda lib: lib.lax.platform_dependent(
            lib.jnp.ones(3), cpu=lambda x: x * 2, default=lambda x: x
        ),
    ],
)
def test_types_of_results_agree_with_jax(program):
    agree(program)


def mapped(lib, fun, **options):
    return lib.vmap(fun, axis_name="i", **options)(X)


@pytest.mark.parametrize(
    "program",
    [
        lambda lib: mapped(
            lib,
            lambda x: lib.lax.scan(
                lambda c, _: (lib.lax.psum(c, "i"), lib.lax.axis_index("i")), 1.0, None, 3
            ),
        ),
        lambda lib: mapped(
            lib,
            lambda x: lib.lax.scan(lambda c, _: (lib.lax.psum(c, "i"), None), 1.0, None, 3)[0],
            out_axes=None,
        ),
        lambda lib: mapped(
            lib,
            lambda x: lib.lax.while_loop(lambda c: c < 20, lambda c: lib.lax.psum(c, "i"), 1),
        ),
        lambda lib: mapped(
            lib,
            lambda x: lib.lax.while_loop(
                lambda c: lib.lax.pmax(c, "i") < 6, lambda c: c + lib.lax.axis_index("i"), 1
            ),
        ),
        lambda lib: mapped(
            lib, lambda x: lib.lax.cond(lib.lax.axis_index("i") > 1, lambda: x, lambda: -x)
        ),
    ],
)
def test_collectives_of_values_that_are_the_same_for_all(program):
    agree(program)


@pytest.mark.parametrize(
    ("program", "cts"),
    [
        (
            lambda lib, x: lib.lax.scan(lambda c, a: (c * 2 + a, c + a), lib.jnp.float32(0), x),
            (np.float32(1), X),
        ),
        (
            lambda lib, x: lib.lax.scan(
                lambda c, a: ((c[0] + 1, c[1] * c[0] + a), a * c[0]), (0, x[0]), x
            )[1],
            X,
        ),
        (lambda lib, x: lib.lax.cond(True, lambda x: x * 2, lambda x: x, x), X),
        (lambda lib, x: lib.lax.fori_loop(0, 3, lambda i, c: c * i + x, x), X),
    ],
)
def test_linear_transposes_agree_with_jax(program, cts):
    agree(lambda lib: lib.linear_transpose(lambda x: program(lib, x), X)(cts))


@pytest.mark.parametrize(
    "program",
    [
        lambda lib: lib.grad(
            lambda x: x * lib.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0.0)
        )(2.0),
        lambda lib: lib.grad(
            lambda x: (
                x
                * lib.lax.while_loop(
                    lambda c: c[0] < 3,
                    lambda c: (c[0] + 1, c[1] * 2),
                    (0, lib.lax.stop_gradient(x)),
                )[1]
            )
        )(2.0),
        lambda lib: lib.grad(
            lambda x: lib.lax.scan(lambda c, a: (c * a, c), lib.jnp.float16(1), x)[0]
        )(X.astype(np.float16) + 1),
        lambda lib: lib.grad(
            lambda x: lib.jnp.real(lib.lax.scan(lambda c, a: (c * a, c), 1 + 1j, x + 1j)[0])
        )(X),
        lambda lib: lib.jacrev(
            lambda d: lib.lax.scan(lambda c, a: (c * d["w"], c), d["v"], None, 3)
        )({"w": X, "v": X + 1}),
        lambda lib: lib.jvp(
            lambda x: lib.lax.fori_loop(0, 3, lambda i, c: (c[0] * x, c[1] + 1), (x, 0)),
            (2.0,),
            (1.0,),
        ),
    ],
)
def test_derivatives_of_special_loops_agree_with_jax(program):
    agree(program)


# What is refused: JAX's exception types, and messages that say where and what.


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda lib: lib.lax.scan(3, 0.0, X), "callable"),
        (lambda lib: lib.lax.scan(lambda c, a: c, 0.0, X), "must be a pair"),
        (lambda lib: lib.lax.scan(lambda c, a: ((c, c), a), 0.0, X), "same pytree structure"),
        (lambda lib: lib.lax.scan(lambda c, a: (X, a), 0.0, X), r"float32\[\] but .*float32\[3\]"),
        (
            lambda lib: lib.lax.scan(lambda c, a: ({"k": c["k"] + a}, a), {"k": np.int32(0)}, X),
            r"(?s)\['k'\].*int32\[\] but .*float32\[\]",
        ),
        (lambda lib: lib.lax.scan(lambda c, a: (c, a), 0.0, (X, X[:2])), r"xs\[1\] has 2"),
        (lambda lib: lib.lax.scan(lambda c, a: (c, a), 0.0, X, length=2), "length 3"),
        (lambda lib: lib.lax.scan(lambda c, a: (c, a), 0.0, None), "`length` not provided"),
        (lambda lib: lib.lax.scan(lambda c, a: (c, a), 0.0, 1.0), "leading axis"),
        (lambda lib: lib.lax.scan(lambda c, a: (c, a), 0.0, "a"), "tree of arrays"),
        (lambda lib: lib.lax.scan(lambda c, a: (c, a), {"k": "a"}, X), r"\['k'\]"),
        (lambda lib: lib.lax.scan(lambda c, a: (c, a), 0.0, X, unroll=-1), "unroll"),
        (
            lambda lib: lib.jit(lambda n: lib.lax.scan(lambda c, a: (c, a), 0.0, None, n))(3),
            "static",
        ),
        (lambda lib: lib.lax.while_loop(3, lambda c: c, 0), "callable"),
        (
            lambda lib: lib.lax.while_loop(lambda c: c < 3, lambda c: (c, c), 0),
            "same pytree structure",
        ),
        (lambda lib: lib.lax.while_loop(lambda c: 1, lambda c: c, 0), "boolean scalar"),
        (lambda lib: lib.lax.while_loop(lambda c: (c < 3,), lambda c: c, 0), "boolean scalar"),
        (lambda lib: lib.lax.while_loop(lambda c: c < 3, lambda c: c, X), "boolean scalar"),
        (
            lambda lib: lib.lax.while_loop(lambda c: c < 3, lambda c: c + 0.5, np.int32(0)),
            r"int32\[\] but .*float32\[\]",
        ),
        (lambda lib: lib.lax.fori_loop(0, 3.0, lambda i, c: c, 0), "equal types"),
        (lambda lib: lib.lax.fori_loop(np.arange(2), 3, lambda i, c: c, 0), "must be scalars"),
        (
            lambda lib: lib.lax.fori_loop(np.int8(0), np.int16(3), lambda i, c: c, 0),
            "equal types, got int8 and int16",
        ),
        (
            lambda lib: lib.jit(lambda n: lib.lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3),
            "unroll",
        ),
        (lambda lib: lib.lax.cond(True, lambda: 1, lambda: 2.0), r"float32\[\], found int32\[\]"),
        (lambda lib: lib.lax.cond(True, lambda: 1.0, lambda: (1.0,)), "true_fun and false_fun"),
        (lambda lib: lib.lax.cond(True, lambda x: x, lambda x: None, 3), "true_fun and false_fun"),
        (lambda lib: lib.lax.cond(X, lambda: 1.0, lambda: 1.0), r"jnp\.where"),
        (lambda lib: lib.lax.cond(1j, lambda: 1.0, lambda: 2.0), "boolean or number"),
        (lambda lib: lib.lax.cond("a", lambda: 1.0, lambda: 2.0), "scalar"),
        (lambda lib: lib.lax.cond(None, lambda: 1.0, lambda: 2.0), "scalar"),
        (lambda lib: lib.lax.cond(True, 3, lambda: 2.0), "callable"),
        (lambda lib: lib.lax.cond(True, lambda x: x, lambda x: x, "a"), "not a valid array type"),
        (lambda lib: lib.lax.cond(True, lambda x: x, lambda x, y: x, 1), "'y'"),
        (lambda lib: lib.lax.switch(1.0, [lambda: 1, lambda: 2]), "integer"),
        (lambda lib: lib.lax.switch(True, [lambda: 1, lambda: 2]), "integer"),
        (lambda lib: lib.lax.switch(0, []), "Empty branch sequence"),
        (lambda lib: lib.lax.switch(np.arange(2), [lambda: 1, lambda: 2]), "scalar"),
        (lambda lib: lib.lax.switch(1, [lambda: 1, lambda: 2.0]), r"int32\[\], found float32\[\]"),
        (lambda lib: lib.lax.switch(1, [3, lambda: 2]), "callable"),
        (lambda lib: lib.lax.map(lambda a: a, ()), "no values to scan over"),
        (lambda lib: lib.lax.associative_scan(3, X), "callable"),
        (lambda lib: lib.lax.associative_scan(lambda a, b: a, X, axis=3), "axis 3"),
        (lambda lib: lib.lax.associative_scan(lambda a, b: a, (X, X[:2])), "same length"),
        (lambda lib: lib.lax.associative_scan(lambda a, b: (a, b), X), "structure of elems"),
        (
            lambda lib: lib.grad(lambda x: lib.lax.while_loop(lambda c: c < 3, lambda c: c * 2, x))(
                1.0
            ),
            "Reverse-mode",
        ),
    ],
)
def test_what_is_refused(program, message):
    with pytest.raises(Exception) as theirs:
        program(THEIRS)
    wanted = getattr(namoo.errors, type(theirs.value).__name__, type(theirs.value))
    with pytest.raises(wanted, match=message):
        program(OURS)


# The shape of programs.


def primitives(fun, *args):
    return [eqn.primitive.name for eqn in namoo.make_jaxpr(fun)(*args).eqns]


def test_a_loop_is_one_equation_under_every_transformation():
    loop = functools.partial(scan_carry_and_results, OURS)
    assert primitives(loop, X).count("scan") == 1
    assert primitives(namoo.vmap(loop), ROWS).count("scan") == 1
    gradient = namoo.grad(lambda x: total(OURS, loop(x)))
    assert primitives(gradient, X).count("scan") == 2


def test_a_branch_is_selected_only_where_examples_differ():
    pick = lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)  # noqa: E731
    assert "cond" in primitives(namoo.vmap(pick, in_axes=(None, 0)), True, X)
    chosen = namoo.make_jaxpr(namoo.vmap(pick))(X > 0, X)
    assert " cond[" not in str(chosen) and "select_n" in str(chosen)


def test_a_shared_operand_is_not_repeated_for_each_example_that_chooses():
    pick = lambda p, w, x: lax.cond(p, lambda w, x: w @ x, lambda w, x: x, w, x)  # noqa: E731
    chosen = namoo.make_jaxpr(namoo.vmap(pick, in_axes=(0, None, 0)))(
        np.ones(5, bool), np.ones((3, 3)), np.ones((5, 3))
    )
    assert "[5,3,3]" not in str(chosen)


def counted(loop):
    """How often a body is traced by two calls of a loop with the same types, thrice."""

    def program(lib):
        calls, scale = [], 2.0

        def body(x):
            calls.append(None)
            return x * scale

        counts = []
        for x in (1.0, lib.jnp.arange(3.0), lib.jnp.arange(4.0)):
            for _ in range(2):
                loop(lib, body, x)
            counts.append(len(calls))
        return counts

    return program


@pytest.mark.parametrize(
    "loop",
    [
        lambda lib, f, x: lib.lax.scan(lambda c, _: (f(c), None), x, None, length=2),
        lambda lib, f, x: lib.lax.map(f, lib.jnp.atleast_1d(x)),
        lambda lib, f, x: lib.lax.cond(True, f, lambda x: x * 1.0, x),
        lambda lib, f, x: lib.lax.switch(1, [f, f, f], x),
        lambda lib, f, x: lib.lax.while_loop(lambda x: lib.jnp.all(x > 3), f, x),
        lambda lib, f, x: lib.vmap(lambda x: lib.lax.cond(x > 0, f, f, x))(lib.jnp.atleast_1d(x)),
        lambda lib, f, x: lib.grad(lambda x: lib.lax.map(f, x[None]).sum())(lib.jnp.asarray(x)),
    ],
    ids=["new function", "map", "cond", "switch", "while", "vmap", "grad"],
)
def test_the_same_function_is_traced_no_more_often_than_by_jax(loop):
    program = counted(loop)
    assert all(map(operator.le, program(OURS), program(THEIRS)))


def test_loops_with_counters_trace_their_body_once():
    calls = []

    def body(i, x):
        calls.append(None)
        return x + i

    for _ in range(3):
        lax.fori_loop(0, 3, body, 1.0)
    assert len(calls) == 1
    for _ in range(3):
        namoo.jit(lambda n: lax.fori_loop(0, n, body, 1.0))(3)
    assert len(calls) == 2
    namoo.clear_caches()
    lax.fori_loop(0, 3, body, 1.0)
    assert len(calls) == 3


def test_a_body_is_traced_again_when_a_name_means_another_value():
    """JAX goes on with the first value."""
    scale = 2.0

    def helper(x):
        return x * scale

    def body(c, x):
        return c + helper(x), None

    assert lax.scan(body, 0.0, X)[0] == 2 * lax.scan(lambda c, x: (c + x, None), 0.0, X)[0]
    scale = 0.0
    assert lax.scan(body, 0.0, X)[0] == 0


@pytest.mark.parametrize("lib", [OURS, THEIRS], ids=["ours", "theirs"])
def test_map_sees_changes_inside_of_what_its_function_reads(lib):
    scales = [1.0]

    def f(x, scales=scales):
        return x * scales[0]

    assert lib.lax.map(f, X[:1])[0] == X[0]
    scales[0] = 3.0
    assert lib.lax.map(f, X[:1])[0] == 3 * X[0]


def test_a_remembered_program_dies_with_its_function():
    weights = jnp.ones(3)

    def run():
        def body(c, x):
            return c + (weights * x).sum(), body is None

        lax.scan(body, 0.0, X)
        return weakref.ref(body)

    body = run()
    gc.collect()
    assert body() is None


def test_what_stays_the_same_is_not_carried_nor_chosen():
    """JAX's results, and that the mapped axis is not given to what does not depend on it."""

    def program(lib, w, x, n):
        def loop(w, x, n):
            body = lambda s: (s[0] + 1, s[1] @ s[2], s[2])  # noqa: E731
            return lib.lax.while_loop(lambda s: s[0] < n, body, (0, x, w))[1:]

        def steps(w, x, n):
            return lib.lax.scan(lambda c, a: ((c[0], c[1] * a), c[0]), (w[0], x), x)[0]

        def choose(w, x, n):
            return lib.lax.cond(n > 1, lambda x, w: (x * 2, w), lambda x, w: (x, w), x, w)

        out = [loop(w, x[0], 2), steps(w, x[0], 2), choose(w, x[0], 2)]
        mapped = functools.partial(lib.vmap, in_axes=(None, 0, 0))
        out += [
            mapped(loop, out_axes=(0, None))(w, x, n),
            mapped(steps, out_axes=(None, 0))(w, x, n),
        ]
        out += [mapped(choose, out_axes=(0, None))(w, x, n)]
        out += [
            lib.grad(lambda w: steps(w, x[0] * w[0, 0], 2)[1].sum() + choose(w, x, 1)[1].sum())(w)
        ]
        return out

    agree(program, np.ones((2, 2), np.float32), ROWS[:, :2], np.arange(4))


def test_a_while_loop_without_jit_maps_over_examples():
    def program(lib, x):
        with lib.disable_jit():
            return lib.vmap(lambda x: lib.lax.while_loop(lambda x: x < 4, lambda x: x + 1, x))(x)

    agree(program, X)


AXES = [
    ((None, 0, 0), (None, 0, 0)),
    ((None, 0, 0), (0, None, None)),
    ((0, None, 0), (None, 0, None)),
    ((None, None, 0), (None, 0, None)),
    ((None, None, 0), (0, None, None)),
    ((0, 0, None), (None, 0, 0)),
]


@pytest.mark.parametrize("inner, outer", AXES)
def test_a_branch_not_taken_leaves_gradients_alone_under_nested_vmap(inner, outer):
    def arguments(rng):
        for a, b in zip(inner, outer, strict=True):
            shape = (*(() if b is None else (2,)), *(() if a is None else (3,)))
            yield rng.standard_normal(shape).astype(np.float32)

    def program(lib, w, x, i):
        def pick(w, x, i):
            roots = lambda w, x: lib.jnp.sqrt(x) * w  # noqa: E731
            return lib.lax.cond((i > 0) & (x > 0), roots, lambda w, x: x * w, w, x)

        both = lib.vmap(lib.vmap(pick, inner), outer)
        loss = lambda w, x: both(w, x, i).sum()  # noqa: E731
        gradient = lib.grad(loss, (0, 1))
        return both(w, x, i), gradient(w, x), lib.jit(gradient)(w, x), lib.jacfwd(loss)(w, x)

    agree(program, *arguments(np.random.default_rng(0)))


def test_values_that_never_change_are_not_stacked():
    """The derivative needs cos(w), which is computed once, not once per step."""

    def loss(w, x):
        return lax.scan(lambda c, a: (c + jnp.sin(w) * a, None), 0.0, x)[0]

    (forward, *_) = [
        eqn
        for eqn in namoo.make_jaxpr(namoo.grad(loss))(0.5, X).eqns
        if eqn.primitive.name == "scan"
    ]
    assert all(v.aval.shape != (3,) for v in forward.outvars)


def test_only_the_chosen_branch_runs():
    seen = []

    def note(x, name):
        namoo.debug.callback(lambda _: seen.append(name), x)
        return x

    f = namoo.jit(lambda i, x: lax.switch(i, [lambda x, n=n: note(x, n) for n in "abc"], x))
    f(1, 0.0)
    f(9, 0.0)
    assert seen == ["b", "c"]


def test_loops_carry_random_keys():
    keys = namoo.random.split(namoo.random.key(0), 3)

    def body(key, other):
        return other, namoo.random.bits(key)

    last, bits = lax.scan(body, keys[2], keys)
    np.testing.assert_array_equal(
        np.asarray(bits), [int(namoo.random.bits(k)) for k in (keys[2], keys[0], keys[1])]
    )
    assert last.dtype == keys.dtype
    chosen = namoo.vmap(lambda p, k: lax.cond(p, lambda k: k, lambda k: keys[0], k))(
        jnp.array([True, False, True]), keys
    )
    wanted = [keys[0], keys[0], keys[2]]
    for k, w in zip(chosen, wanted, strict=True):
        assert int(namoo.random.bits(k)) == int(namoo.random.bits(w))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_carry_without_cotangent_does_not_poison_the_gradient(compiled):
    """Zeros in place of its cotangent would be multiplied by NaN."""

    def last(p):
        def body(carry, x):
            return (2 * x, carry[1] * p, carry[2] + p * p), x

        return lax.scan(body, (1.0, jnp.ones(2), jnp.ones(2)), p)[0][0]

    gradient = namoo.grad(last)
    gradient = namoo.jit(gradient) if compiled else gradient
    np.testing.assert_array_equal(gradient(jnp.array([-0.1, np.nan])), [0.0, 2.0])
