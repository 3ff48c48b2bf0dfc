"""Families: constructors of primitives that differ only in a formula.

`unary`, `binary` and `compare` build elementwise primitives, with their shape, batch and jvp rules
derived; `nary` operands are equal in shape, or scalars.  A jvp rule of operand `i` is a function
`(t, out, *operands) -> tangent`; `None` means that the derivative is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from namoo._base import dtypes as _dtypes
from namoo._base.caches import cached
from namoo.core.array import EagerArray
from namoo.core.avals import ShapedArray
from namoo.core.primitive import Primitive, Zero
from namoo.dimensions import sizes
from namoo.primitives.shape import (
    INTEGERS,
    broadcast_in_dim,
    broadcast_to,
    moveaxis,
    shape_of,
)

# Accepted types: abstract NumPy types, as for `issubdtype`.
floating = (np.floating,)
inexact = (np.floating, np.complexfloating)
real = (np.integer, np.floating)
number = (np.number,)
integer = (np.integer,)
bits = (np.integer, np.bool_)
ordered = (np.integer, np.floating, np.bool_)
anything = (np.number, np.bool_)


# NumPy's arithmetic for these is incomplete and returns int8: compute in int32.
NARROW_INTEGERS = frozenset(d for d in INTEGERS if d.kind == "V")


def accepts(dtype: Any, kinds: Sequence[type]) -> bool:
    """Whether a dtype belongs to one of the abstract kinds."""
    return any(_dtypes.issubdtype(dtype, kind) for kind in kinds)


@cached(
    "primitives.families accepted types",
    bound="combinations of kinds that primitives declare",
    keyed_by="kinds of dtypes",
    kept=True,
)
def accepted(kinds: tuple[type, ...]) -> frozenset[Any]:
    """The dtypes that belong to one of the abstract kinds."""
    known = [_dtypes.MEMBERS[kind] for kind in kinds if kind in _dtypes.MEMBERS]
    others = [kind for kind in kinds if kind not in _dtypes.MEMBERS]
    return frozenset(d for d in _dtypes.SUPPORTED if accepts(d, others)).union(*known)


class Elementwise(Primitive):
    """An operation that computes each element of the result from those at the same position.

    Operands have one shape; scalars are repeated as needed.
    """

    def __init__(
        self,
        name: str,
        evaluate: Callable[..., Any],
        *,
        jvp: Sequence[Callable[..., Any] | None] | None = None,
        dtypes: tuple[type, ...] = anything,
        result: Callable[[Any], Any] | None = None,
        stablehlo: Any = None,
        formula: Any = None,
        same_dtypes: bool = True,
        arity: int | None = None,
    ):
        self.name = name
        self.formula = formula
        """A rule in terms of other operations, for the engines that compile."""
        self.arity = arity or len(jvp or ())
        self.rules = jvp
        self.dtypes = dtypes
        self.accepted = accepted(dtypes)
        self.result = result
        self.stablehlo = stablehlo or formula
        self.same_dtypes = same_dtypes
        # Operations on bits accept no floats, and know the widths of their integers themselves.
        self.widened = NARROW_INTEGERS if _dtypes.float32 in self.accepted else frozenset()
        self.plain = evaluate
        self.evaluate = self._strict(evaluate)

    def _strict(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """`evaluate`, which raises for types that NumPy would silently convert."""
        widened, direct = self.widened, self.accepted - self.widened

        def one(x, **params):
            if x.dtype not in direct:
                return careful(x, **params)
            return evaluate(x, **params)

        def two(x, y, **params):
            # Comparing by identity is cheap and nearly always sufficient.
            if x.dtype not in direct or x.dtype is not y.dtype and x.dtype != y.dtype:
                return careful(x, y, **params)
            return evaluate(x, y, **params)

        def careful(*xs, **params):
            out = self.abstract(*(EagerArray(x).aval for x in xs), **params)
            if not any(x.dtype in widened for x in xs):
                return evaluate(*xs, **params)
            wide = (x.astype(np.int32) if x.dtype in widened else x for x in xs)
            return evaluate(*wide, **params).astype(out.dtype)

        return {1: one, 2: two}.get(self.arity, careful)

    def kernel(self, *avals, **params):
        if params or any(aval.dtype in self.widened for aval in avals):
            return super().kernel(*avals, **params)
        return self.plain

    def abstract(self, *avals, **params):
        dtype, shape, weak = avals[0].dtype, (), True
        if dtype not in self.accepted and not accepts(dtype, self.dtypes):
            self._refuse_dtypes(avals)
        for aval in avals:
            # Comparing by identity is cheap and nearly always sufficient.
            if aval.dtype is not dtype and (
                aval.dtype not in self.accepted or self.same_dtypes and aval.dtype != dtype
            ):
                self._refuse_dtypes(avals)
            if aval.shape and aval.shape != shape:
                shape = common_shape(self.name, [a.shape for a in avals]) if shape else aval.shape
            weak = weak and aval.weak_type
        return ShapedArray(shape, self.result(dtype) if self.result else dtype, weak)

    def _refuse_dtypes(self, avals: Sequence[ShapedArray]) -> NoReturn:
        for i, aval in enumerate(avals):
            if aval.dtype == _dtypes.float0:
                raise TypeError(
                    f"Called {self.name} with a float0 at position {i}. float0s do not support "
                    "any operations by design: they are the derivatives with respect to integers "
                    "and booleans, which are always zero."
                )
            if aval.dtype not in self.accepted:
                kinds = ", ".join(kind.__name__.rstrip("_") for kind in self.dtypes)
                raise TypeError(
                    f"{self.name} does not accept dtype {aval.dtype}. "
                    f"Accepted dtypes are subtypes of {kinds}."
                )
        raise TypeError(
            f"lax.{self.name} requires arguments to have the same dtypes, got "
            f"{', '.join(str(aval.dtype) for aval in avals)}. (The function of namoo.numpy "
            "promotes types by itself.)"
        )

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        total = None
        for rule, t in zip(self.rules or [None] * len(tangents), tangents, strict=True):
            if rule is None or type(t) is Zero:
                continue
            term = rule(t, out, *primals, **params)
            if shape_of(term) != shape_of(out):
                term = broadcast_to(term, shape_of(out))
            total = term if total is None else add_any(total, term)
        return out, Zero.of(out) if total is None else total

    def batch(self, xs, dims, **params):
        xs, d = align_batch(xs, dims)
        return self.bind(*xs, **params), d

    def native(self, emit, *xs, **params):
        if self.formula is not None:
            return emit.formula(self.name, self.formula, *xs)
        return emit.map(self.name, *xs, **params)


def common_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The one shape of elementwise operands, scalars aside."""
    shape = next((s for s in shapes if s), ())
    for other in shapes:
        if other and other != shape:
            if len(other) != len(shape):
                raise TypeError(
                    f"{name}: arrays must have the same number of dimensions, got shapes "
                    f"{', '.join(map(str, shapes))}."
                )
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: {', '.join(map(str, shapes))}."
            )
    return shape


