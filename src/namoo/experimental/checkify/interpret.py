"""`checkify`: run a program together with an error value.

The function is staged, and its equations are evaluated one by one. Each may add a failure to the
entries. Equations that hold programs are replaced by equations whose programs take the entries as
additional inputs and return them as additional outputs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo import tree_util
from namoo._base.config import Scope, config
from namoo._base.source_context import Source, entry_point
from namoo.control.cond import Cond
from namoo.control.scan import cut, scan_p
from namoo.control.while_loop import STOPS_APART, While
from namoo.core.array import Array
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, literal_value
from namoo.core.primitive import Zero
from namoo.devices.shard_map_primitive import shard_map_p
from namoo.experimental.checkify.error import (
    DivisionByZeroError,
    Entry,
    Error,
    ErrorCategory,
    FailedCheckError,
    Kind,
    NaNError,
    OOBError,
    Template,
    check_p,
    entries_from,
    kind_of,
    leaves_of,
    placeholder,
    update,
)
from namoo.primitives.gather import Scatter
from namoo.transforms.custom_call import CustomProgram, custom_jvp_program_p
from namoo.transforms.program import Call
from namoo.transforms.stage import stage

Entries = Mapping[Kind, Entry]

# Primitives that can return NaN although no operand is NaN.
MAY_GIVE_NAN = frozenset(
    """acos acosh add asin asinh atan2 atan atanh bessel_i0e bessel_i1e cbrt conv_general_dilated
    cos cosh cumlogsumexp cummax cummin cumprod cumsum digamma div dot_general erf_inv erf erfc exp
    exp2 expm1 fft igamma_grad_a igamma igammac integer_pow lgamma linear_solve
    custom_linear_solve log1p log logistic mul pad pow psum reduce reduce_prod reduce_sum
    reduce_window reduce_window_sum regularized_incomplete_beta rem rng_uniform rsqrt sin sinh sqrt
    sub tan tanh""".split()
)


class Checker:
    """Run programs with checks, and collect the templates of the checks."""

    def __init__(self, enabled: frozenset[ErrorCategory]):
        self.enabled = enabled
        self.templates: list[Template] = []

    def add(
        self,
        entries: Entries,
        failed: Any,
        error: ErrorCategory,
        static: tuple = (),
        payload: Sequence[Any] = (),
        source: Source | None = None,
    ) -> Entries:
        """Return the entries after one more check."""
        code = len(self.templates)
        tree = tree_util.tree_structure(0) if payload else None
        self.templates.append(Template(error, static, tree, source))
        return update(entries, kind_of(error, payload), failed, code, payload)

    def run(
        self, jaxpr: Jaxpr, consts: Sequence[Any], entries: Entries, args: Sequence[Any]
    ) -> tuple[Entries, list[Any]]:
        """Run a program; return the entries after it, and its results."""
        env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
        env.update(zip(jaxpr.invars, args, strict=True))

        def read(atom):
            return literal_value(atom) if type(atom) is Literal else env[atom]

        for eqn in jaxpr.eqns:
            entries, outs = self.equation(eqn, entries, [read(v) for v in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
        return entries, [read(v) for v in jaxpr.outvars]

    def equation(
        self, eqn: JaxprEqn, entries: Entries, args: list[Any]
    ) -> tuple[Entries, list[Any]]:
        prim, params = eqn.primitive, eqn.params
        if prim is check_p:
            return self.discharge(entries, args, **params), []
        if isinstance(prim, Call):
            return self.call(prim, entries, args, **params)
        if isinstance(prim, CustomProgram):
            return self.custom(prim, entries, args, **params)
        if prim is scan_p:
            return self.scan(entries, args, **params)
        if isinstance(prim, While):
            return self.while_loop(prim, entries, args, **params)
        if isinstance(prim, Cond):
            return self.cond(prim, entries, args, **params)
        if prim is shard_map_p:
            return self.shard_map(entries, args, **params)
        out = prim.bind(*args, **params)
        outs = list(out) if prim.multiple_results else [out]
        return self.automatic(eqn, entries, args, outs), outs

    def discharge(self, entries: Entries, leaves: list[Any], err_tree: Any, debug: bool) -> Entries:
        """Make a user's check part of the error."""
        error: Error = err_tree.unflatten(leaves)
        offset = len(self.templates)
        self.templates.extend(error.templates)
        for kind, entry in error.entries.items():
            if kind.error in self.enabled:
                entries = update(entries, kind, entry.failed, entry.code + offset, entry.payload)
        return entries

    def automatic(
        self, eqn: JaxprEqn, entries: Entries, args: list[Any], outs: list[Any]
    ) -> Entries:
        """Return the entries after the automatic checks of an equation."""
        name, source = eqn.primitive.name, eqn.source
        if name == "div" and DivisionByZeroError in self.enabled:
            failed = jnp.any(jnp.equal(args[1], 0))
            entries = self.add(entries, failed, DivisionByZeroError, source=source)
        if OOBError in self.enabled and (found := _outside(eqn, args)) is not None:
            mask, indices, axes = found
            shape = jnp.shape(args[0])
            if math.prod(jnp.shape(mask)):
                place = _first_outside(mask, indices, axes, shape)
                entries = self.add(entries, jnp.any(mask), OOBError, (name, shape), [place], source)
        if NaNError in self.enabled and (
            name in MAY_GIVE_NAN or isinstance(eqn.primitive, Scatter)
        ):
            inexact = [x for x in outs if jnp.issubdtype(aval_of(x).dtype, jnp.inexact)]
            if inexact:
                failed = functools.reduce(jnp.logical_or, [jnp.any(jnp.isnan(x)) for x in inexact])
                entries = self.add(entries, failed, NaNError, (name,), source=source)
        return entries

    def checked(
        self, fun: Callable[..., tuple[Entries, list[Any]]], kinds: Sequence[Kind],
        avals: Sequence[ShapedArray], at: int = 0, name: str = "",
    ) -> tuple[ClosedJaxpr, tuple[Kind, ...]]:  # fmt: skip
        """Stage a function of entries and values; return the program and the kinds of its errors.

        The leaves of the entries are the first results; among the inputs they start at index `at`.
        """
        entry_avals = [aval for kind in kinds for aval in kind.avals()]
        n, found = len(entry_avals), ()

        def flat(*values):
            nonlocal found
            before, leaves, after = cut(values, at, n)
            entries, outs = fun(entries_from(kinds, leaves), [*before, *after])
            found = tuple(entries)
            return [*leaves_of(entries), *outs]

        jaxpr, consts = stage(flat, [*avals[:at], *entry_avals, *avals[at:]], name)
        return ClosedJaxpr(jaxpr, consts), found

    def kinds_after(self, *args: Any) -> tuple[Kind, ...]:
        """Return the kinds of errors that a function may have, as `checked` finds them."""
        count = len(self.templates)
        _, kinds = self.checked(*args)
        del self.templates[count:]
        return kinds

    def runner(self, closed: ClosedJaxpr) -> Callable[..., tuple[Entries, list[Any]]]:
        return lambda entries, args: self.run(closed.jaxpr, closed.consts, entries, args)

    def call(self, prim, entries, args, *, jaxpr, **params):
        avals = [aval_of(x) for x in args]
        name = jaxpr.jaxpr.name
        program, kinds = self.checked(self.runner(jaxpr), tuple(entries), avals, 0, name)
        outs = prim.bind(*leaves_of(entries), *args, jaxpr=program, **params)
        return self.split(kinds, outs)

    def split(self, kinds: Sequence[Kind], outs: Sequence[Any]) -> tuple[Entries, list[Any]]:
        """Split the results of a checked program into entries and results."""
        n = sum(len(kind.avals()) for kind in kinds)
        return entries_from(kinds, outs[:n]), list(outs[n:])

    def prepared(self, entries: Entries, kinds: Sequence[Kind]) -> dict[Kind, Entry]:
        """Add placeholders for more kinds to the entries, so that a loop can carry them."""
        more = {kind: placeholder(kind) for kind in kinds if kind not in entries}
        return {**entries, **more}

    def scan(self, entries, args, *, jaxpr, num_consts, num_carry, **params):
        fun, avals = self.runner(jaxpr), jaxpr.in_avals
        entries = self.prepared(entries, self.kinds_after(fun, tuple(entries), avals, num_consts))
        kinds, leaves = tuple(entries), leaves_of(entries)
        program, _ = self.checked(fun, kinds, avals, num_consts, jaxpr.jaxpr.name)
        outs = scan_p.bind(
            *args[:num_consts],
            *leaves,
            *args[num_consts:],
            jaxpr=program,
            num_consts=num_consts,
            num_carry=len(leaves) + num_carry,
            **params,
        )
        return self.split(kinds, outs)

    def while_loop(
        self, prim, entries, args, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **params
    ):
        condition, body = self.runner(cond_jaxpr), self.runner(body_jaxpr)
        count = len(self.templates)
        cond_consts, body_consts, carry = cut(args, cond_nconsts, body_nconsts)
        entries, _ = condition(entries, [*cond_consts, *carry])

        def step(entries, values):
            entries, carry = body(entries, values[cond_nconsts:])
            # Check the next evaluation of the condition here: the condition returns no error.
            entries, _ = condition(entries, [*values[:cond_nconsts], *carry])
            return entries, carry

        num_consts = cond_nconsts + body_nconsts
        avals = [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]
        entries = self.prepared(entries, self.kinds_after(step, tuple(entries), avals, num_consts))
        kinds, leaves = tuple(entries), leaves_of(entries)
        new_body, _ = self.checked(step, kinds, avals, num_consts, body_jaxpr.jaxpr.name)
        if cond_jaxpr.jaxpr.name == STOPS_APART and len(self.templates) > count:
            raise ValueError(
                "Checkify does not support batched while-loops (checkify-of-vmap-of-while) with "
                "automatic checks: the body also runs for examples that have stopped, and what "
                "fails there is no error. Write vmap(checkify(f)) instead of checkify(vmap(f))."
            )

        def test(entries, values):
            return {}, condition(entries, values)[1]

        count = len(self.templates)
        new_condition, _ = self.checked(test, kinds, cond_jaxpr.in_avals, cond_nconsts)
        del self.templates[count:]
        outs = prim.bind(
            *cond_consts,
            *cond_consts,
            *body_consts,
            *leaves,
            *carry,
            cond_jaxpr=new_condition,
            body_jaxpr=new_body,
            cond_nconsts=cond_nconsts,
            body_nconsts=num_consts,
            **params,
        )
        return self.split(kinds, outs)

    def cond(self, prim, entries, args, *, branches, **params):
        index, *operands = args
        avals = branches[0].in_avals
        start = tuple(entries)
        for branch in branches:
            found = self.kinds_after(self.runner(branch), start, avals)
            entries = self.prepared(entries, found)
        kinds = tuple(entries)
        programs = tuple(self.checked(self.runner(b), kinds, avals)[0] for b in branches)
        outs = prim.bind(index, *leaves_of(entries), *operands, branches=programs, **params)
        return self.split(kinds, outs)

    def shard_map(self, entries, args, *, jaxpr, outs, **params):
        """Check a `shard_map`: each device has its own errors, which are concatenated."""

        def mapped(_, values):
            found, results = self.run(jaxpr.jaxpr, jaxpr.consts, {}, values)
            return {
                kind: Entry(*tree_util.tree_map(lambda x: jnp.expand_dims(x, 0), entry))
                for kind, entry in found.items()
            }, results

        with shard_map_p.scope(params):
            program, inner = self.checked(mapped, (), jaxpr.in_avals, 0, jaxpr.jaxpr.name)
        axes = params["axes"]
        count = math.prod(params["mesh"].shape[name] for name in axes)
        kinds = [kind._replace(mapped=(count, *kind.mapped)) for kind in inner]
        layouts = [(axes, *[()] * (a.ndim - 1)) for kind in kinds for a in kind.avals()]
        results = shard_map_p.bind(*args, jaxpr=program, outs=(*layouts, *outs), **params)
        found, results = self.split(kinds, results)
        for kind, entry in found.items():
            entries = update(entries, kind, *entry)
        return entries, results

    def custom(self, prim, entries, args, *, call_jaxpr, num_consts, **rules):
        """Check a function with custom derivatives; its rules are kept but not checked."""
        fun, avals = self.runner(call_jaxpr), call_jaxpr.in_avals
        entries = self.prepared(entries, self.kinds_after(fun, tuple(entries), avals, num_consts))
        kinds, leaves = tuple(entries), leaves_of(entries)
        program, _ = self.checked(fun, kinds, avals, num_consts, call_jaxpr.jaxpr.name)
        lift = _with_jvp if prim is custom_jvp_program_p else _with_vjp
        outs = prim.bind(
            *args[:num_consts],
            *leaves,
            *args[num_consts:],
            call_jaxpr=program,
            num_consts=num_consts,
            **lift(len(leaves), **rules),
        )
        return self.split(kinds, outs)


