"""Derivative rules written by hand, and the types their functions meet."""

from typing import Any

from namoo import tree_util
from namoo._base.source_context import make_entry_points as _guard
from namoo.core.primitive import Zero
from namoo.primitives.shape import instantiate
from namoo.transforms.custom import closure_convert, custom_gradient, custom_jvp, custom_vjp
from namoo.transforms.custom_call import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_jvp_call_p,
    custom_vjp_call_p,
)
from namoo.transforms.linear_call import linear_call

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]
__dir__ = __all__.copy


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values in a tree of `CustomVJPPrimal`s, as `fwd` gets with `symbolic_zeros=True`.

    Example:
        >>> custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, True), CustomVJPPrimal(2.0, False)])
        [1.0, 2.0]
    """

    def is_primal(x):
        return type(x) is CustomVJPPrimal

    return tree_util.tree_map(lambda leaf: leaf.value, tree, is_leaf=is_primal)


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of the values in a tree, as arrays or as `SymbolicZero`s.

    Example:
        >>> zero_from_primal(2.0)
        Array(0., dtype=float32, weak_type=True)
    """

    def zero_of(x: Any) -> Any:
        zero = Zero.of(x)
        return SymbolicZero(zero.aval) if symbolic_zeros else instantiate(zero)

    return tree_util.tree_map(zero_of, val)


_guard(globals())
