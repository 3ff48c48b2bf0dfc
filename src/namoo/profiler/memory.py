"""The arrays in memory, in the format of the tool pprof (its `profile.proto`)."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np

from namoo.api.device import live_arrays
from namoo.core.array import PlacedArray


def device_memory_profile(backend: str | None = None) -> bytes:
    """The memory that arrays take now, in the compressed format that `pprof` reads.

    Arrays are told apart by their type and device, as in `pprof -tags`; where each was made is not
    known. Arrays that share memory count once.

    Args:
      backend: only arrays on devices of this platform.

    Raises:
      RuntimeError: there is no such platform.

    >>> device_memory_profile()[:2].hex()  # gzip
    '1f8b'
    """
    counts, sizes = Counter(), Counter()
    for key, size in _buffers(backend):
        counts[key] += 1
        sizes[key] += size
    strings: dict[str, int] = {"": 0}

    def text(string: str) -> int:
        return strings.setdefault(string, len(strings))

    kinds = (("allocations", "count"), ("space", "bytes"))
    out = b"".join(_message(1, (1, text(kind)), (2, text(unit))) for kind, unit in kinds)
    for number, ((shape, device), count) in enumerate(counts.items(), 1):
        out += _message(
            2,
            (1, number),
            (2, count),
            (2, sizes[shape, device]),
            (3, (1, text("kind")), (2, text("buffer"))),
            (3, (1, text("device")), (2, text(device))),
        )
        # pprof shows functions: each type of arrays is one, with a place of its own.
        out += _message(4, (1, number), (4, (1, number)))
        out += _message(5, (1, number), (2, text(shape)))
    for string in strings:
        out += _bytes(6, string.encode())
    return gzip.compress(out)


def save_device_memory_profile(filename: str | PathLike[str], backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file, to be read with `pprof`.

    Args:
      filename: the file, conventionally `*.prof`.
      backend: only arrays on devices of this platform.

    >>> import os, tempfile
    >>> save_device_memory_profile(os.path.join(tempfile.mkdtemp(), "memory.prof"))
    """
    profile = device_memory_profile(backend)
    with open(filename, "wb") as file:
        file.write(profile)


def _buffers(backend: str | None) -> Iterator[tuple[tuple[str, str], int]]:
    """The type and device of each piece of memory that arrays have, and its size in bytes."""
    seen = set()
    for x in live_arrays(backend):
        if isinstance(x, PlacedArray):
            shape = x._sharding.shard_shape(x.shape)
            size = int(np.prod(shape)) * x.dtype.itemsize
            for device in x._sharding.addressable_devices:
                yield (_type(x.dtype, shape), _device(device)), size
            continue
        value = x._value
        while isinstance(value.base, np.ndarray):
            value = value.base
        if id(value) not in seen:
            seen.add(id(value))
            yield (_type(x.dtype, x.shape), _device(next(iter(x.devices())))), value.nbytes


def _type(dtype: Any, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def _device(device: Any) -> str:
    return f"{device.platform}:{device.id}"


# Protocol buffers: a field is its number and how it is written, then a number or bytes.
def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(field: int, content: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(content)) + content


def _message(field: int, *fields: Any) -> bytes:
    """A message as a field of another; its own are (number, value), or (number, *fields)."""
    content = b"".join(
        _message(*each) if isinstance(each[1], tuple) else _number(each[0] << 3) + _number(each[1])
        for each in fields
    )
    return _bytes(field, content)
