"""Calls back into Python from a program: `pure_callback`, `io_callback`, `debug_callback`.

A program is traced once and runs many times; a callback is a Python function that is called each
time it runs, with the values.
"""

from __future__ import annotations

import bdb
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo import errors, tree_util
from namoo._base import dtypes
from namoo._base.source_context import at_user_line, entry_point
from namoo.control.loops import scan
from namoo.core.array import EagerArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of, canonical_shape
from namoo.core.primitive import Primitive
from namoo.primitives.shape import expand_dims, moveaxis
from namoo.primitives.slicing import concatenate, index_in_dim
from namoo.transforms.batch import Axis, batch_size, batch_to, to_front

VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)

NO_VMAP = """\
pure_callback: vmap is only supported with vmap_method=, how to call the function for a batch.
'sequential' calls it for one example after another; 'expand_dims' and 'broadcast_all' call it once
with a leading batch axis on all arguments (of length 1, or repeated, where an argument is the same
for all examples), and expect it on all results."""

NO_DERIVATIVE = """\
Pure callbacks do not support JVP: Python code cannot be differentiated. Write the derivative
yourself, with namoo.custom_jvp or namoo.custom_vjp around the call, or keep the value out of the
derivative with namoo.lax.stop_gradient."""


class FlatCallback(NamedTuple):
    """A function of trees, called with their leaves."""

    callback_func: Callable[..., Any]
    in_tree: Any

    def __call__(self, *leaves: Any) -> Any:
        args, kwargs = self.in_tree.unflatten(leaves)
        return self.callback_func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"FlatCallback({_name(self.callback_func)})"


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", None) or type(fun).__name__


def _argument(value: np.ndarray) -> EagerArray:
    """The array that a callback gets for an operand; random keys become their words."""
    dtype = dtypes.of_numpy(value.dtype) if value.dtype.names else value.dtype
    return EagerArray(dtype.to_words(value) if isinstance(dtype, dtypes.KeyDType) else value)


def _call(what: str, callback: Any, values: Sequence[np.ndarray]) -> Any:
    try:
        return callback(*map(_argument, values))
    except bdb.BdbQuit:  # the user left the debugger
        raise
    except Exception as error:
        name = _name(callback.callback_func)
        raise errors.JaxRuntimeError(
            f"{what}: the function {name} raised {type(error).__name__}: {error}"
        ) from error


class ResultCallback(Primitive):
    """A callback whose results have types known beforehand."""

    multiple_results, takes_axis = True, True

    def evaluate(self, *values, callback, result_avals, **rest):
        result = _call(self.name, callback, values)
        leaves = tree_util.tree_leaves(result)
        name = _name(callback.callback_func)
        if len(leaves) != len(result_avals):
            raise errors.JaxRuntimeError(
                f"{self.name}: the function {name} returned {len(leaves)} arrays, but "
                f"result_shape_dtypes specifies {len(result_avals)}."
            )
        return [
            self.checked(name, i, leaf, aval)
            for i, (leaf, aval) in enumerate(zip(leaves, result_avals, strict=True))
        ]

    def checked(self, name: str, i: int, leaf: Any, aval: ShapedArray) -> np.ndarray:
        """A result, in memory of its own: the function may write to what it returned."""
        value = to_numpy(leaf) if isinstance(leaf, EagerArray) else np.asarray(leaf)
        dtype = dtypes.canonicalize_dtype(value.dtype)
        if value.shape != aval.shape or dtype != aval.dtype:
            found = ShapedArray(value.shape, dtype).str_short()
            raise errors.JaxRuntimeError(
                f"{self.name}: result {i} of the function {name} has the type {found}, but "
                f"result_shape_dtypes specifies {aval.str_short()}. Return an array of that shape "
                "and dtype."
            )
        return np.array(value, aval.dtype)

    def abstract(self, *avals, result_avals, **rest):
        return list(result_avals)

    def weak_results(self, weak, count, params):
        return [False] * count

    def in_turn(self, xs, dims, **params):
        """Process a batch example by example, in a loop."""
        xs, batched = to_front(xs, dims)

        def one(_, slices):
            rest = iter(slices)
            operands = [next(rest) if b else x for x, b in zip(xs, batched, strict=True)]
            return (), self.bind(*operands, **params)

        _, outs = scan(one, (), [x for x, b in zip(xs, batched, strict=True) if b])
        return outs, [0] * len(outs)


