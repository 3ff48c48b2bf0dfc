"""Which namoo this is.

Example:
    >>> __version__ == ".".join(map(str, __version_info__))
    True
"""

__version__ = "0.1.0"
__version_info__ = tuple(int(part) for part in __version__.split(".") if part.isdigit())
