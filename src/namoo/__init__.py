"""namoo: composable function transformations over trees of arrays.

`jit`, `grad`, `vmap` and `pmap` turn functions into functions and stack freely. Names and behaviour
are JAX's: `import namoo as jax, namoo.numpy as jnp`.

Example:
    >>> import namoo, namoo.numpy as jnp
    >>> loss = lambda w, x: jnp.sum((x @ w) ** 2)
    >>> namoo.jit(namoo.grad(loss))(jnp.ones(2), jnp.eye(2))
    Array([2., 2.], dtype=float32)
"""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "_base.config": (
        "check_tracer_leaks checking_leaks config debug_infs debug_key_reuse debug_nans "
        "default_device default_matmul_precision default_prng_impl disable_jit "
        "enable_checks enable_custom_prng enable_x64 explain_cache_misses legacy_prng_key "
        "log_compiles no_execution no_tracing numpy_dtype_promotion numpy_rank_promotion "
        "softmax_custom_jvp strict threefry_partitionable transfer_guard "
        "transfer_guard_device_to_device transfer_guard_device_to_host "
        "transfer_guard_host_to_device"
    ),
    "_base.dtypes": "float0",
    "_base.user_context": "make_user_context",
    "api.environment": "print_environment_info",
    "memo.caches": "clear_caches memory_report",
    "module.filters": (
        "combine filter is_array is_array_like is_inexact_array is_inexact_array_like partition"
    ),
    "module.module": "Module",
    "ad": ".",
    "ad_checkpoint": ".",
    "devices.available": (
        "cpu_devices default_backend device_count devices host_count=process_count "
        "host_id=process_index host_ids=process_indices local_device_count local_devices "
        "process_count process_index process_indices"
    ),
    "devices.constraints": "reshard",
    "devices.device_put": (
        "block_until_ready copy_to_host_async device_get device_put device_put_replicated "
        "device_put_sharded effects_barrier live_arrays"
    ),
    "api.grad": "fwd_and_bwd grad jvp linear_transpose linearize value_and_grad vjp",
    "api.inspect": (
        "ensure_compile_time_eval eval_shape is_traced make_jaxpr named_call named_scope typeof"
    ),
    "inspect.report": "inspect",
    "api.jacobians": "hessian jacfwd jacobian jacrev",
    "api.jit": "jit",
    "api.trace_counts": "explain max_traces",
    "api.map": "vmap",
    "devices.mesh": "make_mesh",
    "devices.pmap": "pmap",
    "devices.shard_map": "shard_map smap",
    "devices.placed_array": "Shard",
    "devices.make_array": (
        "make_array_from_callback make_array_from_process_local_data "
        "make_array_from_single_device_arrays"
    ),
    "api_util": ".",
    "checkpoints": ".",
    "control.callback": "pure_callback",
    "control.check": "check",
    "control.foreign_call": "native_call",
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
    "engines.native.link.threads": "get_num_threads set_num_threads",
    "_base.source_context": "hide_frames",
    "errors": ".",
    "example_libraries": ".",
    "experimental": ".",
    "export": ".",
    "extend": ".",
    "ffi": ".",
    "flatten_util": ".",
    "image": ".",
    "lib": ".",
    "interpreters": ".",
    "lax": ".",
    "mixed": ".",
    "monitoring": ".",
    "nn": ".",
    "numpy": ".",
    "numpy._methods": "Array",
    "ops": ".",
    "optim": ".",
    "tree.paths": "paths",
    "profiler": ".",
    "random": ".",
    "ref": ".",
    "scipy": ".",
    "sharding": ". NamedSharding P=PartitionSpec set_mesh",
    "stages": ".",
    "struct": ".",
    "test_util": ".",
    "train": ".",
    "transforms.custom": "closure_convert custom_gradient custom_jvp custom_vjp",
    "transforms.refs": "Ref empty_ref free_ref freeze new_ref",
    "transforms.remat": "checkpoint checkpoint_policies remat=checkpoint",
    "tree": ".",
    "tree_util": ".",
    "typing": ".",
    "version": ". __version__ __version_info__",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
