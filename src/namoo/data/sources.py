"""Sources of a loader: trees of arrays, files on disk, and anything with `len` and `[i]`."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from namoo import tree
from namoo._base import dtypes
from namoo.core.array import Array
from namoo.tree.paths import path_string


class Source(Protocol):
    """Examples that can be read by index."""

    def __len__(self) -> int: ...

    def examples(self, indices: np.ndarray) -> list[Any]:
        """Return some examples as a list."""
        ...

    def batch(self, indices: np.ndarray, collate: Callable[[list[Any]], Any]) -> Any:
        """Return some examples as one tree."""
        ...


class Arrays:
    """A tree of arrays whose first axes are the examples."""

    def __init__(self, arrays: Any):
        pairs, self.treedef = tree.flatten_with_path(arrays)
        self.leaves = [x if _is_stored(x) else as_numpy(x) for _, x in pairs]
        sizes = [x.shape[0] for x in self.leaves]
        for (path, _), size in zip(pairs, sizes, strict=True):
            if size != sizes[0]:
                raise ValueError(
                    "the arrays of a loader must have as many examples as one another, along "
                    f"their first axes: {path_string(pairs[0][0]) or 'the array'} has {sizes[0]}, "
                    f"{path_string(path)} has {size}."
                )
        self.readers = [_reader(x) for x in self.leaves]

    def __len__(self) -> int:
        return self.leaves[0].shape[0]

    def batch(self, indices: np.ndarray, collate: Any = None) -> Any:
        return self.treedef.unflatten([read(indices) for read in self.readers])

    def examples(self, indices: np.ndarray) -> list[Any]:
        columns = [read(indices) for read in self.readers]
        return [self.treedef.unflatten(row) for row in zip(*columns, strict=True)]

    def __getstate__(self) -> dict[str, Any]:
        # The receiving process opens a mapped file again; its content is not sent.
        like = self.treedef.unflatten([0] * len(self.leaves))
        return {"leaves": [_reference(x) for x in self.leaves], "like": like}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.treedef = tree.structure(state["like"])
        self.leaves = [x.open() if isinstance(x, _Mapped) else x for x in state["leaves"]]
        self.readers = [_reader(x) for x in self.leaves]


def _reader(x: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that reads rows of an array by index."""
    if _is_stored(x):
        return partial(_rows, x)
    # `take` copies all of a non-contiguous array before it reads from it.
    return partial(x.take, axis=0) if x.flags.c_contiguous else x.__getitem__


def _is_stored(x: Any) -> bool:
    """Return whether this is an array in a file (HDF5 or Zarr) that is read on demand."""
    return hasattr(x, "chunks") and hasattr(x, "dtype") and hasattr(x, "ndim")


def _rows(x: Any, indices: np.ndarray) -> np.ndarray:
    """Read rows of an array in a file, each once and in the file's order, as HDF5 requires."""
    numbers, inverse = np.unique(indices, return_inverse=True)
    return as_numpy(getattr(x, "oindex", x)[numbers])[inverse.reshape(indices.shape)]


class _Mapped:
    """The position of a mapped array in its file."""

    def __init__(self, x: np.memmap):
        self.path, self.offset = os.fspath(x.filename), x.offset  # type: ignore[arg-type]
        self.dtype, self.shape = x.dtype, x.shape
        self.order = "C" if x.flags.c_contiguous else "F"

    def open(self) -> np.memmap:
        return np.memmap(
            self.path,
            self.dtype,
            "r",
            self.offset,
            self.shape,
            self.order,  # type: ignore[arg-type]
        )


def _reference(x: Any) -> Any:
    """Return the file position of a whole mapped array; a part of one is returned as data."""
    if _is_stored(x):
        return x
    whole = isinstance(x, np.memmap) and isinstance(x.base, mmap.mmap) and x.filename is not None
    return _Mapped(x) if whole else np.asarray(x)  # type: ignore[arg-type]


class Items:
    """Anything with `len` and `[i]`: lists, and the datasets of other libraries."""

    def __init__(self, items: Any):
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def examples(self, indices: np.ndarray) -> list[Any]:
        numbers = indices.tolist()
        # PyTorch's method for reading many examples at once; Hugging Face's datasets have it, too.
        if hasattr(self.items, "__getitems__"):
            return list(self.items.__getitems__(numbers))
        return [self.items[i] for i in numbers]

    def batch(self, indices: np.ndarray, collate: Callable[[list[Any]], Any]) -> Any:
        return collate(self.examples(indices))


