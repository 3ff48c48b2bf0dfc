"""Indexing, `.at` updates, and the functions of `lax` that cut, join, gather and scatter.

NumPy is the oracle of where elements go; JAX of types, bounds, derivatives and errors.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jax import lax as jlax

import namoo
from namoo import errors, lax
from namoo._base import dtypes
from namoo._base.config import Scope
from namoo.control.scatter_apply import scatter_apply
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.core.jaxpr import eval_jaxpr
from namoo.core.primitive import Linear
from namoo.numpy import taking
from namoo.numpy.at import IndexUpdateHelper
from namoo.numpy.indexing import get, getitem
from namoo.primitives import elementwise as ew
from namoo.primitives import gather as ga
from namoo.primitives import slicing as sl
from namoo.primitives.index_take import index_take
from namoo.transforms.batch import Axis, batch, batch_to
from namoo.transforms.jvp import jvp
from namoo.transforms.linear import linearize
from namoo.transforms.stage import stage
from namoo.transforms.transpose import backward_pass


def ours(x):
    """NumPy and JAX arrays as ours; other things as they are."""
    if isinstance(x, jax.Array):
        return EagerArray(np.asarray(x), x.weak_type)
    if isinstance(x, np.ndarray) and x.dtype != object:
        return EagerArray(x if x.dtype.names else np.asarray(x, dtypes.dtype_of(x)))
    return x


def values(x):
    return x._value if isinstance(x, EagerArray) else np.asarray(x)


def staged(fun, *args):
    """`fun` run through a program; all arguments are traced."""
    args = [ours(a) for a in args]
    jaxpr, consts = stage(lambda *xs: [fun(*xs)], [aval_of(a) for a in args])
    return eval_jaxpr(jaxpr, consts, *args)[0]


def names(fun, *args):
    """The operations of the program of `fun`."""
    jaxpr, _ = stage(lambda *xs: [fun(*xs)], [aval_of(ours(a)) for a in args])
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def gradient(fun, ct, *args):
    """Cotangents of all arguments of `fun`."""
    outs, _, jaxpr, consts = linearize(lambda *xs: [fun(*xs)], args, [True] * len(args))
    cts = backward_pass(jaxpr, consts, [Linear(v.aval) for v in jaxpr.invars], [ours(ct)])
    zeros = [np.zeros(a.shape, a.dtype) for a in args]
    return [values(c) if isinstance(c, EagerArray) else z for c, z in zip(cts, zeros, strict=True)]


def mapped(fun, *args):
    """`fun` over the leading axis of its arguments."""
    axis = Axis(args[0].shape[0])
    outs, dims = batch(lambda *xs: [fun(*xs)], axis, args, [0] * len(args))
    return values(batch_to(axis, outs[0], dims[0]))


def at(x, index):
    return IndexUpdateHelper(x)[index]


X = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)


def entries(n, array_shape):
    """Entries of an index for one axis of length n."""
    bound = st.none() | st.integers(-n - 2, n + 2)
    step = st.none() | st.integers(1, 3) | st.integers(-3, -1)
    inside = st.integers(-n, n - 1)
    arrays = st.lists(inside, min_size=6, max_size=6).map(
        lambda v: np.array(v, np.int32)[: int(np.prod(array_shape))].reshape(array_shape)
    )
    return st.one_of(st.builds(slice, bound, bound, step), inside, arrays, st.just(slice(None)))


@st.composite
def indices(draw, shape):
    """A tuple that NumPy accepts as an index of an array of this shape."""
    array_shape = draw(st.sampled_from([(), (1,), (2,), (2, 3), (1, 3)]))
    used = draw(st.integers(0, len(shape)))
    dots = draw(st.sampled_from([None, "front", "middle", "end"]))
    axes = list(range(len(shape)))
    if dots == "front":
        axes = axes[len(shape) - used :]
    elif dots == "middle":
        axes = axes[: used // 2] + axes[len(shape) - (used - used // 2) :]
    items = [draw(entries(shape[d], array_shape)) for d in axes[:used]]
    if dots is not None:
        items.insert({"front": 0, "middle": used // 2, "end": used}[dots], ...)
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), draw(st.sampled_from([None, None, True])))
    return tuple(items)


def traced_parts(index):
    """The places of an index that can be traced: integers and arrays of integers."""
    return [i for i, item in enumerate(index) if isinstance(item, np.ndarray) or type(item) is int]


def fill_in(index, parts, items):
    out = list(index)
    for i, item in zip(parts, items, strict=True):
        out[i] = item
    return tuple(out)


@example((None, 0, ..., 0, np.array([0, 0], np.int32)))
@given(indices(X.shape))
def test_getitem_is_numpys(index):
    wanted = X[index]
    given_index = tuple(ours(i) for i in index)
    for fun in (getitem, get):
        found = fun(EagerArray(X), given_index)
        np.testing.assert_array_equal(values(found), wanted)
    parts = traced_parts(index)
    traced = [np.asarray(index[i], np.int32) for i in parts]
    found = staged(lambda x, *items: getitem(x, fill_in(index, parts, items)), X, *traced)
    np.testing.assert_array_equal(values(found), wanted)


@example((slice(None), 0, ..., np.array([0, 1], np.int32)), "set")
@given(indices(X.shape), st.sampled_from(["set", "add", "subtract", "multiply", "min", "max"]))
def test_updates_are_numpys(index, method):
    ufunc = {"min": np.minimum, "max": np.maximum}.get(method) or getattr(np, method, np.add)
    y = np.linspace(-2, 3, max(X[index].size, 1), dtype=np.float32)[: X[index].size]
    y = y.reshape(X[index].shape)
    wanted = X.copy()
    if method == "set":
        wanted[index] = y
    else:
        ufunc.at(wanted, index, y)

    def change(x, y, *items):
        return getattr(at(x, fill_in(index, parts, items)), method)(y)

    parts = traced_parts(index)
    concrete = [ours(index[i]) for i in parts]
    traced = [np.asarray(index[i], np.int32) for i in parts]
    eager = change(EagerArray(X), EagerArray(y), *concrete)
    np.testing.assert_allclose(values(eager), wanted, rtol=1e-6)
    np.testing.assert_allclose(values(staged(change, X, y, *traced)), wanted, rtol=1e-6)


MASKS = [
    X > 30,
    X[:, 0, 0] > 10,
    (slice(None), X[0, :, 0] > 6),
    (X[:, 0, 0] > 10, slice(None), np.array([0, 1])),
    (..., np.array([True, False, True, False, True])),
    (None, X > 30),
    np.zeros((3, 4), bool),
    True,
    False,
    (slice(None), False, None),
    np.True_,
    (0, np.array(True)),
]


@pytest.mark.parametrize("index", MASKS, ids=str)
def test_masks(index):
    wanted = X[index]
    np.testing.assert_array_equal(values(getitem(EagerArray(X), index)), wanted)
    np.testing.assert_array_equal(values(get(EagerArray(X), index)), wanted)
    np.testing.assert_array_equal(values(staged(lambda x: getitem(x, index), X)), wanted)
    changed = X.copy()
    changed[index] = -1
    np.testing.assert_array_equal(values(at(EagerArray(X), index).set(-1.0)), changed)
    np.testing.assert_array_equal(values(staged(lambda x: at(x, index).set(-1.0), X)), changed)


def test_masks_of_traced_values_with_known_numbers():
    x = EagerArray(X)
    found = gradient(lambda x: getitem(x, ew.gt(x, np.float32(30))), np.ones(29, np.float32), x)
    np.testing.assert_array_equal(found[0], X > 30)


def test_lists_inside_an_index():
    x = EagerArray(X)
    np.testing.assert_array_equal(values(getitem(x, ([0, 2], 1))), X[[0, 2], 1])
    np.testing.assert_array_equal(values(getitem(x, ([], 1))), X[[], 1])
    found = staged(lambda x, i: getitem(x, ([0, i], [[1], [i]])), X, np.int32(2))
    np.testing.assert_array_equal(values(found), X[[0, 2], [[1], [2]]])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int16", "int4", "uint64"])
@pytest.mark.parametrize("trace", [False, True])
def test_index_types(dtype, trace):
    x = np.arange(300, dtype=np.float32)
    kind = np.dtype(getattr(dtypes, dtype))
    index = np.array([3, 0, 7 if dtype == "int4" else 120]).astype(kind)
    run = staged if trace and dtype != "uint64" else lambda f, *a: f(*map(ours, a))
    np.testing.assert_array_equal(values(run(getitem, x, index)), x[index.astype(int)])
    if kind.kind != "u":
        index = np.array([-1, -4]).astype(kind)
        np.testing.assert_array_equal(values(run(getitem, x, index)), x[[-1, -4]])


def test_random_keys():
    keys = np.arange(24, dtype=np.uint32).view(dtypes.KeyDType("threefry2x32").numpy)
    keys = keys.reshape(3, 4)
    x = EagerArray(keys)
    for index in (1, (slice(None), 2), np.array([0, 2]), (0, 0), keys["k0"] > 8):
        assert (values(getitem(x, index)) == keys[index]).all()
        assert (values(get(x, index)) == keys[index]).all()
        assert getitem(x, index).dtype == dtypes.KeyDType("threefry2x32")
    changed = values(at(x, 1).set(getitem(x, 0)))
    assert (changed[1] == keys[0]).all() and (changed[2] == keys[2]).all()
    filled = values(taking.take(x, np.array([0, 9]), axis=0))
    assert (filled["k0"][1] == 0xFFFFFFFF).all()


def test_weak_types_are_the_operands():
    index = np.array([0])
    for fun in (
        lambda x: getitem(x, 0),
        lambda x: getitem(x, index),
        lambda x: get(x, index),
        lambda x: at(x, 0).set(2),
        lambda x: at(x, index).add(np.float32(2)),
        lambda x: taking.take(x, index),
        lambda x: sl.dynamic_slice(x, (np.int32(0),), (1,)),
    ):
        for weak in (True, False):
            x = EagerArray(np.ones(1, np.float32), weak)
            assert fun(x).weak_type is weak
            jaxpr, _ = stage(lambda x, fun=fun: [fun(x)], [x.aval])
            assert jaxpr.outvars[0].aval.weak_type is weak


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (1, ["slice", "squeeze"]),
        (slice(1, None), ["slice"]),
        (slice(None, None, -1), ["rev"]),
        (slice(None, None, -2), ["slice", "rev"]),
        (None, ["broadcast_in_dim"]),
        ((...,), []),
        ((slice(None), slice(0, 4)), []),
        (np.array([0, 2]), ["gather"]),
    ],
    ids=str,
)
def test_static_indices_become_slices(index, wanted):
    assert names(lambda x: getitem(x, index), X) == wanted


def test_traced_integers_become_dynamic_slices():
    found = names(lambda x, i: getitem(x, (i, 0)), X, np.int32(1))
    assert "dynamic_slice" in found and "gather" not in found
    assert "gather" in names(lambda x, i: getitem(x, i), X, np.array([1]))


FAR = np.array([0, 5, -1, -7, 2])
M = np.arange(15.0, dtype=np.float32).reshape(3, 5)
INDEX_CASES = {
    "rows": FAR,
    "columns": (slice(None), FAR),
    "points": (FAR, FAR),
    "point and slice": (FAR, slice(1, 3)),
    "rows backward": (slice(None, None, -1), FAR),
    "many": (FAR.reshape(5, 1), np.array([1, 9])),
    "0-d": np.array(7),
    "0-d negative": (slice(1, None), np.array(-9)),
}
MODES = [None, "fill", "clip", "promise_in_bounds"]


def jax_index(index):
    if isinstance(index, tuple):
        return tuple(map(jax_index, index))
    return jnp.asarray(index) if isinstance(index, np.ndarray) else index


def assert_same(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.weak_type == wanted.weak_type
    np.testing.assert_allclose(values(found), np.asarray(wanted), rtol=1e-6)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", INDEX_CASES)
def test_reading_out_of_bounds(name, mode):
    index = INDEX_CASES[name]
    x = M.astype(np.int8 if name == "columns" else np.float32)
    wanted = jnp.asarray(x).at[jax_index(index)].get(mode=mode)
    assert_same(at(ours(x), index).get(mode=mode), wanted)
    if mode is None:
        assert_same(getitem(ours(x), index), wanted)
        assert_same(staged(lambda x: getitem(x, index), x), wanted)


@pytest.mark.parametrize("mode", [None, "clip"], ids=str)
@pytest.mark.parametrize("method", ["set", "add", "divide", "power"])
def test_writing_out_of_bounds(mode, method):
    def theirs(x):
        return [
            getattr(x.at[jax_index(index)], method)(2.5, mode=mode)
            for index in INDEX_CASES.values()
        ]

    for (name, index), wanted in zip(INDEX_CASES.items(), jax.jit(theirs)(M), strict=True):
        assert_same(getattr(at(ours(M), index), method)(2.5, mode=mode), wanted)
        found = staged(lambda x, i=index: getattr(at(x, i), method)(2.5, mode=mode), M)
        np.testing.assert_allclose(values(found), np.asarray(wanted), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("index", [7, -9, (1, 5), (slice(None), -6), -1], ids=str)
@pytest.mark.parametrize("wrap", [True, False])
def test_integers_out_of_bounds_with_a_mode(index, mode, wrap):
    place, options = jnp.asarray(M).at[index], {"mode": mode, "wrap_negative_indices": wrap}
    assert_same(at(ours(M), index).get(**options), place.get(**options))
    assert_same(at(ours(M), index).set(-1.0, **options), place.set(-1.0, **options))


@pytest.mark.parametrize("index", [3, -4, (0, 5), (slice(None), -6), (1, np.int64(5))], ids=str)
def test_integers_out_of_bounds_are_errors(index):
    """Not so in JAX: see docs/differences.md."""
    with pytest.raises(IndexError, match=r"out of bounds for axis \d with size \d.*\(3, 5\)"):
        getitem(ours(M), index)
    with pytest.raises(IndexError, match="out of bounds"):
        staged(lambda x: getitem(x, index), M)
    with pytest.raises(IndexError, match="out of bounds"):
        at(ours(M), index).set(0.0)


def test_fill_values():
    for fill in (-3, 2.5, np.float32(1), EagerArray(np.array(7, np.float32))):
        wanted = float(values(fill)) if isinstance(fill, EagerArray) else fill
        found = at(ours(M), FAR).get(mode="fill", fill_value=fill)
        np.testing.assert_array_equal(values(found)[1], np.full(5, wanted, np.float32))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros(3, np.int32), 1.6),
        (np.zeros(3, np.int32), np.float32(1.6)),
        (np.zeros(3, np.float32), 1j),
        (np.zeros(3, bool), 1),
        (np.zeros(3, np.int8), np.int32(300)),
        (np.zeros(3, np.float16), np.float32(1)),
        (np.zeros(3, np.int8), 300),
        (np.zeros(3, np.uint8), -1),
        (np.zeros(3, np.float16), np.int32(3)),
        (np.zeros(3, np.int32), True),
        (np.zeros(3, np.float32), np.float64(2)),
        (np.zeros(3, np.float32), [1.0, 2.0]),
        (np.zeros(3, np.float32), np.array([[1.0], [2.0]])),
    ],
    ids=lambda v: f"{getattr(v, 'dtype', type(v).__name__)}",
)
def test_values_take_the_arrays_type(x, y):
    """Values are combined in the common type; where that loses something, both warn."""
    index = np.array([0, 0]) if np.ndim(y) < 2 else np.array([[0], [1]])
    methods = ["set", "max"] if x.dtype == bool else ["set", "add", "min"]
    for method in methods:
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            wanted = getattr(jnp.asarray(x).at[jnp.asarray(index)], method)(y)
        lossy = (FutureWarning, np.exceptions.ComplexWarning)
        theirs = [w for w in theirs if w.category in lossy]
        with warnings.catch_warnings(record=True) as own:
            warnings.simplefilter("always")
            assert_same(getattr(at(ours(x), index), method)(y), wanted)
        assert [w.category for w in own] == [w.category for w in theirs]


GRADS = {
    "row": lambda get, x: get(x)[1],
    "slice": lambda get, x: get(x)[1:, ::-2],
    "new axes": lambda get, x: get(x)[:, None, 2],
    "repeated rows": lambda get, x: get(x)[np.array([0, 2, 0, -1])],
    "points": lambda get, x: get(x)[np.array([0, 2, 0]), np.array([1, -1, 1])],
    "outer": lambda get, x: get(x)[np.array([[0], [2]]), np.array([1, 4, 1])],
    "in front": lambda get, x: get(x)[None, np.array([0, 1]), None, np.array([4, 4])],
    "mask": lambda get, x: get(x)[M > 6],
}


class Plain:
    """Gives our arrays brackets."""

    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return getitem(self.x, index)


@pytest.mark.parametrize("name", GRADS)
def test_gradient_of_reading(name):
    wanted, pull = jax.vjp(lambda x: GRADS[name](lambda x: x, x), jnp.asarray(M))
    ct = np.cos(np.arange(wanted.size, dtype=np.float32)).reshape(wanted.shape)
    (found,) = gradient(lambda x: GRADS[name](Plain, x), ct, ours(M))
    np.testing.assert_allclose(found, np.asarray(pull(jnp.asarray(ct))[0]), rtol=1e-6)
    _, (tangent,) = jvp(lambda x: [GRADS[name](Plain, x)], [ours(M)], [ours(np.sin(M))])
    np.testing.assert_allclose(values(tangent), np.sin(np.asarray(GRADS[name](lambda x: x, M))))


UPDATE_INDICES = {
    "row": 1,
    "strides": (slice(None), slice(None, None, 2)),
    "backward": (slice(None, None, -1), 0),
    "repeated rows": np.array([0, 2, 0]),
    "points": (np.array([0, 2, 0]), np.array([1, 0, 1])),
    "out of bounds": np.array([0, 7, 1]),
}


@pytest.mark.parametrize("method", ["set", "add", "subtract", "multiply", "min", "max", "divide"])
def test_gradient_of_writing(method):
    x = np.sin(np.arange(15.0, dtype=np.float32)).reshape(3, 5) + 2
    ct = np.linspace(1, 2, 15, dtype=np.float32).reshape(3, 5)
    ys = []
    for name, index in UPDATE_INDICES.items():
        there = x[np.clip(index, 0, 2) if name == "out of bounds" else index]
        y = (np.cos(np.arange(there.size)).reshape(there.shape) + 2).astype(np.float32)
        if method in ("min", "max"):  # Some are equal, and share the derivative.
            y.flat[:3] = there.flat[:3]
        ys.append(y)

    def write(x, index, y):
        if method not in ("multiply", "divide"):
            return getattr(x.at[index], method)(y)
        # JAX has these derivatives only for indices that are promised to be unique.
        factor = jnp.exp(jnp.zeros_like(x).at[index].add(jnp.log(y)))
        return x * factor if method == "multiply" else x / factor

    @jax.jit
    def theirs(x, ys):
        indices = map(jax_index, UPDATE_INDICES.values())
        return [
            jax.vjp(lambda x, y, i=i: write(x, i, y), x, y)[1](ct)
            for i, y in zip(indices, ys, strict=True)
        ]

    for (name, index), y, wanted in zip(UPDATE_INDICES.items(), ys, theirs(x, ys), strict=True):
        found = gradient(lambda x, y, i=index: getattr(at(x, i), method)(y), ct, ours(x), ours(y))
        for f, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(f, np.asarray(w), rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_product_with_zeros_has_a_derivative():
    x, index = np.full(2, 3.0, np.float32), np.array([0, 0, 0, 1])
    for y in ([2, 0, 5, 7], [0, 0, 5, 7], [2, 3, 5, 0]):
        y = np.array(y, np.float32)
        ct = np.ones(2, np.float32)
        _, found = gradient(lambda x, y: at(x, index).multiply(y), ct, ours(x), ours(y))
        others = [np.prod(y[[j for j in range(3) if j != i]]) for i in range(3)]
        np.testing.assert_allclose(found, 3 * np.array([*others, 1]))


@pytest.mark.parametrize("name", UPDATE_INDICES)
def test_batches_are_loops(name):
    index = UPDATE_INDICES[name]
    xs = np.random.default_rng(0).normal(size=(4, 3, 5)).astype(np.float32)
    wanted = np.stack([values(getitem(ours(x), index)) for x in xs])
    np.testing.assert_array_equal(mapped(lambda x: getitem(x, index), ours(xs)), wanted)
    ys = wanted + 1
    wanted = np.stack([values(at(ours(x), index).add(y)) for x, y in zip(xs, ys, strict=True)])
    found = mapped(lambda x, y: at(x, index).add(y), ours(xs), ours(ys))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_batches_of_indices():
    xs = np.random.default_rng(0).normal(size=(4, 3, 5)).astype(np.float32)
    rows, columns = np.array([0, 2, -1, 7]), np.array([[0, 1], [4, 4], [-1, 9], [2, 3]])
    for fun in (
        lambda x, i, j: getitem(x, i),
        lambda x, i, j: getitem(x, (slice(None), j)),
        lambda x, i, j: getitem(x, (i, j)),
        lambda x, i, j: at(x, i).set(0.0),
        lambda x, i, j: at(x, (i, j)).add(1.0),
        lambda x, i, j: at(x, (slice(None), j)).max(0.0),
        lambda x, i, j: taking.take(x, j, axis=1),
    ):
        args = [ours(a) for a in (xs, rows, columns)]
        wanted = [
            values(fun(ours(x), ours(np.asarray(i)), ours(j)))
            for x, i, j in zip(xs, rows, columns, strict=True)
        ]
        np.testing.assert_allclose(mapped(fun, *args), np.stack(wanted), rtol=1e-6)
        one = mapped(lambda i, j, fun=fun: fun(ours(xs[0]), i, j), *args[1:])
        wanted = [
            values(fun(ours(xs[0]), ours(np.asarray(i)), ours(j)))
            for i, j in zip(rows, columns, strict=True)
        ]
        np.testing.assert_allclose(one, np.stack(wanted), rtol=1e-6)


def test_gradient_of_a_batch_of_overlapping_slices():
    starts, numbers = ours(np.array([0, 1, 1, 9])), np.arange(6.0, dtype=np.float32)

    def windows(x):
        def one(start):
            return [sl.dynamic_slice(x, (start,), (3,))]

        return batch(one, Axis(4), [starts], [0])[0][0]

    (found,) = gradient(windows, np.ones((4, 3), np.float32), ours(numbers))
    np.testing.assert_array_equal(found, [1, 3, 3, 3, 1, 1])


OUTSIDE = {
    "get": lambda np_, v, m: v[7],
    "get from the end": lambda np_, v, m: v[-9],
    "NumPy's integer": lambda np_, v, m: v[np.int64(9)],
    "two": lambda np_, v, m: m[5, -9],
    "beside a slice": lambda np_, v, m: m[0:2, 7],
    "beside a new axis": lambda np_, v, m: m[None, 7],
    "beside an array": lambda np_, v, m: m[7, np_.array([0, 1])],
    "at.get": lambda np_, v, m: v.at[7].get(),
    "set": lambda np_, v, m: v.at[7].set(1.0),
    "add from the end": lambda np_, v, m: v.at[-9].add(1.0),
    "set a row": lambda np_, v, m: m.at[7, :].set(1.0),
}


@pytest.mark.parametrize("case", OUTSIDE)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_setting_decides_whether_integers_out_of_bounds_are_clamped(case, compiled):
    wrap = (lambda f: namoo.jit(f)) if compiled else (lambda f: f)
    x, m = np.arange(5.0, dtype=np.float32), np.arange(6.0, dtype=np.float32).reshape(2, 3)
    theirs = OUTSIDE[case](jnp, jnp.asarray(x), jnp.asarray(m))
    run = wrap(lambda v, m: OUTSIDE[case](namoo.numpy, v, m))
    with pytest.raises(IndexError, match="out of bounds for axis"):
        run(ours(x), ours(m))
    with Scope("check_static_indices", False):
        np.testing.assert_array_equal(run(ours(x), ours(m)), theirs)


ERRORS = [
    [0, 1],
    range(2),
    1.0,
    np.array([1.0]),
    "a",
    object(),
    (0, 0, 0),
    (0, 0, None, ..., slice(None)),
    (..., ...),
    np.array([True, False]),
    (slice(None), np.ones((3, 5), bool)),
    slice(1.0, None),
    slice(None, None, 0),
    (np.array([0, 1, 2]), np.array([0, 1])),
    (np.array([True, True, True]), np.array([0, 1])),
    np.array([None, 1]),
]


@pytest.mark.parametrize("index", ERRORS, ids=lambda i: str(i).partition(" at 0x")[0][:30])
def test_wrong_indices_raise_what_jax_raises(index):
    with pytest.raises(Exception) as theirs:
        jnp.asarray(M)[jax_index(index)] if not _is_object(index) else jnp.asarray(M)[index]
    for fun in (getitem, get, lambda x, i: at(x, i).set(0.0)):
        with pytest.raises(Exception) as own:
            fun(ours(M), index)
        assert isinstance(own.value, type(theirs.value)), own.value


def _is_object(index):
    return isinstance(index, np.ndarray) and index.dtype == object


def test_messages_say_what_to_write():
    with pytest.raises(TypeError, match=r"x\[jnp.array\(\[0, 1\]\)\]"):
        getitem(ours(M), [0, 1])
    with pytest.raises(IndexError, match=r"but 3 were indexed; its shape is \(3, 5\)"):
        getitem(ours(M), (0, 0, 0))
    with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"jnp.where\(mask, x, 0\)"):
        staged(lambda x: getitem(x, ew.gt(x, np.float32(3))), M)
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="known values"):
        staged(lambda x: at(x, ew.gt(x, np.float32(3))).set(0.0), M)
    with pytest.raises(IndexError, match="dynamic_slice_in_dim"):
        staged(lambda x, i: getitem(x, slice(i, None)), M, np.int32(1))
    with pytest.raises(ValueError, match=r"values have shape \(3,\), but x\[index\] has shape"):
        at(ours(M), 0).set(ours(np.zeros(3, np.float32)))
    with pytest.raises(ValueError, match="fewer dimensions"):
        at(ours(M), 0).set(ours(np.zeros((1, 1, 5), np.float32)))
    with pytest.raises(ValueError, match="one of 'clip'"):
        at(ours(M), 0).get(mode="wrap")
    with pytest.raises(TypeError, match="scatter-add does not accept dtype bool"):
        at(ours(M > 3), 0).add(True)


def both(name, *args, **options):
    """Call a function of `jnp` and ours on the same arguments; the same result or error."""
    try:
        wanted = getattr(jnp, name)(*map(jax_index, args), **options)
    except Exception as error:
        with pytest.raises(type(error)):
            getattr(taking, name)(*map(ours, args), **options)
        return
    found = getattr(taking, name)(*map(ours, args), **options)
    assert_same(found, wanted)
    arrays = [a for a in args if isinstance(a, np.ndarray)]

    def fun(*xs):
        rest = iter(xs)
        given = [next(rest) if isinstance(a, np.ndarray) else a for a in args]
        return getattr(taking, name)(*given, **options)

    np.testing.assert_allclose(values(staged(fun, *arrays)), np.asarray(wanted), rtol=1e-6)


@pytest.mark.parametrize("mode", [None, "fill", "clip", "wrap", "raise", "foo"])
@pytest.mark.parametrize("axis", [None, 0, -1, 3])
def test_take(axis, mode):
    both("take", M, FAR, axis=axis, mode=mode)
    both("take", M.astype(np.int32), FAR.reshape(5, 1), axis=axis, mode=mode)


def test_take_of_one_index():
    for axis in (None, 0, 1):
        both("take", M, 1, axis=axis)
        both("take", M, 7, axis=axis, mode="clip")


def test_take_of_special_arguments():
    both("take", M, FAR, fill_value=7)
    both("take", M, np.array([1.0]))
    both("take", M, np.array([True, False]))
    both("take", M, [0, 1])
    both("take", np.zeros((0, 3), np.float32), np.array([0]), axis=0)
    both("take", np.zeros((0, 3), np.float32), np.zeros(0, np.int32), axis=0)
    both("take", M > 3, FAR, axis=1)
    both("take", 3.0, np.array([0]))
    both("take", M, FAR, 0, M)


ALONG = np.array([[1, 9, -2], [0, -1, 4], [-7, 1, 2]])


@pytest.mark.parametrize("mode", [None, "fill", "clip", "promise_in_bounds", "one_hot", "wrap"])
def test_take_along_axis(mode):
    both("take_along_axis", M, ALONG, axis=1, mode=mode)
    both("take_along_axis", M, ALONG[:, :1], axis=1, mode=mode)
    both("take_along_axis", M, ALONG[:1], axis=-1, mode=mode)
    both("take_along_axis", M[:1], ALONG, axis=1, mode=mode)
    both("take_along_axis", M, FAR, axis=None, mode=mode)
    both("take_along_axis", X, ALONG[None, :, :1] % 3, axis=1, mode=mode)
    both("take_along_axis", X, np.zeros((1, 2, 1), int), axis=1, mode=mode)
    both("take_along_axis", X[:, :1], np.ones((1, 4, 2), int), axis=2, mode=mode)


def test_take_along_axis_of_wrong_arguments():
    both("take_along_axis", M, FAR, axis=1)
    both("take_along_axis", M, ALONG, axis=None)
    both("take_along_axis", M, ALONG * 1.0, axis=1)
    both("take_along_axis", M, ALONG[:2], axis=1)
    both("take_along_axis", M, [[0]], axis=1)
    both("take_along_axis", M, ALONG, axis=1, fill_value=3)
    both("take_along_axis", M, ALONG, axis=1, wrap_negative_indices=False)


def test_gradient_of_take_along_axis():
    index = ALONG % 5
    ct = np.linspace(1, 2, 9, dtype=np.float32).reshape(3, 3)
    for x, i in ((M, index), (M[:1], index), (M, index[:1])):
        _, pull = jax.vjp(lambda x, i=i: jnp.take_along_axis(x, jnp.asarray(i), 1), jnp.asarray(x))
        found = gradient(lambda x, i=i: taking.take_along_axis(x, i, 1), ct, ours(x))
        np.testing.assert_allclose(found[0], np.asarray(pull(jnp.asarray(ct))[0]), rtol=1e-6)


@pytest.mark.parametrize("mode", [None, "clip", "wrap", "foo", "raise"])
def test_put(mode):
    index = np.array([0, 17, -1, 3])
    for y in (np.array([9.0, 8.0], np.float32), np.float32(5), 5, np.arange(9.0, dtype="f4")):
        both("put", M, index, y, mode=mode, inplace=False)
    both("put", M, index, np.zeros(0, np.float32), mode=mode, inplace=False)
    both("put", M, 2, 5.0, mode=mode)


@pytest.mark.parametrize("mode", [None, "clip", "wrap", "drop"])
def test_put_along_axis(mode):
    index = np.array([[1], [7], [-1]])
    options = {"inplace": False, "mode": mode}
    both("put_along_axis", M, index, 9.0, axis=1, **options)
    both("put_along_axis", M, index, np.array([[1.0], [2], [3]], np.float32), axis=1, **options)
    both("put_along_axis", M, np.array([[0, 2]]), 4, axis=1, **options)
    both("put_along_axis", M, FAR, 9.0, axis=None, **options)
    both("put_along_axis", M, index, 9.0, axis=1, mode=mode)
    both("put_along_axis", M, index * 1.0, 9.0, axis=1, **options)


def agree(ours_fun, jax_fun, *args, **options):
    """The same result, or an error of the same type."""
    try:
        wanted = jax_fun(*(jax.tree.map(jax_index, a) for a in args), **options)
    except Exception as error:
        kind = TypeError if isinstance(error, ZeroDivisionError) else type(error)
        with pytest.raises(kind):
            ours_fun(*(jax.tree.map(ours, a) for a in args), **options)
        return
    found = ours_fun(*(jax.tree.map(ours, a) for a in args), **options)
    if isinstance(wanted, (list, tuple)):
        for f, w in zip(found, wanted, strict=True):
            assert_same(f, w)
    else:
        assert_same(found, wanted)


i32, u8 = np.int32, np.uint8
LAX_CASES = [
    ("slice", M, (1, 0), (3, 4)),
    ("slice", M, (1, 0), (3, 5), (2, 3)),
    ("slice", M, (0, 0), (4, 4)),
    ("slice", M, (2, 0), (1, 4)),
    ("slice", M, (0, 0), (1, 4), (0, 1)),
    ("slice", M, (0, 0), (1, 4), (1,)),
    ("slice", 1.0, (), ()),
    ("slice_in_dim", M, -2, None, 1, 1),
    ("slice_in_dim", M, 0, 4, 3, -1),
    ("slice_in_dim", M, -12, None, 1, 1),
    ("slice_in_dim", M, 0, 12, 1, 1),
    ("index_in_dim", M, 4, 1),
    ("index_in_dim", M, -1, 1, False),
    ("index_in_dim", M, 5, 1),
    ("index_in_dim", M, -6, 1),
    ("dynamic_slice", M, (1, 1), (2, 2)),
    ("dynamic_slice", M, (10, -10), (1, 1)),
    ("dynamic_slice", M, (-1, -2), (1, 2)),
    ("dynamic_slice", M, np.array([1, -1]), (1, 1)),
    ("dynamic_slice", M, (i32(1), u8(2)), (1, 1)),
    ("dynamic_slice", M, (u8(1), u8(200)), (1, 1)),
    ("dynamic_slice", M, (0,), (1, 1)),
    ("dynamic_slice", M, (0, 0), (4, 1)),
    ("dynamic_slice", M, (0, 0), (-1, 1)),
    ("dynamic_slice", M, (0.0, 0), (1, 1)),
    ("dynamic_slice", M, (np.array([0, 1]), 0), (1, 1)),
    ("dynamic_slice_in_dim", M, 3, 2, 1),
    ("dynamic_slice_in_dim", M, i32(-2), 2, 1),
    ("dynamic_slice_in_dim", M, 0, 9, 1),
    ("dynamic_index_in_dim", M, 2, 1),
    ("dynamic_index_in_dim", M, -1, 0, False),
    ("dynamic_index_in_dim", M, np.array([0, 1]), 0),
    ("dynamic_update_slice", M, np.ones((2, 2), np.float32), (10, -1)),
    ("dynamic_update_slice", M, np.ones((2, 2), np.int32), (0, 0)),
    ("dynamic_update_slice", M, np.ones((4, 2), np.float32), (0, 0)),
    ("dynamic_update_slice", M, np.ones(2, np.float32), (0, 0)),
    ("dynamic_update_slice", np.arange(3, dtype=np.int32), 1, ()),
    ("dynamic_update_slice", np.array(3, np.int32), 1, ()),
    ("dynamic_update_slice", np.array(3, np.int32), i32(1), ()),
    ("dynamic_update_slice_in_dim", M, np.ones((3, 1), np.float32), 1, 1),
    ("dynamic_update_index_in_dim", M, np.ones(3, np.float32), 1, 1),
    ("dynamic_update_index_in_dim", np.arange(3, dtype=np.int32), 7, -1, 0),
    ("dynamic_update_index_in_dim", np.arange(3, dtype=np.int32), 7.0, 1, 0),
    ("pad", M, 0.0, ((1, 1, 0), (0, -1, 2))),
    ("pad", M, np.float32(2), ((-1, 0, 1), (3, -4, 0))),
    ("pad", M, 0.0, ((0, 0, 0),)),
    ("pad", M, 0, ((0, 0, 0),) * 2),
    ("pad", M, 0.0, ((0, 0, -1),) * 2),
    ("pad", M, 0.0, ((-7, 0, 0),) * 2),
    ("pad", M, np.zeros(2, np.float32), ((0, 0, 0),) * 2),
    ("concatenate", [M, M[:1]], 0),
    ("concatenate", [M], 1),
    ("concatenate", [], 0),
    ("concatenate", [M, M[0]], 0),
    ("concatenate", [M, M[:, :2]], 0),
    ("concatenate", [M, M.astype(np.int32)], 0),
    ("concatenate", [M, M], 2),
    ("concatenate", [M, M], -1),
    ("concatenate", [1.0, 2.0], 0),
    ("concatenate", M, 0),
    ("split", M, (1, 2), 0),
    ("split", M, (5,), -1),
    ("split", M, (1, 1), 0),
    ("split", M, (4, -1), 0),
    ("split", M, (3,), 5),
]


@pytest.mark.parametrize("case", LAX_CASES, ids=lambda c: f"{c[0]}{c[2:]}"[:60])
def test_lax(case):
    name, *args = case
    agree(getattr(lax, name), getattr(jlax, name), *args)


def test_negative_starts_may_be_refused():
    for allowed in (False, [True, False]):
        args = (M, (-1, -1), (1, 1))
        agree(sl.dynamic_slice, jlax.dynamic_slice, *args, allow_negative_indices=allowed)
    found = staged(
        lambda x, i: sl.dynamic_slice_in_dim(x, i, 2, allow_negative_indices=False),
        M,
        np.int32(-1),
    )
    np.testing.assert_array_equal(values(found), M[:2])


@given(
    st.integers(0, 4),
    st.integers(-6, 6),
    st.integers(-6, 6),
    st.integers(0, 3),
)
def test_pad_is_a_loop(n, low, high, inner):
    x = np.arange(1, n + 1, dtype=np.float32)
    line = [value for i, v in enumerate(x) for value in [v] + [9] * (inner if i < n - 1 else 0)]
    if len(line) + low + high < 0:
        with pytest.raises(ValueError, match="after padding is not at least 0"):
            sl.pad(ours(x), 9.0, [(low, high, inner)])
        return
    wide = [9.0] * max(low, 0) + line + [9.0] * max(high, 0)
    # What a negative amount takes away may be padding of the other side.
    wanted = wide[max(-low, 0) : len(wide) - max(-high, 0)]
    found = sl.pad(ours(x), 9.0, [(low, high, inner)])
    np.testing.assert_array_equal(values(found), np.array(wanted, np.float32))


GATHER_ERRORS = [
    ((np.array([[4]]), ((1,), (), (0,)), (9,)), TypeError),
    ((np.array([[4.0]]), ((1,), (), (0,)), (1,)), ValueError),
    ((np.array([[4]]), ((2,), (), (0,)), (1,)), TypeError),
    ((np.array([[4]]), ((1, 0), (), (0,)), (1,)), TypeError),
    ((np.array([[4]]), ((1,), (0,), (0,)), (1,)), TypeError),
    ((np.array([[4]]), ((), (0,), (1,)), (1,)), TypeError),
    ((np.array([[4]]), ((), (0,), (0, 0)), (1,)), TypeError),
    ((np.array([[4]]), ((), (0,), (0,)), (2,)), TypeError),
    ((np.array(4), ((), (0,), (0,)), (1,)), TypeError),
    ((np.array([[4]]), ((), (0,), (0,)), (1, 1)), TypeError),
]


@pytest.mark.parametrize(("args", "error"), GATHER_ERRORS)
def test_gather_of_wrong_arguments(args, error):
    index, numbers, sizes = args
    x = np.arange(6.0, dtype=np.float32)
    with pytest.raises(error):
        jlax.gather(
            jnp.asarray(x), jnp.asarray(index), jlax.GatherDimensionNumbers(*numbers), sizes
        )
    with pytest.raises(error):
        ga.gather(ours(x), ours(index), ga.GatherDimensionNumbers(*numbers), sizes)


SCATTERS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("mode", ["clip", "drop", "promise_in_bounds"])
def test_scatter_of_windows(name, mode):
    index, numbers = np.array([[4], [0], [-1], [7], [1]]), ((1,), (), (0,))
    x, updates = np.arange(6.0, dtype=np.float32), np.arange(15.0, dtype=np.float32).reshape(5, 3)
    wanted = getattr(jlax, name)(
        x, index, updates, jlax.ScatterDimensionNumbers(*numbers), mode=mode
    )
    found = getattr(ga, name)(
        ours(x), ours(index), ours(updates), ga.ScatterDimensionNumbers(*numbers), mode=mode
    )
    assert_same(found, wanted)
    wanted = jlax.gather(x, index, jlax.GatherDimensionNumbers(*numbers), (3,), mode=mode)
    found = ga.gather(ours(x), ours(index), ga.GatherDimensionNumbers(*numbers), (3,), mode=mode)
    assert_same(found, wanted)


@pytest.mark.parametrize(
    ("updates", "numbers"),
    [
        (np.ones((4, 3), np.float32), ((0,), (), (0,))),
        (np.ones((4, 3), np.float32), ((1,), (0,), (0,))),
        (np.ones((4, 9), np.float32), ((1,), (), (0,))),
        (np.ones((3, 3), np.float32), ((1,), (), (0,))),
        (np.ones((4, 3), np.int32), ((1,), (), (0,))),
    ],
)
def test_scatter_of_wrong_arguments(updates, numbers):
    x, index = np.arange(6.0, dtype=np.float32), np.zeros((4, 1), np.int32)
    with pytest.raises(TypeError):
        jlax.scatter(x, index, updates, jlax.ScatterDimensionNumbers(*numbers))
    with pytest.raises(TypeError, match="scatter"):
        ga.scatter(ours(x), ours(index), ours(updates), ga.ScatterDimensionNumbers(*numbers))


def test_modes_by_name():
    for mode in (None, "clip", "fill", "drop", "promise_in_bounds", "one_hot"):
        theirs = jlax.GatherScatterMode.from_any(mode)
        assert ga.GatherScatterMode.from_any(mode).name == theirs.name
        assert str(ga.GatherScatterMode.from_any(mode)) == str(theirs)
    with pytest.raises(ValueError, match="Unknown gather mode 'wrap'"):
        ga.GatherScatterMode.from_any("wrap")


def test_index_take():
    index = (np.array([0, 5, -1]), np.array([-1, 4, 7]))
    theirs: Any = tuple(map(jnp.asarray, index))
    wanted = jlax.index_take(jnp.asarray(M), theirs, (0, 1))
    assert_same(index_take(ours(M), tuple(map(ours, index)), (0, 1)), wanted)


def test_scatter_apply():
    index, x = np.array([[0], [2], [2], [9]]), np.arange(3.0, dtype=np.float32)
    numbers = ga.ScatterDimensionNumbers((), (0,), (0,))
    theirs = jlax.ScatterDimensionNumbers(*numbers)
    args = (jnp.asarray(x), jnp.asarray(index))
    wanted = jlax.scatter_apply(*args, jnp.cos, theirs, update_shape=(4,))

    def change(x, i):
        return scatter_apply(x, i, ew.cos, numbers, update_shape=(4,))

    assert_same(change(ours(x), ours(index)), wanted)
    assert_same(staged(change, x, index), wanted)
    with pytest.raises(TypeError, match="Updates tensor must be of rank 1; got 0"):
        scatter_apply(ours(x), ours(index), ew.cos, numbers)


@pytest.mark.parametrize("index", [1, slice(0, 2), np.array([0, 0, 2]), (FAR, 0), M > 7], ids=str)
def test_apply(index):
    wanted = jnp.asarray(M).at[jax_index(index)].apply(lambda v: jnp.sin(v) + 1)

    def change(x):
        return at(x, index).apply(lambda v: ew.add(ew.sin(v), np.float32(1)))

    np.testing.assert_allclose(values(change(ours(M))), np.asarray(wanted), rtol=1e-5)
    np.testing.assert_allclose(values(staged(change, M)), np.asarray(wanted), rtol=1e-5)


def test_apply_has_a_derivative_and_checks_the_function():
    (found,) = gradient(lambda x: at(x, (0, 1)).apply(ew.sin), np.ones_like(M), ours(M))
    wanted = np.ones_like(M)
    wanted[0, 1] = np.cos(M[0, 1])
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    with pytest.raises(TypeError, match="one number to one of the same type"):
        at(ours(M), 0).apply(lambda v: np.ones(3, np.float32))
    with pytest.raises(TypeError, match="one number to one of the same type"):
        at(ours(M), 0).apply(lambda v: ew.gt(v, np.float32(0)))


LARGEST = np.uint64(2**64 - 1)


@pytest.mark.parametrize(
    "use",
    [
        lambda np_, x, i: x[i],
        lambda np_, x, i: np_.take(x, i),
        lambda np_, x, i: np_.take(x, i[None], mode="fill"),
        lambda np_, x, i: x.at[i].set(7.0),
    ],
    ids=["index", "take", "take of several", "update"],
)
def test_the_largest_unsigned_index_is_not_minus_one(use):
    with jax.enable_x64(True), namoo.enable_x64(True):
        wanted = use(jax.numpy, jax.numpy.arange(5.0), jax.numpy.asarray(LARGEST))
        found = use(namoo.numpy, namoo.numpy.arange(5.0), namoo.numpy.asarray(LARGEST))
        np.testing.assert_array_equal(found, wanted)
        jitted = namoo.jit(lambda x, i: use(namoo.numpy, x, i))
        np.testing.assert_array_equal(jitted(np.arange(5.0), LARGEST), wanted)