def _with_jvp(n: int, *, jvp, **rest):
    """Extend the rule of a custom_jvp function to `n` additional inputs and outputs."""

    def lifted(primals, tangents):
        outs, out_tangents = jvp(primals[n:], tangents[n:])
        return [*primals[:n], *outs], [*tangents[:n], *out_tangents]

    return dict(jvp=lifted, **rest)


def _with_vjp(n: int, *, fwd, bwd, **rest):
    """Extend the rules of a custom_vjp function to `n` additional inputs and outputs."""

    def lifted_fwd(primals, perturbed):
        residuals, outs = fwd(primals[n:], perturbed[n:])
        return residuals, [*primals[:n], *outs]

    def lifted_bwd(residuals, cts):
        return [*(Zero(aval_of(ct)) for ct in cts[:n]), *bwd(residuals, cts[n:])]

    return dict(fwd=lifted_fwd, bwd=lifted_bwd, **rest)


def _outside(eqn: JaxprEqn, args: list[Any]) -> tuple[Any, Any, Sequence[int]] | None:
    """For indexing primitives, return which indices are out of bounds, and their axes."""
    name, params = eqn.primitive.name, eqn.params
    shape = jnp.shape(args[0]) if args else ()
    if name in ("dynamic_slice", "dynamic_update_slice"):
        is_slice = name == "dynamic_slice"
        starts = args[1:] if is_slice else args[2:]
        if not starts:
            return None
        sizes = params["slice_sizes"] if is_slice else jnp.shape(args[1])
        indices, axes = jnp.stack([jnp.asarray(s) for s in starts]), range(len(shape))
    elif name == "gather":
        dims = params["dimension_numbers"]
        sizes, indices, axes = params["slice_sizes"], args[1], dims.start_index_map
    elif isinstance(eqn.primitive, Scatter):
        dims = params["dimension_numbers"]
        window = iter(dims.update_window_dims)
        whole = {*dims.inserted_window_dims, *dims.operand_batching_dims}
        updates = jnp.shape(args[2])
        sizes = [1 if i in whole else updates[next(window)] for i in range(len(shape))]
        indices, axes = args[1], dims.scatter_dims_to_operand_dims
    else:
        return None
    dtype = np.dtype(aval_of(indices).dtype)
    last = [min(shape[i] - sizes[i], np.iinfo(dtype).max) for i in axes]
    # An unsigned index is never negative, and a negative bound would not fit its dtype.
    never = np.asarray([n < 0 for n in last])
    bound = np.asarray([max(n, 0) for n in last], dtype)
    return (indices < 0) | (indices > bound) | never, indices, axes


