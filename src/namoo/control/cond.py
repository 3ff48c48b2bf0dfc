"""Branches: `cond`, `switch`, and `platform_dependent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base.caches import per_program
from namoo._base.config import config
from namoo._base.short import short
from namoo._base.source_context import at_user_line, entry_point
from namoo.analysis.dead_code import chosen, dce, dependent, has_checks, has_io, prune, reads
from namoo.control.collective_primitives import vary_p
from namoo.control.scan import one_by_one
from namoo.control.trees import as_arrays, share_consts, type_differences
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, Var, jaxpr_as_fun
from namoo.core.primitive import Zero, is_linear, is_zero
from namoo.core.trace import Tracer, context
from namoo.primitives.elementwise import clamp, eq, ne, select_n
from namoo.primitives.shape import (
    broadcast,
    broadcast_in_dim,
    convert_element_type,
    instantiate,
    moveaxis,
    shape_of,
    zeros,
)
from namoo.transforms.batch import batch_jaxpr, batch_to, to_front
from namoo.transforms.discharge import discharged, put_back, values_of
from namoo.transforms.jvp import jvp, jvp_jaxpr
from namoo.transforms.linear import linearize_jaxpr, tangents_out
from namoo.transforms.program import Call, ProgramPrimitive, interpret
from namoo.transforms.refs import refuse_aliases
from namoo.transforms.stage import stage_closed
from namoo.transforms.staged import argument_names, staged
from namoo.transforms.transpose import transpose_jaxpr


class Cond(ProgramPrimitive):
    """Run one of several programs, chosen by an integer; all have the same types."""

    name = "cond"

    def evaluate(self, index, *values, branches):
        return self.executable(branches[int(index)])(values)

    def abstract(self, index, *avals, branches):
        return branches[0].out_avals

    def discharge(self, args, which, params):
        branches = params["branches"]
        found = [discharged(branch, which[1:])[1] for branch in branches]
        changed = tuple(sorted({i for own in found for i in own}))
        programs = tuple([discharged(branch, which[1:], changed)[0] for branch in branches])
        outs = self.bind(*values_of(args, which), branches=programs)
        n = len(outs) - len(changed)
        put_back([args[i + 1] for i in changed], outs[n:])
        return outs[:n]

    def dependent(self, given, params):
        if given[0]:
            return None
        return _either(dependent(b.jaxpr, given[1:]) for b in params["branches"])

    def narrowed(self, eqn, used):
        branches = [prune(dce(b.jaxpr, used)) for b in eqn.params["branches"]]
        needed = _either(map(reads, branches))
        programs = tuple(
            ClosedJaxpr(jaxpr.replace(invars=chosen(jaxpr.invars, needed)), b.consts)
            for jaxpr, b in zip(branches, eqn.params["branches"], strict=True)
        )
        return eqn.replace(
            invars=[eqn.invars[0], *chosen(eqn.invars[1:], needed)],
            outvars=chosen(eqn.outvars, used),
            params={"branches": programs},
        )

    def split_by_policy(self, eqn, part):
        branches = eqn.params["branches"]
        parts = [part(branch.jaxpr) for branch in branches]
        slots, places = _slots([[v.aval for v in kept] for kept, _, _ in parts])
        if not slots:
            return None
        given = [Var(aval) for aval in slots]
        forward, again = [], []
        for branch, (kept, computing, reading), own in zip(branches, parts, places, strict=True):
            program = computing.replace(outvars=[*computing.outvars, *kept])
            closed = ClosedJaxpr(program, branch.consts)
            forward.append(_fill_slots(closed, len(computing.outvars), slots, own))
            inputs = [Var(aval) for aval in slots]
            for place, var in zip(own, kept, strict=True):
                inputs[place] = var
            again.append(
                ClosedJaxpr(reading.replace(invars=[*reading.invars, *inputs]), branch.consts)
            )
        return (
            eqn.replace(outvars=[*eqn.outvars, *given], params={"branches": tuple(forward)}),
            eqn.replace(invars=[*eqn.invars, *given], params={"branches": tuple(again)}),
            given,
        )

    def weak_results(self, weak, count, params):
        return [a.weak_type for a in params["branches"][0].out_avals]

    def native(self, emit, index, *operands, branches):
        return emit.cond(index, operands, branches)

    def stablehlo(self, hlo, index, *operands, branches):
        bodies = [lambda branch=branch: hlo.inline(branch, operands) for branch in branches]
        effects = any(branch.effectful for branch in branches)
        return hlo.case(hlo.convert(index, np.int32), bodies, hlo.avals, effects)

    def jvp(self, primals, tangents, *, branches):
        index, *primals = primals
        nonzeros = [not is_zero(t) for t in tangents[1:]]
        nonzero_out = _either(jvp_jaxpr(b, nonzeros)[1] for b in branches)
        programs = tuple(jvp_jaxpr(b, nonzeros, nonzero_out)[0] for b in branches)
        given = [t for t in tangents[1:] if not is_zero(t)]
        outs = self.bind(index, *primals, *given, branches=programs)
        n = len(nonzero_out)
        return outs[:n], tangents_out(nonzero_out, outs[:n], outs[n:])

    def linearize(self, primals, tangents, *, branches):
        index, *primals = primals
        nonzeros = [not is_zero(t) for t in tangents[1:]]
        nonzero_out = _either(linearize_jaxpr(b, nonzeros).nonzero_out for b in branches)
        halves = [linearize_jaxpr(b, nonzeros, nonzero_out) for b in branches]
        n = len(branches[0].out_avals)
        slots, places = _slots([half.primal.out_avals[n:] for half in halves])
        pairs = [*zip(halves, places, strict=True)]
        forward = tuple(_fill_slots(half.primal, n, slots, own) for half, own in pairs)
        outs = self.bind(index, *primals, branches=forward)
        given = [t for t in tangents[1:] if not is_zero(t)]
        out_tangents = []
        if any(nonzero_out):
            backward = tuple(_read_slots(half, slots, own) for half, own in pairs)
            out_tangents = self.bind(index, *primals, *outs[n:], *given, branches=backward)
        return outs[:n], tangents_out(nonzero_out, outs[:n], out_tangents)

    def transpose(self, cts, index, *operands, branches):
        linear = [is_linear(x) for x in operands]
        nonzero_cts = [not is_zero(ct) for ct in cts]
        programs = []
        pairs = [transpose_jaxpr(b, linear, nonzero_cts) for b in branches]
        nonzero_out = _either(nz for _, nz in pairs)
        avals = [x.aval.tangent() for x in operands if is_linear(x)]
        for program, own in pairs:
            programs.append(_with_zeros(program, own, nonzero_out, avals))
        known = [x for x in operands if not is_linear(x)]
        given = [ct for ct in cts if not is_zero(ct)]
        outs = iter(self.bind(index, *known, *given, branches=tuple(programs)))
        nonzero = iter(nonzero_out)
        return [
            None,
            *(
                (next(outs) if next(nonzero) else Zero(x.aval.tangent())) if lin else None
                for x, lin in zip(operands, linear, strict=True)
            ),
        ]

    def batch(self, xs, dims, *, axis, branches):
        (index, *xs), (index_dim, *dims) = xs, dims
        xs, batched = to_front(xs, dims)
        if index_dim is not None:
            # Each example takes its own branch: all are computed, and the results selected.
            apart = axis.devices and any(b.jaxpr.effectful for b in branches)
            if any(has_io(b.jaxpr) for b in branches) and not apart:
                raise NotImplementedError(
                    "IO effect not supported in vmap-of-cond. The index of cond or switch is "
                    "batched: all branches are run, so an io_callback in one of them would "
                    "happen too often. Use lax.map instead of vmap."
                )
            if config.strict or apart or any(has_checks(b.jaxpr) for b in branches):
                alone = one_by_one(
                    self, [index, *xs], [index_dim, *(0 if b else None for b in batched)], axis,
                    branches=branches,
                )  # fmt: skip
                if alone is not None:
                    return alone
            index = moveaxis(index, index_dim, 0)
            outs = _bind_each(index, xs, batched, lambda own: _batched(branches, axis, own))
            return outs, [0] * len(outs)
        batched_out = _either(batch_jaxpr(b, axis, batched)[1] for b in branches)
        programs = tuple(batch_jaxpr(b, axis, batched, force=batched_out)[0] for b in branches)
        outs = self.bind(index, *xs, branches=programs)
        return outs, [0 if b else None for b in batched_out]


cond_p = Cond()


class CondOfEach(Call):
    """`cond` with an index for each example of a batch: all branches run, and results are selected.

    `jaxpr` does that. The operands in `batched` have all axes of the index in front, the others
    none; `rebatch` gives the branches for another choice of these operands.

    A branch may have no finite derivative at the operands of examples that take another branch.
    There its tangents are zero on both sides; otherwise 0 * inf would give NaN operands.
    """

    name = "cond_of_each"
    value_params = ("jaxpr",)

    def evaluate(self, *values, jaxpr, **params):
        return interpret(jaxpr)(values)

    def inlined(self, params):
        return params["jaxpr"]

    def narrowed(self, eqn, used):
        return eqn

    def split_by_policy(self, eqn, part):
        return None

    def jvp(self, primals, tangents, *, batched, rebatch, **params):
        def run(branch, xs, ts):
            return jvp(jaxpr_as_fun(branch), xs, ts)

        return _differentiate_each(run, primals, tangents, batched, rebatch)

    def linearize(self, primals, tangents, *, batched, rebatch, **params):
        def run(branch, xs, ts):
            half = linearize_jaxpr(branch, [not is_zero(t) for t in ts])
            n, outs = len(branch.out_avals), jaxpr_as_fun(half.primal)(*xs)
            given = [*half.residuals(xs, outs[n:]), *(t for t in ts if not is_zero(t))]
            moved = jaxpr_as_fun(half.tangent)(*given)
            return outs[:n], tangents_out(half.nonzero_out, outs[:n], moved)

        return _differentiate_each(run, primals, tangents, batched, rebatch)

    def batch(self, xs, dims, *, axis, batched, rebatch, **params):
        (index, *xs), (index_dim, *dims) = xs, dims
        index = batch_to(axis, index, index_dim)
        moved = []
        for x, dim, old in zip(xs, dims, batched, strict=True):
            if not old and dim is not None:  # it has only the new one of the index's axes
                x, dim = (
                    broadcast(moveaxis(x, dim, 0), shape_of(index)[1:]),
                    len(shape_of(index)) - 1,
                )
            moved.append(batch_to(axis, x, dim) if old or dim is not None else x)
        batched = [old or dim is not None for old, dim in zip(batched, dims, strict=True)]
        outs = _bind_each(index, moved, batched, lambda own: _batched(rebatch(own), axis, own))
        return outs, [0] * len(outs)


cond_of_each_p = CondOfEach()


def _either(patterns):
    """Where any of several patterns of booleans is true."""
    return [any(column) for column in zip(*patterns, strict=True)]


def _batched(branches, axis, batched):
    return tuple(batch_jaxpr(b, axis, batched, force=True)[0] for b in branches)


def _bind_each(index, xs, batched, rebatch):
    """Results of `cond_of_each` on operands that have all axes of the index or none."""
    first, *others = rebatch(batched)
    program = _each_program(first, tuple(others), *(aval_of(x) for x in (index, *xs)))
    return cond_of_each_p.bind(index, *xs, jaxpr=program, batched=tuple(batched), rebatch=rebatch)


@per_program("cond of each", keyed_by="the other branches, types of the operands")
def _each_program(first, others, *avals):
    """All branches, and then a selection by example."""

    def fun(index, *xs):
        results = [jaxpr_as_fun(b)(*xs) for b in (first, *others)]
        return [_select(index, cases) for cases in zip(*results, strict=True)]

    return stage_closed(fun, avals, first.jaxpr.name)


def _differentiate_each(run, primals, tangents, batched, rebatch):
    """Results and tangents of `cond_of_each`; `run` differentiates one branch.

    Operands that have a tangent get the axes of the index, because the tangent differs by example.
    """
    (index, *xs), tangents = primals, tangents[1:]
    sizes = shape_of(index)
    moving = [not is_zero(t) for t in tangents]
    spread = [nz and not b for nz, b in zip(moving, batched, strict=True)]
    xs = [broadcast(x, sizes) if s else x for x, s in zip(xs, spread, strict=True)]
    tangents = [broadcast(t, sizes) if s else t for t, s in zip(tangents, spread, strict=True)]
    results = []
    for i, branch in enumerate(rebatch([nz or b for nz, b in zip(moving, batched, strict=True)])):
        taken = eq(index, np.int32(i))
        own = [
            _where(taken, t) if nz else Zero.of(x)
            for x, t, nz in zip(xs, tangents, moving, strict=True)
        ]
        results.append(run(branch, xs, own))
    outs = [_select(index, cases) for cases in zip(*(outs for outs, _ in results), strict=True)]
    moved = [
        Zero.of(out) if all(map(is_zero, ts)) else _select(index, [*map(instantiate, ts)])
        for out, ts in zip(outs, zip(*(ts for _, ts in results), strict=True), strict=True)
    ]
    return outs, moved


def _select(index, cases):
    """One result per example, by its index; keys and arrays alike."""
    shape = shape_of(cases[0])
    return select_n(broadcast_in_dim(index, shape, range(len(shape_of(index)))), *cases)


def _where(taken, t):
    """A tangent, zero in the examples that do not take the branch."""
    return _select(taken, [zeros(aval_of(t)), t])


def _slots(groups):
    """Shared slots for values of the branches, and which slots each branch's values take.

    Only one branch is run, so values of different branches share a slot if they have the same type.
    """
    slots, places = [], []
    for avals in groups:
        free, own = [*range(len(slots))], []
        for aval in avals:
            fits = (i for i in free if slots[i] == aval and slots[i].vma == aval.vma)
            place = next(fits, None)
            if place is None:
                place = len(slots)
                slots.append(aval)
            else:
                free.remove(place)
            own.append(place)
        places.append(own)
    return slots, places


def _fill_slots(closed, n, slots, own):
    """A branch whose results after the first n are in their slots, with zeros in the others."""

    def fun(*args):
        outs = jaxpr_as_fun(closed)(*args)
        found = dict(zip(own, outs[n:], strict=True))
        return [
            *outs[:n],
            *(found[i] if i in found else zeros(aval) for i, aval in enumerate(slots)),
        ]

    return stage_closed(fun, closed.in_avals, closed.jaxpr.name)


def _read_slots(half, slots, own):
    """The tangents of a branch, from its operands, the slots and the given tangents."""
    num_inputs = len(half.primal.in_avals)

    def fun(*args):
        inputs, rest = args[:num_inputs], args[num_inputs:]
        residuals = half.residuals(inputs, [rest[place] for place in own])
        return jaxpr_as_fun(half.tangent)(*residuals, *rest[len(slots) :])

    tangents = half.tangent.in_avals[len(half.forwarded) :]
    avals = [*half.primal.in_avals, *slots, *tangents]
    return stage_closed(fun, avals, half.primal.jaxpr.name)


def _with_zeros(program, own, wanted, avals):
    """A transposed branch that outputs every cotangent that some branch outputs."""

    def fun(*args):
        outs = iter(jaxpr_as_fun(program)(*args))
        full = [next(outs) if nz else zeros(a) for nz, a in zip(own, avals, strict=True)]
        return [ct for ct, w in zip(full, wanted, strict=True) if w]

    return stage_closed(fun, program.in_avals, program.jaxpr.name)


def _choose(
    name: str, index: Any, funs: Sequence[Callable[..., Any]], operands: tuple[Any, ...]
) -> Any:
    """The result of the branch that an index chooses; all must have results of the same types."""
    flat, in_tree = tree_util.tree_flatten(operands)
    avals = [aval_of(x) for x in flat]
    label = getattr(funs[0], "__name__", name)
    refuse_aliases(label, name, flat, lambda: argument_names(funs[0], in_tree))
    programs = [staged(f, in_tree, avals, name) for f in funs]
    for f, program in zip(funs, programs, strict=True):
        program.refuse_aliases(f, in_tree, flat)
    first = programs[0]
    for other in programs[1:]:
        differences = type_differences(first.out_types(), other.out_types())
        if differences:
            what = "branch outputs must have the same pytree structure, but they differ"
            if first.out_tree == other.out_tree:
                what = "branches must have equal output types but they differ"
            # The first program of `cond` is that of false_fun, which index 0 chooses.
            labels = "false_fun", "true_fun", "true_fun and false_fun"
            if name != "cond":
                labels = "branches[0]", f"branches[{programs.index(other)}]", "branches"
            raise TypeError(
                tree_util.mismatch(
                    f"{name} {what}: {labels[2]}; expected is what {labels[0]} {first.name!r} "
                    f"returns, found what {labels[1]} {other.name!r} returns",
                    differences,
                ).args[0]
                + at_user_line()
            )
    branches, consts = share_consts(programs)
    args = [*consts, *flat]
    if context.checked:
        branches, args = _varying(branches, args, aval_of(index).vma)
        return first.out_tree.unflatten(cond_p.bind(index, *args, branches=tuple(branches)))
    # An operand that all branches return unchanged is not selected, so it is not batched.
    given, branches = _forwarded(branches[0], tuple(branches[1:]))
    outs = iter(cond_p.bind(index, *args, branches=branches))
    return first.out_tree.unflatten(
        [next(outs) if i is None else as_arrays(args[i]) for i in given]
    )


@per_program("cond forwarded operands", keyed_by="the other branches")
def _forwarded(first: ClosedJaxpr, others: Sequence[ClosedJaxpr]):
    """For each result the operand that all branches return for it, or None; and the branches
    without such results."""
    branches = (first, *others)
    given: list[int | None] = []
    for results in zip(*(b.jaxpr.outvars for b in branches), strict=True):
        places = {
            next((i for i, v in enumerate(b.jaxpr.invars) if v is out), None)
            for b, out in zip(branches, results, strict=True)
        }
        given.append(places.pop() if len(places) == 1 else None)
    keep = [i is None for i in given]
    return given, tuple(ClosedJaxpr(dce(b.jaxpr, keep)) for b in branches)


def _varying(programs: list[ClosedJaxpr], args: list[Any], chosen_by: frozenset[Any]):
    """Make branches and operands agree on the mesh axes along which values vary.

    Devices may take different branches: their results vary as the choice does, and so must
    their operands; otherwise a branch that only some devices take would sum gradients over all.
    """
    kinds = [[a.vma for a in p.out_avals] for p in programs]
    wanted = [chosen_by.union(*own) for own in zip(*kinds, strict=True)]
    if not chosen_by and all(kind == kinds[0] for kind in kinds):
        return programs, args
    args = [_vary(x, chosen_by) for x in args]

    def agreeing(program: ClosedJaxpr) -> ClosedJaxpr:
        def run(*xs):
            return list(map(_vary, jaxpr_as_fun(program)(*xs), wanted))

        return stage_closed(run, [aval_of(x) for x in args], program.jaxpr.name)

    return [*map(agreeing, programs)], args


def _vary(x: Any, axes: frozenset[Any]) -> Any:
    """Mark a value as varying along these mesh axes."""
    missing = tuple(sorted(axes - aval_of(x).vma, key=str))
    return vary_p.bind(x, axes=missing) if missing else x


_NO_OPERAND = object()


@entry_point
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _NO_OPERAND,
    linear: Any = None,
) -> Any:
    """Run `true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`.

    Both functions are traced, and must return the same structure and types. Only one is run;
    under `vmap` with a batched `pred` both are, and the results selected.

    Args:
        pred: a boolean scalar, or a number (true unless 0).
        true_fun: a function of the operands.
        false_fun: a function of the operands.
        *operands: trees of arrays.
        operand: the only operand, in JAX's older signature.
        linear: has no effect.

    Returns:
        what the chosen function returns.

    Raises:
        TypeError: `pred` is not a scalar, or the functions return different types.

    Example:
        >>> import namoo.numpy as jnp
        >>> cond(True, lambda x: x + 1.0, lambda x: x - 1.0, jnp.array(3.0))
        Array(4., dtype=float32, weak_type=True)
    """
    if operand is not _NO_OPERAND:
        if operands:
            raise TypeError("cond: give operands by position or by the keyword operand=, not both.")
        operands = (operand,)
    if len(operands) == 2 and not callable(true_fun) and callable(operands[1]):
        # JAX's older signature: cond(pred, true_operand, true_fun, false_operand, false_fun).
        pair = (true_fun, operands[0])
        on_true, on_false = false_fun, operands[1]
        return cond(pred, lambda p: on_true(p[0]), lambda p: on_false(p[1]), pair)
    for fun in (true_fun, false_fun):
        if not callable(fun):
            raise TypeError(
                f"lax.cond: true_fun and false_fun must be callable, got {short(true_fun)} and "
                f"{short(false_fun)}. Write cond(pred, true_fun, false_fun, *operands); for a "
                "choice between two values jnp.where(pred, a, b), in trees with tree.map."
            )
    if pred is None:
        raise TypeError("cond predicate is None: it must be a boolean scalar.")
    if isinstance(pred, (list, tuple, dict, str)):
        raise TypeError(f"Pred must be a scalar, got {pred} of type {type(pred)}.")
    if callable(pred):
        raise TypeError(f"Pred type must be either boolean or number, got {pred!r}.")
    if shape_of(pred):
        raise TypeError(
            f"Pred must be a scalar, got a value of shape {shape_of(pred)}. For a choice element "
            "by element use jnp.where(pred, a, b)."
        )
    dtype = aval_of(pred).dtype
    if dtype != np.bool_ and dtype.kind not in "iuf":
        raise TypeError(f"Pred type must be either boolean or number, got dtype {dtype}.")
    if config.disable_jit and not isinstance(pred, Tracer):
        return (true_fun if pred else false_fun)(*as_arrays(operands))
    if dtype != np.bool_:
        pred = ne(pred, np.zeros((), dtype))
    index = convert_element_type(pred, np.int32)
    return _choose("cond", index, [false_fun, true_fun], operands)


@entry_point
def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NO_OPERAND
) -> Any:
    """Run `branches[index](*operands)`, with `index` clamped to the valid range.

    Args:
        index: an integer scalar.
        branches: functions of the operands, which return the same types.
        *operands: trees of arrays.
        operand: the only operand, in JAX's older signature.

    Returns:
        what the chosen function returns.

    Example:
        >>> switch(1, [lambda x: x, lambda x: 10 * x], 2)
        Array(20, dtype=int32, weak_type=True)
    """
    if operand is not _NO_OPERAND:
        operands = (operand,)
    if not all(map(callable, branches)):
        raise TypeError("lax.switch: the branches must be callable.")
    if callable(index) or isinstance(index, str):
        raise TypeError(f"Index type must be an integer, got {index}.")
    if shape_of(index):
        raise TypeError(f"Branch index must be scalar, got {index} of shape {shape_of(index)}.")
    if aval_of(index).dtype.kind not in "iu":
        raise TypeError(f"Index type must be an integer, got {aval_of(index).dtype}.")
    branches = list(branches)
    if not branches:
        raise ValueError("Empty branch sequence: switch has nothing to choose from.")
    if len(branches) == 1:
        return branches[0](*operands)
    if config.disable_jit and not isinstance(index, Tracer):
        return branches[min(max(int(index), 0), len(branches) - 1)](*as_arrays(operands))
    last = EagerArray(np.asarray(len(branches) - 1, np.int32))
    first = EagerArray(np.zeros((), np.int32))
    index = clamp(first, convert_element_type(index, np.int32), last)
    return _choose("switch", index, branches, operands)


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Run the function for the platform that the program runs on; here it is `cpu`.

    Example:
        >>> platform_dependent(3.0, cpu=lambda x: x, default=lambda x: -x)
        3.0
    """
    fun = per_platform.get("cpu", default)
    if fun is None:
        raise NotImplementedError(
            "platform_dependent: translation rule of it not found for platform 'cpu': there are "
            f"functions for {sorted(per_platform)}, and there is no default."
        )
    return fun(*args)
