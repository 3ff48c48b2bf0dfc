"""Inspection of the namespace, as the Python array API standard defines it."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes as _dtypes
from namoo.engines.base import Device

__array_api_version__ = "2024.12"

_NAMES: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_NAMES["integral"] = _NAMES["signed integer"] + _NAMES["unsigned integer"]
_NAMES["numeric"] = _NAMES["integral"] + _NAMES["real floating"] + _NAMES["complex floating"]
_ALL = _NAMES["bool"] + _NAMES["numeric"]


class ArrayNamespaceInfo:
    """Answers a library that works with any namespace of the array API standard.

    Example:
        >>> import namoo.numpy as jnp
        >>> info = jnp.__array_namespace_info__()
        >>> info.dtypes(kind="real floating")
        {'float32': dtype('float32')}
    """

    def capabilities(self) -> dict[str, Any]:
        """The optional features of the standard that all arrays have, traced ones included.

        Example:
            >>> ArrayNamespaceInfo().capabilities()["boolean indexing"]
            False
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: an array that was not put on a device follows the other operands."""
        return None

    def devices(self) -> list[Device | None]:
        """The values that the argument `device` takes."""
        return [None, Device(0)]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes that numbers without one get; `enable_x64` makes them wide.

        Args:
            device: the device that is asked about; all have the same dtypes.

        Example:
            >>> ArrayNamespaceInfo().default_dtypes()["integral"]
            dtype('int32')
        """
        wide = {
            "real floating": "float64",
            "complex floating": "complex128",
            "integral": "int64",
            "indexing": "int64",
        }
        return {kind: _dtypes.canonicalize_dtype(name) for kind, name in wide.items()}

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """The standard's dtypes that arrays can have now, by name.

        Args:
            device: the device that is asked about; all have the same dtypes.
            kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
                'complex floating' or 'numeric', or a tuple of these; None means all.

        Raises:
            KeyError: no such kind.

        Example:
            >>> list(ArrayNamespaceInfo().dtypes(kind=("bool", "complex floating")))
            ['bool', 'complex64']
        """
        kinds = kind if isinstance(kind, tuple) else (kind,)
        for each in kinds:
            if each is not None and each not in _NAMES:
                raise KeyError(f"dtypes: kind={each!r} is none of {', '.join(map(repr, _NAMES))}.")
        names = _ALL if kind is None else [n for each in kinds if each for n in _NAMES[each]]
        dtypes = {name: np.dtype(name) for name in names}
        # Without enable_x64 the wide dtypes would be narrowed: arrays cannot have them.
        return {n: dtype for n, dtype in dtypes.items() if _dtypes.canonicalize_dtype(n) == dtype}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The inspection object of `namoo.numpy` by the array API standard.

    Example:
        >>> __array_namespace_info__().devices()
        [None, CpuDevice(id=0)]
    """
    return ArrayNamespaceInfo()
