"""`namoo.extend`: what libraries on top of namoo need beyond its public functions.

Example:
    >>> import namoo
    >>> closed = namoo.make_jaxpr(namoo.numpy.sin)(1.0)
    >>> isinstance(closed, namoo.extend.core.ClosedJaxpr)
    True
"""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "extend.backend": ".",
    "extend.core": ".",
    "extend.ifrt_programs": ".",
    "extend.linear_util": ".",
    "extend.source_info_util": ".",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
