"""Machine code on disk, so that a program is compiled once and not once a process.

An entry's name is the hash of all that decides its content: the text of a program, the processor,
the compiler and its version; each engine names its own.  An entry carries the hash of its content.
Whatever is odd about an entry, or about the folder, means that it is not there.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable
from typing import Any


def _quick_sha256() -> Callable[..., Any]:
    """SHA-256 without `hashlib`, which loads OpenSSL; Python's own `random` does without it too."""
    with contextlib.suppress(ImportError):
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    from hashlib import sha256

    return sha256


_sha256 = _quick_sha256()

MAGIC = b"namoo cache 1\n"
LIMIT = 512 * 1024 * 1024


_ODD_FILES = ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
"""Flags for opening what may be anything, on systems that have them."""


def off() -> bool:
    """Whether nothing is to be kept."""
    return os.environ.get("NAMOO_CACHE", "").lower() in ("off", "0", "no", "false")


def sha256(data: Any = b"") -> Any:
    """A hash, as `hashlib.sha256` gives it."""
    if memoryview(data).nbytes < 1 << 20:
        return _sha256(data)
    # It takes time to load, and is quicker after that.
    import hashlib

    return hashlib.sha256(data)


def folder() -> str | None:
    """Where entries lie; None if they are not wanted, or the folder is not ours alone."""
    if off():
        return None
    chosen = os.environ.get("NAMOO_CACHE_DIR")
    if chosen:
        path = chosen
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
        path = os.path.join(base, "namoo")
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        return path if _private(os.stat(path)) else None
    except OSError:
        return None


def _private(info: os.stat_result) -> bool:
    """Whether nobody else could have written it."""
    if not hasattr(os, "geteuid"):
        return True
    return info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def key(*parts: str) -> str:
    """The name of an entry."""
    digest = _sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """An entry's content, if it is there and as it was written."""
    path = folder()
    if path is None:
        return None
    try:
        # A pipe, a device or a link by that name is neither waited for nor followed.
        flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in _ODD_FILES)
        with open(
            os.path.join(path, name), "rb", opener=lambda file, _: os.open(file, flags)
        ) as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or not _private(info) or info.st_size > LIMIT:
                return None
            data = file.read()
    except OSError:
        return None
    head = len(MAGIC) + 32
    if data[: len(MAGIC)] != MAGIC or len(data) < head:
        return None
    content = data[head:]
    if sha256(name.encode() + content).digest() != data[len(MAGIC) : head]:
        return None
    with contextlib.suppress(OSError):
        os.utime(os.path.join(path, name))
    return content


def save(name: str, content: bytes) -> None:
    """Write an entry whole or not at all; a full disk is no reason to fail."""
    path = folder()
    if path is None:
        return
    import tempfile

    digest = sha256(name.encode() + content).digest()
    try:
        handle, temporary = tempfile.mkstemp(dir=path, prefix=".new-")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(MAGIC + digest + content)
        os.replace(temporary, os.path.join(path, name))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return
    if int(name[:2], 16) < 8:  # about one time in thirty
        prune(path)


def prune(path: str, limit: int = LIMIT) -> None:
    """Remove the entries that were used the longest ago, until the rest fits."""
    entries = []
    with contextlib.suppress(OSError), os.scandir(path) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                info = entry.stat(follow_symlinks=False)
                entries.append((info.st_mtime, info.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    for _, size, name in sorted(entries):
        if total <= limit:
            return
        with contextlib.suppress(OSError):
            os.unlink(name)
        total -= size
