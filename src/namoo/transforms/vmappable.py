"""Classes whose objects `vmap` maps over as a whole, by functions that their library registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Vmappable(NamedTuple):
    """How objects of a class are mapped over."""

    spec_type: type
    """The class of their entries in `in_axes` and `out_axes`."""
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


vmappables: dict[type, Vmappable] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[..., Any] | None,
) -> None:
    """Let `vmap` map over objects of a class.

    Args:
        data_type: the class.
        spec_type: the class of its entries in `in_axes` and `out_axes`.
        axis_size_type: the class of the axis size, which is `int`.
        to_elt: `(cont, get_index, x, spec)` returns one example of `x`; `cont(array, axis)` returns
            that of an array, and `get_index()` the number of the example.
        from_elt: `(cont, axis_size, example, spec)` returns the object for all examples;
            `cont(axis_size, example, axis)` returns an array for all.
        make_iota: makes the indices for axis sizes of another class; None for `int`.

    Raises:
        TypeError: axis sizes are not integers.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> class Rows:
        ...     def __init__(self, data):
        ...         self.data = data
        >>> register_vmappable(
        ...     Rows,
        ...     str,
        ...     int,
        ...     lambda cont, index, x, spec: cont(x.data, 0),
        ...     lambda cont, size, x, spec: Rows(cont(size, x.data, 0)),
        ...     None,
        ... )
        >>> rows = Rows(jnp.arange(6.0).reshape(2, 3))
        >>> namoo.vmap(jnp.sum, in_axes="rows", axis_size=2)(rows)
        Array([ 3., 12.], dtype=float32)
        >>> unregister_vmappable(Rows)
    """
    if axis_size_type is not int or make_iota is not None:
        raise TypeError(
            f"register_vmappable: the axis sizes of {data_type.__name__} must be integers, and "
            "make_iota None: other axis sizes are not supported."
        )
    vmappables[data_type] = Vmappable(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Undo `register_vmappable`."""
    del vmappables[data_type]


def is_vmappable(x: Any) -> bool:
    """Whether an object's class is registered."""
    return type(x) in vmappables


def is_spec(x: Any) -> bool:
    """Whether an object says how to map over objects of a registered class."""
    return any(isinstance(x, v.spec_type) for v in vmappables.values())
