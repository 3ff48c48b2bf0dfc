"""How leaves are stored in a file: numbers and text as JSON, arrays as tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from namoo._base import dtypes
from namoo.checkpoints.errors import CheckpointError
from namoo.checkpoints.structure import ELEMENTS, activation_name, read_value, write_value
from namoo.checkpoints.tensors import NAMES
from namoo.core.array import Array, EagerArray, PlacedArray
from namoo.core.avals import ShapeDtypeStruct
from namoo.tree.keys import KeyPath, keystr
from namoo.tree.paths import path_string

_PYTHON = (bool, int, float, complex, str, bytes)


class Missing:
    """The marker for a leaf, such as a function, that the file has no value for."""

    def __init__(self, what: str):
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}>"


class Tensor(NamedTuple):
    """How a leaf is stored as an array of a file.

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
        """The dtype and shape of the array in the file."""
        if isinstance(self.dtype, dtypes.KeyDType):
            return np.dtype(np.uint32), (*self.shape, *self.dtype.key_shape)
        if self.dtype in NAMES:
            return self.dtype, self.shape
        return np.dtype(np.uint8), (*self.shape, self.dtype.itemsize)

    def make(self, array: np.ndarray) -> Any:
        """Return the leaf, given the array in the file."""
        if isinstance(self.dtype, dtypes.KeyDType):
            return EagerArray(self.dtype.from_words(array))
        if array.dtype != self.dtype:
            array = array.reshape(-1).view(self.dtype).reshape(self.shape)
        if self.kind == "array":
            return EagerArray(array, self.weak)
        return array[()] if self.kind == "scalar" else array


class Parts(NamedTuple):
    """A leaf stored as several arrays: it was on the devices of several processes.

    Attributes:
        shape: of the leaf.
        parts: for each part where it begins, and the array.
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[tuple[int, ...], Tensor], ...]

    @property
    def spec(self) -> ShapeDtypeStruct:
        first = self.parts[0][1]
        return ShapeDtypeStruct(self.shape, first.dtype, weak_type=first.weak)

    def make(self, arrays: dict[Tensor, Any]) -> EagerArray:
        """Return the leaf, given its parts."""
        first = self.parts[0][1]
        # Zeros, so that a hostile file with overlapping parts cannot expose old memory.
        out = np.zeros(self.shape, getattr(first.dtype, "numpy", first.dtype))
        for starts, tensor in self.parts:
            cut = tuple(slice(a, a + n) for a, n in zip(starts, tensor.shape, strict=True))
            out[cut] = arrays[tensor]._value
        return EagerArray(out, first.weak)


def _write_parts(path: KeyPath, leaf: PlacedArray, add: Callable[..., str]) -> list[Any]:
    """Return a leaf on the devices of several processes as JSON: the parts of this process."""
    parts = []
    for shard in leaf.addressable_shards:
        if shard.replica_id == 0:
            cut = [s.indices(n) for s, n in zip(shard.index, leaf.shape, strict=True)]
            starts = [a for a, _, _ in cut]
            own = EagerArray(shard.data._value, leaf.weak_type)
            suffix = "@" + ",".join(map(str, starts))
            entry = write_leaf(path, own, lambda x, array, s=suffix: add(x, array, suffix=s))
            parts.append([starts, entry])
    return ["parts", list(leaf.shape), parts]


def write_leaf(path: KeyPath, leaf: Any, add: Callable[..., str]) -> list[Any]:
    """Return a leaf as JSON.

    Args:
        path: its path, for messages.
        leaf: the leaf.
        add: takes the leaf and the array to store for it, returns the name of the array.

    Raises:
        TypeError: if it cannot be stored in a file.
    """
    if type(leaf) in _PYTHON:
        return ["value", write_value(leaf)]
    if isinstance(leaf, Array):
        if not isinstance(leaf, EagerArray):
            raise TypeError(
                f"the leaf at {keystr(path) or 'the root'} is traced, so it has no value to save "
                "yet. Save outside of functions under jit, grad or vmap."
            )
        if isinstance(leaf, PlacedArray) and not (
            leaf.is_fully_addressable or leaf.is_fully_replicated
        ):
            return _write_parts(path, leaf, add)
        value = leaf._value
        if isinstance(leaf.dtype, dtypes.KeyDType):
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
        # The format lacks this dtype: store the bytes along one more axis.
        flat = np.ascontiguousarray(stored).reshape(-1).view(np.uint8)
        stored = flat.reshape(*value.shape, value.dtype.itemsize)
    weak = isinstance(leaf, EagerArray) and leaf.weak_type
    return [kind, add(leaf, stored), name, list(value.shape), weak]


def read_leaf(entry: Any) -> Any:
    """Parse a leaf from JSON: its value, a `Tensor` to read, or `Missing`."""
    match entry:
        case ["value", value]:
            out = read_value(value, {})
            if type(out) in _PYTHON or activation_name(out) is not None:
                return out
        case ["opaque", str(what)]:
            return Missing(what)
        case ["key", str(name), str(impl), list(shape)] if _is_shape(shape):
            try:
                return Tensor("key", name, dtypes.KeyDType(impl), tuple(shape), False)
            except ValueError as error:
                raise CheckpointError(str(error)) from None
        case [("array" | "numpy" | "scalar") as kind, str(name), str(dtype), list(shape), weak]:
            if dtype in ELEMENTS and _is_shape(shape) and type(weak) is bool:
                return Tensor(kind, name, ELEMENTS[dtype], tuple(shape), weak)
        case ["parts", list(shape), list(parts)] if _is_shape(shape) and parts:
            found = Parts(tuple(shape), tuple(_read_part(part, shape) for part in parts))
            kinds = {(tensor.kind, tensor.dtype, tensor.weak) for _, tensor in found.parts}
            sizes = [math.prod(tensor.shape) for _, tensor in found.parts]
            # Never allocate more than the files contain.
            if len(kinds) == 1 and sum(sizes) == math.prod(shape):
                return found
    raise CheckpointError(f"{entry!r:.80} does not describe a leaf")


def _read_part(part: Any, shape: list[int]) -> tuple[tuple[int, ...], Tensor]:
    match part:
        case [list(starts), list(entry)] if _is_shape(starts) and len(starts) == len(shape):
            tensor = read_leaf(entry)
            is_array = isinstance(tensor, Tensor) and tensor.kind in ("array", "key")
            if is_array and len(tensor.shape) == len(shape):
                ends = (a + n for a, n in zip(starts, tensor.shape, strict=True))
                if all(end <= n for end, n in zip(ends, shape, strict=True)):
                    return tuple(starts), tensor
    raise CheckpointError(f"{part!r:.80} does not describe a part of a leaf")


def _is_shape(shape: list[Any]) -> bool:
    return len(shape) <= 64 and all(type(n) is int and 0 <= n < 2**62 for n in shape)


def spec_of(stored: Any) -> Any:
    """Describe a leaf without reading its array."""
    return stored.spec if isinstance(stored, Tensor | Parts) else stored


def name_of(path: KeyPath) -> str:
    """Return the name of a leaf in a file: its path, with slashes."""
    return path_string(path)
