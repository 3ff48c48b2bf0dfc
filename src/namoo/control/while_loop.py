"""The primitive `while`: a loop whose length is decided as it runs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from namoo._base.config import config
from namoo._base.source_context import at_user_line
from namoo.analysis.checks import in_loop
from namoo.analysis.dead_code import dependent, has_checks, has_io
from namoo.control.scan import cut, one_by_one
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, Var, jaxpr_as_fun
from namoo.core.primitive import is_zero
from namoo.primitives.elementwise import select
from namoo.primitives.reduction import reduce_or
from namoo.primitives.shape import broadcast_in_dim, instantiate, moveaxis, shape_of
from namoo.transforms.batch import batch_jaxpr, batch_to
from namoo.transforms.discharge import discharged, put_back, values_of
from namoo.transforms.jvp import jvp_jaxpr
from namoo.transforms.linear import tangents_out
from namoo.transforms.program import ProgramPrimitive
from namoo.transforms.stage import stage_closed

REVERSE_MODE = """\
Reverse-mode differentiation does not work for lax.while_loop, nor for lax.fori_loop with bounds
that are traced: the number of iterations is not known, so their values cannot be kept.
Where the number of iterations has a limit, write lax.while_loop(cond, body, init, max_steps=n);
where it is known, lax.scan, or lax.fori_loop with Python integers as bounds.
Forward mode (namoo.jvp, namoo.jacfwd) works as it is."""


STOPS_APART = "any(condition)"
"""The name of a loop's condition whose examples stop apart: the body also runs for stopped ones."""


