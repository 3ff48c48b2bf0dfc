"""Random keys and the bits drawn with them, as elements of fused kernels.

A key is a tuple of 32-bit words.  The hash functions and their counters give the same words as
`primitives.random.generators`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo.dimensions.sizes import exceeds
from namoo.engines.native import tuning
from namoo.engines.native.ir.function import Function, Value, constant
from namoo.engines.native.ir.index import Index, ravel
from namoo.engines.native.ir.types import parts
from namoo.engines.native.kernels.threefry import threefry2x32

if TYPE_CHECKING:
    from namoo.engines.native.graph.node import Node
    from namoo.engines.native.kernels.emitter import Emitter

Words = Sequence[Value]

_PARITY = 0x1BD11BDA
_ROTATIONS = (
    ((10, 26), (11, 21), (13, 27), (23, 5)),
    ((6, 20), (17, 11), (25, 10), (18, 20)),
)


def word(number: int) -> Value:
    return constant("u32", number)


def _threefry2x32(f: Function, key: Words, counter: Words) -> tuple[Value, ...]:
    return threefry2x32(f, *key, *counter)


def threefry4x32(f: Function, key: Words, counter: Words) -> tuple[Value, ...]:
    """Threefry-4x32 with 20 rounds."""
    parity = word(_PARITY)
    for k in key:
        parity = f.xor(parity, k)
    schedule = (*key, parity)
    x = [f.add(c, k) for c, k in zip(counter, key, strict=True)]
    for group in range(5):
        for i, turns in enumerate(_ROTATIONS[group % 2]):
            for a, b, by in zip((0, 2), (1 + 2 * (i % 2), 3 - 2 * (i % 2)), turns, strict=True):
                x[a] = f.add(x[a], x[b])
                x[b] = f.xor(f.intrinsic("fshl", x[b], x[b], word(by)), x[a])
        x = [f.add(x[i], schedule[(group + 1 + i) % 5]) for i in range(4)]
        x[3] = f.add(x[3], word(group + 1))
    return tuple(x)


def _multiply(f: Function, x: Value, by: int) -> tuple[Value, Value]:
    """The high and the low word of a product."""
    product = f.mul(f.convert(x, "u64"), constant("u64", by))
    high = f.convert(f.lshr(product, constant("u64", 32)), "u32")
    return high, f.convert(product, "u32")


def philox2x32(f: Function, key: Words, counter: Words) -> tuple[Value, ...]:
    """Philox-2x32 with 10 rounds."""
    (k,), (x0, x1) = key, counter
    for _ in range(10):
        high, low = _multiply(f, x0, 0xD256D193)
        x0, x1 = f.xor(f.xor(high, x1), k), low
        k = f.add(k, word(0x9E3779B9))
    return x0, x1


def philox4x32(f: Function, key: Words, counter: Words) -> tuple[Value, ...]:
    """Philox-4x32 with 10 rounds."""
    (k0, k1), (x0, x1, x2, x3) = key, counter
    for _ in range(10):
        high0, low0 = _multiply(f, x0, 0xD2511F53)
        high2, low2 = _multiply(f, x2, 0xCD9E8D57)
        x0, x1 = f.xor(f.xor(high2, x1), k0), low2
        x2, x3 = f.xor(f.xor(high0, x3), k1), low0
        k0, k1 = f.add(k0, word(0x9E3779B9)), f.add(k1, word(0xBB67AE85))
    return x0, x1, x2, x3


Hash = Callable[[Function, Words, Words], tuple[Value, ...]]
# By name: the hash, and the words of its counter.
HASHES: dict[str, tuple[Hash, int]] = {
    "threefry2x32": (_threefry2x32, 2),
    "threefry4x32": (threefry4x32, 4),
    "philox2x32": (philox2x32, 2),
    "philox4x32": (philox4x32, 4),
}


def hash_of(emit: Emitter, name: str) -> tuple[Hash, int]:
    """The hash of a generator, and the words of its counter."""
    if name not in HASHES:
        raise emit.unsupported()
    return HASHES[name]


def position(k: Any, index: list[Index], shape: tuple[int, ...]) -> tuple[Value, Value]:
    """The position in an array as two words, the high one first."""
    place = ravel(index, shape)
    high = word(0)
    if exceeds(math.prod(shape), 2**32):
        high = k.integer(place // 2**32, "u32")
    return high, k.integer(place, "u32")


def bits(emit: Emitter, keys: Node, name: str, width: int, shape: tuple[int, ...]) -> Node:
    """Words of random bits for each key: the hash of their position."""
    rank = len(keys.shape)
    if name == "rbg":
        return _stream_bits(emit, keys, width, shape)
    function, count = hash_of(emit, name)

    def element(k, index, keys):
        f = k.f
        counter = [*position(k, index[rank:], shape), word(0), word(0)][:count]
        return combined(f, name, function(f, k.at(keys, index[:rank]), counter), width)

    return emit.compute(
        [keys],
        element,
        shape=(*keys.shape, *shape),
        dtype=np.dtype(f"uint{width}"),
        key=("random_bits", name, rank, width, shape),
        cost=tuning.HASH_COST,
    )


def combined(f: Function, name: str, words: Words, width: int) -> Value:
    """The words of a hash as an integer of some bits."""
    if width == 64:
        if name == "threefry4x32":
            words = f.xor(words[0], words[2]), f.xor(words[1], words[3])
        return _joined(f, words[1], words[0])
    total = words[0]
    for w in words[1:]:
        total = f.xor(total, w)
    return f.convert(total, f"u{width}")


def _joined(f: Function, low: Value, high: Value) -> Value:
    wide = f.shl(f.convert(high, "u64"), constant("u64", 32))
    return f.or_(wide, f.convert(low, "u64"))


def split(emit: Emitter, keys: Node, name: str, shape: tuple[int, ...]) -> Node:
    """New keys of each key."""
    rank, size = len(keys.shape), parts(keys.elem)
    if name == "rbg":
        function, count, halves = _threefry2x32, 2, 2
    else:
        (function, count), halves = hash_of(emit, name), 1

    def element(k, index, keys):
        counter = [*[word(0)] * (count - 2), *position(k, index[rank:], shape)]
        key = k.at(keys, index[:rank])
        out: tuple[Value, ...] = ()
        for h in range(halves):
            part = key[h * size // halves : (h + 1) * size // halves]
            out += function(k.f, part, counter)[: size // halves]
        return out

    return emit.compute(
        [keys],
        element,
        shape=(*keys.shape, *shape),
        dtype=keys.dtype,
        key=("random_split", name, rank, shape),
        cost=tuning.HASH_COST,
    )


def fold_in(emit: Emitter, keys: Node, data: Node, name: str) -> Node:
    """New keys of keys and 32-bit words."""
    size = parts(keys.elem)
    if name == "rbg":
        function, count, halves = _threefry2x32, 2, 2
    else:
        (function, count), halves = hash_of(emit, name), 1

    def element(k, index, keys, data):
        given = k.at(data, index if data.shape else [])
        key = k.at(keys, index if keys.shape else [])
        out: tuple[Value, ...] = ()
        for h in range(halves):
            part = key[h * size // halves : (h + 1) * size // halves]
            counter = [*[word(0)] * (count - 1), given]
            out += function(k.f, part, counter)[: size // halves]
        return out

    key = ("random_fold_in", name, bool(keys.shape), bool(data.shape))
    return emit.compute([keys, data], element, dtype=keys.dtype, key=key, cost=tuning.HASH_COST)


def seed(emit: Emitter, seeds: Node, name: str) -> Node:
    """Keys from integers."""
    function, count = HASHES.get(name, (None, 0))
    if function is None and name not in ("rbg", "unsafe_rbg"):
        raise emit.unsupported()

    def element(k, index, seeds):
        f = k.f
        value = k.at(seeds, index)
        low = f.convert(value, "u32")
        high = word(0)
        if value.elem[1:] == "64":
            high = f.convert(f.lshr(f.bitcast(value, "u64"), constant("u64", 32)), "u32")
        zeros = [word(0)] * 4
        if name == "threefry2x32":
            return high, low
        if function is None:
            return high, low, high, low
        if name == "threefry4x32":
            return function(f, [high, low, *zeros[:2]], zeros)
        size = 1 if name == "philox2x32" else 2
        return function(f, zeros[:size], [high, low, *zeros][:count])[:size]

    return emit.compute([seeds], element, key=("random_seed", name), cost=tuning.HASH_COST)


def wrap(emit: Emitter, words: Node) -> Node:
    """Keys of words."""

    def element(k, index, words):
        return tuple(k.at(words, [*index, Index.of(i)]) for i in range(words.shape[-1]))

    return emit.compute([words], element, key=("random_wrap",), cost=0)


def unwrap(emit: Emitter, keys: Node) -> Node:
    """The words of keys."""

    def element(k, index, keys):
        *at, last = index
        words = k.at(keys, at)
        if not last.terms:
            return words[last.constant]
        out, which = words[0], k.integer(last, "u32")
        for i, w in enumerate(words[1:], 1):
            out = k.f.select(k.f.compare("eq", which, word(i)), w, out)
        return out

    return emit.compute([keys], element, dtype=np.dtype(np.uint32), key=("random_unwrap",))


def _stream_bits(emit: Emitter, keys: Node, width: int, shape: tuple[int, ...]) -> Node:
    """Philox's stream: a batch of keys shares that of the first."""
    whole = (*keys.shape, *shape)

    def state(k, keys):
        return k.at(keys, [Index.of(0)] * len(keys.shape))

    return _stream(emit, keys, state, whole, width, ("rbg", len(keys.shape)))


