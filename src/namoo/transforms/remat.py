"""Rematerialisation: compute values again in the backward pass instead of keeping them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from namoo import tree_util
from namoo._base.caches import per_program
from namoo._base.short import short
from namoo._base.source_context import entry_point
from namoo.analysis.dead_code import chosen, dce, has_io, prune, reads
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr
from namoo.core.primitive import Primitive, is_zero
from namoo.transforms.discharge import uses
from namoo.transforms.linear import linearize, linearize_jaxpr, tangents_out
from namoo.transforms.program import Call
from namoo.transforms.refs import Ref
from namoo.transforms.stage import stage, stage_closed
from namoo.transforms.staged import staged

Policy = Callable[..., Any]


class Remat(Call):
    """A call whose intermediate values are computed again when it is differentiated."""

    name = "checkpoint"

    def stablehlo(self, hlo, *operands, jaxpr, differentiated, prevent_cse, **params):
        if differentiated and prevent_cse and operands:
            # Without the barrier, XLA would reuse the values of the forward pass and so keep them.
            operands = hlo.op("optimization_barrier", *operands, result=list(operands))
        return super().stablehlo(hlo, *operands, jaxpr=jaxpr)

    def takes_value_of(self, place, args, params):
        # The recomputation must read the same values, and must not write them again.
        jaxpr = params["jaxpr"].jaxpr
        return isinstance(args[place], Ref) and uses(jaxpr, jaxpr.invars[place])

    def linearize(self, primals, tangents, *, jaxpr, policy, **params):
        nonzeros = tuple(not is_zero(t) for t in tangents)
        forward, backward, needed, nonzero_out = _split(jaxpr, nonzeros, policy)
        outs = self.bind(*primals, jaxpr=forward, policy=policy, **params)
        n = len(jaxpr.out_avals)
        given = [t for t in tangents if not is_zero(t)]
        out_tangents = []
        if any(nonzero_out):
            params = {**params, "differentiated": True}
            operands = chosen([*primals, *outs[n:], *given], needed)
            out_tangents = self.bind(*operands, jaxpr=backward, policy=policy, **params)
        return outs[:n], tangents_out(nonzero_out, outs[:n], out_tangents)

    def split_by_policy(self, eqn, part):
        return None  # a nested `checkpoint` has its own policy


remat_p = Remat()


@per_program("checkpoint", keyed_by="inputs with tangents, policy")
def _split(closed: ClosedJaxpr, nonzeros: tuple[bool, ...], policy: Policy | None):
    """Programs `inputs -> results, saved` and `inputs, saved, tangents -> tangents`.

    The second one recomputes what it needs from the inputs and from the values that the policy
    saves.  It takes only the operands that it reads; flags say which.
    """
    if policy is not None:
        closed = _inline_calls(closed)
    if has_io(closed.jaxpr):
        raise NotImplementedError(
            "Effects not supported in partial-eval of `checkpoint`: it computes values again, "
            "and so the effects would happen twice. Move the call out of the function."
        )
    halves = linearize_jaxpr(closed, nonzeros)
    primal, n = halves.primal.jaxpr, len(closed.out_avals)
    saved, computing, recompute = _partition(primal, policy)
    recompute = prune(dce(recompute, [i >= n for i in range(len(primal.outvars))]))
    needed = {v for e in recompute.eqns for v in e.invars if type(v) is not Literal}
    needed.update(v for v in recompute.outvars if type(v) is not Literal)
    saved = [v for v in saved if v in needed]
    recompute = recompute.replace(invars=[*primal.invars, *saved])
    outvars = [*primal.outvars[:n], *saved]
    forward = ClosedJaxpr(prune(computing.replace(outvars=outvars)), halves.primal.consts)

    def backward(*args):
        inputs, rest = args[: len(primal.invars)], args[len(primal.invars) :]
        kept, tangents = rest[: len(saved)], rest[len(saved) :]
        computed = eval_jaxpr(recompute, halves.primal.consts, *inputs, *kept)
        residuals = halves.residuals(inputs, computed)
        return eval_jaxpr(halves.tangent.jaxpr, halves.tangent.consts, *residuals, *tangents)

    tangent_avals = [a.tangent() for a, nz in zip(closed.in_avals, nonzeros, strict=True) if nz]
    avals = [*closed.in_avals, *(v.aval for v in saved), *tangent_avals]
    program = stage_closed(backward, avals, closed.jaxpr.name)
    jaxpr = prune(program.jaxpr)
    kept = reads(jaxpr)
    jaxpr = jaxpr.replace(invars=chosen(jaxpr.invars, kept))
    return forward, ClosedJaxpr(jaxpr, program.consts), kept, halves.nonzero_out


def _partition(jaxpr: Jaxpr, policy: Policy | None) -> tuple[list[Var], Jaxpr, Jaxpr]:
    """The variables that the policy saves, also inside loops and branches; the program that
    computes them; and the program that takes them as inputs."""
    if policy is None:
        return [], jaxpr, jaxpr
    saved, computing, recompute = [], [], []
    for eqn in jaxpr.eqns:
        if eqn.outvars and policy(eqn.primitive, *(a.aval for a in eqn.invars), **eqn.params):
            saved += eqn.outvars
            computing.append(eqn)
        elif parts := eqn.primitive.split_by_policy(eqn, lambda inner: _partition(inner, policy)):
            computing.append(parts[0])
            recompute.append(parts[1])
            saved += parts[2]
        else:
            computing.append(eqn)
            recompute.append(eqn)
    return saved, jaxpr.replace(eqns=computing), jaxpr.replace(eqns=recompute)


def _inline_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inline nested calls, so that a policy decides about every operation."""

    def run(jaxpr: Jaxpr, consts, *args):
        env: dict[Any, Any] = dict(
            zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True)
        )

        def read(atom):
            return (
                eval_jaxpr(Jaxpr([], [], [atom], []), [])[0] if type(atom) is Literal else env[atom]
            )

        for eqn in jaxpr.eqns:
            inputs = [*map(read, eqn.invars)]
            if eqn.primitive.name == "jit":
                inner = eqn.params["jaxpr"]
                out = run(inner.jaxpr, inner.consts, *inputs)
            else:
                out = eqn.primitive.bind(*inputs, **eqn.params)
            env.update(
                zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True)
            )
        return [read(v) for v in jaxpr.outvars]

    fun = lambda *args: run(closed.jaxpr, closed.consts, *args)  # noqa: E731
    return stage_closed(fun, closed.in_avals, closed.jaxpr.name)


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | tuple[int, ...] = (),
    concrete: bool = False,
) -> Callable[..., Any]:
    """Recompute a function's intermediate values in the backward pass instead of storing them.

    Args:
        fun: the function.
        prevent_cse: keep compilers from merging the two computations.
        policy: which values to keep, a member of `checkpoint_policies`; none by default.
        static_argnums: arguments that are Python values rather than arrays.
        concrete: not supported any more; mark arguments static instead.

    Returns:
        a function with the same results and derivatives.

    Example:
        >>> import namoo
        >>> import namoo.numpy as jnp
        >>> f = namoo.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
        >>> namoo.grad(f)(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    if concrete:
        raise ValueError(
            "The option concrete=True of checkpoint is not supported; use static_argnums for "
            "arguments that Python control flow depends on."
        )
    if not (policy is None or callable(policy)):
        raise TypeError(
            "checkpoint: policy must be a function, such as "
            f"namoo.checkpoint_policies.dots_saveable, got {short(policy)}."
        )
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @entry_point
    @functools.wraps(fun)
    def remat(*args, **kwargs):
        fixed = {i % len(args): args[i] for i in static}
        dynamic = tuple(x for i, x in enumerate(args) if i not in fixed)
        flat, in_tree = tree_util.tree_flatten((dynamic, kwargs))

        @functools.wraps(fun)
        def call(given, kw):
            rest = iter(given)
            return fun(*(fixed[i] if i in fixed else next(rest) for i in range(len(args))), **kw)

        avals = [aval_of(x) for x in flat]
        variant = tuple((i, type(x), x) for i, x in fixed.items())
        positions = tuple(None if i in fixed else x for i, x in enumerate(args))
        names = lambda: leaf_names(fun, positions, kwargs)  # noqa: E731
        program = staged(call, in_tree, avals, "checkpoint", fun, *variant, arg_names=names)
        outs = remat_p.bind(
            *program.consts,
            *flat,
            jaxpr=program.closed,
            policy=policy,
            prevent_cse=prevent_cse,
            differentiated=False,
        )
        return program.out_tree.unflatten(outs)

    return remat


class Name(Primitive):
    """The identity, with a name that policies can refer to."""

    name, linear = "name", True

    def evaluate(self, x, *, name):
        return x

    def abstract(self, x, *, name):
        return x

    def stablehlo(self, hlo, x, *, name):
        return x

    def transpose(self, ct, x, *, name):
        return [ct]

    def batch(self, xs, dims, *, name):
        return self.bind(*xs, name=name), dims[0]


name_p = Name()


def checkpoint_name(x: Any, name: str) -> Any:
    """Give the arrays of a tree a name for the policies `save_only_these_names` and friends.

    Example:
        >>> import namoo.numpy as jnp
        >>> checkpoint_name(jnp.array(1.0), "hidden")
        Array(1., dtype=float32, weak_type=True)
    """
    return tree_util.tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


class Offloadable:
    """A policy's answer: keep the value, in other memory. On a CPU it is simply kept."""

    def __init__(self, src: str, dst: str):
        self.src, self.dst = src, dst


