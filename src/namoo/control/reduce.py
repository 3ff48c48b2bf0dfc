"""`reduce` and `reduce_window` by any associative function.

Where the function is one of the usual ones (a sum, a product, the larger of two, …) the primitive
made for it is used.  Otherwise the function is kept as a program of scalars; it is run on all
neighbours at once, and then on their results: log n steps, in which the order of elements is kept.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from namoo import tree_util
from namoo.control.trees import leaf_avals
from namoo.core.array import EagerArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr
from namoo.core.primitive import Primitive
from namoo.core.trace import Tracer, eval_trace, set_trace
from namoo.primitives import arithmetic as ar
from namoo.primitives import bits
from namoo.primitives import elementwise as ew
from namoo.primitives import reduce_window as win
from namoo.primitives import reduction as red
from namoo.primitives.resharding import with_out_sharding
from namoo.primitives.shape import (
    broadcast_to,
    convert_element_type,
    reduce_sum_p,
    reduced_shape,
    reshape,
    shape_of,
    transpose,
)
from namoo.primitives.slicing import concatenate, pad
from namoo.primitives.slicing import slice as lax_slice
from namoo.transforms.batch import Axis, batch, batch_to
from namoo.transforms.jvp import jvp
from namoo.transforms.program import ProgramPrimitive
from namoo.transforms.stage import close, stage_closed
from namoo.transforms.staged import Staged


class FoldPrimitive(ProgramPrimitive):
    """A fold by a program of scalars; operands are its constants, the arrays, the initial values.

    `expand` writes it out in other operations: that is how it is computed and transformed.
    """

    def expand(self, *operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        raise NotImplementedError(type(self))

    def shape(self, shape: tuple[int, ...], **params: Any) -> tuple[int, ...]:
        """The shape of the results."""
        raise NotImplementedError(type(self))

    def attributes(self, hlo: Any, **params: Any) -> dict[str, str]:
        """The parameters as StableHLO names them."""
        raise NotImplementedError(type(self))

    def with_axis(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters for arrays with one more axis in front."""
        raise NotImplementedError(type(self))

    def evaluate(self, *values, **params):
        with set_trace(eval_trace):
            return [to_numpy(x) for x in self.expand(*map(EagerArray, values), **params)]

    def abstract(self, *avals, jaxpr, **params):
        _, xs, inits = _split(jaxpr, avals)
        weak = all(a.weak_type for a in avals)
        for x, init in zip(xs, inits, strict=True):
            if x.shape != xs[0].shape or init.shape or x.dtype != init.dtype:
                raise TypeError(
                    f"{self.name} needs arrays of one shape and a scalar of the same type for "
                    f"each, got {x.str_short()} and {init.str_short()}."
                )
        return [ShapedArray(self.shape(x.shape, **params), x.dtype, weak) for x in xs]

    def jvp(self, primals, tangents, **params):
        return jvp(lambda *xs: self.expand(*xs, **params), primals, tangents)

    def batch(self, xs, dims, *, axis, jaxpr, **params):
        const_dims, _, init_dims = _split(jaxpr, dims)
        if any(d is not None for d in (*const_dims, *init_dims)):
            return batch(lambda *xs: self.expand(*xs, jaxpr=jaxpr, **params), axis, xs, dims)
        consts, arrays, inits = _split(jaxpr, xs)
        array_dims = dims[len(consts) : len(consts) + len(arrays)]
        arrays = [batch_to(axis, x, d) for x, d in zip(arrays, array_dims, strict=True)]
        outs = self.bind(*consts, *arrays, *inits, jaxpr=jaxpr, **self.with_axis(params))
        return outs, [0] * len(outs)

    def native(self, emit, *operands, **params):
        avals = [v.aval for v in emit.eqn.invars]
        closed = stage_closed(lambda *xs: self.expand(*xs, **params), avals, self.name)
        return emit.inline(closed, operands)

    def stablehlo(self, hlo, *operands, jaxpr, **params):
        consts, xs, inits = _split(jaxpr, operands)
        if consts:  # XLA's scalar functions cannot close over values
            return hlo.apply(lambda *xs: self.expand(*xs, jaxpr=jaxpr, **params), *operands)
        scalars = [((), x.dtype) for x in (*xs, *xs)]
        body = hlo.region(scalars, lambda *pairs: hlo.inline(jaxpr, pairs))
        options = self.attributes(hlo, **params)
        return hlo.op(
            self.name, *xs, *inits, result=list(hlo.avals), attributes=options, regions=[body]
        )