def _stream(emit: Emitter, source: Node, state, shape: tuple[int, ...], width: int, key) -> Node:
    """Words of the Philox stream: four of each block, whose number joins the state's."""

    def element(k, index, source):
        f = k.f
        k0, k1, low, high = state(k, source)
        place = ravel(index, shape)
        first = place * 2 if width == 64 else place
        start = _joined(f, low, high)
        at = f.add(k.integer(first // 4, "u64"), start)
        # The counter has 128 bits: its upper half is the key, plus a carry from the lower half.
        over = f.convert(f.compare("lt", at, start), "u64")
        upper = f.add(_joined(f, k0, k1), over)
        words = [f.convert(v, "u32") for v in (at, f.lshr(at, constant("u64", 32)))]
        words += [f.convert(v, "u32") for v in (upper, f.lshr(upper, constant("u64", 32)))]
        out = philox4x32(f, [k0, k1], words)
        if width == 64:
            second = f.compare("ne", k.integer(first % 4, "u32"), word(0))
            low, high = f.select(second, out[2], out[0]), f.select(second, out[3], out[1])
            return _joined(f, low, high)
        which, value = k.integer(place % 4, "u32"), out[3]
        for i in range(3):
            value = f.select(f.compare("eq", which, word(i)), out[i], value)
        return f.convert(value, f"u{width}")

    return emit.compute(
        [source],
        element,
        shape=shape,
        dtype=np.dtype(f"uint{width}"),
        key=("philox_stream", key, width, shape),
        cost=tuning.HASH_COST,
    )


def generate(emit: Emitter, state: Node, shape: tuple[int, ...], dtype: np.dtype) -> list[Node]:
    """The state after drawing words from Philox's stream, and the words."""
    width = dtype.itemsize * 8
    blocks = math.ceil(math.prod(shape) * (2 if width == 64 else 1) / 4)
    wide = state.dtype == np.dtype(np.uint64)

    def numbers(k, state) -> tuple[Value, Value]:
        """Key and counter."""
        if wide:
            return k.at(state, [Index.of(0)]), k.at(state, [Index.of(1)])
        words = [k.at(state, [Index.of(i)]) for i in range(4)]
        return _joined(k.f, *words[:2]), _joined(k.f, *words[2:])

    def words_of(k, state):
        out = []
        for number in numbers(k, state):
            high = k.f.lshr(number, constant("u64", 32))
            out += [k.f.convert(number, "u32"), k.f.convert(high, "u32")]
        return out

    def element(k, index, state):
        f = k.f
        key, place = numbers(k, state)
        place = f.add(place, constant("u64", blocks))
        (at,) = index
        half = at if wide else at // 2
        value = f.select(f.compare("eq", k.integer(half, "u32"), word(0)), key, place)
        if wide:
            return value
        odd = f.compare("ne", k.integer(at % 2, "u32"), word(0))
        return f.convert(f.select(odd, f.lshr(value, constant("u64", 32)), value), "u32")

    new = emit.compute(
        [state], element, shape=state.shape, dtype=state.dtype, key=("advance", blocks)
    )
    return [new, _stream(emit, state, words_of, shape, width, "state")]
