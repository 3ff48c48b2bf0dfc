"""`namoo.compat`: programs written for JAX run on namoo, unmodified.

Three ways to switch it on:

- `NAMOO_AS_JAX=1 python train.py`: for a program and the processes it starts.
- `python -m namoo.compat train.py`, or `-m module`, or `-c code`: for one program.
- `import namoo.compat; namoo.compat.install()` before anything imports `jax`.

`import jax` then imports namoo, `jax.numpy` is `namoo.numpy`, and `jax._src` has the private names
that libraries built on JAX use. JAX itself is never loaded.
"""

from namoo.compat.alias import VERSION, RealJaxLoadedError, install

__all__ = ["RealJaxLoadedError", "VERSION", "install"]
