"""Keys and bits: equal to JAX's in every bit."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy
import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax, random
from namoo._base.config import explicit_x64_dtypes
from namoo.primitives.random import key_reuse
from namoo.primitives.random.prng import rng_bit_generator
from random_oracle import assert_equal, both_set, numbers, outcome

GENERATORS = ["threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"]
impls = pytest.mark.parametrize("impl", GENERATORS)


def pair(seed=42, impl="threefry2x32"):
    """The same key in both libraries, with words that are not the seed's."""
    words = np.random.default_rng(seed).integers(0, 2**32, (4,), dtype=np.uint32)
    words = words[: random.key_dtype(impl).key_shape[0]]
    return random.wrap_key_data(words, impl=impl), jax.random.wrap_key_data(words, impl=impl)


SEEDS = [
    *(0, 1, -1, 42, True, 2**31 - 1, 2**31, 2**32 - 1, 2**32 + 5, -(2**31), -(2**31) - 1),
    *(2**63 - 1, -(2**63), np.int8(-3), np.uint8(250), np.int32(-5), np.uint32(2**32 - 1)),
    *(np.int64(2**40 + 3), np.uint64(2**64 - 3), np.array(7)),
]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("seed", SEEDS, ids=repr)
def test_seeds(seed, x64):
    with both_set(enable_x64=x64):
        assert_equal(random.key(seed), jax.random.key(seed))
        assert_equal(random.PRNGKey(seed), jax.random.PRNGKey(seed))


@impls
@pytest.mark.parametrize("x64", [False, True])
def test_seeds_of_all_generators(impl, x64):
    with both_set(enable_x64=x64):
        for seed in (0, 7, -7, 2**40 + 1):
            assert_equal(random.key(seed, impl=impl), jax.random.key(seed, impl=impl))
            assert_equal(random.PRNGKey(seed, impl=impl), jax.random.PRNGKey(seed, impl=impl))


@pytest.mark.parametrize(
    "seed",
    [2**63, -(2**63) - 1, 10**30, 1.5, np.bool_(True), np.array([1, 2]), "xyz", None],
    ids=repr,
)
@pytest.mark.parametrize("make", ["key", "PRNGKey"])
def test_bad_seeds(make, seed):
    with pytest.raises((TypeError, ValueError, OverflowError)) as wanted:
        getattr(jax.random, make)(seed)
    with pytest.raises((TypeError, ValueError, OverflowError)) as found:
        getattr(random, make)(seed)
    assert issubclass(wanted.type, found.type)


def test_traced_seeds():
    keys = namoo.vmap(random.key)(jnp.arange(5))
    assert_equal(keys, jax.vmap(jax.random.key)(jax.numpy.arange(5)))
    assert_equal(namoo.jit(random.key)(-5), jax.jit(jax.random.key)(-5))
    with both_set(enable_x64=True):
        assert_equal(namoo.jit(random.PRNGKey)(-5), jax.jit(jax.random.PRNGKey)(-5))


def test_seed_offset():
    with both_set(random_seed_offset=5):
        for seed in (3, -7, 2**31 - 1, np.int8(127)):
            assert_equal(random.key(seed), jax.random.key(seed))


NUMBERS = [0, 1, 5, 33, (2, 3), ()]
SHAPES = [(), (5,), (3, 4), (0, 2), (33000,)]
WIDTHS = ["uint8", "uint16", "uint32", "uint64"]
modes = pytest.mark.parametrize(
    "impl, partitionable",
    [*((impl, True) for impl in GENERATORS), ("threefry2x32", False), ("rbg", False)],
)


@modes
def test_split(impl, partitionable):
    ours, theirs = pair(impl=impl)
    with both_set(threefry_partitionable=partitionable):
        # The oracle compiles one program faster than many.
        wanted = jax.jit(lambda key: [jax.random.split(key, n) for n in NUMBERS])(theirs)
        for num, keys in zip(NUMBERS, wanted, strict=True):
            assert_equal(random.split(ours, num), keys)


@modes
def test_fold_in(impl, partitionable):
    ours, theirs = pair(impl=impl)
    data = [0, 9, 2**31, 2**32 - 1, True, np.int64(2**40 + 7), np.int32(-1), np.float32(1.5)]
    with both_set(threefry_partitionable=partitionable):
        for x in data:
            assert_equal(random.fold_in(ours, x), jax.random.fold_in(theirs, x))
    many = np.arange(40, dtype=np.int32)
    folded = namoo.vmap(random.fold_in, (None, 0))(ours, many)
    assert_equal(folded, jax.vmap(jax.random.fold_in, (None, 0))(theirs, many))


