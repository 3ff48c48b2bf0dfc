"""`save` and `load`: store a tree as a folder of safetensors files and one JSON file.

    model/tree.json                            the structure, numbers and text, checksums
    model/data-8f3a62c1-00000.safetensors      the arrays, named by their paths

The arrays are written first, under names that nothing refers to yet. Then `tree.json` is replaced
atomically. Whenever the process is killed, the folder is either the old checkpoint or the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from namoo import tree as _tree
from namoo._base.short import short
from namoo.checkpoints import files, multiprocess, tensors
from namoo.checkpoints.errors import CheckpointError
from namoo.checkpoints.leaves import (
    Missing,
    Parts,
    Tensor,
    name_of,
    read_leaf,
    spec_of,
    write_leaf,
)
from namoo.checkpoints.structure import read_structure, write_structure
from namoo.checkpoints.template import Rename, chosen, fit, pairs_of
from namoo.engines.registry import processes
from namoo.tree.keys import keystr

MANIFEST = "tree.json"
FORMAT = "namoo.checkpoint"
VERSION = 1
_DATA_FILE = re.compile(r"data-[0-9a-f]{8}-(?:[0-9]{4})?[0-9]{5}\.safetensors")
_LEFT_OVER = re.compile(rf"({_DATA_FILE.pattern}|{re.escape(MANIFEST)}\.[0-9a-f]{{8}}\.tmp)")
_SHARD = 4 * 2**30


class Saving:
    """A save that runs in the background."""

    def __init__(self, path: Path, work: Callable[[], None]):
        self.path = path
        self._error: BaseException | None = None
        # Not a daemon thread: a program that exits waits for its saves.
        self._thread = threading.Thread(target=self._run, args=(work,), name=f"save {path.name}")
        if sys.platform == "emscripten":
            self._run(work)  # browsers have no threads
        else:
            self._thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # `wait` raises it again
            self._error = error

    @property
    def done(self) -> bool:
        """Whether the save has ended, successfully or not."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the checkpoint is on disk.

        Raises:
            Exception: what went wrong in the background; once.
        """
        if self._thread.ident is not None:
            self._thread.join()
        _pending.pop(self.path, None)
        error, self._error = self._error, None
        if error is not None:
            error.add_note(f"while {self.path} was saved in the background")
            raise error


_pending: dict[Path, Saving] = {}


def _finish_earlier_save(path: Path) -> None:
    """Wait for an earlier save to the same folder, and raise its error if it failed."""
    earlier = _pending.get(path)
    if earlier is not None:
        earlier.wait()


def save(
    path: str | os.PathLike[str],
    tree: Any,
    *,
    metadata: Mapping[str, Any] | None = None,
    background: bool = False,
    max_file_bytes: int = _SHARD,
) -> Saving | None:
    """Save a tree atomically.

    An existing checkpoint is replaced. Until the new one is complete and on disk, the old one stays
    valid, even if the process is killed or the machine stops.

    Args:
        path: a folder to make or to replace.
        tree: any tree. Its leaves are arrays of namoo and NumPy, random keys, numbers, strings and
            bytes. The only functions that are saved, by name, are the activations of `namoo.nn`;
            `load` takes others from a template.
        metadata: what JSON can hold, to be found by `info`.
        background: copy the arrays and return; a thread does the rest.
        max_file_bytes: start another file when the arrays of one would exceed this.

    Returns:
        None, or with `background` a `Saving`, whose `wait()` returns when all is on the disk. An
        error in the background is raised by `wait()`, or by the next `save` or `load` of this path.

    Raises:
        TypeError: if a leaf cannot be saved; it names its path.

    Example:
        >>> import tempfile, namoo.numpy as jnp
        >>> folder = tempfile.mkdtemp()
        >>> save(f"{folder}/model", {"w": jnp.arange(3.0), "step": 7})
        >>> load(f"{folder}/model")
        {'step': 7, 'w': Array([0., 1., 2.], dtype=float32)}
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"the path of a checkpoint is {short(path)}. Write save(path, tree).")
    folder = Path(os.path.abspath(path))
    _finish_earlier_save(folder)
    manifest, arrays = _describe(tree, metadata, copy=background)
    write = _write if processes()[1] == 1 else _write_together
    if not background:
        write(folder, manifest, arrays, max_file_bytes)
        return None
    saving = Saving(folder, lambda: write(folder, manifest, arrays, max_file_bytes))
    _pending[folder] = saving
    return saving


