"""Transformations replay programs; what they compute, or write down, is what the rules do."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo.core.primitive import Primitive
from namoo.memo import linear_steps, trace_cache
from namoo.memo.recalled import recalled
from namoo.transforms import transpose
from namoo.transforms.stage import StageTrace

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.standard_normal((4, 3)), "float32")
W = jnp.asarray(RNG.standard_normal((3, 5)), "float32")
B = jnp.asarray(RNG.standard_normal(5), "float32")


def layer(x):
    return jnp.sum(namoo.nn.relu(x @ W + B) ** 2)


def entropy(x):
    return -jnp.mean(namoo.nn.log_softmax(x * 3.0)[..., 0] / 2)


def mixed(x):
    y = jnp.where(x > 0, jnp.exp(x), x * 2 - 1)
    return jnp.dot(y.reshape(-1), jnp.ones(y.size)) + x.std() * x.max() + 3 * jnp.sin(x).sum()


def powers(x):
    return (x**2 + 2**x + abs(x) ** 1.5 + x // 2 + x % 3).mean() - jnp.logaddexp(x, 1.0).sum()


def ruled(x):
    """A user's own rule is asked each time, and it meets programs on both sides."""

    @namoo.custom_vjp
    def scaled(y):
        return y * 2.0

    scaled.defvjp(lambda y: (y * 2.0, y), lambda y, ct: (ct * jnp.cos(y),))
    return (scaled(jnp.tanh(x)) * x).sum()


def controlled(x):
    total, _ = namoo.lax.scan(lambda c, row: (c + jnp.sin(row).sum(), None), 0.0, x)
    return namoo.lax.cond(total > 0, lambda: total * x.max(), lambda: total + x.min())


def shared(x):
    """Values that many operations read, and tangents that are the same."""
    y = x + 1.0
    z = jnp.sin(x) * x + x * y * x - (x - x.mean()) * (y - x)
    return (z * z + jnp.where(x > 0, y, x) * y).sum()


def looped(x):
    """Rules of functions that remember, in a derivative that a loop holds."""

    @namoo.custom_jvp
    def f(c):
        return c * c

    f.defjvps(lambda t, out, c: t * c + jnp.tanh(c) * t * 2.0)
    last, rows = namoo.lax.scan(lambda c, row: (f(c) * f(row), f(c + row)), x[0], x)
    return last.sum() + rows.sum()


def integers(x):
    return (x * jnp.arange(3) + jnp.argmax(x) + (x > 0)).sum()


FUNCTIONS = [layer, entropy, mixed, powers, ruled, controlled, shared, looped, integers]


def rows(f):
    return lambda x: namoo.vmap(f)(jnp.reshape(x, (2, 2, 3))).sum()


