"""`BCOO`, sparse arrays stored as coordinates, and their operations."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo import lax, tree_util
from namoo import numpy as jnp
from namoo._base.dtypes import canonicalize_dtype
from namoo.core.trace import Tracer
from namoo.experimental.sparse import layout
from namoo.experimental.sparse.base import JAXSparse
from namoo.experimental.sparse.layout import Shape


class BCOO(JAXSparse):
    """A sparse array: a list of elements (`data`) and their coordinates (`indices`).

    The leading `n_batch` axes are stored separately for each example, the trailing `n_dense` axes
    are stored densely, and the others are sparse. A BCOO is a tree of two arrays.

    Args:
        args: the pair `(data, indices)`, of shapes `(*batch, nse, *dense)` and `(*batch, nse, k)`.
        shape: the shape of the array.
        indices_sorted: whether the indices are known to be in order.
        unique_indices: whether all indices are known to differ.

    Raises:
        ValueError: the shapes do not fit.

    Example:
        >>> M = BCOO((jnp.array([5.0]), jnp.array([[0, 1]])), shape=(1, 2))
        >>> M.todense()
        Array([[0., 5.]], dtype=float32)
    """

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices = map(jnp.asarray, args)
        self.shape: Shape = tuple(map(operator.index, shape))
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        layout.check_parts(self.data, self.indices, self.shape)

    nse = property(lambda self: self.indices.shape[-2])
    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32,
        n_dense: int = 0, n_batch: int = 0,
    ) -> BCOO:  # fmt: skip
        """Convert a dense array; see `bcoo_fromdense`.

        Example:
            >>> BCOO.fromdense(jnp.eye(3)).nse
            3
        """
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Convert a matrix of `scipy.sparse`.

        Example:
            >>> import scipy.sparse
            >>> BCOO.from_scipy_sparse(scipy.sparse.eye(3, dtype="float32")).todense()[0]
            Array([1., 0., 0.], dtype=float32)
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                "BCOO.from_scipy_sparse makes arrays whose axes are all sparse: leave n_dense and "
                "n_batch at 0."
            )
        mat = mat.tocoo()
        indices = jnp.asarray(np.column_stack((mat.row, mat.col)))
        indices = indices.astype(canonicalize_dtype(index_dtype or np.int32))
        return cls((jnp.asarray(mat.data), indices), shape=mat.shape)

    def todense(self) -> Any:
        """Return the dense array; elements at equal indices are added.

        Example:
            >>> eye(2).todense()
            Array([[1., 0.],
                   [0., 1.]], dtype=float32)
        """
        return bcoo_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Add elements at equal indices, and sort; see `bcoo_sum_duplicates`.

        Args:
            nse: how many elements to keep; counted by default.
            remove_zeros: leave out elements that are zero.

        Example:
            >>> M = BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(3,))
            >>> M.sum_duplicates().data
            Array([3.], dtype=float32)
        """
        return bcoo_sum_duplicates(_without_zeros(self) if remove_zeros else self, nse=nse)

    def sort_indices(self) -> BCOO:
        """Return the array with its elements sorted by index.

        Example:
            >>> BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [0]])), shape=(3,)).sort_indices().data
            Array([2., 1.], dtype=float32)
        """
        return bcoo_sort_indices(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Permute the axes, within batch, sparse and dense ones; by default, reverse them.

        Example:
            >>> BCOO.fromdense(jnp.ones((2, 3))).transpose().shape
            (3, 2)
        """
        permutation = range(self.ndim)[::-1] if axes is None else axes
        return bcoo_transpose(self, permutation=permutation)

    def reshape(self, *shape: Any) -> BCOO:
        """Reshape the array; see `bcoo_reshape`.

        Example:
            >>> BCOO.fromdense(jnp.eye(2)).reshape(4).todense()
            Array([1., 0., 0., 1.], dtype=float32)
        """
        sizes = shape[0] if len(shape) == 1 and np.ndim(shape[0]) else shape
        known = -math.prod(sizes)
        sizes = tuple(self.size // known if n == -1 and known > 0 else n for n in sizes)
        return bcoo_reshape(self, new_sizes=sizes)

    def sum(self, axis: Any = None) -> Any:
        """Return the sum over axes as a sparse array, or as a scalar if over all axes.

        Example:
            >>> BCOO.fromdense(jnp.ones((2, 3))).sum(0).todense()
            Array([2., 2., 2.], dtype=float32)
        """
        if axis is None:
            return bcoo_reduce_sum(self, axes=range(self.ndim)).todense()
        axes = (axis,) if np.ndim(axis) == 0 else axis
        return bcoo_reduce_sum(self, axes=[operator.index(a) % self.ndim for a in axes])

    def astype(self, dtype: Any) -> BCOO:
        """Convert the elements to another dtype.

        Example:
            >>> eye(2).astype(jnp.int32).dtype
            dtype('int32')
        """
        return self._with(self.data.astype(dtype))

    def _with(self, data: Any) -> BCOO:
        return BCOO(
            (data, self.indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    if TYPE_CHECKING:
        # `sparse.transform` defines these with `sparsify`, which is written on this class.
        def __getitem__(self, index: Any) -> Any: ...
        def __abs__(self) -> BCOO: ...
        def __pow__(self, power: Any) -> Any: ...

    def __pos__(self) -> BCOO:
        return self

    def __neg__(self) -> BCOO:
        return self._with(-self.data)

    def __mul__(self, other: Any) -> BCOO:
        if isinstance(other, BCOO):
            return bcoo_multiply_sparse(self, other)
        if jnp.ndim(other) == 0:
            return self._with(self.data * other)
        return self._with(bcoo_multiply_dense(self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> BCOO:
        if isinstance(other, BCOO):
            raise NotImplementedError(
                "Division by a sparse array divides by its zeros: call .todense() on it."
            )
        return self * (1 / jnp.asarray(other))

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, BCOO):
            return self.todense() + other
        if self.shape != other.shape:
            raise ValueError(
                f"Addition of sparse arrays of different shapes {self.shape} and {other.shape}."
            )
        if (self.n_batch, self.n_dense) != (other.n_batch, other.n_dense):
            return _all_sparse(self) + _all_sparse(other)
        a, b = (layout.full_batch(m.data, m.indices, m.shape, m.n_batch) for m in (self, other))
        dtype = jnp.result_type(self.data, other.data)
        data, indices = (jnp.concatenate(pair, self.n_batch) for pair in zip(a, b, strict=True))
        return BCOO((data.astype(dtype), indices), shape=self.shape)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __matmul__(self, other: Any) -> Any:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _matmul(other, self)


def _unflatten(aux: tuple, children: Any) -> BCOO:
    # Trees may hold other things than arrays, so nothing is checked here.
    mat = object.__new__(BCOO)
    mat.data, mat.indices = children
    mat.shape, mat.indices_sorted, mat.unique_indices = aux
    return mat


tree_util.register_pytree_with_keys(
    BCOO,
    lambda m: (
        ((tree_util.GetAttrKey("data"), m.data), (tree_util.GetAttrKey("indices"), m.indices)),
        (m.shape, m.indices_sorted, m.unique_indices),
    ),
    _unflatten,
)


def _all_sparse(mat: BCOO) -> BCOO:
    """Return the array without batch and dense axes: all axes are sparse."""
    if not mat.n_batch and not mat.n_dense:
        return mat
    parts = layout.all_sparse(mat.data, mat.indices, mat.shape, mat.n_batch)
    return BCOO(parts, shape=mat.shape, unique_indices=mat.unique_indices)


def _sparse_shape(mat: BCOO) -> Shape:
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def bcoo_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCOO:
    """Return a sparse array with the nonzero elements of a dense one.

    Args:
        mat: the dense array.
        nse: how many elements to store (for each example); counted by default, which is not
            possible under `jit`.
        n_batch: the number of leading axes that are stored separately.
        n_dense: the number of trailing axes that are stored densely.
        index_dtype: the type of the indices.

    Returns:
        a `BCOO`, its indices in order and without repetition.

    Example:
        >>> bcoo_fromdense(jnp.array([0.0, 3.0])).indices
        Array([[1]], dtype=int32)
    """
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ValueError(
            f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} do not fit an array of shape "
            f"{mat.shape}."
        )
    mask = jnp.any(mat != 0, axis=tuple(range(n_batch + n_sparse, mat.ndim)))
    if nse is None:
        axes = tuple(range(n_batch, n_batch + n_sparse))
        nse = layout.known_count(
            "bcoo_fromdense", lambda: jnp.max(jnp.sum(mask, axis=axes), initial=0)
        )
    dtype = canonicalize_dtype(index_dtype)
    indices = layout.nonzero_indices(mask, nse, n_batch, dtype)
    data = layout.values_at(mat, indices, n_batch)
    if not n_sparse and nse > 1:
        # Without sparse axes no element is out of bounds, so only the first one may be nonzero.
        first = (np.arange(nse) == 0).reshape((nse, *(1 for _ in range(n_dense))))
        data = jnp.where(first, data, jnp.zeros((), data.dtype))
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_todense(mat: BCOO) -> Any:
    """Return the dense array; elements at equal indices are added.

    Example:
        >>> bcoo_todense(eye(1))
        Array([[1.]], dtype=float32)
    """
    return layout.dense_from(mat.data, mat.indices, mat.shape, mat.n_batch)


def todense(arr: Any) -> Any:
    """Convert a sparse array to a dense one; return a dense one as is.

    Example:
        >>> todense(eye(1))
        Array([[1.]], dtype=float32)
    """
    return arr.todense() if hasattr(arr, "todense") else jnp.asarray(arr)


def bcoo_extract(sparr: BCOO, arr: Any) -> BCOO:
    """Return the elements of a dense array at the indices of a sparse one.

    Args:
        sparr: the array whose indices are used.
        arr: a dense array of the same shape.

    Example:
        >>> bcoo_extract(eye(2), jnp.arange(4.0).reshape(2, 2)).data
        Array([0., 3.], dtype=float32)
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(
            f"bcoo_extract: the sparse array has shape {sparr.shape}, the dense one {arr.shape}."
        )
    _, indices = layout.full_batch(sparr.data, sparr.indices, sparr.shape, sparr.n_batch)
    data = layout.values_at(arr, indices, sparr.n_batch)
    return BCOO(
        (data, indices),
        shape=sparr.shape,
        indices_sorted=sparr.indices_sorted,
        unique_indices=sparr.unique_indices,
    )


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Permute the axes of a sparse array.

    Args:
        mat: the array.
        permutation: for each axis of the result, the axis it comes from. Batch, sparse and dense
            axes cannot be mixed.

    Raises:
        TypeError: it is not a permutation.
        NotImplementedError: it mixes batch, sparse and dense axes.

    Example:
        >>> bcoo_transpose(BCOO.fromdense(jnp.ones((2, 3))), permutation=(1, 0)).shape
        (3, 2)
    """
    axes = tuple(map(operator.index, permutation))
    if sorted(axes) != list(range(mat.ndim)):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"{axes} for shape {mat.shape}."
        )
    batch, sparse, dense = layout.permutation_parts(axes, mat.n_batch, mat.n_sparse)
    n = mat.n_batch
    data = mat.data.transpose([*batch, n, *(i + n + 1 for i in dense)])
    indices = mat.indices[..., np.asarray(sparse, np.int32)].transpose([*batch, n, n + 1])
    return BCOO(
        (data, indices),
        shape=[mat.shape[i] for i in axes],
        indices_sorted=mat.indices_sorted and sparse == sorted(sparse),
        unique_indices=mat.unique_indices,
    )


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Sort the elements by index.

    Example:
        >>> bcoo_sort_indices(eye(2)).indices_sorted
        True
    """

    def one(data, indices):
        order = layout.order_of(indices)
        return data[order], indices[order]

    parts = layout.full_batch(mat.data, mat.indices, mat.shape, mat.n_batch)
    return BCOO(
        layout.over_batch(one, mat.n_batch)(*parts),
        shape=mat.shape,
        indices_sorted=True,
        unique_indices=mat.unique_indices,
    )


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Add elements at equal indices, and sort by index.

    Args:
        mat: the array.
        nse: how many elements to keep; counted by default, which is not possible under `jit`.

    Raises:
        ValueError: `nse` is needed under `jit`.

    Example:
        >>> M = BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(3,))
        >>> bcoo_sum_duplicates(M)
        BCOO(float32[3], nse=1)
    """
    if nse is None:
        count = layout.count_unique(mat.indices, _sparse_shape(mat), mat.n_batch)
        if isinstance(count, Tracer):
            raise ValueError(
                "bcoo_sum_duplicates: nse must be specified within jit, vmap and other "
                "transformations: how many different indices there are depends on the data."
            )
        nse = int(count)
    parts = layout.add_duplicates(mat.data, mat.indices, mat.shape, mat.n_batch, nse)
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


def _without_zeros(mat: BCOO) -> BCOO:
    """Return the array with the indices of zero elements moved out of bounds."""
    data, indices = layout.full_batch(mat.data, mat.indices, mat.shape, mat.n_batch)
    zero = jnp.all(data == 0, axis=tuple(range(mat.n_batch + 1, data.ndim)))
    outside = np.asarray(_sparse_shape(mat), indices.dtype)
    return BCOO((data, jnp.where(zero[..., None], outside, indices)), shape=mat.shape)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Return the sum over axes, as a sparse array.

    Args:
        mat: the array.
        axes: the axes to sum over, of any kind.

    Example:
        >>> bcoo_reduce_sum(BCOO.fromdense(jnp.ones((2, 3))), axes=[0])
        BCOO(float32[3], nse=6)
    """
    axes = sorted({operator.index(a) for a in axes})
    if any(a < mat.n_batch for a in axes):
        mat = _all_sparse(mat)
    first, second = mat.n_batch, mat.n_batch + mat.n_sparse
    kept = [i - first for i in range(first, second) if i not in axes]
    dense = tuple(a - mat.n_sparse + 1 for a in axes if a >= second)
    # Padding would be in bounds without the summed axes, so it is set to zero.
    counts = layout.inside(mat.indices, _sparse_shape(mat))
    data, counts = mat.data, layout.spread(counts, mat.data)
    data = jnp.where(counts, data, jnp.zeros((), data.dtype)).sum(dense)
    shape = [n for i, n in enumerate(mat.shape) if i not in axes]
    return BCOO((data, mat.indices[..., np.asarray(kept, np.int32)]), shape=shape)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int]) -> BCOO:
    """Reshape a sparse array.

    Args:
        mat: the array; in the result all axes are sparse.
        new_sizes: the new shape, of as many elements.

    Raises:
        TypeError: the number of elements differs.

    Example:
        >>> bcoo_reshape(BCOO.fromdense(jnp.eye(2)), new_sizes=(4,)).indices.ravel()
        Array([0, 3], dtype=int32)
    """
    sizes = tuple(map(operator.index, new_sizes))
    if math.prod(sizes) != mat.size:
        raise TypeError(
            f"bcoo_reshape: an array of shape {mat.shape} has {mat.size} elements, the new shape "
            f"{sizes} has {math.prod(sizes)}."
        )
    mat = _all_sparse(mat)
    counts = layout.inside(mat.indices, mat.shape)[:, None]
    outside = np.asarray(sizes, mat.indices.dtype)
    flat = jnp.ravel_multi_index(layout.columns(mat.indices), mat.shape, mode="clip")
    indices = jnp.stack(jnp.unravel_index(flat, sizes), -1).astype(mat.indices.dtype)
    return BCOO(
        (mat.data, jnp.where(counts, indices, outside)),
        shape=sizes,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Any:
    """Return the elements of `sp_mat * v`: new data for the same indices.

    Args:
        sp_mat: a sparse array.
        v: a dense array that broadcasts to its shape.

    Returns:
        the data of the product.

    Example:
        >>> bcoo_multiply_dense(eye(2), jnp.array([2.0, 3.0]))
        Array([2., 3.], dtype=float32)
    """
    v = jnp.asarray(v)
    if jnp.broadcast_shapes(sp_mat.shape, v.shape) != sp_mat.shape:
        raise ValueError(
            f"bcoo_multiply_dense: the shape {v.shape} does not broadcast to that of the sparse "
            f"array, {sp_mat.shape}."
        )
    return sp_mat.data * bcoo_extract(sp_mat, jnp.broadcast_to(v, sp_mat.shape)).data


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Multiply two sparse arrays elementwise.

    Args:
        lhs: a sparse array.
        rhs: another one, of the same shape.

    Example:
        >>> bcoo_multiply_sparse(eye(2), BCOO.fromdense(jnp.full((2, 2), 3.0))).todense()
        Array([[3., 0.],
               [0., 3.]], dtype=float32)
    """
    if lhs.shape != rhs.shape:
        raise ValueError(
            f"bcoo_multiply_sparse: the shapes {lhs.shape} and {rhs.shape} must be equal."
        )
    axes = tuple(range(lhs.ndim))
    return bcoo_dot_general(lhs, rhs, dimension_numbers=(((), ()), (axes, axes)))


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Compute the general dot product of arrays, one or both of them sparse.

    Args:
        lhs: a `BCOO` or a dense array.
        rhs: a `BCOO` or a dense array.
        dimension_numbers: `((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))`, as in
            `lax.dot_general`.
        precision: accepted for compatibility; sums of stored elements are always exact to their
            type.
        preferred_element_type: the type of the result.

    Returns:
        a dense array, or a `BCOO` where both are sparse.

    Raises:
        TypeError: the axes that belong together differ in length.

    Example:
        >>> bcoo_dot_general(eye(2), jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
        Array([1., 1.], dtype=float32)
    """
    (lc, rc), (lb, rb) = (
        tuple(tuple(map(operator.index, a)) for a in s) for s in dimension_numbers
    )
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    for name, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        shapes = tuple(lhs.shape[i] for i in left), tuple(rhs.shape[i] for i in right)
        if shapes[0] != shapes[1]:
            raise TypeError(
                f"dot_general requires {name} dimensions to have the same shape, got {shapes[0]} "
                f"and {shapes[1]}."
            )
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        out = _sparse_sparse(_all_sparse(lhs), _all_sparse(rhs), lc, rc, lb, rb)
    elif isinstance(lhs, BCOO):
        out = _sparse_dense(_all_sparse(lhs), rhs, lc, rc, lb, rb)
    elif isinstance(rhs, BCOO):
        out = _sparse_dense(_all_sparse(rhs), lhs, rc, lc, rb, lb)
        # The free axes of the sparse operand come first in the result.
        batch, free = len(lb), rhs.ndim - len(rb) - len(rc)
        order = [*range(batch), *range(batch + free, out.ndim), *range(batch, batch + free)]
        out = out.transpose(order)
    else:
        return lax.dot_general(
            lhs,
            rhs,
            dimension_numbers,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def _free(ndim: int, *used: Sequence[int]) -> list[int]:
    return [i for i in range(ndim) if not any(i in part for part in used)]


def _chosen(indices: Any, axes: Sequence[int]) -> tuple[Any, ...]:
    return tuple(indices[:, i] for i in axes)


def _sparse_dense(lhs: BCOO, rhs: Any, lc, rc, lb, rb) -> Any:
    """Multiply each stored element by the matching slice of `rhs`, and add up the products."""
    lhs_free, rhs_free = _free(lhs.ndim, lc, lb), _free(rhs.ndim, rc, rb)
    rhs = rhs.transpose([*rb, *rc, *rhs_free])
    rest = rhs.shape[len(rb) + len(rc) :]
    meets = _chosen(lhs.indices, [*lb, *lc])
    if meets:
        slices = rhs.at[meets].get(mode="fill", fill_value=0)
    else:
        slices = jnp.broadcast_to(rhs, (lhs.nse, *rest))
    terms = layout.spread(lhs.data, slices) * slices
    counts = layout.spread(layout.inside(lhs.indices, lhs.shape), terms)
    terms = jnp.where(counts, terms, jnp.zeros((), terms.dtype))
    targets = _chosen(lhs.indices, [*lb, *lhs_free])
    if not targets:
        return terms.sum(0)
    shape = (*(lhs.shape[i] for i in (*lb, *lhs_free)), *rest)
    return jnp.zeros(shape, terms.dtype).at[targets].add(terms, mode="drop")


def _sparse_sparse(lhs: BCOO, rhs: BCOO, lc, rc, lb, rb) -> BCOO:
    """Multiply all pairs of stored elements; keep the pairs that match."""
    lhs_free, rhs_free = _free(lhs.ndim, lc, lb), _free(rhs.ndim, rc, rb)
    left, right = lhs.indices[:, None], rhs.indices[None, :]
    meet = layout.inside(left, lhs.shape) & layout.inside(right, rhs.shape)
    for i, j in zip((*lb, *lc), (*rb, *rc), strict=True):
        meet = meet & (left[..., i] == right[..., j])
    shape = [
        *(lhs.shape[i] for i in (*lb, *lhs_free)),
        *(rhs.shape[i] for i in rhs_free),
    ]
    data = lhs.data[:, None] * rhs.data[None, :]
    data = jnp.where(meet, data, jnp.zeros((), data.dtype)).ravel()
    pairs = meet.shape
    parts = [left[..., i] for i in (*lb, *lhs_free)] + [right[..., i] for i in rhs_free]
    nse = min(data.shape[0], math.prod(shape))
    if not parts:
        indices = jnp.zeros((data.shape[0], 0), lhs.indices.dtype)
        return BCOO((data.sum(keepdims=True), indices[:1]), shape=())
    indices = jnp.stack([jnp.broadcast_to(p, pairs).ravel() for p in parts], -1)
    indices = jnp.where(meet.ravel()[:, None], indices, np.asarray(shape, indices.dtype))
    out = BCOO((data, indices), shape=shape)
    traced = isinstance(indices, Tracer)
    return bcoo_sum_duplicates(out, nse=nse if traced else None)


def _matmul(lhs: Any, rhs: Any) -> Any:
    """Compute `lhs @ rhs`, with leading axes of matrices as batch axes."""
    for name, x in (("first", lhs), ("second", rhs)):
        if jnp.ndim(x) == 0 if not isinstance(x, BCOO) else x.ndim == 0:
            raise ValueError(f"matmul: the {name} operand is a scalar; use * instead of @.")
    lhs, rhs = (x if isinstance(x, BCOO) else jnp.asarray(x) for x in (lhs, rhs))
    batch = tuple(range(min(lhs.ndim, rhs.ndim) - 2)) if min(lhs.ndim, rhs.ndim) > 2 else ()
    contract = (lhs.ndim - 1,), (max(rhs.ndim - 2, 0),)
    if lhs.ndim > 2 and rhs.ndim > 2 and lhs.ndim != rhs.ndim:
        raise ValueError(
            f"matmul of a sparse array: the shapes {lhs.shape} and {rhs.shape} must have the same "
            "leading axes."
        )
    out = bcoo_dot_general(lhs, rhs, dimension_numbers=(contract, (batch, batch)))
    if lhs.ndim <= 2 < rhs.ndim and lhs.ndim == 2:
        # Move the rows of `lhs` from the front to before the last axis.
        axes = [*range(1, rhs.ndim - 1), 0, rhs.ndim - 1]
        out = out.transpose(axes)
    return out


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = np.int32,
) -> BCOO:
    """Return a sparse matrix with ones on a diagonal.

    Args:
        N: the number of rows.
        M: the number of columns; the same by default.
        k: which diagonal; above the main one where it is positive.
        dtype: the type of the elements.
        index_dtype: the type of the indices.

    Example:
        >>> eye(3)
        BCOO(float32[3, 3], nse=3)
    """
    M = N if M is None else M
    first_row, first_column = max(-k, 0), max(k, 0)
    count = max(min(N - first_row, M - first_column), 0)
    steps = np.arange(count)
    indices = np.stack([steps + first_row, steps + first_column], -1)
    data = jnp.ones(count, jnp.float32 if dtype is None else dtype)
    return BCOO(
        (data, jnp.asarray(indices.astype(canonicalize_dtype(index_dtype)))),
        shape=(N, M),
        indices_sorted=True,
        unique_indices=True,
    )


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    index_dtype: Any = np.int32,
    *,
    n_batch: int = 0,
    n_dense: int = 0,
    nse: int = 0,
) -> BCOO:
    """Return a sparse array of zeros with `nse` stored elements.

    Args:
        shape: the shape.
        dtype: the type of the elements.
        index_dtype: the type of the indices.
        n_batch: the number of leading axes that are stored separately.
        n_dense: the number of trailing axes that are stored densely.
        nse: how many elements to have room for.

    Example:
        >>> empty((2, 3))
        BCOO(float32[2, 3], nse=0)
    """
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ValueError(f"empty: n_batch={n_batch}, n_dense={n_dense} do not fit {shape}.")
    sparse = shape[n_batch : n_batch + n_sparse]
    data = jnp.zeros(
        (*shape[:n_batch], nse, *shape[n_batch + n_sparse :]),
        jnp.float32 if dtype is None else dtype,
    )
    outside = np.broadcast_to(
        np.asarray(sparse, canonicalize_dtype(index_dtype)), (*shape[:n_batch], nse, n_sparse)
    )
    return BCOO((data, jnp.asarray(outside)), shape=shape, indices_sorted=True)
