"""Machine code in memory: from LLVM IR, or from the disk cache without LLVM."""

from __future__ import annotations

import ast
import ctypes
import importlib.machinery
import os
import sys
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from namoo._base.caches import cached
from namoo._base.runtime import native as runtime
from namoo.engines import disk_cache
from namoo.engines.native import tuning
from namoo.engines.native.ir import target
from namoo.engines.native.link import loader, options, signals, threads

Part = tuple[list[str], str]

LAPACK_NAMES = frozenset(
    "gees geev gehrd geqp3 geqrf gesdd gesvd getrf gtsv heevd hetrd orgqr ormqr potrf sterf stevd "
    "syevd sytrd ungqr unmqr".split()
)
"""The functions of LAPACK that programs call, without the letter of their type."""


@dataclass
class ObjectCode:
    """Machine code that is not loaded.

    Attributes:
        name: its name in the disk cache.
        data: object files, with the names of their functions.
        ir: the LLVM IR that it was made from; empty if it comes from the disk cache.
    """

    name: str
    data: bytes
    ir: str = ""

    def text(self) -> str:
        """The code as assembly."""
        from namoo.engines.native.link import llvm

        return llvm.assembly(self.ir)


def object_code(text: str, parts: Callable[[int], Sequence[Part]]) -> ObjectCode:
    """Compile LLVM IR, unless the disk cache has its machine code.

    Args:
        text: the whole module.
        parts: `parts(n)` is the module in up to n pieces, which are compiled at the same time; each
          has the names of its functions, and the last calls those of the others.
    """
    name = disk_cache.key(text, *surroundings())
    data = disk_cache.load(name)
    if data is None:
        from namoo.engines.native.link import llvm

        most = 1 + len(text) // tuning.MODULE_PART
        cut = parts(min(most, threads.compiling_threads()))
        objects = llvm.object_files([part for _, part in cut])
        head = [(names, len(o)) for (names, _), o in zip(cut, objects, strict=True)]
        data = b"".join([f"{head}\n".encode(), *objects])
        disk_cache.save(name, data)
    return ObjectCode(name, data, text)


def object_files(data: bytes) -> Iterator[tuple[list[str], bytes]]:
    """Split the data of `object_code` into object files, each with the names of its functions."""
    end = data.index(b"\n")
    start = end + 1
    for names, size in ast.literal_eval(data[:end].decode()):
        yield names, data[start : start + size]
        start += size


@cached("native link: compiler identity", bound=1, keyed_by="nothing", kept=True)
def surroundings() -> tuple[str, ...]:
    """The rest of the key of machine code: the machine and the compiler."""
    return (
        processor(),
        target.chosen(),
        _compiler(),
        str(options.LEVEL),
        *options.PASSES,
        *options.OPTIONS,
    )


# The lines of /proc/cpuinfo that describe the model of a processor.
_KIND = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features",
         "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
         "isa", "uarch", "cpu")  # fmt: skip


def processor() -> str:
    """The processor and its features, as the operating system describes them."""
    kind = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = map(str.strip, line.partition(":"))
                if not key:
                    break  # all cores are equal, and there may be hundreds
                if key in _KIND:
                    kind[key] = value
    except OSError:
        kind = {}
    # Under Wine a Windows Python sees /proc, but has no `uname`.
    if hasattr(os, "uname") and ("flags" in kind or "Features" in kind):
        return repr((os.uname().machine, kind))
    from namoo.engines.native.link import llvm

    return llvm.processor()


def _compiler() -> str:
    """LLVM's files, by size and time: asking for its version would load it."""
    package = importlib.machinery.PathFinder.find_spec("llvmlite")
    if package is None:  # installed in an unusual way
        from importlib.util import find_spec

        package = find_spec("llvmlite")
    found = []
    for folder in package.submodule_search_locations or () if package else ():
        with os.scandir(os.path.join(folder, "binding")) as entries:
            for entry in entries:
                if entry.name.endswith((".so", ".dylib", ".dll")):
                    info = entry.stat()
                    found.append((entry.name, info.st_size, info.st_mtime_ns))
    return repr(sorted(found))


def _cython(which: str) -> Any:
    """SciPy's C interface to BLAS or LAPACK, without the rest of `scipy.linalg`, which is slow."""
    from importlib.util import module_from_spec

    import scipy

    name = f"scipy.linalg.cython_{which}"
    if name not in sys.modules:
        kinds = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
        for folder in scipy.__path__:
            finder = importlib.machinery.FileFinder(os.path.join(folder, "linalg"), kinds)
            spec = finder.find_spec(name)
            if spec is not None and spec.loader is not None:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                # Later imports get the same module.
                sys.modules[name] = module
    return importlib.import_module(name)


