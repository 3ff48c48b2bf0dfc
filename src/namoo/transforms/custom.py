"""Derivative rules written by the user: `custom_jvp`, `custom_vjp`, `custom_gradient`.

A call of such a function is one operation.  Interpreters that differentiate use the user's rule;
all others run the function itself.  While a program is staged, the call becomes an equation that
holds the function's program and remembers its rule.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import _dtypes, errors, tree_util
from namoo.core.array import Array, EagerArray, to_numpy
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import eval_jaxpr, jaxpr_as_fun
from namoo.core.primitive import Linear, Primitive, Zero, is_zero
from namoo.core.trace import Tracer, context, eval_trace, set_trace
from namoo.primitives.families import add_any
from namoo.primitives.shape import instantiate, reduce_sum
from namoo.transforms.batch import batch, batch_jaxpr, batch_to, to_front
from namoo.transforms.linear import transpose_jaxpr
from namoo.transforms.program import ProgramPrimitive
from namoo.transforms.recall import Programs
from namoo.transforms.stage import close, stage


class SymbolicZero:
    """What a rule with `symbolic_zeros=True` gets in place of a tangent that is zero."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


class CustomVJPPrimal:
    """What a `fwd` rule with `symbolic_zeros=True` gets: a value, and whether it is perturbed."""

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed


class CustomCall(Primitive):
    """A call of a Python function with a custom rule, before it is staged."""

    multiple_results = True
    takes_functions = True

    def under_eval(self, trace, args, *, fun, **rules):
        return fun(*args)

    def under_jvp(self, trace, args, *, fun, **rules):
        primals, tangents = zip(*map(trace.pair, args), strict=True) if args else ((), ())
        with set_trace(trace.parent):
            if all(map(is_zero, tangents)):
                return self.bind(*primals, fun=fun, **rules)
            outs, out_tangents = self.differentiate(primals, tangents, **rules)
        return [trace.join(x, t) for x, t in zip(outs, out_tangents, strict=True)]

    def under_batch(self, trace, args, *, fun, **rules):
        xs, dims = zip(*map(trace.pair, args), strict=True) if args else ((), ())
        with set_trace(trace.parent):
            if all(d is None for d in dims) and trace.axis.name is None:
                return self.bind(*xs, fun=fun, **rules)
            # As the staged call has it; so the function and its rules need not each do it.
            xs, batched = to_front(xs, dims)
            dims = [0 if b else None for b in batched]

            def batched_fun(*values):
                outs, out_dims = batch(fun, trace.axis, values, dims)
                return [batch_to(trace.axis, x, d) for x, d in zip(outs, out_dims, strict=True)]

            rules = self.batch_rules(trace.axis, dims, **rules)
            outs = self.bind(*xs, fun=batched_fun, **rules)
        return [trace.join(x, 0) for x in outs]

    def under_stage(self, trace, args, *, fun, name, **rules):
        jaxpr, consts = stage(fun, [aval_of(x) for x in args], name)
        closed, consts = close(jaxpr, consts)
        return self.program.bind(
            *consts, *args, call_jaxpr=closed, name=name, num_consts=len(consts), **rules
        )

    program: CustomProgram

    def differentiate(self, primals, tangents, **rules) -> tuple[list[Any], list[Any]]:
        """Results and their tangents, by the user's rule."""
        raise self._missing("differentiate")

    def batch_rules(self, axis, dims, **rules) -> dict[str, Any]:
        """The user's rules, for batches."""
        raise self._missing("batch_rules")


