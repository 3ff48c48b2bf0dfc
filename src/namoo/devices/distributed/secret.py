"""The secret that the processes of a job share, by which they recognise one another.

It comes from the environment, from a file named there, or from a file in the user's home directory
that is created when it is first needed.  It never appears in a command line, which every user of a
machine can read.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "NAMOO_COORDINATOR_SECRET"
FILE_VARIABLE = "NAMOO_COORDINATOR_SECRET_FILE"

_SHORTEST, _LONGEST = 16, 4096


def new_secret() -> str:
    """Return a new random secret.

    Example:
        >>> len(new_secret())
        64
    """
    return secrets.token_hex(32)


def given(env: Mapping[str, str]) -> bool:
    """Whether the environment names a secret."""
    return bool(env.get(VARIABLE) or env.get(FILE_VARIABLE))


def find_secret(env: Mapping[str, str]) -> bytes:
    """Return the secret of this job.

    Raises:
        ValueError: the secret is shorter than 16 characters.
        PermissionError: its file belongs to another user, or others may read it.
        RuntimeError: there is no secret, and no file can be made for one.
    """
    if text := env.get(VARIABLE):
        return _checked(text.encode(), VARIABLE)
    if path := env.get(FILE_VARIABLE):
        return _read(Path(path).expanduser())
    home = env.get("XDG_STATE_HOME") or Path("~", ".local", "state").expanduser()
    path = Path(home, "namoo", "coordinator.secret")
    try:
        if not path.exists():
            _create(path)
        return _read(path)
    except PermissionError as error:
        if error.errno is None:
            raise
        raise _unavailable(path, error) from error
    except OSError as error:
        raise _unavailable(path, error) from error


def _unavailable(path: Path, error: OSError) -> RuntimeError:
    return RuntimeError(
        f"distributed.initialize: the processes of a job need a secret that they share, and "
        f"{path} cannot be used for it ({error.strerror}). Set {VARIABLE} to the same random "
        f"text in all of them, or {FILE_VARIABLE} to the path of a file that only you can read."
    )


def _checked(secret: bytes, source: str | Path) -> bytes:
    if not _SHORTEST <= len(secret) <= _LONGEST:
        raise ValueError(
            f"distributed.initialize: the secret in {source} has {len(secret)} characters; it "
            f"needs {_SHORTEST} to {_LONGEST} that cannot be guessed, as `openssl rand -hex 32` "
            "makes them."
        )
    return secret


def _read(path: Path) -> bytes:
    # A FIFO must not block here.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(handle)
        if os.name == "posix":
            private = info.st_uid in (os.geteuid(), 0) and not info.st_mode & 0o077
            if not private or not stat.S_ISREG(info.st_mode):
                raise PermissionError(
                    f"distributed.initialize: the secret in {path} is not yours alone. Make it a "
                    f"file that belongs to you and that nobody else can read: `chmod 600 {path}`."
                )
        return _checked(file.read(_LONGEST + 1).strip(), path)


def _create(path: Path) -> None:
    """Create the file, complete at once: several processes may try at the same time."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(new_secret() + "\n")
        os.link(temporary, path)
    except FileExistsError:
        pass  # Another process was first; its secret is used.
    finally:
        temporary.unlink()
