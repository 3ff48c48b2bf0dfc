"""`scan`: a loop of known length that carries values and stacks results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
from namoo.transforms.linear import LinearizedProgram, linearize_jaxpr, tangents_out
from namoo.transforms.program import ProgramPrimitive, split_equation
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
        # Each step's values are stacked as results of one loop, and read as `xs` of the other.
        length = eqn.params["length"]
        return split_equation(eqn, part, lambda a: a.update(shape=(length, *a.shape)))

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
            with hlo.iteration(self.name, place):
                outs = hlo.inline(jaxpr, [*consts, *carry, *(hlo.row(x, place) for x in xs)])
            carry, parts = outs[:num_carry], outs[num_carry:]
            ys = [hlo.set_row(y, part, place) for y, part in zip(ys, parts, strict=True)]
            return [hlo.op("add", i, hlo.constant(1, i.dtype), result=i), *carry, *ys]

        start = hlo.constant(0, np.int32 if length < 2**31 else np.int64)
        goes_on = lambda i, *state: hlo.compare(i, hlo.constant(length, i.dtype), "LT")  # noqa: E731
        return hlo.while_loop([start, *carry, *ys], goes_on, step, jaxpr.effectful)[1:]

    def jvp(self, primals, tangents, *, jaxpr, num_consts, num_carry, **rest):
        nonzeros, force = self._nonzero_tangents(
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
        nonzeros, force = self._nonzero_tangents(
            [not is_zero(t) for t in tangents],
            num_consts,
            num_carry,
            jaxpr,
            lambda nz, force: linearize_jaxpr(jaxpr, nz, force).nonzero_out,
        )
        split = linearize_jaxpr(jaxpr, nonzeros, force)
        primal, n_out = split.primal.jaxpr, len(jaxpr.out_avals)
        residuals = _residuals(split, num_consts, num_carry, n_out)
        stacked = [r.source for r in residuals if r.kind == "stack"]
        forward = dce(
            primal.replace(outvars=[*primal.outvars[:n_out], *stacked]),
            [True] * (n_out + len(stacked)),
        )
        outs = self.bind(
            *primals,
            jaxpr=ClosedJaxpr(forward, split.primal.consts),
            num_consts=num_consts,
            num_carry=num_carry,
            **rest,
        )
        outs, stacks = outs[:n_out], outs[n_out:]
        if not any(split.nonzero_out):
            return outs, tangents_out(split.nonzero_out, outs, [])

        once = [r.source for r in residuals if r.kind == "once"]
        values = {
            "once": _evaluate_once(primal, split.primal.consts, once, primals, num_consts),
            "stack": iter(stacks),
        }
        variables = split.tangent.jaxpr.invars
        consts, carry, xs = _Operands(), _Operands(), _Operands()
        for (kind, source), var in zip(residuals, variables, strict=False):
            value = next(values[kind]) if kind in values else primals[source]
            (consts if kind in ("const", "once") else xs).add(value, var)
        tangent_vars = iter(variables[len(residuals) :])
        for i, (t, nz) in enumerate(zip(tangents, nonzeros, strict=True)):
            if nz:
                group = consts if i < num_consts else carry if i < num_consts + num_carry else xs
                group.add(instantiate(t), next(tangent_vars))
        invars = [*consts.variables, *carry.variables, *xs.variables]
        out_tangents = self.bind(
            *consts.values,
            *carry.values,
            *xs.values,
            jaxpr=ClosedJaxpr(split.tangent.jaxpr.replace(invars=invars), split.tangent.consts),
            num_consts=len(consts.values),
            num_carry=len(carry.values),
            **rest,
        )
        return outs, tangents_out(split.nonzero_out, outs, out_tangents)

    @staticmethod
    def _nonzero_tangents(nonzeros, num_consts, num_carry, jaxpr, nonzero_out):
        """Iterate until the carry has a nonzero tangent as input wherever it has one as result.

        Returns:
            Which inputs have tangents, and which results must have one.
        """
        num_ys = len(jaxpr.out_avals) - num_carry
        while True:
            carry = nonzeros[num_consts : num_consts + num_carry]
            force = [*carry, *[False] * num_ys]
            outs = nonzero_out(nonzeros, force)[:num_carry]
            if outs == carry:
                return nonzeros, force
            carry = [a or b for a, b in zip(carry, outs, strict=True)]
            nonzeros = [*nonzeros[:num_consts], *carry, *nonzeros[num_consts + num_carry :]]

    def transpose(self, cts, *operands, **params):
        # A carry without cotangent that no other one needs is left out: zeros instead of it, times
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
            counted = self._run_counters(consts, carry, xs, counters, jaxpr, reverse, rest)
        ct_carry = [instantiate(ct) for i, ct in enumerate(cts[:num_carry]) if i not in counters]
        ct_ys = cts[num_carry:]
        has_ct = [not is_zero(ct) for ct in ct_ys]
        known_consts = [x for x in consts if not is_linear(x)]
        linear_consts = [x.aval.tangent() for x in consts if is_linear(x)]
        program = _transposed_body(jaxpr, consts, xs, counters, ct_carry, has_ct)
        outs = self.bind(
            *known_consts,
            *map(zeros, linear_consts),
            *ct_carry,
            *counted,
            *(x for x in xs if not is_linear(x)),
            *(ct for ct in ct_ys if not is_zero(ct)),
            jaxpr=program,
            num_consts=len(known_consts),
            num_carry=len(linear_consts) + len(ct_carry),
            reverse=not reverse,
            **rest,
        )
        results = iter(outs)
        ct_consts = [next(results) if is_linear(x) else None for x in consts]
        ct_init = [None if i in counters else next(results) for i in range(num_carry)]
        return [*ct_consts, *ct_init, *(next(results) if is_linear(x) else None for x in xs)]

    def _run_counters(self, consts, carry, xs, counters, jaxpr, reverse, rest):
        """Run the loop forward for the carries that are not linear; return their stacked values."""
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

    If examples take different branches, or stop after different numbers of iterations, a batched
    computation also computes values that are discarded. Errors that `config.strict` or a check
    would find in these are not the user's, so each example is computed by itself.

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


class _Residual(NamedTuple):
    """Where a residual comes from, which decides how the loop of tangents gets it.

    Attributes:
        kind: "const" or "x" for an operand of the loop, "once" for a value that is the same in all
          iterations, "stack" for one that is stacked by the forward loop.
        source: the number of the operand, or the variable of the body.
    """

    kind: str
    source: Any


def _residuals(split: LinearizedProgram, num_consts: int, num_carry: int, n_out: int):
    """Where the residuals of a linearised body come from."""
    primal = split.primal.jaxpr
    invariant = _depend_only_on(primal, primal.invars[:num_consts])
    computed = iter(primal.outvars[n_out:])
    residuals: list[_Residual] = []
    for source in split.forwarded:
        if source is None:
            var = next(computed)
            kind = "once" if type(var) is Literal or var in invariant else "stack"
            residuals.append(_Residual(kind, var))
        elif source < num_consts:
            residuals.append(_Residual("const", source))
        elif source < num_consts + num_carry:
            residuals.append(_Residual("stack", primal.invars[source]))
        else:
            residuals.append(_Residual("x", source))
    return residuals


class _Operands:
    """Operands of one kind (constants, carry or `xs`), with their variables in the body."""

    def __init__(self):
        self.values: list[Any] = []
        self.variables: list[Var] = []

    def add(self, value: Any, variable: Var) -> None:
        self.values.append(value)
        self.variables.append(variable)


def _transposed_body(jaxpr: ClosedJaxpr, consts, xs, counters, ct_carry, has_ct) -> ClosedJaxpr:
    """The body of a transposed scan.

    Its inputs are the known constants, the sums of cotangents of the linear constants, the
    cotangents of the carry, the counters, the known slices, and the cotangents of `ys`.

    Args:
        jaxpr: the body of the scan.
        consts, xs: operands of the scan; those to differentiate by are `Linear`.
        counters: the carries that are not linear.
        ct_carry: the cotangents of the other carries.
        has_ct: which `ys` have a cotangent.
    """
    known_consts = [x for x in consts if not is_linear(x)]
    linear_consts = [x.aval.tangent() for x in consts if is_linear(x)]
    num_carry = len(counters) + len(ct_carry)
    _, carry_avals, x_avals = cut(jaxpr.in_avals, len(consts), num_carry)
    out_carry_avals, y_avals = cut(jaxpr.out_avals, num_carry)

    def body(*args):
        values, sums, ct_next, counts, slices = map(
            iter, cut(args, len(known_consts), len(linear_consts), len(ct_carry), len(counters))
        )
        inputs = [Linear(x.aval) if is_linear(x) else next(values) for x in consts]
        inputs += [next(counts) if i in counters else Linear(a) for i, a in enumerate(carry_avals)]
        inputs += [
            Linear(a) if is_linear(x) else next(slices) for x, a in zip(xs, x_avals, strict=True)
        ]
        ct_out = [
            Zero(a.tangent()) if i in counters else next(ct_next)
            for i, a in enumerate(out_carry_avals)
        ]
        ct_out += [
            next(slices) if has else Zero(a.tangent())
            for has, a in zip(has_ct, y_avals, strict=True)
        ]
        outs = backward_pass(jaxpr.jaxpr, jaxpr.consts, inputs, ct_out)
        ct_consts, others = cut(outs, len(linear_consts))
        return [*map(add_any, sums, ct_consts), *map(instantiate, others)]

    avals = [
        *map(aval_of, known_consts),
        *linear_consts,
        *map(aval_of, ct_carry),
        *(carry_avals[i] for i in counters),
        *(a for x, a in zip(xs, x_avals, strict=True) if not is_linear(x)),
        *(a.tangent() for a, has in zip(y_avals, has_ct, strict=True) if has),
    ]
    return stage_closed(body, avals, jaxpr.jaxpr.name)


@per_program("scan of used results", keyed_by="used results, numbers of constants and carries")
def _narrow_program(closed: ClosedJaxpr, used: tuple[bool, ...], num_consts: int, num_carry: int):
    """Return which operands and results a scan has that computes the used results, and its body.

    Carries that others depend on are among its results.
    """
    carry, ys = list(used[:num_carry]), used[num_carry:]
    while True:
        jaxpr = prune(dce(closed.jaxpr, [*carry, *ys]))
        needed = reads(jaxpr)
        # A carry that the next iteration reads must be returned by this one.
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