def _first_outside(mask: Any, indices: Any, axes: Sequence[int], shape: tuple[int, ...]) -> Any:
    """Return the first index out of bounds, its axis, and the axis's size."""
    first = jnp.argmax(jnp.ravel(mask))
    axis = jnp.asarray(np.asarray(axes, np.int32))[first % len(axes)]
    size = jnp.asarray(np.asarray(shape, np.int32))[axis]
    index = jnp.ravel(indices)[first]
    return jnp.stack([index.astype(np.int32), axis, size])


USER_CHECKS = frozenset({FailedCheckError})


def checkify(
    f: Callable[..., Any], errors: frozenset[ErrorCategory] = USER_CHECKS
) -> Callable[..., tuple[Error, Any]]:
    """Make a function return its errors as a value next to its result.

    The new function can be transformed like any other, because errors are arrays.

    Args:
        f: the function; its calls of `check` are found, also within `jit`, `scan`, `cond` and
            loops.
        errors: which errors to look for, as a union of `user_checks`, `nan_checks`, `div_checks`
            and `index_checks` (`float_checks`, `automatic_checks` and `all_checks` are such
            unions).

    Returns:
        a function of the same arguments with the results `(error, out)`: `error.get()` is the
        message of the first failure or None, and `error.throw()` raises it.

    Example:
        >>> from namoo.experimental import checkify as c
        >>> error, out = checkify(jnp.sin, errors=c.nan_checks)(jnp.inf)
        >>> error.get()
        'nan generated by primitive: sin.'
        >>> checked = checkify(lambda x, i: x[i], errors=c.index_checks)
        >>> error, out = checked(jnp.ones(3), jnp.array(5))
        >>> error.get()[-48:]
        'index 5 is out of bounds for axis 0 with size 3.'
    """
    enabled = frozenset(errors)

    @entry_point
    @functools.wraps(f)
    def checked(*args, **kwargs):
        leaves, in_tree = tree_util.tree_flatten((args, kwargs))
        positions = [i for i, x in enumerate(leaves) if isinstance(x, Array)]
        out_tree: Any = None

        def flat(*values):
            # Only arrays are traced: numbers, strings and functions are passed to `f` unchanged.
            nonlocal out_tree
            full = list(leaves)
            for i, x in zip(positions, values, strict=True):
                full[i] = x
            new_args, new_kwargs = in_tree.unflatten(full)
            outs, out_tree = tree_util.tree_flatten(f(*new_args, **new_kwargs))
            return outs

        given = [leaves[i] for i in positions]
        name = getattr(f, "__name__", type(f).__name__)
        # A Python integer that indexes out of bounds is an error value as well.
        raises = config.check_static_indices and OOBError not in enabled
        with Scope("check_static_indices", raises):
            jaxpr, consts = stage(flat, [aval_of(x) for x in given], name, how="checkify")
        checker = Checker(enabled)
        entries, outs = checker.run(jaxpr, consts, {}, given)
        return Error(entries, tuple(checker.templates)), out_tree.unflatten(outs)

    return checked
