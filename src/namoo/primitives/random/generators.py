"""Random words from keys and counters, with NumPy.

A counter-based generator is a function `hash(key, counter)` whose results look random.  Element i
of a sample is the hash of i under the key; a new key is the hash of its number, or of the data
folded in.  Nothing is kept between calls, and any part can be computed on its own.

Threefry and Philox: Salmon et al. (2011), "Parallel random numbers: as easy as 1, 2, 3".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo._base.caches import cached
from namoo._base.config import config
from namoo._base.runtime import native

Words = Sequence[Any]
"""The 32-bit words of a key or a counter: `uint32` arrays that broadcast, or Python integers."""

MASK = 0xFFFFFFFF
# Elements that are hashed together: few enough that all of their words stay in the cache.
_BLOCK = 1 << 14
# Up to here Python's integers are faster than NumPy's arrays.
_FEW = 10


# Constants of the hash functions, which overwrite the arrays of the counter.
PARITY = 0x1BD11BDA
ROTATIONS2 = ((13, 15, 26, 6), (17, 29, 16, 24))
ROTATIONS4 = (
    ((10, 26), (11, 21), (13, 27), (23, 5)),
    ((6, 20), (17, 11), (25, 10), (18, 20)),
)


def _mix(x: np.ndarray, y: np.ndarray, by: int, scratch: np.ndarray) -> None:
    """x ← x + y, y ← (y rotated left) ⊕ x."""
    x += y
    np.left_shift(y, by, out=scratch)
    np.right_shift(y, 32 - by, out=y)
    y |= scratch
    y ^= x


def threefry2x32(key: Words, counter: Words) -> list[np.ndarray]:
    """Threefry-2x32 with 20 rounds."""
    (k0, k1), (x0, x1) = key, counter
    schedule = (k0, k1, k0 ^ k1 ^ PARITY)
    scratch = np.empty_like(x1)
    x0 += k0
    x1 += k1
    for group in range(5):
        for by in ROTATIONS2[group % 2]:
            _mix(x0, x1, by, scratch)
        x0 += schedule[(group + 1) % 3]
        x1 += (schedule[(group + 2) % 3] + (group + 1)) & MASK
    return [x0, x1]


def threefry2x32_of_integers(k0: int, k1: int, x0: int, x1: int) -> tuple[int, int]:
    """`threefry2x32` of Python integers: faster for a few of them."""
    schedule = (k0, k1, k0 ^ k1 ^ PARITY)
    x0 = (x0 + k0) & MASK
    x1 = (x1 + k1) & MASK
    for group in range(5):
        for by in ROTATIONS2[group % 2]:
            x0 = (x0 + x1) & MASK
            x1 = (x1 << by & MASK | x1 >> 32 - by) ^ x0
        x0 = (x0 + schedule[(group + 1) % 3]) & MASK
        x1 = (x1 + schedule[(group + 2) % 3] + group + 1) & MASK
    return x0, x1


def threefry4x32(key: Words, counter: Words) -> list[np.ndarray]:
    """Threefry-4x32 with 20 rounds."""
    k0, k1, k2, k3 = key
    schedule = (k0, k1, k2, k3, k0 ^ k1 ^ k2 ^ k3 ^ PARITY)
    x = list(counter)
    scratch = np.empty_like(x[1])
    for word, k in zip(x, schedule, strict=False):
        word += k
    for group in range(5):
        for i, (first, second) in enumerate(ROTATIONS4[group % 2]):
            _mix(x[0], x[1 + 2 * (i % 2)], first, scratch)
            _mix(x[2], x[3 - 2 * (i % 2)], second, scratch)
        for i in range(4):
            x[i] += schedule[(group + 1 + i) % 5]
        x[3] += group + 1
    return x


def _multiply(x: np.ndarray, by: int) -> tuple[np.ndarray, np.ndarray]:
    """The high and the low word of each product."""
    product = x.astype(np.uint64) * np.uint64(by)
    return (product >> np.uint64(32)).astype(np.uint32), product.astype(np.uint32)


def philox2x32(key: Words, counter: Words) -> list[np.ndarray]:
    """Philox-2x32 with 10 rounds."""
    (k,), (x0, x1) = key, counter
    for _ in range(10):
        high, low = _multiply(x0, 0xD256D193)
        x0, x1 = high ^ x1 ^ k, low
        k = (k + 0x9E3779B9) & MASK
    return [x0, x1]


def philox4x32(key: Words, counter: Words) -> list[np.ndarray]:
    """Philox-4x32 with 10 rounds."""
    (k0, k1), (x0, x1, x2, x3) = key, counter
    for _ in range(10):
        high0, low0 = _multiply(x0, 0xD2511F53)
        high2, low2 = _multiply(x2, 0xCD9E8D57)
        x0, x1, x2, x3 = high2 ^ x1 ^ k0, low2, high0 ^ x3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return [x0, x1, x2, x3]


def _xor_all(words: Words, out: np.ndarray) -> None:
    total = words[0]
    for word in words[1:]:
        total = total ^ word
    # Narrow types use the low bits.
    np.copyto(out, total, casting="unsafe")


def _first_two(words: Words, out: np.ndarray) -> None:
    """64 bits of two words."""
    out[...] = words[0]
    out <<= 32
    out |= words[1]


def _xor_halves(words: Words, out: np.ndarray) -> None:
    """64 bits of four words."""
    _first_two([words[0] ^ words[2], words[1] ^ words[3]], out)


def _as_keys(words: Words, out: np.ndarray) -> None:
    for i in range(out.shape[-1]):
        out[..., i] = words[i]


class Generator:
    """How one kind of key is seeded, split, folded and turned into bits.

    Keys come as `uint32` words of shape (keys, words of a key).  Results have the shape
    (keys, n) for `bits`, (keys, n, words of a key) for `split`, that of the keys otherwise.
    """

    name: str
    key_words: int

    def seed(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        """The key of a seed, given its two words."""
        raise NotImplementedError

    def split(self, keys: np.ndarray, n: int) -> np.ndarray:
        """`n` new keys of each key."""
        raise NotImplementedError

    def fold_in(self, keys: np.ndarray, data: np.ndarray) -> np.ndarray:
        """A new key of each key and a 32-bit word."""
        raise NotImplementedError

    def bits(self, keys: np.ndarray, n: int, width: int) -> np.ndarray:
        """`n` words of `width` bits of each key."""
        raise NotImplementedError

    # The bits of a batch of keys under `vmap`: the same, unless XLA has one stream for all.

    def batch_split(self, keys: np.ndarray, n: int) -> np.ndarray:
        return self.split(keys, n)

    def batch_fold_in(self, keys: np.ndarray, data: np.ndarray) -> np.ndarray:
        """`data` has one word, or one for each key."""
        return self.fold_in(keys, np.broadcast_to(data, len(keys)))

    def batch_bits(self, keys: np.ndarray, n: int, width: int) -> np.ndarray:
        return self.bits(keys, n, width)


class CounterGenerator(Generator):
    """Keys whose elements are hashes of their positions."""

    counter_words: int
    hash: Callable[[Words, Words], list[np.ndarray]]

    def __init__(self, name, hash_function, key_words, counter_words, wide=_first_two):
        self.name = name
        self.hash = hash_function
        self.key_words = key_words
        self.counter_words = counter_words
        self.wide = wide

    def seed(self, high, low):
        zero = np.zeros_like(high)
        counter = [high.copy(), low.copy(), zero, zero.copy()][: self.counter_words]
        return np.stack(self.hash([0] * self.key_words, counter)[: self.key_words], -1)

    def split(self, keys, n):
        return self._generate(keys, n, self.key_counter, _as_keys, (self.key_words,), np.uint32)

    def fold_in(self, keys, data):
        zeros = [np.zeros_like(data) for _ in range(self.counter_words - 1)]
        words = self.hash(list(keys.T), [*zeros, data.copy()])
        return np.stack(words[: self.key_words], -1)

    def bits(self, keys, n, width):
        dtype = np.dtype(f"uint{width}")
        finish = self.wide if width == 64 else _xor_all
        return self._generate(keys, n, self.bit_counter, finish, (), dtype)

    def bit_counter(self, start: int, stop: int) -> list[np.ndarray]:
        """Counters of elements; start and stop do not cross a multiple of the block size."""
        low = np.arange(start & MASK, (start & MASK) + stop - start, dtype=np.uint32)
        high = np.full_like(low, start >> 32)
        return [high, low, *(np.zeros_like(low) for _ in range(self.counter_words - 2))]

    def key_counter(self, start: int, stop: int) -> list[np.ndarray]:
        """Counters of new keys: the other half of a wide counter, disjoint from those of bits."""
        words = self.bit_counter(start, stop)
        return [*words[2:], *words[:2]]

    def _generate(self, keys, n, counter, finish, tail, dtype) -> np.ndarray:
        """out[k, i] = finish(hash(keys[k], counter of i))."""
        out = np.empty((len(keys), n, *tail), dtype)
        if len(keys) * n <= _FEW and self.hash is threefry2x32:
            counters = list(zip(*(c.tolist() for c in counter(0, n)), strict=True))
            pairs = [threefry2x32_of_integers(*key, *c) for key in keys.tolist() for c in counters]
            words = np.array(pairs, np.uint32).reshape(len(keys), n, 2)
            finish([words[..., 0], words[..., 1]], out)
        elif len(keys) < _FEW or n >= _BLOCK // 8:
            for row, key in zip(out, keys.tolist(), strict=True):
                for start in range(0, n, _BLOCK):
                    block = row[start : start + _BLOCK]
                    finish(self.hash(key, counter(start, start + len(block))), block)
        elif n:
            # Keys are the last axis, where NumPy's inner loops are.
            columns = np.ascontiguousarray(keys.T)
            together = max(1, _BLOCK // n)
            for start in range(0, len(keys), together):
                key = list(columns[:, start : start + together])
                words = [np.repeat(c[:, None], len(key[0]), 1) for c in counter(0, n)]
                finish([w.T for w in self.hash(key, words)], out[start : start + together])
        return out


class Threefry2x32(CounterGenerator):
    """JAX's default: the seed is the key, and an older scheme for the counters is supported."""

    def __init__(self):
        super().__init__("threefry2x32", threefry2x32, 2, 2)

    def seed(self, high, low):
        return np.stack([high, low], -1)

    def fold_in(self, keys, data):
        if native is not None:
            out = np.empty((len(keys), 2), np.uint32)
            native.threefry_fold_in(np.ascontiguousarray(keys), np.ascontiguousarray(data), out)
            return out
        if len(keys) > _FEW:
            return super().fold_in(keys, data)
        pairs = zip(keys.tolist(), data.tolist(), strict=True)
        folded = [threefry2x32_of_integers(k0, k1, 0, d) for (k0, k1), d in pairs]
        return np.array(folded, np.uint32).reshape(len(keys), 2)

    def split(self, keys, n):
        if config.threefry_partitionable:
            if native is None:
                return super().split(keys, n)
            out = np.empty((len(keys), n, 2), np.uint32)
            native.threefry_split(np.ascontiguousarray(keys), out)
            return out
        return self.stream(keys, 2 * n).reshape(len(keys), n, 2)

    def bits(self, keys, n, width):
        if config.threefry_partitionable:
            if native is None or width != 32:
                return super().bits(keys, n, width)
            out = np.empty((len(keys), n), np.uint32)
            native.threefry_bits(np.ascontiguousarray(keys), out)
            return out
        words = self.stream(keys, math.ceil(n * width / 32))
        if width == 64:
            return words[:, :n].astype(np.uint64) << np.uint64(32) | words[:, n:]
        return np.ascontiguousarray(words).view(f"uint{width}")[:, :n]

    def stream(self, keys: np.ndarray, n: int) -> np.ndarray:
        """`n` words of each key, both words of every hash: the counters are 0…n-1 in two halves."""
        if n > MASK:
            raise ValueError(
                f"{n} random words cannot be numbered with 32 bits; set jax_threefry_partitionable."
            )
        half = (n + 1) // 2

        def counter(start, stop):
            first = np.arange(start, stop, dtype=np.uint32)
            second = first + np.uint32(half)
            if n % 2 and stop == half:
                second[-1] = 0
            return [first, second]

        out = self._generate(keys, half, counter, _as_keys, (2,), np.uint32)
        return out.swapaxes(1, 2).reshape(len(keys), 2 * half)[:, :n]


