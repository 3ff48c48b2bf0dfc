"""Batching rules written by the user: `custom_vmap`.

A call of such a function is one equation that holds the function's program.  Where it is mapped
over, the user's rule takes the program's place; all other interpreters run the program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.source_context import entry_point
from namoo.core.avals import aval_of
from namoo.core.jaxpr import jaxpr_as_fun
from namoo.core.primitive import Zero, is_linear, is_zero
from namoo.primitives.shape import instantiate
from namoo.primitives.slicing import index_in_dim
from namoo.transforms.batch import Axis, batch, batch_to, to_front
from namoo.transforms.custom import positional, rule_of_function
from namoo.transforms.jvp import jvp, jvp_jaxpr
from namoo.transforms.linear import linearize_jaxpr, tangents_out
from namoo.transforms.program import ProgramPrimitive
from namoo.transforms.stage import close, stage
from namoo.transforms.transpose import transpose_jaxpr

Rule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]
"""The user's rule on flat values: axis size, which are batched (in front), and the values."""


class CustomVmapCall(ProgramPrimitive):
    """A call of the program `call`; `rule` batches it.

    The first `num_consts` operands are values that the function closes over.
    """

    name = "custom_vmap_call"

    def evaluate(self, *values, call, **rest):
        return self.executable(call)(values)

    def stablehlo(self, hlo, *operands, call, **rest):
        return hlo.call(call, operands, call.jaxpr.name)

    def abstract(self, *avals, call, **rest):
        return call.out_avals

    def weak_results(self, weak, count, params):
        return [a.weak_type for a in params["call"].out_avals]

    def batch(self, xs, dims, *, axis, call, rule, num_consts):
        if any(d is not None for d in dims[:num_consts]):
            raise ValueError(
                f"The custom_vmap function {call.jaxpr.name} closes over a value that is mapped "
                "over by vmap, which its rule does not see. Pass the value as an argument."
            )
        args, batched = to_front(xs[num_consts:], dims[num_consts:])
        outs, batched_out = rule(axis.size, batched, args)
        return outs, [0 if b else None for b in batched_out]

    def jvp(self, primals, tangents, *, call, rule, num_consts):
        nonzeros = [not is_zero(t) for t in tangents]
        program, _ = jvp_jaxpr(call, nonzeros, instantiate_outs=True)
        given = [t for t in tangents if not is_zero(t)]
        # Closed-over values come first, and then their tangents.
        n, consts = len(primals), sum(nonzeros[:num_consts])
        order = [*range(num_consts), *range(n, n + consts), *range(num_consts, n)]
        order += range(n + consts, n + len(given))
        jaxpr = program.jaxpr
        program = program.replace(jaxpr=jaxpr.replace(invars=[jaxpr.invars[i] for i in order]))
        operands = [*primals, *given]
        outs = self.bind(
            *(operands[i] for i in order),
            call=program,
            rule=_jvp_rule(rule, nonzeros[num_consts:]),
            num_consts=num_consts + consts,
        )
        half = len(outs) // 2
        values, out_tangents = outs[:half], outs[half:]
        return values, [
            Zero.of(x) if aval_of(t).dtype == dtypes.float0 else t
            for x, t in zip(values, out_tangents, strict=True)
        ]

    def linearize(self, primals, tangents, *, call, **rest):
        # The user's rule is not for the two halves of the derivative: ordinary rules batch them.
        halves = linearize_jaxpr(call, [not is_zero(t) for t in tangents])
        n = len(call.out_avals)
        outs = jaxpr_as_fun(halves.primal)(*primals)
        residuals = halves.residuals(primals, outs[n:])
        given = [t for t in tangents if not is_zero(t)]
        out_tangents = jaxpr_as_fun(halves.tangent)(*residuals, *given)
        return outs[:n], tangents_out(halves.nonzero_out, outs[:n], out_tangents)

    def transpose(self, cts, *operands, call, **rest):
        linear = [is_linear(x) for x in operands]
        program, nonzero_out = transpose_jaxpr(call, linear, [not is_zero(ct) for ct in cts])
        known = [x for x in operands if not is_linear(x)]
        given = [ct for ct in cts if not is_zero(ct)]
        outs, nonzero = iter(jaxpr_as_fun(program)(*known, *given)), iter(nonzero_out)
        return [
            (next(outs) if next(nonzero) else Zero(x.aval.tangent())) if lin else None
            for x, lin in zip(operands, linear, strict=True)
        ]


custom_vmap_call_p = CustomVmapCall()