@modes
def test_bits(impl, partitionable):
    ours, theirs = pair(impl=impl)
    cases = [(shape, dtype) for shape in SHAPES for dtype in WIDTHS]
    with both_set(threefry_partitionable=partitionable, enable_x64=True):
        wanted = jax.jit(lambda key: [jax.random.bits(key, *case) for case in cases])(theirs)
        for case, words in zip(cases, wanted, strict=True):
            assert_equal(random.bits(ours, *case), words)


@hypothesis.settings(max_examples=8)
@hypothesis.given(
    shape=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    seed=st.integers(-(2**63), 2**63 - 1),
    dtype=st.sampled_from(["uint8", "uint16", "uint32"]),
)
def test_bits_of_any_shape(shape, seed, dtype):
    found = random.bits(random.key(seed), shape, dtype)
    assert_equal(found, jax.random.bits(jax.random.key(seed), shape, dtype))


def test_default_bits_follow_the_width():
    for x64, dtype in ((False, np.uint32), (True, np.uint64)):
        with both_set(enable_x64=x64):
            ours, theirs = pair()
            assert random.bits(ours).dtype == dtype
            assert_equal(random.bits(ours), jax.random.bits(theirs))


DRAWS = [
    lambda r, key: r.bits(key, (5,)),
    lambda r, key: r.split(key, 3),
    lambda r, key: r.fold_in(key, 7),
    lambda r, key: r.split(r.split(key)[1], 2),
]


@impls
def test_many_keys(impl):
    """A map over keys is a loop, where XLA's own generator does not share one stream."""
    ours, theirs = pair(impl=impl)
    ours, theirs = random.split(ours, 30), jax.random.split(theirs, 30)
    wanted = jax.jit(jax.vmap(lambda key: [draw(jax.random, key) for draw in DRAWS]))(theirs)
    found = namoo.vmap(lambda key: [draw(random, key) for draw in DRAWS])(ours)
    for draw, a, b in zip(DRAWS, found, wanted, strict=True):
        assert_equal(a, b)
        if "rbg" not in impl:
            loop = np.stack([numbers(draw(random, key)) for key in ours])
            np.testing.assert_array_equal(numbers(a), loop)


def test_nested_maps_over_keys():
    ours, theirs = pair()
    ours, theirs = random.split(ours, (2, 3)), jax.random.split(theirs, (2, 3))
    inner = {"keys": (0, None), "data": (None, 0)}
    for axes in inner.values():
        data = np.arange(12).reshape(2, 6)[:, :: 1 if axes[1] == 0 else 6].squeeze()
        keys = (ours, theirs) if axes[0] == 0 else (ours[:, 0], theirs[:, 0])
        found = namoo.vmap(namoo.vmap(random.fold_in, axes))(keys[0], data)
        assert_equal(found, jax.vmap(jax.vmap(jax.random.fold_in, axes))(keys[1], data))
    both = namoo.vmap(namoo.vmap(random.fold_in), (1, 1))(ours.T, np.arange(6).reshape(3, 2))
    wanted = jax.vmap(jax.vmap(jax.random.fold_in), (1, 1))(theirs.T, np.arange(6).reshape(3, 2))
    assert_equal(both, wanted)


def test_raw_words_are_taken_everywhere():
    typed, raw = random.key(3), random.PRNGKey(3)
    assert_equal(raw, jax.random.PRNGKey(3))
    for draw in (random.split, lambda key: random.fold_in(key, 1), random.key_data):
        np.testing.assert_array_equal(draw(raw), random.key_data(draw(typed)))
    for draw in (random.bits, random.normal, lambda key: random.gamma(key, 2.0)):
        np.testing.assert_array_equal(draw(raw), draw(typed))
    np.testing.assert_array_equal(random.bits(np.asarray(raw)), random.bits(typed))
    assert random.key_impl(raw) == "threefry2x32"


def test_custom_prng_makes_typed_keys():
    with both_set(enable_custom_prng=True):
        assert_equal(random.PRNGKey(3), jax.random.PRNGKey(3))


