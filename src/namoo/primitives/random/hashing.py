"""The random generators as programs: the same words as `generators` draws with NumPy.

Words are `uint32` arrays of the shape of the keys.  Results with n draws per key have one more
axis, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo._base.config import config
from namoo.core.avals import aval_of
from namoo.primitives.arithmetic import add, mul
from namoo.primitives.bits import (
    bitwise_or,
    bitwise_xor,
    mulhi,
    shift_left,
    shift_right_logical,
)
from namoo.primitives.compare import eq, select
from namoo.primitives.random.generators import MASK, PARITY, ROTATIONS2, ROTATIONS4
from namoo.primitives.shape import (
    broadcast_in_dim,
    broadcasted_iota,
    convert_element_type_p,
    expand_dims,
    reshape,
    shape_of,
    zeros,
)
from namoo.primitives.slicing import concatenate, slice_in_dim

Words = list[Any]
Hash = Callable[[Sequence[Any], Sequence[Any]], Words]
Stream = Callable[[Any, tuple[int, ...], int], Any]
"""Words of a long stream, by its state, their shape and width."""


def _word(n: int) -> np.ndarray:
    return np.asarray(n & MASK, np.uint32)


def _xor(*words: Any) -> Any:
    out = words[0]
    for word in words[1:]:
        out = bitwise_xor(out, word)
    return out


def _mix(x: Any, y: Any, by: int) -> tuple[Any, Any]:
    """Return s = x + y, and (y rotated left) ⊕ s."""
    x = add(x, y)
    turned = bitwise_or(shift_left(y, _word(by)), shift_right_logical(y, _word(32 - by)))
    return x, bitwise_xor(turned, x)


def _threefry2x32(key: Sequence[Any], counter: Sequence[Any]) -> Words:
    schedule = (*key, _xor(*key, _word(PARITY)))
    x0, x1 = (add(x, k) for x, k in zip(counter, key, strict=True))
    for group in range(5):
        for by in ROTATIONS2[group % 2]:
            x0, x1 = _mix(x0, x1, by)
        x0 = add(x0, schedule[(group + 1) % 3])
        x1 = add(x1, add(schedule[(group + 2) % 3], _word(group + 1)))
    return [x0, x1]


def _threefry4x32(key: Sequence[Any], counter: Sequence[Any]) -> Words:
    schedule = (*key, _xor(*key, _word(PARITY)))
    x = [add(word, k) for word, k in zip(counter, key, strict=True)]
    for group in range(5):
        for i, (first, second) in enumerate(ROTATIONS4[group % 2]):
            one, other = 1 + 2 * (i % 2), 3 - 2 * (i % 2)
            x[0], x[one] = _mix(x[0], x[one], first)
            x[2], x[other] = _mix(x[2], x[other], second)
        x = [add(word, schedule[(group + 1 + i) % 5]) for i, word in enumerate(x)]
        x[3] = add(x[3], _word(group + 1))
    return x


def _philox2x32(key: Sequence[Any], counter: Sequence[Any]) -> Words:
    (k,), (x0, x1) = key, counter
    factor = _word(0xD256D193)
    for _ in range(10):
        x0, x1 = _xor(mulhi(x0, factor), x1, k), mul(x0, factor)
        k = add(k, _word(0x9E3779B9))
    return [x0, x1]


def _philox4x32(key: Sequence[Any], counter: Sequence[Any]) -> Words:
    (k0, k1), (x0, x1, x2, x3) = key, counter
    first, second = _word(0xD2511F53), _word(0xCD9E8D57)
    for _ in range(10):
        x0, x1, x2, x3 = (
            _xor(mulhi(x2, second), x1, k0),
            mul(x2, second),
            _xor(mulhi(x0, first), x3, k1),
            mul(x0, first),
        )
        k0, k1 = add(k0, _word(0x9E3779B9)), add(k1, _word(0xBB67AE85))
    return [x0, x1, x2, x3]


def _zeros(shape: Sequence[int]) -> Any:
    return broadcast_in_dim(_word(0), tuple(shape), ())


def _wide(high: Any, low: Any) -> Any:
    """64 bits of two words."""
    high, low = (
        convert_element_type_p.bind(x, new_dtype=np.dtype(np.uint64), weak_type=False)
        for x in (high, low)
    )
    return bitwise_or(shift_left(high, np.asarray(32, np.uint64)), low)


def _narrow(x: Any, width: int) -> Any:
    dtype = np.dtype(f"uint{width}")
    return (
        x
        if aval_of(x).dtype == dtype
        else convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False)
    )


class Hashed:
    """Keys whose elements are hashes of their positions."""

    def __init__(self, name: str, hash_function: Hash, key_words: int, counter_words: int):
        self.name = name
        self.hash = hash_function
        self.key_words = key_words
        self.counter_words = counter_words

    def seed(self, high: Any, low: Any) -> Words:
        """The key of a seed, given its two words."""
        zero = _zeros(shape_of(low))
        if self.name == "threefry2x32":
            return [high, low]
        if self.name == "threefry4x32":
            return self.hash([high, low, zero, zero], [zero] * 4)
        counter = [high, low, zero, zero][: self.counter_words]
        return self.hash([zero] * self.key_words, counter)[: self.key_words]

    def fold_in(self, key: Words, data: Any, stream: Stream) -> Words:
        """A new key of each key and a word."""
        zero = _zeros(shape_of(data))
        return self.hash(key, [*[zero] * (self.counter_words - 1), data])[: self.key_words]

    def split(self, key: Words, n: int, stream: Stream) -> Words:
        """n new keys of each key."""
        if self.name == "threefry2x32" and not config.threefry_partitionable:
            pairs = reshape(self._sequence(key, 2 * n), (*shape_of(key[0]), n, 2))
            axis = len(shape_of(pairs)) - 1
            return [
                reshape(slice_in_dim(pairs, i, i + 1, axis=axis), shape_of(pairs)[:-1])
                for i in range(2)
            ]
        key, place = _repeated(key, n), _places(key, n)
        zero = _zeros(shape_of(place))
        # The half of a wide counter that bits do not use, so that they never coincide.
        return self.hash(key, ([zero] * self.counter_words)[:-1] + [place])[: self.key_words]

    def bits(self, key: Words, n: int, width: int, stream: Stream) -> Any:
        """n words of some width of each key."""
        if self.name == "threefry2x32" and not config.threefry_partitionable:
            return self._older_bits(key, n, width)
        key, place = _repeated(key, n), _places(key, n)
        zero = _zeros(shape_of(place))
        words = self.hash(key, [zero, place, zero, zero][: self.counter_words])
        if width < 64:
            return _narrow(_xor(*words), width)
        if self.name == "threefry4x32":
            return _wide(_xor(words[0], words[2]), _xor(words[1], words[3]))
        return _wide(words[0], words[1])

    def _older_bits(self, key: Words, n: int, width: int) -> Any:
        words = self._sequence(key, math.ceil(n * width / 32))
        axis = len(shape_of(words)) - 1
        if width == 64:
            return _wide(
                slice_in_dim(words, 0, n, axis=axis), slice_in_dim(words, n, 2 * n, axis=axis)
            )
        if width == 32:
            return words
        parts = [
            _narrow(shift_right_logical(words, _word(i * width)), width) for i in range(32 // width)
        ]
        joined = concatenate([expand_dims(p, (axis + 1,)) for p in parts], axis + 1)
        flat = reshape(joined, (*shape_of(words)[:-1], shape_of(words)[-1] * len(parts)))
        return slice_in_dim(flat, 0, n, axis=axis)

    def _sequence(self, key: Words, n: int) -> Any:
        """n words of each key, both of every hash: the counters are 0…n-1 in two halves."""
        half = (n + 1) // 2
        first = _places(key, half)
        second = add(first, _word(half))
        if n % 2:
            second = select(eq(first, _word(half - 1)), _zeros(shape_of(first)), second)
        axis = len(shape_of(first)) - 1
        both = concatenate(self.hash(_repeated(key, half), [first, second]), axis)
        return slice_in_dim(both, 0, n, axis=axis)


def _repeated(key: Words, n: int) -> Words:
    shape = shape_of(key[0])
    return [broadcast_in_dim(k, (*shape, n), range(len(shape))) for k in key]


def _places(key: Words, n: int) -> Any:
    if n > MASK:
        raise ValueError(f"{n} random words of one key are more than a program can draw at once.")
    shape = (*shape_of(key[0]), n)
    return broadcasted_iota(np.uint32, shape, len(shape) - 1)


class Streamed:
    """Keys of two Threefry keys, and bits from a long stream that begins at the key.

    For many keys at once, the stream of the first one supplies the bits of all.
    """

    def __init__(self, name: str):
        self.name = name

    def seed(self, high: Any, low: Any) -> Words:
        return [high, low, high, low]

    def fold_in(self, key: Words, data: Any, stream: Stream) -> Words:
        if self.name == "rbg":
            halves = (key[:2], key[2:])
            return [
                w for half in halves for w in HASHED["threefry2x32"].fold_in(half, data, stream)
            ]
        drawn = self.bits(self.seed(_zeros(shape_of(data)), data), 40, 32, stream)
        axis = len(shape_of(drawn)) - 1
        return [
            bitwise_xor(k, reshape(slice_in_dim(drawn, 36 + i, 37 + i, axis=axis), shape_of(k)))
            for i, k in enumerate(key)
        ]

    def split(self, key: Words, n: int, stream: Stream) -> Words:
        if self.name == "rbg":
            halves = (key[:2], key[2:])
            return [w for half in halves for w in HASHED["threefry2x32"].split(half, n, stream)]
        drawn = self.bits(key, 40 * n, 32, stream)
        axis = len(shape_of(drawn)) - 1
        return [slice_in_dim(drawn, i, 40 * n, 40, axis) for i in range(4)]

    def bits(self, key: Words, n: int, width: int, stream: Stream) -> Any:
        shape = shape_of(key[0])
        if 0 in (*shape, n):
            dtype = np.dtype(f"uint{width}")
            return zeros(aval_of(key[0]).update(shape=(*shape, n), dtype=dtype))
        first = [slice_in_dim(reshape(k, (math.prod(shape),)), 0, 1) for k in key]
        return stream(concatenate(first, 0), (*shape, n), width)


HASHED: dict[str, Any] = {
    made.name: made
    for made in (
        Hashed("threefry2x32", _threefry2x32, 2, 2),
        Hashed("threefry4x32", _threefry4x32, 4, 4),
        Hashed("philox2x32", _philox2x32, 1, 2),
        Hashed("philox4x32", _philox4x32, 2, 4),
        Streamed("rbg"),
        Streamed("unsafe_rbg"),
    )
}
"""The generators by name."""