def _split(jaxpr: ClosedJaxpr, operands: Sequence[Any]) -> tuple[list, list, list]:
    """The constants, the arrays and the initial values among the operands."""
    count = len(jaxpr.out_avals)
    operands = list(operands)
    return operands[: -2 * count], operands[-2 * count : -count], operands[-count:]


def _fold(jaxpr: ClosedJaxpr, consts: list, xs: list, inits: list) -> list[Any]:
    """Fold arrays of shape (n, m) along their first axis, giving shape (m,)."""
    n, m = shape_of(xs[0])

    def combine(left: list, right: list, size: int) -> list:
        run = lambda *args: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)  # noqa: E731
        operands = [*consts, *left, *right]
        dims = [None] * len(consts) + [0 if shape_of(v) else None for v in (*left, *right)]
        outs, out_dims = batch(run, Axis(size), operands, dims)
        return [batch_to(Axis(size), x, d) for x, d in zip(outs, out_dims, strict=True)]

    if n == 0 or m == 0:
        return [broadcast_to(init, (m,)) for init in inits]
    while n > 1:
        half = n // 2
        left, right = (
            [reshape(lax_slice(x, (i, 0), (2 * half, m), (2, 1)), (half * m,)) for x in xs]
            for i in (0, 1)
        )
        pairs = [reshape(x, (half, m)) for x in combine(left, right, half * m)]
        if n % 2:
            last = [lax_slice(x, (n - 1, 0), (n, m)) for x in xs]
            pairs = [concatenate(both, 0) for both in zip(pairs, last, strict=True)]
        xs, n = pairs, half + n % 2
    return combine(inits, [reshape(x, (m,)) for x in xs], m)


class Reduce(FoldPrimitive):
    """A reduction over `dimensions` by a program of scalars."""

    name = "reduce"

    def expand(self, *operands, jaxpr, dimensions):
        consts, xs, inits = _split(jaxpr, operands)
        full = shape_of(xs[0])
        kept = [i for i in range(len(full)) if i not in dimensions]
        shape = tuple(full[i] for i in kept)
        sizes = (math.prod(full[i] for i in dimensions), math.prod(shape))
        flat = [reshape(transpose(x, (*dimensions, *kept)), sizes) for x in xs]
        return [reshape(x, shape) for x in _fold(jaxpr, consts, flat, inits)]

    def shape(self, shape, *, dimensions):
        return reduced_shape(self.name, shape, dimensions)

    def attributes(self, hlo, *, dimensions):
        return {"dimensions": hlo.ints(dimensions)}

    def with_axis(self, params):
        return {"dimensions": tuple(d + 1 for d in params["dimensions"])}


class ReduceWindow(FoldPrimitive):
    """A reduction over a sliding window by a program of scalars; padding is the initial value."""

    name = "reduce_window"

    def expand(self, *operands, jaxpr, **params):
        consts, xs, inits = _split(jaxpr, operands)
        shape = self.shape(shape_of(xs[0]), **params)
        both = zip(params["padding"], params["base_dilation"], strict=True)
        spread = [(low, high, gap - 1) for (low, high), gap in both]
        xs = [pad(x, init, spread) for x, init in zip(xs, inits, strict=True)]
        window, strides = params["window_dimensions"], params["window_strides"]
        size = math.prod(shape)

        def part(x, place):
            starts = [p * step for p, step in zip(place, params["window_dilation"], strict=True)]
            ends = [
                start + (count - 1) * stride + 1
                for start, count, stride in zip(starts, shape, strides, strict=True)
            ]
            return reshape(lax_slice(x, starts, ends, strides), (1, size))

        if size:
            places = list(np.ndindex(*window))
            xs = [concatenate([part(x, place) for place in places], 0) for x in xs]
        else:
            xs = [broadcast_to(init, (0, 0)) for init in inits]
        return [reshape(x, shape) for x in _fold(jaxpr, consts, xs, inits)]

    def shape(self, shape, **params):
        return win.window_shape(shape, **params)

    def stablehlo(self, hlo, *operands, jaxpr, padding, base_dilation, **params):
        consts, xs, inits = _split(jaxpr, operands)
        # XLA would leave out the initial values around and between the elements.
        spread = [(*pads, gap - 1) for pads, gap in zip(padding, base_dilation, strict=True)]
        xs = [hlo.pad(x, init, spread) for x, init in zip(xs, inits, strict=True)]
        params |= {"padding": ((0, 0),) * len(spread), "base_dilation": (1,) * len(spread)}
        return super().stablehlo(hlo, *consts, *xs, *inits, jaxpr=jaxpr, **params)

    def attributes(self, hlo, *, padding, base_dilation, window_dilation, **sizes):
        sizes |= {"base_dilations": base_dilation, "window_dilations": window_dilation}
        sizes = {name: hlo.ints(value) for name, value in sizes.items()}
        return {**sizes, "padding": hlo.matrix(padding)}

    def with_axis(self, params):
        return win.with_axis(params, 0)


