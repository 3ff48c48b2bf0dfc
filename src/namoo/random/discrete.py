"""Discrete samples: categories, elements, permutations, and counts of trials."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import namoo.numpy as jnp
from namoo import lax
from namoo._base import dtypes
from namoo._base.source_context import entry_point
from namoo.core.array import Array, EagerArray
from namoo.eager import attach_shortcuts
from namoo.numpy.creation import concrete
from namoo.primitives.shape import canonical_axis
from namoo.random.arguments import array_of, int_dtype, sample_shape, sampler, shape_tuple, spread
from namoo.random.continuous import gumbels
from namoo.random.keys import random_bits, single, split
from namoo.random.uniforms import randint, unit


@sampler
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Categories, with probabilities proportional to exp(logits).

    The index of the largest of logits plus Gumbel noise; without replacement, the indices of the
    largest ones.

    Args:
        key: a key.
        logits: unnormalised logarithms of the probabilities, along `axis`.
        axis: the axis of the categories.
        shape: shape of the sample: any axes, and then those of `logits` without `axis`.
        replace: whether a category may be drawn again.
        mode: as for `gumbel`.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Returns:
        An integer array of indices along `axis`.

    Raises:
        TypeError: `logits` is not an array.
        IndexError: `axis` is out of range.
        ValueError: the shape does not fit; or more draws without replacement than categories.

    Example:
        >>> import namoo.numpy as jnp
        >>> from namoo import random
        >>> random.categorical(random.key(0), jnp.log(jnp.array([0.1, 0.9])), shape=(4,)).shape
        (4,)
    """
    one, _ = single("categorical", key)
    logits = array_of("categorical", "logits", logits)
    if not -logits.ndim <= axis < logits.ndim:
        raise IndexError(
            f"random.categorical: axis {axis} is out of bounds for logits of shape {logits.shape}."
        )
    from_end = axis % logits.ndim - logits.ndim
    batch = tuple(n for i, n in enumerate(logits.shape) if i != axis % logits.ndim)
    shape = sample_shape("categorical", shape, batch)
    extra = shape[: len(shape) - len(batch)]
    if not dtypes.issubdtype(logits.dtype, np.floating):
        raise ValueError(f"categorical needs logits of a floating dtype, got {logits.dtype}")
    if replace:
        whole = list(shape[len(extra) :])
        whole.insert(len(whole) + 1 + from_end, logits.shape[from_end])
        noise = gumbels(one, (*extra, *whole), logits.dtype, mode)
        total = noise + logits
        return lax.argmax(total, total.ndim + from_end, dtypes.default_int_dtype())
    count = math.prod(extra)
    if count > logits.shape[from_end]:
        raise ValueError(
            f"Number of samples without replacement ({count}) cannot exceed number of categories "
            f"({logits.shape[from_end]})."
        )
    logits = logits + gumbels(one, logits.shape, logits.dtype, mode)
    places = lax.top_k(jnp.moveaxis(logits, from_end, -1), count)[1]
    return jnp.moveaxis(places, -1, 0).reshape(shape)


