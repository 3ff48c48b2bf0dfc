"""Dynamic dimensions: one compilation of native code for all sizes, with equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo._base.config import config
from namoo.api import dynamic_programs
from namoo.errors import InconclusiveDimensionOperation

SIZES = (1, 2, 7, 16, 33, 100)


def softmax(x, axis=-1):
    return namoo.nn.softmax(x, axis=axis)


def attention(q, k, v):
    return softmax(jnp.einsum("hqd,hkd->hqk", q, k) / 3) @ v


def heads_last(q, k, v):
    return jnp.einsum("hqk,khd->qhd", softmax(jnp.einsum("qhd,khd->hqk", q, k)), v)


def mlp(x, v, w):
    return jnp.tanh(jnp.tanh(x @ v + 1) @ w)


def loss_gradient(x, v, w):
    return namoo.grad(lambda ws: jnp.mean(mlp(x, *ws) ** 2))((v, w))


def cell(w):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h.sum()

    return step


def running(x):
    return lax.scan(lambda c, a: (c * 0.5 + a, c), jnp.zeros(4), x)


# Each row: a function, and the shapes of its arguments; b and n = 1 + b // 2 are dynamic.
PROGRAMS = {
    "elementwise": (lambda x, y: jnp.sin(x) * y + 1, "b, 5", "b, 5"),
    "broadcasts": (lambda x, y: x[:, None] * y[None] + y, "b", "n"),
    "sums": (lambda x: (x.sum(), x.sum(0), x.max(1), x.mean()), "b, 6"),
    "sums that may be empty": (
        lambda x: (x[1:].sum(), x[1:].sum((0, 2)), x[1:].max(1), x[1:, 0].T @ x[1:, 1]),
        "b, 5, 4",
    ),
    "sums of rows": (lambda x: (x.sum(1), jnp.argmax(x, 1)), "6, b"),
    "softmax": (softmax, "b, 10"),
    "softmax of rows": (softmax, "6, b"),
    "softmax of both": (softmax, "b, n"),
    "softmax of columns": (lambda x: softmax(x, 0), "b, 10"),
    "norms": (lambda x: (x - x.mean(1, keepdims=True)) / (1 + x.std(1, keepdims=True)), "b, 33"),
    "reshapes": (lambda x: (x.reshape(-1), x.reshape(x.shape[0], 2, 3).sum(1)), "b, 6"),
    "merged": (lambda x: x.reshape(-1, 3).sum(1), "b, n, 3"),
    "transposes": (lambda x: (x.transpose(0, 2, 1) + 1, x.transpose(2, 1, 0).sum(0)), "3, b, n"),
    "iota": (lambda x: jnp.arange(x.shape[0]) * x + x.shape[0], "b"),
    "slices": (lambda x: x[:, 1:4] + x[::-1, 2:5], "b, 6"),
    "differences": (lambda x: x[1:] - x[:-1], "b, 6"),
    "select": (lambda x: jnp.where(x > 0, x, jnp.arange(6.0)), "b, 6"),
    "gathers": (lambda x, y, i: (x[i % 10], y[i % y.shape[0]]), "10, 4", "b, 4", "n:int32"),
    "along an axis": (lambda x, i: jnp.take_along_axis(x, i[:, None] % 6, 1), "b, 6", "b:int32"),
    "dynamic slices": (lambda x, i: lax.dynamic_slice(x, (i[0], 0), (1, 4)), "b, 4", "n:int32"),
    "joined": (lambda x, y: jnp.concatenate([x, x[:, :1] * 2], 1).sum() + y, "b, 4", "n"),
    "joined along b": (lambda x, y: jnp.concatenate([x, y]), "b, 4", "n, 4"),
    "padded": (lambda x: jnp.pad(x, ((1, 2), (0, 3))), "b, 4"),
    "product": (lambda x, w: x @ w, "b, 12", "12, 7"),
    "wide product": (lambda x, w: jnp.maximum(x @ w, 0), "b, 64", "64, 200"),
    "transposed product": (lambda x, y: x.T @ y, "b, 12", "b, 7"),
    "square product": (lambda x, y: x @ y.T, "b, 12", "n, 12"),
    "vectors": (lambda x, v, u: (x @ v, u @ x), "b, 12", "12", "b"),
    "integers": (lambda x, y: x @ y, "b, 4:int32", "4, n:int32"),
    "mlp": (mlp, "b, 12", "12, 24", "24, 3"),
    "gradient": (loss_gradient, "b, 12", "12, 24", "24, 3"),
    "attention": (attention, "2, b, 8", "2, b, 8", "2, b, 8"),
    "heads last": (heads_last, "b, 2, 8", "n, 2, 8", "n, 2, 8"),
    "scan": (running, "b, 4"),
    "scan that may be empty": (lambda x: running(x[1:]), "b, 4"),
    "long scan": (lambda x, w: lax.scan(cell(w), jnp.zeros(64), x), "b, 64", "64, 64"),
    "reverse scan": (
        lambda x: lax.scan(lambda c, a: (c + a, c * 2), jnp.zeros(x.shape[1]), x, reverse=True),
        "5, b",
    ),
    "gradient of scan": (
        lambda x: namoo.grad(lambda s: running(x * s)[1].sum())(2.0),
        "b, 4",
    ),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda x: x - 1, x), "b, 12"),
    "while": (
        lambda x: lax.while_loop(lambda c: c.sum() < 10, lambda c: jnp.abs(c) + 1, x),
        "b, 3",
    ),
    "fori": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(3)), "b, 3"),
    "updates": (
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c.at[i].multiply(2.0), x),
        "b, 3",
    ),
    "vmap": (lambda x: namoo.vmap(lambda r: softmax(r) * r)(x), "b, 12"),
    "nested jit": (lambda x: namoo.jit(lambda r: r * 2)(x) + 1, "b, 12"),
    "complex": (lambda x: jnp.abs(jnp.exp(1j * x)).sum(0), "b, 3"),
    "narrow": (lambda x: (x * 2).sum(1).astype("float32"), "b, 3:bfloat16"),
    "one-hot": (lambda i: namoo.nn.one_hot(i, 5), "b:int32"),
    "random": (lambda x: x + namoo.random.normal(namoo.random.key(0), x.shape), "b, 3"),
}
# These call the host for operations whose native code needs the sizes.
ON_THE_HOST = {"sorted": "sort", "cumulative": "cumsum", "scatter": "scatter-add"}
PROGRAMS |= {
    "sorted": (lambda x: jnp.sort(x, 0), "b, 4"),
    "cumulative": (lambda x: jnp.cumsum(x, 0), "b, 4"),
    "scatter": (lambda x, i: jnp.zeros((10, 3)).at[i].add(x), "b, 3", "b:int32"),
}


def arguments(shapes, b):
    """The arguments of a row, for a size."""
    rng, sizes = np.random.default_rng(b), {"b": b, "n": 1 + b // 2}
    for text in shapes:
        text, _, dtype = text.partition(":")
        shape = [sizes[n] if n in sizes else int(n) for n in text.replace(" ", "").split(",")]
        if dtype == "int32":
            yield jnp.asarray(rng.integers(0, 9, shape), dtype)
        else:
            yield jnp.asarray(rng.normal(size=shape), dtype or "float32")


def dynamic(f, shapes):
    """A function under `jit`, with every axis that has a letter dynamic."""
    marks = []
    for text in shapes:
        names = enumerate(text.partition(":")[0].replace(" ", "").split(","))
        marks.append({axis: name for axis, name in names if name.isalpha()} or None)
    return namoo.jit(lambda *args: f(*args), dynamic={"args": marks})


def close(found, wanted, message):
    found, wanted = (namoo.tree.leaves(x) for x in (found, wanted))
    for x, y in zip(found, wanted, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), message
        np.testing.assert_allclose(x, y, rtol=5e-4, atol=5e-5, err_msg=message)


@pytest.fixture
def verified():
    namoo.config.update("verify", True)
    yield
    namoo.config.update("verify", False)


@pytest.mark.parametrize("part", range(3))
def test_programs_of_all_sizes(part, verified):
    for name, (f, *shapes) in [*PROGRAMS.items()][part::3]:
        g = dynamic(f, shapes)
        for b in SIZES:
            given = [*arguments(shapes, b)]
            close(g(*given), f(*given), f"{name}, b = {b}")
        record = g.explain()[0]
        assert len(g.explain()) == 1, name
        assert len(record.compiling) == 1, (name, record)
        host = [o.name for o in g.lower(*given).compile().host_operations()]
        assert host == [ON_THE_HOST[name]] if name in ON_THE_HOST else not host, name
        assert any("on the host" in note for note in record.notes) == bool(host), name


def test_specialised_programs_agree():
    for name in ("softmax of rows", "gradient", "attention", "long scan", "square product"):
        f, *shapes = PROGRAMS[name]
        given = [*arguments(shapes, 45)]
        close(dynamic(f, shapes)(*given), namoo.jit(f)(*given), name)


def test_one_trace_and_one_compilation():
    traces = 0

    def f(params, batch):
        nonlocal traces
        traces += 1
        loss = lambda w: jnp.mean((jnp.tanh(batch["x"] @ w) - batch["y"]) ** 2)  # noqa: E731
        return namoo.value_and_grad(loss)(params)

    g = namoo.jit(f, dynamic={"batch": "b, _"})
    w = jnp.ones((5, 3)) / 7
    for b in range(1, 101):
        rng = np.random.default_rng(b)
        batch = {name: rng.normal(size=(b, n)).astype("f4") for name, n in (("x", 5), ("y", 3))}
        loss, slope = g(w, batch)
        t = np.tanh(batch["x"] @ w)
        d = 2 * (t - batch["y"]) * (1 - t * t) / t.size
        np.testing.assert_allclose(loss, np.mean((t - batch["y"]) ** 2), rtol=1e-4)
        np.testing.assert_allclose(slope, batch["x"].T @ d, rtol=1e-3, atol=1e-5)
    assert traces == 1
    assert [len(r.compiling) for r in g.explain()] == [1]


def test_sizes_that_have_a_program_of_their_own():
    g = namoo.jit(lambda x: (x.sum(), x * 2), dynamic={"x": {0: "b"}})
    for b in (3, 0, 5, 0):
        total, twice = g(jnp.ones((b, 2)))
        assert total == 2 * b
        assert twice.shape == (b, 2)
    assert len(g.explain()) == 2  # one for all sizes, one for 0
    (b,) = namoo.export.symbolic_shape("b", constraints=["b >= 8"])
    g = namoo.jit(lambda x: x[:8] if x.shape[0] >= 8 else -x, dynamic={"x": {0: b}})
    assert [g(jnp.ones(n)).sum() for n in (8, 9, 3, 100)] == [8, 8, -3, 8]
    assert len(g.explain()) == 2


def test_where_axes_are_marked():
    x, y = jnp.ones((4, 3)), jnp.arange(5.0)
    f = lambda x, *rest, scale: (x.sum(0), scale * sum(r.sum() for r in rest))  # noqa: E731
    wanted = f(x, y, y, scale=y[1])
    for marks in (
        {"x": {0: "b"}, "rest": {0: "n"}},
        {"x": {-2: "b"}, "rest": [{0: "n"}, None]},
        {"x": "b, _", "rest": "n"},
        {"x": "b, 3", "rest": ["n", "n"]},
        {"x": namoo.export.symbolic_shape("b, 3")},
    ):
        close(namoo.jit(f, dynamic=marks)(x, y, y, scale=y[1]), wanted, marks)
    g = namoo.jit(lambda tree: tree["x"] * tree["y"][1], dynamic={"tree": {"x": {0: "b"}}})
    assert g({"x": y, "y": y}).shape == (5,)
    g = namoo.jit(lambda x, n: x * n, static_argnums=1, dynamic={"x": "b"})
    assert g(y, 2).sum() == 20
    g = namoo.jit(lambda x, y: x.sum() + y.sum(), dynamic={"x": "2*b", "y": "b"})
    assert g(jnp.ones(6), jnp.ones(3)) == 9  # sizes that are expressions


def test_other_transformations_see_an_ordinary_function():
    g = namoo.jit(lambda x: jnp.tanh(x).sum(), dynamic={"x": {0: "b"}})
    x = jnp.arange(6.0).reshape(2, 3)
    close(namoo.vmap(g)(x), jnp.tanh(x).sum(1), "vmap")
    close(namoo.grad(g)(x[0]), 1 - jnp.tanh(x[0]) ** 2, "grad")
    close(namoo.jit(g)(x[0]), jnp.tanh(x[0]).sum(), "jit")


@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_programs_that_are_compiled_for_each_size(engine, monkeypatch):
    def refuse(*_):
        raise InconclusiveDimensionOperation("a defect of the test")

    if engine == "native":
        monkeypatch.setattr(
            "namoo.engines.native.kernels.dynamic_loops.DynamicEmitter._choice", refuse
        )
    x = jnp.arange(12.0).reshape(4, 3)
    g = namoo.jit(
        lambda x: jnp.cos(x).sum(1) + engine.count("e"), engine=engine, dynamic={"x": {0: "b"}}
    )
    for n in (1, 2, 4):
        close(g(x[:n]), jnp.cos(x[:n]).sum(1) + engine.count("e"), engine)
    (record,) = g.explain()
    assert "compiled again for each size" in record.notes[0]


def test_without_the_cpp_part():
    f, *shapes = PROGRAMS["attention"]
    given = [np.asarray(x) for x in arguments(shapes, 9)]
    closed = dynamic(f, shapes).trace(*given)._traced.program
    run, _ = dynamic_programs.for_all_sizes(closed, "native", config.trace_id())
    entry, run.runtime_entry = run.runtime_entry, None
    try:
        (found,) = run.run(given)
    finally:
        run.runtime_entry = entry
    close(found, np.asarray(f(*map(jnp.asarray, given))), "Python")
    if entry is not None:
        close(entry(given)[0], found, "C++")
        for bad in (given[0][:1], given[0][:, :3], given[0].astype("f8"), given[0][0]):
            with pytest.raises(ValueError):
                entry([bad, *given[1:]])


def branches(x):
    return x if x.shape[0] > 10 else -x


REFUSED = {
    "x.shape[0] > 10": branches,
    "range(x.shape[0])": lambda x: [x[i] for i in range(x.shape[0])],
    "reshape(4, -1)": lambda x: x.reshape(4, -1),
    "jnp.ones(int(x.shape[0]))": lambda x: jnp.ones(int(x.shape[0])),
}


def test_programs_that_a_size_decides_name_the_line():
    for line, f in REFUSED.items():
        with pytest.raises(InconclusiveDimensionOperation) as caught:
            namoo.jit(f, dynamic={"x": {0: "b"}})(jnp.ones(8))
        text = str(caught.value)
        assert f"at {__file__}:{f.__code__.co_firstlineno + (f is branches)}" in text, text
        assert line in text
        assert "jnp.where" in text
        assert 'constraints=["' in text


def test_wrong_marks():
    x = jnp.ones(3)
    wrong: list[tuple[Any, type[Exception], str]] = [
        ({"z": {0: "b"}}, ValueError, "names the argument 'z'"),
        ("b", TypeError, "must be a dictionary"),
        ({"x": {1: "b"}}, ValueError, "marks axis 1 of x"),
        ({"x": "b, n"}, ValueError, "2 axes, and it has 1"),
        ({"x": {0: 3}}, TypeError, "names are strings"),
        ({"x": {0: "b"}, "y": {0: "b"}}, ValueError, "'b' has several sizes: x.shape[0] is 3, y"),
        ({"x": ["b"]}, ValueError, "does not fit the argument"),
    ]
    for marks, error, text in wrong:
        with pytest.raises(error) as caught:
            namoo.jit(lambda x, y: x, dynamic=marks)(x, jnp.ones(4))
        assert text in str(caught.value), (marks, str(caught.value))
    with pytest.raises(TypeError) as caught:
        namoo.jit(lambda x, y: x + y, dynamic={"x": {0: "b"}})(x, x)
    assert "The sizes b are dynamic" in caught.value.__notes__[0]
