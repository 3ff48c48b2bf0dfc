"""Files that are there whole or not at all.

What is written is on the disk before its name is: contents, `fsync`, rename, `fsync` of the folder.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def sync_folder(path: Path) -> None:
    """Makes the names in a folder last."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folder(path: Path) -> None:
    """Makes a folder, and those around it, so that they last."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for p in missing:
        sync_folder(p.parent)


def write_synced(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a new file, and waits until it is on the disk."""
    with open(path, "xb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Puts a file in the place of another, at once: a reader sees the old or the new."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        write_synced(temporary, write)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
