"""The parts of `jax._src` that libraries built on JAX use.

For most private modules of JAX, a public module of namoo has the same names; `PUBLIC` maps them.
The others are files in this folder.
"""

import importlib
from types import ModuleType

PUBLIC = {
    "ad_checkpoint": "namoo.ad_checkpoint",
    "api": "namoo",
    "array": "namoo.compat.private.core",
    "callback": "namoo.experimental",
    "config": "namoo._base.config",
    "custom_batching": "namoo.custom_batching",
    "custom_derivatives": "namoo.custom_derivatives",
    "debugging": "namoo.debug",
    "dlpack": "namoo.dlpack",
    "flatten_util": "namoo.flatten_util",
    "interpreters": "namoo.interpreters",
    "interpreters.ad": "namoo.interpreters.ad",
    "interpreters.batching": "namoo.interpreters.batching",
    "interpreters.mlir": "namoo.interpreters.mlir",
    "interpreters.partial_eval": "namoo.interpreters.partial_eval",
    "interpreters.pxla": "namoo.interpreters.pxla",
    "lax": "namoo.lax",
    "lax.control_flow": "namoo.lax",
    "lax.lax": "namoo.lax",
    "lax.linalg": "namoo.lax.linalg",
    "lax.parallel": "namoo.lax",
    "lax.slicing": "namoo.lax",
    "linear_util": "namoo.extend.linear_util",
    "mesh": "namoo.sharding",
    "monitoring": "namoo.monitoring",
    "nn": "namoo.nn",
    "numpy": "namoo.numpy",
    "numpy.lax_numpy": "namoo.numpy",
    "numpy.util": "namoo.numpy",
    "ops": "namoo.ops",
    "profiler": "namoo.profiler",
    "random": "namoo.random",
    "scipy": "namoo.scipy",
    "shard_map": "namoo",
    "sharding": "namoo.sharding",
    "sharding_impls": "namoo.sharding",
    "stages": "namoo.stages",
    "test_util": "namoo.compat.private.public_test_util",
    "tree": "namoo.tree",
    "typing": "namoo.typing",
    "version": "namoo.version",
}
"""Names of modules in `jax._src`, and the modules of namoo that stand in for them."""


def __getattr__(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"jax._src.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"jax._src.{name}":
            raise
    raise AttributeError(f"namoo has no stand-in for jax._src.{name}.")