class PureCallback(ResultCallback):
    """The call may be left out, repeated or moved: only its results matter."""

    name = "pure_callback"

    def jvp(self, primals, tangents, **params):
        raise ValueError(NO_DERIVATIVE + at_user_line())

    def batch(self, xs, dims, *, axis, result_avals, vmap_method, **params):
        params |= {"result_avals": result_avals, "vmap_method": vmap_method}
        if vmap_method is None and not axis.devices:
            raise NotImplementedError(NO_VMAP)
        if axis.devices or vmap_method == "sequential":
            return self.in_turn(xs, dims, **params)
        size = batch_size(xs, dims)
        if vmap_method == "sequential_unrolled":
            each = [self.bind(*_example(xs, dims, i), **params) for i in range(size)]
            outs = [
                concatenate([expand_dims(x, (0,)) for x in column], 0)
                for column in zip(*each, strict=True)
            ]
            return outs, [0] * len(outs)
        args = []
        for x, d in zip(xs, dims, strict=True):
            if d is not None:
                args.append(moveaxis(x, d, 0))
            elif vmap_method == "expand_dims":
                args.append(expand_dims(x, (0,)))
            elif vmap_method == "broadcast_all":
                args.append(batch_to(Axis(size), x, None))
            else:
                args.append(x)
        params["result_avals"] = tuple(a.update(shape=(size, *a.shape)) for a in result_avals)
        outs = self.bind(*args, **params)
        return outs, [0] * len(outs)


def _refuse_order(axis: Axis) -> None:
    """Raise if there are several devices: their order is not defined."""
    if axis.size > 1:
        raise ValueError(
            "The following ordered effects are not supported for more than 1 device: callbacks "
            "with ordered=True. Use ordered=False." + at_user_line()
        )


def _example(xs, dims, i):
    """The operands of one example of a batch."""
    return [
        x if d is None else index_in_dim(x, i, d, keepdims=False)
        for x, d in zip(xs, dims, strict=True)
    ]


class IOCallback(ResultCallback):
    """The call has effects: it happens exactly as often as the program says."""

    name, effectful, exactly_once = "io_callback", True, True

    def jvp(self, primals, tangents, **params):
        raise ValueError(
            "IO callbacks do not support JVP: io_callback has no derivative. Write one with "
            "namoo.custom_jvp around the call, or pass stop_gradient of its arguments."
            + at_user_line()
        )

    def transpose(self, cts, *operands, **params):
        raise ValueError("IO callbacks do not support transpose." + at_user_line())

    def batch(self, xs, dims, *, axis, ordered, **params):
        if ordered and axis.devices:
            _refuse_order(axis)
        elif ordered:
            raise ValueError(
                "Cannot `vmap` ordered IO callback: the examples of a batch have no order. "
                "Use ordered=False, or lax.map instead of vmap."
            )
        return self.in_turn(xs, dims, ordered=ordered, **params)


class DebugCallback(Primitive):
    """A call for its effects alone, which does not change the program's values."""

    name, effectful, multiple_results, takes_axis = "debug_callback", True, True, True

    def evaluate(self, *values, callback, **rest):
        _call(self.name, callback, values)
        return []

    def abstract(self, *avals, **params):
        return []

    def jvp(self, primals, tangents, **params):
        self.bind(*primals, **params)
        return [], []

    def batch(self, xs, dims, *, axis, **params):
        if axis.devices and params.get("ordered"):
            _refuse_order(axis)
        for i in range(batch_size(xs, dims)):
            self.bind(*_example(xs, dims, i), **params)
        return [], []


class DebugPrint(DebugCallback):
    """`debug_callback` with a message to print."""

    name = "debug_print"


pure_callback_p = PureCallback()
io_callback_p = IOCallback()
debug_callback_p = DebugCallback()
debug_print_p = DebugPrint()


