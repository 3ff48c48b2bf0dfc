"""Batching rules: how a primitive handles one more axis.

A rule in `primitive_batchers` is a function of `(operands, dims, **params)`, where a dim is the
index of the mapped axis in an operand, or None; it returns the result and the index of its axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from functools import partial
from typing import Any

from namoo.interpreters.rules import Rules
from namoo.primitives import shape
from namoo.transforms.vmappable import register_vmappable, unregister_vmappable

__all__ = [
    "AxisRules",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defreducer",
    "defvectorized",
    "fancy_primitive_batchers",
    "moveaxis",
    "not_mapped",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]
__dir__ = __all__.copy


primitive_batchers = Rules("batch")
not_mapped = None


class AxisRules(MutableMapping[Any, Callable[..., Any]]):
    """Batching rules that also take the mapped axis, as a dictionary by primitive.

    A rule is a function of `(axis, operands, dims, **params)`; `axis.size` and `axis.name` describe
    the mapped axis. Only user-defined primitives can have such a rule.
    """

    def __setitem__(self, prim: Any, rule: Callable[..., Any]) -> None:
        primitive_batchers[prim] = lambda operands, dims, *, axis, **params: rule(
            axis, operands, dims, **params
        )
        prim.takes_axis = True

    def __getitem__(self, prim: Any) -> Callable[..., Any]:
        rule = primitive_batchers[prim]
        if not prim.takes_axis:
            raise KeyError(prim)
        return lambda axis, operands, dims, **params: rule(operands, dims, axis=axis, **params)

    def __delitem__(self, prim: Any) -> None:
        del primitive_batchers[prim]
        del prim.takes_axis

    def __iter__(self) -> Iterator[Any]:
        return iter([prim for prim in primitive_batchers.given if prim.takes_axis])

    def __len__(self) -> int:
        return len(list(iter(self)))


class _SizeAndNameRules(AxisRules):
    """`fancy_primitive_batchers` for rules of `(size, name, trace, operands, dims, **params)`."""

    def __setitem__(self, prim: Any, rule: Callable[..., Any]) -> None:
        super().__setitem__(
            prim,
            lambda axis, operands, dims, **params: rule(
                axis.size, axis.name, None, operands, dims, **params
            ),
        )


fancy_primitive_batchers = AxisRules()
axis_primitive_batchers = _SizeAndNameRules()


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """Move an axis to another position.

    Example:
        >>> import namoo.numpy as jnp
        >>> moveaxis(jnp.zeros((2, 3)), 0, 1).shape
        (3, 2)
    """
    ndim = len(shape.shape_of(x))
    return shape.moveaxis(x, src % ndim, dst % ndim)


def broadcast(x: Any, sz: int, axis: int) -> Any:
    """Repeat an array along a new axis.

    Example:
        >>> import namoo.numpy as jnp
        >>> broadcast(jnp.zeros(3), 2, 1).shape
        (3, 2)
    """
    return moveaxis(shape.broadcast(x, (sz,)), 0, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """Move the mapped axis of an operand to the front, or broadcast an unmapped operand.

    Example:
        >>> import namoo.numpy as jnp
        >>> bdim_at_front(jnp.zeros((2, 3)), 1, 3).shape, bdim_at_front(jnp.zeros(2), None, 3).shape
        ((3, 2), (3, 2))
    """
    return broadcast(x, size, 0) if bdim is None else moveaxis(x, bdim, 0)


def defvectorized(prim: Any) -> None:
    """Define the batching of an elementwise primitive.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> twice_p = namoo.extend.core.Primitive("twice")
        >>> _ = twice_p.def_impl(lambda x: 2 * x)
        >>> defvectorized(twice_p)
        >>> print(namoo.vmap(twice_p.bind)(jnp.arange(3)))
        [0 2 4]
    """
    primitive_batchers[prim] = partial(_elementwise, prim)


def defbroadcasting(prim: Any) -> None:
    """Like `defvectorized`, for several operands, some of which may be unmapped.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> plus_p = namoo.extend.core.Primitive("plus")
        >>> _ = plus_p.def_impl(lambda x, y: x + y)
        >>> defbroadcasting(plus_p)
        >>> print(namoo.vmap(plus_p.bind, in_axes=(0, None))(jnp.arange(3), 1))
        [1 2 3]
    """
    defvectorized(prim)


def _elementwise(prim: Any, operands: Any, dims: Any, **params: Any) -> tuple[Any, Any]:
    mapped = {d for d in dims if d is not None}
    if len(mapped) == 1 and None not in dims:
        [dim] = mapped
    else:
        dim = 0
        size = next(
            shape.shape_of(x)[d] for x, d in zip(operands, dims, strict=True) if d is not None
        )
        operands = [bdim_at_front(x, d, size) for x, d in zip(operands, dims, strict=True)]
    out = prim.bind(*operands, **params)
    return out, [dim] * len(out) if prim.multiple_results else dim


def defreducer(prim: Any, ident: Any = None) -> None:
    """Define the batching of a primitive that reduces along its parameter `axes`.

    Args:
        prim: the operation.
        ident: accepted for compatibility with JAX, and ignored.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> total_p = namoo.extend.core.Primitive("total")
        >>> _ = total_p.def_impl(lambda x, *, axes: x.sum(axes))
        >>> defreducer(total_p)
        >>> print(namoo.vmap(lambda x: total_p.bind(x, axes=(0,)))(jnp.ones((2, 3))))
        [3. 3.]
    """
    primitive_batchers[prim] = partial(_reduction, prim)


def _reduction(prim: Any, operands: Any, dims: Any, *, axes: Any, **params: Any) -> tuple[Any, Any]:
    [x], [dim] = operands, dims
    axes = tuple(axis + (axis >= dim) for axis in axes)
    return prim.bind(x, axes=axes, **params), dim - sum(axis < dim for axis in axes)