def _set_blas_threads() -> Any:
    """The function that sets how many threads BLAS and LAPACK use, if it is OpenBLAS."""
    library = ctypes.CDLL(_cython("blas").__file__)
    names = ("scipy_openblas_set_num_threads", "openblas_set_num_threads")
    return next((getattr(library, name) for name in names if hasattr(library, name)), None)


@cached("native link: BLAS functions", bound=1, keyed_by="nothing", kept=True)
def _blas() -> dict[str, int]:
    """The addresses of BLAS functions, by the names that the code uses."""
    cython_blas = _cython("blas")
    # Programs distribute the work themselves, so a BLAS call uses one thread.
    if set_num_threads := _set_blas_threads():
        set_num_threads(1)
    return {
        f"namoo_{name}": capsule_address(cython_blas.__pyx_capi__[name])
        for name in ("sgemm", "dgemm", "cgemm", "zgemm")
    }


@cached("native link: LAPACK functions", bound=1, keyed_by="nothing", kept=True)
def _lapack() -> dict[str, int]:
    """The addresses of functions of LAPACK, and of BLAS that solve."""
    _blas()
    found = {
        name: capsule
        for name, capsule in _cython("lapack").__pyx_capi__.items()
        if name[1:] in LAPACK_NAMES
    }
    solves = _cython("blas").__pyx_capi__
    found |= {f"{letter}trsm": solves[f"{letter}trsm"] for letter in "sdcz"}
    out = {f"namoo_lapack_{name}": capsule_address(capsule) for name, capsule in found.items()}
    # Another library is not asked: the C library's `abs` has the same type, and does nothing.
    threads = _set_blas_threads() or ctypes.CDLL(None).abs
    address = ctypes.cast(threads, ctypes.c_void_p).value
    assert address is not None
    return out | {"namoo_lapack_threads": address}


def capsule_address(capsule: Any) -> int:
    """The address of the C function in a capsule."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def library(data: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> Any:
    """Load an object file, with LLVM if `loader` cannot; the result has its `addresses`."""
    try:
        return loader.Image(data, imports)
    except loader.Unsupported:
        from namoo.engines.native.link import llvm

        return llvm.Library(data, exports, imports)


_lock = allocate_lock()


@cached("native link: support functions", bound=1, keyed_by="nothing", kept=True)
def _support() -> dict[str, int]:
    """The functions that programs call to share work and to check for signals."""
    if runtime is not None:
        return threads.pool().functions
    ir = signals.IR
    data = object_code(ir, lambda _: [(signals.FUNCTIONS, ir)]).data
    ((names, file),) = object_files(data)
    linked = library(file, names, signals.imports())
    # Never unload: a thread may still run this code while the interpreter shuts down.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(linked))
    return {name: linked.addresses[name] for name in names}


def raised_by_signal() -> BaseException | None:
    """The exception that a signal handler raised during the last program; C++ keeps its own."""
    if runtime is not None or not _support.cache_info().currsize:
        return None
    return signals.take_exception(_support()["raised"])


class Code:
    """Machine code that is loaded; it is freed with this object."""

    def __init__(self, objects: ObjectCode):
        if target.triple():
            raise RuntimeError(
                f"NAMOO_TARGET_CPU={target.chosen()} is another kind of processor: programs can be "
                "compiled for it, by namoo.export.to_c, but not run here."
            )
        data = objects.data
        self.name, self.size = objects.name, len(data)
        imports = dict(_blas()) if b"gemm" in data else {}
        if b"namoo_lapack_" in data:
            imports |= _lapack()
        if b"namoo_parallel" in data or b"namoo_interrupted" in data:
            with _lock:
                imports |= _support()
            if b"namoo_parallel" in data and runtime is not None:
                threads.pool().resize(threads.get_num_threads())
        self.libraries = []
        for names, file in object_files(data):
            self.libraries.append(library(file, names, imports))
            imports |= self.libraries[-1].addresses
        self.entry = imports["entry"]

    def text(self) -> str:
        """The functions of the code, and where they are."""
        found = {name: at for library in self.libraries for name, at in library.addresses.items()}
        return "\n".join(f"{at:#x} {name}" for name, at in found.items())
