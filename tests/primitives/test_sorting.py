"""Sorting and the largest elements against JAX and NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import namoo
import namoo.random
from jax_oracle import OURS, THEIRS, agree, agree_with_vjp, fail_alike

rng = np.random.default_rng(0)
plain = rng.normal(size=(3, 4, 5)).astype(np.float32)
ties = np.round(plain * 2)
special = np.array([3, np.nan, -0.0, 0.0, -0.0, -np.inf, -np.nan, np.inf, 1.0], np.float32)
TYPES = "bool int4 int8 uint8 int32 uint32 float8_e4m3fn float16 bfloat16 float32".split()


def converted(x, dtype):
    if dtype == "bool":
        return x > 0
    if "int" in dtype:
        return np.round(x).astype(np.int8).astype(dtype)
    return x.astype(np.dtype(dtype))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sorts_and_their_derivatives(axis):
    agree_with_vjp(lambda lib, x: lib.lax.sort(x, axis), ties)
    agree_with_vjp(lambda lib, x, y: lib.lax.sort((x, y), axis), ties, plain)
    agree_with_vjp(lambda lib, x, y: lib.lax.sort((x, y), axis, num_keys=2), ties, plain)
    agree_with_vjp(lambda lib, x: lib.lax.top_k(x, 2, axis=axis)[0], ties)


@pytest.mark.parametrize("dtype", TYPES)
def test_sorts_of_every_type(dtype):
    x = converted(ties * 3, dtype)
    agree(lambda lib: lib.lax.sort(x))
    agree(lambda lib: lib.lax.sort_key_val(x, plain, dimension=0))
    many = converted(rng.normal(size=(2, 60)) * 4, dtype)
    if dtype != "int4":  # of which XLA finds no largest ones
        for k in (0, 3, 60):
            agree(lambda lib, k=k: lib.lax.top_k(many, k))


def assert_same_bits(program):
    """Equal in every bit, also the signs of zeros; all NaN are one."""
    for ours, theirs in zip(program(OURS), program(THEIRS), strict=True):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(
            np.signbit(ours) & ~np.isnan(ours), np.signbit(theirs) & ~np.isnan(theirs)
        )


def test_order_of_special_numbers():
    order = np.arange(9, dtype=np.float32)
    assert_same_bits(lambda lib: [lib.lax.sort(special)])
    assert_same_bits(lambda lib: lib.lax.sort((special, order)))
    assert_same_bits(lambda lib: lib.lax.sort((special, order), num_keys=2))
    for k in (1, 4, 9):
        assert_same_bits(lambda lib, k=k: lib.lax.top_k(special, k))
    assert_same_bits(lambda lib: lib.lax.top_k(np.tile(special, 20), 10))


def test_order_of_complex_numbers():
    x = (ties + 1j * np.round(plain)).astype(np.complex64)
    x[0, 0, 0], x[1, 1, 0] = complex(1, np.nan), complex(2, np.nan)
    x.real[0, 1, 0] = np.nan
    assert_same_parts(np.asarray(namoo.lax.sort(x)), np.asarray(THEIRS.lax.sort(x)))


def assert_same_parts(ours, theirs):
    np.testing.assert_array_equal(ours.real, theirs.real)
    np.testing.assert_array_equal(ours.imag, theirs.imag)


@given(
    hnp.arrays(np.int8, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6)),
    st.data(),
)
@settings(max_examples=60)
def test_stability_against_numpy(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    places = np.broadcast_to(
        np.arange(x.shape[axis]).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]),
        x.shape,
    )
    few = (x % 3).astype(np.int8)
    keys, order = namoo.lax.sort((few, places.astype(np.int32)), axis)
    wanted = np.argsort(few, axis, kind="stable")
    np.testing.assert_array_equal(order, wanted)
    np.testing.assert_array_equal(keys, np.take_along_axis(few, wanted, axis))
    k = data.draw(st.integers(0, x.shape[axis]))
    values, found = namoo.lax.top_k(few, k, axis=axis)
    wanted = np.argsort(-few, axis, kind="stable").take(range(k), axis)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(few, wanted, axis))


@pytest.mark.parametrize("axes", [(0, None), (None, 1), (-1, 0)])
def test_batched(axes):
    x = ties if axes[0] is None else np.stack([ties, plain], axes[0])
    y = plain if axes[1] is None else np.stack([plain, ties], axes[1])
    agree(lambda lib: lib.vmap(lambda x, y: lib.lax.sort((x, y), 1), axes)(x, y))
    if axes[0] is not None:
        agree(lambda lib: lib.vmap(lambda x: lib.lax.top_k(x, 2, axis=0), axes[0])(x))


def test_random_keys_go_along():
    """Arrays that cannot be compared may follow those that can."""
    keys = namoo.random.split(namoo.random.key(0), 3)
    _, moved = namoo.lax.sort((np.array([3, 1, 2]), keys))
    data = namoo.random.key_data
    np.testing.assert_array_equal(data(moved), np.asarray(data(keys))[[1, 2, 0]])


def random(lib):
    return namoo.random if lib is OURS else lib.random


ERRORS = {
    "axis": lambda lib: lib.lax.sort(plain, 3),
    "negative axis": lambda lib: lib.lax.sort(plain, -4),
    "scalar": lambda lib: lib.lax.sort(np.float32(1)),
    "nothing": lambda lib: lib.lax.sort(()),
    "shapes": lambda lib: lib.lax.sort((plain, plain[:2])),
    "no keys": lambda lib: lib.lax.sort((plain, plain), num_keys=0),
    "too many keys": lambda lib: lib.lax.sort((plain, plain), num_keys=3),
    "random keys": lambda lib: lib.lax.sort(random(lib).split(random(lib).key(0), 3)),
    "k too large": lambda lib: lib.lax.top_k(plain, 6),
    "k negative": lambda lib: lib.lax.top_k(plain, -1),
    "k axis": lambda lib: lib.lax.top_k(plain, 1, axis=3),
    "k of scalar": lambda lib: lib.lax.top_k(np.float32(1), 1),
    "k of complex": lambda lib: lib.lax.top_k(plain.astype(np.complex64), 1),
    "approximate k of integers": lambda lib: lib.lax.approx_max_k(lib.jnp.arange(3), 2),
    "approximate k too large": lambda lib: lib.lax.approx_max_k(lib.jnp.arange(3.0), 4),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fail_alike(ERRORS[name])


def test_approximate_is_exact_here():
    x = rng.normal(size=(4, 300)).astype(np.float32)
    for name in ("approx_max_k", "approx_min_k"):
        agree(lambda lib, name=name: getattr(lib.lax, name)(lib.jnp.asarray(x), 5))
        agree(
            lambda lib, name=name: getattr(lib.lax, name)(
                lib.jnp.asarray(x), 2, reduction_dimension=0
            )
        )


@pytest.mark.parametrize("n", [3, 100, 1000, 1025, 5000, 70001])
def test_sizes_of_approximate_candidates(n):
    def size(lib, shape, k, recall, override):
        x = lib.ShapeDtypeStruct(shape, "float32")
        fun = lambda x: lib.lax.approx_max_k(  # noqa: E731
            x,
            k,
            recall_target=recall,
            reduction_input_size_override=override,
            aggregate_to_topk=False,
        )
        return lib.eval_shape(fun, x)[0].shape

    for k in (1, 2, 10, 50):
        for recall, override in [(0.5, -1), (0.95, -1), (1.0, -1), (0.9, 4 * n)]:
            for shape in [(n,), (2, n)]:
                if k <= n:
                    args = shape, k, recall, override
                    # JAX asks for more candidates than there are elements, and then fails.
                    wanted = min(size(THEIRS, *args)[-1], n)
                    assert size(OURS, *args)[-1] == wanted, args


def test_recall_is_a_fraction():
    for recall in (0.0, 1.5, -1.0):
        with pytest.raises(ValueError, match="recall_target"):
            namoo.lax.approx_max_k(plain, 2, recall_target=recall)
