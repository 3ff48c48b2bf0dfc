"""Derivatives of functions of trees: forward mode and reverse mode."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.lazy import later
from namoo._base.short import short
from namoo._base.source_context import at_user_line, entry_point
from namoo.api.ref_derivatives import VJP, cotangent, jvp_with_refs, refuse_ref
from namoo.core.array import Array
from namoo.core.avals import aval_of
from namoo.core.jaxpr import Jaxpr, eval_jaxpr
from namoo.core.primitive import Linear, Zero, is_zero
from namoo.core.trace import Tracer
from namoo.primitives.shape import (
    convert_element_type,
    instantiate,
    ones,
    stop_gradient_p,
    zeros,
)
from namoo.transforms import jvp as forward
from namoo.transforms.arguments import (
    Static,
    argnums_tuple,
    argument_names,
    argument_paths,
    as_array_type,
    function_name,
    is_array,
    leaf_paths,
    require_callable,
    to_array,
    wraps,
)
from namoo.transforms.linear import linearize as linearize_flat
from namoo.transforms.refs import Ref, refuse_returned
from namoo.transforms.stage import stage
from namoo.transforms.transpose import backward_pass
from namoo.tree import diff
from namoo.tree_util import Partial, keystr

if TYPE_CHECKING:
    from namoo.api.signatures import P, R

slicing = later("namoo.primitives.slicing")


class _Flat:
    """A function of trees as a function of flat arrays; other leaves bypass it."""

    def __init__(
        self,
        what: str,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        has_aux: bool = False,
    ):
        self.what, self.fun, self.kwargs, self.has_aux = what, fun, kwargs, has_aux
        leaves, self.in_tree = tree_util.tree_flatten(tuple(args))
        self.static = Static(leaves)
        self.static.check_arguments(fun, lambda: argument_paths(fun, args, {}))
        self.leaves = self.static.dynamic(leaves)
        self.aux: Any = None

    def __call__(self, *leaves):
        args = self.in_tree.unflatten(self.static.join(leaves))
        out = self.fun(*args, **self.kwargs)
        if self.has_aux:
            out = _unpack_aux(out, self.fun)
            aux_leaves, aux_tree = tree_util.tree_flatten(out[1])
            self.aux_static = Static(aux_leaves)
            self.aux_tree = aux_tree
            out = out[0]
        outs, self.out_tree = tree_util.tree_flatten(out)
        self.out_static = Static(outs)
        self.out_static.check_results(self.what, self.fun, out)
        results = self.out_static.dynamic(outs)
        refuse_returned(function_name(self.fun), self.what, results)
        self.num_outs = len(results)
        return [*results, *self.aux_static.dynamic(aux_leaves)] if self.has_aux else results

    def out(self, leaves: Sequence[Any]) -> Any:
        """Rebuild the tree of a result."""
        return self.out_tree.unflatten(self.out_static.join(leaves))

    def aux_out(self, leaves: Sequence[Any]) -> Any:
        return self.aux_tree.unflatten(self.aux_static.join(leaves))


def _unpack_aux(out: Any, fun: Callable[..., Any]) -> tuple[Any, Any]:
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(
            "With has_aux=True the function must return a two-element tuple (result, auxiliary "
            f"data); {function_name(fun)} returned "
            + ("an array" if is_array(out) else type(out).__name__)
            + (f" of length {len(out)}." if isinstance(out, (tuple, list)) else ".")
        )
    return out[0], out[1]


def _leaf_paths(tree: Any) -> list[str]:
    return [keystr(path) for path, _ in tree_util.tree_leaves_with_path(tree)]


@entry_point
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Compute the value of a function and its derivative in a direction.

        jvp(f, (x,), (t,)) = (f(x), ∂f(x)·t)

    Args:
        fun: a function of trees of arrays.
        primals: where to differentiate: a tuple with one tree per argument.
        tangents: the direction: trees of the same structure and types (float0 for integers).
        has_aux: the function returns a pair, whose second part is not differentiated.

    Returns:
        `(out, tangent_out)`, or `(out, tangent_out, aux)`.

    Example:
        >>> import namoo.numpy as jnp
        >>> jvp(jnp.sin, (0.0,), (2.0,))
        (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    require_callable(fun, "jvp")
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}. "
            "Write jvp(f, (x,), (t,))."
        )
    flat = _Flat("jvp", fun, primals, {}, has_aux)
    t_leaves, t_tree = tree_util.tree_flatten(tuple(tangents))
    if t_tree != flat.in_tree or type(primals) is not type(tangents):
        found = diff(primals, tangents)
        message = tree_util.mismatch(
            "primal and tangent arguments to jax.jvp must have the same tree structure", found
        ).args[0]
        raise TypeError(message)
    paths = _leaf_paths(tuple(primals))
    for i, x in flat.static.by_position.items():
        if t_leaves[i] is not x:
            raise TypeError(
                f"primal and tangent arguments to jax.jvp do not match. At primals{paths[i]}, "
                f"{short(x)} is not a valid JAX type: it holds no numbers and has no tangent. Pass "
                "it again among the tangents, or leave it out of both."
            )
    t_leaves = [t for i, t in enumerate(t_leaves) if i not in flat.static.by_position]
    paths = [p for i, p in enumerate(paths) if i not in flat.static.by_position]
    checked = [
        _weak_as(x, forward.check_tangent(x, t, f"primals{p}"))
        for x, t, p in zip(flat.leaves, t_leaves, paths, strict=True)
    ]
    run = jvp_with_refs if any(isinstance(x, Ref) for x in flat.leaves) else forward.jvp
    outs, out_tangents = run(flat, flat.leaves, checked)
    n = flat.num_outs
    out = flat.out(outs[:n])
    # A Python number that was given as a tangent may come out as a strongly typed array.
    given = [
        to_array(instantiate(t)) if isinstance(x, Array) else instantiate(t)
        for x, t in zip(outs[:n], out_tangents[:n], strict=True)
    ]
    tangent = flat.out_tree.unflatten(flat.out_static.join(given))
    return (out, tangent, flat.aux_out(outs[n:])) if has_aux else (out, tangent)


def _weak_as(x: Any, t: Any) -> Any:
    """Give a tangent the weak type of its primal."""
    weak = aval_of(x).weak_type
    if is_zero(t) or aval_of(t).weak_type == weak:
        return t
    return convert_element_type(t, aval_of(t).dtype, weak)


class _VJP:
    """The backward function of `vjp`, without its residuals."""

    def __init__(self, jaxpr: Jaxpr, flat: _Flat, nonzeros, nonzero_out, out_avals):
        self.name = function_name(flat.fun)
        self.jaxpr, self.nonzeros, self.nonzero_out = jaxpr, nonzeros, nonzero_out
        self.in_tree, self.static = flat.in_tree, flat.static
        self.out_tree, self.out_static = flat.out_tree, flat.out_static
        self.in_avals = [aval_of(x) for x in flat.leaves]
        self.out_avals = out_avals

    @entry_point
    def __call__(self, residuals: Sequence[Any], *given: Any) -> Any:
        if len(given) != 1:
            raise TypeError(
                f"The function returned by vjp applied to {self.name} was called with {len(given)} "
                f"arguments, but functions returned by vjp take one: {self.name} has one result, "
                "which may be a tuple."
            )
        (ct,) = given
        leaves, tree = tree_util.tree_flatten(ct)
        if tree != self.out_tree:
            expected = self.out_tree.unflatten(self.out_static.join(self.out_avals))
            message = tree_util.mismatch(
                "unexpected tree structure of the argument of a vjp function, which must have that "
                "of the result of the function that was differentiated",
                diff(expected, ct),
            ).args[0]
            raise ValueError(message)
        leaves = [x for i, x in enumerate(leaves) if i not in self.out_static.by_position]
        cts = []
        for aval, x, nz in zip(self.out_avals, leaves, self.nonzero_out, strict=True):
            x = _check_ct(aval, x)
            if nz:
                cts.append(x)
        inputs = [Linear(v.aval) for v in self.jaxpr.invars]
        found = iter(backward_pass(self.jaxpr, residuals, inputs, cts))
        out = []
        for aval, nz in zip(self.in_avals, self.nonzeros, strict=True):
            g = next(found) if nz else Zero(cotangent(aval))
            out.append(to_array(instantiate(g)))
        return self.in_tree.unflatten(self.static.join(out))


def _check_ct(aval, ct):
    wanted = aval.tangent()
    if wanted.dtype == dtypes.float0:
        return Zero(wanted)
    found = aval_of(ct)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        raise ValueError(
            "unexpected JAX type (e.g. shape/dtype) for argument to vjp function: "
            f"the result is {wanted.str_short(short_dtypes=False)}, so its cotangent must be too, "
            f"but it is {found.str_short(short_dtypes=False)}."
        )
    return ct


def _linearize(
    what: str,
    fun: Callable[..., Any],
    primals: Sequence[Any],
    kwargs: dict[str, Any],
    has_aux: bool,
):
    """Return the values of a function and its linear program, for `vjp`, `grad` and `linearize`."""
    flat = _Flat(what, fun, primals, kwargs, has_aux)
    nonzeros = [_is_inexact(x) or cotangent(x).dtype != dtypes.float0 for x in flat.leaves]
    outs, nonzero_out, jaxpr, residuals = linearize_flat(flat, flat.leaves, nonzeros)
    n = flat.num_outs
    if any(nonzero_out[n:]):  # tangents of auxiliary results are dropped
        jaxpr = jaxpr.replace(outvars=jaxpr.outvars[: sum(nonzero_out[:n])])
    aux = flat.aux_out(outs[n:]) if has_aux else None
    return flat, nonzeros, outs[:n], nonzero_out[:n], jaxpr, residuals, aux


@entry_point
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of a function, and return the function that pulls cotangents back.

        out, f_vjp = vjp(f, x);   f_vjp(ct) = (ctᵀ·∂f(x),)

    Args:
        fun: a function of trees of arrays.
        *primals: where to differentiate.
        has_aux: the function returns a pair, whose second part is not differentiated.

    Returns:
        `(out, f_vjp)`, or `(out, f_vjp, aux)`; `f_vjp` returns a tuple with one tree per argument.

    Example:
        >>> import namoo.numpy as jnp
        >>> out, f_vjp = vjp(jnp.sin, 0.0)
        >>> f_vjp(2.0)
        (Array(2., dtype=float32, weak_type=True),)
    """
    require_callable(fun, "vjp")
    flat, nonzeros, outs, nonzero_out, jaxpr, residuals, aux = _linearize(
        "vjp", fun, primals, {}, has_aux
    )
    rule = _VJP(jaxpr, flat, nonzeros, nonzero_out, [aval_of(x) for x in outs])
    f_vjp = VJP.of(rule, flat.leaves, residuals)
    out = flat.out(outs)
    return (out, f_vjp, aux) if has_aux else (out, f_vjp)


