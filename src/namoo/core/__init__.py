"""The whole idea: abstract values, arrays, traces, primitives and programs.

Read in this order: `avals`, `array`, `trace`, `primitive`, `jaxpr`, `pretty`.

The names that JAX's `jax.core` has, or had, are here, too.
"""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "core.avals": "AbstractValue pytype_aval_mappings=aval_handlers ShapedArray",
    "core.jaxpr": (
        "Atom ClosedJaxpr DebugInfo DropVar Effect Effects eval_jaxpr Jaxpr "
        "jaxpr_as_fun JaxprEqn Literal no_effects Var"
    ),
    "analysis.reflection": (
        "check_jaxpr concrete_or_error ensure_compile_time_eval=eval_context eval_context "
        "find_top_trace gensym get_aval get_opaque_trace_state is_constant_dim jaxprs_in_params "
        "mapped_aval new_jaxpr_eqn nonempty_axis_env_DO_NOT_USE ParamDict "
        "primal_dtype_to_tangent_dtype subjaxprs unmapped_aval "
        "unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE "
        "unsafe_get_axis_names_DO_NOT_USE valid_jaxtype Value"
    ),
    "core.trace": "Trace Tracer",
    "errors": "JaxprTypeError",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