TRANSFORMS = {
    "grad": namoo.grad,
    "value_and_grad": namoo.value_and_grad,
    "vmap": lambda f: namoo.vmap(lambda x: f(x[None])),
    "grad of vmap": lambda f: namoo.grad(rows(f)),
    "vmap of grad": lambda f: namoo.vmap(lambda x: namoo.grad(f)(x[None])),
    "jvp": lambda f: lambda x: namoo.jvp(f, (x,), (jnp.cos(x),)),
    "linearize": lambda f: lambda x: namoo.linearize(f, x)[1](jnp.cos(x)),
    "jvp of grad": lambda f: lambda x: namoo.jvp(namoo.grad(f), (x,), (jnp.cos(x),)),
    "grad of grad": lambda f: namoo.grad(lambda x: (namoo.grad(f)(x) * W[:, 0]).sum()),
    "jacrev": lambda f: namoo.jacrev(lambda x: jnp.stack([f(x), f(x * 2.0)])),
    "jit of vjp": lambda f: lambda x: namoo.jit(namoo.vjp(f, x)[1])(jnp.ones(())),
}
FORWARD = {"jvp", "linearize", "jvp of grad", "grad of grad"}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_replayed_results_are_those_of_the_rules(f, name):
    if name in FORWARD and f is ruled:
        pytest.skip("a reverse rule alone")
    g = TRANSFORMS[name](f)
    wanted = namoo.jit(g)(X)
    for _ in range(5):
        found = g(X)
    for a, b in zip(namoo.tree.leaves(found), namoo.tree.leaves(wanted), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def described(f, *args):
    """All that a program says: its text, the types of its values, and its lines."""
    closed = namoo.make_jaxpr(f)(*args)
    types = [(v.aval, v.aval.weak_type) for eqn in closed.eqns for v in eqn.outvars]
    lines = [str(eqn.source) for eqn in closed.eqns]
    return re.sub("0x[0-9a-f]+", "", str(closed)), types, closed.out_avals, lines


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_answers_are_the_same_without_memory(f, name):
    if name in FORWARD and f is ruled:
        pytest.skip("a reverse rule alone")
    g = TRANSFORMS[name](f)
    namoo.config.update("memo", False)
    try:
        wanted, text = g(X), described(g, X)
    finally:
        namoo.config.update("memo", True)
    assert described(g, X) == text
    for _ in range(3):
        found = g(X)
    for a, b in zip(namoo.tree.leaves(found), namoo.tree.leaves(wanted), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.fixture
def by_rules(monkeypatch):
    """Describe a program that is written without memory."""

    def describe(f, *args):
        with monkeypatch.context() as patch:
            never = property(lambda self: False, lambda self, value: None)
            patch.setattr(StageTrace, "replays", never, raising=False)
            return described(f, *args)

    return describe


@pytest.mark.parametrize("name", [*TRANSFORMS, "nothing"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_programs_from_memory_are_those_of_the_rules(f, name, by_rules):
    if name in FORWARD and f is ruled:
        pytest.skip("a reverse rule alone")
    g = TRANSFORMS.get(name, lambda f: f)(f)
    wanted = by_rules(g, X)
    for _ in range(3):
        assert described(g, X) == wanted


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("f", [namoo.nn.relu, namoo.nn.gelu, jnp.logaddexp, jnp.matmul, jnp.where])
def test_mapped_axes_stay_where_the_rules_leave_them(f, axis, by_rules):
    x = jnp.ones((3, 3, 3))
    operands = {jnp.where: (x > 0, x, x), jnp.logaddexp: (x, x), jnp.matmul: (x, x)}.get(f, (x,))
    g = namoo.grad(lambda *xs: namoo.vmap(f, axis)(*xs).sum(), len(operands) - 1)
    wanted = by_rules(g, *operands)
    for _ in range(3):
        assert described(g, *operands) == wanted


def test_constants_are_listed_as_they_are_used(by_rules):
    def f(x):
        return namoo.jit(lambda y: namoo.vmap(lambda row: jnp.where(row > 0, x[0], row))(y))(X)

    wanted = by_rules(f, X)
    for _ in range(3):
        assert described(f, X) == wanted


def test_a_tangent_keeps_its_own_weak_type(by_rules):
    def f(x, t):
        return namoo.jvp(lambda x: jnp.sin(x) * 2.0, (x,), (t,))

    for args in ((1.0, jnp.ones(())), (jnp.ones(()), jnp.ones(())), (1.0, 2.0)):
        wanted = by_rules(f, *args)
        for _ in range(3):
            assert described(f, *args) == wanted


def step(params, x):
    """A gradient whose operations are all of functions that remember their programs."""

    def loss(params, x):
        for w, b in params:
            x = namoo.nn.relu(x @ w + b)
        return -namoo.nn.log_softmax(x).mean()

    return namoo.value_and_grad(lambda p: namoo.vmap(loss, (None, 0))(p, x).sum())(params)


# The first cotangent is a number: what becomes of it is not remembered.
@pytest.mark.parametrize(
    "run, asked",
    [(step, []), (namoo.make_jaxpr(step), ["broadcast_in_dim"])],
    ids=["eager", "staged"],
)
def test_little_is_bound_where_all_is_known(run, asked, monkeypatch):
    for _ in range(3):
        run([(W, B)], X)
    bound: list[str] = []

    def bind(self, *args, **options):
        bound.append(self.name)
        return original(self, *args, **options)

    original = Primitive.bind
    monkeypatch.setattr(Primitive, "bind", bind)
    run([(W, B)], X)
    assert bound == asked


def test_steps_that_meet_again_go_backward_as_one_program(monkeypatch):
    passes: list[int] = []
    original = transpose.transpose_equations
    counted = lambda *args: passes.append(1) or original(*args)  # noqa: E731
    for module in (transpose, linear_steps):
        monkeypatch.setattr(module, "transpose_equations", counted)
    for _ in range(4):
        passes.clear()
        step([(W, B)], X)
    assert not passes


def test_steps_that_meet_otherwise_are_told_apart():
    x, y = jnp.asarray([1.0, 2.0]), jnp.asarray([3.0, 5.0])
    orders = [
        (lambda x, y: jnp.sin(x) * y, np.cos([1, 2]) * y, np.sin([1, 2])),
        (lambda x, y: jnp.sin(y) * x, np.sin([3, 5]), np.cos([3, 5]) * x),
        (lambda x, y: jnp.sin(x) * x + y, np.cos([1, 2]) * x + np.sin([1, 2]), np.ones(2)),
        (lambda x, y: x + y, np.ones(2), np.ones(2)),
        (lambda x, y: jnp.sin(x), np.cos([1, 2]), np.zeros(2)),
        (lambda x, y: x, np.ones(2), np.zeros(2)),
        (lambda x: x, np.ones(2)),
    ]
    for _ in range(5):
        for f, *wanted in orders:
            pull = namoo.vjp(f, *(x, y)[: len(wanted)])[1]
            for scale in (1.0, 2.0):
                found = pull(jnp.full(2, scale))
                for a, b in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(a, scale * np.asarray(b), rtol=1e-5)


@pytest.mark.parametrize("second_call", [True, False])
def test_backward_programs_see_settings_and_do_not_grow_without_bound(monkeypatch, second_call):
    monkeypatch.setattr(linear_steps, "_LIMIT", 4)
    monkeypatch.setattr(linear_steps, "_passes", {})
    monkeypatch.setattr(trace_cache, "trace_on_second_call", second_call)

    def f(x, n):
        for _ in range(n):
            x = jnp.sin(x)
        return x

    for _ in range(2):
        for n in range(1, 9):
            for _ in range(4):
                namoo.grad(f)(0.5, n)
            assert len(linear_steps._passes) <= 4
    with namoo.debug_nans(True), pytest.raises(FloatingPointError):
        for _ in range(5):
            namoo.grad(jnp.sqrt)(-1.0)


@pytest.mark.parametrize("number", [2.0, -3.5, 7, 0.0, -0.0, math.inf])
def test_numbers_are_no_part_of_programs(number):
    g = namoo.grad(lambda x, n: (x * n).sum())
    for other in (1.0, 5, 1.0, 5):
        g(X, other)
    np.testing.assert_array_equal(g(X, number), np.full(X.shape, number, np.float32))
    assert np.signbit(namoo.vmap(lambda x: x * number)(jnp.ones(2))[0]) == (
        math.copysign(1.0, number) < 0
    )


def test_zeros_of_both_signs_are_two_options():
    filled = recalled(lambda x, number: jnp.full(x.shape, number))
    for _ in range(3):
        for zero in (0.0, -0.0):
            out = namoo.vmap(lambda x, zero=zero: filled(x, zero))(X)
            assert np.signbit(out).all() == (math.copysign(1.0, zero) < 0)


INDICES = [
    0,
    -1,
    slice(1, 3),
    slice(1, 4),
    slice(None, None, 2),
    (slice(None), 1),
    (slice(None), slice(0, 1)),
    (..., 2),
    (None, 2),
    np.array([0, 2]),
    jnp.array([3, 1]),
    (jnp.array([3, 1]), 0),
    np.array([True, False, True, True]),
    jnp.array([True, False, True, True]),
]


def test_indices_are_told_apart():
    for _ in range(3):
        for index in INDICES:
            wanted = np.zeros(X.shape, np.float32)
            wanted[np.asarray(index) if isinstance(index, namoo.Array) else index] = 2.0
            found = namoo.grad(lambda x, index=index: (x[index] * 2.0).sum())(X)
            np.testing.assert_array_equal(found, wanted)


def test_settings_are_part_of_what_is_known():
    g = namoo.grad(lambda x: jnp.sum(x * np.arange(3), dtype=float))
    for _ in range(3):
        assert g(X).dtype == np.float32
    with namoo.enable_x64(True):
        wide = jnp.asarray(np.asarray(X, np.float64))
        for _ in range(3):
            assert g(wide).dtype == np.float64
        assert namoo.vmap(lambda x: x.sum(dtype=float))(X).dtype == np.float64


def test_a_function_that_reads_values_is_never_replayed():
    f = recalled(lambda x: x * 2.0 if float(x.sum()) > 0 else x * 3.0)
    g = namoo.grad(lambda x: f(x).sum())
    for sign in (1, 1, 1, -1, -1):
        factor = 2.0 if sign > 0 else 3.0
        np.testing.assert_array_equal(g(sign * abs(X)), np.full(X.shape, factor))


def test_objects_that_become_arrays_are_asked_each_time():
    class Variable:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value

    w = Variable(W)
    for k in range(4):
        w.value = W * (k + 1.0)
        found = namoo.grad(lambda x: jnp.matmul(x, w).sum())(X)
        np.testing.assert_allclose(found, np.ones((4, 5)) @ w.value.T, rtol=1e-6)
        b = B * float(k)
        found = namoo.grad(lambda x, b=b: (jnp.dot(x, W) * Variable(b)).sum())(X)
        np.testing.assert_allclose(found, (np.ones((4, 5)) * b) @ W.T, rtol=1e-5)


def test_programs_do_not_grow_without_bound(monkeypatch):
    monkeypatch.setattr(trace_cache, "_LIMIT", 8)
    trace_cache.programs.clear()
    for n in range(40):
        namoo.vmap(lambda x, n=n: x[:n].sum() + n)(X)
        namoo.make_jaxpr(namoo.vmap(namoo.grad(lambda x: jnp.sin(x).sum())))(jnp.ones((n, 2)))
        assert 0 < len(trace_cache.programs) <= 8


def test_sizes_of_batches_that_come_once_make_no_programs():
    def sizes(numbers):
        for n in numbers:
            namoo.make_jaxpr(namoo.vmap(lambda x: jnp.sin(x) * 2.0))(jnp.ones((n, 7)))
        return sum(type(entry) is tuple for entry in trace_cache.programs.values())

    before = sizes([100, 101])
    assert sizes(range(102, 120)) == before
    assert sizes(range(102, 105)) == before + 6


def test_collectives_and_effects_are_not_remembered(capsys):
    def f(x):
        return jnp.sum(x, axis="i")

    for _ in range(3):
        out = namoo.vmap(lambda x: f(x).sum(), axis_name="i")(X)
        np.testing.assert_allclose(out, np.full(4, np.asarray(X).sum()), rtol=1e-5)

    printed = recalled(lambda x: namoo.debug.print("{}", x.shape) or x * 1.0)
    for _ in range(3):
        namoo.vmap(printed)(X)
    assert capsys.readouterr().out.count("Array(3") == 3


def test_mistakes_are_told_each_time():
    for _ in range(3):
        with pytest.raises(TypeError, match="matmul"):
            namoo.grad(lambda x: (x @ X).sum())(X)


@pytest.mark.parametrize("run", [namoo.vmap, namoo.make_jaxpr], ids=["eager", "staged"])
def test_warnings_are_given_each_time_once_at_the_line(run):
    with namoo.numpy_rank_promotion("warn"):
        for _ in range(4):
            with pytest.warns(UserWarning) as seen:
                run(lambda x: x.sum(dtype="float64") * jnp.add(x[0], x))(X[None])
            assert [str(w.message).split()[0] for w in seen] == ["Explicitly", "Following"]
            assert {w.filename for w in seen} == {__file__}
