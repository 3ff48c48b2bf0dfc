"""Functions of single elements or vectors, applied to whole arrays."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from namoo._base.config import config
from namoo._base.source_context import entry_point, warn_user
from namoo.core.array import Array
from namoo.numpy.creation import asarray
from namoo.numpy.promote import array_of, broadcast_shapes
from namoo.primitives import shape as lax

CoreDims = tuple[str, ...]

_ARGUMENT = r"\(((?:\w+(?:,\w+)*)?)\)"
_LIST = rf"{_ARGUMENT}(?:,{_ARGUMENT})*"


def _parse_signature(signature: str) -> tuple[list[CoreDims], list[CoreDims]]:
    """'(n,m),(m)->(n)' as the names of the core axes of each operand and result."""
    text = signature.replace(" ", "")
    if not re.fullmatch(rf"{_LIST}->{_LIST}", text):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    sides = [
        [tuple(name for name in part.split(",") if name) for part in re.findall(_ARGUMENT, side)]
        for side in text.split("->")
    ]
    return sides[0], sides[1]


def _note_sizes(
    sizes: dict[str, int], shape: tuple[int, ...], core: CoreDims, where: str, is_input: bool
) -> None:
    """Check the core axes of a shape against the sizes that are known, and note new ones."""
    if is_input and len(shape) < len(core):
        raise ValueError(
            f"input with shape {shape} does not have enough dimensions for all core dimensions "
            f"{core} {where}"
        )
    if not is_input and len(shape) != len(core):
        raise ValueError(f"output shape {shape} does not match core dimensions {core} {where}")
    for name, size in zip(core, shape[len(shape) - len(core) :], strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError(
                f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]} {where}"
            )


def _fix(
    fun: Callable[..., Any], places: Collection[Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """A function of the other arguments; those in `places`, by number or name, are fixed."""
    fixed = {i: x for i, x in enumerate(args) if i in places}
    named = {name: x for name, x in kwargs.items() if name in places}

    def rest(*others, **other_kwargs):
        arguments = list(others)
        for i, x in sorted(fixed.items()):
            arguments.insert(i, x)
        return fun(*arguments, **other_kwargs, **named)

    return (
        rest,
        [x for i, x in enumerate(args) if i not in places],
        {name: x for name, x in kwargs.items() if name not in places},
    )


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """A function of whole arrays, made from one of elements (or of vectors and matrices).

    Arguments broadcast against one another; the function is mapped by `vmap`, not by a loop.

    Args:
        pyfunc: the function.
        excluded: arguments, by number or name, that are passed on unchanged.
        signature: core axes of operands and results, such as '(n),(n)->()'; scalars by default.

    Returns:
        The function of arrays.

    Raises:
        ValueError: an invalid signature, or shapes that do not fit it.

    Example:
        >>> import namoo.numpy as jnp
        >>> dot = jnp.vectorize(jnp.vdot, signature="(n),(n)->()")
        >>> dot(jnp.ones((4, 1, 3)), jnp.ones((5, 3))).shape
        (4, 5)
    """
    if any(not isinstance(e, (str, int)) for e in excluded):
        raise TypeError(
            "jax.numpy.vectorize can only exclude integer or string arguments, but "
            f"excluded={excluded!r}"
        )
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    where = f"on vectorized function with excluded={excluded!r} and signature={signature!r}"

    @entry_point
    @functools.wraps(pyfunc)
    def mapped(*args, **kwargs):
        fun, args, kwargs = _fix(pyfunc, excluded, args, kwargs)
        cores: list[CoreDims] = [()] * len(args)
        results: list[CoreDims] | None = None
        if signature is not None:
            cores, results = _parse_signature(signature)
        absent = {i for i, x in enumerate(args) if x is None}
        if absent:
            if any(cores[i] for i in absent):
                raise ValueError(f"Cannot pass None at locations {absent} with {signature=}")
            fun, args, _ = _fix(fun, absent, args, {})
            cores = [core for i, core in enumerate(cores) if i not in absent]
        if len(args) != len(cores):
            raise TypeError(
                f"wrong number of positional arguments: expected {len(cores)}, got {len(args)} "
                f"{where}"
            )
        arrays = [asarray(x) for x in args]
        call = functools.partial(fun, **kwargs) if kwargs else fun
        return _map(call, arrays, cores, results, where, signature)

    return mapped


def _map(fun, arrays, cores, results, where, signature):
    from namoo.api.map import vmap

    sizes: dict[str, int] = {}
    for x, core in zip(arrays, cores, strict=True):
        _note_sizes(sizes, x.shape, core, where, is_input=True)
    outer = [x.shape[: x.ndim - len(core)] for x, core in zip(arrays, cores, strict=True)]
    shape = broadcast_shapes(*outer)
    _check_ranks(arrays, outer, signature)
    if results is not None:
        fun = _checked(fun, sizes, results, where)
    n = len(shape)
    filled = [(1,) * (n - len(lead)) + lead for lead in outer]
    ones = [i for i in range(n) if all(lead[i] == 1 for lead in filled)]
    arrays = [
        lax.squeeze(x, [i for i, size in enumerate(lead) if size == 1])
        for x, lead in zip(arrays, outer, strict=True)
    ]
    for i in reversed(range(n)):
        if i not in ones:
            fun = vmap(fun, in_axes=tuple(None if lead[i] == 1 else 0 for lead in filled))
    out = fun(*arrays)
    if not ones:
        return out
    if isinstance(out, tuple):
        return tuple(lax.expand_dims(x, ones) for x in out)
    return lax.expand_dims(out, ones)


def _check_ranks(arrays, outer, signature) -> None:
    ranks = {len(lead) for x, lead in zip(arrays, outer, strict=True) if x.ndim}
    if config.numpy_rank_promotion == "allow" or len(ranks) < 2:
        return
    text = (
        f"operands with shapes {[x.shape for x in arrays]} require rank promotion for the "
        f"jnp.vectorize function with signature {signature}; add the missing axes, or set "
        "jax_numpy_rank_promotion to 'allow'."
    )
    if config.numpy_rank_promotion == "raise":
        raise ValueError(text)
    warn_user(text)


def _checked(fun, sizes, results, where):
    """The function, with the shapes of its results checked against the signature."""

    def checked(*args):
        out = fun(*args)
        if len(results) > 1 and not isinstance(out, tuple):
            raise TypeError(
                f"output must be a tuple when multiple outputs are expected, got: {out!r}\n{where}"
            )
        outs = out if isinstance(out, tuple) else (out,)
        if len(outs) != len(results):
            raise TypeError(
                f"wrong number of output arguments: expected {len(results)}, got {len(outs)} "
                f"{where}"
            )
        known = dict(sizes)
        for x, core in zip(outs, results, strict=True):
            _note_sizes(known, np.shape(x), core, where, is_input=False)
        return out

    return checked


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """Apply a function to all vectors along an axis.

    Args:
        func1d: function of a vector.
        axis: the axis of the vectors; the results replace them.
        arr: the array.
        args, kwargs: passed on to the function.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.apply_along_axis(jnp.sum, 0, jnp.array([[1, 2], [3, 4]]))
        Array([4, 6], dtype=int32)
    """
    from namoo.api.map import vmap

    x = array_of("apply_along_axis", arr)
    axis = lax.canonical_axis(axis, x.ndim)

    def fun(vector):
        return func1d(vector, *args, **kwargs)

    for i in range(1, x.ndim - axis):
        fun = vmap(fun, in_axes=i, out_axes=-1)
    for _ in range(axis):
        fun = vmap(fun, in_axes=0, out_axes=0)
    return fun(x)


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Sequence[int]) -> Array:
    """Apply a reduction over several axes, one after another, keeping them at length 1.

    Args:
        func: function of an array and an axis.
        a: the array.
        axes: the axes.

    Raises:
        ValueError: the function's result has another rank.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), [0, 2]).shape
        (1, 3, 1)
    """
    x = array_of("apply_over_axes", a)
    for axis in axes:
        out = func(x, axis)
        if out.ndim == x.ndim - 1:
            out = lax.expand_dims(out, (axis if axis >= 0 else axis + x.ndim,))
        elif out.ndim != x.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        x = out
    return x
