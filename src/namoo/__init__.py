"""namoo: composable function transformations over trees of arrays.

`jit`, `grad`, `vmap` and `pmap` turn functions into functions and stack freely. Names and behaviour
are JAX's: `import namoo as jax, namoo.numpy as jnp`.

>>> import namoo, namoo.numpy as jnp
>>> loss = lambda w, x: jnp.sum((x @ w) ** 2)
>>> namoo.jit(namoo.grad(loss))(jnp.ones(2), jnp.eye(2))
Array([2., 2.], dtype=float32)
"""

import importlib
from typing import Any

from namoo import dtypes as dtypes
from namoo import errors as errors
from namoo import numpy as numpy
from namoo import tree as tree
from namoo import tree_util as tree_util
from namoo._config import checking_leaks as checking_leaks
from namoo._config import config as config
from namoo._config import debug_infs as debug_infs
from namoo._config import debug_key_reuse as debug_key_reuse
from namoo._config import debug_nans as debug_nans
from namoo._config import default_device as default_device
from namoo._config import default_matmul_precision as default_matmul_precision
from namoo._config import default_prng_impl as default_prng_impl
from namoo._config import disable_jit as disable_jit
from namoo._config import enable_checks as enable_checks
from namoo._config import enable_custom_prng as enable_custom_prng
from namoo._config import enable_x64 as enable_x64
from namoo._config import explain_cache_misses as explain_cache_misses
from namoo._config import legacy_prng_key as legacy_prng_key
from namoo._config import log_compiles as log_compiles
from namoo._config import numpy_dtype_promotion as numpy_dtype_promotion
from namoo._config import numpy_rank_promotion as numpy_rank_promotion
from namoo._config import softmax_custom_jvp as softmax_custom_jvp
from namoo._config import threefry_partitionable as threefry_partitionable
from namoo._config import transfer_guard as transfer_guard
from namoo._config import transfer_guard_device_to_device as transfer_guard_device_to_device
from namoo._config import transfer_guard_device_to_host as transfer_guard_device_to_host
from namoo._config import transfer_guard_host_to_device as transfer_guard_host_to_device
from namoo._dtypes import float0 as float0
from namoo.api.device import block_until_ready as block_until_ready
from namoo.api.device import copy_to_host_async as copy_to_host_async
from namoo.api.device import default_backend as default_backend
from namoo.api.device import device_count as device_count
from namoo.api.device import device_get as device_get
from namoo.api.device import device_put as device_put
from namoo.api.device import device_put_replicated as device_put_replicated
from namoo.api.device import devices as devices
from namoo.api.device import effects_barrier as effects_barrier
from namoo.api.device import live_arrays as live_arrays
from namoo.api.device import local_device_count as local_device_count
from namoo.api.device import local_devices as local_devices
from namoo.api.device import process_count as process_count
from namoo.api.device import process_index as process_index
from namoo.api.device import process_indices as process_indices
from namoo.api.grad import fwd_and_bwd as fwd_and_bwd
from namoo.api.grad import grad as grad
from namoo.api.grad import hessian as hessian
from namoo.api.grad import jacfwd as jacfwd
from namoo.api.grad import jacobian as jacobian
from namoo.api.grad import jacrev as jacrev
from namoo.api.grad import jvp as jvp
from namoo.api.grad import linear_transpose as linear_transpose
from namoo.api.grad import linearize as linearize
from namoo.api.grad import value_and_grad as value_and_grad
from namoo.api.grad import vjp as vjp
from namoo.api.inspect import ensure_compile_time_eval as ensure_compile_time_eval
from namoo.api.inspect import eval_shape as eval_shape
from namoo.api.inspect import is_traced as is_traced
from namoo.api.inspect import make_jaxpr as make_jaxpr
from namoo.api.inspect import named_call as named_call
from namoo.api.inspect import named_scope as named_scope
from namoo.api.inspect import typeof as typeof
from namoo.api.jit import clear_caches as clear_caches
from namoo.api.jit import jit as jit
from namoo.api.map import pmap as pmap
from namoo.api.map import vmap as vmap
from namoo.control.callback import pure_callback as pure_callback
from namoo.core.array import Array as Array
from namoo.core.avals import ShapeDtypeStruct as ShapeDtypeStruct
from namoo.engines.base import Device as Device
from namoo.errors import hide_frames as hide_frames
from namoo.paths import paths as paths
from namoo.transforms.custom import closure_convert as closure_convert
from namoo.transforms.custom import custom_gradient as custom_gradient
from namoo.transforms.custom import custom_jvp as custom_jvp
from namoo.transforms.custom import custom_vjp as custom_vjp
from namoo.transforms.remat import checkpoint as checkpoint
from namoo.transforms.remat import checkpoint_policies as checkpoint_policies

__version__ = "0.1.0"

# Other names for the same functions.
host_count, host_id, host_ids = process_count, process_index, process_indices
remat = checkpoint

# Namespaces that are loaded when they are first used.
_LAZY = (
    "ad_checkpoint",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "dlpack",
    "example_libraries",
    "experimental",
    "flatten_util",
    "image",
    "lax",
    "nn",
    "ops",
    "random",
    "scipy",
    "stages",
    "typing",
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"namoo.{name}")
    raise AttributeError(f"module 'namoo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
