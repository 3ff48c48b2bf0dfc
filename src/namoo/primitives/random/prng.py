"""Random keys, and the bits drawn with them.

A key array has the logical shape of its keys; the words of a key are not an axis.  Every operation
here takes an array of keys of any shape: the batch rules only add an axis to it.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.dtypes import KeyDType
from namoo._base.lazy import later
from namoo._base.source_context import entry_point
from namoo.core.avals import ShapedArray, canonical_shape
from namoo.core.primitive import Primitive
from namoo.dimensions import sizes
from namoo.primitives.random.generators import GENERATORS, Generator, philox_stream, threefry2x32
from namoo.primitives.resharding import resharded
from namoo.primitives.shape import (
    broadcast,
    broadcast_in_dim,
    moveaxis,
    reshape,
    shape_of,
)

__all__ = ["RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p"]

hashing = later("namoo.primitives.random.hashing")
key_reuse = later("namoo.primitives.random.key_reuse")
slicing = later("namoo.primitives.slicing")


def words_of(keys: np.ndarray) -> tuple[KeyDType, Generator, np.ndarray]:
    """Type and generator of keys, and their words in an array of two axes."""
    dtype: Any = dtypes.of_numpy(keys.dtype)
    return (
        dtype,
        GENERATORS[dtype.impl],
        dtype.to_words(keys).reshape(keys.size, dtype.key_shape[0]),
    )


def use(name: str, keys: np.ndarray) -> tuple[KeyDType, Generator, np.ndarray]:
    """`words_of` keys, which it consumes."""
    if config.debug_key_reuse:
        key_reuse.consume(name, keys)
    return words_of(keys)


def drawn_by(emit: Any, keys: Any) -> str:
    """The generator of keys in a native program, where their use is not checked."""
    dtype: Any = dtypes.of_numpy(keys.dtype)
    if config.debug_key_reuse:
        raise emit.unsupported()
    if dtype.impl in ("threefry2x32", "rbg") and not config.threefry_partitionable:
        raise emit.unsupported()
    return dtype.impl


def check_keys(name: str, keys: ShapedArray) -> KeyDType:
    """The type of keys, or a TypeError."""
    if not isinstance(keys.dtype, KeyDType):
        raise TypeError(
            f"{name} needs random keys, but got {keys.str_short()}; make keys with random.key, or "
            "with random.wrap_key_data from their words."
        )
    return keys.dtype


def _stream(state: Any, shape: tuple[int, ...], width: int) -> Any:
    """Words of Philox's long stream, in a program."""
    dtype = np.dtype(f"uint{width}")
    params = {"shape": shape, "dtype": dtype, "algorithm": RandomAlgorithm.RNG_PHILOX}
    return rng_bit_generator_p.bind(state, **params)[1]


class KeyPrimitive(Primitive):
    """An operation whose first operand is an array of keys; its result is never weak."""

    sets_weak = True

    def weak_result(self, weak, params):
        return False

    def batch(self, xs, dims, **params):
        return self.bind(moveaxis(xs[0], dims[0], 0), **params), 0

    def sharded(self, keys, *others, **params):
        return keys.entries


class RandomSeed(KeyPrimitive):
    """Keys from integers."""

    name = "random_seed"

    def evaluate(self, seeds, *, impl):
        low = seeds.astype(np.uint32)
        if seeds.dtype.itemsize == 8:
            high = (seeds.astype(np.uint64) >> np.uint64(32)).astype(np.uint32)
        else:
            high = np.zeros_like(low)
        words = GENERATORS[impl].seed(high.reshape(-1), low.reshape(-1))
        return KeyDType(impl).from_words(words.reshape(*seeds.shape, -1))

    def abstract(self, seeds, *, impl):
        if not dtypes.issubdtype(seeds.dtype, np.integer):
            raise TypeError(f"PRNG key seed must be an integer; got {seeds.str_short()}")
        return ShapedArray(seeds.shape, KeyDType(impl))

    def native(self, emit, seeds, *, impl):
        return emit.random("seed", seeds, impl)

    def stablehlo(self, hlo, seeds, *, impl):
        low = hlo.convert(seeds, np.uint32)
        high = hlo.constant(0, np.uint32, seeds.shape)
        if seeds.dtype.itemsize == 8:
            shift = hlo.constant(32, seeds.dtype, seeds.shape)
            high = hlo.convert(hlo.combine("shift_right_logical", seeds, shift), np.uint32)
        return hlo.keys(hlo.apply(hashing.HASHED[impl].seed, high, low))


