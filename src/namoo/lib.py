"""`namoo.lib`: the version of `jaxlib` whose behaviour namoo implements.

Example:
    >>> __version__
    '0.10.2'
"""

__version__ = "0.10.2"
