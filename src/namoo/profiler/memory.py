"""The arrays in memory, in the format of pprof (its `profile.proto`)."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from namoo._base.atomic_files import replace_file
from namoo._base.protobuf import content, number
from namoo.core.array import PlacedArray
from namoo.devices.device_put import live_arrays


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return the memory that arrays use now, in the compressed format that `pprof` reads.

    Arrays are grouped by type and device, as in `pprof -tags`; the line that created each is not
    known. Arrays that share memory count once.

    Args:
        backend: only arrays on devices of this platform.

    Raises:
        RuntimeError: if the platform does not exist.

    Example:
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

    def pair(field: int, first: str, second: str) -> bytes:
        return content(field, number(1, text(first)), number(2, text(second)))

    out = pair(1, "allocations", "count") + pair(1, "space", "bytes")
    for key, ((name, device), count) in enumerate(counts.items(), 1):
        out += content(
            2,
            number(1, key),
            number(2, count),
            number(2, sizes[name, device]),
            pair(3, "kind", "buffer"),
            pair(3, "device", device),
        )
        # pprof shows functions: each array type is a function with its own location.
        out += content(4, number(1, key), content(4, number(1, key)))
        out += content(5, number(1, key), number(2, text(name)))
    for string in strings:
        out += content(6, string.encode())
    return gzip.compress(out)


def save_device_memory_profile(filename: str | PathLike[str], backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file, to be read with `pprof`.

    Args:
        filename: the file, conventionally `*.prof`.
        backend: only arrays on devices of this platform.

    Example:
        >>> import os, tempfile
        >>> save_device_memory_profile(os.path.join(tempfile.mkdtemp(), "memory.prof"))
    """
    profile = device_memory_profile(backend)
    replace_file(Path(filename).absolute(), lambda file: file.write(profile))


def _buffers(backend: str | None) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the type, device and size in bytes of each buffer that arrays use."""
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
