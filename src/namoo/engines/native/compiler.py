"""LLVM: from text to object files, and into memory where `loader` cannot.

Importing this module loads LLVM, which takes longer than a program from the disk takes to run:
others import it when there is something to compile.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

_lock = threading.RLock()
_numbers = itertools.count()


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


def processor() -> str:
    """The processor and what it can do, in LLVM's words."""
    triple = llvm.get_default_triple()
    return f"{triple} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def optimised(text: str, passes: Sequence[str]) -> Any:
    """The module of LLVM's after a list of passes."""
    with _lock:
        module = llvm.parse_assembly(text)
        manager = llvm.create_new_module_pass_manager()
        for name in passes:
            getattr(manager, f"add_{name}_pass")()
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        manager.run(module, llvm.create_pass_builder(target_machine(), options))
        return module


def object_file(text: str, passes: Sequence[str]) -> bytes:
    """Machine code for LLVM text."""
    with _lock:
        return target_machine().emit_object(optimised(text, passes))


def assembly(text: str, passes: Sequence[str]) -> str:
    """Machine code for LLVM text, to be read."""
    with _lock:
        return target_machine().emit_assembly(optimised(text, passes))


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