Saveable = True
"""A policy's answer: keep the value."""
Recompute = False
"""A policy's answer: compute the value again."""


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Keep every value: no rematerialisation."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Keep nothing but the inputs: the default."""
    return False


def dots_saveable(prim: Primitive, *_: Any, **__: Any) -> bool:
    """Keep the results of matrix products and convolutions."""
    return prim.name in ("dot_general", "conv_general_dilated")


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: Any, **params: Any) -> bool:
    """Keep the results of matrix products without batch dimensions: those with parameters."""
    if prim.name != "dot_general":
        return False
    (_, _), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


@dataclass(frozen=True)
class _ByName:
    """A policy that decides by the name that `checkpoint_name` gave a value."""

    names: tuple[str, ...]
    listed: bool
    """Whether values with one of the names are kept."""
    named: bool
    """Whether values with another name are kept."""
    unnamed: bool
    """Whether values without a name are kept."""

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> bool:
        if prim is not name_p:
            return self.unnamed
        return self.listed if params["name"] in self.names else self.named


@dataclass(frozen=True)
class _Either:
    first: Policy
    second: Policy

    def __call__(self, prim: Primitive, *avals: Any, **params: Any) -> Any:
        return self.first(prim, *avals, **params) or self.second(prim, *avals, **params)


def save_only_these_names(*names: str) -> Policy:
    """Keep values that `checkpoint_name` gave one of these names."""
    return _ByName(names, listed=True, named=False, unnamed=False)


