"""Collectives over named axes: against JAX where it has the case, and against NumPy."""

from __future__ import annotations

import functools

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from hypothesis import given

import namoo
import namoo.numpy as jnp
from jax_oracle import OURS, THEIRS, assert_same
from namoo.control import collectives as co
from namoo.core.trace import Tracer

N = 3
X = np.arange(N * 3 * 2, dtype=np.float32).reshape(N, 3, 2) / 7 - 0.9
WEIGHTS = np.array([1.0, 10.0, 100.0], np.float32)


# Functions of one example (3, 2) of the axis "i".


def sums(lib, x):
    return lib.lax.psum(x * x, "i") * x


def sums_of_trees(lib, x):
    out = lib.lax.psum({"a": x, "b": (x[0], x > 0)}, "i")
    return out["a"] * out["b"][0] * out["b"][1]


def means(lib, x):
    return lib.lax.pmean(lib.jnp.sin(x), ("i",)) - x


def permuted(lib, x):
    return lib.lax.ppermute(x * x, "i", [(0, 1), (1, 2), (2, 0)])


def shuffled(lib, x):
    return lib.lax.pshuffle(lib.jnp.exp(x), "i", [2, 1, 0])


def gathered(lib, x):
    return (lib.lax.all_gather(x * x, "i", axis=1) * lib.jnp.arange(3.0)[:, None]).sum(1)


def gathered_tiled(lib, x):
    return lib.jnp.sin(lib.lax.all_gather(x * x, "i", axis=0, tiled=True))[1:4]


def scattered(lib, x):
    return lib.lax.psum_scatter(x * x, "i") * x[0]


def scattered_tiled(lib, x):
    wide = lib.jnp.concatenate([x, x * x], 0)
    return lib.lax.psum_scatter(wide, "i", scatter_dimension=0, tiled=True)


def indexed(lib, x):
    return x * lib.lax.axis_index("i") * lib.lax.axis_size("i")


def in_a_loop(lib, x):
    def body(c, a):
        return lib.lax.pmean(c * a, "i") + a, lib.lax.psum(c, "i")

    return lib.lax.scan(body, x[0], x)


def in_a_branch(lib, x):
    return lib.lax.cond(
        lib.lax.psum(x, "i").sum() > 0,
        lambda x: lib.lax.psum(x * x, "i"),
        lambda x: lib.lax.all_gather(x, "i").sum(0),
        x,
    )


def in_a_call(lib, x):
    return lib.jit(lambda x: lib.lax.psum(lib.jnp.sin(x), "i") * x)(x)


def in_a_custom_rule(lib, x):
    @lib.custom_jvp
    def f(x):
        return lib.lax.psum(x, "i")

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), 3.0 * lib.lax.psum(tangents[0], "i")

    return f(x * x)


def in_a_checkpoint(lib, x):
    return lib.checkpoint(lambda x: lib.jnp.sin(lib.lax.pmean(x * x, "i")) * x)(x)


def of_a_constant_outside(lib, x):
    return x * lib.lax.psum(lib.jnp.float32(2.5), "i") + lib.lax.psum(1, "i")


PROGRAMS = [
    sums,
    sums_of_trees,
    means,
    permuted,
    shuffled,
    gathered,
    gathered_tiled,
    scattered,
    scattered_tiled,
    indexed,
    in_a_loop,
    in_a_branch,
    in_a_call,
    in_a_custom_rule,
    in_a_checkpoint,
    of_a_constant_outside,
]


def loss(lib, fun, x):
    leaves = lib.tree_util.tree_leaves(fun(x))
    return sum((lib.jnp.cos(y) * y).sum() for y in leaves)


