"""From LLVM text to machine code in memory."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from typing import Any

import llvmlite.binding as llvm

from namoo.engines.native import cache, threads

_lock = threading.RLock()


def _new_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )


@functools.cache
def target_machine() -> Any:
    """LLVM's idea of this machine."""
    return _new_machine()


@functools.cache
def _linker() -> Any:
    # It takes the machine it is given for itself.
    return llvm.create_lljit_compiler(_new_machine(), use_jit_link=False, suppress_errors=False)


@functools.cache
def _blas() -> dict[str, int]:
    """The functions of BLAS, by the names that the code uses."""
    from scipy.linalg import cython_blas  # pyright: ignore[reportAttributeAccessIssue]

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


# The code is written as it should be: only what inlining and stack slots leave is tidied up.
PASSES = ("always_inliner", "sroa", "instruction_combine", "simplify_cfg")


def optimised(text: str) -> Any:
    """The module of LLVM's after a short list of passes."""
    with _lock:
        module = llvm.parse_assembly(text)
        passes = llvm.create_new_module_pass_manager()
        for name in PASSES:
            getattr(passes, f"add_{name}_pass")()
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        passes.run(module, llvm.create_pass_builder(target_machine(), options))
        return module


def object_code(text: str) -> tuple[str, bytes]:
    """Machine code for LLVM text, and its name on disk, where it may be from."""
    name = cache.key(text, *surroundings())
    data = cache.load(name)
    if data is None:
        with _lock:
            data = target_machine().emit_object(optimised(text))
        cache.save(name, data)
    return name, data


@functools.cache
def surroundings() -> tuple[str, ...]:
    """What else decides the code: the machine and the compiler."""
    machine = target_machine()
    version = ".".join(map(str, llvm.llvm_version_info))
    features = llvm.get_host_cpu_features().flatten()
    return machine.triple, llvm.get_host_cpu_name(), features, version, *PASSES


@functools.cache
def pool() -> threads.Pool:
    """The threads that share the work of kernels."""
    names = ("namoo_parallel", "worker", "set_limit", "reset")
    library = llvm.JITLibraryBuilder().add_object_img(object_code(threads.pool_text())[1])
    for name in names:
        library.export_symbol(name)
    library.add_current_process()
    with _lock:
        linked = library.link(_linker(), "namoo_pool")
    return threads.Pool({name: linked[name] for name in names}, linked)


class Code:
    """Machine code that is loaded; it is freed with this object."""

    _numbers = itertools.count()

    def __init__(self, name: str, data: bytes):
        self.name, self.size = name, len(data)
        with _lock:
            library = llvm.JITLibraryBuilder().add_object_img(data).export_symbol("entry")
            library.add_current_process()
            for name, address in _blas().items() if b"gemm" in data else ():
                library.import_symbol(name, address)
            if b"namoo_parallel" in data:
                shared = pool()
                shared.resize(threads.get_num_threads())
                library.import_symbol("namoo_parallel", shared.parallel)
            self.library = library.link(_linker(), f"namoo{next(self._numbers)}")
            self.entry = self.library["entry"]