def test_legacy_keys_can_be_refused():
    raw = random.PRNGKey(0)
    with both_set(legacy_prng_key="error"), pytest.raises(ValueError, match="random.key"):
        random.split(raw)
    with both_set(legacy_prng_key="warn"), pytest.warns(UserWarning, match="random.key"):
        random.bits(raw)


def test_default_generator():
    with both_set(default_prng_impl="rbg"):
        assert_equal(random.key(3), jax.random.key(3))
        assert_equal(random.split(random.PRNGKey(3)), jax.random.split(jax.random.PRNGKey(3)))
        with pytest.raises(TypeError, match="4 words"):
            random.split(np.zeros(2, np.uint32))


@impls
def test_words_and_types(impl):
    ours, theirs = pair(impl=impl)
    assert_equal(random.key_data(ours), jax.random.key_data(theirs))
    assert random.key_impl(ours) == jax.random.key_impl(theirs) == impl
    assert str(random.key_dtype(impl)) == str(jax.random.key_dtype(impl))
    assert random.key(0, dtype=random.key_dtype(impl)).dtype == ours.dtype
    assert random.key(0, impl=ours.dtype).dtype == ours.dtype
    again = random.wrap_key_data(random.key_data(random.split(ours, 3)), impl=impl)
    assert_equal(again, jax.random.split(theirs, 3))
    assert_equal(random.clone(ours), jax.random.clone(theirs))
    assert repr(ours) == repr(theirs)
    assert repr(random.split(ours, (2, 1))) == repr(jax.random.split(theirs, (2, 1)))


