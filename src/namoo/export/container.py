"""The layout of a file: a fixed header, JSON, and the bytes of arrays.

    8 bytes   b"NAMOOEXP"
    4 bytes   version of the format
    4 bytes   CRC-32 of everything that follows
    8 bytes   length of the JSON text
    JSON      a document; "arrays" lists [dtype, shape, whether it is weak] of each array
    data      the arrays in this order, row-major, without gaps

All numbers are little endian. Newer versions of the library read all older versions of the format.
A file is checked before it is used, and reading it takes at most a small multiple of its length in
memory.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from namoo.core.avals import aval_of
from namoo.export.elements import array_bytes, dtype_name, read_array, read_dtype, size_in_bytes

VERSION = 1
_MAGIC = b"NAMOOEXP"
_START = 24


def pack(document: dict[str, Any], arrays: Sequence[Any]) -> bytearray:
    """Write a document and its arrays as bytes."""
    avals = [aval_of(x) for x in arrays]
    described = [[dtype_name(a.dtype), list(a.shape), bool(a.weak_type)] for a in avals]
    text = json.dumps({**document, "arrays": described}, separators=(",", ":"), allow_nan=False)
    encoded = text.encode()
    body = b"".join([len(encoded).to_bytes(8, "little"), encoded, *map(array_bytes, arrays)])
    start = [_MAGIC, VERSION.to_bytes(4, "little"), zlib.crc32(body).to_bytes(4, "little")]
    return bytearray(b"".join([*start, body]))


def unpack(data: Any) -> tuple[dict[str, Any], list[Any]]:
    """Read the document and the arrays of a file.

    Raises:
        ValueError: the bytes are not such a file, are of a newer version, or are damaged.
    """
    view = memoryview(data).cast("B")
    if len(view) < _START or view[:8] != _MAGIC:
        raise ValueError("this is not a file of namoo.export: it does not begin with NAMOOEXP")
    version, checksum = (int.from_bytes(view[i : i + 4], "little") for i in (8, 12))
    if not 1 <= version <= VERSION:
        raise ValueError(
            f"the exported program has version {version} of the format, but this version of namoo "
            f"reads versions up to {VERSION}"
        )
    if zlib.crc32(view[16:]) != checksum:
        raise ValueError("the exported program is damaged or truncated: its checksum is wrong")
    length = int.from_bytes(view[16:_START], "little")
    if length > len(view) - _START:
        raise ValueError("the exported program is damaged: its JSON is longer than the file")
    document = _document(bytes(view[_START : _START + length]))
    return document, _arrays(document.get("arrays"), view[_START + length :])


def _document(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_float=_no_number, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("the exported program is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("the exported program is not a JSON object")
    return document


def _no_number(text: str) -> Any:
    raise ValueError(
        f"the exported program has the number {text:.40}, but floats must be hexadecimal strings"
    )


def _arrays(described: Any, data: memoryview) -> list[Any]:
    if not isinstance(described, list):
        raise ValueError("the exported program has no list of arrays")
    out, at = [], 0
    for entry in described:
        match entry:
            case [name, list(shape), bool(weak)] if len(shape) <= 32 and all(
                type(n) is int and 0 <= n < 1 << 62 for n in shape
            ):
                dtype = read_dtype(name)
            case _:
                raise ValueError(f"the exported program has an invalid array entry {entry!r:.80}")
        end = at + size_in_bytes(dtype, tuple(shape))
        if end > len(data):
            raise ValueError("the exported program is truncated: an array ends beyond the file")
        out.append(read_array(data[at:end], dtype, tuple(shape), weak))
        at = end
    if at != len(data):
        raise ValueError(f"the exported program has {len(data) - at} bytes after its last array")
    return out
