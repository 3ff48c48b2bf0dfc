"""TensorBoard's event files: numbers over steps, as records of protocol buffers.

A record is the length of its data as a 64-bit integer, the checksum of the length, the data, and
the checksum of the data. The data is a message `Event`: 1 the time, 2 the step, 3 the version of
the file, 5 a `Summary`, which has `Value`s (1) of a tag (1) and a number (2).
"""

from __future__ import annotations

import math
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from namoo._base import protobuf

_POLYNOMIAL = 0x82F63B78  # Castagnoli's polynomial with its bits reversed


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """Return the checksum CRC-32C.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """Return the checksum as it is stored next to its data: rotated by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """Return data as a record."""
    length = struct.pack("<Q", len(data))
    checks = struct.pack("<I", masked_crc32c(length)), struct.pack("<I", masked_crc32c(data))
    return length + checks[0] + data + checks[1]


def _single(value: float) -> bytes:
    """Encode a number in single precision; too large ones become infinite."""
    try:
        return struct.pack("<f", value)
    except (OverflowError, struct.error):
        return struct.pack("<f", math.inf if value > 0 else -math.inf)


def scalars(step: int, values: Mapping[str, float], wall_time: float) -> bytes:
    """Return the `Event` message for numbers at a step."""
    summary = b"".join(
        protobuf.content(1, protobuf.content(1, tag.encode()), b"\x15", _single(value))
        for tag, value in values.items()
    )
    moment = b"\x09" + struct.pack("<d", wall_time)
    return moment + protobuf.number(2, step) + protobuf.content(5, summary)


class EventWriter:
    """A writer of a new event file in a folder.

    Args:
        folder: where the file is made; point TensorBoard at this folder or one above it.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        os.makedirs(folder, exist_ok=True)
        now = time.time()
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}"
        # Two runs that start in the same second and process get separate files.
        number, path = 0, os.path.join(folder, f"{name}.0.namoo")
        while os.path.exists(path):
            number += 1
            path = os.path.join(folder, f"{name}.{number}.namoo")
        self.path = path
        self._file = open(path, "ab", buffering=0)
        version = b"\x09" + struct.pack("<d", now) + protobuf.content(3, b"brain.Event:2")
        self._file.write(record(version))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append numbers, as one record in one write."""
        self._file.write(record(scalars(step, values, time.time())))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Event(NamedTuple):
    """Numbers at a step."""

    wall_time: float
    step: int
    values: dict[str, float]


def read_events(path: str | os.PathLike[str]) -> Iterator[Event]:
    """Read the numbers of an event file.

    Args:
        path: the file.

    Returns:
        The events in their order; an incomplete one is left out if it is the
        last.

    Raises:
        ValueError: if a checksum is wrong, or a record is not an event.

    Example:
        >>> import tempfile
        >>> writer = EventWriter(tempfile.mkdtemp())
        >>> writer.write(3, {"loss": 0.5})
        >>> writer.close()
        >>> [(event.step, event.values) for event in read_events(writer.path)]
        [(3, {'loss': 0.5})]
    """
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at + 12 <= len(data):
        length, check = struct.unpack_from("<QI", data, at)
        if masked_crc32c(data[at : at + 8]) != check:
            raise ValueError(f"{os.fspath(path)!r} is damaged at byte {at}: wrong checksum.")
        if at + 16 + length > len(data):
            return
        message = data[at + 12 : at + 12 + length]
        (check,) = struct.unpack_from("<I", data, at + 12 + length)
        if masked_crc32c(message) != check:
            raise ValueError(f"{os.fspath(path)!r} is damaged at byte {at + 12}: wrong checksum.")
        start, at = at, at + 16 + length
        try:
            event = _event(message)
        except (IndexError, KeyError, TypeError, AttributeError, ValueError, struct.error) as error:
            raise ValueError(
                f"{os.fspath(path)!r} has no event at byte {start}: {error}"
            ) from error
        if event.values:
            yield event


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message: number and value."""
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return number

    while at < len(message):
        field, kind = divmod(varint(), 8)
        if kind == 0:
            yield field, varint()
        elif kind == 2:
            size = varint()
            yield field, message[at : at + size]
            at += size
        else:
            form, size = ("<d", 8) if kind == 1 else ("<f", 4)
            yield field, struct.unpack_from(form, message, at)[0]
            at += size


def _event(message: bytes) -> Event:
    wall_time, step, values = 0.0, 0, {}
    for field, value in _fields(message):
        if field == 1:
            wall_time = value
        elif field == 2:
            step = value - (1 << 64) if value >> 63 else value
        elif field == 5:
            for number, part in _fields(value):
                if number == 1:
                    found = dict(_fields(part))
                    # Images and tensors have other fields than a number.
                    if 2 in found:
                        values[found[1].decode()] = found[2]
    return Event(wall_time, step, values)
