"""namoo: composable function transformations over trees of arrays.

`jit`, `grad`, `vmap` and `pmap` turn functions into functions and stack freely. Names and behaviour
are JAX's: `import namoo as jax, namoo.numpy as jnp`.

>>> import namoo, namoo.numpy as jnp
>>> loss = lambda w, x: jnp.sum((x @ w) ** 2)
>>> namoo.jit(namoo.grad(loss))(jnp.ones(2), jnp.eye(2))
Array([2., 2.], dtype=float32)
"""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "_config": (
        "check_tracer_leaks checking_leaks config debug_infs debug_key_reuse debug_nans "
        "default_device default_matmul_precision default_prng_impl disable_jit "
        "enable_checks enable_custom_prng enable_x64 explain_cache_misses legacy_prng_key "
        "log_compiles numpy_dtype_promotion numpy_rank_promotion softmax_custom_jvp strict "
        "threefry_partitionable transfer_guard transfer_guard_device_to_device "
        "transfer_guard_device_to_host transfer_guard_host_to_device"
    ),
    "_dtypes": "float0",
    "_module.filters": (
        "combine filter is_array is_array_like is_inexact_array is_inexact_array_like partition"
    ),
    "_module.module": "Module",
    "ad_checkpoint": ".",
    "api.device": (
        "block_until_ready copy_to_host_async cpu_devices default_backend device_count "
        "device_get device_put device_put_replicated device_put_sharded devices "
        "effects_barrier host_count=process_count host_id=process_index host_ids=process_indices "
        "live_arrays local_device_count local_devices process_count process_index process_indices"
    ),
    "api.grad": (
        "fwd_and_bwd grad hessian jacfwd jacobian jacrev jvp linear_transpose linearize "
        "value_and_grad vjp"
    ),
    "api.inspect": (
        "ensure_compile_time_eval eval_shape is_traced make_jaxpr named_call named_scope typeof"
    ),
    "api.jit": "clear_caches jit",
    "api.map": "pmap vmap",
    "api.mesh": "make_mesh",
    "api.shard_map": "shard_map smap",
    "api.placement": "Shard",
    "api.sharded": (
        "make_array_from_callback make_array_from_process_local_data "
        "make_array_from_single_device_arrays reshard"
    ),
    "checkpoints": ".",
    "control.callback": "pure_callback",
    "core": ".",
    "core.avals": "ShapeDtypeStruct",
    "custom_batching": ".",
    "custom_derivatives": ".",
    "data": ".",
    "debug": ".",
    "distributed": ".",
    "dlpack": ".",
    "dtypes": ".",
    "engines.base": "Device",
    "engines.native.threads": "get_num_threads set_num_threads",
    "errors": ". hide_frames",
    "example_libraries": ".",
    "experimental": ".",
    "extend": ".",
    "flatten_util": ".",
    "image": ".",
    "interpreters": ".",
    "lax": ".",
    "mixed": ".",
    "monitoring": ".",
    "nn": ".",
    "numpy": ".",
    "numpy._methods": "Array",
    "ops": ".",
    "optim": ".",
    "paths": "paths",
    "profiler": ".",
    "random": ".",
    "scipy": ".",
    "sharding": ". NamedSharding P=PartitionSpec set_mesh",
    "stages": ".",
    "struct": ".",
    "test_util": ".",
    "train": ".",
    "transforms.custom": "closure_convert custom_gradient custom_jvp custom_vjp",
    "transforms.remat": "checkpoint checkpoint_policies remat=checkpoint",
    "tree": ".",
    "tree_util": ".",
    "typing": ".",
    "version": ". __version__ __version_info__",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
