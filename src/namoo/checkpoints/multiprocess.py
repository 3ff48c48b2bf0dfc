"""Checkpoints of several processes: each writes the shards on its devices.

All processes call `save` with the same path, in a shared file system. Process 0 removes remains of
earlier saves. Then each process writes its arrays, and lists them in a file of its own. Finally
process 0 merges these lists into `tree.json`, which completes the checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from namoo.checkpoints import files
from namoo.checkpoints.errors import CheckpointError

PART_FILE = re.compile(r"part-[0-9a-f]{8}-[0-9]{5}\.json")

_count = 0


def next_token(folder: Path, digest: Callable[[Any], str]) -> str:
    """Return a token that all processes agree on and that no checkpoint in the folder has."""
    global _count
    _count += 1
    known = b""
    with contextlib.suppress(FileNotFoundError):
        known = (folder / "tree.json").read_bytes()
    return digest([_count, len(known), known[-128:].decode("ascii", "replace")])[:8]


def own_arrays(leaves: list[Any], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays that a process other than the first writes: shards only it has."""
    names = {entry[1] for _, leaf in leaves if leaf[0] == "parts" for _, entry in leaf[2]}
    return {name: array for name, array in arrays.items() if name in names}


def write_part(folder: Path, token: str, process: int, part: dict[str, Any]) -> None:
    """Write the list of what a process wrote."""
    text = json.dumps(part, separators=(",", ":"), allow_nan=False).encode()
    files.replace_file(folder / f"part-{token}-{process:05d}.json", lambda f: f.write(text))


def joined(folder: Path, token: str, count: int) -> dict[str, Any]:
    """Merge the lists of all processes."""
    parts = []
    for process in range(count):
        path = folder / f"part-{token}-{process:05d}.json"
        with files.opened(path) as (file, size):
            parts.append(files.parse_json(file.read(size), str(path)))
    first, *rest = parts
    own = dict(first["leaves"])
    for part in rest:
        for name, leaf in part["leaves"]:
            if leaf[0] == "parts":
                own[name][2].extend(leaf[2])
        first["files"].update(part["files"])
        first["sha256"].update(part["sha256"])
    for name, leaf in own.items():
        if leaf[0] == "parts":
            _require_whole(name, leaf)
    return first


def _require_whole(name: str, leaf: list[Any]) -> None:
    found = sum(int(np.prod(entry[3])) for _, entry in leaf[2])
    if found != int(np.prod(leaf[1])):
        raise CheckpointError(
            f"together, the processes have {found} of the {int(np.prod(leaf[1]))} elements of "
            f"{name!r} in their trees: they saved different ones"
        )


def remove_parts(folder: Path) -> None:
    """Remove the lists once they are merged or no longer needed."""
    for name in os.listdir(folder):
        if PART_FILE.fullmatch(name):
            os.unlink(folder / name)
