"""Loads machine code from an object file, without LLVM.

Loading LLVM takes longer than everything else that a process does to run a program from the disk
cache.  Little of it is needed to load finished code: lay out the sections, and apply relocations.
This module does that for the object files that the native engine writes on x86-64: ELF, with
absolute 64-bit relocations.  Anything else is `Unsupported`, and left to LLVM's own linker.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Mapping

import numpy as np

_HEADER = np.dtype(
    [
        ("magic", "S4"), ("bits", "u1"), ("order", "u1"), ("rest", "u1", 10), ("kind", "<u2"),
        ("machine", "<u2"), ("version", "<u4"), ("entry", "<u8"), ("programs", "<u8"),
        ("sections", "<u8"), ("flags", "<u4"), ("size", "<u2"), ("program_size", "<u2"),
        ("program_count", "<u2"), ("section_size", "<u2"), ("section_count", "<u2"),
        ("names", "<u2"),
    ]
)  # fmt: skip
_SECTION = np.dtype(
    [
        ("name", "<u4"), ("kind", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"),
        ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8"),
    ]
)  # fmt: skip
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
     ("size", "<u8")]
)  # fmt: skip
_RELOCATION = np.dtype(
    [("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
)  # fmt: skip

_RELOCATABLE, _X86_64 = 1, 62  # kinds of files and of processors
_SYMBOLS, _ADDENDS, _ZEROS, _REL, _UNWINDING = 2, 4, 8, 9, 0x70000001  # kinds of sections
_WRITTEN, _LOADED = 1, 2  # flags of sections
_ADDRESS = 1  # the kind of relocation: 64 bits, absolute
_ABSENT, _RESERVED, _LOCAL = 0, 0xFF00, 0


class Unsupported(Exception):
    """The object file needs a real linker."""


class Image:
    """Code in memory; it is freed with this object.

    Args:
        data: an object file.
        imports: addresses of functions that the code calls; others are looked up in the process.

    Attributes:
        addresses: where the functions of the object file are, by name.
        sizes: their bytes.
    """

    def __init__(self, data: bytes, imports: Mapping[str, int]):
        if sys.platform != "linux" or os.uname().machine != "x86_64":
            raise Unsupported
        header = np.frombuffer(data, _HEADER, 1)[0]
        kind = header["magic"], header["bits"], header["order"], header["kind"], header["machine"]
        if kind != (b"\x7fELF", 2, 1, _RELOCATABLE, _X86_64) or header["section_size"] != 64:
            raise Unsupported
        sections = np.frombuffer(data, _SECTION, header["section_count"], header["sections"])
        self._layout(data, sections)
        (table,) = sections[sections["kind"] == _SYMBOLS]
        symbols = np.frombuffer(data, _SYMBOL, table["size"] // _SYMBOL.itemsize, table["offset"])
        names = int(sections["offset"][table["link"]])
        addresses = self._resolve(data, names, symbols, imports)
        for section in sections:
            if section["kind"] == _REL:
                raise Unsupported
            if section["kind"] == _ADDENDS and section["info"] in self.places:
                self._relocate(data, section, addresses)
        if _protect(self._start, self._code_size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise Unsupported

    def _layout(self, data: bytes, sections: np.ndarray) -> None:
        """Copy code and constants and, from the next page on, writable data."""
        loaded = [
            (number, section)
            for number, section in enumerate(sections)
            # No exception passes through this code, so it needs no unwind tables.
            if section["flags"] & _LOADED and section["kind"] != _UNWINDING
        ]
        loaded.sort(key=lambda item: bool(item[1]["flags"] & _WRITTEN))
        self.places: dict[int, int] = {}
        end, self._code_size = 0, 0
        for number, section in loaded:
            if section["flags"] & _WRITTEN and not self._code_size:
                end = self._code_size = _up(end, mmap.PAGESIZE)
            end = self.places[number] = _up(end, int(section["align"]))
            end += int(section["size"])
        self._code_size = self._code_size or _up(end, mmap.PAGESIZE)
        self._memory = mmap.mmap(-1, max(end, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self._start = self._bytes.ctypes.data
        for number, section in loaded:
            if section["kind"] != _ZEROS:
                place, size = self.places[number], int(section["size"])
                offset = int(section["offset"])
                self._memory[place : place + size] = data[offset : offset + size]

    def _resolve(
        self, data: bytes, names: int, symbols: np.ndarray, imports: Mapping[str, int]
    ) -> np.ndarray:
        """The address of each symbol."""
        process = ctypes.CDLL(None)
        self.addresses: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        found = np.zeros(len(symbols), np.uint64)
        # The first symbol is the null symbol.
        for i, (offset, info, _, section, value, size) in enumerate(symbols.tolist()[1:], 1):
            start = names + offset
            name = data[start : data.index(b"\0", start)].decode()
            if section in self.places:
                found[i] = self._start + self.places[section] + value
                if info >> 4 != _LOCAL:
                    self.addresses[name] = int(found[i])
                    self.sizes[name] = size
            elif section == _ABSENT:
                found[i] = imports[name] if name in imports else _address(process, name)
            elif section >= _RESERVED and info & 15 != 4:  # except the name of the source file
                raise Unsupported(name)
        return found

    def _relocate(self, data: bytes, section: np.void, addresses: np.ndarray) -> None:
        """Apply the relocations of a section."""
        count = section["size"] // _RELOCATION.itemsize
        entries = np.frombuffer(data, _RELOCATION, count, section["offset"])
        if (entries["kind"] != _ADDRESS).any():
            raise Unsupported
        values = addresses[entries["symbol"]] + entries["addend"].view(np.uint64)
        places = entries["offset"].astype(np.int64) + self.places[int(section["info"])]
        self._bytes[places[:, None] + np.arange(8)] = values.view(np.uint8).reshape(-1, 8)


def _up(size: int, to: int) -> int:
    return -(-size // max(to, 1)) * max(to, 1)


def _address(process: ctypes.CDLL, name: str) -> int:
    try:
        return ctypes.cast(process[name], ctypes.c_void_p).value or 0
    except AttributeError:
        raise Unsupported(name) from None


def _protect(start: int, size: int, protection: int) -> int:
    function = ctypes.CDLL(None).mprotect
    function.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return function(start, size, protection)
