"""Arithmetic on trees of arrays, against NumPy on the concatenated leaves."""

import math

import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
from namoo import nn, tree
from namoo.flatten_util import ravel_pytree

SHAPES = st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), min_size=1, max_size=4)


def build(shapes, seed):
    rng = np.random.default_rng(seed)
    leaves = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    return {"a": leaves[0], "rest": [{"x": leaf} for leaf in leaves[1:]], "f": jnp.tanh}


def flat(of):
    arrays = [np.ravel(x) for x in tree.leaves(of) if hasattr(x, "shape")]
    return np.concatenate(arrays) if arrays else np.zeros(0)


@given(SHAPES, st.integers(0, 9))
def test_arithmetic(shapes, seed):
    a, b = build(shapes, seed), build(shapes, seed + 1)
    x, y = flat(a), flat(b)
    np.testing.assert_allclose(flat(tree.add(a, b)), x + y, rtol=1e-6)
    np.testing.assert_allclose(flat(tree.add(a, b, scale=-0.5)), x - 0.5 * y, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(flat(tree.sub(a, b)), x - y, rtol=1e-6)
    np.testing.assert_allclose(flat(tree.scale(3.0, a)), 3 * x, rtol=1e-6)
    np.testing.assert_allclose(tree.vdot(a, b), x @ y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tree.global_norm(a), np.linalg.norm(x), rtol=1e-5)
    np.testing.assert_allclose(tree.global_norm(a, 1), np.abs(x).sum(), rtol=1e-5)
    assert tree.count(a) == x.size and tree.nbytes(a) == 4 * x.size
    assert not flat(tree.zeros_like(a)).any() and flat(tree.ones_like(a)).all()
    assert tree.add(a, b)["f"] is jnp.tanh
    assert tree.allclose(a, a)
    if x.size:
        assert not tree.allclose(a, tree.add(a, b, scale=1.0))
        np.testing.assert_allclose(flat(tree.full_like(a, 7)), np.full(x.size, 7.0))


def test_norms_as_optax():
    of = {"a": np.array([3.0, -4.0], np.float32), "b": np.array([[1.0]], np.float32)}
    for ord in (1, 2, math.inf):
        expected = optax.tree_utils.tree_norm(of, ord=ord)
        np.testing.assert_allclose(tree.global_norm(of, ord), expected, rtol=1e-6)
    np.testing.assert_allclose(tree.global_norm([jnp.array([3j, 4.0])]), 5.0)
    with pytest.raises(ValueError, match="orders"):
        tree.global_norm(of, 3)


def test_random_like():
    shapes = {"a": jnp.zeros((50, 50)), "b": namoo.ShapeDtypeStruct((50, 50), jnp.bfloat16)}
    found = tree.random_like(namoo.random.key(0), shapes)
    assert found["b"].dtype == jnp.bfloat16 and abs(float(found["a"].std()) - 1) < 0.1
    assert not np.allclose(found["a"], found["b"].astype(jnp.float32))
    init = nn.initializers.he_normal()
    found = tree.random_like(namoo.random.key(0), {"w": jnp.zeros((200, 10))}, init)
    assert abs(float(found["w"].std()) - math.sqrt(2 / 200)) < 0.02


def test_cast_leaves_integers():
    out = tree.cast({"w": jnp.ones(2), "n": jnp.arange(2), "s": "text"}, jnp.float16)
    assert out["w"].dtype == jnp.float16 and out["n"].dtype == jnp.int32 and out["s"] == "text"
    assert tree.cast(out, None) is out


def test_mismatch_is_an_error():
    with pytest.raises(ValueError, match="missing key 'b'"):
        tree.add({"a": 1.0, "b": 2.0}, {"a": 1.0})


def test_inside_jit_and_of_models():
    model = nn.MLP(3, 2, 4, 1, key=namoo.random.key(0))
    assert tree.count(model) == 3 * 4 + 4 + 4 * 2 + 2
    norm = namoo.jit(tree.global_norm)(model)
    np.testing.assert_allclose(norm, tree.global_norm(model), rtol=1e-6)


def test_summary():
    model = nn.MLP(3, 2, 4, 1, key=namoo.random.key(0))
    lines = tree.summary(model).splitlines()
    assert [line.split()[0] for line in lines] == [
        "path",
        "layers/0/weight",
        "layers/0/bias",
        "layers/1/weight",
        "layers/1/bias",
        "total",
    ]
    assert lines[-1].split() == ["total", "4", "arrays", "26", "104", lines[-1].split()[-1]]
    np.testing.assert_allclose(float(lines[-1].split()[-1]), tree.global_norm(model), rtol=1e-3)
    assert len({line.index("float32") for line in lines[1:-1]}) == 1
    shapes = tree.summary(namoo.eval_shape(lambda: model))
    assert shapes.splitlines()[1].endswith("-")
    by_layer = tree.summary(model, depth=2).splitlines()
    assert [line.split()[0] for line in by_layer[1:-1]] == ["layers/0", "layers/1"]
    assert repr(tree.summary([])) == tree.summary([])
    keys = tree.summary({"key": namoo.random.key(0), "n": jnp.arange(1000)})
    assert "1,000" in keys


def test_a_raveled_tree_comes_back_and_its_function_is_one_for_equal_trees():
    parts = {"a": jnp.arange(3.0), "b": [jnp.ones((2, 2)), 4.0]}
    vector, unravel = ravel_pytree(parts)
    assert tree.all(tree.map(lambda x, y: bool((x == y).all()), unravel(vector), parts))
    assert unravel(vector < 2.0)["a"].dtype == bool  # leaves of one type may get another
    traced = []

    @namoo.jit
    def run(v, f):
        traced.append(1)
        return f(v)

    for _ in range(2):
        vector, unravel = ravel_pytree(parts)
        run(vector, unravel)
    assert len(traced) == 1
    mixed = [jnp.arange(3.0), jnp.arange(2)]
    vector, unravel = ravel_pytree(mixed)
    assert [x.dtype for x in unravel(vector)] == [x.dtype for x in mixed]
    with pytest.raises(TypeError, match="but expected dtype float32"):
        unravel(vector < 2.0)
    with pytest.raises(ValueError, match=r"shape \(2,\), but expected \(5,\)"):
        unravel(vector[:2])
    assert ravel_pytree([])[1](jnp.zeros(0)) == []