def everything(lib, fun, hessian):
    def run(x):
        mapped = functools.partial(lib.vmap, axis_name="i")
        score = functools.partial(loss, lib, fun)
        out = {
            "vmap": mapped(fun)(x),
            "vmap of grad": mapped(lib.grad(score))(x),
            "vmap of jit of grad": mapped(lib.jit(lib.grad(score)))(x),
            "grad of vmap": lib.grad(lambda x: (mapped(score)(x) * WEIGHTS).sum())(x),
            "vmap of jvp": mapped(lambda x: lib.jvp(fun, (x,), (x * 2,)))(x),
            "batched inside": mapped(lib.vmap(fun))(x[:, None]),
            "batched outside": lib.vmap(mapped(fun, in_axes=1))(x[None].swapaxes(1, 2)),
        }
        if hessian:
            out["vmap of hessian"] = mapped(lib.jacfwd(lib.grad(score)))(x)
        return out

    return run


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_transformation_agrees_with_jax(program):
    hessian = program in (sums, means, gathered, in_a_loop)
    theirs = everything(THEIRS, functools.partial(program, THEIRS), hessian)
    wanted = jax.jit(theirs)(X)
    run = everything(OURS, functools.partial(program, OURS), hessian)
    assert_same(run(jnp.asarray(X)), wanted, rtol=2e-4)
    assert_same(namoo.jit(run)(X), wanted, rtol=2e-4)


# Against NumPy: functions of one example, and what they make of the stack of all.

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) ** 2 / 5 - 2
SQUARE = np.arange(48, dtype=np.float32).reshape(4, 4, 3) / 5 - 2
GROUPS = [[0, 2], [3, 1]]
UNEVEN = [[3], [0, 2, 1]]


def by_groups(groups, fun):
    """A function of the stack that works on each group of rows by itself."""

    def run(x):
        parts = {i: row for g in groups for i, row in zip(g, fun(x[g]), strict=True)}
        return np.stack([parts[i] for i in range(len(x))])

    return run


def everyone(reduce):
    return lambda x: np.stack([reduce(x)] * len(x))


NUMPY_CASES = {
    "psum": (lambda x: co.psum(x, "i"), everyone(lambda x: x.sum(0))),
    "psum, groups": (
        lambda x: co.psum(x, "i", axis_index_groups=GROUPS),
        by_groups(GROUPS, everyone(lambda x: x.sum(0))),
    ),
    "psum, uneven groups": (
        lambda x: co.psum(x, "i", axis_index_groups=UNEVEN),
        by_groups(UNEVEN, everyone(lambda x: x.sum(0))),
    ),
    "pmean, uneven groups": (
        lambda x: co.pmean(x, "i", axis_index_groups=UNEVEN),
        by_groups(UNEVEN, everyone(lambda x: x.mean(0))),
    ),
    "psum over an axis of the array as well": (
        lambda x: co.psum(x, ("i", 0)),
        everyone(lambda x: x.sum((0, 1))),
    ),
    "pmean over an axis of the array as well": (
        lambda x: co.pmean(x, (-1, "i")),
        everyone(lambda x: x.mean((0, 1))),
    ),
    "ppermute": (
        lambda x: co.ppermute(x, "i", [(0, 2), (3, 1)]),
        lambda x: np.stack([0 * x[0], x[3], x[0], 0 * x[0]]),
    ),
    "ppermute of nothing": (lambda x: co.ppermute(x, "i", []), np.zeros_like),
    "pbroadcast": (lambda x: co.pbroadcast(x, "i", 2), everyone(lambda x: x[2])),
    "all_gather": (lambda x: co.all_gather(x, "i"), everyone(lambda x: x)),
    "all_gather, last": (lambda x: co.all_gather(x, "i", axis=-1), everyone(lambda x: x.T)),
    "all_gather, groups": (
        lambda x: co.all_gather(x, "i", axis_index_groups=GROUPS, axis=1),
        by_groups(GROUPS, everyone(lambda x: x.T)),
    ),
    "all_gather, groups, tiled": (
        lambda x: co.all_gather(x, "i", axis_index_groups=GROUPS, tiled=True),
        by_groups(GROUPS, everyone(lambda x: x.reshape(-1))),
    ),
}
SQUARE_CASES = {
    "psum_scatter": (lambda x: co.psum_scatter(x, "i"), lambda x: x.sum(0)),
    "psum_scatter, last, tiled": (
        lambda x: co.psum_scatter(x.T, "i", scatter_dimension=-1, tiled=True),
        lambda x: x.sum(0)[..., None],
    ),
    "psum_scatter, groups": (
        lambda x: co.psum_scatter(x[:2], "i", axis_index_groups=GROUPS),
        by_groups(GROUPS, lambda x: x[:, :2].sum(0)),
    ),
    "all_to_all": (lambda x: co.all_to_all(x, "i", 0, 0), lambda x: x.swapaxes(0, 1)),
    "all_to_all, first to last": (
        lambda x: co.all_to_all(x, "i", 0, -1),
        lambda x: np.moveaxis(x, 0, -1),
    ),
    "all_to_all, last to first": (
        lambda x: co.all_to_all(x.T, "i", 1, 0),
        lambda x: x.swapaxes(0, 1),
    ),
    "all_to_all, tiled": (
        lambda x: co.all_to_all(x, "i", 0, 1, tiled=True),
        lambda x: np.stack([np.concatenate(x[:, [k]], 1) for k in range(4)]),
    ),
    "all_to_all, groups": (
        lambda x: co.all_to_all(x[:2], "i", 0, 0, axis_index_groups=GROUPS),
        by_groups(GROUPS, lambda x: x[:, :2].swapaxes(0, 1)),
    ),
    "pswapaxes": (lambda x: co.pswapaxes(x, "i", 0), lambda x: x.swapaxes(0, 1)),
}
ALL_CASES = [
    pytest.param(*case, x, id=name)
    for table, x in ((NUMPY_CASES, VECTORS), (SQUARE_CASES, SQUARE))
    for name, case in table.items()
]


