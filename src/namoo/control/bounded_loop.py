"""The primitive `bounded_while`: a `while` that stops after `max_steps` iterations at the latest.

It runs as `while` does, with a counter in its carry. Because the number of iterations has a bound,
it can be differentiated in reverse: `linearize` replaces it by nested loops of known length, which
skip their iterations once the condition fails. Each inner loop is a `checkpoint`: the forward pass
keeps the carry with which it starts, and the backward pass runs it again.

With `max_steps = b ** k` and `b` at most `BLOCK` there are k loops of b iterations. The backward
pass holds at most `k * b` carries and the residuals of b iterations, and each iteration is computed
k times. Memory and time grow as the logarithm of the bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base.caches import per_program
from namoo._base.config import config
from namoo.analysis.dead_code import has_checks, has_io
from namoo.control.call import closed_call_p
from namoo.control.cond import Cond
from namoo.control.scan import cut, scan_p
from namoo.control.while_loop import While
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from namoo.primitives.bits import bitwise_and
from namoo.primitives.elementwise import add, lt, ne, select_n
from namoo.primitives.reduction import reduce_or
from namoo.primitives.shape import (
    broadcast_in_dim,
    convert_element_type,
    shape_of,
    stop_gradient_p,
)
from namoo.transforms.batch import batch_jaxpr, to_front
from namoo.transforms.remat import remat_p
from namoo.transforms.stage import stage_closed

BLOCK = 64
"""How many iterations the innermost loop of a backward pass has at most."""


class BoundedWhile(While):
    """`while` whose carry starts with the number of iterations so far, below `max_steps`."""

    name = "bounded_while"

    def linearize(
        self,
        primals,
        tangents,
        *,
        cond_jaxpr,
        body_jaxpr,
        cond_nconsts,
        body_nconsts,
        max_steps,
    ):
        program = _nested_loops(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts, max_steps)
        return closed_call_p.linearize(primals, tangents, jaxpr=program)

    def running(self, inputs, batched, going):
        # The body also runs for examples that have stopped, and may have no finite derivative
        # there. Their cotangents are zero on both sides of it, else 0 * inf would be NaN.
        def guarded(x):
            which = broadcast_in_dim(going, shape_of(x), (0,))
            return select_n(which, stop_gradient_p.bind(x), x)

        return [guarded(x) if b else x for x, b in zip(inputs, batched, strict=True)]


bounded_while_p = BoundedWhile()


class RunIf(Cond):
    """`cond` whose first branch costs nothing: under `vmap` it is taken when all examples take it.

    Otherwise the second branch runs for the whole batch, and results are selected by example.
    """

    name = "run_if"

    def batch(self, xs, dims, *, axis, branches):
        programs = [b.jaxpr for b in branches]
        alone = config.strict or any(has_checks(p) or has_io(p) for p in programs)
        if dims[0] is None or alone:
            return super().batch(xs, dims, axis=axis, branches=branches)
        (index, *operands), batched = to_front(xs, dims)
        skip, run = (batch_jaxpr(b, axis, batched[1:], force=True)[0] for b in branches)
        avals = [aval_of(x) for x in (index, *operands)]

        def skipped(index, *operands):
            return jaxpr_as_fun(skip)(*operands)

        def selected(index, *operands):
            pairs = zip(jaxpr_as_fun(skip)(*operands), jaxpr_as_fun(run)(*operands), strict=True)
            return [select_n(broadcast_in_dim(index, shape_of(a), (0,)), a, b) for a, b in pairs]

        runs = convert_element_type(reduce_or(ne(index, np.int32(0)), (0,)), np.int32)
        programs = tuple(stage_closed(f, avals, run.jaxpr.name) for f in (skipped, selected))
        outs = self.bind(runs, index, *operands, branches=programs)
        return outs, [0] * len(outs)


run_if_p = RunIf()


def schedule(max_steps: int) -> list[int]:
    """The lengths of the nested loops, the innermost first.

    Example:
        >>> schedule(50), schedule(1000), schedule(10**6)
        ([50], [32, 32], [32, 32, 32, 32])
    """
    levels = 1
    while BLOCK**levels < max_steps:
        levels += 1
    length = 0
    while length**levels < max_steps:
        length += 1
    return [length] * levels


@per_program(
    "nested loops", keyed_by="the condition of a bounded loop, numbers of constants, the bound"
)
def _nested_loops(
    body: ClosedJaxpr, cond_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int, max_steps: int
) -> ClosedJaxpr:
    """The program of a bounded loop that can be differentiated in reverse."""
    num_consts = cond_nconsts + body_nconsts
    avals = [*cond_jaxpr.in_avals[:cond_nconsts], *body.in_avals]
    name = body.jaxpr.name
    keep = stage_closed(lambda *xs: xs[num_consts:], avals, name)
    block = stage_closed(lambda *xs: jaxpr_as_fun(body)(*xs[cond_nconsts:]), avals, name)

    def loop(block: ClosedJaxpr, length: int) -> ClosedJaxpr:
        def step(*xs):
            (goes_on,) = jaxpr_as_fun(cond_jaxpr)(*xs[:cond_nconsts], *xs[num_consts:])
            index = convert_element_type(goes_on, np.int32)
            return run_if_p.bind(index, *xs, branches=(keep, block))

        program = stage_closed(step, avals, name)

        def repeat(*xs):
            return scan_p.bind(
                *xs,
                jaxpr=program,
                length=length,
                reverse=False,
                num_consts=num_consts,
                num_carry=len(xs) - num_consts,
                unroll=1,
            )

        return stage_closed(repeat, avals, name)

    first, *others = schedule(max_steps)
    block = loop(block, first)
    for length in others:
        inner = block

        def again(*xs, inner=inner):
            return remat_p.bind(
                *xs, jaxpr=inner, policy=None, prevent_cse=True, differentiated=False
            )

        block = loop(stage_closed(again, avals, name), length)
    return block


def bind_bounded(
    *operands: Any,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    max_steps: int,
) -> list[Any]:
    """The results of a loop with a bound; the programs do not count."""
    start = EagerArray(np.zeros((), np.int32 if max_steps < 2**31 else np.int64))
    one, bound = (EagerArray(np.asarray(n, start.dtype)) for n in (1, max_steps))

    def goes_on(*xs):
        consts, (count,), carry = cut(xs, cond_nconsts, 1)
        return [bitwise_and(lt(count, bound), jaxpr_as_fun(cond_jaxpr)(*consts, *carry)[0])]

    def step(*xs):
        consts, (count,), carry = cut(xs, body_nconsts, 1)
        return [add(count, one), *jaxpr_as_fun(body_jaxpr)(*consts, *carry)]

    def with_counter(fun, program, n):
        avals = [*program.in_avals[:n], aval_of(start), *program.in_avals[n:]]
        return stage_closed(fun, avals, program.jaxpr.name)

    consts, carry = cut(operands, cond_nconsts + body_nconsts)
    outs = bounded_while_p.bind(
        *consts,
        start,
        *carry,
        cond_jaxpr=with_counter(goes_on, cond_jaxpr, cond_nconsts),
        body_jaxpr=with_counter(step, body_jaxpr, body_nconsts),
        cond_nconsts=cond_nconsts,
        body_nconsts=body_nconsts,
        max_steps=max_steps,
    )
    return outs[1:]