def _describe(
    tree: Any, metadata: Mapping[str, Any] | None, copy: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the content of `tree.json`, and the arrays by name."""
    pairs, treedef = _tree.flatten_with_path(tree)
    arrays: dict[str, np.ndarray] = {}
    leaves: dict[str, Any] = {}
    # An array that occurs twice is written once, and is one array again when loaded.
    name_of_object: dict[int, str] = {}
    for path, leaf in pairs:
        name = name_of(path)
        if name in leaves:
            raise ValueError(
                f"two leaves have the path {name!r}, one of them {keystr(path)}: the keys of a "
                "mapping must differ as text"
            )

        def add(leaf: Any, array: np.ndarray, name: str = name, suffix: str = "") -> str:
            known = name_of_object.get(id(leaf))
            if known is not None and not suffix:
                return known
            # The format reserves this name; no other path starts with such a backslash.
            free = (name if name != "__metadata__" else "\\__metadata__") + suffix
            if not suffix:
                name_of_object[id(leaf)] = free
            arrays[free] = array.copy() if copy else array
            return free

        leaves[name] = write_leaf(path, leaf, add)
    manifest = {
        "structure": write_structure(treedef),
        "leaves": [[name, leaf] for name, leaf in leaves.items()],
        "metadata": dict(metadata or {}),
    }
    json.dumps(manifest["metadata"], allow_nan=False)  # raise here rather than in the thread
    return manifest, arrays


def _write(
    folder: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray], limit: int
) -> None:
    files.make_folder(folder)
    with files.locked(folder, exclusive=True):
        _clean(folder)
        files_written = _write_arrays(folder, secrets.token_hex(4), 0, arrays, limit)
        _write_manifest(folder, {**manifest, **files_written})
        _clean(folder)


def _write_together(
    folder: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray], limit: int
) -> None:
    """Write the part of one of several processes; return when the checkpoint is complete."""
    from namoo.distributed import barrier

    number, count = processes()
    files.make_folder(folder)
    with files.locked(folder, exclusive=True) if number == 0 else contextlib.nullcontext():
        token = multiprocess.next_token(folder, _digest)
        barrier(f"save {token}: old files are removed")
        if number == 0:
            _clean(folder)
            multiprocess.remove_parts(folder)
        else:
            arrays = multiprocess.own_arrays(manifest["leaves"], arrays)
        barrier(f"save {token}: writing")
        files_written = _write_arrays(folder, token, number, arrays, limit)
        multiprocess.write_part(folder, token, number, {**manifest, **files_written})
        barrier(f"save {token}: written")
        if number == 0:
            _write_manifest(folder, multiprocess.joined(folder, token, count))
            _clean(folder)
            multiprocess.remove_parts(folder)
        barrier(f"save {token}: whole")


def _write_arrays(
    folder: Path, token: str, process: int, arrays: dict[str, np.ndarray], limit: int
) -> dict[str, Any]:
    """Write arrays to files, and return which array is in which file."""
    listed, sums = {}, {}
    for i, names in enumerate(_shards(arrays, limit)):
        part = {name: arrays[name] for name in names}
        own = f"{process:04d}" if process else ""
        file = f"data-{token}-{own}{i:05d}.safetensors"
        files.write_synced(folder / file, lambda f, part=part: tensors.write_tensors(f, part))
        listed[file] = names
        sums.update({name: tensors.digest(array) for name, array in part.items()})
    files.sync_folder(folder)
    return {"files": listed, "sha256": sums}


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    body = {"format": FORMAT, "version": VERSION, **manifest}
    text = _canonical({"checkpoint": body, "sha256": _digest(body)})
    if len(text) > files.MAX_JSON:
        raise ValueError(
            f"the description of the tree has {len(text)} bytes, above the limit of "
            f"{files.MAX_JSON}: put long text and many numbers into arrays"
        )
    files.replace_file(folder / MANIFEST, lambda f: f.write(text))


def _shards(arrays: dict[str, np.ndarray], limit: int) -> list[list[str]]:
    shards: list[list[str]] = []
    room = 0
    for name, array in arrays.items():
        if not shards or array.nbytes > room:
            shards.append([])
            room = limit
        shards[-1].append(name)
        room -= array.nbytes
    return shards


def _canonical(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()


def _digest(value: Any) -> str:
    return hashlib.sha256(_canonical(value)).hexdigest()


def _clean(folder: Path) -> None:
    """Remove the remains of a save that was killed; the caller holds the lock."""
    kept: set[str] = set()
    with contextlib.suppress(FileNotFoundError):
        # An unreadable manifest may still be repaired, so its files are kept.
        try:
            kept = set(read_manifest(folder)["files"])
        except CheckpointError:
            return
    for name in os.listdir(folder):
        if _LEFT_OVER.fullmatch(name) and name not in kept:
            os.unlink(folder / name)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check `tree.json`."""
    path = folder / MANIFEST
    with files.opened(path) as (file, size):
        if size > files.MAX_JSON:
            raise CheckpointError(f"{path} has {size} bytes, above the limit of {files.MAX_JSON}")
        outer = files.parse_json(file.read(size), str(path))
    body = outer.get("checkpoint") if isinstance(outer, dict) else None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not the description of a namoo checkpoint")
    if body.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has version {body.get('version')!r:.40}; this namoo reads {VERSION}"
        )
    try:
        is_whole = outer.get("sha256") == _digest(body)
    except (RecursionError, ValueError):
        is_whole = False
    if not is_whole:
        raise CheckpointError(f"{path} is damaged: its checksum does not match its contents")
    kinds = {"structure": list, "leaves": list, "metadata": dict, "files": dict, "sha256": dict}
    for key, kind in kinds.items():
        if not isinstance(body.get(key), kind):
            raise CheckpointError(f"{path} has no {key}")
    leaves = body["leaves"]
    if not all(isinstance(x, list) and len(x) == 2 and isinstance(x[0], str) for x in leaves):
        raise CheckpointError(f"{path} has leaves without a path")
    body["leaves"] = {name: read_leaf(entry) for name, entry in leaves}
    if len(body["leaves"]) != len(leaves):
        raise CheckpointError(f"{path} has two leaves with the same path")
    for name, names in body["files"].items():
        if not _DATA_FILE.fullmatch(name):
            raise CheckpointError(f"{path} names a file that no checkpoint can have: {name!r:.80}")
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise CheckpointError(f"{path} does not say which arrays are in {name}")
    return body


