"""Programs and the operations in them, and operations of one's own."""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "control.call": "call_impl CallPrimitive",
    "core.jaxpr": (
        "check_jaxpr ClosedJaxpr DebugInfo DropVar Effect Effects Jaxpr jaxpr_as_fun JaxprEqn "
        "Literal no_effects Var"
    ),
    "core.reflection": (
        "AbstractToken array_types concrete_or_error find_top_trace gensym get_opaque_trace_state "
        "InconclusiveDimensionOperation jaxprs_in_params set_current_trace take_current_trace "
        "Token TraceTag "
        "mapped_aval new_jaxpr_eqn nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype "
        "subjaxprs unmapped_aval unsafe_am_i_under_a_jit_DO_NOT_USE "
        "unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE valid_jaxtype"
    ),
    "errors": "JaxprTypeError",
    "extend.core.primitives": ".",
    "extend.primitive": "Primitive",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
