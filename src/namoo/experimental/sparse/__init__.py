"""Sparse arrays: `BCOO` (coordinates) and `BCSR` (compressed rows).

Example:
    >>> import namoo.numpy as jnp
    >>> M = BCOO.fromdense(jnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> M
    BCOO(float32[2, 3], nse=3)
    >>> M @ jnp.ones(3)
    Array([1., 5.], dtype=float32)
"""

from namoo.experimental.sparse.arrange import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from namoo.experimental.sparse.arrange import bcoo_concatenate as bcoo_concatenate
from namoo.experimental.sparse.arrange import bcoo_dot_general_sampled as bcoo_dot_general_sampled
from namoo.experimental.sparse.arrange import bcoo_dynamic_slice as bcoo_dynamic_slice
from namoo.experimental.sparse.arrange import bcoo_rev as bcoo_rev
from namoo.experimental.sparse.arrange import bcoo_slice as bcoo_slice
from namoo.experimental.sparse.arrange import bcoo_squeeze as bcoo_squeeze
from namoo.experimental.sparse.arrange import random_bcoo as random_bcoo
from namoo.experimental.sparse.array import BCOO as BCOO
from namoo.experimental.sparse.array import bcoo_dot_general as bcoo_dot_general
from namoo.experimental.sparse.array import bcoo_extract as bcoo_extract
from namoo.experimental.sparse.array import bcoo_fromdense as bcoo_fromdense
from namoo.experimental.sparse.array import bcoo_multiply_dense as bcoo_multiply_dense
from namoo.experimental.sparse.array import bcoo_multiply_sparse as bcoo_multiply_sparse
from namoo.experimental.sparse.array import bcoo_reduce_sum as bcoo_reduce_sum
from namoo.experimental.sparse.array import bcoo_reshape as bcoo_reshape
from namoo.experimental.sparse.array import bcoo_sort_indices as bcoo_sort_indices
from namoo.experimental.sparse.array import bcoo_sum_duplicates as bcoo_sum_duplicates
from namoo.experimental.sparse.array import bcoo_todense as bcoo_todense
from namoo.experimental.sparse.array import bcoo_transpose as bcoo_transpose
from namoo.experimental.sparse.array import empty as empty
from namoo.experimental.sparse.array import eye as eye
from namoo.experimental.sparse.array import todense as todense
from namoo.experimental.sparse.base import JAXSparse as JAXSparse
from namoo.experimental.sparse.bcsr import BCSR as BCSR
from namoo.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from namoo.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from namoo.experimental.sparse.bcsr import bcsr_dot_general as bcsr_dot_general
from namoo.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from namoo.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from namoo.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from namoo.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from namoo.experimental.sparse.transform import grad as grad
from namoo.experimental.sparse.transform import sparsify as sparsify
from namoo.experimental.sparse.transform import value_and_grad as value_and_grad
