"""Arithmetic, types, randomness and states of trees.

`namoo.optim.tree` has the same functions without `tree_`.
"""

from namoo._lazy import lazy as _lazily

_TABLE = {
    "optim.tree_utils.arithmetic": (
        "tree_add tree_add_scale tree_allclose tree_batch_shape tree_bias_correction tree_clip "
        "tree_conj tree_div tree_full_like tree_max tree_min tree_mul tree_norm tree_ones_like "
        "tree_real tree_scale tree_size tree_sub tree_sum tree_update_infinity_moment "
        "tree_update_moment tree_update_moment_per_elem_norm tree_vdot tree_where tree_zeros_like"
    ),
    "optim.tree_utils.casting": "tree_cast tree_cast_like tree_dtype",
    "optim.tree_utils.randoms": "tree_random_like tree_split_key_like tree_unwrap_random_key_data",
    "optim.tree_utils.states": (
        "NamedTupleKey tree_get tree_get_all_with_path tree_map_params tree_set"
    ),
}

__getattr__, __dir__ = _lazily(__name__, _TABLE)
