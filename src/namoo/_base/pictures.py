"""Pictures for notebooks without a library: histograms as SVG, heat maps as PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from namoo._base.html import escape

_WIDTH, _HEIGHT = 220, 60
_PIXELS = 96


def histogram(values: np.ndarray, bins: int = 32) -> str:
    """Finite numbers as bars, with the least and the greatest below.

    Example:
        >>> histogram(np.array([0.0, 1.0, 1.0])).count("<rect")
        2
    """
    counts, edges = np.histogram(values.astype(np.float64), bins)
    most, wide = max(int(counts.max()), 1), _WIDTH / bins
    bars = "".join(
        f'<rect x="{i * wide:.1f}" y="{_HEIGHT * (1 - n / most):.1f}" width="{wide - 0.5:.1f}" '
        f'height="{_HEIGHT * n / most:.1f}" fill="var(--one)"><title>{n} from {edges[i]:.4g} to '
        f"{edges[i + 1]:.4g}</title></rect>"
        for i, n in enumerate(counts.tolist())
        if n
    )
    low, high = escape(f"{edges[0]:.4g}"), escape(f"{edges[-1]:.4g}")
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT + 16}" role="img">{bars}'
        f'<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}" stroke="var(--line)"/>'
        f'<text x="0" y="{_HEIGHT + 13}">{low}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 13}" text-anchor="end">{high}</text></svg>'
    )


def heat_map(matrix: np.ndarray) -> str:
    """A matrix as an image: blue below zero, orange above, grey where it is not finite."""
    small = _reduced(matrix.astype(np.float64))
    finite = np.isfinite(small)
    scale = float(np.max(np.abs(small), where=finite, initial=0.0)) or 1.0
    share = np.where(finite, small / scale, 0.0)[..., None]
    ends = np.where(share < 0, np.array([36, 99, 180]), np.array([224, 108, 20]))
    colors = 247 + np.abs(share) * (ends - 247)
    colors = np.where(finite[..., None], colors, 120).astype(np.uint8)
    height, width = colors.shape[:2]
    zoom = max(1, min(180 // max(height, width), 24))
    data = base64.b64encode(png(colors)).decode()
    return (
        f'<img alt="heat map" width="{width * zoom}" height="{height * zoom}" '
        f'style="image-rendering:pixelated;border:1px solid var(--line)" '
        f'src="data:image/png;base64,{data}">'
    )


def _reduced(matrix: np.ndarray) -> np.ndarray:
    """Means of blocks, so that at most some pixels are left along each axis."""
    for axis in (0, 1):
        size = matrix.shape[axis]
        if size > _PIXELS:
            starts = np.linspace(0, size, _PIXELS, endpoint=False).astype(int)
            lengths = np.diff([*starts, size])
            with np.errstate(all="ignore"):
                sums = np.add.reduceat(matrix, starts, axis)
            matrix = sums / (lengths[:, None] if axis == 0 else lengths)
    return matrix


def png(colors: np.ndarray) -> bytes:
    """An image file of rows of red, green and blue bytes.

    Example:
        >>> png(np.zeros((2, 3, 3), np.uint8))[:4]
        b'\\x89PNG'
    """
    height, width = colors.shape[:2]

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(colors))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts: Sequence[bytes] = (
        chunk(b"IHDR", head),
        chunk(b"IDAT", zlib.compress(rows)),
        chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
