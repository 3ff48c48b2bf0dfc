"""The parts of a sparse array: `data` and `indices`, and functions of these two alone.

An array of shape `batch + sparse + dense` is stored as:

    data:    batch + (nse,) + dense
    indices: batch + (nse, number of sparse axes)

`nse` is the number of stored elements. Elements with indices out of bounds are padding, for batches
whose examples have different numbers of elements. Batch axes of length 1 in `data` or `indices` are
broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import errors
from namoo import numpy as jnp
from namoo.api.map import vmap
from namoo.core.trace import Tracer

Shape = tuple[int, ...]


def over_batch(fun: Callable, n_batch: int) -> Callable:
    """Map a function of one example over the leading axes."""
    for _ in range(n_batch):
        fun = vmap(fun)
    return fun


def full_batch(data: Any, indices: Any, shape: Shape, n_batch: int) -> tuple[Any, Any]:
    """Broadcast the batch axes of `data` and `indices`."""
    batch = shape[:n_batch]
    return (
        jnp.broadcast_to(data, (*batch, *data.shape[n_batch:])),
        jnp.broadcast_to(indices, (*batch, *indices.shape[n_batch:])),
    )


def columns(indices: Any) -> tuple[Any, ...]:
    """Return one vector of indices for each sparse axis."""
    return tuple(indices[..., i] for i in range(indices.shape[-1]))


def inside(indices: Any, sparse_shape: Shape) -> Any:
    """Return which elements are in bounds, and so are not padding."""
    bounds = np.asarray(sparse_shape, indices.dtype).reshape((1,) * (indices.ndim - 1) + (-1,))
    return jnp.all(indices < jnp.asarray(bounds), axis=-1)


def spread(mask: Any, like: Any) -> Any:
    """Add axes of length 1 for the dense axes to a mask over elements."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))


def dense_from(data: Any, indices: Any, shape: Shape, n_batch: int) -> Any:
    """Return the dense array; elements at equal indices are added."""

    def one(data, indices):
        if not indices.shape[-1]:
            return data.sum(0)
        zeros = jnp.zeros(shape[n_batch:], data.dtype)
        return zeros.at[columns(indices)].add(data, mode="drop")

    return over_batch(one, n_batch)(*full_batch(data, indices, shape, n_batch))


def values_at(mat: Any, indices: Any, n_batch: int) -> Any:
    """Return the elements of a dense array at indices; zero where they are out of bounds."""

    def one(mat, indices):
        if not indices.shape[-1]:
            return jnp.broadcast_to(mat, (indices.shape[0], *mat.shape))
        return mat.at[columns(indices)].get(mode="fill", fill_value=0)

    return over_batch(one, n_batch)(mat, indices)


def known_count(name: str, what: Callable[[], Any]) -> int:
    """Return a number of elements that must be counted now because it was not given."""
    count = what()
    if isinstance(count, Tracer):
        count.refuse(
            errors.ConcretizationTypeError,
            f"the number of stored elements of {name}",
            f"Pass it: {name}(..., nse=n), where n is known without the data.",
        )
    return int(count)


def nonzero_indices(mask: Any, nse: int, n_batch: int, dtype: Any) -> Any:
    """Return the indices of the first `nse` true elements of each example, in order."""
    sparse_shape = mask.shape[n_batch:]

    def one(mask):
        if not sparse_shape:
            return jnp.zeros((nse, 0), dtype)
        found = jnp.nonzero(mask, size=nse, fill_value=sparse_shape)
        return jnp.stack(found, -1).astype(dtype)

    return over_batch(one, n_batch)(mask)


def order_of(indices: Any) -> Any:
    """Return the order that sorts elements by index, first axis first."""
    if not indices.shape[-1]:
        return jnp.arange(indices.shape[0])
    return jnp.lexsort(columns(indices)[::-1])


def count_unique(indices: Any, sparse_shape: Shape, n_batch: int) -> Any:
    """Return the maximum over examples of the number of distinct indices in bounds."""

    def one(indices):
        rows = indices[order_of(indices)]
        return jnp.sum(_is_new(rows) & inside(rows, sparse_shape))

    return jnp.max(over_batch(one, n_batch)(indices), initial=0)


def _is_new(rows: Any) -> Any:
    """Return which rows differ from the row before."""
    differs = jnp.any(rows[1:] != rows[:-1], axis=-1)
    return jnp.concatenate([jnp.ones((min(rows.shape[0], 1),), bool), differs])