reduce_p = Reduce()
reduce_window_p = ReduceWindow()


class Usual(NamedTuple):
    """An associative function that has primitives of its own."""

    kind: str
    combine: Callable[[Any, Any], Any]
    fold: Primitive
    window: Primitive | None = None


_USUAL: dict[Primitive, Usual] = {
    ar.add_p: Usual("sum", ar.add, reduce_sum_p, win.reduce_window_sum_p),
    ar.mul_p: Usual("prod", ar.mul, red.reduce_prod_p),
    ew.max_p: Usual("max", ew.max, red.reduce_max_p, win.reduce_window_max_p),
    ew.min_p: Usual("min", ew.min, red.reduce_min_p, win.reduce_window_min_p),
    bits.and_p: Usual("and", bits.bitwise_and, red.reduce_and_p),
    bits.or_p: Usual("or", bits.bitwise_or, red.reduce_or_p),
    bits.xor_p: Usual("xor", bits.bitwise_xor, red.reduce_xor_p),
}


class _Computation:
    """The arguments of a reduction by a user's function, checked."""

    def __init__(self, name: str, operands: Any, init_values: Any, computation: Callable):
        self.name = name
        self.fun = computation
        self.operands, self.tree = tree_util.tree_flatten(operands)
        inits, init_tree = tree_util.tree_flatten(init_values)
        if self.tree != init_tree:
            raise ValueError(
                f"Operands must have the same tree structure as init_values in {name}, got "
                f"{self.tree} and {init_tree}."
            )
        if not self.operands:
            raise ValueError(f"{name} needs at least one operand.")
        avals = leaf_avals(operands, f"the operands of {name}")
        self.shape = avals[0].shape
        if any(a.shape != self.shape for a in avals):
            shapes = ", ".join(str(a.shape) for a in avals)
            raise ValueError(f"{name}: operands must have one shape, got {shapes}.")
        if any(shape_of(x) for x in inits):
            shapes = [shape_of(x) for x in inits]
            if name == "reduce_window":
                raise TypeError(
                    "reduce_window expected init_values to be scalars but init_values have shapes "
                    f"{shapes}."
                )
            raise ValueError(f"{name} found non-scalar initial value: init_values have {shapes}.")
        self.inits = [_like(name, init, a.dtype) for init, a in zip(inits, avals, strict=True)]
        self.scalars = [ShapedArray((), a.dtype) for a in avals]

    @functools.cached_property
    def staged(self) -> Staged:
        """The program of the function."""
        pair = tree_util.tree_structure((self.tree.unflatten(self.scalars),) * 2)
        staged = Staged(self.fun, pair, [*self.scalars, *self.scalars], self.name)
        out_tree = tree_util.tree_structure(staged.out_types())
        if out_tree != self.tree:
            raise ValueError(
                f"{self.name} output must have the same tree structure as the operands: the "
                f"function must return {self.tree}, but it returned {out_tree}."
            )
        for wanted, found in zip(self.scalars, staged.out_avals, strict=True):
            if (wanted.shape, wanted.dtype) != (found.shape, found.dtype):
                raise ValueError(
                    f"{self.name}: the function must return values of the types it was given, "
                    f"{wanted.str_short()}, but it returned {found.str_short()}."
                )
        return staged

    def usual(self) -> Usual | None:
        """The built-in reduction that is equivalent to the function, if there is one."""
        if len(self.operands) > 1:
            return None
        for usual in _USUAL.values():
            if self.fun is usual.combine:
                return usual
        jaxpr = self.staged.jaxpr
        if len(jaxpr.eqns) != 1:
            return None
        (eqn,) = jaxpr.eqns
        plain = set(eqn.invars) == set(jaxpr.invars) and jaxpr.outvars == eqn.outvars
        return _USUAL.get(eqn.primitive) if plain else None

    def is_identity(self, usual: Usual) -> bool:
        """Whether the initial value is known now, and changes nothing."""
        (init,), (scalar,) = self.inits, self.scalars
        if isinstance(init, Tracer):
            return False
        return bool(to_numpy(init) == red.identity(usual.kind, scalar.dtype))

    def bind(self, prim: Primitive, **params: Any) -> Any:
        """The reduction by the program, as a tree."""
        jaxpr, consts = close(self.staged.jaxpr, self.staged.consts)
        outs = prim.bind(*consts, *self.operands, *self.inits, jaxpr=jaxpr, **params)
        return self.tree.unflatten(outs)


