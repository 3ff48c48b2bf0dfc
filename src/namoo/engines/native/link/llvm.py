"""LLVM: compiles IR to object files, and loads those that `loader` cannot.

Importing this module loads LLVM, which takes longer than running a cached program: other modules
import it only when there is something to compile.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from namoo._base.caches import cached, register
from namoo.engines.native.ir import target
from namoo.engines.native.link import options
from namoo.engines.native.link.jobs import Job

_lock = threading.RLock()
_idle: list[Any] = register(
    "native compiler: target machines",
    [],
    bound="threads that compile at once",
    keyed_by="nothing",
    kept=True,
)
"""Target machines that no thread is using."""
_numbers = itertools.count()
# Sets instead of counters: a signal handler may raise between any two steps, so adding or removing
# must be idempotent.
_emitting: set[object] = set()
"""One object for each thread that generates machine code."""
_working: set[object] = set()
"""One object for each thread that is running LLVM."""
_quiet = threading.Condition()


@contextmanager
def _at_work() -> Iterator[None]:
    """Mark the thread as running LLVM, so that the process does not fork in the meantime."""
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
    """Wait until no thread runs LLVM: a child would inherit locks that no thread of it holds."""
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
    """Set our LLVM options while any thread generates machine code.

    They hold for the whole process, and other users of LLVM in it expect the defaults.
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
    for name in options.OPTIONS:
        llvm.set_option("", f"-{name}={value}")


def _new_machine(reloc: str = "default", codemodel: str = "jitdefault", jit: bool = True) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = target.for_llvm()
    kind = llvm.Target.from_default_triple()
    if triple := target.triple():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        kind = llvm.Target.from_triple(triple)
    return kind.create_target_machine(
        cpu=cpu,
        features=features,
        opt=options.LEVEL,
        reloc=reloc,
        codemodel=codemodel,
        jit=jit,
    )


@contextmanager
def target_machine() -> Iterator[Any]:
    """A target machine, for one thread."""
    machine = _idle.pop() if _idle else _new_machine()
    yield machine
    _idle.append(machine)


@cached("native compiler: linker", bound=1, keyed_by="nothing", kept=True)
def _linker() -> Any:
    # It takes ownership of its machine. LLVM's older linker aborts on ARM, where it reaches 4 GB
    # only; the newer one does not know all that objects for Windows contain.
    newer = sys.platform != "win32"
    return llvm.create_lljit_compiler(_new_machine(), use_jit_link=newer, suppress_errors=False)


def processor() -> str:
    """The processor and its features, as LLVM describes them."""
    return " ".join([llvm.get_default_triple(), *target.for_llvm()])


def _unlocked(name: str) -> Any:
    """A function of LLVM without llvmlite's global lock.

    It is for long calls on modules, contexts and machines that belong to one thread.
    """
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


def _passes(machine: Any) -> tuple[Any, Any]:
    """The pass manager and builder of a machine, kept with it: LLVM never frees all of them."""
    if not hasattr(machine, "passes"):
        manager = llvm.create_new_module_pass_manager()
        for name in options.PASSES:
            getattr(manager, f"add_{name}_pass")()
        level = llvm.create_pipeline_tuning_options(speed_level=1)
        machine.passes = manager, llvm.create_pass_builder(machine, level)
    return machine.passes


def _for_older_versions(text: str) -> str:
    """Write calls of `llvm.masked.*` as LLVM knew them before version 22.

    Their alignment was an operand of its own; now it is an attribute of the pointer.
    """

    def rewritten(line: re.Match[str]) -> str:
        if "declare" in line[0]:
            return re.sub(r"(ptr>?), (<\d+ x i1>)", r"\1, i32, \2", line[0])
        return re.sub(r"(ptr>?) align (\d+) (\S+),", r"\1 \3, i32 \2,", line[0])

    return re.sub(r"^.*@llvm\.masked\..*$", rewritten, text, flags=re.MULTILINE)


def optimised(machine: Any, text: str) -> Any:
    """Parse a module in a new context, and run the passes of `options` on it."""
    if llvm.llvm_version_info < (22,):
        text = _for_older_versions(text)
    context = llvm.create_context()
    with ffi.OutputString() as error:
        parsed = _unlocked("LLVMPY_ParseAssembly")(context, text.encode(), error)
        module = llvm.ModuleRef(parsed, context)
        if error:
            raise RuntimeError(f"LLVM cannot read the program: {error}")
    manager, builder = _passes(machine)
    _unlocked("LLVMPY_RunNewModulePassManager")(manager, module, builder)
    return module


def object_files(texts: Sequence[str]) -> list[bytes]:
    """Compile modules, each on its own thread."""
    jobs = [Job(object_file, text) for text in texts[1:]]
    return [object_file(texts[0]), *(job.result() for job in jobs)]


def object_file(text: str) -> bytes:
    """Compile a module, to be loaded into this process."""
    with target_machine() as machine:
        return _emitted(machine, text)


def linkable_object(text: str) -> bytes:
    """Compile a module to position-independent code, for the linker of a C compiler."""
    return _emitted(_new_machine(reloc="pic", codemodel="default", jit=False), text)


def _emitted(machine: Any, text: str) -> bytes:
    with _at_work():
        module = optimised(machine, text)
        with _with_options(), ffi.OutputString() as error:
            buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
            if not buffer:
                raise RuntimeError(str(error))
    try:
        start = ffi.lib.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def assembly(text: str) -> str:
    """Compile a module to assembly."""
    with target_machine() as machine, _with_options():
        return machine.emit_assembly(optimised(machine, text))


class Library:
    """Code in memory, loaded by LLVM's linker; it is freed with this object.

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
