from namoo.optim.tree_utils.casting import tree_cast as tree_cast
from namoo.optim.tree_utils.casting import tree_cast_like as tree_cast_like
from namoo.optim.tree_utils.casting import tree_dtype as tree_dtype
from namoo.optim.tree_utils.random import tree_random_like as tree_random_like
from namoo.optim.tree_utils.random import tree_split_key_like as tree_split_key_like
from namoo.optim.tree_utils.random import tree_unwrap_random_key_data as tree_unwrap_random_key_data
from namoo.optim.tree_utils.state_utils import NamedTupleKey as NamedTupleKey
from namoo.optim.tree_utils.state_utils import tree_get as tree_get
from namoo.optim.tree_utils.state_utils import tree_get_all_with_path as tree_get_all_with_path
from namoo.optim.tree_utils.state_utils import tree_map_params as tree_map_params
from namoo.optim.tree_utils.state_utils import tree_set as tree_set
from namoo.optim.tree_utils.tree_math import tree_add as tree_add
from namoo.optim.tree_utils.tree_math import tree_add_scale as tree_add_scale
from namoo.optim.tree_utils.tree_math import tree_allclose as tree_allclose
from namoo.optim.tree_utils.tree_math import tree_batch_shape as tree_batch_shape
from namoo.optim.tree_utils.tree_math import tree_bias_correction as tree_bias_correction
from namoo.optim.tree_utils.tree_math import tree_clip as tree_clip
from namoo.optim.tree_utils.tree_math import tree_conj as tree_conj
from namoo.optim.tree_utils.tree_math import tree_div as tree_div
from namoo.optim.tree_utils.tree_math import tree_full_like as tree_full_like
from namoo.optim.tree_utils.tree_math import tree_max as tree_max
from namoo.optim.tree_utils.tree_math import tree_min as tree_min
from namoo.optim.tree_utils.tree_math import tree_mul as tree_mul
from namoo.optim.tree_utils.tree_math import tree_norm as tree_norm
from namoo.optim.tree_utils.tree_math import tree_ones_like as tree_ones_like
from namoo.optim.tree_utils.tree_math import tree_real as tree_real
from namoo.optim.tree_utils.tree_math import tree_scale as tree_scale
from namoo.optim.tree_utils.tree_math import tree_size as tree_size
from namoo.optim.tree_utils.tree_math import tree_sub as tree_sub
from namoo.optim.tree_utils.tree_math import tree_sum as tree_sum
from namoo.optim.tree_utils.tree_math import (
    tree_update_infinity_moment as tree_update_infinity_moment,
)
from namoo.optim.tree_utils.tree_math import tree_update_moment as tree_update_moment
from namoo.optim.tree_utils.tree_math import (
    tree_update_moment_per_elem_norm as tree_update_moment_per_elem_norm,
)
from namoo.optim.tree_utils.tree_math import tree_vdot as tree_vdot
from namoo.optim.tree_utils.tree_math import tree_where as tree_where
from namoo.optim.tree_utils.tree_math import tree_zeros_like as tree_zeros_like

_TABLE: dict[str, str]
