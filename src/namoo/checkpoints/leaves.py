"""Leaves as they stand in a file: numbers and text in JSON, arrays as tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from namoo import _dtypes
from namoo._tree.keys import KeyPath, keystr
from namoo.checkpoints.errors import CheckpointError
from namoo.checkpoints.structure import ELEMENTS, activation_name, read_value, write_value
from namoo.checkpoints.tensors import NAMES
from namoo.core.array import Array, EagerArray
from namoo.core.avals import ShapeDtypeStruct
from namoo.paths import path_string

_PYTHON = (bool, int, float, complex, str, bytes)


class Missing:
    """Stands for a leaf that the file has no value of: a function."""

    def __init__(self, what: str):
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}>"


class Tensor(NamedTuple):
    """How a leaf is an array of a file.

    Attributes:
      kind: 'array', 'numpy' (an ndarray), 'scalar' (of NumPy) or 'key'.
      name: of the array in the file.
      dtype: of the leaf.
      shape: of the leaf.
      weak: whether it has a weak type.
    """

    kind: str
    name: str
    dtype: Any
    shape: tuple[int, ...]
    weak: bool

    @property
    def spec(self) -> ShapeDtypeStruct:
        return ShapeDtypeStruct(self.shape, self.dtype, weak_type=self.weak)

    @property
    def stored(self) -> tuple[np.dtype, tuple[int, ...]]:
        """The type and shape of the array in the file."""
        if isinstance(self.dtype, _dtypes.KeyDType):
            return np.dtype(np.uint32), (*self.shape, *self.dtype.key_shape)
        if self.dtype in NAMES:
            return self.dtype, self.shape
        return np.dtype(np.uint8), (*self.shape, self.dtype.itemsize)

    def make(self, array: np.ndarray) -> Any:
        """The leaf, from the array in the file."""
        if isinstance(self.dtype, _dtypes.KeyDType):
            return EagerArray(self.dtype.from_words(array))
        if array.dtype != self.dtype:
            array = array.reshape(-1).view(self.dtype).reshape(self.shape)
        if self.kind == "array":
            return EagerArray(array, self.weak)
        return array[()] if self.kind == "scalar" else array


def write_leaf(path: KeyPath, leaf: Any, add: Callable[[Any, np.ndarray], str]) -> list[Any]:
    """A leaf as JSON.

    Args:
      path: its path, for messages.
      leaf: the leaf.
      add: takes the leaf and the array to store for it, returns the name of the array.

    Raises:
      TypeError: if a file cannot hold it.
    """
    if type(leaf) in _PYTHON:
        return ["value", write_value(leaf)]
    if isinstance(leaf, Array):
        if not isinstance(leaf, EagerArray):
            raise TypeError(
                f"the leaf at {keystr(path) or 'the root'} is traced, so it has no value to save "
                "yet. Save outside of functions under jit, grad or vmap."
            )
        value = leaf._value
        if isinstance(leaf.dtype, _dtypes.KeyDType):
            words = leaf.dtype.to_words(value)
            return ["key", add(leaf, words), leaf.dtype.impl, list(value.shape)]
        kind = "array"
    elif isinstance(leaf, (np.ndarray, np.generic)):
        kind = "numpy" if isinstance(leaf, np.ndarray) else "scalar"
        value = np.asarray(leaf)
    elif activation_name(leaf) is not None:
        return ["value", write_value(leaf)]
    elif callable(leaf):
        return ["opaque", f"{type(leaf).__name__} {getattr(leaf, '__name__', '')}".strip()]
    else:
        cls = type(leaf)
        raise TypeError(
            f"the leaf at {keystr(path) or 'the root'} is of type "
            f"{cls.__module__}.{cls.__qualname__}, which a checkpoint cannot hold. It holds "
            "arrays, numbers, strings and bytes; make other classes nodes of the tree with "
            "namoo.struct.dataclass or namoo.tree_util.register_dataclass."
        )
    name = value.dtype.name
    if name not in ELEMENTS or type(value) is not np.ndarray:
        raise TypeError(
            f"the array at {keystr(path) or 'the root'} is a {type(value).__name__} of "
            f"{value.dtype}, which a checkpoint cannot hold. It holds {', '.join(ELEMENTS)}."
        )
    stored = value.astype(ELEMENTS[name], copy=False)
    if ELEMENTS[name] not in NAMES:
        # The format has no such elements: their bytes, in one more axis.
        flat = np.ascontiguousarray(stored).reshape(-1).view(np.uint8)
        stored = flat.reshape(*value.shape, value.dtype.itemsize)
    weak = isinstance(leaf, EagerArray) and leaf.weak_type
    return [kind, add(leaf, stored), name, list(value.shape), weak]


def read_leaf(entry: Any) -> Any:
    """A leaf from JSON: its value, a `Tensor` to read, or `Missing`."""
    match entry:
        case ["value", value]:
            out = read_value(value, {})
            if type(out) in _PYTHON or activation_name(out) is not None:
                return out
        case ["opaque", str(what)]:
            return Missing(what)
        case ["key", str(name), str(impl), list(shape)] if _is_shape(shape):
            try:
                return Tensor("key", name, _dtypes.KeyDType(impl), tuple(shape), False)
            except ValueError as error:
                raise CheckpointError(str(error)) from None
        case [("array" | "numpy" | "scalar") as kind, str(name), str(dtype), list(shape), weak]:
            if dtype in ELEMENTS and _is_shape(shape) and type(weak) is bool:
                return Tensor(kind, name, ELEMENTS[dtype], tuple(shape), weak)
    raise CheckpointError(f"no leaf is {entry!r:.80}")


def _is_shape(shape: list[Any]) -> bool:
    return len(shape) <= 64 and all(type(n) is int and 0 <= n < 2**62 for n in shape)


def spec_of(stored: Any) -> Any:
    """What is known of a leaf without reading its array."""
    return stored.spec if isinstance(stored, Tensor) else stored


def name_of(path: KeyPath) -> str:
    """The name of a leaf in a file: its path, with slashes."""
    return path_string(path)