class Threefry4x32(CounterGenerator):
    """Keys of four words, made from the seed by one hash of zero."""

    def __init__(self):
        super().__init__("threefry4x32", threefry4x32, 4, 4, _xor_halves)

    def seed(self, high, low):
        zeros = [np.zeros_like(high) for _ in range(4)]
        return np.stack(self.hash([high, low, 0, 0], zeros), -1)


class Rbg(Generator):
    """Bits from Philox's long stream, as XLA's own generator gives them; keys from Threefry.

    A key is two Threefry keys, which are Philox's key and the start of its stream.
    """

    name, key_words = "rbg", 4

    def seed(self, high, low):
        return np.stack([high, low, high, low], -1)

    def split(self, keys, n):
        halves = _threefry.split(keys.reshape(-1, 2), n)
        return halves.reshape(len(keys), 2, n, 2).swapaxes(1, 2).reshape(len(keys), n, 4)

    def fold_in(self, keys, data):
        return _threefry.fold_in(keys.reshape(-1, 2), np.repeat(data, 2)).reshape(-1, 4)

    def bits(self, keys, n, width):
        out = np.empty((len(keys), n), f"uint{width}")
        for row, key in zip(out, keys, strict=True):
            row[:] = philox_stream(key, n, width)
        return out

    def batch_bits(self, keys, n, width):
        return self.bits(keys[:1], len(keys) * n, width).reshape(len(keys), n)


