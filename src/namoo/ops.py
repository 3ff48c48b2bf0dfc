"""Reductions over segments of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from namoo import errors
from namoo import numpy as jnp
from namoo._base import dtypes
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.trace import Tracer
from namoo.primitives.gather import GatherScatterMode
from namoo.primitives.resharding import with_out_sharding

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
__dir__ = __all__.copy


def _segment(name: str, update: str, start: Callable[[Any], Any]):
    def reduce(data, segment_ids, num_segments, mode, bucket_size, sorted_, unique):
        data, segment_ids = jnp.asarray(data), jnp.asarray(segment_ids)
        rows = data.shape[: segment_ids.ndim]
        if len(rows) < segment_ids.ndim or any(
            n not in (1, ids) for n, ids in zip(rows, segment_ids.shape, strict=True)
        ):
            raise ValueError(
                f"{name}: there must be one segment id for each element along the leading axes, "
                f"but data has shape {data.shape} and segment_ids {segment_ids.shape}."
            )
        if num_segments is None:
            if isinstance(segment_ids, Tracer):
                segment_ids.refuse(
                    errors.ConcretizationTypeError,
                    f"the number of segments of {name}",
                    f"Pass it: {name}(data, segment_ids, num_segments=n).",
                )
            num_segments = int(np.max(np.asarray(segment_ids), initial=-1)) + 1
        if num_segments < 0:
            raise ValueError(f"{name}: num_segments must be non-negative, got {num_segments}.")
        if bucket_size is not None:
            return _in_buckets(
                name, data, segment_ids, num_segments, mode, bucket_size, sorted_, unique
            )
        out = jnp.full(
            (num_segments, *data.shape[segment_ids.ndim :]), start(data.dtype), data.dtype
        )
        target = out.at[segment_ids]
        return getattr(target, update)(
            data,
            indices_are_sorted=sorted_,
            unique_indices=unique,
            mode=mode or "drop",
            wrap_negative_indices=False,
        )

    reduce.__name__ = name
    return reduce


def _sharded(name, out_sharding, *args):
    reduce, _ = _REDUCERS[name]
    return reduce(*args) if out_sharding is None else with_out_sharding(out_sharding, reduce, *args)


def _in_buckets(name, data, ids, num_segments, mode, bucket_size, sorted_, unique):
    """Reduce buckets of the data separately, then their results: steadier sums."""
    reduce, combine = _REDUCERS[name]
    starts = range(0, data.shape[0], bucket_size)
    parts = [
        reduce(
            data[i : i + bucket_size],
            ids[i : i + bucket_size],
            num_segments,
            mode,
            None,
            sorted_,
            unique,
        )
        for i in starts
    ]
    return combine(jnp.stack(parts), axis=0).astype(data.dtype)


def _lowest(dtype):
    if dtypes.issubdtype(dtype, np.bool_):
        return False
    return -np.inf if dtypes.issubdtype(dtype, np.floating) else dtypes.iinfo(dtype).min


def _highest(dtype):
    if dtypes.issubdtype(dtype, np.bool_):
        return True
    return np.inf if dtypes.issubdtype(dtype, np.floating) else dtypes.iinfo(dtype).max


_REDUCERS: dict[str, tuple[Callable, Callable]] = {
    "segment_sum": (_segment("segment_sum", "add", lambda dtype: 0), jnp.sum),
    "segment_prod": (_segment("segment_prod", "multiply", lambda dtype: 1), jnp.prod),
    "segment_max": (_segment("segment_max", "max", _lowest), jnp.max),
    "segment_min": (_segment("segment_min", "min", _highest), jnp.min),
}

Mode = str | GatherScatterMode | None


def segment_sum(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Mode = None,
    out_sharding: Any = None,
) -> Any:
    """Add the elements of each segment.

    Args:
        data: an array.
        segment_ids: the segment of each element along the leading axes; those out of range,
            negative ones included, are left out.
        num_segments: how many segments there are; needed under `jit`.
        indices_are_sorted: a promise that the ids are sorted.
        unique_indices: a promise that the ids are unique.
        bucket_size: add this many elements at a time, then the sums.
        mode: what to do with ids out of range.

    Returns:
        an array with one row per segment.

    Example:
        >>> import namoo.numpy as jnp
        >>> segment_sum(jnp.arange(5), jnp.array([0, 0, 1, 1, 2]))
        Array([1, 5, 4], dtype=int32)
    """
    options = num_segments, mode, bucket_size, indices_are_sorted, unique_indices
    return _sharded("segment_sum", out_sharding, data, segment_ids, *options)


def segment_prod(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Mode = None,
    out_sharding: Any = None,
) -> Any:
    """Multiply the elements of each segment; see `segment_sum`.

    Example:
        >>> import namoo.numpy as jnp
        >>> segment_prod(jnp.arange(1, 6), jnp.array([0, 0, 1, 1, 2]))
        Array([ 2, 12,  5], dtype=int32)
    """
    options = num_segments, mode, bucket_size, indices_are_sorted, unique_indices
    return _sharded("segment_prod", out_sharding, data, segment_ids, *options)


def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Mode = None,
    out_sharding: Any = None,
) -> Any:
    """The largest element of each segment; see `segment_sum`. Empty ones give the lowest value.

    Example:
        >>> import namoo.numpy as jnp
        >>> segment_max(jnp.arange(5), jnp.array([0, 0, 1, 1, 2]))
        Array([1, 3, 4], dtype=int32)
    """
    options = num_segments, mode, bucket_size, indices_are_sorted, unique_indices
    return _sharded("segment_max", out_sharding, data, segment_ids, *options)


def segment_min(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Mode = None,
    out_sharding: Any = None,
) -> Any:
    """The smallest element of each segment; see `segment_sum`. Empty ones give the highest value.

    Example:
        >>> import namoo.numpy as jnp
        >>> segment_min(jnp.arange(5), jnp.array([0, 0, 1, 1, 2]))
        Array([0, 2, 4], dtype=int32)
    """
    options = num_segments, mode, bucket_size, indices_are_sorted, unique_indices
    return _sharded("segment_min", out_sharding, data, segment_ids, *options)


_guard(globals())
