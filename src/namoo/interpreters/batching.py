"""Rules of batching: an operation with one more axis.

A rule in `primitive_batchers` is a function of `(operands, dims, **params)`, where a dim is the
place of the mapped axis in an operand, or None; it returns the result and the place of the axis.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from namoo.interpreters.rules import Rules
from namoo.primitives import shape

primitive_batchers = Rules("batch")
not_mapped = None


def moveaxis(x: Any, src: int, dst: int) -> Any:
    """Move one axis to another place.

    >>> import namoo.numpy as jnp
    >>> moveaxis(jnp.zeros((2, 3)), 0, 1).shape
    (3, 2)
    """
    ndim = len(shape.shape_of(x))
    return shape.moveaxis(x, src % ndim, dst % ndim)


def broadcast(x: Any, sz: int, axis: int) -> Any:
    """Repeat an array along a new axis.

    >>> import namoo.numpy as jnp
    >>> broadcast(jnp.zeros(3), 2, 1).shape
    (3, 2)
    """
    return moveaxis(shape.broadcast(x, (sz,)), 0, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int) -> Any:
    """An operand with the mapped axis first, repeated along it where it has none.

    >>> import namoo.numpy as jnp
    >>> bdim_at_front(jnp.zeros((2, 3)), 1, 3).shape, bdim_at_front(jnp.zeros(2), None, 3).shape
    ((3, 2), (3, 2))
    """
    return broadcast(x, size, 0) if bdim is None else moveaxis(x, bdim, 0)


def defvectorized(prim: Any) -> None:
    """Define the batching of an operation that works element by element.

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
    """`defvectorized` for an operation of several operands, of which some may not be mapped.

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