class _Linear:
    """The linear function of `linearize`, without its residuals."""

    def __init__(self, jaxpr, flat, nonzeros, nonzero_out, out_avals):
        self.jaxpr, self.nonzeros, self.nonzero_out = jaxpr, nonzeros, nonzero_out
        self.in_tree, self.static = flat.in_tree, flat.static
        self.out_tree, self.out_static = flat.out_tree, flat.out_static
        self.in_avals = [aval_of(x) for x in flat.leaves]
        self.out_avals = out_avals

    @entry_point
    def __call__(self, residuals, *tangents):
        leaves, tree = tree_util.tree_flatten(tangents)
        if tree != self.in_tree:
            expected = self.in_tree.unflatten(self.static.join(self.in_avals))
            message = tree_util.mismatch(
                "the tangents given to a linearized function must have the tree structure of the "
                "primals",
                diff(expected, tangents),
            ).args[0]
            raise ValueError(message)
        leaves = [x for i, x in enumerate(leaves) if i not in self.static.by_position]
        given = []
        for aval, t, nz in zip(self.in_avals, leaves, self.nonzeros, strict=True):
            wanted, found = aval.tangent(), aval_of(t)
            if (wanted.shape, wanted.dtype) != (found.shape, found.dtype):
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original "
                    f"primal values: got {found.str_short()} for a primal {aval.str_short()}."
                )
            if nz:
                given.append(t)
        outs = iter(eval_jaxpr(self.jaxpr, residuals, *given))
        full = [
            to_array(next(outs) if nz else zeros(a.tangent()))
            for nz, a in zip(self.nonzero_out, self.out_avals, strict=True)
        ]
        return self.out_tree.unflatten(self.out_static.join(full))


