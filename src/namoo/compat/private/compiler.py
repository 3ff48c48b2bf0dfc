"""The function that compiles a program, which tests replace to see whether one is compiled."""

from typing import Any


def backend_compile_and_load(*args: Any, **kwargs: Any) -> Any:
    """The name under which JAX compiles; namoo's engines compile on their own."""
    raise NotImplementedError(
        "jax._src.compiler.backend_compile_and_load compiles MLIR modules, and namoo has none. Use "
        "jax.jit(f).lower(...).compile()."
    )
