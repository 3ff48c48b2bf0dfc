"""`namoo.experimental.layout`: the order of an array's elements in memory, under JAX's names.

Example:
    >>> Format(Layout.AUTO).layout
    AUTO
"""

from namoo.devices.sharding.memory_layout import Format, Layout

__all__ = ["Format", "Layout"]
__dir__ = __all__.copy