def _like(name: str, init: Any, dtype: Any) -> Any:
    """An initial value in its array's type."""
    aval = aval_of(init)
    if aval.dtype == dtype:
        return init
    if not aval.weak_type:
        raise TypeError(
            f"{name}: the initial value has dtype {aval.dtype}, but its operand has {dtype}: "
            "convert one of them."
        )
    return convert_element_type(init, dtype)


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Combine all elements along some axes by an associative function.

    Args:
        operands: an array, or a tree of arrays of one shape.
        init_values: a neutral scalar for each array; it may be used many times.
        computation: an associative function of two such trees of scalars.
        dimensions: the axes.
        out_sharding: the sharding of the result.

    Returns:
        An array, or a tree of arrays, without those axes.

    Raises:
        ValueError: structures, shapes or axes do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> reduce(jnp.array([[1, 2], [3, 4]]), 0, lambda a, b: a + b, (1,))
        Array([3, 7], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            out_sharding, reduce, operands, init_values, computation, dimensions
        )
    given = _Computation("reduce", operands, init_values, computation)
    axes = tuple(map(operator.index, dimensions))
    reduced_shape("reduce", given.shape, axes)
    if not axes:
        same = [
            convert_element_type(x, a.dtype)
            for x, a in zip(given.operands, given.scalars, strict=True)
        ]
        return given.tree.unflatten(same)
    usual = given.usual()
    if usual is None:
        return given.bind(reduce_p, dimensions=axes)
    (x,), (init,) = given.operands, given.inits
    out = usual.fold.bind(x, axes=axes)
    if not given.is_identity(usual):
        out = usual.combine(init, out)
    weak = aval_of(x).weak_type and aval_of(init).weak_type
    return given.tree.unflatten([convert_element_type(out, aval_of(x).dtype, weak)])


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combine the elements at each position of a sliding window by an associative function.

    Args:
        operand: an array, or a tree of arrays of one shape.
        init_value: a neutral scalar for each array; it fills the padding.
        computation: an associative function of two such trees of scalars.
        window_dimensions: the size of the window along each axis.
        window_strides: the step of the window along each axis; 1 by default.
        padding: "SAME", "SAME_LOWER", "VALID", or a pair of numbers for each axis.
        base_dilation: how far apart the elements are, with `init_value` between them.
        window_dilation: how far apart the elements of a window are.

    Returns:
        An array, or a tree of arrays, with one element for each position of the window.

    Raises:
        TypeError, ValueError: structures, shapes or windows do not fit.

    Example:
        >>> import namoo.numpy as jnp
        >>> from namoo import lax
        >>> reduce_window(jnp.array([1.0, 4.0, 2.0, 3.0]), -jnp.inf, lax.max, (2,), (2,))
        Array([4., 3.], dtype=float32)
    """
    given = _Computation("reduce_window", operand, init_value, computation)
    params = win.window_params(
        given.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    usual = given.usual()
    if usual is None or usual.window is None:
        return given.bind(reduce_window_p, **params)
    out = usual.window.bind(given.operands[0], **params)
    if not given.is_identity(usual):
        out = usual.combine(given.inits[0], out)
    return given.tree.unflatten([out])
