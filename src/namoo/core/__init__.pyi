from namoo.analysis.reflection import ParamDict as ParamDict
from namoo.analysis.reflection import Value as Value
from namoo.analysis.reflection import check_jaxpr as check_jaxpr
from namoo.analysis.reflection import concrete_or_error as concrete_or_error
from namoo.analysis.reflection import eval_context as eval_context
from namoo.analysis.reflection import find_top_trace as find_top_trace
from namoo.analysis.reflection import gensym as gensym
from namoo.analysis.reflection import get_aval as get_aval
from namoo.analysis.reflection import get_opaque_trace_state as get_opaque_trace_state
from namoo.analysis.reflection import is_constant_dim as is_constant_dim
from namoo.analysis.reflection import jaxprs_in_params as jaxprs_in_params
from namoo.analysis.reflection import mapped_aval as mapped_aval
from namoo.analysis.reflection import new_jaxpr_eqn as new_jaxpr_eqn
from namoo.analysis.reflection import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from namoo.analysis.reflection import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from namoo.analysis.reflection import subjaxprs as subjaxprs
from namoo.analysis.reflection import unmapped_aval as unmapped_aval
from namoo.analysis.reflection import (
    unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE,
)
from namoo.analysis.reflection import (
    unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE,
)
from namoo.analysis.reflection import (
    unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE,
)
from namoo.analysis.reflection import valid_jaxtype as valid_jaxtype
from namoo.core.avals import AbstractValue as AbstractValue
from namoo.core.avals import ShapedArray as ShapedArray
from namoo.core.avals import aval_handlers
from namoo.core.jaxpr import Atom as Atom
from namoo.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from namoo.core.jaxpr import DebugInfo as DebugInfo
from namoo.core.jaxpr import DropVar as DropVar
from namoo.core.jaxpr import Effect as Effect
from namoo.core.jaxpr import Effects as Effects
from namoo.core.jaxpr import Jaxpr as Jaxpr
from namoo.core.jaxpr import JaxprEqn as JaxprEqn
from namoo.core.jaxpr import Literal as Literal
from namoo.core.jaxpr import Var as Var
from namoo.core.jaxpr import eval_jaxpr as eval_jaxpr
from namoo.core.jaxpr import jaxpr_as_fun as jaxpr_as_fun
from namoo.core.jaxpr import no_effects as no_effects
from namoo.core.trace import Trace as Trace
from namoo.core.trace import Tracer as Tracer
from namoo.errors import JaxprTypeError as JaxprTypeError

_TABLE: dict[str, str]
ensure_compile_time_eval = eval_context
pytype_aval_mappings = aval_handlers
