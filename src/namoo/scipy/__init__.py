"""Scientific functions under SciPy's names: special functions, statistics, and more.

A part is loaded when it is first used.

Example:
    >>> import namoo.scipy
    >>> namoo.scipy.special.expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
"""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "scipy.cluster": ".",
    "scipy.fft": ".",
    "scipy.integrate": ".",
    "scipy.interpolate": ".",
    "scipy.linalg": ".",
    "scipy.ndimage": ".",
    "scipy.optimize": ".",
    "scipy.signal": ".",
    "scipy.sparse": ".",
    "scipy.spatial": ".",
    "scipy.special": ".",
    "scipy.stats": ".",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
