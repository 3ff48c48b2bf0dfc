"""Safetensors files of other programs (PyTorch, Hugging Face), as one file or several."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from namoo import tree as _tree
from namoo.checkpoints import files, tensors
from namoo.checkpoints.errors import CheckpointError
from namoo.checkpoints.leaves import Tensor
from namoo.checkpoints.structure import MAX_DEPTH
from namoo.checkpoints.template import Rename, chosen, fit, nest, pairs_of, words_of
from namoo.core.array import EagerArray
from namoo.tree.keys import DictKey, key_value, keystr
from namoo.tree.paths import path_string

_INDEX = "model.safetensors.index.json"
_SINGLE = "model.safetensors"


def save_safetensors(
    path: str | os.PathLike[str],
    tree: Any,
    *,
    separator: str = ".",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Save the arrays of a tree as one plain safetensors file, for other programs.

    Args:
        path: the file to make or, in one step, to replace.
        tree: a tree of arrays. An array's name is its path.
        separator: the text between the keys of a path.
        metadata: strings to put into the header; some programs want `{"format": "pt"}`.

    Raises:
        TypeError: if a leaf is not an array, or of a type that the format does not have. `save` has
            all types.
        ValueError: if two arrays would have the same name.

    Example:
        >>> import tempfile, namoo.numpy as jnp
        >>> file = tempfile.mkdtemp() + "/model.safetensors"
        >>> save_safetensors(file, {"layers": [{"w": jnp.ones(2)}]})
        >>> load_safetensors(file)
        {'layers.0.w': Array([1., 1.], dtype=float32)}
    """
    arrays: dict[str, np.ndarray] = {}
    for keys, leaf in _tree.leaves_with_path(tree):
        where = keystr(keys) or "the root"
        array = leaf._value if isinstance(leaf, EagerArray) else leaf
        if not isinstance(array, (np.ndarray, np.generic)):
            raise TypeError(
                f"the leaf at {where} is of type {type(leaf).__name__}, and a safetensors file "
                "holds arrays only; namoo.checkpoints.save saves other leaves too"
            )
        if array.dtype.newbyteorder("=") not in tensors.NAMES:
            raise TypeError(
                f"the array at {where} has elements of {array.dtype}, which the format does not "
                "have; namoo.checkpoints.save saves them, and random keys"
            )
        name = separator.join(str(key_value(key)) for key in keys)
        if name in arrays or name == "__metadata__":
            raise ValueError(
                f"the name {name!r}, of the array at {where}, is taken; use another separator"
            )
        arrays[name] = np.asarray(array)
    target = Path(os.path.abspath(path))
    files.make_folder(target.parent)
    files.replace_file(target, lambda file: tensors.write_tensors(file, arrays, metadata))


def load_safetensors(
    path: str | os.PathLike[str],
    like: Any = None,
    *,
    separator: str | None = None,
    only: Any = None,
    rename: Rename = None,
    missing: str = "error",
    extra: str = "error",
    cast: bool = False,
) -> Any:
    """Load a safetensors file that any program wrote.

    Args:
        path: a file; or a `….safetensors.index.json`, which names several; or a folder with
            `model.safetensors` or its index, as Hugging Face has them.
        like: a template, as in `load`.
        separator: the text between the keys in a name, usually `"."`; the result is then a tree of
            dicts. Without one, the result is a dict from names to arrays; with a template, the
            separator is `"."`.
        only: a pattern of the leaves to load; no other array is read. Without a template, the
            others are left out.
        rename, missing, extra, cast: as in `load`; they need a template.

    Returns:
        The dict, or the template with its leaves from the file.

    Raises:
        FileNotFoundError: if there is no such file.
        CheckpointError: if a file is damaged or hostile.
        TreeMismatchError: if it does not fit the template.

    Example:
        >>> import tempfile, namoo.numpy as jnp
        >>> file = tempfile.mkdtemp() + "/model.safetensors"
        >>> save_safetensors(file, {"conv1": {"weight": jnp.ones(2), "bias": jnp.zeros(1)}})
        >>> load_safetensors(file, separator=".", only="**/bias")
        {'conv1': {'bias': Array([0.], dtype=float32)}}
    """
    parts = _files_of(Path(os.path.abspath(path)))
    if separator is None and like is not None:
        separator = "."
    stored: dict[str, Tensor] = {}
    source: dict[str, tuple[Path, tensors.Extent]] = {}
    for file in parts:
        with files.opened(file, follow=True) as (opened, size):
            extents, _ = tensors.read_header(opened, size, file)
        for name, extent in extents.items():
            words = name.split(separator) if separator else [name]
            if len(words) > MAX_DEPTH:
                raise CheckpointError(f"{file}: the name {name!r:.80} has {len(words)} keys")
            slashed = path_string(tuple(DictKey(word) for word in words))
            if slashed in stored:
                raise CheckpointError(f"{file} and another file both have the array {name!r:.80}")
            stored[slashed] = Tensor("array", name, extent.dtype, extent.shape, False)
            source[slashed] = file, extent

    def read(names: list[str]) -> dict[str, Any]:
        tensors.check_memory((source[name][1] for name in names), parts[0].parent)
        out: dict[str, Any] = {}
        for part in parts:
            here = [name for name in names if source[name][0] == part]
            if not here:
                continue
            with files.opened(part, follow=True) as (opened, _):
                for name in here:
                    array = tensors.read_tensor(opened, source[name][1], stored[name].name, part)
                    out[name] = stored[name].make(array)
        return out

    if like is not None:
        options: dict[str, Any] = {"missing": missing, "extra": extra, "cast": cast}
        return fit(like, stored, read, str(path), only=only, rename=rename, **options)
    if rename is not None:
        raise ValueError("rename needs a template: load_safetensors(path, like=tree, rename=…)")
    flags = chosen(only, pairs_of(stored))
    values = read([name for name, flag in zip(stored, flags, strict=True) if flag])
    if not separator:
        return {stored[name].name: value for name, value in values.items()}
    try:
        return nest({words_of(name): value for name, value in values.items()})
    except ValueError as error:
        raise CheckpointError(
            f"{path} is not a tree with {separator!r} between keys: {error}. Load it without a "
            "separator."
        ) from None


def _files_of(path: Path) -> list[Path]:
    """Return the files that hold the arrays."""
    if path.is_dir():
        candidates = [path / _INDEX, path / _SINGLE]
        path = next((p for p in candidates if p.exists()), candidates[-1])
    if path.suffix != ".json":
        return [path]
    with files.opened(path, follow=True) as (file, size):
        if size > files.MAX_JSON:
            raise CheckpointError(f"{path} has {size} bytes, above the limit of {files.MAX_JSON}")
        index = files.parse_json(file.read(size), str(path))
    table = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(table, dict) or not table:
        raise CheckpointError(f"{path} has no weight_map: it is not an index of safetensors files")
    names = dict.fromkeys(name if isinstance(name, str) else repr(name) for name in table.values())
    for name in names:
        # A file name, not a path: files outside of the folder do not belong to the model.
        if name != os.path.basename(name) or "\\" in name or not name.endswith(".safetensors"):
            raise CheckpointError(
                f"{path} names a file {name!r:.80}; it may only name safetensors files beside it"
            )
    return [path.parent / name for name in names]