class CustomProgram(ProgramPrimitive):
    """The staged call: a program, and the rule to differentiate it by.

    The first `num_consts` operands are values that the function closes over.
    """

    value_params = ("call_jaxpr",)
    call: CustomCall

    def evaluate(self, *values, call_jaxpr, **rules):
        return self.executable(call_jaxpr)(values)

    def inlined(self, params):
        return params["call_jaxpr"]

    def abstract(self, *avals, call_jaxpr, **rules):
        return call_jaxpr.out_avals

    def weak_results(self, weak, count, params):
        return [a.weak_type for a in params["call_jaxpr"].out_avals]

    def native(self, emit, *operands, call_jaxpr, **rules):
        return emit.inline(call_jaxpr, operands)

    def stablehlo(self, hlo, *operands, call_jaxpr, **rules):
        return hlo.call(call_jaxpr, operands, call_jaxpr.jaxpr.name)

    def jvp(self, primals, tangents, *, call_jaxpr, num_consts, **rules):
        if not all(map(is_zero, tangents[num_consts:])):
            return self.call.differentiate(primals[num_consts:], tangents[num_consts:], **rules)
        outs = self.bind(*primals, call_jaxpr=call_jaxpr, num_consts=num_consts, **rules)
        return outs, [Zero.of(x) for x in outs]

    def transpose(self, cts, *operands, call_jaxpr, **rules):
        linear = [type(x) is Linear for x in operands]
        program, nonzero_out = transpose_jaxpr(call_jaxpr, linear, [not is_zero(c) for c in cts])
        known = [x for x in operands if type(x) is not Linear]
        given = [c for c in cts if not is_zero(c)]
        outs, nonzero = iter(jaxpr_as_fun(program)(*known, *given)), iter(nonzero_out)
        return [
            (next(outs) if next(nonzero) else Zero(x.aval.tangent())) if lin else None
            for x, lin in zip(operands, linear, strict=True)
        ]

    def batch(self, xs, dims, *, axis, call_jaxpr, num_consts, **rules):
        xs, batched = to_front(xs, dims)
        program, _ = batch_jaxpr(call_jaxpr, axis, batched, force=True)
        rule_dims = [0 if b else None for b in batched[num_consts:]]
        rules = self.call.batch_rules(axis, rule_dims, **rules)
        outs = self.bind(*xs, call_jaxpr=program, num_consts=num_consts, **rules)
        return outs, [0] * len(outs)


class CustomJVPCall(CustomCall):
    name = "custom_jvp_call"

    def differentiate(self, primals, tangents, *, jvp, symbolic_zeros, **names):
        given = [
            (SymbolicZero(t.aval) if symbolic_zeros else instantiate(t)) if is_zero(t) else t
            for t in tangents
        ]
        outs, out_tangents = jvp(primals, given)
        return outs, [Zero(t.aval) if type(t) is SymbolicZero else t for t in out_tangents]

    def batch_rules(self, axis, dims, *, jvp, **rest):
        def batched_jvp(primals, tangents):
            def flat(*args):
                outs, out_tangents = jvp(args[: len(primals)], args[len(primals) :])
                return [*outs, *map(_real_zero, out_tangents)]

            values = [*primals, *map(_real_zero, tangents)]
            outs, out_dims = batch(flat, axis, values, [*dims, *dims])
            outs = [batch_to(axis, x, d) for x, d in zip(outs, out_dims, strict=True)]
            return outs[: len(outs) // 2], outs[len(outs) // 2 :]

        return dict(jvp=batched_jvp, **rest)


def _real_zero(t):
    return instantiate(Zero(t.aval)) if type(t) is SymbolicZero else t


class CustomJVPProgram(CustomProgram):
    name = "custom_jvp_call"


custom_jvp_call_p = CustomJVPCall()
custom_jvp_program_p = CustomJVPProgram()
CustomJVPCall.program, CustomJVPProgram.call = custom_jvp_program_p, custom_jvp_call_p


class CustomVJPCall(CustomCall):
    name = "custom_vjp_call"

    def differentiate(self, primals, tangents, *, fwd, bwd, symbolic_zeros, **names):
        perturbed = [not is_zero(t) for t in tangents]
        residuals, outs = fwd(primals, perturbed)
        out_tangents = custom_lin_p.bind(
            *residuals,
            *map(instantiate, tangents),
            bwd=bwd,
            num_residuals=len(residuals),
            out_avals=tuple(aval_of(x).tangent() for x in outs),
            symbolic_zeros=symbolic_zeros,
        )
        return outs, out_tangents

    def batch_rules(self, axis, dims, *, fwd, bwd, **rest):
        def batched_fwd(primals, perturbed):
            count = 0

            def flat(*args):
                nonlocal count
                residuals, outs = fwd(args, perturbed)
                count = len(residuals)
                return [*residuals, *outs]

            outs, out_dims = batch(flat, axis, primals, dims)
            outs = [batch_to(axis, x, d) for x, d in zip(outs, out_dims, strict=True)]
            return outs[:count], outs[count:]

        def batched_bwd(residuals, cts):
            def flat(*args):
                return map(instantiate, bwd(args[: len(residuals)], args[len(residuals) :]))

            values = [*residuals, *map(_real_zero, cts)]
            outs, out_dims = batch(lambda *a: [*flat(*a)], axis, values, [0] * len(values))
            return [
                (x if d is None else reduce_sum(x, [d]))
                if own is None
                else batch_to(axis, x, d, own)
                for x, d, own in zip(outs, out_dims, dims, strict=True)
            ]

        return dict(fwd=batched_fwd, bwd=batched_bwd, **rest)


class CustomVJPProgram(CustomProgram):
    name = "custom_vjp_call"


custom_vjp_call_p = CustomVJPCall()
custom_vjp_program_p = CustomVJPProgram()
CustomVJPCall.program, CustomVJPProgram.call = custom_vjp_program_p, custom_vjp_call_p


class CustomLin(Primitive):
    """The derivative of a custom_vjp function: known only backwards."""

    name = "custom_lin"
    multiple_results = True

    def evaluate(self, *values, **params):
        raise TypeError(
            "Forward-mode differentiation (jvp, jacfwd, linearize) of a custom_vjp function: only "
            "its reverse rule is known. Use reverse mode (grad, vjp, jacrev), or write the rule "
            "with custom_jvp, which serves both modes."
        )

    def abstract(self, *avals, out_avals, **params):
        return list(out_avals)

    def batch(self, xs, dims, **params):
        return self.evaluate()

    def jvp(self, primals, tangents, **params):
        return self.evaluate()

    def transpose(self, cts, *operands, bwd, num_residuals, out_avals, symbolic_zeros):
        given = [
            (SymbolicZero(ct.aval) if symbolic_zeros else instantiate(ct)) if is_zero(ct) else ct
            for ct in cts
        ]
        in_cts = bwd(operands[:num_residuals], given)
        return [None] * num_residuals + list(in_cts)


custom_lin_p = CustomLin()


def positional(fun: Callable, args: tuple, kwargs: dict, what: str) -> tuple:
    """All arguments by position, defaults filled in."""
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except ValueError:  # a built-in without a signature
        if kwargs:
            raise TypeError(f"{what}: keyword arguments need a function with a signature") from None
        return args
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{what}: the keyword-only arguments {sorted(bound.kwargs)} of "
            f"{_name(fun)} cannot be passed by position, and the rule takes positional arguments."
        )
    return bound.args


