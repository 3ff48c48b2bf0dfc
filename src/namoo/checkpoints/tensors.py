"""The safetensors format: a header that says where each array is, then the bytes.

    8 bytes  length of the header, little endian
    header   JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
    data     the arrays, without gaps

The `safetensors` library maps files into memory, omits types that NumPy lacks, and neither syncs
nor checks what it writes. Here everything is checked before any data are read, and no more memory
is allocated than the file is long.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo.checkpoints.errors import CheckpointError
from namoo.checkpoints.files import MAX_JSON, parse_json

DTYPES: dict[str, np.dtype] = {
    name: np.dtype(kind)
    for name, kind in {
        "BOOL": np.bool_,
        "U8": np.uint8,
        "I8": np.int8,
        "F8_E5M2": dtypes.float8_e5m2,
        "F8_E4M3": dtypes.float8_e4m3fn,
        "F8_E8M0": dtypes.float8_e8m0fnu,
        "I16": np.int16,
        "U16": np.uint16,
        "F16": np.float16,
        "BF16": dtypes.bfloat16,
        "I32": np.int32,
        "U32": np.uint32,
        "F32": np.float32,
        "C64": np.complex64,
        "F64": np.float64,
        "I64": np.int64,
        "U64": np.uint64,
    }.items()
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_MAX_RANK = 64
# The first bytes of a zip archive or, in old files, of a pickled number.
_OF_PYTORCH = (b"PK\x03\x04", b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46")


class Extent(NamedTuple):
    """The position of an array: bytes `begin` to `end` of the file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


def as_bytes(array: np.ndarray) -> np.ndarray:
    """Return the bytes of an array in C order, little endian."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8)


def write_tensors(
    file: BinaryIO, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays of dtypes that the format has."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    # Wide elements first, so that each array is aligned to its element size.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    offset = 0
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": NAMES[array.dtype.newbyteorder("=")],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for name in order:
        file.write(as_bytes(arrays[name]).data)


def read_header(file: BinaryIO, size: int, where: Path) -> tuple[dict[str, Extent], dict[str, str]]:
    """Read and check the header of a file.

    Args:
        file: the file, at its start.
        size: how long it is.
        where: its name, for messages.

    Returns:
        The extent of each array, and the metadata.

    Raises:
        CheckpointError: if a size, a range, a type or a name is wrong.
    """
    start = file.read(8)
    length = int.from_bytes(start, "little") if size >= 8 else -1
    if not 2 <= length <= size - 8:
        raise CheckpointError(
            f"{where} is a file of torch.save, which can run any program when it is read. Convert "
            "it: safetensors.torch.save_file(torch.load(path, weights_only=True), new_path)"
            if start.startswith(_OF_PYTORCH)
            else f"{where} is not a safetensors file, or is truncated: it has {size} bytes"
            + (f", and its header would need {length + 8}" if length >= 0 else "")
        )
    if length > MAX_JSON:
        raise CheckpointError(f"{where}: a header of {length} bytes is above the limit, {MAX_JSON}")
    header = parse_json(file.read(length), f"the header of {where}")
    if not isinstance(header, dict):
        raise CheckpointError(f"the header of {where} is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise CheckpointError(f"{where}: __metadata__ must hold strings only")
    begin = 8 + length
    extents = {name: _extent(name, entry, begin, where) for name, entry in header.items()}
    reached, before = begin, ""
    for name, extent in sorted(extents.items(), key=lambda item: (item[1].begin, item[1].end)):
        if extent.begin != reached:
            what = "overlaps" if extent.begin < reached else "leaves a gap after"
            raise CheckpointError(f"{where}: the array {name!r} {what} {before or 'the header'!r}")
        reached, before = extent.end, name
    if reached != size:
        raise CheckpointError(
            f"{where}: its arrays end at byte {reached}, but it has {size} bytes"
            + (": it is truncated" if reached > size else "")
        )
    return extents, metadata


def _extent(name: str, entry: Any, start: int, where: Path) -> Extent:
    wrong = f"{where}: the array {name!r}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"{wrong} is not described by dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise CheckpointError(f"{wrong} has elements {kind!r:.40}; known are {', '.join(DTYPES)}")
    if not _are_sizes(shape) or len(shape) > _MAX_RANK:
        raise CheckpointError(f"{wrong} has an impossible shape: {shape!r:.80}")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{wrong} has impossible data_offsets: {offsets!r:.80}")
    dtype = DTYPES[kind]
    needed = math.prod(shape) * dtype.itemsize
    if offsets[1] - offsets[0] != needed:
        raise CheckpointError(
            f"{wrong} of {dtype} and shape {shape!r:.80} needs {needed} bytes, not the "
            f"{offsets[1] - offsets[0]} of its data_offsets"
        )
    return Extent(dtype, tuple(shape), start + offsets[0], start + offsets[1])


def _are_sizes(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 2**62 for n in numbers)


def check_memory(extents: Iterable[Extent], where: Path) -> None:
    """Refuse to read more than the machine's memory can hold.

    A sparse file occupies no disk space, however long it is.
    """
    if not hasattr(os, "sysconf"):
        return
    needed = sum(extent.end - extent.begin for extent in extents)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory:
        raise CheckpointError(
            f"the arrays of {where} have {needed} bytes, and the machine has {memory} bytes of "
            "memory. Load a part: only='pattern/**'."
        )


def read_tensor(file: BinaryIO, extent: Extent, name: str, where: Path) -> np.ndarray:
    """Read one array into new memory."""
    data = np.empty(extent.end - extent.begin, np.uint8)
    file.seek(extent.begin)
    if data.nbytes and file.readinto(data.data) != data.nbytes:  # type: ignore[attr-defined]
        raise CheckpointError(f"{where} became shorter while {name!r} was read")
    little = extent.dtype.newbyteorder("<")
    try:
        return data.view(little).astype(extent.dtype, copy=False).reshape(extent.shape)
    except ValueError as error:  # one size is too large for NumPy, another is zero
        raise CheckpointError(f"{where}: the array {name!r} cannot be made: {error}") from None


def digest(array: np.ndarray) -> str:
    """Return the checksum of an array's bytes."""
    return hashlib.sha256(as_bytes(array).data).hexdigest()
