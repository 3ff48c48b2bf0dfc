"""The functions of `namoo.optim.tree_utils` by their short names.

>>> from namoo.optim import tree
>>> tree.add({"a": 1.0}, {"a": 2.0})
{'a': 3.0}
"""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "optim.tree_utils.arithmetic": (
        "add=tree_add add_scale=tree_add_scale allclose=tree_allclose "
        "batch_shape=tree_batch_shape bias_correction=tree_bias_correction clip=tree_clip "
        "conj=tree_conj div=tree_div full_like=tree_full_like max=tree_max min=tree_min "
        "mul=tree_mul norm=tree_norm ones_like=tree_ones_like real=tree_real scale=tree_scale "
        "size=tree_size sub=tree_sub sum=tree_sum "
        "update_infinity_moment=tree_update_infinity_moment update_moment=tree_update_moment "
        "update_moment_per_elem_norm=tree_update_moment_per_elem_norm vdot=tree_vdot "
        "where=tree_where zeros_like=tree_zeros_like"
    ),
    "optim.tree_utils.casting": ("cast=tree_cast cast_like=tree_cast_like dtype=tree_dtype"),
    "optim.tree_utils.randoms": (
        "random_like=tree_random_like split_key_like=tree_split_key_like "
        "unwrap_random_key_data=tree_unwrap_random_key_data"
    ),
    "optim.tree_utils.states": (
        "get=tree_get get_all_with_path=tree_get_all_with_path map_params=tree_map_params "
        "set=tree_set"
    ),
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