def _name(fun: Callable) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


def _split_nondiff(args: Sequence[Any], nondiff: Sequence[int], what: str):
    nondiff = [n % len(args) if args else n for n in nondiff]
    for i in nondiff:
        if i < len(args) and any(isinstance(x, Tracer) for x in tree_util.tree_leaves(args[i])):
            raise errors.UnexpectedTracerError(
                f"{what}: argument {i} is listed in nondiff_argnums, but it is traced. "
                "nondiff_argnums is for values that are not arrays, such as functions; pass arrays "
                "as ordinary arguments and return None (or zeros) for their derivative."
            )
    return [args[i] for i in nondiff], [x for i, x in enumerate(args) if i not in nondiff]


def _merge(nondiff: Sequence[int], static: Sequence[Any], dynamic: Sequence[Any]) -> list[Any]:
    out = list(dynamic)
    for i, x in sorted(zip(nondiff, static, strict=True)):
        out.insert(i, x)
    return out


class _Custom:
    """What custom_jvp and custom_vjp share."""

    def __init__(self, fun: Callable, nondiff_argnums=(), nondiff_argnames=()):
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self.fun = fun
        names = list(inspect.signature(fun).parameters) if nondiff_argnames else []
        self.nondiff_argnums = tuple(
            sorted({*nondiff_argnums, *(names.index(n) for n in nondiff_argnames)})
        )

    def __reduce__(self):
        """Pickled by name, as functions are."""
        return self.__qualname__  # pyright: ignore[reportAttributeAccessIssue]

    def __get__(self, instance, owner=None):
        """A custom function defined in a class is a method."""
        return self if instance is None else functools.partial(self.__call__, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or its rule where it is differentiated."""
        return self.fun(*args, **kwargs)

    def _prepare(self, args, kwargs):
        """Flat operands, the flat function, and what is needed to call the rules."""
        what = f"{type(self).__name__} of {_name(self.fun)}"
        args = positional(self.fun, args, kwargs, what)
        static, dynamic = _split_nondiff(args, self.nondiff_argnums, what)
        flat, in_tree = tree_util.tree_flatten(tuple(dynamic))
        # The rules are written for arrays: what NumPy arrays cannot do, such as traced indices.
        flat = [EagerArray(to_numpy(x)) if isinstance(x, np.ndarray) else x for x in flat]
        out_tree: list[Any] = [None]

        def fun(*leaves):
            inner = _merge(self.nondiff_argnums, static, in_tree.unflatten(leaves))
            outs, out_tree[0] = tree_util.tree_flatten(self.fun(*inner))
            return outs

        return what, static, flat, in_tree, fun, out_tree


class custom_jvp(_Custom):
    """A function whose derivative is written by hand, in forward mode.

    Both modes use the rule: reverse mode transposes it, so it must be linear in the tangents.

    Args:
      fun: the function.
      nondiff_argnums: arguments that are not arrays; the rule gets them first.

    >>> import namoo
    >>> import namoo.numpy as jnp
    >>> @namoo.custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 10.0 * jnp.cos(x) * t
    >>> namoo.grad(f)(0.0)
    Array(10., dtype=float32, weak_type=True)
    """

    jvp: Callable | None = None
    symbolic_zeros = False
    programs: Programs | None = None

    def recall(self) -> None:
        """Remember programs; see `recall.recalled` for what is asked of the function and rule."""
        self.programs = Programs(self._general)

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the rule `jvp(*nondiff, primals, tangents) -> (out, tangent_out)`."""
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set a rule `jvp_i(t, out, *primals)` for each argument; None where it is zero."""
        if self.nondiff_argnums:
            raise TypeError("defjvps cannot be used with nondiff_argnums; use defjvp.")

        def jvp(primals, tangents):
            out = self(*primals)
            terms = [
                rule(t, out, *primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            total = functools.reduce(
                lambda a, b: tree_util.tree_map(add_any, a, b),
                terms,
                tree_util.tree_map(lambda x: Zero.of(x), out),
            )
            is_zero_leaf = lambda t: type(t) is Zero  # noqa: E731
            return out, tree_util.tree_map(instantiate, total, is_leaf=is_zero_leaf)

        self.defjvp(jvp)

    @errors.boundary
    def __call__(self, *args, **kwargs):
        if self.jvp is None:
            raise AttributeError(
                f"No JVP rule is defined for custom_jvp function {_name(self.fun)}: "
                "decorate one with @f.defjvp."
            )
        trace = context.trace
        if trace is eval_trace:  # nothing is being differentiated
            return self.fun(*args, **kwargs)
        if self.programs is not None and trace.recalls:
            return self.programs.call(trace, args, kwargs)
        return self._general(*args, **kwargs)

    def _general(self, *args, **kwargs):
        rule: Any = self.jvp
        what, static, flat, in_tree, fun, out_tree = self._prepare(args, kwargs)

        def jvp(primals, tangents):
            result = rule(*static, in_tree.unflatten(primals), in_tree.unflatten(tangents))
            if not (isinstance(result, (tuple, list)) and len(result) == 2):
                raise TypeError(
                    f"The JVP rule {_name(rule)} of {_name(self.fun)} must return a pair (primal "
                    f"result, tangent result), got {type(result).__name__}."
                )
            outs, tree = tree_util.tree_flatten(result[0])
            out_tangents, tangent_tree = tree_util.tree_flatten(result[1])
            if tree != tangent_tree:
                raise TypeError(
                    f"The JVP rule {_name(rule)} of {_name(self.fun)} must return a primal and a "
                    f"tangent of equal structure, got {tree} and {tangent_tree}."
                )
            if out_tree[0] is None:
                out_tree[0] = tree
            elif out_tree[0] != tree:
                raise TypeError(
                    f"The JVP rule {_name(rule)} must return a primal result of the structure that "
                    f"{_name(self.fun)} returns, {out_tree[0]}, got {tree}."
                )
            return outs, [
                _checked_tangent(rule, x, t) for x, t in zip(outs, out_tangents, strict=True)
            ]

        outs = custom_jvp_call_p.bind(
            *flat, fun=fun, jvp=jvp, name=_name(self.fun), symbolic_zeros=self.symbolic_zeros
        )
        return out_tree[0].unflatten(outs)


def _checked_tangent(rule, x, t):
    if type(t) is SymbolicZero:
        return t
    expected = aval_of(x).tangent()
    if expected.dtype == _dtypes.float0:
        return Zero(expected)
    if aval_of(t).shape != expected.shape or aval_of(t).dtype != expected.dtype:
        raise TypeError(
            f"The JVP rule {_name(rule)} must return tangents with the shapes and dtypes of their "
            f"primals: the primal is {aval_of(x).str_short()}, "
            f"the tangent {aval_of(t).str_short()}."
        )
    return t


class custom_vjp(_Custom):
    """A function whose derivative is written by hand, in reverse mode.

    Args:
      fun: the function.
      nondiff_argnums: arguments that are not arrays; `bwd` gets them first.

    >>> import namoo
    >>> import namoo.numpy as jnp
    >>> @namoo.custom_vjp
    ... def f(x, y):
    ...     return jnp.sin(x) * y
    >>> def fwd(x, y):
    ...     return f(x, y), (jnp.cos(x), jnp.sin(x), y)
    >>> def bwd(residuals, ct):
    ...     cos_x, sin_x, y = residuals
    ...     return cos_x * ct * y, sin_x * ct
    >>> f.defvjp(fwd, bwd)
    >>> namoo.grad(f)(0.0, 3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    fwd: Callable | None = None
    bwd: Callable | None = None
    symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable,
        bwd: Callable,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rule: `fwd(*args) -> (out, residuals)`, `bwd(*nondiff, residuals, ct) -> cts`."""
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    @errors.boundary
    def __call__(self, *args, **kwargs):
        user_fwd, user_bwd = self.fwd, self.bwd
        if user_fwd is None or user_bwd is None:
            raise AttributeError(
                f"No VJP rule is defined for custom_vjp function {_name(self.fun)}: "
                "call f.defvjp(fwd, bwd)."
            )
        if context.trace is eval_trace:  # nothing is being differentiated
            return self.fun(*args, **kwargs)
        what, static, flat, in_tree, fun, out_tree = self._prepare(args, kwargs)
        in_avals = [aval_of(x) for x in flat]
        residual_tree: list[Any] = [None]
        residual_leaves: list[Any] = []

        def fwd(primals, perturbed):
            if self.symbolic_zeros:
                primals = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
            dynamic = in_tree.unflatten(primals)
            result = user_fwd(*_merge(self.nondiff_argnums, static, dynamic))
            if not (isinstance(result, (tuple, list)) and len(result) == 2):
                raise TypeError(
                    f"The fwd rule {_name(user_fwd)} of {_name(self.fun)} must return a pair "
                    f"(result, residuals), got {type(result).__name__}."
                )
            outs, tree = tree_util.tree_flatten(result[0])
            if out_tree[0] is not None and out_tree[0] != tree:
                raise TypeError(
                    f"The fwd rule {_name(user_fwd)} must return, first, a result of the structure "
                    f"that {_name(self.fun)} returns, {out_tree[0]}, got {tree}."
                )
            out_tree[0] = tree
            leaves, residual_tree[0] = tree_util.tree_flatten(result[1])
            # Python values among the residuals reach `bwd` as they are.
            residual_leaves[:] = [None if _is_array(x) else x for x in leaves]
            return [x for x in leaves if _is_array(x)], outs

        def bwd(residuals, cts):
            arrays = iter(residuals)
            leaves = [next(arrays) if x is None else x for x in residual_leaves]
            result = user_bwd(
                *static, residual_tree[0].unflatten(leaves), out_tree[0].unflatten(cts)
            )
            return _input_cotangents(user_bwd, result, in_tree, in_avals)

        outs = custom_vjp_call_p.bind(
            *flat,
            fun=fun,
            fwd=fwd,
            bwd=bwd,
            name=_name(self.fun),
            symbolic_zeros=self.symbolic_zeros,
        )
        return out_tree[0].unflatten(outs)


def _is_array(x: Any) -> bool:
    return isinstance(x, (Array, np.ndarray, np.generic))


def _input_cotangents(bwd, result, in_tree, in_avals):
    """The flat cotangents that a `bwd` rule returned; None stands for a tree of zeros."""
    if isinstance(result, list):
        result = tuple(result)
    zero = Zero(ShapedArray((), _dtypes.float0))
    dummy = in_tree.unflatten([object()] * in_tree.num_leaves)
    if not isinstance(result, tuple) or len(result) != len(dummy):
        raise TypeError(
            f"The bwd rule {_name(bwd)} must return a tuple with one cotangent for each of the "
            f"{len(dummy)} arguments (None for zero), got {result!r}."
        )
    cts: list[Any] = []

    def fill(ct, part):
        if ct is None:
            cts.extend([zero] * len(tree_util.tree_leaves(part)))
        else:
            cts.append(ct)

    try:
        tree_util.tree_map(fill, result, dummy, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise TypeError(
            f"The bwd rule {_name(bwd)} must return cotangents of the structure of its arguments."
            f"\n{error}"
        ) from None
    out = []
    for ct, aval in zip(cts, in_avals, strict=True):
        expected = aval.tangent()
        if ct is zero or type(ct) in (Zero, SymbolicZero) or expected.dtype == _dtypes.float0:
            out.append(Zero(expected))
            continue
        found = aval_of(ct)
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise ValueError(
                f"The bwd rule {_name(bwd)} must return cotangents with the shapes and dtypes of "
                f"the arguments: the argument is {aval.str_short()}, its cotangent "
                f"{found.str_short()}."
            )
        out.append(ct)
    return out


def custom_gradient(fun: Callable) -> Callable:
    """A function that returns its value together with its own vjp function.

    Args:
      fun: a function that returns `(out, vjp)`, where `vjp(ct)` gives the cotangents.

    >>> import namoo
    >>> import namoo.numpy as jnp
    >>> @namoo.custom_gradient
    ... def f(x):
    ...     return x**2, lambda ct: (ct * 100.0,)
    >>> namoo.grad(f)(3.0)
    Array(100., dtype=float32, weak_type=True)
    """

    @custom_vjp
    def wrapped(*args):
        return fun(*args)[0]

    def fwd(*args):
        out, rule = fun(*args)
        cts, tree = tree_util.tree_flatten(out)

        def flat_rule(*flat_cts):
            result = rule(tree.unflatten(flat_cts))
            result = result if isinstance(result, tuple) else (result,)
            outs, out_tree[0] = tree_util.tree_flatten(result)
            return outs

        out_tree: list[Any] = [None]
        avals = [aval_of(x).tangent() for x in cts]
        jaxpr, consts = stage(flat_rule, avals, "vjp")
        return out, tree_util.Partial(_Rule(jaxpr, out_tree[0]), *consts)

    def bwd(rule, ct):
        return rule(ct)

    wrapped.defvjp(fwd, bwd)
    functools.update_wrapper(wrapped, fun)
    return wrapped


class _Rule:
    """A staged vjp function; its constants are residuals."""

    def __init__(self, jaxpr, out_tree):
        self.jaxpr, self.out_tree = jaxpr, out_tree

    def __call__(self, *consts_and_ct):
        *consts, ct = consts_and_ct
        return self.out_tree.unflatten(eval_jaxpr(self.jaxpr, consts, *tree_util.tree_leaves(ct)))


def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """Hoist the traced values that a function closes over into explicit arguments.

    Args:
      fun: a function of array trees.
      *example_args: arguments, of which only types are used.

    Returns:
      `(converted, consts)` with `converted(*args, *consts) == fun(*args)`.

    >>> import namoo.numpy as jnp
    >>> y = jnp.array(2.0)
    >>> converted, consts = closure_convert(lambda x: x * y, 1.0)
    >>> converted(3.0, *consts)
    Array(6., dtype=float32, weak_type=True)
    """
    flat, in_tree = tree_util.tree_flatten(example_args)
    out_tree: list[Any] = [None]

    def flat_fun(*leaves):
        outs, out_tree[0] = tree_util.tree_flatten(fun(*in_tree.unflatten(leaves)))
        return outs

    jaxpr, consts = stage(flat_fun, [aval_of(x) for x in flat], _name(fun))

    def hoisted(c):
        return isinstance(c, Tracer) and _dtypes.issubdtype(c.dtype, np.inexact)

    moved = [c for c in consts if hoisted(c)]

    def converted(*args):
        own = len(args) - len(moved)
        args, given = args[:own], args[own:]
        leaves, tree = tree_util.tree_flatten(args)
        if tree != in_tree:
            raise TypeError(
                f"The converted function must be called with arguments of the structure of the "
                f"example, {in_tree}, got {tree}."
            )
        rest = iter(given)
        values = [next(rest) if hoisted(c) else c for c in consts]
        return out_tree[0].unflatten(eval_jaxpr(jaxpr, values, *leaves))

    return converted, moved
