"""Move and select elements of sparse arrays: slices, concatenation, new axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo.experimental.sparse import layout
from namoo.experimental.sparse.array import BCOO, bcoo_extract


def _axes(mat: BCOO, dimensions: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Group axes by kind: batch, sparse (counted from the first), dense (as axes of `data`)."""
    first, second = mat.n_batch, mat.n_batch + mat.n_sparse
    axes = sorted(operator.index(d) for d in dimensions)
    return (
        [a for a in axes if a < first],
        [a - first for a in axes if first <= a < second],
        [a - mat.n_sparse + 1 for a in axes if a >= second],
    )


def _whole(mat: BCOO) -> tuple[Any, Any]:
    return layout.full_batch(mat.data, mat.indices, mat.shape, mat.n_batch)


def _kept(data: Any, indices: Any, mask: Any, shape: Sequence[int]) -> tuple[Any, Any]:
    """Keep the elements in a mask; the others become zeros with indices out of bounds."""
    data = jnp.where(layout.spread(mask, data), data, jnp.zeros((), data.dtype))
    return data, jnp.where(mask[..., None], indices, np.asarray(shape, indices.dtype))


def _sparse_shape(mat: BCOO) -> tuple[int, ...]:
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Remove axes of length 1 from a sparse array.

    Args:
        arr: the array.
        dimensions: the axes to leave out, of any kind.

    Example:
        >>> from namoo.experimental.sparse import eye
        >>> bcoo_squeeze(eye(2).reshape(1, 4), dimensions=(0,)).shape
        (4,)
    """
    dimensions = [operator.index(d) % max(arr.ndim, 1) for d in dimensions]
    if any(arr.shape[d] != 1 for d in dimensions):
        raise ValueError(
            f"bcoo_squeeze: axes {dimensions} of shape {arr.shape} do not all have length 1."
        )
    batch, sparse, dense = _axes(arr, dimensions)
    data, indices = _whole(arr)
    # Padding elements must stay out of bounds when the axis that marks them is removed.
    mask = layout.inside(indices, _sparse_shape(arr))
    kept = [i for i in range(arr.n_sparse) if i not in sparse]
    sizes = [_sparse_shape(arr)[i] for i in kept]
    data, indices = _kept(data, indices[..., np.asarray(kept, np.int32)], mask, sizes)
    return BCOO(
        (jnp.squeeze(data, (*batch, *dense)), jnp.squeeze(indices, tuple(batch))),
        shape=[n for i, n in enumerate(arr.shape) if i not in dimensions],
        indices_sorted=arr.indices_sorted,
        unique_indices=arr.unique_indices,
    )


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Reverse some axes of a sparse array.

    Args:
        operand: the array.
        dimensions: the axes to reverse.

    Example:
        >>> from namoo.experimental.sparse import eye
        >>> bcoo_rev(eye(2), (0,)).todense()
        Array([[0., 1.],
               [1., 0.]], dtype=float32)
    """
    batch, sparse, dense = _axes(operand, dimensions)
    data, indices = _whole(operand)
    data = jnp.flip(data, (*batch, *dense))
    indices = jnp.flip(indices, tuple(batch))
    sizes = np.asarray(_sparse_shape(operand), indices.dtype)
    turned = np.isin(np.arange(operand.n_sparse), sparse) & (indices < sizes)
    indices = jnp.where(turned, sizes - 1 - indices, indices)
    return BCOO((data, indices), shape=operand.shape, unique_indices=operand.unique_indices)


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """Return a slice of a sparse array, like `lax.slice`.

    Args:
        mat: the array.
        start_indices: where the part begins, for each axis.
        limit_indices: where it ends.
        strides: the step between elements; 1 by default.

    Returns:
        a `BCOO` of as many stored elements; those outside are zeros out of bounds.

    Example:
        >>> from namoo.experimental.sparse import eye
        >>> bcoo_slice(eye(3), start_indices=(1, 0), limit_indices=(3, 2)).todense()
        Array([[0., 1.],
               [0., 0.]], dtype=float32)
    """
    starts, limits = (list(map(operator.index, x)) for x in (start_indices, limit_indices))
    steps = [1] * mat.ndim if strides is None else list(map(operator.index, strides))
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise TypeError(
            f"bcoo_slice: start_indices, limit_indices and strides need one entry for each of the "
            f"{mat.ndim} axes of shape {mat.shape}."
        )
    if any(
        not 0 <= a <= b <= n or k < 1
        for a, b, k, n in zip(starts, limits, steps, mat.shape, strict=True)
    ):
        raise TypeError(
            f"bcoo_slice: {starts} to {limits} by {steps} is not within the shape {mat.shape}."
        )
    first, second = mat.n_batch, mat.n_batch + mat.n_sparse
    slices = [slice(*s) for s in zip(starts, limits, steps, strict=True)]
    data, indices = _whole(mat)
    indices = indices[tuple(slices[:first])]
    data = data[(*slices[:first], slice(None), *slices[second:])]
    shape = [len(range(*s.indices(n))) for s, n in zip(slices, mat.shape, strict=True)]
    start, limit, step = (
        np.asarray(x[first:second], indices.dtype) for x in (starts, limits, steps)
    )
    mask = jnp.all((indices >= start) & (indices < limit) & ((indices - start) % step == 0), -1)
    parts = _kept(data, (indices - start) // step, mask, shape[first:second])
    return BCOO(parts, shape=shape, unique_indices=False)


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """Return a slice of a sparse array whose start may be traced, like `lax.dynamic_slice`.

    Args:
        mat: the array.
        start_indices: where the part begins, for each axis; clamped so that it fits.
        slice_sizes: its shape.

    Example:
        >>> from namoo.experimental.sparse import eye
        >>> bcoo_dynamic_slice(eye(3), (1, 1), (2, 1)).todense()
        Array([[1.],
               [0.]], dtype=float32)
    """
    from namoo import lax

    sizes = tuple(map(operator.index, slice_sizes))
    if len(sizes) != mat.ndim or len(start_indices) != mat.ndim:
        raise TypeError(
            f"bcoo_dynamic_slice: start_indices and slice_sizes need one entry for each of the "
            f"{mat.ndim} axes of shape {mat.shape}."
        )
    if any(n > m for n, m in zip(sizes, mat.shape, strict=True)):
        raise TypeError(f"bcoo_dynamic_slice: {sizes} is larger than the shape {mat.shape}.")
    first, second = mat.n_batch, mat.n_batch + mat.n_sparse
    starts = [
        jnp.clip(jnp.asarray(s), 0, n - k)
        for s, n, k in zip(start_indices, mat.shape, sizes, strict=True)
    ]
    data, indices = _whole(mat)
    zero = jnp.zeros((), starts[0].dtype) if starts else 0
    indices = lax.dynamic_slice(
        indices, [*starts[:first], zero, zero], [*sizes[:first], *indices.shape[first:]]
    )
    data = lax.dynamic_slice(
        data,
        [*starts[:first], zero, *starts[second:]],
        [*sizes[:first], mat.nse, *sizes[second:]],
    )
    inner = sizes[first:second]
    if inner:
        moved = indices - jnp.stack(starts[first:second]).astype(indices.dtype)
    else:
        moved = indices
    mask = jnp.all((moved >= 0) & (moved < np.asarray(inner, moved.dtype)), -1)
    return BCOO(_kept(data, moved, mask, inner), shape=sizes)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Concatenate sparse arrays along an axis.

    Args:
        operands: arrays with the same batch, sparse and dense axes.
        dimension: the axis.

    Example:
        >>> from namoo.experimental.sparse import eye
        >>> bcoo_concatenate([eye(1), eye(1)], dimension=1).todense()
        Array([[1., 1.]], dtype=float32)
    """
    if not operands:
        raise ValueError("bcoo_concatenate needs at least one array.")
    head = operands[0]
    axis = operator.index(dimension)
    if not 0 <= axis < head.ndim:
        raise ValueError(f"bcoo_concatenate: shape {head.shape} has no axis {dimension}.")
    if len({(m.n_batch, m.n_sparse, m.n_dense) for m in operands}) > 1:
        raise ValueError("bcoo_concatenate requires arrays with the same kinds of axes.")
    rest = {tuple(n for i, n in enumerate(m.shape) if i != axis) for m in operands}
    if len(rest) > 1:
        raise ValueError(
            f"bcoo_concatenate: shapes {[m.shape for m in operands]} must agree apart from "
            f"axis {axis}."
        )
    dtype = jnp.result_type(*(m.data for m in operands))
    total = sum(m.shape[axis] for m in operands)
    shape = (*head.shape[:axis], total, *head.shape[axis + 1 :])
    parts, before = [], 0
    most = max(m.nse for m in operands)
    for mat in operands:
        data, indices = _whole(mat)
        data = data.astype(dtype)
        if axis < mat.n_batch:
            # All examples store the same number of elements: padding is out of bounds.
            extra = [(0, 0)] * mat.n_batch + [(0, most - mat.nse)]
            outside = jnp.asarray(np.asarray(_sparse_shape(mat), indices.dtype))
            filler = jnp.broadcast_to(
                outside, (*indices.shape[: mat.n_batch], most - mat.nse, mat.n_sparse)
            )
            indices = jnp.concatenate([indices, filler], mat.n_batch)
            data = jnp.pad(data, extra + [(0, 0)] * mat.n_dense)
        elif axis < mat.n_batch + mat.n_sparse:
            position = axis - mat.n_batch
            mask = layout.inside(indices, _sparse_shape(mat))
            moved = indices.at[..., position].add(before)
            sizes = shape[mat.n_batch : mat.n_batch + mat.n_sparse]
            data, indices = _kept(data, moved, mask, sizes)
        else:
            position = axis - mat.n_sparse + 1
            widths = [(0, 0)] * data.ndim
            widths[position] = before, total - before - mat.shape[axis]
            data = jnp.pad(data, widths)
        parts.append((data, indices))
        before += mat.shape[axis]
    along = axis if axis < head.n_batch else head.n_batch
    data, indices = (jnp.concatenate(x, along) for x in zip(*parts, strict=True))
    return BCOO((data, indices), shape=shape)


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> BCOO:
    """Broadcast a sparse array along new axes or axes of length 1, like `lax.broadcast_in_dim`.

    Args:
        mat: the array.
        shape: the shape of the result.
        broadcast_dimensions: for each axis of `mat` its index in the result, ascending. New axes
            before the last batch axis are batch axes, those after the first dense one are dense,
            and the others sparse.

    Example:
        >>> row = BCOO.fromdense(jnp.array([0.0, 2.0]))
        >>> bcoo_broadcast_in_dim(row, shape=(2, 2), broadcast_dimensions=(1,)).todense()
        Array([[0., 2.],
               [0., 2.]], dtype=float32)
    """
    sizes = tuple(map(operator.index, shape))
    positions = tuple(map(operator.index, broadcast_dimensions))
    ascending = all(a < b for a, b in zip(positions, positions[1:], strict=False))
    if (
        len(positions) != mat.ndim
        or not ascending
        or any(not 0 <= p < len(sizes) for p in positions)
    ):
        raise ValueError(
            f"bcoo_broadcast_in_dim: broadcast_dimensions {positions} must give each axis of shape "
            f"{mat.shape} a position in {sizes}, in order."
        )
    if any(n not in (1, sizes[p]) for n, p in zip(mat.shape, positions, strict=True)):
        raise ValueError(
            f"bcoo_broadcast_in_dim: shape {mat.shape} does not fit {sizes} at {positions}."
        )
    n, k = mat.n_batch, mat.n_sparse
    n_batch = 1 + positions[n - 1] if n else 0
    n_dense = len(sizes) - positions[n + k] if mat.n_dense else 0
    inner = range(n_batch, len(sizes) - n_dense)
    data, indices = _whole(mat)
    # Batch axes, then the elements: each is repeated along every new sparse axis.
    batch = [p for p in positions[:n]]
    lead = tuple(mat.shape[batch.index(i)] if i in batch else 1 for i in range(n_batch))
    dense = {p: mat.shape[n + k + j] for j, p in enumerate(positions[n + k :])}
    tail = tuple(dense.get(i, 1) for i in range(len(sizes) - n_dense, len(sizes)))
    data = data.reshape((*lead, mat.nse, *tail))
    indices = indices.reshape((*lead, mat.nse, k))
    data = jnp.broadcast_to(data, (*sizes[:n_batch], mat.nse, *sizes[len(sizes) - n_dense :]))
    indices = jnp.broadcast_to(indices, (*sizes[:n_batch], mat.nse, k))
    own = {p: j for j, p in enumerate(positions[n : n + k])}
    new = [i for i in inner if i not in own or mat.shape[n + own[i]] == 1]
    count = math.prod(sizes[i] for i in new)
    copies = np.indices([sizes[i] for i in new]).reshape(len(new), count)
    mask = layout.inside(indices, _sparse_shape(mat))
    columns = []
    for i in inner:
        if i in new:
            column = jnp.asarray(copies[new.index(i)], indices.dtype)
            columns.append(jnp.broadcast_to(column, (*indices.shape[:-1], count)))
        else:
            columns.append(jnp.repeat(indices[..., own[i]][..., None], count, -1))
    elements = (*sizes[:n_batch], mat.nse * count)
    if columns:
        indices = jnp.stack(columns, -1).reshape((*elements, len(columns)))
    else:
        indices = jnp.zeros((*elements, 0), indices.dtype)
    data = jnp.repeat(data, count, n_batch)
    mask = jnp.repeat(mask, count, n_batch)
    return BCOO(
        _kept(data, indices, mask, [sizes[i] for i in inner]),
        shape=sizes,
        unique_indices=mat.unique_indices,
    )


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    """Return the elements of a product of dense arrays at given indices.

    Args:
        A: a dense array.
        B: a dense array.
        indices: of shape `(*batch, nse, k)`, as in a `BCOO` of the product's shape.
        dimension_numbers: as in `lax.dot_general`.

    Returns:
        an array of shape `(*batch, nse, *dense)`.

    Example:
        >>> x = jnp.arange(4.0).reshape(2, 2)
        >>> dims = (((1,), (0,)), ((), ()))
        >>> bcoo_dot_general_sampled(x, x, jnp.array([[1, 1]]), dimension_numbers=dims)
        Array([11.], dtype=float32)
    """
    from namoo import lax

    return layout.values_at(
        lax.dot_general(A, B, dimension_numbers), jnp.asarray(indices), jnp.ndim(indices) - 2
    )


def divided(mat: BCOO, other: Any) -> BCOO:
    """Divide a sparse array by a dense one."""
    divisor = bcoo_extract(mat, jnp.broadcast_to(other, mat.shape)).data
    counts = layout.spread(layout.inside(mat.indices, _sparse_shape(mat)), divisor)
    return mat._with(mat.data / jnp.where(counts, divisor, jnp.ones((), divisor.dtype)))


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = float,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    generator: Any = None,
    **kwds: Any,
) -> BCOO:
    """Return a sparse array with random elements at random indices.

    Args:
        key: a random key.
        shape: the shape.
        dtype: the type of the elements.
        indices_dtype: the type of the indices.
        nse: how many elements are stored; below 1 it is a fraction of all.
        n_batch: how many leading axes are batch axes.
        n_dense: how many trailing axes are dense.
        unique_indices: whether all indices must differ.
        generator: makes the elements, as `namoo.random.uniform` (the default) does.
        kwds: further arguments of the generator.

    Example:
        >>> import namoo
        >>> random_bcoo(namoo.random.key(0), (4, 5), nse=3)
        BCOO(float32[4, 5], nse=3)
    """
    from namoo import random

    shape = tuple(map(operator.index, shape))
    sparse = shape[n_batch : len(shape) - n_dense]
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"random_bcoo: n_batch={n_batch}, n_dense={n_dense} do not fit {shape}.")
    if not 0 <= nse or (unique_indices and nse > math.prod(sparse)):
        raise ValueError(f"random_bcoo: nse={nse} is not between 0 and {math.prod(sparse)}.")
    count = int(nse * math.prod(sparse)) if nse < 1 else int(nse)
    data_key, index_key = random.split(key)
    make = random.uniform if generator is None else generator
    data = make(data_key, (*shape[:n_batch], count, *shape[len(shape) - n_dense :]), dtype, **kwds)

    def positions(key):
        flat = random.choice(key, math.prod(sparse), (count,), replace=not unique_indices)
        return jnp.stack(jnp.unravel_index(flat, sparse), -1) if sparse else flat[:, None][:, :0]

    keys = random.split(index_key, shape[:n_batch]) if n_batch else index_key
    indices = layout.over_batch(positions, n_batch)(keys)
    if indices_dtype is not None:
        indices = indices.astype(indices_dtype)
    return BCOO((data, indices), shape=shape, unique_indices=unique_indices)
