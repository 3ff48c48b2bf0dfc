"""Arrays that are long, or do not fit into the caches: indices, sums, tiles."""

import itertools
import math

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.core.array import to_numpy
from namoo.engines.native.engine import native

# More elements than 32 bits count.  Only the shapes of such arrays are looked at.
LONG = namoo.ShapeDtypeStruct((2**31 + 100,), "int8")


@pytest.mark.parametrize(
    "fun",
    [
        jnp.argmax,
        jnp.argmin,
        jnp.argsort,
        jnp.nanargmax,
        lambda x: lax.argmax(x, 0, np.int32),
        lambda x: jnp.argmax(x.reshape(2, -1)),
        namoo.jit(jnp.argmax),
    ],
)
def test_places_that_do_not_fit_are_refused(fun):
    with pytest.raises(ValueError, match="int32 indices would overflow.*jax_enable_x64"):
        namoo.eval_shape(fun, LONG)
    with namoo.enable_x64(True):
        assert namoo.eval_shape(jnp.argmax, LONG).dtype == np.int64


def test_places_of_concrete_arrays_that_do_not_fit_are_refused():
    x = np.broadcast_to(np.int8(0), LONG.shape)
    with pytest.raises(ValueError, match="int32 indices would overflow"):
        lax.argmax_p.evaluate(x, axes=(0,), index_dtype=np.dtype(np.int32))
    with pytest.raises(ValueError, match="int8 indices would overflow"):
        lax.argmax(jnp.zeros(300), 0, np.int8)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
@pytest.mark.parametrize("fun", [lambda x, i: x[i], lambda x, i: x.at[i].set(0)])
def test_indices_of_a_long_axis_have_64_bits(fun, dtype, wide):
    with namoo.enable_x64(wide):
        places = namoo.ShapeDtypeStruct((2,), dtype)
        *_, last = namoo.make_jaxpr(fun)(LONG, places).eqns
        assert last.invars[1].aval.dtype == np.int64
        program = namoo.make_jaxpr(lambda i: fun(jnp.zeros(LONG.shape, "int8"), i))(places)
        assert not native.compile(program).host_operations()


@pytest.mark.parametrize("shape", [(1 << 23,), (5_000_011,), (2_000_003, 2), (4, 2_000_003)])
@pytest.mark.parametrize("axis", [0, -1])
def test_the_error_of_a_sum_does_not_grow_with_its_length(shape, axis):
    x = np.random.default_rng(0).random(shape, np.float32)
    found, exact = namoo.jit(lambda x: x.sum(axis))(x), x.sum(axis, np.float64)
    np.testing.assert_allclose(found, exact, 4e-7)


def test_places_of_extremes_in_long_arrays():
    x = np.random.default_rng(0).permutation(300_007).astype(np.float32)
    assert namoo.jit(jnp.argmax)(x) == x.argmax()
    assert namoo.jit(jnp.argmin)(x) == x.argmin()


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(300, 70), (257, 64), (512, 65), (3, 300, 100), (300, 5, 70)])
def test_transposed_arrays_are_computed_in_tiles(shape, dtype):
    x = (np.arange(math.prod(shape)) % 251 - 100).reshape(shape).astype(dtype)
    orders = list(itertools.permutations(range(len(shape))))

    def fun(x):
        return [jnp.transpose(x, order) for order in orders] + [jnp.where(x, x, x).T]

    found = namoo.jit(fun)(x)
    for y, order in zip(found, [*orders, range(len(shape))[::-1]], strict=True):
        np.testing.assert_array_equal(to_numpy(y), x.transpose(order))


def test_tiles_do_not_depend_on_threads():
    x, y = (np.random.default_rng(i).normal(size=s) for i, s in enumerate([(700, 300), (300, 700)]))
    fun = namoo.jit(lambda x, y: jnp.sin(x.T) * y + x.T)
    before = namoo.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            namoo.set_num_threads(threads)
            found.append(to_numpy(fun(x, y)))
    finally:
        namoo.set_num_threads(before)
    np.testing.assert_allclose(found[0], np.sin(x.T) * y + x.T, 1e-5, 1e-5)
    assert all((f == found[0]).all() for f in found)
