"""Arrays in files, in NumPy's format."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.numpy.creation import asarray


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's `.npy` format.

    Args:
        file: a path or an open binary file.
        arr: the array.
        allow_pickle: as for `numpy.save`.

    Example:
        >>> import io, namoo.numpy as jnp
        >>> file = io.BytesIO()
        >>> jnp.save(file, jnp.arange(3))
        >>> _ = file.seek(0)
        >>> jnp.load(file)
        Array([0, 1, 2], dtype=int32)
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to a file in NumPy's `.npz` format.

    Args:
        file: a path or an open binary file.
        args: arrays, which get the names arr_0, arr_1, ….
        allow_pickle: part of NumPy's signature; arrays of numbers are not pickled in any case.
        kwds: arrays under their names.

    Example:
        >>> import io, namoo.numpy as jnp
        >>> file = io.BytesIO()
        >>> jnp.savez(file, x=jnp.arange(3))
        >>> _ = file.seek(0)
        >>> sorted(jnp.load(file).keys())
        ['x']
    """
    arrays: Any = {name: np.asarray(x) for name, x in kwds.items()}
    np.savez(file, *map(np.asarray, args), **arrays)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read an array, or a table of arrays, from a file in NumPy's format.

    Args:
        file: a path or an open binary file.
        args, kwargs: as for `numpy.load`.

    Returns:
        An array; for an `.npz` file, what `numpy.load` returns.

    Example:
        >>> import io, numpy as np, namoo.numpy as jnp
        >>> file = io.BytesIO()
        >>> np.save(file, np.arange(3))
        >>> _ = file.seek(0)
        >>> jnp.load(file)
        Array([0, 1, 2], dtype=int32)
    """
    out = np.load(file, *args, **kwargs)
    if not isinstance(out, np.ndarray):
        return out
    if out.dtype == np.dtype("V2"):
        # The file's header cannot name bfloat16.
        out = out.view(dtypes.bfloat16)
    return asarray(out) if out.dtype in dtypes.SUPPORTED else out
