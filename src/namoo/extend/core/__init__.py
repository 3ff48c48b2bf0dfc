"""Programs, their primitives, and user-defined primitives."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "control.call": "call_impl CallPrimitive",
    "core.jaxpr": (
        "ClosedJaxpr DebugInfo DropVar Effect Effects Jaxpr jaxpr_as_fun JaxprEqn Literal "
        "no_effects Var"
    ),
    "analysis.reflection": (
        "AbstractToken array_types check_jaxpr concrete_or_error find_top_trace gensym "
        "get_opaque_trace_state InconclusiveDimensionOperation jaxprs_in_params mapped_aval "
        "new_jaxpr_eqn nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype "
        "set_current_trace subjaxprs take_current_trace Token TraceTag unmapped_aval "
        "unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE "
        "unsafe_get_axis_names_DO_NOT_USE valid_jaxtype"
    ),
    "errors": "JaxprTypeError",
    "extend.core.primitives": ".",
    "extend.primitive": "Primitive",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