@entry_point
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of a function, and return its derivative as a linear function.

    Unlike with `jvp`, the function itself runs only once, however often the result is called.

    Args:
        fun: a function of trees of arrays.
        *primals: where to linearise.
        has_aux: the function returns a pair, whose second part is not differentiated.

    Returns:
        `(out, f_jvp)`, or `(out, f_jvp, aux)`, with `f_jvp(*tangents) -> tangent_out`.

    Example:
        >>> import namoo.numpy as jnp
        >>> out, f_jvp = linearize(lambda x: x**2, 3.0)
        >>> f_jvp(1.0)
        Array(6., dtype=float32, weak_type=True)
    """
    require_callable(fun, "linearize")
    flat, nonzeros, outs, nonzero_out, jaxpr, residuals, aux = _linearize(
        "linearize", fun, primals, {}, has_aux
    )
    rule = _Linear(jaxpr, flat, nonzeros, nonzero_out, [aval_of(x) for x in outs])
    out = flat.out(outs)
    return (out, Partial(rule, residuals), aux) if has_aux else (out, Partial(rule, residuals))


@entry_point
def linear_transpose(
    fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()
) -> Callable[..., Any]:
    """Transpose a linear function.

    Args:
        fun: a linear function of trees of arrays.
        *primals: arguments, or `ShapeDtypeStruct`s: only their types matter.

    Returns:
        a function from cotangents of the result to a tuple of cotangents of the arguments.

    Example:
        >>> import namoo.numpy as jnp
        >>> linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
        (Array(6., dtype=float32, weak_type=True),)
    """
    require_callable(fun, "linear_transpose")
    flat = _Flat("linear_transpose", fun, tree_util.tree_map(as_array_type, primals), {})
    avals = [aval_of(x) for x in flat.leaves]
    jaxpr, consts = stage(flat, avals, function_name(fun), how="linear_transpose")
    out_avals = jaxpr.out_avals
    kinds = (np.inexact, np.integer)
    if not any(all(dtypes.issubdtype(a.dtype, k) for a in [*avals, *out_avals]) for k in kinds):
        raise TypeError(
            "linear_transpose only supports functions from floating-point or complex arrays to "
            "such arrays, and from integers to integers; got "
            f"{', '.join(a.str_short() for a in avals)} → "
            f"{', '.join(a.str_short() for a in out_avals)}."
        )

    @entry_point
    def transposed(ct):
        leaves, tree = tree_util.tree_flatten(ct)
        if tree != flat.out_tree:
            message = tree_util.mismatch(
                "the cotangent tree does not match that of the linear function's result",
                diff(flat.out_tree.unflatten(out_avals), ct),
            ).args[0]
            raise TypeError(message)
        for aval, x in zip(out_avals, leaves, strict=True):
            if (aval.shape, aval.dtype) != (aval_of(x).shape, aval_of(x).dtype):
                raise TypeError(
                    f"cotangent type does not match function output: expected {aval.str_short()}, "
                    f"got {aval_of(x).str_short()}."
                )
        found = backward_pass(jaxpr, consts, [Linear(a) for a in avals], leaves)
        return flat.in_tree.unflatten([to_array(instantiate(g)) for g in found])

    return transposed


def _is_inexact(x: Any) -> bool:
    """Whether a leaf looks like an array to differentiate with respect to."""
    return isinstance(x, Array) and x.dtype in _INEXACT or type(x) is float


_INEXACT = dtypes.MEMBERS[np.inexact]


def check_input(x: Any, path: str, what: str, holomorphic: bool, allow_int: bool) -> None:
    dtype = aval_of(x).dtype
    refuse_ref(x, path, what)
    if isinstance(dtype, dtypes.ExtendedDType):
        if not allow_int:
            raise TypeError(f"{what} requires real-valued inputs, but {path} is a {dtype} array.")
        return
    if holomorphic and not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(
            f"{what} with holomorphic=True requires inputs with complex dtype, but got {dtype}: "
            f"{path}."
        )
    if holomorphic or dtypes.issubdtype(dtype, np.inexact):
        return
    if not allow_int:
        kind = "bool" if dtype == np.bool_ else "int"
        raise TypeError(
            f"{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype}: {path}. Convert it with .astype('float32') (or "
            f"write {_as_float(x)}), choose other arguments with argnums, or, for "
            f"trees that hold {kind}s beside parameters, pass allow_int=True." + at_user_line()
        )


def _as_float(x: Any) -> str:
    return f"{float(x)} for {x}" if type(x) in (int, bool) else "1.0 for 1"


def _check_scalar(out: Any, holomorphic: bool, what: str, fun: Callable[..., Any]) -> None:
    try:
        aval = aval_of(out)
    except TypeError:
        raise TypeError(
            "Gradient only defined for scalar-output functions. The output was: "
            f"{short(out)} of {function_name(fun)}. "
            + (
                "Does it lack a return statement?"
                if out is None
                else "Return one number; further results go in the second part of a pair, with "
                "has_aux=True."
            )
            + at_user_line()
        ) from None
    if aval.shape:
        raise TypeError(
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. "
            "Reduce it with .sum() or .mean(), or use jacrev for all derivatives of an array."
            + at_user_line()
        )
    if not holomorphic and not dtypes.issubdtype(aval.dtype, np.floating):
        fix = (
            "pass holomorphic=True for a holomorphic function, or return its real part."
            if dtypes.issubdtype(aval.dtype, np.complexfloating)
            else "return a floating-point loss."
        )
        raise TypeError(
            f"{what} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {aval.dtype}: {fix}" + at_user_line()
        )
    if holomorphic and not dtypes.issubdtype(aval.dtype, np.complexfloating):
        raise TypeError(
            f"{what} with holomorphic=True requires outputs with complex dtype, got {aval.dtype}."
        )


def select_args(fun: Callable[..., Any], args: tuple[Any, ...], argnums: Any, what: str):
    """Return the arguments to differentiate with respect to, and the function of them alone."""
    nums = argnums_tuple(argnums, "argnums")
    if not all(-len(args) <= i < len(args) for i in nums):
        raise TypeError(
            f"differentiating with respect to argnums={argnums} requires at least "
            f"{max(i + 1 if i >= 0 else -i for i in nums)} positional arguments to be passed by "
            f"the caller, but got only {len(args)} positional arguments."
        )
    nums = tuple(i % len(args) for i in nums)

    def of_selected(*selected, **kwargs):
        full = list(args)
        for i, x in zip(nums, selected, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    of_selected.__name__ = function_name(fun)
    return of_selected, [args[i] for i in nums], nums


def _selected_paths(
    fun: Callable[..., Any], args: tuple[Any, ...], nums: Sequence[int]
) -> list[str]:
    names = argument_names(fun, args)
    return [path for i in nums for path in leaf_paths(names[i], args[i])]


def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]:
    """Make a function that returns both the value and the gradient of a scalar function.

    Args:
        fun: a function of trees of arrays that returns a scalar.
        argnums: the argument, or arguments, to differentiate with respect to.
        has_aux: the function returns a pair `(value, aux)`.
        holomorphic: the function is holomorphic, and its inputs and output are complex.
        allow_int: allow integer inputs; their gradients have dtype float0.

    Returns:
        a function that returns `(value, gradient)`, or `((value, aux), gradient)`. The gradient has
        the structure of the argument; with several `argnums` it is a tuple.

    Example:
        >>> value_and_grad(lambda x: x**2)(3.0)
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    require_callable(fun, "value_and_grad")
    argnums_tuple(argnums, "argnums")

    @entry_point
    @wraps(fun)
    def value_and_grad_f(*args, **kwargs):
        of_selected, selected, nums = select_args(fun, args, argnums, "grad")
        leaves = tree_util.tree_leaves(selected)
        if holomorphic or not all(map(_is_inexact, leaves)):
            Static(leaves).check_arguments(fun, lambda: _selected_paths(fun, args, nums))
            for i, value in zip(nums, selected, strict=True):
                for path, leaf in tree_util.tree_leaves_with_path(value):
                    if is_array(leaf):
                        place = f"argument {argument_names(fun, args)[i]}{keystr(path)}"
                        check_input(leaf, place, "grad", holomorphic, allow_int)
        flat, nonzeros, outs, nonzero_out, jaxpr, residuals, aux = _linearize(
            "grad", of_selected, selected, kwargs, has_aux
        )
        value = flat.out(outs)
        _check_scalar(value, holomorphic, "grad", fun)
        rule = _VJP(jaxpr, flat, nonzeros, nonzero_out, [aval_of(x) for x in outs])
        found = rule(residuals, ones(aval_of(value)))
        gradient = found[0] if is_index(argnums) else found
        return ((value, aux), gradient) if has_aux else (value, gradient)

    return value_and_grad_f


