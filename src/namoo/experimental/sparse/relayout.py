"""Which axes of a `BCOO` are stored as batch, sparse and dense axes, changed."""

from __future__ import annotations

import math
import warnings
from typing import Any

from namoo import numpy as jnp
from namoo._base.source_context import at_user_line
from namoo.experimental.sparse import layout
from namoo.experimental.sparse.array import BCOO

__all__ = ["SparseEfficiencyError", "SparseEfficiencyWarning", "bcoo_update_layout"]


class SparseEfficiencyError(ValueError):
    """A sparse array would store many zeros."""

    __module__ = "namoo.experimental.sparse"


class SparseEfficiencyWarning(UserWarning):
    """A sparse array stores many zeros."""

    __module__ = "namoo.experimental.sparse"


def _to_sparse(data: Any, indices: Any, shape: tuple, n_batch: int, kept: tuple[int, int]) -> Any:
    """Make batch and dense axes sparse, but for the first and last ones, which are kept."""
    n_batch_kept, n_dense_kept = kept
    data, indices = layout.full_batch(data, indices, shape, n_batch)
    inner = shape[n_batch_kept : len(shape) - n_dense_kept]

    def one(data: Any, indices: Any) -> Any:
        # The kept dense axes are mapped over: they have no indices.
        fun = lambda data: layout.all_sparse(data, indices, inner, n_batch - n_batch_kept)  # noqa: E731
        flat = data.reshape(*data.shape[: data.ndim - n_dense_kept], -1)
        flat, dense = jnp.moveaxis(flat, -1, 0), data.shape[data.ndim - n_dense_kept :]
        found = layout.over_batch(fun, 1)(flat)
        return jnp.moveaxis(found[0], 0, -1).reshape(-1, *dense), found[1][0]

    if not math.prod(shape[len(shape) - n_dense_kept :]):
        raise ValueError("bcoo_update_layout: the array has a dense axis of length 0.")
    return layout.over_batch(one, n_batch_kept)(data, indices)


def _add_batch(data: Any, indices: Any, shape: tuple[int, ...], count: int) -> Any:
    """Turn the first sparse axes of one example into batch axes; others' elements are padding."""
    batch, rest = shape[:count], shape[count : indices.shape[-1]]
    grid = jnp.stack(jnp.meshgrid(*map(jnp.arange, batch), indexing="ij"), -1)
    grid = grid.astype(indices.dtype)
    here = jnp.all(indices[:, :count] == grid[..., None, :], axis=-1)
    here &= layout.inside(indices, shape[: indices.shape[-1]])
    outside = jnp.asarray(rest, indices.dtype)
    new = jnp.where(here[..., None], indices[:, count:], outside)
    values = jnp.where(layout.spread(here, data[(None,) * count]), data, jnp.zeros((), data.dtype))
    room = math.prod(rest)
    if room < indices.shape[0]:
        values, new = layout.add_duplicates(values, new, shape, count, room)
    return values, new


def _add_dense(data: Any, indices: Any, shape: tuple[int, ...], count: int) -> Any:
    """Turn the last sparse axes of one example into dense axes."""
    n_sparse = indices.shape[-1]
    dense = shape[n_sparse - count : n_sparse]
    rows = jnp.arange(indices.shape[0])
    where = (rows, *layout.columns(indices[:, n_sparse - count :]))
    blocks = jnp.zeros((data.shape[0], *dense, *data.shape[1:]), data.dtype)
    return blocks.at[where].set(data, mode="drop"), indices[:, : n_sparse - count]


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """Return the same array with other numbers of batch and dense axes.

    Args:
        mat: the array.
        n_batch: the number of leading axes that are stored separately; as it is by default.
        n_dense: the number of trailing axes that are stored densely; as it is by default.
        on_inefficient: `"error"`, `"warn"` or None: what to do if many zeros have to be stored,
            which is so if a sparse axis longer than 1 becomes a batch or dense axis.

    Raises:
        ValueError: the numbers do not fit the array.
        SparseEfficiencyError: many zeros have to be stored.

    Example:
        >>> bcoo_update_layout(BCOO.fromdense(jnp.eye(2), n_batch=1), n_batch=0)
        BCOO(float32[2, 2], nse=2)
    """
    return _with_layout(
        mat,
        mat.n_batch if n_batch is None else n_batch,
        mat.n_dense if n_dense is None else n_dense,
        on_inefficient,
    )


def _with_layout(mat: BCOO, n_batch: int, n_dense: int, on_inefficient: str | None) -> BCOO:
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} do not fit an array of "
            f"shape {mat.shape}.{at_user_line()}"
        )
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(
            "bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, got "
            f"{on_inefficient!r}."
        )
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    shape, kept = mat.shape, (min(n_batch, mat.n_batch), min(n_dense, mat.n_dense))
    new = shape[mat.n_batch : n_batch] + shape[len(shape) - n_dense : len(shape) - mat.n_dense]
    if math.prod(new) > 1 and on_inefficient:
        what = (
            f"bcoo_update_layout: with n_batch={n_batch} and n_dense={n_dense}, an array of shape "
            f"{shape} with n_batch={mat.n_batch} and n_dense={mat.n_dense} stores many zeros. Pass "
            f"on_inefficient=None if that is meant.{at_user_line()}"
        )
        if on_inefficient == "error":
            raise SparseEfficiencyError(what)
        warnings.warn(what, SparseEfficiencyWarning, stacklevel=2)
    data, indices = _to_sparse(mat.data, mat.indices, shape, mat.n_batch, kept)

    def one(data: Any, indices: Any) -> Any:
        inner = shape[kept[0] : len(shape) - kept[1]]
        if n_dense > kept[1]:
            data, indices = _add_dense(data, indices, inner, n_dense - kept[1])
        if n_batch > kept[0]:
            inner = inner[: indices.shape[-1]]
            data, indices = _add_batch(data, indices, inner, n_batch - kept[0])
        return data, indices

    parts = layout.over_batch(one, kept[0])(data, indices)
    return BCOO(parts, shape=shape)
