"""A writer of protocol buffers, as far as TensorBoard and pprof need them.

A field is a number and a wire type, followed by a varint or bytes.
"""

from __future__ import annotations

_SMALL = [bytes([i]) for i in range(128)]


def varint(value: int) -> bytes:
    """Encode a varint; a negative number as 64 bits."""
    if 0 <= value < 128:  # the common case
        return _SMALL[value]
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encode a field that is a number.

    Example:
        >>> number(1, 300).hex()
        '08ac02'
    """
    return varint(field << 3) + varint(value)


def content(field: int, *parts: bytes) -> bytes:
    """Encode a field that is text, or a message of the fields `parts`.

    Example:
        >>> content(2, b"hi")
        b'\\x12\\x02hi'
    """
    joined = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(joined)) + joined
