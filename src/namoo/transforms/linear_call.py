"""A linear function with a transpose written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo import tree_util
from namoo._base.source_context import entry_point
from namoo.core.avals import aval_of
from namoo.core.primitive import Linear, is_zero
from namoo.primitives.shape import instantiate
from namoo.transforms.batch import batch_jaxpr, batch_to, to_front
from namoo.transforms.program import ProgramPrimitive
from namoo.transforms.stage import stage_closed


class LinearCall(ProgramPrimitive):
    """A call of `callee(residuals, x)`, linear in x, whose transpose is the program `transpose_of`.

    Both programs take the residuals first.
    """

    name = "linear_call"

    def evaluate(self, *values, callee, **params):
        return self.executable(callee)(values)

    def native(self, emit, *operands, callee, **params):
        return emit.inline(callee, operands)

    def stablehlo(self, hlo, *operands, callee, **params):
        return hlo.call(callee, operands, callee.jaxpr.name)

    def abstract(self, *avals, callee, **params):
        return callee.out_avals

    def weak_results(self, weak, count, params):
        return [a.weak_type for a in params["callee"].out_avals]

    def jvp(self, primals, tangents, *, num_residuals, **params):
        if not all(map(is_zero, tangents[:num_residuals])):
            raise TypeError(
                "linear_call is not differentiable with respect to its residual arguments: use "
                "stop_gradient on them."
            )
        outs = self.bind(*primals, num_residuals=num_residuals, **params)
        given = map(instantiate, tangents[num_residuals:])
        out_tangents = self.bind(
            *primals[:num_residuals], *given, num_residuals=num_residuals, **params
        )
        return outs, out_tangents

    def transpose(self, cts, *operands, callee, transpose_of, num_residuals):
        residuals, linear = operands[:num_residuals], operands[num_residuals:]
        outs = self.bind(
            *residuals,
            *map(instantiate, cts),
            callee=transpose_of,
            transpose_of=callee,
            num_residuals=num_residuals,
        )
        return [
            *[None] * num_residuals,
            *(ct if type(x) is Linear else None for ct, x in zip(outs, linear, strict=True)),
        ]

    def batch(self, xs, dims, *, axis, callee, transpose_of, num_residuals):
        # All linear operands and results are batched, so that the transpose matches.
        xs, batched = to_front(xs, dims)
        xs = [
            x if b or i < num_residuals else batch_to(axis, x, None)
            for i, (x, b) in enumerate(zip(xs, batched, strict=True))
        ]
        residuals = batched[:num_residuals]
        count = len(xs) - num_residuals
        outs = self.bind(
            *xs,
            callee=batch_jaxpr(callee, axis, [*residuals, *[True] * count], force=True)[0],
            transpose_of=batch_jaxpr(
                transpose_of, axis, [*residuals, *[True] * len(callee.out_avals)], force=True
            )[0],
            num_residuals=num_residuals,
        )
        return outs, [0] * len(outs)


linear_call_p = LinearCall()


@entry_point
def linear_call(
    fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
) -> Any:
    """Call a linear function whose transpose is given.

    Args:
        fun: a function `(residuals, x) -> y`, linear in x.
        fun_transpose: its transpose, `(residuals, ct_y) -> ct_x`.
        residual_args: a tree of arrays that both need.
        linear_args: the tree x.

    Returns:
        `fun(residual_args, linear_args)`.

    Example:
        >>> import namoo
        >>> f = lambda x: linear_call(lambda r, x: x / r, lambda r, t: t / r, 2.0, x)
        >>> namoo.grad(f)(3.0)
        Array(0.5, dtype=float32, weak_type=True)
    """
    residuals, residual_tree = tree_util.tree_flatten(residual_args)
    leaves, in_tree = tree_util.tree_flatten(linear_args)
    n = len(residuals)
    out_tree: Any = None

    def forward(*args):
        nonlocal out_tree
        outs, out_tree = tree_util.tree_flatten(
            fun(residual_tree.unflatten(args[:n]), in_tree.unflatten(args[n:]))
        )
        return outs

    residual_avals = [aval_of(x) for x in residuals]
    callee = stage_closed(forward, [*residual_avals, *map(aval_of, leaves)])
    assert out_tree is not None

    def backward(*args):
        outs, tree = tree_util.tree_flatten(
            fun_transpose(residual_tree.unflatten(args[:n]), out_tree.unflatten(args[n:]))
        )
        if tree != in_tree:
            raise TypeError(
                "linear_call: fun_transpose must return a tree of the structure of linear_args, "
                f"{in_tree}, got {tree}."
            )
        return outs

    transpose_of = stage_closed(backward, [*residual_avals, *callee.out_avals])
    outs = linear_call_p.bind(
        *residuals, *leaves, callee=callee, transpose_of=transpose_of, num_residuals=n
    )
    return out_tree.unflatten(outs)
