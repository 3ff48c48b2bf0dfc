"""Derivatives and references: functions of references, and gradients added to references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.source_context import at_user_line
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.trace import context
from namoo.transforms import jvp as forward
from namoo.transforms.discharge import is_ref_type, put_back, strong_value, values_of
from namoo.transforms.refs import Cell, Ref, addupdate
from namoo.tree import diff
from namoo.tree_util import Partial


def jvp_with_refs(
    flat: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """`forward.jvp`; the tangent of a reference is another one, and both are written to."""
    places = [i for i, x in enumerate(primals) if isinstance(x, Ref)]
    which = [isinstance(x, Ref) for x in primals]
    cells: list[Cell] = []

    def on_values(*values):
        inputs = list(values)
        for i in places:
            inputs[i] = Cell.of(context.trace, values[i], primals[i].aval)
        cells[:] = [inputs[i] for i in places]
        return [*flat(*inputs), *map(strong_value, cells)]

    values = values_of(primals, which), values_of(tangents, which)
    outs, out_tangents = forward.jvp(on_values, *values)
    n = len(outs) - len(places)
    for i, cell, x, t in zip(places, cells, outs[n:], out_tangents[n:], strict=True):
        if cell.changed:
            put_back([primals[i], tangents[i]], [x, forward.instantiate(t)])
    return outs[:n], out_tangents[:n]


def cotangent(x: Any) -> ShapedArray:
    """The type of a cotangent of a value, or of a type: references have none."""
    aval = x if is_ref_type(x) else aval_of(x)
    return ShapedArray(aval.shape, dtypes.float0) if is_ref_type(aval) else aval.tangent()


def refuse_ref(x: Any, path: str, what: str) -> None:
    """Refuse to differentiate by a reference."""
    if isinstance(x, Ref):
        raise TypeError(
            f"{what} takes no derivatives by a mutable reference, but {path} is one of type "
            f"{x.aval}. Take them by its value: pass ref[...], or choose other arguments with "
            "argnums." + at_user_line()
        )


class GradRef:
    """The placeholder for a gradient that was added to a reference."""

    def __repr__(self) -> str:
        return "GradRef()"


class VJP(Partial):
    """The backward function that `vjp` returns."""

    def with_refs(self, *refs: Any) -> Callable[[Any], Any]:
        """A backward function that adds cotangents to references.

        Args:
            *refs: for each argument of the function a tree of its structure, with a reference
                where the cotangent is to be added to it, and anything else where it is to be
                returned.

        Example:
            >>> import namoo
            >>> total = namoo.new_ref(0.0)
            >>> _, f_vjp = namoo.vjp(lambda x: x**2, 3.0)
            >>> f_vjp.with_refs(total)(1.0), f_vjp.with_refs(total)(1.0)
            ((GradRef(),), (GradRef(),))
            >>> total
            Ref(12., dtype=float32)
        """
        leaves, tree = tree_util.tree_flatten(refs)
        if tree != self.func.in_tree:
            message = tree_util.mismatch(
                "with_refs takes a tree of the structure of each argument of the function",
                diff(self.func.in_tree, tree),
            ).args[0]
            raise ValueError(message)

        def backward(ct: Any) -> Any:
            found = tree_util.tree_leaves(self(ct))
            for i, ref in enumerate(leaves):
                if isinstance(ref, Ref):
                    addupdate(ref, None, found[i])
                    found[i] = GradRef()
            return tree.unflatten(found)

        return backward


tree_util.register_pytree_node(
    VJP,
    lambda node: ((node.args, node.keywords), node.func),
    lambda func, children: VJP(func, *children[0], **children[1]),
)
