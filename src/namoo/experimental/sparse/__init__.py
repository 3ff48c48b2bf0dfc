"""Sparse arrays: `BCOO` (coordinates) and `BCSR` (compressed rows).

Example:
    >>> import namoo.numpy as jnp
    >>> M = BCOO.fromdense(jnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> M
    BCOO(float32[2, 3], nse=3)
    >>> M @ jnp.ones(3)
    Array([1., 5.], dtype=float32)
"""

from namoo._base.source_context import make_entry_points as _guard
from namoo.experimental.sparse import linalg
from namoo.experimental.sparse.arrange import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dot_general_sampled,
    bcoo_dynamic_slice,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    random_bcoo,
)
from namoo.experimental.sparse.array import (
    BCOO,
    bcoo_dot_general,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
    empty,
    eye,
    todense,
)
from namoo.experimental.sparse.base import JAXSparse
from namoo.experimental.sparse.bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from namoo.experimental.sparse.relayout import (
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    bcoo_update_layout,
)
from namoo.experimental.sparse.transform import grad, sparsify, value_and_grad

__all__ = [
    "BCOO",
    "BCSR",
    "JAXSparse",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "empty",
    "eye",
    "grad",
    "linalg",
    "random_bcoo",
    "sparsify",
    "todense",
    "value_and_grad",
]
__dir__ = __all__.copy

_guard(globals())
