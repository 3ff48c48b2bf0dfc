"""Results in the memory of donated arguments: where that is safe, and only there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo._base.runtime import native as runtime
from namoo.engines.native import engine as engine_module
from namoo.engines.native import pipeline
from namoo.engines.native.engine import native
from namoo.engines.native.kernels import loops
from namoo.optim import adamw, apply_updates

N = 40
IDS = np.array([3, 0, 3, 17])


def address(x):
    return np.asarray(x).ctypes.data


def square(k=1):
    return np.random.default_rng(k).standard_normal((N, N)).astype("f4")


def line(k=1):
    return np.random.default_rng(k).standard_normal(N).astype("f4")


# (function, arguments, aliases, pairs that may share memory)
CASES = {
    "elementwise": (lambda x, y: x * y + 1, [square(), square(2)], {0: 0}, [(0, 0)]),
    "returned": (lambda x: x, [square()], {0: 0}, [(0, 0)]),
    "unused": (lambda x, y: y + 1, [square(), square(2)], {0: 0}, [(0, 0)]),
    "reshaped and back": (
        lambda x: jnp.sin(x.reshape(-1)).reshape(N, N),
        [square()],
        {0: 0},
        [(0, 0)],
    ),
    "two kernels that read both": (
        lambda x, y: (x + y, x - y),
        [square(), square(2)],
        {0: 0, 1: 1},
        [(1, 1)],
    ),
    "one kernel, two results": (
        lambda x, y: (x + y, (x + y) * x - y),
        [square(), square(2)],
        {0: 0, 1: 1},
        [(0, 0), (1, 1)],
    ),
    "one kernel, crossed": (
        lambda x, y: (y * 2, y * 2 - x),
        [square(), square(2)],
        {0: 0, 1: 1},
        [(0, 0), (1, 1)],
    ),
    "softmax of rows": (lambda x: namoo.nn.softmax(x), [square()], {0: 0}, [(0, 0)]),
    "softmax of columns": (lambda x: namoo.nn.softmax(x, axis=0), [square()], {0: 0}, None),
    "layer norm": (
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.std(x, axis=-1, keepdims=True),
        [square()],
        {0: 0},
        [(0, 0)],
    ),
    "sum of rows with a start": (lambda x, y: y + x.sum(1), [square(), line()], {1: 0}, [(1, 0)]),
    "sum, then what it replaced": (
        lambda x, y: (x.sum(1), y * 2),
        [square(), line()],
        {1: 0},
        None,
    ),
    "read after the stage": (
        lambda x, y: (x + y, ((x + y).sum(1, keepdims=True) * y)),
        [square(), square(2)],
        {1: 0},
        [],
    ),
    "transposed": (lambda x: x.T + 1, [square()], {0: 0}, []),
    "reversed": (lambda x: x[::-1] * 2, [line()], {0: 0}, []),
    "neighbours": (lambda x: x + jnp.roll(x, 1), [line()], {0: 0}, []),
    "broadcast of itself": (lambda x: x * x[0], [line()], {0: 0}, []),
    "gathered": (lambda x: x[jnp.argsort(x)], [line()], {0: 0}, None),
    "product": (lambda x, y: x @ y, [square(), square(2)], {0: 0}, []),
    "product and update": (
        lambda w, x, y: w - 0.1 * (x @ y),
        [square(), square(2), square(3)],
        {0: 0},
        [(0, 0)],
    ),
    "product and update, transposed": (
        lambda w, x, y: w.T - 0.1 * (x @ y),
        [square(), square(2), square(3)],
        {0: 0},
        [],
    ),
    "product with the operand": (
        lambda w, x: w - 0.1 * (x @ w),
        [square(), square(2)],
        {0: 0},
        [],
    ),
    "product before": (
        lambda w, x: jnp.sin(x @ w).sum() * w,
        [square(), square(2)],
        {0: 0},
        [(0, 0)],
    ),
    "written": (lambda x, y: x.at[IDS].set(y), [square(), square(2)[:4]], {0: 0}, [(0, 0)]),
    "added": (lambda x, y: x.at[IDS].add(y), [square(), square(2)[:4]], {0: 0}, [(0, 0)]),
    "added to itself": (lambda x: x.at[jnp.arange(N)[::-1]].add(x), [square()], {0: 0}, []),
    "slice written": (
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 0)),
        [square(), square(2)[:4], np.int32(5)],
        {0: 0},
        [(0, 0)],
    ),
    "cumulative": (lambda x: jnp.cumsum(x), [line()], {0: 0}, [(0, 0)]),
    "sorted": (lambda x: jnp.sort(x), [line()], {0: 0}, []),
    "loop, and read after": (
        lambda x, y: (lax.fori_loop(0, 3, lambda i, c: c @ y, x), x.sum()),
        [square(), square(2)],
        {0: 0},
        [],
    ),
    "loop of an odd number of turns": (
        lambda x, y: lax.fori_loop(0, 3, lambda i, c: c @ y, x),
        [square(), square(2)],
        {0: 0},
        [(0, 0)],
    ),
    "loop of an even number of turns": (
        lambda x, y: lax.fori_loop(0, 4, lambda i, c: c @ y, x),
        [square(), square(2)],
        {0: 0},
        [(0, 0)],
    ),
    "loop of no turn": (
        lambda x, y: lax.scan(lambda c, z: (c @ z, z), x, y)[0],
        [square(), np.zeros((0, N, N), "f4")],
        {0: 0},
        None,
    ),
    "two that change places": (
        lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[1] @ c[0], c[0]), (x, y)),
        [square(), square(2)],
        {0: 0, 1: 1},
        [(0, 0), (1, 1)],
    ),
    "two that change places, crossed": (
        lambda x, y: lax.fori_loop(0, 3, lambda i, c: (c[1] @ c[0], c[0]), (x, y)),
        [square(), square(2)],
        {0: 1, 1: 0},
        [],
    ),
    "loop that writes": (
        lambda x, y: lax.fori_loop(0, 5, lambda i, c: c.at[i].set(c[i + 1] + y), x),
        [square(), line()],
        {0: 0},
        [(0, 0)],
    ),
    "loop with its start": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: c @ x, x),
        [square()],
        {0: 0},
        [],
    ),
    "while": (
        lambda x, y: lax.while_loop(lambda c: c.sum() < 1e4, lambda c: c @ y + 1e3, x),
        [square(), square(2)],
        {0: 0},
        [(0, 0)],
    ),
    "small loop": (
        lambda x, y: lax.fori_loop(0, 3, lambda i, c: c * y + i, x),
        [line()[:3], line(2)[:3]],
        {0: 0},
        [(0, 0)],
    ),
    "other type": (lambda x: (x > 0).astype("i4"), [line()], {0: 0}, []),
    "other shape": (lambda x: x.reshape(-1) * 2, [square()], {0: 0}, []),
    "empty": (lambda x: x + 1, [np.zeros((0, 3), "f4")], {0: 0}, []),
}


def compiled(fun, args, aliases):
    return native.compile(namoo.make_jaxpr(fun)(*args), {"aliases": aliases})


@pytest.fixture(params=["runtime", "ctypes"])
def way(request, monkeypatch):
    """How programs are called: by the C++ runtime, or by Python."""
    if request.param == "ctypes":
        monkeypatch.setattr(engine_module, "runtime", None)
    elif runtime is None:
        pytest.skip("the C++ part was not built")


@pytest.mark.parametrize("name", CASES)
def test_what_may_share_memory(name, way):
    fun, args, aliases, expected = CASES[name]
    program = compiled(fun, args, aliases)
    pairs = list(program.made.in_place)
    if expected is not None:
        assert pairs == expected
    want = native.compile(namoo.make_jaxpr(fun)(*args))([np.array(a) for a in args])
    values = [np.array(a) for a in args]
    before = [a.ctypes.data for a in values]
    got = program(values)
    for i, o in aliases.items():
        assert (got[o].ctypes.data == before[i]) == ((i, o) in pairs)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("how", ["name", "view", "twice", "part of another", "list"])
def test_memory_that_others_have_is_left_alone(how, way):
    program = compiled(lambda x, y: (x + 1, y * 2), [line(), line(2)], {0: 0, 1: 1})
    assert list(program.made.in_place) == [(0, 0), (1, 1)]
    base = np.concatenate([line(), line()])
    values = [line(), line(2)]
    other = {
        "name": lambda: values[0],
        "view": lambda: values[0][3:],
        "twice": lambda: values.__setitem__(1, values[0]),
        "part of another": lambda: values.__setitem__(0, base[:N]),
        "list": lambda: [values[0]],
    }[how]()
    place = values[0].ctypes.data
    got = program(values)
    assert got[0].ctypes.data != place
    np.testing.assert_array_equal(values[0], line())
    np.testing.assert_array_equal(got[0], line() + 1)
    del other


def test_a_training_step_is_done_in_place():
    """Parameters and moments of every layer stay where they are, and their old arrays go."""
    rng = np.random.default_rng(0)
    sizes = [64, 128, 128, 10]
    params = [
        {"W": jnp.array(rng.standard_normal((a, b)), "f4"), "b": jnp.zeros(b)}
        for a, b in zip(sizes, sizes[1:], strict=False)
    ]
    x, y = jnp.array(rng.standard_normal((32, 64)), "f4"), jnp.ones((32, 10))
    optimizer = adamw(1e-3)
    state = optimizer.init(params)

    def loss(params, x, y):
        for layer in params[:-1]:
            x = namoo.nn.relu(x @ layer["W"] + layer["b"])
        return jnp.mean((x @ params[-1]["W"] + params[-1]["b"] - y) ** 2)

    def step(params, state, x, y):
        value, grads = namoo.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return apply_updates(params, updates), state, value

    plain = namoo.jit(step)
    donating = namoo.jit(step, donate_argnums=(0, 1))
    want = plain(*plain(params, state, x, y)[:2], x, y)
    params, state, _ = donating(params, state, x, y)
    leaves = namoo.tree.leaves((params, state))
    places = [address(a) for a in leaves]
    del leaves
    params, state, value = donating(params, state, x, y)
    after = [address(a) for a in namoo.tree.leaves((params, state))]
    assert after == places
    for a, b in zip(
        namoo.tree.leaves((params, state, value)), namoo.tree.leaves(want), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_layers_are_updated_as_soon_as_their_gradients_are_known():
    """So that what a layer keeps for its gradient is free when the one before it has its turn."""

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return x.sum()

    def step(weights, moments, x):
        grads = namoo.grad(loss)(weights, x)
        moments = [0.9 * m + g for m, g in zip(moments, grads, strict=True)]
        return [w - 0.1 * m for w, m in zip(weights, moments, strict=True)], moments

    layers = [square(i) for i in range(6)]
    closed = namoo.make_jaxpr(step)(layers, layers, square(9))
    plan = pipeline.result_of("allocate", pipeline.Source(closed))
    order = [plan.steps.index(plan.fusion.home[w]) for w in plan.graph.outputs[: len(layers)]]
    assert order == sorted(order, reverse=True)
    assert native.compile(closed, {"aliases": {i: i for i in range(12)}}).made.in_place == [
        (i, i) for i in range(12)
    ]


STEPS = [
    lambda a, b: a + b,
    lambda a, b: a * 2 - b,
    lambda a, b: a - a.mean(-1, keepdims=True) * b,
    lambda a, b: a + b.sum(0),
    lambda a, b: a.T * b,
    lambda a, b: a[::-1] + b,
    lambda a, b: a @ b * 0.1 + a,
    lambda a, b: a.at[1].add(b[0]),
    lambda a, b: jnp.cumsum(a, axis=1) - b,
    lambda a, b: namoo.nn.softmax(a) + b,
]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 7), st.integers(0, 7))),
    st.permutations([0, 1, 2]),
)
def test_random_programs_are_the_same_in_place(steps, order):
    def fun(*values):
        values = list(values)
        for step, i, j in steps:
            values.append(STEPS[step](values[i % len(values)], values[j % len(values)]))
        return values[-3:]

    args = [square(i)[:9, :9] for i in range(3)]
    want = native.compile(namoo.make_jaxpr(fun)(*args))([a.copy() for a in args])
    program = compiled(fun, args, dict(zip(range(3), order, strict=True)))
    got = program([a.copy() for a in args])
    for x, y in zip(got, want, strict=True):
        np.testing.assert_array_equal(x, y)


def test_layers_that_are_alike_are_looked_at_once(monkeypatch):
    def layers(count):
        def step(weights, x):
            return [w - 0.1 * jnp.sin(w) * x for w in weights]

        looked.clear()
        closed = namoo.make_jaxpr(step)([square()] * count, square(2))
        program = native.compile(closed, {"aliases": {i: i for i in range(count)}})
        assert len(program.made.in_place) == count
        return len(looked)

    looked, look = [], loops._reads_before_store
    monkeypatch.setenv("NAMOO_CACHE", "off")
    monkeypatch.setattr(loops, "_reads_before_store", lambda *args: looked.append(1) or look(*args))
    assert layers(3) == layers(9) == 1