def add_duplicates(
    data: Any, indices: Any, shape: Shape, n_batch: int, nse: int
) -> tuple[Any, Any]:
    """Sort elements by index and add those of equal index; keep `nse` of them."""
    sparse_shape = shape[n_batch : n_batch + indices.shape[-1]]
    outside = np.asarray(sparse_shape, indices.dtype)

    def one(data, indices):
        # All padding gets the same index, which sorts last.
        counts = inside(indices, sparse_shape)
        indices = jnp.where(counts[:, None], indices, outside)
        data = jnp.where(spread(counts, data), data, jnp.zeros((), data.dtype))
        order = order_of(indices)
        rows = indices[order]
        position = jnp.cumsum(_is_new(rows)) - 1
        total = (
            jnp.zeros((nse, *data.shape[1:]), data.dtype).at[position].add(data[order], mode="drop")
        )
        kept = jnp.full((nse, len(outside)), outside, indices.dtype)
        return total, kept.at[position].set(rows, mode="drop")

    return over_batch(one, n_batch)(*full_batch(data, indices, shape, n_batch))


def all_sparse(data: Any, indices: Any, shape: Shape, n_batch: int) -> tuple[Any, Any]:
    """Make every axis sparse: return a vector of elements and a matrix of indices."""
    n_sparse = indices.shape[-1]
    data, indices = full_batch(data, indices, shape, n_batch)
    batch, nse = shape[:n_batch], indices.shape[n_batch]
    dense = shape[n_batch + n_sparse :]
    every = (*batch, nse, *dense)
    grid = np.indices((*batch, nse, *dense), dtype=indices.dtype)
    wide = indices.reshape((*batch, nse, *(1 for _ in dense), n_sparse))
    wide = jnp.broadcast_to(wide, (*every, n_sparse))
    parts = [*grid[:n_batch], *columns(wide), *grid[n_batch + 1 :]]
    flat = [jnp.reshape(jnp.asarray(p), (math.prod(every),)) for p in parts]
    if not flat:
        return data.reshape(-1), jnp.zeros((math.prod(every), 0), indices.dtype)
    return data.reshape(-1), jnp.stack(flat, -1)


def check_parts(data: Any, indices: Any, shape: Shape) -> None:
    """Raise unless data, indices and shape fit together."""
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1] if indices.ndim >= 2 else 0
    n_dense = len(shape) - n_batch - n_sparse
    if n_batch < 0 or n_dense < 0:
        raise ValueError(
            f"BCOO: indices of shape {indices.shape} do not fit an array of shape {tuple(shape)}: "
            "they must have shape (*batch, nse, number of sparse axes)."
        )
    nse = indices.shape[-2]
    batches = (data.shape[:n_batch], indices.shape[:n_batch])
    fits = data.shape[n_batch:] == (nse, *shape[len(shape) - n_dense :]) and all(
        n in (1, full)
        for part in batches
        for n, full in zip(part, shape[:n_batch], strict=True)
    )  # fmt: skip
    if data.ndim != n_batch + 1 + n_dense or not fits:
        raise ValueError(
            f"BCOO: Invalid data.shape={data.shape} for indices of shape {indices.shape} and an "
            f"array of shape {tuple(shape)}: nse={nse}, n_batch={n_batch}, n_dense={n_dense}."
        )


def permutation_parts(
    axes: Sequence[int], n_batch: int, n_sparse: int
) -> tuple[list[int], list[int], list[int]]:
    """Split a permutation of all axes into permutations of batch, sparse and dense axes."""
    first, second = n_batch, n_batch + n_sparse
    batch, sparse, dense = axes[:first], axes[first:second], axes[second:]
    kinds = [sorted(batch), sorted(sparse), sorted(dense)]
    if kinds[0] != list(range(first)):
        raise NotImplementedError(
            "transpose permutation cannot permute batch axes with non-batch axes; got permutation "
            f"{tuple(axes)}, with n_batch={n_batch}."
        )
    if kinds[1] != list(range(first, second)):
        raise NotImplementedError(
            "transpose permutation cannot permute dense axes with non-dense axes; got permutation "
            f"{tuple(axes)}, with n_dense={len(dense)}."
        )
    return list(batch), [i - first for i in sparse], [i - second for i in dense]