class UnsafeRbg(Rbg):
    """`Rbg` whose keys, too, come from Philox's stream: from every tenth block of it."""

    name = "unsafe_rbg"

    def split(self, keys, n):
        return self.bits(keys, 40 * n, 32).reshape(len(keys), 10 * n, 4)[:, ::10]

    def fold_in(self, keys, data):
        return keys ^ self.bits(self.seed(np.zeros_like(data), data), 40, 32)[:, -4:]

    def batch_split(self, keys, n):
        return self.batch_bits(keys, 40 * n, 32).reshape(len(keys), 10 * n, 4)[:, ::10]

    def batch_fold_in(self, keys, data):
        return keys ^ self.batch_bits(self.seed(np.zeros_like(data), data), 40, 32)[:, -4:]


def philox_stream(state: np.ndarray, n: int, width: int) -> np.ndarray:
    """`n` words of the Philox stream of a state: two words of key, two of position.

    Words of 64 bits take two of the stream, narrow ones the low bits of one.
    """
    words = n * 2 if width == 64 else n
    blocks = math.ceil(words / 4)
    out = np.empty((blocks, 4), np.uint32)
    k0, k1, low, high = state.tolist()
    key = k0 | k1 << 32
    place = low | high << 32
    for start in range(0, blocks, _BLOCK):
        size = min(_BLOCK, blocks - start)
        at = np.arange(size, dtype=np.uint64) + np.uint64((place + start) & 0xFFFFFFFFFFFFFFFF)
        # The counter has 128 bits: the key is its upper half, until the lower one overflows.
        over = np.uint64((place + start) >> 64) + (at < at[0])
        upper = np.uint64(key) + over
        counter = [at.astype(np.uint32), (at >> np.uint64(32)).astype(np.uint32)]
        counter += [upper.astype(np.uint32), (upper >> np.uint64(32)).astype(np.uint32)]
        _as_keys(philox4x32([k0, k1], counter), out[start : start + size])
    flat = out.reshape(-1)[:words]
    if width == 64:
        return flat[::2] | flat[1::2].astype(np.uint64) << np.uint64(32)
    return flat.astype(f"uint{width}", copy=False)