def _jvp_rule(rule: Rule, nonzeros: Sequence[bool]) -> Rule:
    """The rule of the derivative: the derivative of the rule.

    If values and their tangents are batched together, the rule gets both as batched.  If only one
    of them is, as in `jacfwd`, the derivative of the rule for one example is mapped.
    """
    n = len(nonzeros)

    def derivative(size, batched, args):
        given = iter(zip(args[n:], batched[n:], strict=True))
        values = list(zip(args[:n], batched[:n], strict=True))
        tangents = [next(given) if nz else (None, False) for nz in nonzeros]
        axis, batched_out = Axis(size), []
        together = any(b and tb for (_, b), (_, tb) in zip(values, tangents, strict=True))
        if together:
            for i, ((x, b), (t, tb)) in enumerate(zip(values, tangents, strict=True)):
                values[i] = (x if b or not tb else batch_to(axis, x, None)), b or tb
                if t is not None:
                    tangents[i] = (t if tb or not b else batch_to(axis, t, None)), b or tb
        flags = [together and b for _, b in values]

        def both(*args):
            def run(*xs):
                outs, batched_out[:] = rule(size, flags, xs)
                if together:
                    return outs
                # A rule may add the axis to results though no operand has it: all rows are equal.
                return [
                    index_in_dim(x, 0, 0, False) if b else x
                    for x, b in zip(outs, batched_out, strict=True)
                ]

            rest = iter(args[n:])
            primals = args[:n]
            moved = [
                next(rest) if nz else Zero.of(x) for x, nz in zip(primals, nonzeros, strict=True)
            ]
            outs, out_tangents = jvp(run, primals, moved)
            return [*outs, *map(instantiate, out_tangents)]

        operands = [*values, *(pair for pair in tangents if pair[0] is not None)]
        dims = [0 if b and not together else None for _, b in operands]
        outs, out_dims = batch(both, axis, [x for x, _ in operands], dims)
        mapped = [d is not None for d in out_dims]
        return to_front(outs, out_dims)[0], batched_out * 2 if together else mapped

    return derivative


class custom_vmap:
    """A function whose batching is written by hand.

    Derivatives in forward mode batch by the derivative of the rule; in reverse mode the function
    itself is differentiated.

    Args:
        fun: a function of trees of arrays.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> @custom_vmap
        ... def f(x, y):
        ...     return x + y
        >>> @f.def_vmap
        ... def rule(axis_size, in_batched, x, y):
        ...     return 10 * (x + y), in_batched[0] or in_batched[1]
        >>> namoo.vmap(f)(jnp.arange(3), jnp.arange(3))
        Array([ 0, 20, 40], dtype=int32)
    """

    def __init__(self, fun: Callable):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable | None = None

    def _namoo_identity(self) -> tuple | None:
        """Everything that a call depends on, for `memo.identity`; None until there is a rule."""
        return None if self.vmap_rule is None else (self.fun, self.vmap_rule)

    def __get__(self, instance, owner=None):
        """A custom function defined in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    __getattr__ = rule_of_function

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Set the rule `(axis_size, in_batched, *args) -> (out, out_batched)`.

        Batched arguments have the mapped axis in front; `in_batched` is a list with a tree of
        booleans for each argument, and `out_batched` a tree of booleans like the result.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @entry_point
    def __call__(self, *args, **kwargs):
        name = getattr(self.fun, "__name__", type(self.fun).__name__)
        vmap_rule = self.vmap_rule
        if vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name} using def_vmap. Write "
                "the rule and decorate it with @f.def_vmap."
            )
        args = positional(self.fun, args, kwargs, "custom_vmap")
        flat, in_tree = tree_util.tree_flatten(tuple(args))
        out_tree: Any = None

        def flat_fun(*leaves):
            nonlocal out_tree
            outs, out_tree = tree_util.tree_flatten(self.fun(*in_tree.unflatten(leaves)))
            return outs

        jaxpr, consts = stage(flat_fun, [aval_of(x) for x in flat], name, how="custom_vmap")
        closed, consts = close(jaxpr, consts)
        rule = _flat_rule(vmap_rule, in_tree, out_tree)
        outs = custom_vmap_call_p.bind(
            *consts, *flat, call=closed, rule=rule, num_consts=len(consts)
        )
        assert out_tree is not None
        return out_tree.unflatten(outs)


def _flat_rule(vmap_rule: Callable, in_tree: Any, out_tree: Any) -> Rule:
    """The user's rule on flat lists, with its results checked."""
    name = getattr(vmap_rule, "__name__", type(vmap_rule).__name__)

    def rule(size, batched, args):
        in_batched = list(in_tree.unflatten(batched))
        result = vmap_rule(size, in_batched, *in_tree.unflatten(args))
        if not (isinstance(result, (tuple, list)) and len(result) == 2):
            raise ValueError(
                f"The custom vmap rule {name} must return a pair (result, which of it is batched), "
                f"got {type(result).__name__}."
            )
        outs, tree = tree_util.tree_flatten(result[0])
        flags, flag_tree = tree_util.tree_flatten(result[1])
        if flag_tree != tree:
            raise ValueError(
                "structure of output value and output batching specification returned by custom "
                f"vmap rule ({name}) do not match: the values are {tree}, the specification of "
                f"which are batched is {flag_tree}."
            )
        if tree != out_tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({name}) does not match that of "
                f"original custom-vmapped function: expected {out_tree}, got {tree}."
            )
        for x, flag in zip(outs, flags, strict=True):
            if flag and aval_of(x).shape[:1] != (size,):
                raise ValueError(
                    f"The custom vmap rule {name} returned a batched result of shape "
                    f"{aval_of(x).shape}: its first axis must be the mapped one, of length {size}."
                )
        return outs, [bool(flag) for flag in flags]

    return rule
