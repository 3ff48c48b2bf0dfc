"""The option `optimize_remat` of `custom_vjp`.

The `fwd` rule computes the result and the residuals.  Where nothing reads the residuals, as in the
forward pass of `checkpoint`, the function itself is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, Var
from namoo.transforms.batch import batch_jaxpr, to_front
from namoo.transforms.program import Call
from namoo.transforms.stage import stage

Fwd = Callable[[Sequence[Any], Sequence[bool]], tuple[list[Any], list[Any]]]
"""Maps the arguments, and which of them are perturbed, to residuals and results."""


class Forward(Call):
    """A call of a `fwd` rule: `num_residuals` residuals, then the results.

    The parameter `function` is the program that computes the results alone; None if there is none.
    """

    name = "remat_opt"

    def narrowed(self, eqn, used):
        function, n = eqn.params["function"], eqn.params["num_residuals"]
        if function is None:
            return super().narrowed(eqn, used)
        if any(used[:n]):
            return eqn
        params = {"jaxpr": function, "function": None, "num_residuals": 0}
        return super().narrowed(eqn.replace(outvars=eqn.outvars[n:], params=params), used[n:])

    def jvp(self, primals, tangents, *, jaxpr, **params):
        return super().jvp(primals, tangents, jaxpr=jaxpr, function=None, num_residuals=0)

    def linearize(self, primals, tangents, *, jaxpr, **params):
        return super().linearize(primals, tangents, jaxpr=jaxpr, function=None, num_residuals=0)

    def batch(self, xs, dims, *, axis, jaxpr, function, num_residuals):
        xs, batched = to_front(xs, dims)
        program, batched_out = batch_jaxpr(jaxpr, axis, batched)
        if function is not None:  # both programs must return the same types
            _, own = batch_jaxpr(function, axis, batched)
            shared = [a or b for a, b in zip(batched_out[num_residuals:], own, strict=True)]
            function, _ = batch_jaxpr(function, axis, batched, shared)
            force = [*batched_out[:num_residuals], *shared]
            program, batched_out = batch_jaxpr(jaxpr, axis, batched, force)
        outs = self.bind(*xs, jaxpr=program, function=function, num_residuals=num_residuals)
        return outs, [0 if b else None for b in batched_out]


forward_p = Forward()


def on_demand(fun: Callable[..., list[Any]], fwd: Fwd) -> Fwd:
    """The rule `fwd` as one operation, which is `fun` where the residuals are not used."""

    def forward(primals, perturbed):
        count = 0

        def flat(*args):
            nonlocal count
            residuals, outs = fwd(args, perturbed)
            count = len(residuals)
            return [*residuals, *outs]

        avals = [aval_of(x) for x in primals]
        (rule, rule_consts), (function, consts) = stage(flat, avals), stage(fun, avals)
        # Both take the constants of both as leading inputs.
        unread = [Var(v.aval) for v in function.constvars]
        whole = rule.replace(constvars=[], invars=[*rule.constvars, *unread, *rule.invars])
        unread = [Var(v.aval) for v in rule.constvars]
        alone = function.replace(
            constvars=[], invars=[*unread, *function.constvars, *function.invars]
        )
        outs = forward_p.bind(
            *rule_consts,
            *consts,
            *primals,
            jaxpr=ClosedJaxpr(whole),
            function=ClosedJaxpr(alone),
            num_residuals=count,
        )
        return outs[:count], outs[count:]

    return forward
