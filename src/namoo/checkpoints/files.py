"""Lock folders, and open files without trusting them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from namoo._base.atomic_files import make_folder as make_folder
from namoo._base.atomic_files import replace_file as replace_file
from namoo._base.atomic_files import sync_folder as sync_folder
from namoo._base.atomic_files import write_synced as write_synced
from namoo.checkpoints.errors import CheckpointError

try:
    import fcntl
except ImportError:  # Windows has no such locks; only one process may write there.
    fcntl = None

# The limit of the reference implementation of safetensors: no real header is that large.
MAX_JSON = 100_000_000
# An empty list takes two bytes of JSON but seventy of memory.
MAX_PARTS = 8_000_000


@contextlib.contextmanager
def locked(folder: Path, exclusive: bool) -> Iterator[None]:
    """Lock a folder for one writer or any number of readers.

    The lock is released when its process ends, however it ends.
    """
    if fcntl is None:
        yield
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        except OSError as error:
            # Some network file systems have no locks; a single writer is safe without one.
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EBADF):
                raise
            yield
            return
        try:
            yield
        finally:
            # Closing is not enough: a process forked in the meantime would keep the lock.
            fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


@contextlib.contextmanager
def opened(path: Path, follow: bool = False) -> Iterator[tuple[BinaryIO, int]]:
    """Open a regular file for reading.

    Args:
        path: the file.
        follow: whether it may be a symbolic link.

    Yields:
        The file and its size.

    Raises:
        FileNotFoundError: if there is none.
        CheckpointError: if it is a link, a folder, a pipe or a device.
    """
    # Without O_NONBLOCK, opening a pipe would wait for a writer; regular files ignore the flag.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        fd = os.open(path, flags if follow else flags | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise CheckpointError(
                f"{path} is a symbolic link, which a checkpoint may not hold: it could name any "
                "file of the machine. Replace the link by a copy of the file."
            ) from None
        raise
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise CheckpointError(f"{path} is not a regular file")
    with open(fd, "rb") as file:
        yield file, status.st_size


def parse_json(data: bytes, where: str) -> Any:
    """Parse JSON defensively: no repeated names, no deep nesting, a limited number of parts."""
    if sum(map(data.count, (b"[", b"{", b","))) > MAX_PARTS:
        raise CheckpointError(f"{where} has more than {MAX_PARTS} parts: it cannot describe a tree")
    try:
        return json.loads(data, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except RecursionError:
        raise CheckpointError(f"{where} is nested too deeply to be read") from None
    except (ValueError, MemoryError) as error:
        raise CheckpointError(f"{where} cannot be read as JSON: {error}") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {repeated!r} occurs twice")
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
