"""`scan`: a loop of known length that carries values and stacks results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from namoo._base.caches import per_program
from namoo.analysis.checks import in_loop
from namoo.analysis.dead_code import chosen, dce, dependent, prune, reads
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Literal, Var, eval_jaxpr
from namoo.core.primitive import Linear, Zero, is_linear, is_zero
from namoo.primitives.families import add_any
from namoo.primitives.shape import instantiate, moveaxis, zeros
from namoo.transforms.batch import Axis, batch_jaxpr, batch_to, to_front
from namoo.transforms.discharge import discharged, put_back, values_of
from namoo.transforms.jvp import jvp_jaxpr
from namoo.transforms.linear import linearize_jaxpr, tangents_out
from namoo.transforms.program import ProgramPrimitive
from namoo.transforms.stage import stage_closed
from namoo.transforms.transpose import backward_pass


class Scan(ProgramPrimitive):
    """The body maps constants, carry and one slice of each `xs` to the next carry and slices of
    results `ys`."""

    name = "scan"

    def evaluate(self, *values, jaxpr, length, reverse, num_consts, num_carry, unroll):
        consts, carry, xs = cut(values, num_consts, num_carry)
        step = self.executable(jaxpr)
        ys = [
            np.empty((length, *a.shape), getattr(a.dtype, "numpy", a.dtype))
            for a in jaxpr.out_avals[num_carry:]
        ]
        with in_loop(self.name) as loop:
            for i in reversed(range(length)) if reverse else range(length):
                loop.iteration = i
                outs = step([*consts, *carry, *(x[i, ...] for x in xs)])
                carry = outs[:num_carry]
                for y, out in zip(ys, outs[num_carry:], strict=True):
                    y[i] = out
        return [*carry, *ys]

    def abstract(self, *avals, jaxpr, length, num_carry, **rest):
        outs = jaxpr.out_avals
        ys = [a.update(shape=(length, *a.shape)) for a in outs[num_carry:]]
        return [*outs[:num_carry], *ys]

    def discharge(self, args, which, params):
        # A reference that the body changes is a carry; of one in `xs`, each step returns its part.
        num_consts, num_carry = params["num_consts"], params["num_carry"]
        program, changed = discharged(params["jaxpr"], which)
        jaxpr, n = program.jaxpr, len(program.out_avals) - len(changed)
        carried = [i for i in changed if i < num_consts]
        last = dict(zip(changed, jaxpr.outvars[n:], strict=True))
        stacked = [i for i in changed if i >= num_consts]
        order = [i for i in range(num_consts) if i not in carried] + carried
        order += range(num_consts, len(args))
        outvars = [*(last[i] for i in carried), *jaxpr.outvars[:n], *(last[i] for i in stacked)]
        jaxpr = jaxpr.replace(invars=[jaxpr.invars[i] for i in order], outvars=outvars)
        values = values_of(args, which)
        outs = self.bind(
            *(values[i] for i in order),
            **{
                **params,
                "jaxpr": ClosedJaxpr(jaxpr, program.consts),
                "num_consts": num_consts - len(carried),
                "num_carry": num_carry + len(carried),
            },
        )
        put_back([args[i] for i in carried], outs[: len(carried)])
        put_back([args[i] for i in stacked], outs[len(outs) - len(stacked) :])
        return outs[len(carried) :][:n]

    def dependent(self, given, params):
        jaxpr, num_consts, num_carry = (
            params["jaxpr"].jaxpr,
            params["num_consts"],
            params["num_carry"],
        )
        carry = _dependent_carries(jaxpr, given, num_consts, num_carry)
        given = [*given[:num_consts], *carry, *given[num_consts + num_carry :]]
        return [*carry, *dependent(jaxpr, given)[num_carry:]]

    def narrowed(self, eqn, used):
        needed, kept, params = _narrowed(eqn.params, used)
        outvars = [
            DropVar(v.aval) if not u else v
            for v, u, keep in zip(eqn.outvars, used, kept, strict=True)
            if keep
        ]
        return eqn.replace(invars=chosen(eqn.invars, needed), outvars=outvars, params=params)

    def split_by_policy(self, eqn, part):
        closed = eqn.params["jaxpr"]
        kept, forward, again = part(closed.jaxpr)
        if not kept:
            return None
        # Each step's values are stacked as results of one loop, and read as `xs` of the other.
        forward = forward.replace(outvars=[*forward.outvars, *kept])
        again = again.replace(invars=[*again.invars, *kept])
        length = eqn.params["length"]
        given = [Var(v.aval.update(shape=(length, *v.aval.shape))) for v in kept]
        return (
            eqn.replace(
                outvars=[*eqn.outvars, *given],
                params={**eqn.params, "jaxpr": ClosedJaxpr(forward, closed.consts)},
            ),
            eqn.replace(
                invars=[*eqn.invars, *given],
                params={**eqn.params, "jaxpr": ClosedJaxpr(again, closed.consts)},
            ),
            given,
        )

    def weak_results(self, weak, count, params):
        return [a.weak_type for a in params["jaxpr"].out_avals]

    def native(self, emit, *operands, jaxpr, length, reverse, num_consts, num_carry, unroll):
        return emit.scan(
            operands,
            jaxpr=jaxpr,
            length=length,
            reverse=reverse,
            num_consts=num_consts,
            num_carry=num_carry,
        )

    def stablehlo(self, hlo, *operands, jaxpr, length, reverse, num_consts, num_carry, unroll):
        consts, carry, xs = cut(operands, num_consts, num_carry)
        ys = [hlo.constant(0, a.dtype, a.shape) for a in hlo.avals[num_carry:]]
        if length == 0:
            return [*carry, *ys]

        def step(i, *state):
            place = hlo.op("subtract", hlo.constant(length - 1, i.dtype), i, result=i)
            place = place if reverse else i
            carry, ys = state[:num_carry], state[num_carry:]
            outs = hlo.inline(jaxpr, [*consts, *carry, *(hlo.row(x, place) for x in xs)])
            carry, parts = outs[:num_carry], outs[num_carry:]
            ys = [hlo.set_row(y, part, place) for y, part in zip(ys, parts, strict=True)]
            return [hlo.op("add", i, hlo.constant(1, i.dtype), result=i), *carry, *ys]

        start = hlo.constant(0, np.int32 if length < 2**31 else np.int64)
        goes_on = lambda i, *state: hlo.compare(i, hlo.constant(length, i.dtype), "LT")  # noqa: E731
        return hlo.while_loop([start, *carry, *ys], goes_on, step, jaxpr.effectful)[1:]

    def jvp(self, primals, tangents, *, jaxpr, num_consts, num_carry, **rest):
        nonzeros, force = self._settle(
            [not is_zero(t) for t in tangents],
            num_consts,
            num_carry,
            jaxpr,
            lambda nz, force: jvp_jaxpr(jaxpr, nz, force)[1],
        )
        program, nonzero_out = jvp_jaxpr(jaxpr, nonzeros, force)
        # From [values, tangents] to [consts, carry, xs], each with its tangents after it.
        n_in, n_out = len(nonzeros), len(jaxpr.out_avals)
        ins = _paired(program.jaxpr.invars, n_in, nonzeros, (num_consts, num_carry))
        outs = _paired(program.jaxpr.outvars, n_out, nonzero_out, (num_carry,))
        program = ClosedJaxpr(
            program.jaxpr.replace(invars=_join(ins), outvars=_join(outs)), program.consts
        )
        tangents = [instantiate(t) if nz else t for t, nz in zip(tangents, nonzeros, strict=True)]
        args = _join(
            _paired(
                [*primals, *(t for t, nz in zip(tangents, nonzeros, strict=True) if nz)],
                n_in,
                nonzeros,
                (num_consts, num_carry),
            )
        )
        results = self.bind(
            *args,
            jaxpr=program,
            num_consts=len(ins[0]),
            num_carry=len(ins[1]),
            **rest,
        )
        values, out_tangents = _unpair(results, nonzero_out, num_carry)
        return values, tangents_out(nonzero_out, values, out_tangents)

    def linearize(self, primals, tangents, *, jaxpr, num_consts, num_carry, **rest):
        nonzeros, force = self._settle(
            [not is_zero(t) for t in tangents],
            num_consts,
            num_carry,
            jaxpr,
            lambda nz, force: linearize_jaxpr(jaxpr, nz, force).nonzero_out,
        )
        halves = linearize_jaxpr(jaxpr, nonzeros, force)
        primal, n_out = halves.primal.jaxpr, len(jaxpr.out_avals)
        first_x = num_consts + num_carry

        # Where each residual comes from decides how the second loop gets it.
        invariant = _depend_only_on(primal, primal.invars[:num_consts])
        computed = iter(primal.outvars[n_out:])
        places: list[tuple[str, Any]] = []
        for source in halves.forwarded:
            if source is None:
                var = next(computed)
                kind = "once" if type(var) is Literal or var in invariant else "stack"
                places.append((kind, var))
            elif source < num_consts:
                places.append(("const", source))
            elif source < first_x:
                places.append(("stack", primal.invars[source]))
            else:
                places.append(("x", source))

        stacked = [v for kind, v in places if kind == "stack"]
        forward = dce(
            primal.replace(outvars=[*primal.outvars[:n_out], *stacked]),
            [True] * (n_out + len(stacked)),
        )
        outs = self.bind(
            *primals,
            jaxpr=ClosedJaxpr(forward, halves.primal.consts),
            num_consts=num_consts,
            num_carry=num_carry,
            **rest,
        )
        if not any(halves.nonzero_out):
            return outs[:n_out], tangents_out(halves.nonzero_out, outs[:n_out], [])

        once = _evaluate_once(
            primal, halves.primal.consts, [v for k, v in places if k == "once"], primals, num_consts
        )
        stacks = iter(outs[n_out:])
        consts, xs = ([], []), ([], [])  # operands, and variables of the tangent program
        variables = halves.tangent.jaxpr.invars
        for (kind, where), var in zip(places, variables, strict=False):
            side = consts if kind in ("const", "once") else xs
            if kind in ("const", "x"):
                side[0].append(primals[where])
            else:
                side[0].append(next(once if kind == "once" else stacks))
            side[1].append(var)
        given = iter(variables[len(places) :])
        groups: list[tuple[list, list]] = [([], []), ([], []), ([], [])]
        for i, (t, nz) in enumerate(zip(tangents, nonzeros, strict=True)):
            if nz:
                group = groups[0 if i < num_consts else 1 if i < first_x else 2]
                group[0].append(instantiate(t))
                group[1].append(next(given))
        invars = [*consts[1], *groups[0][1], *groups[1][1], *xs[1], *groups[2][1]]
        program = ClosedJaxpr(halves.tangent.jaxpr.replace(invars=invars), halves.tangent.consts)
        out_tangents = self.bind(
            *consts[0],
            *groups[0][0],
            *groups[1][0],
            *xs[0],
            *groups[2][0],
            jaxpr=program,
            num_consts=len(consts[0]) + len(groups[0][0]),
            num_carry=len(groups[1][0]),
            **rest,
        )
        return outs[:n_out], tangents_out(halves.nonzero_out, outs[:n_out], out_tangents)

    @staticmethod
    def _settle(nonzeros, num_consts, num_carry, jaxpr, nonzero_out):
        """Which tangents are not zero, when those of the carry go round until nothing changes;
        and which results must have one: the carries among them."""
        num_ys = len(jaxpr.out_avals) - num_carry
        while True:
            carry = nonzeros[num_consts : num_consts + num_carry]
            force = [*carry, *[False] * num_ys]
            outs = nonzero_out(nonzeros, force)[:num_carry]
            if outs == carry:
                return nonzeros, force
            settled = [a or b for a, b in zip(carry, outs, strict=True)]
            nonzeros = [
                *nonzeros[:num_consts],
                *settled,
                *nonzeros[num_consts + num_carry :],
            ]

    def transpose(self, cts, *operands, **params):
        # A carry without cotangent that no other one needs is left out: zeros in its place, times
        # NaN or infinity, are NaN.
        used = [not is_zero(ct) for ct in cts]
        if all(used):
            return self._transpose(cts, *operands, **params)
        needed, kept, narrow = _narrowed(params, used)
        if all(kept):
            return self._transpose(cts, *operands, **params)
        outs = iter(self._transpose(chosen(cts, kept), *chosen(operands, needed), **narrow))
        return [next(outs) if n else None for n in needed]

    def _transpose(self, cts, *operands, jaxpr, length, reverse, num_consts, num_carry, unroll):
        rest = {"length": length, "unroll": unroll}
        consts, carry, xs = cut(operands, num_consts, num_carry)
        linear_carry = _dependent_carries(
            jaxpr.jaxpr, [*map(is_linear, operands)], num_consts, num_carry
        )
        counters = [i for i, linear in enumerate(linear_carry) if not linear]
        counted: list[Any] = []
        if counters:
            counted = self._replay(consts, carry, xs, counters, jaxpr, reverse, rest)
        ct_carry = [instantiate(ct) for i, ct in enumerate(cts[:num_carry]) if i not in counters]
        ct_ys = cts[num_carry:]
        has_ct = [not is_zero(ct) for ct in ct_ys]
        known_consts = [x for x in consts if not is_linear(x)]
        known_xs = [x for x in xs if not is_linear(x)]
        linear_consts = [x.aval.tangent() for x in consts if is_linear(x)]
        n_ct_consts, n_ct_carry = len(linear_consts), len(ct_carry)

        def body(*args):
            fixed, moving, slices = cut(args, len(known_consts), n_ct_consts + n_ct_carry)
            sums, ct_next = moving[:n_ct_consts], iter(moving[n_ct_consts:])
            values = iter([*fixed])
            counts, slices = iter(slices[: len(counters)]), iter(slices[len(counters) :])
            inputs = [Linear(x.aval) if is_linear(x) else next(values) for x in consts]
            inputs += [
                next(counts) if i in counters else Linear(a)
                for i, a in enumerate(jaxpr.in_avals[num_consts : num_consts + num_carry])
            ]
            inputs += [
                Linear(a) if is_linear(x) else next(slices)
                for x, a in zip(xs, jaxpr.in_avals[num_consts + num_carry :], strict=True)
            ]
            out_avals = jaxpr.out_avals
            ct_out = [
                Zero(a.tangent()) if i in counters else next(ct_next)
                for i, a in enumerate(out_avals[:num_carry])
            ]
            ct_out += [
                next(slices) if has else Zero(a.tangent())
                for has, a in zip(has_ct, out_avals[num_carry:], strict=True)
            ]
            outs = backward_pass(jaxpr.jaxpr, jaxpr.consts, inputs, ct_out)
            new_sums = map(add_any, sums, outs[:n_ct_consts])
            return [*new_sums, *map(instantiate, outs[n_ct_consts:])]

        x_avals = [
            a
            for x, a in zip(xs, jaxpr.in_avals[num_consts + num_carry :], strict=True)
            if not is_linear(x)
        ]
        y_avals = [
            a.tangent() for a, has in zip(jaxpr.out_avals[num_carry:], has_ct, strict=True) if has
        ]
        counter_avals = [jaxpr.in_avals[num_consts + i] for i in counters]
        avals = [
            *map(aval_of, known_consts),
            *linear_consts,
            *map(aval_of, ct_carry),
            *counter_avals,
            *x_avals,
            *y_avals,
        ]
        program = stage_closed(body, avals, jaxpr.jaxpr.name)
        outs = self.bind(
            *known_consts,
            *map(zeros, linear_consts),
            *ct_carry,
            *counted,
            *known_xs,
            *(ct for ct in ct_ys if not is_zero(ct)),
            jaxpr=program,
            num_consts=len(known_consts),
            num_carry=n_ct_consts + n_ct_carry,
            reverse=not reverse,
            **rest,
        )
        results = iter(outs)
        ct_consts = [next(results) if is_linear(x) else None for x in consts]
        ct_init = [None if i in counters else next(results) for i in range(num_carry)]
        return [*ct_consts, *ct_init, *(next(results) if is_linear(x) else None for x in xs)]

    def _replay(self, consts, carry, xs, counters, jaxpr, reverse, rest):
        """The values, stacked, of carries that are not linear (counters): run forward first."""
        invars = jaxpr.jaxpr.invars
        c_vars, k_vars, x_vars = cut(invars, len(consts), len(carry))
        k_vars = [k_vars[i] for i in counters]
        keep_c = [i for i, x in enumerate(consts) if not is_linear(x)]
        keep_x = [i for i, x in enumerate(xs) if not is_linear(x)]
        program = jaxpr.jaxpr.replace(
            invars=[*(c_vars[i] for i in keep_c), *k_vars, *(x_vars[i] for i in keep_x)],
            outvars=[*(jaxpr.jaxpr.outvars[i] for i in counters), *k_vars],
        )
        outs = self.bind(
            *(consts[i] for i in keep_c),
            *(carry[i] for i in counters),
            *(xs[i] for i in keep_x),
            jaxpr=ClosedJaxpr(dce(program, [True] * len(program.outvars)), jaxpr.consts),
            num_consts=len(keep_c),
            num_carry=len(counters),
            reverse=reverse,
            **rest,
        )
        return outs[len(counters) :]

    def batch(self, operands, dims, *, axis, jaxpr, num_consts, num_carry, **rest):
        batched = [d is not None for d in dims]
        first_x, num_ys = num_consts + num_carry, len(jaxpr.out_avals) - num_carry
        while True:
            carry = batched[num_consts:first_x]
            force = [*carry, *[False] * num_ys]
            program, batched_out = batch_jaxpr(jaxpr, axis, batched, force)
            if batched_out[:num_carry] == carry:
                break
            batched[num_consts:first_x] = batched_out[:num_carry]
        args = []
        for i, (x, d, b) in enumerate(zip(operands, dims, batched, strict=True)):
            # The loop runs over axis 0 of xs, so their mapped axis comes second.
            place = 1 if i >= first_x else 0
            args.append(
                x if not b else moveaxis(x, d, place) if d is not None else batch_to(axis, x, d)
            )
        outs = self.bind(*args, jaxpr=program, num_consts=num_consts, num_carry=num_carry, **rest)
        places = [0] * num_carry + [1] * num_ys
        return outs, [p if b else None for p, b in zip(places, batched_out, strict=True)]


scan_p = Scan()


def one_by_one(
    prim: ProgramPrimitive,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    axis: Axis,
    **params,
) -> tuple[list[Any], list[int]] | None:
    """The results of an operation for a batch, by a loop over its examples.

    Where examples take different branches or stop apart, others are computed for nothing when they
    are computed together, and what `config.strict` or a check finds there is no mistake.

    Returns:
        None if the programs in `params` combine examples, so that they must run together.
    """
    if axis.name is not None and axis.name in prim.collective_axes(params):
        return None
    moved, batched = to_front(operands, dims)
    fixed = [i for i, b in enumerate(batched) if not b]
    order = [*fixed, *(i for i, b in enumerate(batched) if b)]
    avals = [aval_of(moved[i]) for i in order]
    examples = [
        a if i in fixed else a.update(shape=a.shape[1:]) for i, a in zip(order, avals, strict=True)
    ]

    def example(*args):
        given = dict(zip(order, args, strict=True))
        return prim.bind(*(given[i] for i in range(len(given))), **params)

    outs = scan_p.bind(
        *(moved[i] for i in order),
        jaxpr=stage_closed(example, examples),
        length=axis.size,
        reverse=False,
        num_consts=len(fixed),
        num_carry=0,
        unroll=1,
    )
    return outs, [0] * len(outs)


def cut(items, *sizes):
    """A sequence cut into parts of given sizes and the rest."""
    parts, start = [], 0
    for size in sizes:
        parts.append(items[start : start + size])
        start += size
    return [*parts, items[start:]]


def _paired(items, n, nonzeros, sizes):
    """Groups of [values, their tangents] from values followed by the tangents that exist."""
    rest = iter(items[n:])
    values = cut(list(items[:n]), *sizes)
    flags = cut(list(nonzeros), *sizes)
    return [
        [*group, *(next(rest) for nz in own if nz)]
        for group, own in zip(values, flags, strict=True)
    ]


def _join(groups):
    return [x for group in groups for x in group]


def _unpair(results, nonzero_out, num_carry):
    """Undo `_paired` for the results of a loop: values, then tangents."""
    carry_nz = sum(nonzero_out[:num_carry])
    carry, dcarry, rest = cut(list(results), num_carry, carry_nz)
    num_ys = len(nonzero_out) - num_carry
    return [*carry, *rest[:num_ys]], [*dcarry, *rest[num_ys:]]


@per_program("scan of used results", keyed_by="used results, numbers of constants and carries")
def _narrow_program(closed: ClosedJaxpr, used: tuple[bool, ...], num_consts: int, num_carry: int):
    """Return which operands and results a scan has that computes the used results, and its body.

    Carries that others depend on are among its results.
    """
    carry, ys = list(used[:num_carry]), used[num_carry:]
    while True:
        jaxpr = prune(dce(closed.jaxpr, [*carry, *ys]))
        needed = reads(jaxpr)
        # What the next step reads, this one must return.
        wanted = [c or n for c, n in zip(carry, needed[num_consts:], strict=False)]
        if wanted == carry:
            break
        carry = wanted
    needed[num_consts : num_consts + num_carry] = carry
    jaxpr = jaxpr.replace(invars=chosen(jaxpr.invars, needed))
    return needed, [*carry, *ys], jaxpr


def _narrowed(params: dict[str, Any], used: Sequence[bool]):
    """`_narrow_program`, with the parameters of the scan instead of its body."""
    closed, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    needed, kept, jaxpr = _narrow_program(closed, tuple(used), num_consts, num_carry)
    body = ClosedJaxpr(jaxpr, closed.consts)
    counts = {"num_consts": sum(needed[:num_consts]), "num_carry": sum(kept[:num_carry])}
    return needed, kept, {**params, "jaxpr": body, **counts}


def _dependent_carries(jaxpr: Jaxpr, given: Sequence[bool], num_consts: int, num_carry: int):
    """Which carries depend on the inputs in `given` after some iteration."""
    consts, carry, xs = cut(list(given), num_consts, num_carry)
    while True:
        outs = dependent(jaxpr, [*consts, *carry, *xs])
        spread = [a or b for a, b in zip(carry, outs, strict=False)]
        if spread == carry:
            return carry
        carry = spread


def _depend_only_on(jaxpr: Jaxpr, inputs: list[Var]) -> set[Var]:
    """Variables that are computed from some of the inputs alone."""
    known = {*inputs, *jaxpr.constvars}
    for eqn in jaxpr.eqns:
        if not eqn.effectful and all(type(v) is Literal or v in known for v in eqn.invars):
            known.update(eqn.outvars)
    return known


def _evaluate_once(jaxpr: Jaxpr, consts, wanted: list, primals, num_consts: int):
    """Values that are the same in every iteration, computed outside of the loop."""
    if not wanted:
        return iter(())
    program = jaxpr.replace(invars=jaxpr.invars[:num_consts], outvars=wanted)
    program = dce(program, [True] * len(wanted))
    eqns = [e for e in program.eqns if not e.effectful]
    return iter(eval_jaxpr(program.replace(eqns=eqns), consts, *primals[:num_consts]))
