"""Universal functions: elementwise functions that also reduce, accumulate and compute outer
products.

Example:
    >>> import namoo.numpy as jnp
    >>> jnp.add.reduce(jnp.arange(4)), jnp.multiply.outer(jnp.arange(3), jnp.arange(2)).shape
    (Array(6, dtype=int32), (3, 2))
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from namoo._base.source_context import entry_point
from namoo.core.array import Array
from namoo.dimensions import sizes
from namoo.numpy.promote import array_of, broadcast_to, check_arraylike
from namoo.numpy.same_type import choose_promoted
from namoo.primitives import shape as lax

Function = Callable[..., Any]

AT_ADVICE = """\
{name}.at cannot change its argument: arrays are immutable. Ask for the changed array instead:
    x = jnp.{name}.at(x, indices, y, inplace=False)"""


# They determine the hash of a ufunc.
_READ_ONLY = ("nin", "nout", "nargs", "identity", "_func")


class ufunc:
    """A function that works element by element, with the methods NumPy's universal functions have.

    Args:
        func: function of `nin` scalars that returns `nout` scalars.
        nin, nout: how many operands and results.
        name: its name; that of `func` by default.
        nargs: how many arguments it takes; `nin` by default.
        identity: the value that leaves the other operand unchanged, for empty reductions.
        call: the same function on whole arrays, where it exists; else `func` is mapped.
        reduce, accumulate, at, reduceat: faster implementations of these methods.

    Example:
        >>> import namoo.numpy as jnp
        >>> jnp.add.nin, jnp.add.identity, jnp.maximum.accumulate(jnp.array([1, 3, 2]))
        (2, 0, Array([1, 3, 3], dtype=int32))
    """

    def __init__(
        self,
        func: Function,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Function | None = None,
        reduce: Function | None = None,
        accumulate: Function | None = None,
        at: Function | None = None,
        reduceat: Function | None = None,
    ):
        self.__doc__ = func.__doc__
        self.__name__ = name or func.__name__
        self.__qualname__ = self.__name__
        self.__module__ = func.__module__
        self._func = func
        self.nin = operator.index(nin)
        self.nout = operator.index(nout)
        self.nargs = operator.index(nargs or nin)
        self.identity = identity
        self.call = call
        self.ways: dict[str, Function] = {}
        self.define(reduce=reduce, accumulate=accumulate, at=at, reduceat=reduceat)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _READ_ONLY and name in vars(self):
            raise AttributeError(f"attribute {name!r} of {self!r} is read-only")
        super().__setattr__(name, value)

    def define(self, **ways: Function | None) -> None:
        """Set the implementation of a method, where it is faster than applying the function."""
        self.ways.update({name: way for name, way in ways.items() if way is not None})

    def _key(self) -> tuple:
        return self._func, self.__name__, self.identity, self.nin, self.nout, self.nargs

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._key() == other._key()

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"

    @entry_point
    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            self._refuse_out("out" if out is not None else "where", "")
        if self.call is not None:
            return self.call(*args)
        check_arraylike(self.__name__, *args)
        from namoo.numpy.mapping import vectorize

        return vectorize(self._func)(*args)

    def _refuse_out(self, argument: str, method: str) -> None:
        raise NotImplementedError(
            f"{argument} argument of jnp.{self.__name__}{method} is not supported: arrays are "
            "immutable. Use the result, and jnp.where to choose elements."
        )

    def _check_binary(self, method: str, out: Any) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs, {self!r} has {self.nin}")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")
        if out is not None:
            self._refuse_out("out", f".{method}")

    def _result_dtype(self, *args: Any) -> Any:
        """The dtype of the function's result on elements of arrays."""
        from namoo.api.inspect import eval_shape

        ones = [lax.full((), 1, x.dtype) for x in args]
        return eval_shape(self._func, *ones).dtype

    def reduce(
        self,
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """Apply the function between all elements along an axis.

        Args:
            a: the array.
            axis: the axis, or None for all elements.
            dtype: type to compute in.
            out: not supported.
            keepdims: keep the axis, with length 1.
            initial: the value to start with.
            where: boolean array; elements where it is false are left out.

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.multiply.reduce(jnp.array([[1, 2], [3, 4]]))
            Array([3, 8], dtype=int32)
        """
        x = array_of(f"{self.__name__}.reduce", a)
        self._check_binary("reduce", out)
        if where is not None:
            where = array_of(f"{self.__name__}.reduce", where)
            if self.identity is None and initial is None:
                raise ValueError(
                    f"reduction operation {self.__name__!r} does not have an identity, so to use "
                    "a where mask one has to specify 'initial'."
                )
            if where.dtype != np.bool_:
                raise ValueError(f"where argument must have dtype=bool; got dtype={where.dtype}")
        way = self.ways.get("reduce", self._reduce)
        return way(x, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    def _reduce(self, x: Any, *, axis, dtype, keepdims, initial, where: Any):
        from namoo.control.loops import fori_loop

        initial = self.identity if initial is None else initial
        dtype = self._result_dtype(x, x) if dtype is None else dtype
        if isinstance(axis, tuple):
            raise NotImplementedError(
                f"{self.__name__}.reduce over a tuple of axes: reduce over one after another."
            )
        if where is not None:
            where = broadcast_to(where, x.shape)
        kept = (1,) * x.ndim
        if axis is None:
            final = kept if keepdims else ()
            x, where = (v if v is None else lax.reshape(v, (v.size,)) for v in (x, where))
        else:
            axis = lax.canonical_axis(axis, x.ndim)
            rest = x.shape[:axis], x.shape[axis + 1 :]
            final = (*rest[0], 1, *rest[1]) if keepdims else (*rest[0], *rest[1])
            x, where = (v if v is None else lax.moveaxis(v, axis, 0) for v in (x, where))
        if not x.shape[0]:
            if initial is None:
                raise ValueError(
                    f"zero-size array to reduction operation {self.__name__} which has no identity"
                )
            return lax.full(final, initial, dtype)

        def body(i, total):
            value = self(total, x[i].astype(dtype))
            return value if where is None else choose_promoted(where[i], value, total)

        first = x[0] if initial is None else array_of(self.__name__, initial)
        first = broadcast_to(first.astype(dtype), x.shape[1:])
        result = fori_loop(int(initial is None), x.shape[0], body, first)
        return lax.reshape(result, final)

    def accumulate(self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Array:
        """The results of applying the function to the first 1, 2, 3, … elements along an axis.

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.multiply.accumulate(jnp.array([1, 2, 3]))
            Array([1, 2, 6], dtype=int32)
        """
        x = array_of(f"{self.__name__}.accumulate", a)
        self._check_binary("accumulate", out)
        return self.ways.get("accumulate", self._accumulate)(x, axis=axis, dtype=dtype)

    def _accumulate(self, x, *, axis, dtype):
        from namoo.control.loops import scan

        if axis is None or isinstance(axis, tuple):
            raise ValueError("accumulate does not allow multiple axes")
        dtype = self._result_dtype(x, x) if dtype is None else dtype
        axis = lax.canonical_axis(axis, x.ndim)
        if not x.size:
            return lax.full(x.shape, 0, dtype)
        x = lax.moveaxis(x.astype(dtype), axis, 0)

        def step(total, value):
            total = self(total, value).astype(dtype)
            return total, total

        _, rest = scan(step, x[0], x[1:])
        from namoo.primitives.slicing import concatenate

        return lax.moveaxis(concatenate([x[:1], rest], 0), 0, axis)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """The array with the function applied to some elements, once for each index.

        Args:
            a: the array.
            indices: an index, or a tuple of them.
            b: the second operand, if the function has one.
            inplace: must be False.

        Raises:
            NotImplementedError: `inplace` was not set to False.

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 2]), 1.0, inplace=False)
            Array([2., 0., 1.], dtype=float32)
        """
        if inplace:
            raise NotImplementedError(AT_ADVICE.format(name=self.__name__))
        x = array_of(f"{self.__name__}.at", a)
        operands = [] if b is None else [array_of(f"{self.__name__}.at", b)]
        return self.ways.get("at", self._at)(x, indices, *operands)

    def _at(self, x, indices, *operands):
        from namoo.control.loops import fori_loop

        dtype = self._result_dtype(x, *operands)
        x, operands = x.astype(dtype), [y.astype(dtype) for y in operands]
        index = indices if isinstance(indices, tuple) else (indices,)
        shape = sizes.broadcast_shapes(*(np.shape(i) for i in index if not isinstance(i, slice)))
        if not shape:
            return x.at[index].set(self(x[index], *operands))
        count = math.prod(shape)
        index = [
            i
            if isinstance(i, slice)
            else lax.reshape(broadcast_to(array_of("at", i), shape), (count,))
            for i in index
        ]
        operands = [
            lax.reshape(
                broadcast_to(y, (*shape, *y.shape[len(shape) :])), (count, *y.shape[len(shape) :])
            )
            for y in operands
        ]

        def body(k, x):
            place = tuple(i if isinstance(i, slice) else i[k] for i in index)
            return x.at[place].set(self(x[place], *(y[k] for y in operands)))

        return fori_loop(0, count, body, x)

    def reduceat(
        self, a: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """Reduce the stretches of an axis that begin at the given indices.

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.add.reduceat(jnp.arange(6), jnp.array([0, 2, 5]))
            Array([1, 9, 5], dtype=int32)
        """
        x, places = array_of(f"{self.__name__}.reduceat", a), array_of("reduceat", indices)
        self._check_binary("reduceat", out)
        if "reduceat" in self.ways:
            return self.ways["reduceat"](x, places, axis=axis, dtype=dtype)
        return self._reduceat(x, places, axis=axis, dtype=dtype)

    def _reduceat(self, x, places, *, axis, dtype):
        from namoo.control.loops import fori_loop
        from namoo.primitives.slicing import concatenate

        if not x.ndim:
            raise ValueError("reduceat: a must have 1 or more dimension, got a scalar.")
        if places.ndim != 1:
            raise ValueError(f"reduceat: indices must be one-dimensional, got {places.shape}.")
        if axis is None or isinstance(axis, (tuple, list)):
            raise ValueError("reduceat requires a single integer axis.")
        axis = lax.canonical_axis(axis, x.ndim)
        x = lax.moveaxis(x if dtype is None else x.astype(dtype), axis, 0)
        last = lax.full((1,), x.shape[0], places.dtype)
        column = (-1, *(1,) * (x.ndim - 1))
        ends = concatenate([places[1:], last], 0).reshape(column)
        starts = places.reshape(column)

        def body(i, out):
            return choose_promoted((i > starts) & (i < ends), self(out, x[i][None]), out)

        return lax.moveaxis(fori_loop(0, x.shape[0], body, x[places]), 0, axis)

    def outer(self, a: Any, b: Any, /) -> Array:
        """The function of every element of `a` with every element of `b`.

        Example:
            >>> import namoo.numpy as jnp
            >>> jnp.add.outer(jnp.array([10, 20]), jnp.arange(3))
            Array([[10, 11, 12],
                   [20, 21, 22]], dtype=int32)
        """
        self._check_binary("outer", None)
        check_arraylike(f"{self.__name__}.outer", a, b)
        x, y = array_of("outer", a), array_of("outer", b)
        column, row = (*x.shape, *(1,) * y.ndim), (*(1,) * x.ndim, *y.shape)
        return self(lax.reshape(x, column), lax.reshape(y, row))


def frompyfunc(func: Function, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A universal function from a function of scalars.

    Args:
        func: function of `nin` scalars that returns `nout` scalars, made of namoo's functions.
        nin, nout: how many operands and results.
        identity: the value that leaves the other operand unchanged.

    Example:
        >>> import namoo.numpy as jnp
        >>> halves = frompyfunc(lambda x, y: x + y / 2, 2, 1)
        >>> halves(jnp.array([1.0, 2.0]), 4.0)
        Array([3., 4.], dtype=float32)
    """
    return ufunc(func, nin, nout, identity=identity)


def elementwise(nin: int, identity: Any = None) -> Callable[[Function], ufunc]:
    """Make a function of whole arrays a universal one.

    Args:
        nin: how many operands it has.
        identity: the value that leaves the other operand unchanged.
    """
    return lambda fun: ufunc(fun, nin, 1, identity=identity, call=fun)