class While(ProgramPrimitive):
    """Repeat the body while the condition holds; each takes its own constants first."""

    name = "while"

    def evaluate(self, *values, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **rest):
        cond_consts, body_consts, carry = cut(values, cond_nconsts, body_nconsts)
        condition, body = self.executable(cond_jaxpr), self.executable(body_jaxpr)
        with in_loop("while") as loop:
            while condition([*cond_consts, *carry])[0]:
                carry = body([*body_consts, *carry])
                loop.iteration += 1
        return list(carry)

    def abstract(self, *avals, body_jaxpr, **rest):
        return body_jaxpr.out_avals

    def discharge(self, args, which, params):
        # A reference that the body changes is a carry, which the condition may read.
        cond_nconsts, body_nconsts = params["cond_nconsts"], params["body_nconsts"]
        in_cond, in_body, rest = cut(which, cond_nconsts, body_nconsts)
        condition, written = discharged(params["cond_jaxpr"], (*in_cond, *rest))
        if written:
            raise ValueError(
                "The condition of while_loop writes to a mutable reference, but it is to be read "
                "only: write in the body." + at_user_line()
            )
        body, carried = discharged(params["body_jaxpr"], (*in_body, *rest))
        cond_args, body_args, carry = cut(values_of(args, which), cond_nconsts, body_nconsts)
        refs = [args[cond_nconsts + i] for i in carried]
        jaxpr, own = body.jaxpr, condition.jaxpr
        kept = [i for i in range(body_nconsts) if i not in carried]
        n = len(carry)
        invars = [jaxpr.invars[i] for i in (*kept, *carried)] + jaxpr.invars[body_nconsts:]
        jaxpr = jaxpr.replace(invars=invars, outvars=[*jaxpr.outvars[n:], *jaxpr.outvars[:n]])
        read = [next((i for i in range(cond_nconsts) if args[i] is r), None) for r in refs]
        cond_kept = [i for i in range(cond_nconsts) if i not in read]
        moved = [
            Var(r.aval.inner_aval) if i is None else own.invars[i]
            for i, r in zip(read, refs, strict=True)
        ]
        own_invars = [*(own.invars[i] for i in cond_kept), *moved, *own.invars[cond_nconsts:]]
        outs = self.bind(
            *(cond_args[i] for i in cond_kept),
            *(body_args[i] for i in (*kept, *carried)),
            *carry,
            **{
                **params,
                "cond_jaxpr": ClosedJaxpr(own.replace(invars=own_invars), condition.consts),
                "body_jaxpr": ClosedJaxpr(jaxpr, body.consts),
                "cond_nconsts": len(cond_kept),
                "body_nconsts": len(kept),
            },
        )
        put_back(refs, outs[: len(refs)])
        return outs[len(refs) :]

    def dependent(self, given, params):
        consts, body_consts, carry = cut(given, params["cond_nconsts"], params["body_nconsts"])
        while True:
            if dependent(params["cond_jaxpr"].jaxpr, [*consts, *carry])[0]:
                return None
            outs = dependent(params["body_jaxpr"].jaxpr, [*body_consts, *carry])
            spread = [a or b for a, b in zip(carry, outs, strict=True)]
            if spread == carry:
                return carry
            carry = spread

    def weak_results(self, weak, count, params):
        return [a.weak_type for a in params["body_jaxpr"].out_avals]

    def native(self, emit, *operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **rest):
        return emit.while_loop(operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts)

    def stablehlo(self, hlo, *operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **rest):
        cond_consts, body_consts, carry = cut(operands, cond_nconsts, body_nconsts)
        # Errors of checks name the iteration.
        counts = has_checks(cond_jaxpr.jaxpr) or has_checks(body_jaxpr.jaxpr)
        start = [hlo.constant(0, np.int32)] * counts

        def run(program, consts, state):
            with hlo.iteration("while", state[0]) if counts else nullcontext():
                return hlo.inline(program, [*consts, *state[counts:]])

        def step(*state):
            count = [hlo.op("add", i, hlo.constant(1, i.dtype), result=i) for i in state[:counts]]
            return [*count, *run(body_jaxpr, body_consts, state)]

        return hlo.while_loop(
            [*start, *carry],
            lambda *state: run(cond_jaxpr, cond_consts, state)[0],
            step,
            cond_jaxpr.effectful or body_jaxpr.effectful,
        )[counts:]

    def jvp(self, primals, tangents, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **rest):
        cond_consts, body_consts, carry = cut(primals, cond_nconsts, body_nconsts)
        _, body_tangents, carry_tangents = cut(tangents, cond_nconsts, body_nconsts)
        consts_nz = [not is_zero(t) for t in body_tangents]
        carry_nz = [not is_zero(t) for t in carry_tangents]
        while True:
            program, out_nz = jvp_jaxpr(body_jaxpr, [*consts_nz, *carry_nz], carry_nz)
            if out_nz == carry_nz:
                break
            carry_nz = out_nz
        # [body consts, carry, tangents of both] becomes [consts, tangents, carry, tangents].
        variables = program.jaxpr.invars
        n = body_nconsts
        v_consts, v_carry, v_dconsts, v_dcarry = cut(variables, n, len(carry), sum(consts_nz))
        program = ClosedJaxpr(
            program.jaxpr.replace(invars=[*v_consts, *v_dconsts, *v_carry, *v_dcarry]),
            program.consts,
        )
        condition = ClosedJaxpr(_more_inputs(cond_jaxpr.jaxpr, v_dcarry), cond_jaxpr.consts)
        outs = self.bind(
            *cond_consts,
            *body_consts,
            *(t for t in body_tangents if not is_zero(t)),
            *carry,
            *(instantiate(t) for t, nz in zip(carry_tangents, carry_nz, strict=True) if nz),
            cond_jaxpr=condition,
            body_jaxpr=program,
            cond_nconsts=cond_nconsts,
            body_nconsts=body_nconsts + sum(consts_nz),
            **rest,
        )
        values = outs[: len(carry)]
        return values, tangents_out(carry_nz, values, outs[len(carry) :])

    def linearize(self, primals, tangents, **params):
        # The loop of tangents needs the values of every iteration, so it computes them again.
        outs = self.bind(*primals, **params)
        return outs, self.jvp(primals, tangents, **params)[1]

    def transpose(self, cts, *operands, **params):
        raise ValueError(REVERSE_MODE)

    def running(self, inputs: list, batched: list[bool], going: Any) -> list:
        """The inputs of a batch's body, where only the examples in `going` still run."""
        return inputs

    def batch(
        self, operands, dims, *, axis, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **rest
    ):
        batched = [d is not None for d in dims]
        c_b, b_b, k_b = cut(batched, cond_nconsts, body_nconsts)
        while True:
            _, (stops_apart,) = batch_jaxpr(cond_jaxpr, axis, [*c_b, *k_b])
            _, out_b = batch_jaxpr(body_jaxpr, axis, [*b_b, *k_b], k_b)
            settled = [True] * len(k_b) if stops_apart else out_b
            if settled == k_b:
                break
            k_b = settled
        args = [
            x if not b else batch_to(axis, x, d) if d is None else moveaxis(x, d, 0)
            for x, d, b in zip(operands, dims, [*c_b, *b_b, *k_b], strict=True)
        ]
        params = {
            "cond_jaxpr": cond_jaxpr,
            "body_jaxpr": body_jaxpr,
            "cond_nconsts": cond_nconsts,
            "body_nconsts": body_nconsts,
            **rest,
        }
        if stops_apart:
            alone = self._one_by_one(operands, dims, axis, params)
            return self._until_all_stop(args, axis, c_b, b_b, params) if alone is None else alone
        condition, _ = batch_jaxpr(cond_jaxpr, axis, [*c_b, *k_b])
        body, _ = batch_jaxpr(body_jaxpr, axis, [*b_b, *k_b], k_b)
        outs = self.bind(*args, **(params | {"cond_jaxpr": condition, "body_jaxpr": body}))
        return outs, [0 if b else None for b in k_b]

    def _one_by_one(self, operands, dims, axis, params):
        """The results by a loop over the examples, if the body must not run for stopped ones."""
        programs = params["cond_jaxpr"].jaxpr, params["body_jaxpr"].jaxpr
        apart = axis.devices and any(p.effectful for p in programs)
        if any(map(has_io, programs)) and not apart:
            raise NotImplementedError(
                "IO effects are not supported in while_loop with batched predicate, under vmap: "
                "the body is run for all examples until the last one stops. Use lax.map instead "
                "of vmap."
            )
        if config.strict or apart or any(map(has_checks, programs)):
            return one_by_one(self, operands, dims, axis, **params)
        return None

    def _until_all_stop(self, args, axis, c_b, b_b, params):
        """The results by one loop that runs while any example continues, and updates only those.

        Args:
            args: the operands, with the mapped axis first where they have it.
            axis: the mapped axis.
            c_b, b_b: which constants of condition and body have the axis; all carries do.
            params: the parameters of the loop.
        """
        cond_nconsts, body_nconsts = len(c_b), len(b_b)
        cond_consts, body_consts, carry = cut(args, cond_nconsts, body_nconsts)
        k_b = [True] * len(carry)
        condition, _ = batch_jaxpr(params["cond_jaxpr"], axis, [*c_b, *k_b])
        body, _ = batch_jaxpr(params["body_jaxpr"], axis, [*b_b, *k_b], k_b)
        run_condition, run_body = jaxpr_as_fun(condition), jaxpr_as_fun(body)

        def any_goes_on(*xs):
            return [reduce_or(run_condition(*xs)[0], (0,))]

        def step(*xs):
            cond_consts, body_consts, carry = cut(xs, cond_nconsts, body_nconsts)
            (going,) = run_condition(*cond_consts, *carry)
            inputs = self.running([*body_consts, *carry], [*b_b, *k_b], going)
            new = run_body(*inputs)
            return [
                select(broadcast_in_dim(going, shape_of(a), (0,)), a, b)
                for a, b in zip(new, carry, strict=True)
            ]

        # The body needs the constants of the condition, too.
        cond_avals, carry_avals = condition.in_avals[:cond_nconsts], body.in_avals[body_nconsts:]
        name = params["body_jaxpr"].jaxpr.name
        changed = {
            "cond_jaxpr": stage_closed(any_goes_on, [*cond_avals, *carry_avals], STOPS_APART),
            "body_jaxpr": stage_closed(step, [*cond_avals, *body.in_avals], name),
            "body_nconsts": cond_nconsts + body_nconsts,
        }
        outs = self.bind(*cond_consts, *cond_consts, *body_consts, *carry, **(params | changed))
        return outs, [0] * len(outs)


while_p = While()


def _more_inputs(jaxpr: Jaxpr, like: list[Var]) -> Jaxpr:
    """The program with more inputs at its end, which it does not use."""
    return jaxpr.replace(invars=[*jaxpr.invars, *(Var(v.aval) for v in like)])
