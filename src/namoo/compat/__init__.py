"""`namoo.compat`: programs written for JAX run on namoo, unmodified.

Three ways to switch it on:

- `NAMOO_AS_JAX=1 python train.py`: for a program and the processes it starts.
- `python -m namoo.compat train.py`, or `-m module`, or `-c code`: for one program.
- `import namoo.compat; namoo.compat.install()` before anything imports `jax`.

`import jax` then imports namoo, `jax.numpy` is `namoo.numpy`, and `jax._src` has the private names
that libraries built on JAX use. JAX itself is never loaded. `namoo.compat.report()` lists the
libraries that are known to run.
"""

from typing import TYPE_CHECKING, Any

from namoo.compat.alias import VERSION, RealJaxLoadedError, install

if TYPE_CHECKING:
    from namoo.compat.clients import Client, Report, report

__all__ = ["Client", "RealJaxLoadedError", "Report", "VERSION", "install", "report"]
__dir__ = __all__.copy


def __getattr__(name: str) -> Any:
    # The hook runs when Python starts, and does not need what the report imports.
    if name in ("Client", "Report", "report"):
        from namoo.compat import clients

        return getattr(clients, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
