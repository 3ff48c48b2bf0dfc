"""The import hook that makes `import jax` import namoo.

This file imports nothing of namoo: the hook can be installed when Python starts, and the first
`import jax` loads namoo.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

VERSION = "0.10.2"
"""The version of JAX whose behaviour namoo implements."""

PRIVATE = "namoo.compat.private"
"""The package that stands in for `jax._src`."""

STAND_IN_JAXLIB = "namoo.compat.jaxlib"
"""The package that stands in for `jaxlib` if it is not installed."""


class RealJaxLoadedError(RuntimeError):
    """JAX itself was imported before namoo could stand in for it."""

    __module__ = "namoo.compat"


class _JaxModule(ModuleType):
    """The module `jax`: namoo's public names, with the version of JAX that they implement."""

    def __getattr__(self, name: str) -> Any:
        if name == "_src":
            return importlib.import_module("jax._src")
        return getattr(importlib.import_module("namoo"), name)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module("namoo"))


class _JaxLoader:
    """Create the module `jax`."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = _JaxModule(spec.name, importlib.import_module("namoo").__doc__)
        vars(module).update(
            __version__=VERSION,
            __version_info__=tuple(int(part) for part in VERSION.split(".")),
        )
        return module

    def exec_module(self, module: ModuleType) -> None:
        importlib.import_module("namoo.compat.defaults").use_jax_defaults()
        # Libraries look in `sys.modules` for what JAX loads with itself.
        importlib.import_module("jax.tree_util")


class _AliasLoader:
    """Load a module of namoo under another name: the same object, with its own `__spec__`."""

    def __init__(self, module: ModuleType):
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec or module.__spec__


class _PrivatePackage(ModuleType):
    """A package of `jax._src` that is an alias of a public module of namoo, with its submodules."""

    def __init__(self, name: str, public: str):
        super().__init__(name)
        self._public = public

    def __getattr__(self, name: str) -> Any:
        if _private_name(f"{self.__name__}.{name}") in importlib.import_module(PRIVATE).PUBLIC:
            return importlib.import_module(f"{self.__name__}.{name}")
        return getattr(importlib.import_module(self._public), name)

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self._public))


def _private_name(fullname: str) -> str:
    return fullname.removeprefix("jax._src.")


class AliasFinder:
    """Find `jax`, `jax.*`, `jax._src.*` and, if it is not installed, `jaxlib` in namoo."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        top, _, rest = fullname.partition(".")
        if top == "jax":
            if not rest:
                loader: Any = _JaxLoader()
                spec = importlib.machinery.ModuleSpec(fullname, loader, is_package=True)
                spec.submodule_search_locations = []
                return spec
            if rest == "_src" or rest.startswith("_src."):
                public = importlib.import_module(PRIVATE).PUBLIC
                name = _private_name(fullname)
                if name in public and any(other.startswith(f"{name}.") for other in public):
                    loader = _AliasLoader(_PrivatePackage(fullname, public[name]))
                    return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)
                own = PRIVATE + rest.removeprefix("_src")
                return self._alias(fullname, public.get(name, own))
            return self._alias(fullname, f"namoo.{rest}")
        if top == "jaxlib" and not _installed("jaxlib"):
            return self._alias(fullname, STAND_IN_JAXLIB + fullname.removeprefix("jaxlib"))
        return None

    def _alias(self, fullname: str, own: str) -> importlib.machinery.ModuleSpec | None:
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            # A failing import inside namoo is a bug of namoo and must not be hidden.
            if error.name is None or not (own == error.name or own.startswith(error.name + ".")):
                raise
            return None
        loader: Any = _AliasLoader(module)
        return importlib.machinery.ModuleSpec(
            fullname,
            loader,
            origin=getattr(module, "__file__", None),
            is_package=hasattr(module, "__path__"),
        )


def _installed(name: str) -> bool:
    return importlib.machinery.PathFinder.find_spec(name) is not None


def install() -> None:
    """Make `import jax` import namoo from now on, in this process."""
    if any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        return
    if "jax" in sys.modules:
        file = getattr(sys.modules["jax"], "__file__", "an unknown file")
        raise RealJaxLoadedError(
            f"JAX itself is already loaded, from {file}, so "
            "namoo cannot stand in for it. Call namoo.compat.install() before anything imports "
            "jax, or start the program with NAMOO_AS_JAX=1 or with python -m namoo.compat."
        )
    sys.meta_path.insert(0, AliasFinder())
