"""Machine code on disk, so that a program is not compiled again in every process.

The name of an entry is the hash of everything that decides its content: the text of a program, the
processor, the compiler and its version. An entry contains the hash of its content. Any anomaly in
an entry or its directory is treated as a cache miss.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable
from string import hexdigits
from typing import Any

from namoo._base.config import config


def _quick_sha256() -> Callable[..., Any]:
    """SHA-256 without `hashlib`, which loads OpenSSL."""
    with contextlib.suppress(ImportError):
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256
    from hashlib import sha256

    return sha256


_sha256 = _quick_sha256()

MAGIC = b"namoo cache 1\n"
LIMIT = 512 * 1024 * 1024
_UNFINISHED = ".new-"


_ODD_FILES = ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
"""Flags for opening a file that may be a pipe or a link, on systems that have them."""


def off() -> bool:
    """Whether the cache is switched off."""
    if not config.enable_compilation_cache:
        return True
    return os.environ.get("NAMOO_CACHE", "").lower() in ("off", "0", "no", "false")


def sha256(data: Any = b"") -> Any:
    """Return the SHA-256 hash as hexadecimal digits."""
    if memoryview(data).nbytes < 1 << 20:
        return _sha256(data)
    # `hashlib` takes time to load, and is faster after that.
    import hashlib

    return hashlib.sha256(data)


def folder() -> str | None:
    """Return the directory of entries; None if the cache is off, or others can write to it."""
    if off():
        return None
    if config.compilation_cache_dir:
        # JAX may keep its own files in that folder.
        path = os.path.join(config.compilation_cache_dir, "namoo")
    elif chosen := os.environ.get("NAMOO_CACHE_DIR"):
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
    """Whether no other user could have written it."""
    if not hasattr(os, "geteuid"):
        return True
    return info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def key(*parts: str) -> str:
    """Return the name of an entry."""
    digest = _sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def load(name: str) -> bytes | None:
    """Return the content of an entry if it exists and is intact."""
    path = folder()
    if path is None:
        return None
    try:
        # Do not wait for a pipe or a device of that name, and do not follow a link.
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
    """Write an entry atomically; a full disk is not an error."""
    path = folder()
    if path is None:
        return
    import tempfile

    digest = sha256(name.encode() + content).digest()
    try:
        handle, temporary = tempfile.mkstemp(dir=path, prefix=_UNFINISHED)
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
    """Evict the least recently used entries until the rest fits.

    Other files in the directory are left alone.
    """
    entries = []
    with contextlib.suppress(OSError), os.scandir(path) as found:
        for entry in found:
            unfinished = entry.name.startswith(_UNFINISHED)
            if not unfinished and (len(entry.name) != 64 or set(entry.name) - set(hexdigits)):
                continue
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
