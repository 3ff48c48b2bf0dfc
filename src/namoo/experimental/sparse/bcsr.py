"""`BCSR`, sparse matrices with compressed rows."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo import tree_util
from namoo._base.dtypes import canonicalize_dtype
from namoo.experimental.sparse import layout
from namoo.experimental.sparse.arrange import bcoo_broadcast_in_dim, bcoo_concatenate
from namoo.experimental.sparse.array import (
    BCOO,
    bcoo_dot_general,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
)
from namoo.experimental.sparse.base import JAXSparse


class BCSR(JAXSparse):
    """A sparse matrix, or a batch of them: elements by row, and the start of each row.

    Args:
        args: `(data, indices, indptr)`, of shapes `(*batch, nse, *dense)`, `(*batch, nse)` and
            `(*batch, rows + 1)`: the elements, their columns, and the index of the first element of
            each row.
        shape: the shape of the array.
        indices_sorted: whether the columns of each row are known to be in order.
        unique_indices: whether all indices are known to differ.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> M = BCSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 3.0]]))
        >>> M.indptr, M @ jnp.ones(2)
        (Array([0, 1, 3], dtype=int32), Array([1., 5.], dtype=float32))
    """

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(map(operator.index, shape))
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        fits = (
            self.indices.ndim >= 1
            and self.ndim == self.n_batch + 2 + self.n_dense
            and self.n_dense >= 0
            and self.indptr.shape[-1] == self.shape[self.n_batch] + 1
            and self.data.shape[self.n_batch] == self.nse
        )
        if not fits:
            raise ValueError(
                f"BCSR: data {self.data.shape}, indices {self.indices.shape} and indptr "
                f"{self.indptr.shape} do not fit the shape {self.shape}: they must be "
                "(*batch, nse, *dense), (*batch, nse) and (*batch, rows + 1)."
            )

    nse = property(lambda self: self.indices.shape[-1])
    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = 2
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32,
        n_dense: int = 0, n_batch: int = 0,
    ) -> BCSR:  # fmt: skip
        """Convert a dense matrix; see `bcsr_fromdense`."""
        return bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Convert an array of coordinates.

        Example:
            >>> from namoo.experimental.sparse import eye
            >>> BCSR.from_bcoo(eye(2)).indices
            Array([0, 1], dtype=int32)
        """
        if arr.n_sparse != 2:
            raise NotImplementedError(
                f"BCSR.from_bcoo: a BCSR has two sparse axes, the array has {arr.n_sparse}."
            )
        if not arr.indices_sorted:
            arr = bcoo_sort_indices(arr)
        data, indices = layout.full_batch(arr.data, arr.indices, arr.shape, arr.n_batch)
        rows = np.arange(arr.shape[arr.n_batch] + 1, dtype=np.dtype(indices.dtype))

        def starts(of_elements):
            return jnp.searchsorted(of_elements, rows).astype(indices.dtype)

        indptr = layout.over_batch(starts, arr.n_batch)(indices[..., 0])
        return cls(
            (data, indices[..., 1], indptr),
            shape=arr.shape,
            indices_sorted=True,
            unique_indices=arr.unique_indices,
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Convert a matrix of `scipy.sparse`.

        Example:
            >>> from namoo.experimental.sparse import eye
            >>> import scipy.sparse
            >>> BCSR.from_scipy_sparse(scipy.sparse.eye(2, dtype="float32")).nse
            2
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                "BCSR.from_scipy_sparse makes matrices: leave n_dense and n_batch at 0."
            )
        mat = mat.tocsr()
        dtype = canonicalize_dtype(index_dtype or np.int32)
        return cls(
            (
                jnp.asarray(mat.data),
                jnp.asarray(mat.indices).astype(dtype),
                jnp.asarray(mat.indptr).astype(dtype),
            ),
            shape=mat.shape,
        )

    def to_bcoo(self) -> BCOO:
        """Convert to an array of coordinates.

        Example:
            >>> BCSR.fromdense(jnp.eye(2)).to_bcoo().indices
            Array([[0, 0],
                   [1, 1]], dtype=int32)
        """

        def rows(indptr):
            positions = np.arange(self.nse)
            return jnp.searchsorted(indptr, positions, side="right").astype(indptr.dtype) - 1

        batch = self.shape[: self.n_batch]
        indptr = jnp.broadcast_to(self.indptr, (*batch, self.indptr.shape[-1]))
        columns = jnp.broadcast_to(self.indices, (*batch, self.nse))
        # Elements after the last row are padding: their row index is out of bounds.
        row = layout.over_batch(rows, self.n_batch)(indptr).astype(columns.dtype)
        return BCOO(
            (self.data, jnp.stack([row, columns], -1)),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def todense(self) -> Any:
        """Return the dense array; elements at equal indices are added."""
        return bcsr_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Add elements at equal indices, and sort."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        """Raise `NotImplementedError`, as in JAX: rows are stored together, columns are not."""
        raise NotImplementedError(
            "BCSR.transpose: rows are stored together, not columns; use .to_bcoo().transpose()."
        )

    T = property(transpose)

    def __getitem__(self, index: Any) -> Any:
        return _as_bcsr(self.to_bcoo()[index])

    def __matmul__(self, other: Any) -> Any:
        other = other.to_bcoo() if isinstance(other, BCSR) else other
        return _as_bcsr(self.to_bcoo() @ other)

    def __rmatmul__(self, other: Any) -> Any:
        return _as_bcsr(other @ self.to_bcoo())


def _as_bcsr(x: Any) -> Any:
    return BCSR.from_bcoo(x) if isinstance(x, BCOO) and x.n_sparse == 2 else x


def _unflatten(aux: tuple, children: Any) -> BCSR:
    mat = object.__new__(BCSR)
    mat.data, mat.indices, mat.indptr = children
    mat.shape, mat.indices_sorted, mat.unique_indices = aux
    return mat


tree_util.register_pytree_with_keys(
    BCSR,
    lambda m: (
        tuple((tree_util.GetAttrKey(n), getattr(m, n)) for n in ("data", "indices", "indptr")),
        (m.shape, m.indices_sorted, m.unique_indices),
    ),
    _unflatten,
)


def bcsr_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCSR:
    """Return a sparse matrix with the nonzero elements of a dense one.

    Args:
        mat: the dense array, with two axes besides batch and dense ones.
        nse: how many elements to store; counted by default, which is not possible under `jit`.
        n_batch: how many leading axes are batch axes.
        n_dense: the number of trailing axes that are stored densely.
        index_dtype: the type of the indices.

    Example:
        >>> bcsr_fromdense(jnp.array([[0.0, 3.0]])).indices
        Array([1], dtype=int32)
    """
    if jnp.ndim(mat) != n_batch + 2 + n_dense:
        raise ValueError(
            f"bcsr_fromdense: n_batch={n_batch} and n_dense={n_dense} leave "
            f"{jnp.ndim(mat) - n_batch - n_dense} sparse axes of shape {jnp.shape(mat)}; two are "
            "needed."
        )
    return BCSR.from_bcoo(
        bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    )


def bcsr_todense(mat: BCSR) -> Any:
    """Return the dense array; elements at equal indices are added.

    Example:
        >>> bcsr_todense(bcsr_fromdense(jnp.array([[0.0, 3.0]])))
        Array([[0., 3.]], dtype=float32)
    """
    return mat.to_bcoo().todense()


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """Return the elements of a dense matrix at the indices of a sparse one.

    Example:
        >>> M = bcsr_fromdense(jnp.eye(2))
        >>> bcsr_extract(M.indices, M.indptr, jnp.arange(4.0).reshape(2, 2))
        Array([0., 3.], dtype=float32)
    """
    mat = jnp.asarray(mat)
    dense = mat.shape[jnp.ndim(indices) + 1 :]
    zeros = jnp.zeros((*jnp.shape(indices), *dense), mat.dtype)
    positions = BCSR((zeros, indices, indptr), shape=mat.shape)
    return bcoo_extract(positions.to_bcoo(), mat).data


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Compute the general dot product of a sparse matrix and a dense array.

    Example:
        >>> M = bcsr_fromdense(jnp.eye(2))
        >>> bcsr_dot_general(M, jnp.arange(2.0), dimension_numbers=(((1,), (0,)), ((), ())))
        Array([0., 1.], dtype=float32)
    """
    operands = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    return _as_bcsr(
        bcoo_dot_general(
            *operands,
            dimension_numbers=dimension_numbers,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    )


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Add elements at equal indices, and sort by index.

    Example:
        >>> bcsr_sum_duplicates(bcsr_fromdense(jnp.eye(2)), nse=2).data
        Array([1., 1.], dtype=float32)
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Concatenate sparse matrices along an axis.

    Example:
        >>> bcsr_concatenate([bcsr_fromdense(jnp.eye(1))] * 2, dimension=0).todense()
        Array([[1.],
               [1.]], dtype=float32)
    """
    return BCSR.from_bcoo(bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> BCSR:
    """Broadcast sparse matrices along new batch or dense axes, like `lax.broadcast_in_dim`.

    Example:
        >>> M = bcsr_fromdense(jnp.eye(2)[None], n_batch=1)
        >>> bcsr_broadcast_in_dim(M, shape=(3, 2, 2), broadcast_dimensions=(0, 1, 2)).shape
        (3, 2, 2)
    """
    return BCSR.from_bcoo(
        bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    )