class Windows:
    """Overlapping windows of one long array."""

    def __init__(self, array: Any, length: int, stride: int):
        self.array, self.length, self.stride = Arrays(array), length, stride

    def __len__(self) -> int:
        return max(0, (len(self.array) - self.length) // self.stride + 1)

    def batch(self, indices: np.ndarray, collate: Any = None) -> Any:
        starts = np.asarray(indices, np.int64) * self.stride
        return self.array.batch(starts[:, None] + np.arange(self.length))

    def examples(self, indices: np.ndarray) -> list[Any]:
        return [self.array.batch(np.arange(self.length) + i * self.stride) for i in indices]


def windows(array: Any, length: int, stride: int = 1) -> Windows:
    """Return all windows of a given length of a long array, such as a text; nothing is copied.

    Args:
        array: an array, a mapped one too, or a tree of them.
        length: the length of a piece. Predicting the next token needs one more than the context.
        stride: the distance from one piece to the next.

    Returns:
        A source for `Loader`.

    Raises:
        ValueError: if the length or the stride is not positive.

    Example:
        >>> import numpy as np
        >>> from namoo import data
        >>> text = data.windows(np.arange(10), length=4, stride=3)
        >>> next(iter(data.Loader(text, batch_size=3)))
        array([[0, 1, 2, 3],
               [3, 4, 5, 6],
               [6, 7, 8, 9]])
    """
    if length < 1 or stride < 1:
        raise ValueError(f"length and stride must be positive; got {length} and {stride}.")
    return Windows(array, length, stride)


def mapped(
    path: str | os.PathLike[str],
    dtype: Any = None,
    shape: int | Sequence[int] | None = None,
    offset: int = 0,
) -> np.memmap:
    """Open a file as an array that is read on access; it may be larger than memory.

    Args:
        path: a file of `numpy.save`, or of bare numbers if a dtype is given.
        dtype: the type of bare numbers.
        shape: the shape of bare numbers; one axis with all of them by default.
        offset: where bare numbers begin, in bytes.

    Returns:
        The array, read-only.

    Raises:
        ValueError: if a file of bare numbers has no dtype, or if the file holds Python objects.

    Example:
        >>> import numpy as np, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokens.bin"
        >>> _ = path.write_bytes(np.arange(5, dtype=np.uint16).tobytes())
        >>> mapped(path, np.uint16)
        memmap([0, 1, 2, 3, 4], dtype=uint16)
    """
    if dtype is not None:
        sizes = (shape,) if isinstance(shape, int) else shape and tuple(shape)
        return np.memmap(path, dtype, "r", offset, sizes)  # type: ignore[arg-type]
    with open(path, "rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise ValueError(
                f"{os.fspath(path)!r} is not a file of numpy.save. If it holds bare numbers, say "
                "which: mapped(path, dtype=np.uint16)."
            )
    return np.load(path, mmap_mode="r", allow_pickle=False)


_OF_ONE_STRUCTURE = (
    "The examples of a batch must have one structure; convert them with `map`, or give a "
    "`collate`. A dataset that marks examples to skip with None, as Grain's MapDataset.filter "
    "does, is read as a stream: Loader(dataset.to_iter_dataset(), ...)."
)


def stack(examples: list[Any]) -> Any:
    """Stack examples of one structure into one tree with a new first axis.

    Args:
        examples: trees of arrays and numbers; at least one. A list of numbers is an array.

    Returns:
        A tree of NumPy arrays.

    Raises:
        ValueError: if the examples have different structures or shapes.

    Example:
        >>> stack([{"x": (1.0, 2.0), "tokens": [5, 6]}, {"x": (3.0, 4.0), "tokens": [7, 8]}])
        {'tokens': array([[5, 6], [7, 8]]), 'x': (array([1., 3.]), array([2., 4.]))}
    """
    first, treedef = tree.flatten(examples[0], _is_row)
    try:
        rows = [first, *(treedef.flatten_up_to(example) for example in examples[1:])]
    except ValueError as error:
        error.add_note(_OF_ONE_STRUCTURE)
        raise
    columns = [[as_numpy(x) for x in column] for column in zip(*rows, strict=True)]
    for i, column in enumerate(columns):
        shapes = sorted({x.shape for x in column})
        if len(shapes) > 1:
            path = path_string(tree.leaves_with_path(examples[0], _is_row)[i][0])
            raise ValueError(
                f"the examples of a batch have different shapes{f' at {path}' if path else ''}: "
                f"{shapes[0]} and {shapes[1]}. Make them equal with `map`, or give a `collate`."
            )
    return treedef.unflatten([np.stack(column) for column in columns])


def _is_row(x: Any) -> bool:
    """Return whether a list contains only numbers, nested or not, as in some datasets."""
    while type(x) is list and x:
        x = x[0]
        if isinstance(x, (bool, int, float, np.generic)):
            return True
    return False


def _is_array(x: Any) -> bool:
    """Return whether this is an array with axes, of any library."""
    is_other = (hasattr(x, "__array__") or _is_stored(x)) and hasattr(x, "ndim")
    return (is_other or isinstance(x, (np.ndarray, Array))) and x.ndim > 0


# Types of PyTorch and ml_dtypes, with PyTorch's name for integers of the same size.
_NARROW = {"bfloat16": "short", "float8_e4m3fn": "byte", "float8_e5m2": "byte"}


def as_numpy(x: Any) -> np.ndarray:
    """Convert an array of any library, or a number, to NumPy, sharing memory if possible.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "detach"):  # a PyTorch tensor may require a gradient or be on a device
        x = x.detach().cpu()
        if (name := str(x.dtype).rpartition(".")[2]) in _NARROW:
            integers = getattr(x.new_empty(0), _NARROW[name])().dtype
            return np.asarray(x.view(integers)).view(dtypes.canonicalize_dtype(name))
    array = np.asarray(x)
    if array.dtype == object:
        raise TypeError(
            f"a {type(x).__name__} cannot be part of a batch: {x!r:.60} is no array of numbers or "
            "texts. Make one with `map`; for a table, give the columns as arrays: "
            "{name: table[name].to_numpy() for name in table.columns}."
        )
    return array


def source_of(given: Any) -> Any:
    """Make a source of the user's argument; for a stream, a function that restarts it.

    Raises:
        TypeError: if examples cannot be read from it.
    """
    if isinstance(given, (Arrays, Items, Windows)):
        return given
    if isinstance(given, Mapping) and not isinstance(given, dict):
        given = {name: given[name] for name in given}  # a NumPy archive or an HDF5 file
    leaves = tree.leaves(given)
    # A list is a sequence of examples, even if its elements are arrays.
    if leaves and not isinstance(given, list) and all(map(_is_array, leaves)):
        return Arrays(given)
    if isinstance(given, (str, bytes, dict)):
        parts = [repr(key) for key in given] if isinstance(given, dict) else []
        raise TypeError(
            f"a loader reads arrays, trees of arrays, datasets and iterables, not {given!r:.60}. "
            "Every leaf of a tree must be an array with at least one axis."
            + (f" Of several datasets give one: source[{parts[0]}]." if parts else "")
        )
    if hasattr(given, "__getitem__") and hasattr(given, "__len__") and not _only_iterates(given):
        return Items(given)
    if hasattr(given, "__iter__"):
        return _again(given)
    if callable(given):
        return given
    raise TypeError(
        f"a loader cannot read from {type(given).__name__}: it has neither `len` and `[i]`, nor "
        "`iter`, and is not a function that returns an iterable."
    )


def _only_iterates(given: Any) -> bool:
    """Return whether `[i]` does not work, as in PyTorch's iterable datasets with a length."""
    if isinstance(given, Sequence) or not hasattr(given, "__iter__") or not len(given):
        return False
    try:
        given[0]
    except (NotImplementedError, TypeError):
        return True
    return False


def _again(given: Iterable[Any]) -> Callable[[], Iterable[Any]]:
    used = False

    def start():
        nonlocal used
        items = iter(given)
        if used and items is given:
            raise ValueError(
                "an iterator can be read only once, and this one has been. Give the loader a list, "
                "an iterable that can start again, or a function that returns one: "
                "Loader(lambda: read(path), ...)."
            )
        used = True
        return items

    return start