def align_batch(xs: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """Operands of an elementwise operation with the batch axis at the same position."""
    shapes = {shape_of(x) for x in xs}
    if len(shapes) == 1 and len(set(dims)) == 1:
        return list(xs), dims[0]  # type: ignore[return-value]
    size = next(shape_of(x)[d] for x, d in zip(xs, dims, strict=True) if d is not None)
    inner = [
        shape_of(x) if d is None else shape_of(x)[:d] + shape_of(x)[d + 1 :]
        for x, d in zip(xs, dims, strict=True)
    ]
    shape = next((s for s in inner if s), ())
    out = []
    for x, d, own in zip(xs, dims, inner, strict=True):
        if d is None and not own:
            out.append(x)
        elif d is None:
            out.append(broadcast_in_dim(x, (size, *shape), range(1, len(shape) + 1)))
        elif own == shape:
            out.append(moveaxis(x, d, 0))
        else:
            out.append(broadcast_in_dim(x, (size, *shape), (0,)))
    return out, 0


def same(dtype: Any) -> Any:
    return dtype


def boolean(dtype: Any) -> Any:
    return np.dtype(np.bool_)


def unary(name: str, evaluate: Callable[..., Any], *, jvp=None, **rules: Any) -> Elementwise:
    """An elementwise primitive of one operand; its jvp rule is `(t, out, x) -> tangent`."""
    return Elementwise(name, evaluate, jvp=None if jvp is None else [jvp], arity=1, **rules)


def binary(name: str, evaluate: Callable[..., Any], *, jvp=None, **rules: Any) -> Elementwise:
    """An elementwise primitive of two operands, with a jvp rule for each."""
    return Elementwise(name, evaluate, jvp=jvp, arity=2, **rules)


def compare(name: str, evaluate: Callable[..., Any], dtypes=anything, **rules) -> Elementwise:
    """An elementwise primitive of two operands with boolean result and no derivative."""
    return Elementwise(name, evaluate, dtypes=dtypes, result=boolean, arity=2, **rules)


def operands(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of a `lax` function, broadcast: axes of length 1 are repeated.

    Nothing is converted: the primitive raises unless the types are equal.
    """
    if type(x) is EagerArray and type(y) is EagerArray:
        left, right = x._value.shape, y._value.shape
    else:
        left, right = shape_of(x), shape_of(y)
    if left == right or not left or not right:
        return x, y
    pairs = zip(left, right, strict=False)
    if len(left) != len(right) or any(m != n and 1 not in (m, n) for m, n in pairs):
        common_shape(name, [left, right])
    shape = sizes.broadcast_shapes(left, right)
    return broadcast_to(x, shape), broadcast_to(y, shape)


class AddAny(Primitive):
    """The sum of two cotangents of one value."""

    name, linear = "add_any", True

    evaluate = staticmethod(np.add)  # type: ignore[assignment]

    def abstract(self, x, y):
        return ShapedArray(
            common_shape("add_any", [x.shape, y.shape]), x.dtype, x.weak_type and y.weak_type
        )

    def jvp(self, primals, tangents):
        out = self.bind(*primals)
        x, y = tangents
        if type(x) is Zero or type(y) is Zero:
            return out, y if type(x) is Zero else x
        return out, self.bind(x, y)

    def transpose(self, ct, x, y):
        return [ct, ct]

    def batch(self, xs, dims):
        xs, d = align_batch(xs, dims)
        return self.bind(*xs), d

    def native(self, emit, x, y):
        return emit.map("add_any", x, y)

    stablehlo = "add"


add_any_p = AddAny()


def add_any(x: Any, y: Any) -> Any:
    """Add two tangents or cotangents of the same type, either of which may be `Zero`."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_any_p.bind(x, y)
