"""Finding random keys that are used twice, for `config.debug_key_reuse`.

A key is consumed when bits, new keys or numbers are drawn with it.  Elements and slices of a key
array are views of its memory, so a used key is recorded by its address.  `random.clone` copies
a key, and so makes it fresh.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from namoo import errors
from namoo._base.source_context import at_user_line

# The array that owns the memory, by id, and the addresses of the keys in it that have been used.
_used: dict[int, tuple[weakref.ref, set[int]]] = {}


def consume(name: str, keys: np.ndarray) -> None:
    """Record that an operation uses keys.

    Raises:
        KeyReuseError: one of them has been used before.
    """
    owner: Any = keys
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    place = id(owner)
    if place not in _used:
        _used[place] = (weakref.ref(owner, lambda _: _used.pop(place, None)), set())
    used = _used[place][1]
    addresses = set(_addresses(keys).ravel().tolist())
    if addresses & used:
        raise errors.KeyReuseError(
            f"A random key was passed to {name}, but it has been used before: it would give the "
            "same numbers again. Split it first, `key, subkey = random.split(key)`, and use each "
            "key once; if the same numbers are wanted, pass random.clone(key)." + at_user_line()
        )
    used |= addresses


def _addresses(keys: np.ndarray) -> np.ndarray:
    """The address of each key in memory."""
    out = np.asarray(keys.__array_interface__["data"][0])
    for size, stride in zip(keys.shape, keys.strides, strict=True):
        out = np.add.outer(out, np.arange(size) * stride)
    return out