@pytest.mark.parametrize(("fun", "wanted", "x"), ALL_CASES)
def test_values(fun, wanted, x):
    for f in (fun, namoo.jit(fun)):
        found = namoo.vmap(f, axis_name="i")(x)
        np.testing.assert_allclose(np.asarray(found), wanted(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("fun", "wanted", "x"), ALL_CASES)
def test_a_batch_inside_or_outside_changes_nothing(fun, wanted, x):
    batch = np.stack([x, -x, x * x])
    each = np.stack([wanted(b) for b in batch])
    mapped = functools.partial(namoo.vmap, axis_name="i")
    outside = namoo.vmap(mapped(fun))(batch)
    inside = mapped(namoo.vmap(fun), in_axes=1, out_axes=1)(batch)
    last = mapped(namoo.vmap(fun, in_axes=-1, out_axes=-1), in_axes=1, out_axes=0)(
        np.moveaxis(batch, 0, -1).swapaxes(0, 1)
    )
    np.testing.assert_allclose(np.asarray(outside), each, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.asarray(inside), each, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.moveaxis(np.asarray(last), -1, 0), each, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("fun", "wanted", "x"), ALL_CASES)
@pytest.mark.parametrize("staged", [False, True])
def test_derivatives(fun, wanted, x, staged):
    """All these are linear: the jvp maps tangents as values, the vjp is its transpose.

    Cotangents of the examples are what they have in all, so the vjp inside of vmap is the same.
    """
    rng = np.random.default_rng(0)
    tangent = rng.normal(size=x.shape).astype(np.float32)
    fun = namoo.jit(fun) if staged else fun
    mapped = functools.partial(namoo.vmap, axis_name="i")

    pushed = mapped(lambda x, t: namoo.jvp(fun, (x,), (t,))[1])(x, tangent)
    np.testing.assert_allclose(np.asarray(pushed), wanted(tangent), rtol=1e-4, atol=1e-4)

    ct = rng.normal(size=pushed.shape).astype(np.float32)
    inside = mapped(lambda x, ct: namoo.vjp(fun, x)[1](ct)[0])(x, ct)
    (outside,) = namoo.vjp(mapped(fun), x)[1](ct)
    there = float(np.sum(np.asarray(pushed) * ct))
    for pulled in (inside, outside):
        assert pulled.shape == x.shape
        assert abs(float(np.sum(np.asarray(pulled) * tangent)) - there) < 1e-3 * np.abs(ct).sum()


# Two names: "j" outside, of size 2, and "i" inside, of size 3.

TWO = np.arange(36, dtype=np.float32).reshape(2, 3, 6) ** 2 / 9


def flat(x):
    return x.reshape(6, *x.shape[2:])


def together(fun):
    """A function of the stack of all six, as one of the stack of stacks."""
    return lambda x: fun(flat(x)).reshape(2, 3, *fun(flat(x)).shape[1:])


SHIFT = [(k, (k + 1) % 6) for k in range(5)]

TWO_NAMES = {
    "psum": (lambda x: co.psum(x, ("j", "i")), together(everyone(lambda x: x.sum(0)))),
    "psum, list": (lambda x: co.psum(x, ["i", "j"]), together(everyone(lambda x: x.sum(0)))),
    "psum of psum": (
        lambda x: co.psum(co.psum(x, "i"), "j"),
        together(everyone(lambda x: x.sum(0))),
    ),
    "psum, one of them": (
        lambda x: co.psum(x, "j"),
        lambda x: np.stack([x.sum(0)] * 2),
    ),
    "pmean": (lambda x: co.pmean(x, ("j", "i")), together(everyone(lambda x: x.mean(0)))),
    "ppermute": (
        lambda x: co.ppermute(x, ("j", "i"), SHIFT),
        together(lambda x: np.concatenate([0 * x[:1], x[:-1]])),
    ),
    "pshuffle": (
        lambda x: co.pshuffle(x, ("j", "i"), [5, 4, 3, 2, 1, 0]),
        together(lambda x: x[::-1]),
    ),
    "pbroadcast": (
        lambda x: co.pbroadcast(x, ("j", "i"), 4),
        together(everyone(lambda x: x[4])),
    ),
    "all_gather": (lambda x: co.all_gather(x, ("j", "i")), together(everyone(lambda x: x))),
    "all_gather, tiled": (
        lambda x: co.all_gather(x, ("j", "i"), tiled=True),
        together(everyone(lambda x: x.reshape(-1))),
    ),
    "all_gather, in the other order": (
        lambda x: co.all_gather(x, ("i", "j"), axis=1),
        lambda x: np.broadcast_to(flat(x.swapaxes(0, 1)).T, (2, 3, 6, 6)),
    ),
    "psum_scatter": (
        lambda x: co.psum_scatter(x, ("j", "i")),
        together(lambda x: x.sum(0)),
    ),
    "psum_scatter, tiled": (
        lambda x: co.psum_scatter(jnp.concatenate([x, 2 * x]), ("j", "i"), tiled=True),
        together(lambda x: np.concatenate([x.sum(0), 2 * x.sum(0)]).reshape(6, 2)),
    ),
    "all_to_all": (
        lambda x: co.all_to_all(x, ("j", "i"), 0, 0),
        together(lambda x: x.swapaxes(0, 1)),
    ),
    "all_to_all, tiled": (
        lambda x: co.all_to_all(jnp.stack([x, 2 * x], 1), ("j", "i"), 0, 1, tiled=True),
        together(lambda x: np.stack([x.T, 2 * x.T], -1).reshape(6, 1, 12)),
    ),
    "axis_index": (
        lambda x: x * co.axis_index(("j", "i")),
        together(lambda x: x * np.arange(6)[:, None]),
    ),
    "axis_size": (lambda x: x * co.axis_size(("j", "i")), lambda x: x * 6),
}


@pytest.mark.parametrize(("fun", "wanted"), TWO_NAMES.values(), ids=TWO_NAMES)
def test_two_names(fun, wanted):
    rng = np.random.default_rng(0)
    mapped = namoo.vmap(namoo.vmap(fun, axis_name="i"), axis_name="j")
    for f in (
        mapped,
        namoo.jit(mapped),
        namoo.vmap(namoo.jit(namoo.vmap(fun, axis_name="i")), axis_name="j"),
    ):
        np.testing.assert_allclose(np.asarray(f(TWO)), wanted(TWO), rtol=1e-5)
    ct = rng.normal(size=wanted(TWO).shape).astype(np.float32)
    pull = lambda x, ct: namoo.vjp(fun, x)[1](ct)[0]  # noqa: E731
    inside = namoo.vmap(namoo.vmap(pull, axis_name="i"), axis_name="j")(TWO, ct)
    (outside,) = namoo.vjp(mapped, TWO)[1](ct)
    np.testing.assert_allclose(np.asarray(inside), np.asarray(outside), rtol=1e-4, atol=1e-4)
    there, back = np.sum(wanted(TWO) * ct), np.sum(np.asarray(outside) * TWO)
    assert abs(there - back) < 1e-4 * np.abs(wanted(TWO) * ct).sum()


@given(st.permutations(range(4)), st.integers(0, 4))
def test_ppermute_sends_from_source_to_destination(destinations, count):
    perm = list(enumerate(destinations))[:count]
    found = namoo.vmap(lambda x: co.ppermute(x, "i", perm), axis_name="i")(VECTORS)
    wanted = np.zeros_like(VECTORS)
    for source, destination in perm:
        wanted[destination] = VECTORS[source]
    np.testing.assert_array_equal(np.asarray(found), wanted)


@given(st.data())
def test_ragged_all_to_all_moves_pieces(data):
    n, rows, out_rows = 3, 7, 9
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    operand = rng.normal(size=(n, rows, 2)).astype(np.float32)
    output = rng.normal(size=(n, out_rows, 2)).astype(np.float32)
    sizes = rng.integers(0, 3, (n, n))
    starts = np.cumsum(sizes, 1) - sizes
    places = np.cumsum(sizes, 0) - sizes
    wanted = output.copy()
    for s in range(n):
        for r in range(n):
            piece = operand[s, starts[s, r] : starts[s, r] + sizes[s, r]]
            wanted[r, places[s, r] : places[s, r] + sizes[s, r]] = piece
    send = functools.partial(co.ragged_all_to_all, axis_name="i")
    found = namoo.vmap(send, axis_name="i")(operand, output, starts, sizes, places, sizes.T)
    np.testing.assert_array_equal(np.asarray(found), wanted)


# The extremes have no derivative in JAX; here it goes to the examples that are largest.


@pytest.mark.parametrize(
    ("fun", "reduce"),
    [(co.pmax, np.max), (co.pmin, np.min)],
)
def test_extremes(fun, reduce):
    x = np.array([[1.0, 5.0], [4.0, 5.0], [2.0, 0.0]], np.float32)
    mapped = namoo.vmap(lambda x: fun(x, "i"), axis_name="i")
    top = reduce(x, 0)
    np.testing.assert_array_equal(np.asarray(mapped(x)), np.stack([top] * 3))
    share = (x == top) / (x == top).sum(0)
    ct = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
    (pulled,) = namoo.vjp(mapped, x)[1](ct)
    np.testing.assert_allclose(np.asarray(pulled), share * ct.sum(0))
    groups = namoo.vmap(lambda x: fun(x, "i", axis_index_groups=[[0, 2], [1]]), axis_name="i")(x)
    wanted = by_groups([[0, 2], [1]], everyone(lambda x: reduce(x, 0)))(x)
    np.testing.assert_array_equal(np.asarray(groups), wanted)
    assert mapped(x > 1).dtype == bool


def inside(fun, size=3):
    """What a function of nothing returns under vmap, unmapped."""
    out = []

    def body(x):
        out.append(fun())
        return x

    namoo.vmap(body, axis_name="i")(np.zeros(size, np.float32))
    return out[0]


def test_collectives_of_constants_are_constants():
    assert inside(lambda: co.psum(1, "i")) == 3
    assert type(inside(lambda: co.psum(1, "i"))) is int
    assert inside(lambda: co.psum(2.5, "i")) == 7.5
    assert type(inside(lambda: co.pmean(2, "i"))) is float
    assert inside(lambda: co.psum(1, "i", axis_index_groups=[[0, 1], [2, 3]]), 4) == 2
    assert inside(lambda: co.pmax(4, "i")) == 4
    assert type(inside(lambda: co.axis_size("i"))) is int
    array = inside(lambda: co.psum(jnp.ones(2), "i"))
    assert not isinstance(array, Tracer)
    np.testing.assert_array_equal(np.asarray(array), [3.0, 3.0])
    count = inside(lambda: co.psum(True, "i"))
    assert int(count) == 3 and count.dtype == np.int32


def test_results_that_are_the_same_for_all_need_no_axis():
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    for fun, wanted in [
        (lambda x: co.psum(x, "i"), x.sum(0)),
        (lambda x: co.pmean(x, "i"), x.mean(0)),
        (lambda x: co.pmax(x, "i"), x.max(0)),
        (lambda x: co.pbroadcast(x, "i", 1), x[1]),
        (lambda x: co.all_gather(x, "i"), x),
        (lambda x: co.all_gather(2.0, "i"), np.full(3, 2.0)),
    ]:
        found = namoo.vmap(fun, axis_name="i", out_axes=None)(x)
        np.testing.assert_allclose(np.asarray(found), wanted)
    with pytest.raises(ValueError, match="out_axes is None"):
        namoo.vmap(lambda x: co.ppermute(x, "i", [(0, 1)]), axis_name="i", out_axes=None)(x)


@pytest.mark.parametrize("name", ["i", 3.5, ("a", "b"), frozenset("ab"), None.__class__])
def test_any_hashable_is_a_name(name):
    x = np.arange(3.0, dtype=np.float32)
    found = namoo.vmap(lambda x: co.psum(x, (name,)) + co.axis_index((name,)), axis_name=name)(x)
    np.testing.assert_array_equal(np.asarray(found), [3.0, 4.0, 5.0])
    found = namoo.vmap(lambda x: co.all_gather(x, (name,)), axis_name=name, out_axes=None)(x)
    np.testing.assert_array_equal(np.asarray(found), x)


def test_an_inner_axis_hides_an_outer_one_of_the_same_name():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    inner = namoo.vmap(lambda x: co.psum(x, "i"), axis_name="i")
    found = namoo.vmap(inner, axis_name="i")(x)
    np.testing.assert_array_equal(np.asarray(found), np.stack([x.sum(1)] * 3, 1))


def test_a_compiled_function_knows_the_axes_it_is_called_under():
    f = namoo.jit(lambda x: x / co.psum(1, "i") + 0 * co.all_gather(x, "i").sum())
    for n in (3, 4, 3):
        found = namoo.vmap(f, axis_name="i")(np.ones(n, np.float32))
        np.testing.assert_allclose(np.asarray(found), np.full(n, 1 / n), rtol=1e-6)
    with pytest.raises(NameError):
        f(np.float32(1))


def test_an_axis_without_examples_that_differ():
    """Operands that are not mapped, staged and not."""

    def fun(y, x):
        return co.psum(y, "i"), co.pmax(y, "i"), co.all_gather(y, "i")

    for f in (fun, namoo.jit(fun)):
        out = namoo.vmap(f, in_axes=(None, 0), axis_name="i")(2.0, np.zeros(3))
        np.testing.assert_array_equal(np.asarray(out[0]), [6.0, 6.0, 6.0])
        np.testing.assert_array_equal(np.asarray(out[1]), [2.0, 2.0, 2.0])
        assert out[2].shape == (3, 3)
    gradient = namoo.grad(
        lambda w: namoo.vmap(lambda x: co.psum(w, "i") * x, axis_name="i")(np.arange(3.0)).sum()
    )
    assert float(gradient(2.0)) == 9.0


def test_programs_print_as_in_jax():
    text = str(inside(lambda: namoo.make_jaxpr(lambda x: co.psum(x, "i"))(1.0)))
    assert "psum[axes=('i',) axis_index_groups=None]" in text
    assert "axis_index[axis_name=i]" in str(
        inside(lambda: namoo.make_jaxpr(lambda: co.axis_index("i"))())
    )


# What is refused.

UNBOUND = [
    lambda lax, x: lax.psum(x, "k"),
    lambda lax, x: lax.psum(1, "k"),
    lambda lax, x: lax.pmean(x, "k"),
    lambda lax, x: lax.pmax(x, "k"),
    lambda lax, x: lax.pmin(1, "k"),
    lambda lax, x: lax.all_gather(x, "k"),
    lambda lax, x: lax.psum_scatter(x, "k"),
    lambda lax, x: lax.all_to_all(x, "k", 0, 0),
    lambda lax, x: lax.axis_index("k"),
    lambda lax, x: lax.axis_size("k"),
]


@pytest.mark.parametrize("program", UNBOUND)
def test_unbound_names(program):
    x = np.ones(3, np.float32)
    with pytest.raises(NameError):
        program(jax.lax, x)
    for run in (
        lambda: program(OURS.lax, x),
        lambda: namoo.jit(lambda x: program(OURS.lax, x))(x),
        lambda: namoo.vmap(lambda x: program(OURS.lax, x), axis_name="i")(x[None]),
        lambda: namoo.vmap(lambda x: program(OURS.lax, x))(x[None]),
    ):
        with pytest.raises(NameError, match=r"unbound axis name: k.*vmap\(f, axis_name='k'\)"):
            run()


@pytest.mark.parametrize(
    ("fun", "error", "message"),
    [
        (lambda x: co.psum("a", "i"), TypeError, "not a valid array type"),
        (lambda x: co.psum(x, ("i", "i")), ValueError, "duplicate"),
        (lambda x: co.psum(x, "i", axis_index_groups=[[0, 1]]), ValueError, "exactly once"),
        (lambda x: co.psum(x, ("i", 0), axis_index_groups=[[0, 1, 2]]), ValueError, "named axes"),
        (
            lambda x: co.all_gather(x, "i", axis_index_groups=[[0, 1], [2]]),
            ValueError,
            "same size",
        ),
        (lambda x: co.all_gather(x, "i", axis=5), ValueError, "axis 5 is out of bounds"),
        (lambda x: co.all_gather(x[0], "i", tiled=True), ValueError, "axis 0 is out of bounds"),
        (lambda x: co.all_gather(x, "i", to="nowhere"), ValueError, "'varying' or 'reduced'"),
        (lambda x: co.all_to_all(x, "i", 0, 0), ValueError, r"shape \(2,\).*as long as.*, 3"),
        (lambda x: co.all_to_all(x, "i", 0, 0, tiled=True), ValueError, "divisible"),
        (lambda x: co.psum_scatter(x, "i"), ValueError, r"shape \(2,\).*as long as.*, 3"),
        (lambda x: co.psum_scatter(x, "i", tiled=True), ValueError, "divisible"),
        (lambda x: co.ppermute(x, "i", [(0, 5)]), IndexError, r"\(0, 5\) is out of range"),
        (lambda x: co.ppermute(x, "i", [(0, 1), (2, 1)]), ValueError, "destination occurs twice"),
        (lambda x: co.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "source occurs twice"),
        (lambda x: co.pshuffle(x, "i", [0, 0, 1]), ValueError, "permutation"),
        (lambda x: co.pbroadcast(x, "i", 3), ValueError, "source 3 is out of range"),
        (lambda x: co.pcast(x, "i", to="nowhere"), ValueError, "'varying'"),
        (
            lambda x: co.ragged_all_to_all(x, x, x, x, x, x, axis_name="i"),
            ValueError,
            "input_offsets must hold one integer for each of the 3",
        ),
    ],
)
def test_what_is_refused(fun, error, message):
    with pytest.raises(error, match=message):
        namoo.vmap(fun, axis_name="i")(np.ones((3, 2), np.float32))