def save_any_names_but_these(*names: str) -> Policy:
    """Keep named values, except those with one of these names."""
    return _ByName(names, listed=False, named=True, unnamed=False)


def save_anything_except_these_names(*names: str) -> Policy:
    """Keep every value, except those with one of these names."""
    return _ByName(names, listed=False, named=True, unnamed=True)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep what either of two policies keeps."""
    return _Either(policy_1, policy_2)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep values by name; on a CPU what would be offloaded is kept as well."""
    return save_only_these_names(*names_which_can_be_saved, *names_which_can_be_offloaded)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Keep matrix products without batch dimensions; a CPU has nowhere to offload them to."""
    return dots_with_no_batch_dims_saveable


def saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The types of the values that the backward pass of a function keeps, and what they are.

    Example:
        >>> import namoo.numpy as jnp
        >>> saved_residuals(lambda x: jnp.sin(x) * 2.0, 1.0)
        [(ShapedArray(float32[], weak_type=True), 'output of cos')]
    """
    flat, in_tree = tree_util.tree_flatten((args, kwargs))

    def flat_fun(*leaves):
        inner_args, inner_kwargs = in_tree.unflatten(leaves)
        return tree_util.tree_leaves(fun(*inner_args, **inner_kwargs))

    count = 0

    def forward(*leaves):
        nonlocal count
        outs, _, jaxpr, residuals = linearize(flat_fun, leaves, [True] * len(leaves))
        count = len(outs)
        read = reads(jaxpr.replace(invars=jaxpr.constvars, constvars=[]))
        return [*outs, *chosen(residuals, read)]

    jaxpr, _ = stage(forward, [aval_of(x) for x in flat])
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    names = dict(zip(jaxpr.invars, leaf_names(fun, args, kwargs), strict=True))
    kept = dict.fromkeys(v for v in jaxpr.outvars[count:] if type(v) is not Literal)
    arguments = [v for v in names if v in kept]
    computed = [v for v in makers if v in kept]
    constants = [v for v in kept if v not in names and v not in makers]
    return [
        *((v.aval, "from a constant") for v in constants),
        *((v.aval, f"from the argument {names[v]}") for v in arguments),
        *((v.aval, _described(v, makers[v])) for v in computed),
    ]