def is_index(argnums: Any) -> bool:
    return not isinstance(argnums, (tuple, list))


def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]:
    """Make a function that returns the gradient of a scalar function.

    Args:
        fun: a function of trees of arrays that returns a scalar.
        argnums: the argument, or arguments, to differentiate with respect to.
        has_aux: the function returns a pair `(value, aux)`.
        holomorphic: the function is holomorphic, and its inputs and output are complex.
        allow_int: allow integer inputs; their gradients have dtype float0.

    Returns:
        a function that returns the gradient, or `(gradient, aux)`. It has the structure of the
        argument: arrays become derivatives; functions and strings in it stay unchanged.

    Raises:
        TypeError: the result is not a real scalar, or an input is not of inexact type.

    Example:
        >>> import namoo.numpy as jnp
        >>> grad(jnp.tanh)(0.0)
        Array(1., dtype=float32, weak_type=True)
    """
    require_callable(fun, "grad")
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @entry_point
    @wraps(fun)
    def grad_f(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f


def stop_gradient(x: Any) -> Any:
    """Return the argument unchanged, and stop derivatives there.

    Example:
        >>> grad(lambda x: x * stop_gradient(x))(3.0)
        Array(3., dtype=float32, weak_type=True)
    """

    def stop(leaf):
        while type(leaf) is forward.JVPTracer and aval_of(leaf).tangent().dtype == dtypes.float0:
            leaf = leaf.primal
        if not is_array(leaf) or aval_of(leaf).tangent().dtype == dtypes.float0:
            return leaf
        if not isinstance(leaf, Tracer):
            return to_array(leaf)
        return stop_gradient_p.bind(leaf)

    return tree_util.tree_map(stop, x)


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Split a function's derivative into a forward and a backward function.

    Args:
        fun: a function of trees of arrays.
        argnums: the argument, or arguments, to differentiate with respect to.
        has_aux: the function returns a pair `(value, aux)`.
        jitted: has no effect on results.

    Returns:
        `fwd(*args) -> (out, residuals)` and `bwd(residuals, ct) -> gradients`.

    Example:
        >>> fwd, bwd = fwd_and_bwd(lambda x: x**2)
        >>> out, residuals = fwd(3.0)
        >>> bwd(residuals, 1.0)
        Array(6., dtype=float32, weak_type=True)
    """
    require_callable(fun, "fwd_and_bwd")

    def fwd(*args, **kwargs):
        of_selected, selected, _ = select_args(fun, args, argnums, "fwd_and_bwd")
        out, pull, *aux = vjp(functools.partial(of_selected, **kwargs), *selected, has_aux=has_aux)
        return (out, pull, aux[0]) if has_aux else (out, pull)

    def bwd(pull, ct):
        found = pull(ct)
        return found[0] if is_index(argnums) else found

    return fwd, bwd
