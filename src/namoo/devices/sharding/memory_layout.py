"""Memory layouts: the order of an array's elements in memory.

Arrays of namoo are in row-major order.  Programs that ask for JAX's layouts get that one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from namoo.devices.sharding.shardings import Sharding


class _AutoLayout:
    """The layout that an engine chooses."""

    def __repr__(self) -> str:
        return "AUTO"


@dataclass(frozen=True)
class Layout:
    """An order of axes in memory.

    Args:
        major_to_minor: the axes, from the largest stride to the smallest.
        tiling: sizes of tiles, on accelerators that have them.
        sub_byte_element_size_in_bits: the size of elements smaller than a byte.

    Example:
        >>> Layout((0, 1)).major_to_minor
        (0, 1)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: ClassVar[_AutoLayout] = _AutoLayout()

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        if self.tiling is not None:
            object.__setattr__(self, "tiling", tuple(map(tuple, self.tiling)))

    def update(self, **changes: Any) -> Layout:
        """Return a copy with some fields changed."""
        return replace(self, **changes)


def row_major(ndim: int) -> Layout:
    """Return the layout of namoo's arrays.

    Example:
        >>> row_major(2)
        Layout(major_to_minor=(0, 1), tiling=(), sub_byte_element_size_in_bits=0)
    """
    return Layout(tuple(range(ndim)), ())


@dataclass(frozen=True)
class Format:
    """A layout and a sharding.

    Args:
        layout: a `Layout`, `Layout.AUTO`, or None if it does not matter.
        sharding: a sharding, or None.

    Raises:
        ValueError: there is a layout, and no sharding.
        TypeError: one of them is something else.

    Example:
        >>> Format().sharding is None
        True
    """

    layout: Layout | _AutoLayout | None = None
    sharding: Sharding | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.layout, (Layout, _AutoLayout, type(None))):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are None, "
                f"Layout.AUTO or a Layout. Got {self.layout!r} of type {type(self.layout)}."
            )
        if not isinstance(self.sharding, (Sharding, type(None))):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are None or a "
                f"sharding. Got {self.sharding!r} of type {type(self.sharding)}."
            )
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                "Sharding has to be concrete when there is a layout. Pass a NamedSharding or a "
                "SingleDeviceSharding as the sharding argument."
            )