class RandomSplit(KeyPrimitive):
    """Several new keys of each key."""

    name = "random_split"

    def evaluate(self, keys, *, shape):
        dtype, generator, words = use(self.name, keys)
        count = math.prod(shape)
        out = (generator.batch_split if keys.ndim else generator.split)(words, count)
        return dtype.from_words(out.reshape(*keys.shape, *shape, *dtype.key_shape))

    def abstract(self, keys, *, shape):
        return ShapedArray((*keys.shape, *shape), check_keys(self.name, keys))

    def native(self, emit, keys, *, shape):
        return emit.random("split", keys, drawn_by(emit, keys), tuple(shape))

    def stablehlo(self, hlo, keys, *, shape):
        split = hashing.HASHED[hlo.inputs[0].dtype.impl].split
        words = hlo.apply(lambda *ws: split([*ws], math.prod(shape), _stream), *hlo.words(keys))
        return hlo.reshape(hlo.keys(words), (*keys.shape, *shape))


class RandomFoldIn(KeyPrimitive):
    """New keys of keys and 32-bit words."""

    name = "random_fold_in"

    def evaluate(self, keys, data):
        dtype, generator, words = words_of(keys)
        shape = sizes.broadcast_shapes(keys.shape, data.shape)
        if data.ndim and not keys.ndim:
            words = np.repeat(words, data.size, 0)
        fold_in = generator.batch_fold_in if shape else generator.fold_in
        return dtype.from_words(fold_in(words, data.reshape(-1)).reshape(*shape, *dtype.key_shape))

    def abstract(self, keys, data):
        dtype = check_keys(self.name, keys)
        if data.dtype != np.uint32:
            raise TypeError(f"random_fold_in needs uint32 data, got {data.str_short()}")
        if keys.shape and data.shape and keys.shape != data.shape:
            raise TypeError(f"random_fold_in got shapes {keys.shape} and {data.shape}")
        return ShapedArray(keys.shape or data.shape, dtype)

    def batch(self, xs, dims):
        keys, data = (x if d is None else moveaxis(x, d, 0) for x, d in zip(xs, dims, strict=True))
        kd, dd = dims
        if kd is not None and dd is None and shape_of(data):
            data = broadcast(data, shape_of(keys)[:1])
        elif dd is not None and kd is None and shape_of(keys):
            keys = broadcast(keys, shape_of(data)[:1])
        elif kd is not None and dd is not None:
            keys, data = _same_rank(keys, data), _same_rank(data, keys)
        return self.bind(keys, data), 0

    def native(self, emit, keys, data):
        return emit.random("fold_in", keys, data, drawn_by(emit, keys))

    def stablehlo(self, hlo, keys, data):
        fold_in = hashing.HASHED[hlo.inputs[0].dtype.impl].fold_in
        keys, data = hlo.alike(keys, data)
        return hlo.keys(
            hlo.apply(lambda data, *ws: fold_in([*ws], data, _stream), data, *hlo.words(keys))
        )


def _same_rank(x: Any, other: Any) -> Any:
    """`x` with the axes that `other` has after the mapped one."""
    return x if len(shape_of(x)) > 1 else broadcast_in_dim(x, shape_of(other), (0,))


class RandomBits(KeyPrimitive):
    """Words of random bits for each key."""

    name = "random_bits"

    def evaluate(self, keys, *, bit_width, shape):
        _, generator, words = use(self.name, keys)
        draw = generator.batch_bits if keys.ndim else generator.bits
        return draw(words, math.prod(shape), bit_width).reshape(keys.shape + shape)

    def abstract(self, keys, *, bit_width, shape):
        check_keys(self.name, keys)
        return ShapedArray((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))

    def native(self, emit, keys, *, bit_width, shape):
        return emit.random("bits", keys, drawn_by(emit, keys), bit_width, tuple(shape))

    def stablehlo(self, hlo, keys, *, bit_width, shape):
        bits = hashing.HASHED[hlo.inputs[0].dtype.impl].bits
        size = math.prod(shape)
        out = hlo.apply(lambda *ws: bits([*ws], size, bit_width, _stream), *hlo.words(keys))
        return hlo.reshape(out, (*keys.shape, *shape))