def _described(var: Any, eqn: JaxprEqn) -> str:
    """Which operation a value comes from, and the user's line."""
    if eqn.primitive is remat_p:
        inner = eqn.params["jaxpr"].jaxpr
        inner_var = inner.outvars[eqn.outvars.index(var)]
        maker = next((e for e in inner.eqns if inner_var in e.outvars), None)
        if maker is not None:
            return _described(inner_var, maker)
    what = f"output of {eqn.primitive.name}"
    if eqn.primitive is name_p:
        what = f"named {eqn.params['name']!r}"
    elif eqn.primitive.name == "jit":
        what = f"output of jitted function {eqn.params['name']!r}"
    return f"{what} from {eqn.source}" if eqn.source and eqn.source.file[0] != "<" else what


def leaf_names(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of the leaves of a function's arguments."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    var_positional = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")

    def name(path):
        if path[0].idx:
            own = path[1].key
        else:
            i = path[1].idx
            own = names[i] if i < len(names) else f"{var_positional}[{i - len(names)}]"
        return f"{own}{tree_util.keystr(path[2:])}"

    return [name(path) for path, _ in tree_util.tree_leaves_with_path((args, kwargs))]


def print_saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what the backward pass of a function keeps, one value per line.

    Example:
        >>> import namoo.numpy as jnp
        >>> print_saved_residuals(checkpoint(lambda x: jnp.sin(jnp.sin(x))), 1.0)
        f32[] from the argument x
    """
    for aval, what in saved_residuals(fun, *args, **kwargs):
        print(aval.str_short(), what)


class checkpoint_policies:
    """Which values `checkpoint` keeps for the backward pass."""

    everything_saveable = staticmethod(everything_saveable)
    nothing_saveable = staticmethod(nothing_saveable)
    dots_saveable = staticmethod(dots_saveable)
    checkpoint_dots = staticmethod(dots_saveable)
    dots_with_no_batch_dims_saveable = staticmethod(dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims = staticmethod(dots_with_no_batch_dims_saveable)
    offload_dot_with_no_batch_dims = staticmethod(offload_dot_with_no_batch_dims)
    save_anything_except_these_names = staticmethod(save_anything_except_these_names)
    save_any_names_but_these = staticmethod(save_any_names_but_these)
    save_only_these_names = staticmethod(save_only_these_names)
    save_from_both_policies = staticmethod(save_from_both_policies)
    save_and_offload_only_these_names = staticmethod(save_and_offload_only_these_names)
