"""Sparse arrays: `BCOO`, an array as a list of its elements and their indices.

>>> import namoo.numpy as jnp
>>> M = BCOO.fromdense(jnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
>>> M
BCOO(float32[2, 3], nse=3)
>>> M @ jnp.ones(3)
Array([1., 5.], dtype=float32)
"""

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