class RandomWrap(KeyPrimitive):
    """Keys of words."""

    name = "random_wrap"

    def evaluate(self, words, *, impl):
        # Raw words may be reused: only the key made of them is consumed.
        return KeyDType(impl).from_words(words.copy())

    def sharded(self, words, *, impl):
        return words.entries[:-1]

    def abstract(self, words, *, impl):
        dtype = KeyDType(impl)
        lead = words.ndim - len(dtype.key_shape)
        if words.dtype != np.uint32 or words.shape[max(lead, 0) :] != dtype.key_shape:
            raise TypeError(
                f"The words of {dtype} keys are uint32 with a shape that ends in "
                f"{dtype.key_shape}; got {words.str_short()}."
            )
        return ShapedArray(words.shape[:lead], dtype)

    def native(self, emit, words, *, impl):
        return emit.random("wrap", words)

    def stablehlo(self, hlo, words, *, impl):
        axis = words.ndim - 1
        parts = [hlo.part(words, axis, i, i + 1) for i in range(words.shape[-1])]
        return hlo.keys([hlo.reshape(part, words.shape[:-1]) for part in parts])


class RandomUnwrap(KeyPrimitive):
    """The words of keys."""

    name = "random_unwrap"

    def evaluate(self, keys):
        dtype: Any = dtypes.of_numpy(keys.dtype)
        return dtype.to_words(keys)

    def abstract(self, keys):
        dtype = check_keys(self.name, keys)
        return ShapedArray((*keys.shape, *dtype.key_shape), np.dtype(np.uint32))

    def native(self, emit, keys):
        return emit.random("unwrap", keys)

    def stablehlo(self, hlo, keys):
        parts = [hlo.reshape(word, (*keys.shape, 1)) for word in hlo.words(keys)]
        return hlo.concatenate(parts, keys.ndim)


class RandomClone(KeyPrimitive):
    """The same keys, marked as unused."""

    name = "random_clone"

    def evaluate(self, keys):
        return keys.copy()

    def abstract(self, keys):
        return keys.strong()

    def native(self, emit, keys):
        return keys

    def stablehlo(self, hlo, keys):
        return keys


random_seed_p = RandomSeed()
random_split_p = RandomSplit()
random_fold_in_p = RandomFoldIn()
random_bits_p = RandomBits()
random_wrap_p = RandomWrap()
random_unwrap_p = RandomUnwrap()
random_clone_p = RandomClone()


