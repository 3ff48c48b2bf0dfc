"""Atomic writes: a file exists completely or not at all.

The content reaches the disk before the name: write, `fsync`, rename, `fsync` of the directory.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def sync_folder(path: Path) -> None:
    """Flush a directory's entries to the disk."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folder(path: Path) -> None:
    """Make a directory and its parents, and flush them to the disk."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for p in missing:
        sync_folder(p.parent)


def write_synced(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a new file, and wait until it is on the disk."""
    with open(path, "xb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Replace a file atomically: a reader sees the old one or the new one."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        write_synced(temporary, write)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
