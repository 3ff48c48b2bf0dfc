"""Numbers with units, in four characters or so."""

from __future__ import annotations


def seconds(value: float) -> str:
    """A time.

    Example:
        >>> seconds(0.00123), seconds(2e-7), seconds(0)
        ('1.23 ms', '200 ns', '')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{_digits(value / size)} {unit}"
    return f"{_digits(value / 1e-9)} ns" if value > 0 else ""


def count(value: float) -> str:
    """A number of operations.

    Example:
        >>> count(1_200_000), count(12), count(0)
        ('1.2 M', '12', '')
    """
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{_digits(value / size)} {unit}"
    return f"{value:.0f}" if value else ""


def size(value: float) -> str:
    """A number of bytes.

    Example:
        >>> size(4096), size(100), size(0)
        ('4.1 kB', '100 B', '')
    """
    text = count(value)
    return f"{text}B" if " " in text else f"{text} B" if text else ""


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
