"""The target processor: this one, an older one of its architecture, or that of another system or
architecture, for which code can be compiled but not run."""

from __future__ import annotations

import os

from namoo._base.caches import cached

_SSE = {"sse2"}
_AVX = {*_SSE, "avx"}
_AVX2 = {*_AVX, "avx2", "f16c", "fma"}
_AVX512 = {*_AVX2, "avx512f", "avx512vl"}
PROCESSORS = {
    "x86-64": _SSE,
    "x86-64-v2": _SSE,
    "nehalem": _SSE,
    "sandybridge": _AVX,
    "ivybridge": {*_AVX, "f16c"},
    "x86-64-v3": _AVX2,
    "haswell": _AVX2,
    "x86-64-v4": _AVX512,
    "skylake-avx512": _AVX512,
    "aarch64-linux": set(),
    "aarch64-macos": set(),
    "x86-64-macos": _SSE,
    "x86-64-windows": _SSE,
}
"""The processors that can be chosen, with the features that the engine uses.

The names are LLVM's, which aborts the process for an unknown one.
"""

_TRIPLES = {
    "aarch64-linux": "aarch64-unknown-linux-gnu",
    "aarch64-macos": "arm64-apple-darwin",
    "x86-64-macos": "x86_64-apple-darwin",
    "x86-64-windows": "x86_64-pc-windows-msvc",
}


def chosen() -> str:
    """The processor that `NAMOO_TARGET_CPU` names, or an empty string.

    Raises:
        ValueError: it names one that is not in the table.
    """
    name = os.environ.get("NAMOO_TARGET_CPU", "").strip()
    if name and name not in PROCESSORS:
        known = ", ".join(PROCESSORS)
        raise ValueError(f"NAMOO_TARGET_CPU={name!r} is not a known processor: use one of {known}")
    return name


def for_llvm() -> tuple[str, str]:
    """The processor's name and its features, as LLVM takes them."""
    import llvmlite.binding as llvm

    if name := chosen():
        return "generic" if name in _TRIPLES else name, ""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def triple() -> str:
    """LLVM's target triple, if the user chose a processor; else an empty string."""
    return _TRIPLES.get(chosen(), "")


@cached(
    "native target: processor features",
    bound="features that the engine asks for",
    keyed_by="name of the feature",
    kept=True,
)
def has(feature: str) -> bool:
    """Whether the processor has a feature, by LLVM's name."""
    import llvmlite.binding as llvm

    if name := chosen():
        return feature in PROCESSORS[name]
    return bool(llvm.get_host_cpu_features().get(feature))


@cached("native target: is ARM", bound=1, keyed_by="nothing", kept=True)
def _arm() -> bool:
    import platform

    machine = chosen() or platform.machine()
    return machine.lower().startswith(("aarch64", "arm64"))


def has_fma() -> bool:
    """Whether the processor multiplies and adds with one rounding: every 64-bit ARM does."""
    return _arm() or has("fma")


def converts_half() -> bool:
    """Whether the processor converts between f16 and f32: every 64-bit ARM does."""
    return _arm() or has("f16c")
