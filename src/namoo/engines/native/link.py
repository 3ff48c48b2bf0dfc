"""Machine code into memory: from LLVM text, or from the disk without LLVM."""

from __future__ import annotations

import ast
import ctypes
import functools
import importlib.machinery
import os
import sys
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from namoo._accelerator import native as runtime
from namoo._lazy import later
from namoo.engines import cache
from namoo.engines.native import loader, target, threads

jobs = later("namoo.engines.native.jobs")

# The code is written as it should be: only what inlining and stack slots leave is tidied up, and
# loops keep a block before them, where their variables get their first values.
PASSES = ("always_inliner", "sroa", "simplify_cfg", "loop_simplify")
# More would take LLVM a tenth longer; no program was found that it makes faster.
LEVEL = 1
# Addresses are written as they should be, too: making them cheaper took LLVM four tenths of its
# time, and no program was found that it makes faster.
OPTIONS = ("disable-lsr",)
# Text of this length is worth a thread that compiles it.
PART = 50_000

Part = tuple[list[str], str]


def object_code(text: str, parts: Callable[[int], Sequence[Part]]) -> tuple[str, bytes]:
    """Machine code for LLVM text, and its name on disk, where it may be from.

    `parts(n)` are texts that are compiled at the same time, each with its functions' names; those
    of the last call those of the others.
    """
    name = cache.key(text, *surroundings())
    data = cache.load(name)
    if data is None:
        from namoo.engines.native import compiler

        wants_pool = runtime is None and "declare i32 @namoo_" in text
        if wants_pool and not pool.cache_info().currsize and not _ahead:
            _ahead.append(jobs.Job(_pool_code))
        most = 1 + len(text) // PART
        cut = parts(min(most, threads.get_num_threads()))
        objects = compiler.object_files([part for _, part in cut], PASSES)
        head = [(names, len(o)) for (names, _), o in zip(cut, objects, strict=True)]
        data = b"".join([f"{head}\n".encode(), *objects])
        cache.save(name, data)
    return name, data


def objects(data: bytes) -> Iterator[tuple[list[str], bytes]]:
    """The object files that `object_code` gives, with the names of their functions."""
    end = data.index(b"\n")
    start = end + 1
    for names, size in ast.literal_eval(data[:end].decode()):
        yield names, data[start : start + size]
        start += size


def assembly(text: str) -> str:
    """Machine code for LLVM text, to be read."""
    from namoo.engines.native import compiler

    return compiler.assembly(text, PASSES)


@functools.cache
def surroundings() -> tuple[str, ...]:
    """What else decides the code: the machine and the compiler."""
    return processor(), target.chosen(), _compiler(), str(LEVEL), *PASSES, *OPTIONS


# The lines of /proc/cpuinfo that are about the kind of a processor.
_KIND = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features",
         "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision",
         "isa", "uarch", "cpu")  # fmt: skip


def processor() -> str:
    """The processor and what it can do; in the kernel's words if it has any."""
    kind = {}
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = map(str.strip, line.partition(":"))
                if not key:
                    break  # all processors are alike, and there may be hundreds
                if key in _KIND:
                    kind[key] = value
    except OSError:
        kind = {}
    if "flags" in kind or "Features" in kind:
        return repr((os.uname().machine, kind))
    from namoo.engines.native import compiler

    return compiler.processor()


def _compiler() -> str:
    """LLVM's own files, by size and time: its version would mean loading it."""
    package = importlib.machinery.PathFinder.find_spec("llvmlite")
    if package is None:  # it was installed in a way of its own
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


def _cython_blas() -> Any:
    """SciPy's BLAS for C, without the rest of `scipy.linalg`, which takes far longer to load."""
    from importlib.util import module_from_spec

    import scipy

    name = "scipy.linalg.cython_blas"
    if name not in sys.modules:
        kinds = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
        for folder in scipy.__path__:
            finder = importlib.machinery.FileFinder(os.path.join(folder, "linalg"), kinds)
            spec = finder.find_spec(name)
            if spec is not None and spec.loader is not None:
                module = module_from_spec(spec)
                spec.loader.exec_module(module)
                # Whoever imports it later gets the same one.
                sys.modules[name] = module
    return importlib.import_module(name)


@functools.cache
def _blas() -> dict[str, int]:
    """The functions of BLAS, by the names that the code uses."""
    cython_blas = _cython_blas()
    # Threads are shared out by the program: a product of theirs is for one of them.
    library = ctypes.CDLL(cython_blas.__file__)
    for name in ("scipy_openblas_set_num_threads", "openblas_set_num_threads"):
        if set_num_threads := getattr(library, name, None):
            set_num_threads(1)
    return {
        f"namoo_{name}": capsule_address(cython_blas.__pyx_capi__[name])
        for name in ("sgemm", "dgemm", "cgemm", "zgemm")
    }


def capsule_address(capsule: Any) -> int:
    """The address of the C function in a capsule."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def library(data: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> Any:
    """An object file in memory, where its attribute `addresses` tells; by LLVM if need be."""
    try:
        return loader.Image(data, imports)
    except loader.Unsupported:
        from namoo.engines.native import compiler

        return compiler.Library(data, exports, imports)


_POOL = ["namoo_parallel", "namoo_interrupted", "worker", "set_limit", "set_main_thread", "reset",
         "raised"]  # fmt: skip
_lock = allocate_lock()


_ahead: list[Any] = []
"""The pool's code, compiled while a program is that will want it."""


def _pool_code() -> bytes:
    text = threads.pool_text()
    return object_code(text, lambda _: [(_POOL, text)])[1]


@functools.cache
def pool() -> threads.Pool:
    """The threads that share the work of kernels; their code is in C++, or compiled here."""
    if runtime is not None:
        return threads.Pool(runtime.workers, runtime)
    ((_, file),) = objects(_ahead[0].result() if _ahead else _pool_code())
    linked = library(file, _POOL, threads.imports())
    # Threads are in this code until the process ends, which Python's own end is not.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(linked))
    return threads.Pool({name: linked.addresses[name] for name in _POOL}, linked)


def raised_by_signal() -> BaseException | None:
    """What the handler of a signal raised in a program that just returned; C++ keeps it itself."""
    return pool().raised() if runtime is None and pool.cache_info().currsize else None


class Code:
    """Machine code that is loaded; it is freed with this object."""

    def __init__(self, name: str, data: bytes):
        self.name, self.size = name, len(data)
        imports = dict(_blas()) if b"gemm" in data else {}
        if b"namoo_parallel" in data or b"namoo_interrupted" in data:
            with _lock:
                shared = pool()
            imports |= shared.functions
            if b"namoo_parallel" in data:
                shared.resize(threads.get_num_threads())
        self.libraries = []
        for names, file in objects(data):
            self.libraries.append(library(file, names, imports))
            imports |= self.libraries[-1].addresses
        self.entry = imports["entry"]