class RandomAlgorithm(IntEnum):
    """Which stream `rng_bit_generator` draws from; the default is Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


class RngBitGenerator(Primitive):
    """Words of a long stream, and the position after them."""

    name, multiple_results = "rng_bit_generator", True
    quiet_params = ("out_sharding",)

    def evaluate(self, state, *, shape, dtype, algorithm):
        words = np.ascontiguousarray(state).view(np.uint32)
        width = dtype.itemsize * 8
        if algorithm == RandomAlgorithm.RNG_THREE_FRY:
            blocks, out = _threefry_stream(words, shape, width)
        else:
            blocks = math.ceil(math.prod(shape) * (2 if width == 64 else 1) / 4)
            out = philox_stream(words, math.prod(shape), width).reshape(shape)
        place = words[2:].view(np.uint64) + np.uint64(blocks)
        return [np.concatenate([words[:2], place.view(np.uint32)]).view(state.dtype), out]

    def abstract(self, state, *, shape, dtype, algorithm):
        if (state.shape, state.dtype) not in (((4,), np.uint32), ((2,), np.uint64)):
            raise TypeError(
                "rng_bit_generator needs a state of 128 bits, uint32[4] or uint64[2]; "
                f"got {state.str_short()}."
            )
        return [ShapedArray(state.shape, state.dtype), ShapedArray(shape, dtype)]

    def weak_results(self, weak, count, params):
        return [False] * count

    def batch(self, xs, dims, *, shape, dtype, algorithm):
        # XLA has one stream for all examples: the first one's.
        state = moveaxis(xs[0], dims[0], 0)
        size = state.shape[0]
        first = slicing.slice_in_dim(state, 0, 1)
        new, out = self.bind(
            reshape(first, state.shape[1:]), shape=(size, *shape), dtype=dtype, algorithm=algorithm
        )
        rest = slicing.slice_in_dim(state, 1, size)
        states = slicing.concatenate([reshape(new, (1, *state.shape[1:])), rest], 0)
        return [states, out], [0, 0]

    def native(self, emit, state, *, shape, dtype, algorithm):
        if algorithm == RandomAlgorithm.RNG_THREE_FRY:
            raise emit.unsupported()
        return emit.random("generate", state, tuple(shape), np.dtype(dtype))

    def stablehlo(self, hlo, state, *, shape, dtype, algorithm):
        wide = dtype if dtype.itemsize >= 4 else np.dtype(np.uint32)
        three_fry = algorithm == RandomAlgorithm.RNG_THREE_FRY
        place = state
        if state.dtype == np.uint32:
            place = hlo.bitcast(hlo.reshape(state, (2, 2)), np.uint64, (2,))
        place, out = hlo.op(
            "rng_bit_generator",
            place,
            result=[((2,), np.uint64), (shape, wide)],
            rng_algorithm=f"#stablehlo<rng_algorithm {'THREE_FRY' if three_fry else 'PHILOX'}>",
        )
        if state.dtype == np.uint32:
            place = hlo.reshape(hlo.bitcast(place, np.uint32, (2, 2)), (4,))
        return [place, hlo.convert(out, dtype)]


def _threefry_stream(
    state: np.ndarray, shape: tuple[int, ...], width: int
) -> tuple[int, np.ndarray]:
    """Threefry's stream in an array, after the number of hashes it took.

    Both words of a hash are neighbours along the first axis of even length; where there
    is none, along the longest axis, whose last second word is left out.
    """
    halved = list(shape)
    even = [i for i, size in enumerate(shape) if size % 2 == 0]
    axis = even[0] if even else shape.index(max(shape)) if shape else 0
    if width < 64 and shape:
        halved[axis] = (shape[axis] + 1) // 2
    n = math.prod(halved)
    place = np.arange(n, dtype=np.uint64) + state[2:].view(np.uint64)
    counter = [place.astype(np.uint32), (place >> np.uint64(32)).astype(np.uint32)]
    first, second = threefry2x32(state[:2].tolist(), counter)
    if width == 64:
        return n, (first | second.astype(np.uint64) << np.uint64(32)).reshape(shape)
    if not shape:
        return n, first.reshape(()).astype(f"uint{width}")
    out = np.stack([first.reshape(halved), second.reshape(halved)], axis + 1)
    halved[axis] *= 2
    kept = (*(slice(None) for _ in range(axis)), slice(shape[axis]))
    return n, out.reshape(halved)[kept].astype(f"uint{width}")


rng_bit_generator_p = RngBitGenerator()


@entry_point
def rng_bit_generator(
    key: Any,
    shape: Any,
    dtype: Any = np.uint32,
    algorithm: Any = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """Random bits from a long stream whose state is passed along.

    Args:
        key: the state, `uint32[4]` or `uint64[2]`: two words of key, two of the position.
        shape: shape of the bits.
        dtype: an unsigned type.
        algorithm: a `RandomAlgorithm`; the default is Philox.
        out_sharding: the sharding of the result; no effect on one device.

    Returns:
        The new state, and the bits.

    Raises:
        TypeError: the dtype is not unsigned, or the state is not such an array.

    Example:
        >>> import namoo.numpy as jnp
        >>> state, bits = rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (3,))
        >>> state
        Array([0, 1, 3, 3], dtype=uint32)
        >>> bits
        Array([ 895509795, 3230209149, 3834998268], dtype=uint32)
    """
    wanted = dtypes.canonicalize_dtype(dtype)
    if wanted not in _UNSIGNED:
        raise TypeError(f"rng_bit_generator: unsupported dtype {wanted}")
    if out_sharding is not None:
        state, bits = rng_bit_generator(key, shape, dtype, algorithm)
        return state, resharded("rng_bit_generator", bits, out_sharding)
    state, bits = rng_bit_generator_p.bind(
        key,
        shape=canonical_shape(shape),
        dtype=wanted,
        algorithm=RandomAlgorithm(algorithm),
    )
    return state, bits


_UNSIGNED = [np.dtype(f"uint{width}") for width in (8, 16, 32, 64)]