@sampler
def permutation(
    key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Array:
    """An array in random order, or the integers below `x`.

    Args:
        key: a key.
        x: an array, or an integer n for the order of 0…n-1.
        axis: the axis whose elements are permuted.
        independent: whether each line along `axis` is permuted independently.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        TypeError: `x` is neither an array nor an integer.
        ValueError: `axis` is out of range.

    Example:
        >>> from namoo import random
        >>> random.permutation(random.key(0), 5)
        Array([0, 1, 4, 3, 2], dtype=int32)
    """
    one, _ = single("permutation", key)
    x = array_of("permutation", "x", x)
    axis = canonical_axis(axis, x.ndim or 1)
    if not x.ndim:
        if not dtypes.issubdtype(x.dtype, np.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        length = concrete(x, "the length x of random.permutation")
        return _shuffle(one, jnp.arange(operator.index(length)), axis)
    if independent or x.ndim == 1 and not dtypes.is_extended(x.dtype):
        return _shuffle(one, x, axis)
    order = _shuffle(one, jnp.arange(x.shape[axis]), 0)
    return jnp.take(x, order, axis, unique_indices=True)


def _shuffle(key: Any, x: Array, axis: int) -> Array:
    """Lines along an axis in random orders: sort by random words.

    Equal words keep their order, so sort often enough that this hardly matters: the chance
    falls below 1/n³.
    """
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, subkey = split(key)
        words = random_bits(subkey, 32, x.shape)
        if type(words) is EagerArray and type(x) is EagerArray and x.ndim == 1:
            x = EagerArray(x._value[_order(words._value)])
        else:
            _, x = lax.sort_key_val(words, x, axis)
    return x


def _order(words: np.ndarray) -> np.ndarray:
    """The indices that sort 32-bit words in increasing order; equal words keep their order.

    Word and index in one number: NumPy sorts numbers much faster than it computes `argsort`.
    """
    codes = words.astype(np.uint64) << np.uint64(32) | np.arange(words.size, dtype=np.uint64)
    codes.sort()
    return (codes & np.uint64(0xFFFFFFFF)).astype(np.intp)


@entry_point
def choice(
    key: Any,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Elements of an array, drawn at random.

    Args:
        key: a key.
        a: an array, or an integer n for 0…n-1.
        shape: shape of the sample, which replaces `axis`.
        replace: whether an element may be drawn again.
        p: the probability of each element along `axis`; equal ones by default.
        axis: the axis along which elements are drawn.
        mode: as for `gumbel`, for draws by `p` without replacement.

    Raises:
        TypeError: `shape` is not a sequence; `a` or `p` is not an array.
        ValueError: nothing to draw from; more draws without replacement than elements; or `p` of
            another length.

    Example:
        >>> import namoo.numpy as jnp
        >>> from namoo import random
        >>> random.choice(random.key(0), jnp.array([10, 20, 30]), (2,), replace=False).shape
        (2,)
    """
    one, _ = single("choice", key)
    if not isinstance(shape, (tuple, list, np.ndarray)):
        raise TypeError(f"shape argument of random.choice must be a sequence, got {shape}")
    a = array_of("choice", "a", a)
    axis = canonical_axis(axis, a.ndim or 1)
    shape = shape_tuple(shape)
    size = a.shape[axis] if a.ndim else int(a)
    if size <= 0 and math.prod(shape):
        raise ValueError("a must be greater than 0 unless no samples are taken")
    draws = math.prod(shape)
    if not replace and draws > size:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {size}) when "
            "'replace=False'"
        )
    if p is None:
        if replace:
            # A second axis of `a` does not matter: indices are drawn, and then taken.
            return _taken(a, randint(one, shape, 0, size), axis)
        if not draws:
            return _taken(a, jnp.zeros(shape, dtypes.default_int_dtype()), axis)
        ordered = permutation(one, size if not a.ndim else a, axis)
        first = lax.slice_in_dim(ordered, 0, draws, axis=axis)
        return first.reshape((*ordered.shape[:axis], *shape, *ordered.shape[axis + 1 :]))
    p = array_of("choice", "p", p)
    if not dtypes.issubdtype(p.dtype, np.inexact):
        p = p.astype(dtypes.default_float_dtype())
    if p.shape != (size,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. "
            f"p has shape {p.shape} and a.shape[axis] is {size}."
        )
    if replace:
        sums = lax.cumsum(p, 0)
        places = jnp.searchsorted(sums, sums[-1] * (1 - unit(one, shape, p.dtype)))
        return _taken(a, places.astype(dtypes.default_int_dtype()), axis)
    noise = gumbels(one, p.shape, p.dtype, mode) + jnp.log(p)
    return _taken(a, lax.top_k(noise, draws)[1].reshape(shape), axis)


def _taken(a: Array, places: Array, axis: int) -> Array:
    return jnp.take(a, places, axis) if a.ndim else places


@sampler
def geometric(
    key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """How many trials it takes until the first success, each with probability p.

    ⌊log u/log(1 - p)⌋ + 1 for u uniform.

    Args:
        key: a key.
        p: the probability of success.
        shape: shape of the sample; that of `p` by default.
        dtype: an integer type; `int32` by default.
        out_sharding: how the result is divided over devices: a `NamedSharding`, or a
            `PartitionSpec` for the mesh of `set_mesh`, over axes of type Explicit.

    Raises:
        TypeError: `p` is not an array.
        ValueError: the type is not an integer type, or `p` does not fit the shape.

    Example:
        >>> from namoo import random
        >>> random.geometric(random.key(0), 0.3).shape
        ()
    """
    one, _ = single("geometric", key)
    dtype = int_dtype("geometric", dtype)
    p = array_of("geometric", "p", p)
    if not dtypes.issubdtype(p.dtype, np.inexact):
        p = p.astype(dtypes.default_float_dtype())
    shape = sample_shape("geometric", shape, p.shape)
    u = unit(one, shape, p.dtype)
    u = jnp.where(u == 0, p.dtype.type(1), u)
    trials = jnp.floor(jnp.log(u) / spread(jnp.log1p(-p), shape)) + 1
    return trials.astype(dtype)


attach_shortcuts(globals())
