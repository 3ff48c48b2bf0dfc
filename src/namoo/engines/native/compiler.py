"""LLVM: from text to object files, and into memory where `loader` cannot.

Importing this module loads LLVM, which takes longer than a program from the disk takes to run:
others import it when there is something to compile.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from namoo.engines.native import target
from namoo.engines.native.jobs import Job
from namoo.engines.native.link import LEVEL, OPTIONS

_lock = threading.RLock()
_idle: list[Any] = []
"""Machines that no thread is using."""
_numbers = itertools.count()
# Sets and not numbers: a signal's handler may raise between any two steps, and what is done twice
# or not at all must do no harm.
_emitting: set[object] = set()
"""One object for each thread that makes machine code."""
_working: set[object] = set()
"""One object for each thread that is in LLVM."""
_quiet = threading.Condition()


@contextmanager
def _at_work() -> Iterator[None]:
    """A thread is in LLVM: the process does not fork meanwhile."""
    own = object()
    try:
        with _quiet:
            _working.add(own)
        yield
    finally:
        with _quiet:
            _working.discard(own)
            _quiet.notify_all()


def _before_fork() -> None:
    """Wait until no thread is in LLVM: a child has the locks of threads that it does not have."""
    _quiet.acquire()
    while _working:
        _quiet.wait()
    _lock.acquire()
    _llvm_lock.__enter__()


def _after_fork() -> None:
    _llvm_lock.__exit__(None, None, None)
    _lock.release()
    _quiet.release()


_llvm_lock: Any = getattr(ffi.lib, "_lock", None) or nullcontext()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


@contextmanager
def _with_options() -> Iterator[None]:
    """Our options of LLVM's, while any thread makes machine code.

    They are the process's, and others in it use LLVM too: theirs are the usual ones.
    """
    own = object()
    try:
        with _lock:
            _emitting.add(own)
            if len(_emitting) == 1:
                _set_options("true")
        yield
    finally:
        with _lock:
            _emitting.discard(own)
            if not _emitting:
                _set_options("false")


def _set_options(value: str) -> None:
    for name in OPTIONS:
        llvm.set_option("", f"-{name}={value}")


def _new_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = target.for_llvm()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu,
        features=features,
        opt=LEVEL,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )


@contextmanager
def target_machine() -> Iterator[Any]:
    """LLVM's idea of this machine, for one thread."""
    machine = _idle.pop() if _idle else _new_machine()
    yield machine
    _idle.append(machine)


@functools.cache
def _linker() -> Any:
    # It takes the machine it is given for itself.
    return llvm.create_lljit_compiler(_new_machine(), use_jit_link=False, suppress_errors=False)


def processor() -> str:
    """The processor and what it can do, in LLVM's words."""
    return " ".join([llvm.get_default_triple(), *target.for_llvm()])


def _unlocked(name: str) -> Any:
    """A function of LLVM's for a thread that has modules, contexts and machines of its own.

    llvmlite lets one thread at a time into LLVM.  What takes long goes without its lock: what two
    threads do to things of their own is safe.
    """
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


def optimised(machine: Any, text: str, passes: Sequence[str]) -> Any:
    """The module of LLVM's after a list of passes, in a context of its own."""
    context = llvm.create_context()
    with ffi.OutputString() as error:
        parsed = _unlocked("LLVMPY_ParseAssembly")(context, text.encode(), error)
        module = llvm.ModuleRef(parsed, context)
        if error:
            raise RuntimeError(f"LLVM cannot read the program: {error}")
    manager = llvm.create_new_module_pass_manager()
    for name in passes:
        getattr(manager, f"add_{name}_pass")()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(machine, options)
    _unlocked("LLVMPY_RunNewModulePassManager")(manager, module, builder)
    return module


def object_files(texts: Sequence[str], passes: Sequence[str]) -> list[bytes]:
    """Machine code for LLVM texts, by a thread for each."""
    jobs = [Job(object_file, text, passes) for text in texts[1:]]
    return [object_file(texts[0], passes), *(job.result() for job in jobs)]


def object_file(text: str, passes: Sequence[str]) -> bytes:
    """Machine code for LLVM text."""
    with _at_work(), target_machine() as machine:
        module = optimised(machine, text, passes)
        with _with_options(), ffi.OutputString() as error:
            buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
            if not buffer:
                raise RuntimeError(str(error))
    try:
        start = ffi.lib.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def assembly(text: str, passes: Sequence[str]) -> str:
    """Machine code for LLVM text, to be read."""
    with target_machine() as machine, _with_options():
        return machine.emit_assembly(optimised(machine, text, passes))


class Library:
    """Code in memory, put there by LLVM's linker; it is freed with this object.

    Args:
      data: an object file.
      exports: names of functions in it.
      imports: addresses of functions that the code calls; others are looked up in the process.

    Attributes:
      addresses: where the functions are, by name.
    """

    def __init__(self, data: bytes, exports: Sequence[str], imports: Mapping[str, int]):
        with _lock:
            library = llvm.JITLibraryBuilder().add_object_img(data)
            for name in exports:
                library.export_symbol(name)
            library.add_current_process()
            for name, address in imports.items():
                library.import_symbol(name, address)
            self._linked = library.link(_linker(), f"namoo{next(_numbers)}")
            self.addresses = {name: self._linked[name] for name in exports}
