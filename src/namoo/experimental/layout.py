"""`namoo.experimental.layout`: the order of an array's elements in memory, by JAX's names.

Example:
    >>> Format(Layout.AUTO).layout
    AUTO
"""

from namoo.sharding.layouts import Format, Layout

__all__ = ["Format", "Layout"]