def _operands(what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
    """The leaves of the arguments, which must be arrays, and their structure."""
    for path, leaf in tree_util.tree_leaves_with_path((args, kwargs)):
        try:
            aval_of(leaf)
        except TypeError:
            raise TypeError(
                f"{what}: the argument {tree_util.keystr(path[1:2])} must be a tree of arrays, got "
                f"{leaf!r} of type {type(leaf).__name__}. Close over values that are not arrays."
            ) from None
    return tree_util.tree_flatten((args, kwargs))


def result_avals(what: str, result_shape_dtypes: Any) -> tuple[tuple[ShapedArray, ...], Any]:
    """The types of results that were announced, and the structure of the tree."""
    leaves, tree = tree_util.tree_flatten(result_shape_dtypes)
    avals = []
    for leaf in leaves:
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise TypeError(
                f"{what}: result_shape_dtypes must be a tree of objects with shape and dtype, such "
                f"as namoo.ShapeDtypeStruct(shape, dtype), got {leaf!r}."
            )
        dtype = dtypes.canonicalize_dtype(leaf.dtype, allow_extended=True)
        if dtype != leaf.dtype:
            raise ValueError(
                f"{what}: result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is "
                f"disabled, got {leaf.dtype}."
            )
        avals.append(ShapedArray(canonical_shape(leaf.shape), dtype))
    return tuple(avals), tree


@entry_point
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without side effects, when the program runs.

    The call is left out where its result is not needed. It has no derivative: wrap it in
    `custom_jvp` to give it one.

    Args:
        callback: a function of trees of arrays that returns a tree of arrays.
        result_shape_dtypes: what it returns, as a tree of objects with `shape` and `dtype`.
        *args: arguments for it.
        sharding: has no effect.
        vmap_method: how `vmap` calls it: 'sequential', 'sequential_unrolled', 'expand_dims',
          'broadcast_all' or 'legacy_vectorized'.
        **kwargs: keyword arguments for it.

    Returns:
        what the function returns.

    Raises:
        JaxRuntimeError: the function raises, or returns something other than `result_shape_dtypes`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> import numpy as np
        >>> shape = namoo.ShapeDtypeStruct((), jnp.float32)
        >>> f = lambda x: pure_callback(np.sinc, shape, x)
        >>> namoo.jit(f)(0.5)
        Array(0.63661975, dtype=float32)
    """
    if not callable(callback):
        raise TypeError(f"pure_callback: callback must be callable, got {callback!r}.")
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"pure_callback: vmap_method must be one of {', '.join(VMAP_METHODS)} or None, but got "
            f"{vmap_method!r}."
        )
    flat, in_tree = _operands("pure_callback", args, kwargs)
    avals, out_tree = result_avals("pure_callback", result_shape_dtypes)
    outs = pure_callback_p.bind(
        *flat,
        callback=FlatCallback(callback, in_tree),
        result_avals=avals,
        vmap_method=vmap_method,
    )
    return out_tree.unflatten(outs)


@entry_point
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects, when the program runs.

    The call happens even if its result is not needed.

    Args:
        callback: a function of trees of arrays that returns a tree of arrays.
        result_shape_dtypes: what it returns, as a tree of objects with `shape` and `dtype`; None
          for nothing.
        *args: arguments for it.
        sharding: has no effect.
        ordered: calls happen in the order of the program; such calls cannot be mapped by `vmap`.
        **kwargs: keyword arguments for it.

    Returns:
        what the function returns.

    Raises:
        JaxRuntimeError: the function raises, or returns something other than `result_shape_dtypes`.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> seen = []
        >>> f = namoo.jit(lambda x: io_callback(lambda v: seen.append(int(v)), None, x))
        >>> f(1), f(2)
        (None, None)
        >>> seen
        [1, 2]
    """
    if not callable(callback):
        raise TypeError(f"io_callback: callback must be callable, got {callback!r}.")
    flat, in_tree = _operands("io_callback", args, kwargs)
    avals, out_tree = result_avals("io_callback", result_shape_dtypes)
    outs = io_callback_p.bind(
        *flat, callback=FlatCallback(callback, in_tree), ordered=bool(ordered), result_avals=avals
    )
    return out_tree.unflatten(outs)


class _WithStatic(NamedTuple):
    """A function to be called with the array leaves; it holds the other leaves itself."""

    callback_func: Callable[..., Any]
    in_tree: Any
    static: tuple[Any, ...]
    """The leaves that are not arrays; `_ARRAY` where one is."""

    def __call__(self, *values: Any) -> Any:
        rest = iter(values)
        leaves = [next(rest) if leaf is _ARRAY else leaf for leaf in self.static]
        args, kwargs = self.in_tree.unflatten(leaves)
        return self.callback_func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"FlatCallback({_name(self.callback_func)})"


_ARRAY = object()


def _is_array(x: Any) -> bool:
    return hasattr(x, "aval") or isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))


def bind_debug(
    prim: DebugCallback,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    **params: Any,
) -> None:
    """Bind a debugging primitive to a function of trees whose leaves may not be arrays."""
    leaves, in_tree = tree_util.tree_flatten((args, kwargs))
    static = tuple(_ARRAY if _is_array(leaf) else leaf for leaf in leaves)
    prim.bind(
        *(leaf for leaf in leaves if _is_array(leaf)),
        callback=_WithStatic(fun, in_tree, static),
        **params,
    )


@entry_point
def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function to look at values, when the program runs.

    Under `vmap` it is called once per example; under `grad` once, with the values of the forward
    pass.

    Args:
        callback: a function whose result is not used; if None, the result is this function with the
          options given.
        *args: trees of arrays and other values, passed to it.
        ordered: calls happen in the order of the program; here they always do.
        partitioned: has no effect.
        **kwargs: keyword arguments, likewise.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> f = namoo.jit(lambda x: debug_callback(lambda v: print("x is", v), x))
        >>> f(3)
        x is 3
    """
    if callback is None:
        refuse_arguments("debug_callback", args, kwargs)
        return functools.partial(_bind_callback, bool(ordered))
    _bind_callback(bool(ordered), callback, *args, **kwargs)
    return None


def refuse_arguments(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments in the call that sets the options: they belong in a second call."""
    if args or kwargs:
        raise TypeError(
            f"{name} received unexpected arguments in the two-call form: {args} and {kwargs}. Pass "
            "options only, and the arguments in the second call."
        )


def _bind_callback(
    ordered: bool, callback: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> None:
    if not callable(callback):
        raise TypeError(
            "The first argument of debug.callback must be callable, but got an object of type "
            f"{type(callback)}."
        )
    bind_debug(debug_callback_p, callback, args, kwargs, ordered=ordered)