class Opened:
    """A checkpoint that is being read: its leaves by path; arrays are read on demand."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.body = read_manifest(folder)
        self.leaves: dict[str, Any] = self.body["leaves"]
        self._file_of = {n: file for file, names in self.body["files"].items() for n in names}

    def read(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the leaves with the given paths; each array is read and checked once."""
        leaves = {name: self.leaves[name] for name in names}
        wanted: dict[str, set[Tensor]] = {}
        for leaf in leaves.values():
            for tensor in _tensors(leaf):
                file = self._file_of.get(tensor.name)
                if file is None:
                    raise CheckpointError(
                        f"{self.folder}: no file has the array {tensor.name!r:.80}"
                    )
                wanted.setdefault(file, set()).add(tensor)
        extents = {file: self._extents(file, found) for file, found in wanted.items()}
        tensors.check_memory((p for table in extents.values() for p in table.values()), self.folder)
        made: dict[Any, Any] = {}
        for file, table in extents.items():
            made.update(self._arrays(file, table))
        return {
            n: made[x] if isinstance(x, Tensor) else x.make(made) if isinstance(x, Parts) else x
            for n, x in leaves.items()
        }

    def _extents(self, name: str, leaves: set[Tensor]) -> dict[Tensor, tensors.Extent]:
        """Return where arrays are in a file, after checking them against the manifest."""
        path = self.folder / name
        try:
            with files.opened(path) as (file, size):
                header, _ = tensors.read_header(file, size, path)
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing: the checkpoint is not complete") from None
        out = {}
        for leaf in leaves:
            extent = header.get(leaf.name)
            if extent is None or (extent.dtype, extent.shape) != leaf.stored:
                raise CheckpointError(
                    f"{path} should have {leaf.name!r:.80} as {leaf.spec}, but has "
                    f"{extent and (extent.dtype, extent.shape)}"
                )
            out[leaf] = extent
        return out

    def _arrays(self, name: str, extents: dict[Tensor, tensors.Extent]) -> dict[Tensor, Any]:
        path, out = self.folder / name, {}
        with files.opened(path) as (file, _):
            for leaf, extent in extents.items():
                array = tensors.read_tensor(file, extent, leaf.name, path)
                if tensors.digest(array) != self.body["sha256"].get(leaf.name):
                    raise CheckpointError(
                        f"{path} is damaged: the checksum of {leaf.name!r:.80} does not match its "
                        "bytes"
                    )
                out[leaf] = leaf.make(array)
        return out


def _tensors(leaf: Any) -> list[Tensor]:
    """Return the stored arrays that make up a leaf."""
    if isinstance(leaf, Parts):
        return [tensor for _, tensor in leaf.parts]
    return [leaf] if isinstance(leaf, Tensor) else []


def _open(path: str | os.PathLike[str]) -> Path:
    folder = Path(os.path.abspath(path))
    _finish_earlier_save(folder)
    if not folder.is_dir() or not os.path.lexists(folder / MANIFEST):
        raise FileNotFoundError(
            f"there is no checkpoint at {folder}"
            + (f": the folder has no {MANIFEST}" if folder.is_dir() else "")
            + ". Files of other programs are read by load_safetensors."
        )
    return folder


