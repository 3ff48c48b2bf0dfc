"""`namoo.lax`: the primitive operations by their public names.

The names that come from a module in `primitives/` are its `__all__`.
"""

from namoo._base.lazy import lazy as _lazily
from namoo._base.public_names import PUBLIC as _PUBLIC

_TABLE = {
    "api.grad": "stop_gradient",
    "api.jit": "composite",
    "devices.constraints": "with_sharding_constraint",
    "control.collective_primitives": (
        "all_gather_p all_to_all_p axis_index_p pmax_p pmin_p ppermute_p psum_p"
    ),
    "control.collectives": (
        "all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute "
        "pshuffle psum psum_scatter pswapaxes ragged_all_to_all"
    ),
    "control.cond": "cond cond_p platform_dependent switch",
    "control.loops": "associative_scan fori_loop map scan while_loop",
    "control.reduce": "reduce reduce_p reduce_window reduce_window_p",
    "control.scan": "scan_p",
    "control.scatter_apply": "scatter_apply",
    "control.solves": "custom_linear_solve custom_root linear_solve_p",
    "control.while_loop": "while_p",
    "lax.linalg": ".",
    **_PUBLIC["primitives"],
    **_PUBLIC["primitives.random"],
    **_PUBLIC["primitives.special"],
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
