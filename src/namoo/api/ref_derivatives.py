"""Derivatives and references: functions of references, and gradients added to references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.source_context import at_user_line, entry_point
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.trace import context
from namoo.transforms import jvp as forward
from namoo.transforms.discharge import is_ref_type, put_back, strong_value, values_of
from namoo.transforms.refs import Cell, Ref, addupdate
from namoo.tree import diff


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


class _Placeholder:
    """An object without data: all of a class are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradRef(_Placeholder):
    """The placeholder for a gradient that was added to a reference."""


class GradValue(_Placeholder):
    """In an argument of `with_refs`: the cotangent is to be returned."""


class DontWant(_Placeholder):
    """In an argument of `with_refs`: the cotangent is neither added nor returned."""


class DidntWant(_Placeholder):
    """The placeholder for a cotangent that `DontWant` stood for."""


class NotNeeded(_Placeholder):
    """In `args_res` of a backward function: it does not need the value of this argument."""


for _placeholder in (GradRef, DidntWant, NotNeeded):
    tree_util.register_static(_placeholder)  # trees without leaves: `jit` and `vmap` return them


class VJP:
    """The backward function that `vjp` returns: a tree whose leaves are the residuals.

    Attributes:
        args_res: for each argument of the function a tree of its structure, with the values that
            the backward pass needs, and `NotNeeded()` elsewhere. It may be changed: an argument
            that is set to None does not stay in memory, and is set again before the call.
        opaque_residuals: the other values that the backward pass needs.
    """

    def __init__(self, rule: Any, args_res: list[Any], opaque_residuals: list[Any]):
        self.rule, self.args_res, self.opaque_residuals = rule, args_res, opaque_residuals

    @classmethod
    def of(cls, rule: Any, leaves: Sequence[Any], residuals: Sequence[Any]) -> VJP:
        """Return the backward function for a rule, arguments, and residuals.

        Args:
            rule: a function of residuals and a cotangent, with `in_tree`, `static` and `sources`,
                which is set: for each residual the number of the leaf that it is, or None.
            leaves: those of the arguments that are arrays.
            residuals: what the rule takes.
        """
        known = {id(x): i for i, x in enumerate(leaves)}
        rule.sources = [known.get(id(x)) for x in residuals]
        kept: list[Any] = [NotNeeded() for _ in leaves]
        for i, x in zip(rule.sources, residuals, strict=True):
            if i is not None:
                kept[i] = x
        whole = rule.static.join(kept)
        for i in rule.static.by_position:
            whole[i] = NotNeeded()
        others = [x for i, x in zip(rule.sources, residuals, strict=True) if i is None]
        return cls(rule, list(rule.in_tree.unflatten(whole)), others)

    @entry_point
    def __call__(self, *ct: Any) -> Any:
        sources, others = self.rule.sources, iter(self.opaque_residuals)
        if len(self.opaque_residuals) == len(sources):
            return self.rule(self.opaque_residuals, *ct)
        leaves = self.rule.static.dynamic(self.rule.in_tree.flatten_up_to(tuple(self.args_res)))
        residuals = [next(others) if i is None else leaves[i] for i in sources]
        if any(x is None or type(x) is NotNeeded for x in residuals):
            raise ValueError(
                f"The backward function of {self.rule.name} needs an argument whose value in "
                "args_res is None. Set it again before the call: f_vjp.args_res[i] = value."
            )
        return self.rule(residuals, *ct)

    def with_refs(self, *refs: Any) -> Callable[[Any], Any]:
        """A backward function that adds cotangents to references.

        Args:
            *refs: for each argument of the function a tree of its structure, with a reference
                where the cotangent is to be added to it, `ad.DontWant()` where it is not wanted,
                and anything else where it is to be returned.

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
        if tree != self.rule.in_tree:
            message = tree_util.mismatch(
                "with_refs takes a tree of the structure of each argument of the function",
                diff(self.rule.in_tree, tree),
            ).args[0]
            raise ValueError(message)

        def backward(ct: Any) -> Any:
            found = tree_util.tree_leaves(self(ct))
            for i, ref in enumerate(leaves):
                if isinstance(ref, Ref):
                    addupdate(ref, None, found[i])
                    found[i] = GradRef()
                elif isinstance(ref, DontWant):
                    found[i] = DidntWant()
            return tree.unflatten(found)

        return backward


tree_util.register_pytree_node(
    VJP,
    lambda node: ((node.args_res, node.opaque_residuals), node.rule),
    lambda rule, children: VJP(rule, *map(list, children)),
)