def load(
    path: str | os.PathLike[str],
    like: Any = None,
    *,
    only: Any = None,
    rename: Rename = None,
    missing: str = "error",
    extra: str = "error",
    cast: bool = False,
    types: Iterable[type] = (),
) -> Any:
    """Load a tree that `save` wrote.

    Without a template, the tree is restored as it was: containers, named tuples, dataclasses and
    modules of imported classes, random keys, weak types. With a template, each of its leaves is
    replaced by the leaf with the same path; static fields, functions and container types are the
    template's. The leaves of a template may be shapes (`namoo.eval_shape`).

    Args:
        path: the folder.
        like: a template.
        only: a pattern, or a `namoo.paths`, of the leaves to load; no other array is read. The
            others keep the template's values; without a template they are None.
        rename: from paths in the file to paths in the template, of leaves or whole subtrees; or a
            function of a path.
        missing: 'error', or 'keep' the template's leaves that the file does not have.
        extra: 'error', or 'ignore' leaves that the template does not have.
        cast: convert arrays to the types of the template.
        types: classes to rebuild nodes of, in addition to those of imported modules.

    Returns:
        The tree.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        CheckpointError: if it is damaged, or needs a template.
        TreeMismatchError: if it does not fit the template. Its `differences` lists where.

    Example:
        >>> import tempfile, namoo.numpy as jnp
        >>> folder = tempfile.mkdtemp()
        >>> save(folder, {"encoder": {"w": jnp.ones(2)}, "head": {"w": jnp.zeros(2)}})
        >>> load(folder, only="head/**")
        {'encoder': {'w': None}, 'head': {'w': Array([0., 0.], dtype=float32)}}
        >>> like = {"enc": {"w": jnp.zeros(2)}}
        >>> load(folder, like=like, rename={"encoder": "enc"}, extra="ignore")
        {'enc': {'w': Array([1., 1.], dtype=float32)}}
        >>> load(folder, like={"encodr": {"w": jnp.zeros(2)}, "head": {"w": jnp.zeros(3)}})
        Traceback (most recent call last):
          ...
        namoo.tree.TreeMismatchError: the tree in ... does not fit the template; ...
          at the root: missing key 'encodr'; unexpected key 'encoder' (did you mean 'encodr'?)
          at ['head']['w']: expected float32[3], found float32[2]
    """
    folder = _open(path)
    with files.locked(folder, exclusive=False):
        checkpoint = Opened(folder)
        if like is not None:
            return fit(
                like,
                checkpoint.leaves,
                checkpoint.read,
                str(folder),
                only=only,
                rename=rename,
                missing=missing,
                extra=extra,
                cast=cast,
            )
        if rename is not None:
            raise ValueError("rename needs a template: load(path, like=tree, rename=…)")
        treedef = read_structure(checkpoint.body["structure"], types)
        if treedef.num_leaves != len(checkpoint.leaves):
            raise CheckpointError(f"{folder / MANIFEST} has other leaves than its structure")
        flags = chosen(only, pairs_of(checkpoint.leaves))
        kept = [name for name, flag in zip(checkpoint.leaves, flags, strict=True) if flag]
        for name in kept:
            leaf = checkpoint.leaves[name]
            if isinstance(leaf, Missing):
                raise CheckpointError(
                    f"the leaf {name!r} of {folder} is a {leaf.what}, and functions are not saved: "
                    "load it into a template, load(path, like=tree)"
                )
        values = checkpoint.read(kept)
    try:
        return treedef.unflatten([values.get(name) for name in checkpoint.leaves])
    except Exception as error:
        raise CheckpointError(f"the tree in {folder} cannot be rebuilt: {error}") from error


class Info(NamedTuple):
    """What a checkpoint contains.

    Attributes:
        leaves: by path, the shape and type of each array, and the value of each other leaf.
        metadata: what was given to `save`.
    """

    leaves: dict[str, Any]
    metadata: dict[str, Any]


def info(path: str | os.PathLike[str]) -> Info:
    """Describe what a checkpoint contains, without reading its arrays.

    Args:
        path: the folder.

    Returns:
        The leaves by path, and the metadata.

    Raises:
        FileNotFoundError: if there is no checkpoint.
        CheckpointError: if its description is damaged.

    Example:
        >>> import tempfile, namoo.numpy as jnp
        >>> folder = tempfile.mkdtemp()
        >>> save(folder, {"w": jnp.ones((2, 3)), "step": 7}, metadata={"loss": 0.5})
        >>> info(folder)
        Info(leaves={'step': 7, 'w': ShapeDtypeStruct(shape=(2, 3), dtype=float32)},
             metadata={'loss': 0.5})
    """
    folder = _open(path)
    with files.locked(folder, exclusive=False):
        body = read_manifest(folder)
    return Info({name: spec_of(x) for name, x in body["leaves"].items()}, body["metadata"])