ARRAYS = {
    "index": lambda r, jnp, keys: keys[1],
    "slice": lambda r, jnp, keys: keys[::-2],
    "fancy": lambda r, jnp, keys: keys[jnp.array([0, 5, 5])],
    "mask": lambda r, jnp, keys: keys[np.array([True, False] * 3)],
    "reshape": lambda r, jnp, keys: keys.reshape(2, 3),
    "transpose": lambda r, jnp, keys: keys.reshape(2, 3).T,
    "ravel": lambda r, jnp, keys: keys.reshape(2, 3).ravel(),
    "flatten": lambda r, jnp, keys: keys.reshape(2, 3).flatten(),
    "expand": lambda r, jnp, keys: jnp.expand_dims(keys, 0),
    "squeeze": lambda r, jnp, keys: jnp.squeeze(keys[:1]),
    "broadcast": lambda r, jnp, keys: jnp.broadcast_to(keys[0], (2, 2)),
    "concatenate": lambda r, jnp, keys: jnp.concatenate([keys, keys[:2]]),
    "stack": lambda r, jnp, keys: jnp.stack([keys[0], keys[3]]),
    "where": lambda r, jnp, keys: jnp.where(np.arange(6) < 3, keys, keys[::-1]),
    "roll": lambda r, jnp, keys: jnp.roll(keys, 2),
    "take": lambda r, jnp, keys: jnp.take(keys, 1),
    "zeros": lambda r, jnp, keys: jnp.zeros(2, keys.dtype),
    "ones": lambda r, jnp, keys: jnp.ones(2, keys.dtype),
    "empty": lambda r, jnp, keys: jnp.empty((1, 2), keys.dtype),
    "full": lambda r, jnp, keys: jnp.full(2, 3, keys.dtype),
    "full of a key": lambda r, jnp, keys: jnp.full(2, keys[1], keys.dtype),
    "zeros_like": lambda r, jnp, keys: jnp.zeros_like(keys),
    "ones_like": lambda r, jnp, keys: jnp.ones_like(keys[0]),
    "empty_like": lambda r, jnp, keys: jnp.empty_like(keys, shape=(1,)),
    "full_like": lambda r, jnp, keys: jnp.full_like(keys, keys[2]),
    "full_like of a number": lambda r, jnp, keys: jnp.full_like(keys, 7),
    "set": lambda r, jnp, keys: keys.at[0].set(keys[1]),
    "asarray": lambda r, jnp, keys: jnp.asarray(keys),
    "list": lambda r, jnp, keys: jnp.stack(list(keys)[::-1]),
    "equal": lambda r, jnp, keys: keys == keys[::-1],
    "unequal": lambda r, jnp, keys: keys != keys[0],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_key_arrays(name):
    ours, theirs = random.split(random.key(1), 6), jax.random.split(jax.random.key(1), 6)
    found = ARRAYS[name](random, jnp, ours)
    wanted = ARRAYS[name](jax.random, jax.numpy, theirs)
    assert_equal(found, wanted)


def test_key_arrays_have_the_attributes_of_arrays():
    keys = random.split(random.key(1), 6).reshape(2, 3)
    assert (keys.shape, keys.ndim, keys.size, len(keys)) == ((2, 3), 2, 6, 2)
    assert namoo.dtypes.issubdtype(keys.dtype, namoo.dtypes.prng_key)
    assert_equal(pickle.loads(pickle.dumps(keys)), keys)
    first, second = keys
    assert second.shape == (3,)
    assert isinstance(first, namoo.Array)


def test_trees_of_keys():
    tree = {"a": 1.0, "b": (2.0, 3.0)}
    leaves, structure = namoo.tree.flatten(tree)
    keys = namoo.tree.unflatten(structure, list(random.split(random.key(0), len(leaves))))
    draws = namoo.tree.map(lambda x, key: x + random.normal(key), tree, keys)
    theirs = jax.random.split(jax.random.key(0), 3)
    wanted = [x + jax.random.normal(key) for x, key in zip(leaves, theirs, strict=True)]
    np.testing.assert_allclose(namoo.tree.leaves(draws), wanted, rtol=1e-6)


def test_keys_flow_through_control():
    def program(lib, lax, r, key):
        def step(key, x):
            key, subkey = r.split(key)
            return key, r.normal(subkey) + x

        last, xs = lax.scan(step, key, np.arange(4, dtype=np.float32))
        chosen = lax.cond(xs[0] > 0, lambda k: r.split(k)[0], lambda k: r.fold_in(k, 3), last)
        looped = lax.fori_loop(0, 3, lambda i, k: r.fold_in(k, i), chosen)
        far = lax.while_loop(lambda k: r.uniform(k) < 0.9, lambda k: r.split(k)[1], looped)
        mapped = lax.map(lambda k: r.uniform(k, (2,)), r.split(far, 3))
        return xs, r.key_data(far), mapped

    wanted = jax.jit(lambda key: program(jax, jax.lax, jax.random, key))(jax.random.key(2))
    for found in (
        program(namoo, lax, random, random.key(2)),
        namoo.jit(lambda key: program(namoo, lax, random, key))(random.key(2)),
    ):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


ERRORS = {
    "split a number": lambda r, jnp, k: r.split(1),
    "split a list": lambda r, jnp, k: r.split([0, 1]),
    "split nothing": lambda r, jnp, k: r.split(None),
    "split words of a wrong shape": lambda r, jnp, k: r.split(jnp.zeros(3, jnp.uint32)),
    "split words of a wrong type": lambda r, jnp, k: r.split(jnp.zeros(2)),
    "split many keys": lambda r, jnp, k: r.split(r.split(k)),
    "split many raw keys": lambda r, jnp, k: r.split(r.split(r.PRNGKey(0))),
    "split by a float": lambda r, jnp, k: r.split(k, 1.5),
    "fold into many": lambda r, jnp, k: r.fold_in(r.split(k), 1),
    "fold in an array": lambda r, jnp, k: r.fold_in(k, np.arange(2)),
    "fold in too much": lambda r, jnp, k: r.fold_in(k, 2**32),
    "fold in a negative number": lambda r, jnp, k: r.fold_in(k, -1),
    "fold in a string": lambda r, jnp, k: r.fold_in(k, "a"),
    "fold in nothing": lambda r, jnp, k: r.fold_in(k, None),
    "bits of many": lambda r, jnp, k: r.bits(r.split(k)),
    "signed bits": lambda r, jnp, k: r.bits(k, (2,), "int32"),
    "float bits": lambda r, jnp, k: r.bits(k, (2,), "float32"),
    "a shape of floats": lambda r, jnp, k: r.bits(k, (2.0,)),
    "an unknown generator": lambda r, jnp, k: r.key(0, impl="xx"),
    "an unknown type": lambda r, jnp, k: r.key(0, dtype="float32"),
    "a type and a generator": lambda r, jnp, k: r.key(0, impl="rbg", dtype=k.dtype),
    "the type of an unknown generator": lambda r, jnp, k: r.key_dtype("xx"),
    "wrap floats": lambda r, jnp, k: r.wrap_key_data(jnp.zeros(2)),
    "wrap too many words": lambda r, jnp, k: r.wrap_key_data(jnp.zeros(4, jnp.uint32)),
    "wrap a list": lambda r, jnp, k: r.wrap_key_data([1, 2]),
    "wrap a key": lambda r, jnp, k: r.wrap_key_data(k),
    "words of a list": lambda r, jnp, k: r.key_data([1, 2]),
    "generator of a number": lambda r, jnp, k: r.key_impl(1.0),
    "add": lambda r, jnp, k: k + 1,
    "add on the right": lambda r, jnp, k: 1 + k,
    "multiply": lambda r, jnp, k: k * 2.0,
    "negate": lambda r, jnp, k: -k,
    "invert": lambda r, jnp, k: ~k,
    "compare": lambda r, jnp, k: k < k,
    "equal to words": lambda r, jnp, k: k == r.PRNGKey(0),
    "sine": lambda r, jnp, k: jnp.sin(k),
    "sum": lambda r, jnp, k: jnp.sum(r.split(k)),
    "max": lambda r, jnp, k: jnp.max(r.split(k)),
    "sort": lambda r, jnp, k: jnp.sort(r.split(k)),
    "to NumPy": lambda r, jnp, k: np.asarray(k),
    "to a float": lambda r, jnp, k: float(k),
    "to a boolean": lambda r, jnp, k: bool(k),
    "length of one": lambda r, jnp, k: len(k),
    "iterate over one": lambda r, jnp, k: list(k),
    "index into one": lambda r, jnp, k: k[0],
    "hash": lambda r, jnp, k: hash(k),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    found = outcome(lambda: ERRORS[name](random, jnp, random.key(0)))
    wanted = outcome(lambda: ERRORS[name](jax.random, jax.numpy, jax.random.key(0)))
    assert isinstance(wanted, Exception), wanted
    assert type(found).__name__ == type(wanted).__name__, f"{found!r}, but JAX: {wanted!r}"


def test_grad_by_a_key():
    with pytest.raises(TypeError, match="key<fry>"):
        namoo.grad(lambda key: random.normal(key))(random.key(0))


def test_negative_lengths():
    for draw in (random.bits, random.normal):
        with pytest.raises(ValueError, match="negative"):
            draw(random.key(0), (-1,))
    with pytest.raises(ValueError, match="negative"):
        random.split(random.key(0), -1)


def used(r, key):
    r.normal(key)
    return key


def vmapped(lib, r, keys):
    lib.vmap(lambda key: r.normal(key))(keys)
    return keys


def children(r, key, first, second):
    keys = r.split(key)
    return r.normal(keys[first]) + r.normal(keys[second])


REUSE = {
    "drawn twice": lambda lib, r, key: r.bits(used(r, key)),
    "split after a draw": lambda lib, r, key: r.split(used(r, key)),
    "drawn after a split": lambda lib, r, key: (r.split(key), r.normal(key)),
    "gamma after a draw": lambda lib, r, key: r.gamma(used(r, key), 2.0),
    "same element": lambda lib, r, key: children(r, key, 0, 0),
    "mapped twice": lambda lib, r, key: vmapped(lib, r, vmapped(lib, r, r.split(key, 3))),
    "in jit": lambda lib, r, key: lib.jit(lambda key: r.normal(key) + r.normal(key))(key),
    "element in jit": lambda lib, r, key: lib.jit(lambda key: children(r, key, 0, 0))(key),
    "jit twice": lambda lib, r, key: [lib.jit(r.normal)(key) for _ in range(2)],
    "other elements": lambda lib, r, key: children(r, key, 0, 1),
    "other elements in jit": lambda lib, r, key: lib.jit(lambda k: children(r, k, 0, 1))(key),
    "fold_in": lambda lib, r, key: [r.fold_in(used(r, key), i) for i in range(2)],
    "clone": lambda lib, r, key: r.normal(r.clone(used(r, r.clone(key)))),
    "words": lambda lib, r, key: [r.normal(r.key_data(key)) for _ in range(2)],
    "poisson": lambda lib, r, key: r.poisson(key, 3.0),
    "binomial": lambda lib, r, key: r.binomial(key, 30, 0.5),
}


@pytest.mark.parametrize("name", REUSE)
def test_reuse(name):
    def run(lib):
        return outcome(lambda: REUSE[name](lib, lib.random, lib.random.key(0)))

    with both_set(debug_key_reuse=True):
        results = [run(namoo), run(jax)]
    found, wanted = (isinstance(x, Exception) and type(x).__name__ for x in results)
    assert found == wanted, results


def test_reuse_is_allowed_by_default():
    key = random.key(0)
    assert_equal(random.normal(used(random, key)), random.normal(key))


def test_memory_of_used_keys_is_forgotten():
    gc.collect()
    before = len(key_reuse._used)
    with both_set(debug_key_reuse=True):
        for _ in range(20):
            random.bits(random.key(0))
    gc.collect()
    assert len(key_reuse._used) == before


# Where the words of a hash go depends on which lengths are even, and on the longest one.
STREAMS = [(), (5,), (2, 3), (3, 2), (2, 2), (3, 3), (3, 5, 7), (1, 3), (0,)]


@pytest.mark.parametrize("algorithm", [0, 1, 2])
def test_rng_bit_generator(algorithm):
    cases = [((3, 3), dtype) for dtype in WIDTHS]
    cases += [(shape, "uint32") for shape in STREAMS if algorithm == 1]
    with both_set(enable_x64=True):
        theirs: Any = jax.lax.rng_bit_generator
        draw = jax.jit(lambda s: [theirs(s, *case, algorithm) for case in cases])
        for state in ([11, 22, 33, 44], [5, 6, 2**32 - 1, 2**32 - 1]):
            state = np.array(state, np.uint32)
            for case, wanted in zip(cases, draw(state), strict=True):
                for a, b in zip(rng_bit_generator(state, *case, algorithm), wanted, strict=True):
                    assert_equal(a, b)


def test_rng_bit_generator_of_64_bit_state_and_batches():
    with both_set(enable_x64=True):
        state = np.array([11, 2**33 + 5], np.uint64)
        for a, b in zip(
            rng_bit_generator(state, (3,)), jax.lax.rng_bit_generator(state, (3,)), strict=True
        ):
            assert_equal(a, b)
    states = np.arange(8, dtype=np.uint32).reshape(2, 4)
    found = namoo.vmap(lambda s: rng_bit_generator(s, (3,)))(states)
    wanted = jax.vmap(lambda s: jax.lax.rng_bit_generator(s, (3,)))(states)
    for a, b in zip(found, wanted, strict=True):
        assert_equal(a, b)


def test_rng_bit_generator_errors():
    with pytest.raises(TypeError, match="unsupported dtype"):
        rng_bit_generator(np.zeros(4, np.uint32), (3,), np.int32)
    with pytest.raises(TypeError, match="128 bits"):
        rng_bit_generator(np.zeros(3, np.uint32), (3,))


@pytest.mark.parametrize("mode", ["allow", "warn", "error"])
def test_bits_of_64_bit_types_obey_the_setting(mode):
    with explicit_x64_dtypes(mode):
        draw = lambda: random.bits(random.key(0), (3,), "uint64")  # noqa: E731
        if mode == "warn":
            with pytest.warns(UserWarning, match="Explicitly requested dtype"):
                assert draw().dtype == np.uint32
        elif mode == "error":
            with pytest.raises(ValueError, match="Explicitly requested dtype"):
                draw()
        else:
            found = draw()
            with jax.enable_x64(True):
                wanted = jax.random.bits(jax.random.key(0), (3,), "uint64")
            np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_keys_stay_keys_on_the_host():
    keys = random.split(random.key(0), 3)
    found = namoo.device_get({"keys": keys})["keys"]
    np.testing.assert_array_equal(random.key_data(found), random.key_data(keys))
    with pytest.raises(TypeError, match="accepts a scalar seed"):
        random.key(keys[0])


def test_the_length_of_a_permutation_must_be_known():
    with pytest.raises(namoo.errors.ConcretizationTypeError, match="permutation"):
        namoo.jit(random.permutation)(random.key(0), 5)


def test_generator_and_words_by_the_names_that_libraries_read():
    for lib in (namoo, jax):
        key = lib.random.key(3)
        assert (key._impl.name, key._impl.tag, key._impl.key_shape) == ("threefry2x32", "fry", (2,))
        np.testing.assert_array_equal(key._base_array, [0, 3])
        assert not hasattr(lib.numpy.ones(2), "_impl")
        key.delete()
        assert key._base_array.is_deleted()
