"""The program cache: compiled programs by fingerprint, in this process and on disk.

Besides its machine code, a program needs the size of its arena, its constants, and the equations
that Python evaluates. Constants and equations are stored as numbers that refer to the `Fingerprint`
of the program, so an entry on disk is short. A cached program skips all passes.
"""

from __future__ import annotations

import ast
import os
import sys
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from namoo._base.caches import cached, register
from namoo._base.config import OPTIONS, config
from namoo._base.dtypes import narrow
from namoo._base.startup import LOADED_AT
from namoo.core.jaxpr import ClosedJaxpr, JaxprEqn
from namoo.engines import disk_cache
from namoo.engines.native.cache import fingerprint
from namoo.engines.native.link import code as link

FORMAT = 4


class Compiled:
    """A compiled program.

    Attributes:
        code: the code in memory; it may serve several programs.
        arena: bytes of its arena.
        kernels: how many functions it has.
        host: numbers of the equations that Python evaluates.
        around: for each of them None, or the loops around a check; see `Module`.
        loops: numbers of the equations whose loops a signal can stop; None if it has no number.
        consts: numbers of the constants.
        in_place: pairs of an input and a result that may share memory.
    """

    __slots__ = (
        "__weakref__", "arena", "around", "code", "consts", "host", "in_place", "kernels", "loops",
    )  # fmt: skip

    def __init__(
        self,
        code: link.Code,
        arena: int,
        kernels: int,
        host: Sequence[int] = (),
        around: Sequence[list[str] | None] = (),
        loops: Sequence[int | None] = (),
        consts: Sequence[int] = (),
        in_place: Sequence[tuple[int, int]] = (),
    ):
        self.code = code
        self.arena = arena
        self.kernels = kernels
        self.host = host
        self.around = around
        self.loops = loops
        self.consts = consts
        self.in_place = in_place


_alive: weakref.WeakValueDictionary[str, Compiled] = register(
    "native programs: compiled code",
    weakref.WeakValueDictionary(),
    bound="compiled programs that are in use",
    keyed_by="fingerprint of the program",
    kept=True,
)
"""Programs in use."""


def identify(closed: ClosedJaxpr, options: Mapping[str, Any]) -> fingerprint.Fingerprint | None:
    """The fingerprint of a program; None if it is not cacheable, or the cache is off."""
    # A strict program holds lines of the user's files.
    if options.get("strict") or disk_cache.off() or _sources() is None:
        return None
    try:
        return fingerprint.Fingerprint(closed, options)
    except fingerprint.Unknown:
        return None


def find(mark: fingerprint.Fingerprint) -> Compiled | None:
    """The compiled program with this fingerprint, if there is one."""
    name = _name(mark)
    known = _alive.get(name)
    if known is not None:
        return known
    entry = disk_cache.load(name)
    if entry is None:
        return None
    words = ast.literal_eval(entry.decode())
    code = words.pop("code")
    data = disk_cache.load(code)
    if data is None:
        return None
    return _alive.setdefault(name, Compiled(link.Code(link.ObjectCode(code, data)), **words))


def keep(
    mark: fingerprint.Fingerprint,
    compiled: Compiled,
    equations: Sequence[JaxprEqn],
    loops: Sequence[JaxprEqn | None],
    consts: Sequence[np.ndarray],
) -> None:
    """Cache a program, unless it refers to anything that is not part of its fingerprint."""
    named = (*equations, *consts)
    held = (mark.equations, mark.arrays) if named or loops else ()
    numbers = {id(x): i for things in held for i, x in enumerate(things)}
    if not all(id(x) in numbers for x in named):
        return
    compiled.host = [numbers[id(eqn)] for eqn in equations]
    compiled.loops = [numbers.get(id(eqn)) for eqn in loops]
    compiled.consts = [numbers[id(array)] for array in consts]
    name = _name(mark)
    _alive[name] = compiled
    keys = ("arena", "kernels", "host", "around", "loops", "consts", "in_place")
    words = {key: getattr(compiled, key) for key in keys}
    disk_cache.save(name, repr({"code": compiled.code.name, **words}).encode())


def _name(mark: fingerprint.Fingerprint) -> str:
    settings = repr([(o.name, getattr(config, o.name)) for o in OPTIONS if o.traced])
    return disk_cache.key(f"program {FORMAT}", mark.digest, settings, *_surroundings())


@cached("native programs: versions", bound=1, keyed_by="nothing", kept=True)
def _surroundings() -> tuple[str, ...]:
    """The rest of the key: this package, the libraries that compute constants, the machine."""
    versions = sys.version, np.__version__, narrow.VERSION
    return (*versions, _sources() or "", *link.surroundings())


@cached("native programs: source files", bound=1, keyed_by="nothing", kept=True)
def _sources() -> str | None:
    """Sizes and modification times of the source files that determine the code.

    None if there are no files, or if they have changed since they were loaded.
    """
    root = os.path.abspath(__file__)
    for _ in range(4):
        root = os.path.dirname(root)
    found: list[str] = []
    newest = 0

    def look(folder: str) -> None:
        nonlocal newest
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    info = entry.stat()
                    newest = max(newest, info.st_mtime_ns)
                    found.append(f"{entry.path} {info.st_size} {info.st_mtime_ns}")
                elif entry.is_dir() and entry.name != "__pycache__":
                    look(entry.path)

    try:
        for room in fingerprint.ROOMS:
            look(os.path.join(root, room))
    except OSError:
        return None
    return "\n".join(sorted(found)) if newest < LOADED_AT else None