@cached(
    "primitives.random float layouts", bound="floating-point types", keyed_by="dtype", kept=True
)
def float_form(dtype: np.dtype) -> tuple[int, np.dtype, Any, Any]:
    """How many bits are drawn for a float, the integer that carries it, how far they are shifted,
    and the integer whose bits are those of 1."""
    info = dtypes.finfo(dtype)
    if info.bits not in (8, 16, 32, 64):
        raise TypeError(f"uniform only draws 8-, 16-, 32- or 64-bit types, got {dtype}.")
    carrier = np.dtype(f"uint{info.bits}")
    # Eight bits are enough for the few that bfloat16 keeps.
    drawn = 8 if info.nmant < 8 else info.bits
    return drawn, carrier, carrier.type(drawn - info.nmant), np.ones((), dtype).view(carrier)[()]


def unit_floats(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats in [0, 1) from random words, which are overwritten: the mantissa of [1, 2)."""
    _, carrier, shift, one = float_form(dtype)
    words = words.astype(carrier, copy=False)
    np.right_shift(words, shift, out=words)
    np.bitwise_or(words, one, out=words)
    floats = words.view(dtype)
    np.subtract(floats, dtype.type(1), out=floats)
    return floats


_threefry = Threefry2x32()

GENERATORS: dict[str, Generator] = {
    generator.name: generator
    for generator in (
        _threefry,
        Threefry4x32(),
        CounterGenerator("philox2x32", philox2x32, 1, 2),
        CounterGenerator("philox4x32", philox4x32, 2, 4),
        Rbg(),
        UnsafeRbg(),
    )
}
"""The generators by name."""
