"""PJRT plug-ins: libraries that make accelerators available to XLA.

A plug-in is found without loading it, or jaxlib: in `PJRT_NAMES_AND_LIBRARY_PATHS`, among the
packages `jax_plugins.*` that makers publish, and in the package `libtpu`.
"""

from __future__ import annotations

import importlib.util
import os
import pkgutil
from pathlib import Path
from typing import NamedTuple

from namoo._base.caches import cached
from namoo._base.config import config


class Plugin(NamedTuple):
    """A plug-in's library, and its platform."""

    name: str
    library: str

    @property
    def platform(self) -> str:
        return _PLATFORMS.get(self.name, self.name)


_PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}

# Platform names in package names, and the names of their libraries.
_FAMILIES = ("cuda", "rocm")


def _from_environment() -> list[Plugin]:
    """Return the plug-ins of comma-separated `name:path` pairs."""
    found = []
    for pair in os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(","):
        if pair.strip():
            name, colon, path = pair.strip().partition(":")
            if not (name and colon and path):
                raise ValueError(
                    f"PJRT_NAMES_AND_LIBRARY_PATHS has {pair!r}; it is a list of name:path pairs "
                    "with commas between them."
                )
            found.append(Plugin(name, path))
    return found


def _from_packages() -> list[Plugin]:
    """Return the plug-ins of installed packages, without importing them."""
    found = []
    spec = importlib.util.find_spec("jax_plugins")
    for module in pkgutil.iter_modules(spec.submodule_search_locations if spec else []):
        place = module.module_finder.find_spec(f"jax_plugins.{module.name}", None)  # type: ignore
        for folder in place.submodule_search_locations or [] if place else []:
            libraries = sorted(
                p for end in ("so", "dylib", "dll") for p in Path(folder).glob(f"*plugin*.{end}")
            )
            if libraries:
                family = next((f for f in _FAMILIES if f in module.name), module.name)
                found.append(Plugin(family, str(libraries[0])))
    spec = importlib.util.find_spec("libtpu")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        library = Path(folder) / "libtpu.so"
        if library.exists() and _has_tpu():
            found.append(Plugin("tpu", str(library)))
    return found


def _has_tpu() -> bool:
    """Whether the machine has a TPU; without one its library would abort the process."""
    return any(Path("/dev").glob("accel*")) or any(Path("/dev/vfio").glob("[0-9]*"))


@cached("base.plugins", bound=1, keyed_by="nothing", kept=True)
def plugins() -> tuple[Plugin, ...]:
    """Return the available plug-ins, one for each platform."""
    chosen: dict[str, Plugin] = {}
    for plugin in (*_from_environment(), *_from_packages()):
        chosen.setdefault(plugin.name, plugin)
    return tuple(chosen.values())


_INSTALL = {
    "gpu": 'pip install "jax-cuda12-plugin[with-cuda]" for NVIDIA GPUs',
    "cuda": 'pip install "jax-cuda12-plugin[with-cuda]"',
    "rocm": "pip install jax-rocm7-plugin jax-rocm7-pjrt",
    "tpu": "pip install libtpu",
    "METAL": "pip install jax-metal",
}


def requested_platforms() -> list[str]:
    """Return the platforms that the settings ask for, in order; none means any."""
    names = (config.platforms or config.platform_name or "").split(",")
    return [name.strip() for name in names if name.strip()]


def selected_plugins() -> list[Plugin]:
    """Return the plug-ins to use, by `config.platforms` (JAX_PLATFORMS).

    Raises:
        RuntimeError: none of the platforms that were asked for is available.
    """
    names = requested_platforms()
    found = plugins()
    if not names:
        return list(found)
    chosen = [p for n in names for p in found if n in (p.name, p.platform)]
    if not chosen and "cpu" not in names:
        known = sorted({"cpu", *(p.name for p in found)})
        advice = [f"  {n}: {_INSTALL[n]}" for n in names if n in _INSTALL]
        raise RuntimeError(
            f"Unable to initialize backend {names[0]!r}: Backend {names[0]!r} is not in the list "
            f"of known backends: {known}. JAX_PLATFORMS or NAMOO_PLATFORMS ({','.join(names)}) "
            "asks for it, and no plug-in provides it.\n"
            + "".join(f"{line}\n" for line in advice)
            + "Install its package, beside namoo[xla], or set JAX_PLATFORMS='' to choose among the "
            "available devices."
        )
    return chosen
