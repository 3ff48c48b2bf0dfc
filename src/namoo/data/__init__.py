"""Data for a training loop: batches in an order that only the key and the epoch determine.

Example:
    >>> import numpy as np
    >>> from namoo import data, random
    >>> images, labels = np.zeros((10, 28, 28)), np.arange(10)
    >>> loader = data.Loader((images, labels), batch_size=4, key=random.key(0))
    >>> for x, y in loader:
    ...     print(x.shape, y)
    (4, 28, 28) [0 8 2 4]
    (4, 28, 28) [1 7 9 5]
    >>> {name: loader.state()[name] for name in ("epoch", "batch")}
    {'epoch': 1, 'batch': 0}
"""

from namoo._base.lazy import lazy as _lazy

_TABLE = {
    "data.digits": "digits",
    "data.loader": "Loader",
    "data.order": "permutation weighted",
    "data.small": "houses tales",
    "data.sources": "mapped stack windows",
}

__getattr__, __dir__ = _lazy(__name__, _TABLE, guarded=True)
