from namoo.optim.tree_utils.casting import tree_cast, tree_cast_like, tree_dtype
from namoo.optim.tree_utils.random import (
    tree_random_like,
    tree_split_key_like,
    tree_unwrap_random_key_data,
)
from namoo.optim.tree_utils.state_utils import (
    tree_get,
    tree_get_all_with_path,
    tree_map_params,
    tree_set,
)
from namoo.optim.tree_utils.tree_math import (
    tree_add,
    tree_add_scale,
    tree_allclose,
    tree_batch_shape,
    tree_bias_correction,
    tree_clip,
    tree_conj,
    tree_div,
    tree_full_like,
    tree_max,
    tree_min,
    tree_mul,
    tree_norm,
    tree_ones_like,
    tree_real,
    tree_scale,
    tree_size,
    tree_sub,
    tree_sum,
    tree_update_infinity_moment,
    tree_update_moment,
    tree_update_moment_per_elem_norm,
    tree_vdot,
    tree_where,
    tree_zeros_like,
)

_TABLE: dict[str, str]
add = tree_add
add_scale = tree_add_scale
allclose = tree_allclose
batch_shape = tree_batch_shape
bias_correction = tree_bias_correction
cast = tree_cast
cast_like = tree_cast_like
clip = tree_clip
conj = tree_conj
div = tree_div
dtype = tree_dtype
full_like = tree_full_like
get = tree_get
get_all_with_path = tree_get_all_with_path
map_params = tree_map_params
max = tree_max
min = tree_min
mul = tree_mul
norm = tree_norm
ones_like = tree_ones_like
random_like = tree_random_like
real = tree_real
scale = tree_scale
set = tree_set
size = tree_size
split_key_like = tree_split_key_like
sub = tree_sub
sum = tree_sum
unwrap_random_key_data = tree_unwrap_random_key_data
update_infinity_moment = tree_update_infinity_moment
update_moment = tree_update_moment
update_moment_per_elem_norm = tree_update_moment_per_elem_norm
vdot = tree_vdot
where = tree_where
zeros_like = tree_zeros_like
