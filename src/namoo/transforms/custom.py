"""Derivative rules written by the user: `custom_jvp`, `custom_vjp`, `custom_gradient`.

A call of such a function is one operation; see `custom_call`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import errors, tree_util
from namoo._base import dtypes
from namoo._base.config import config
from namoo._base.pickling import by_name
from namoo._base.source_context import entry_point
from namoo.core.array import Array, owned
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import eval_jaxpr
from namoo.core.primitive import Zero, is_zero
from namoo.core.trace import Tracer
from namoo.eager import attach_shortcuts
from namoo.primitives.families import add_any
from namoo.primitives.shape import instantiate
from namoo.transforms.arguments import argument_paths
from namoo.transforms.custom_call import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_jvp_call_p,
    custom_vjp_call_p,
)
from namoo.transforms.custom_forward import on_demand
from namoo.transforms.refs import Ref, refuse_aliases, refuse_returned
from namoo.transforms.stage import stage


def positional(fun: Callable, args: tuple, kwargs: dict, what: str) -> tuple:
    """All arguments by position, defaults filled in."""
    about = (
        f"The input arguments to the {what}-decorated function {_name(fun)} could not be resolved "
        "to positional-only arguments, which its rules take.\n"
    )
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except ValueError:  # a built-in without a signature
        if kwargs:
            raise TypeError(f"{about}Keyword arguments need a function with a signature.") from None
        return args
    except TypeError as error:
        raise TypeError(f"{about}{error}") from None
    bound.apply_defaults()
    # The other keyword arguments are defaults that `functools.partial` has set.
    if named := [name for name in bound.kwargs if name in kwargs]:
        raise TypeError(
            f"{about}The following keyword arguments could not be resolved to positions: "
            + ", ".join(named)
        )
    return bound.args


def _name(fun: Callable) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


def _split_nondiff(args: Sequence[Any], nondiff: Sequence[int]):
    nondiff = [n % len(args) if args else n for n in nondiff]
    return [args[i] for i in nondiff], [x for i, x in enumerate(args) if i not in nondiff]


def _merge(nondiff: Sequence[int], static: Sequence[Any], dynamic: Sequence[Any]) -> list[Any]:
    out = list(dynamic)
    for i, x in sorted(zip(nondiff, static, strict=True)):
        out.insert(i, x)
    return out


def rule_of_function(self: Any, name: str) -> Any:
    """Look up a decorator such as `defjvp` on the wrapped function, if it has custom rules, too."""
    if name in ("defjvp", "defjvps", "defvjp", "def_vmap") and "fun" in vars(self):
        return getattr(self.fun, name)
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _custom(cls: Any, fun: Callable, state: dict[str, Any]) -> _Custom:
    """Restore a custom function that was pickled by value."""
    made = cls(fun)
    vars(made).update(state)
    return made


class _Result:
    """The structure of a custom function's result, and its types once the function has run."""

    tree: Any = None
    avals: list[ShapedArray] | None = None

    def check(self, custom: _Custom, rule: str, tree: Any, outs: Sequence[Any]) -> None:
        """Compare it with the first element that a rule returned.

        Args:
            custom: the function that has the rule.
            rule: a description of the rule.
            tree: the structure of the first element.
            outs: its leaves.
        """
        if self.tree is None:
            self.tree = tree
        if self.avals is None:
            return
        found = [aval_of(x) for x in outs]
        if tree != self.tree:
            what = "container/pytree structure"
        elif [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in self.avals]:
            what = "shapes/dtypes of"
        else:
            return
        decorated = f"{type(custom).__name__}-decorated function {_name(custom.fun)}"
        raise TypeError(
            f"{rule} must produce a pair (list or tuple of length two) where the first element "
            f"represents the primal output (equal to the output of the {decorated}), but instead "
            f"the rule output's first element had {what}:\n    {_types(tree, found)}\n"
            f"while the {decorated} had output {what}:\n    {_types(self.tree, self.avals)}."
        )


def _types(tree: Any, avals: Sequence[ShapedArray]) -> str:
    """A tree of types, as text."""
    return str(tree.unflatten([*map(_long, avals)])).replace("'", "")


class _Custom:
    """The common part of custom_jvp and custom_vjp."""

    __getattr__ = rule_of_function

    def __init__(self, fun: Callable, nondiff_argnums=(), nondiff_argnames=()):
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self.fun = fun
        names = list(inspect.signature(fun).parameters) if nondiff_argnames else []
        self.nondiff_argnums = tuple(
            sorted({*nondiff_argnums, *(names.index(n) for n in nondiff_argnames)})
        )

    def __reduce__(self):
        if reduced := by_name(self):
            return reduced
        return _custom, (type(self), self.fun, dict(vars(self)))

    def __get__(self, instance, owner=None):
        """A custom function defined in a class is a method."""
        return self if instance is None else functools.partial(self.__call__, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or its rule where it is differentiated."""
        return call_custom(self, args, kwargs)

    def _bind(self, args: tuple, kwargs: dict) -> Any:
        """Call the function as one operation, which knows its rule."""
        raise NotImplementedError

    def _check_rule(self) -> None:
        """Raise an error if the function has no rule yet."""
        raise NotImplementedError

    def _prepare(self, args, kwargs):
        """Flat operands, the flat function, and what is needed to call the rules."""
        args = positional(self.fun, args, kwargs, type(self).__name__)
        static, dynamic = _split_nondiff(args, self.nondiff_argnums)
        flat, in_tree = tree_util.tree_flatten(tuple(dynamic))
        # Rules expect arrays: NumPy arrays do not take traced indices, for example.
        flat = [owned(x) if isinstance(x, np.ndarray) else x for x in flat]
        self._refuse_aliases(flat, args)
        out = _Result()

        def fun(*leaves):
            inner = _merge(self.nondiff_argnums, static, in_tree.unflatten(leaves))
            outs, out.tree = tree_util.tree_flatten(self.fun(*inner))
            refuse_returned(_name(self.fun), type(self).__name__, outs)
            out.avals = [aval_of(x) for x in outs]
            return outs

        return static, flat, in_tree, fun, out

    def _refuse_aliases(self, leaves: Sequence[Any], args: Sequence[Any]) -> None:
        """Refuse a reference that is among the arguments twice."""
        names = lambda: argument_paths(self.fun, args, {})  # noqa: E731
        refuse_aliases(_name(self.fun), type(self).__name__, leaves, names)


def undifferentiated(custom: _Custom, args: tuple, kwargs: dict) -> Any:
    """Call the function itself, with arguments that its rules can take, too."""
    custom._check_rule()
    what = type(custom).__name__
    if kwargs:
        args = positional(custom.fun, args, kwargs, what)
    takes_refs = any(isinstance(x, Ref) for x in args)
    if takes_refs:
        custom._refuse_aliases(args, args)
    try:
        out = custom.fun(*args)
    except TypeError:
        positional(custom.fun, args, {}, what)
        raise
    if takes_refs:
        refuse_returned(_name(custom.fun), what, tree_util.tree_leaves(out))
    return out


@entry_point
def call_custom(custom: _Custom, args: tuple, kwargs: dict) -> Any:
    """Call a function that has a rule of its own."""
    custom._check_rule()
    return custom._bind(args, kwargs)


attach_shortcuts(globals())


class custom_jvp(_Custom):
    """A function whose derivative is written by hand, in forward mode.

    Both modes use the rule: reverse mode transposes it, so it must be linear in the tangents.

    Args:
        fun: the function.
        nondiff_argnums: arguments that are not arrays; the rule gets them first.

    Example:
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

    def _namoo_identity(self) -> tuple | None:
        """Everything that a call depends on, for `memo.identity`; None until there is a rule."""
        if self.jvp is None:
            return None
        return self.fun, self.nondiff_argnums, self.jvp, self.symbolic_zeros

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
                lambda a, b: tree_util.tree_map(add_any, a, b, is_leaf=is_zero),
                terms,
                tree_util.tree_map(lambda x: Zero.of(x), out),
            )
            return out, tree_util.tree_map(instantiate, total, is_leaf=is_zero)

        self.defjvp(jvp)

    def _check_rule(self) -> None:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {_name(self.fun)} using defjvp. Write the "
                "rule and decorate it with @f.defjvp."
            )

    def _bind(self, args: tuple, kwargs: dict) -> Any:
        rule: Any = self.jvp
        about = f"Custom JVP rule {_name(rule)} for function {_name(self.fun)}"
        static, flat, in_tree, fun, out = self._prepare(args, kwargs)

        def jvp(primals, tangents):
            result = rule(*static, in_tree.unflatten(primals), in_tree.unflatten(tangents))
            if not (isinstance(result, (tuple, list)) and len(result) == 2):
                raise TypeError(
                    f"{about} must produce a pair (list or tuple of length two) representing "
                    f"primal and tangent outputs, but got {result}."
                )
            outs, tree = tree_util.tree_flatten(result[0])
            out_tangents, tangent_tree = tree_util.tree_flatten(result[1])
            if tree != tangent_tree:
                raise TypeError(
                    f"{about} must produce primal and tangent outputs with equal container "
                    f"(pytree) structures, but got {tree} and {tangent_tree} respectively."
                )
            out.check(self, about, tree, outs)
            return outs, [
                _checked_tangent(rule, x, t) for x, t in zip(outs, out_tangents, strict=True)
            ]

        outs = custom_jvp_call_p.bind(
            *flat, fun=fun, jvp=jvp, name=_name(self.fun), symbolic_zeros=self.symbolic_zeros
        )
        return out.tree.unflatten(outs)


def _long(aval: ShapedArray) -> str:
    """A type with the full name of its dtype."""
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"


def _checked_tangent(rule, x, t):
    if type(t) is SymbolicZero:
        return t
    expected = aval_of(x).tangent()
    if expected.dtype == dtypes.float0:
        return Zero(expected)
    if aval_of(t).shape != expected.shape or aval_of(t).dtype != expected.dtype:
        raise TypeError(
            "Custom JVP rule must produce primal and tangent outputs with corresponding shapes and "
            f"dtypes. Expected {_long(expected)} (tangent type of {_long(aval_of(x))}) but got "
            f"{_long(aval_of(t))}. The rule is {_name(rule)}."
        )
    return t


class custom_vjp(_Custom):
    """A function whose derivative is written by hand, in reverse mode.

    Args:
        fun: the function.
        nondiff_argnums: arguments that are not arrays; `bwd` gets them first.

    Example:
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
    optimize_remat = False

    def _namoo_identity(self) -> tuple | None:
        """Everything that a call depends on, for `memo.identity`; None until there is a rule."""
        if self.fwd is None:
            return None
        options = self.symbolic_zeros, self.optimize_remat
        return self.fun, self.nondiff_argnums, self.fwd, self.bwd, options

    def defvjp(
        self,
        fwd: Callable,
        bwd: Callable,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rule: `fwd(*args) -> (out, residuals)`, `bwd(*nondiff, residuals, ct) -> cts`.

        Args:
            fwd, bwd: the two parts of the rule.
            symbolic_zeros: give the parts `CustomVJPPrimal` and `SymbolicZero` objects.
            optimize_remat: run the function itself instead of `fwd` where the residuals are not
                used, as in the forward pass of `checkpoint`.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros
        self.optimize_remat = optimize_remat

    def _check_rule(self) -> None:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {_name(self.fun)} using defvjp. Write "
                "the rules and call f.defvjp(fwd, bwd)."
            )

    def _bind(self, args: tuple, kwargs: dict) -> Any:
        user_fwd: Any = self.fwd
        user_bwd: Any = self.bwd
        static, flat, in_tree, fun, out = self._prepare(args, kwargs)
        for i, value in zip(self.nondiff_argnums, static, strict=True):
            if any(isinstance(x, Tracer) for x in tree_util.tree_leaves(value)):
                raise errors.UnexpectedTracerError(
                    f"custom_vjp of {_name(self.fun)}: argument {i} is listed in nondiff_argnums, "
                    "but it is traced. nondiff_argnums is for values that are not arrays, such as "
                    "functions; pass arrays as ordinary arguments and return None (or zeros) for "
                    "their derivative."
                )
        in_avals = [aval_of(x) for x in flat]
        residual_tree: list[Any] = [None]
        residual_leaves: list[Any] = []
        about = f"Custom VJP fwd rule {_name(user_fwd)} for function {_name(self.fun)}"

        def fwd(primals, perturbed):
            flat_primals = primals
            if self.symbolic_zeros:
                primals = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
            dynamic = in_tree.unflatten(primals)
            result = user_fwd(*_merge(self.nondiff_argnums, static, dynamic))
            if not (isinstance(result, (tuple, list)) and len(result) == 2):
                raise TypeError(
                    f"{about} must produce a pair (list or tuple of length two) of the result and "
                    f"the residuals, but got {result}."
                )
            outs, tree = tree_util.tree_flatten(result[0])
            out.check(self, about, tree, outs)
            leaves, residual_tree[0] = tree_util.tree_flatten(result[1])
            given = [id(x) for x in flat_primals]
            made = [x for x in leaves if isinstance(x, Ref) and id(x) not in given]
            refuse_returned(_name(user_fwd), "custom_vjp fwd function", made)
            # Python values among the residuals reach `bwd` as they are.
            residual_leaves[:] = [None if _is_array(x) else x for x in leaves]
            return [x for x in leaves if _is_array(x)], outs

        def bwd(residuals, cts):
            arrays = iter(residuals)
            leaves = [next(arrays) if x is None else x for x in residual_leaves]
            result = user_bwd(*static, residual_tree[0].unflatten(leaves), out.tree.unflatten(cts))
            return _input_cotangents(user_bwd, result, in_tree, in_avals)

        outs = custom_vjp_call_p.bind(
            *flat,
            fun=fun,
            fwd=on_demand(fun, fwd) if self.optimize_remat else fwd,
            bwd=bwd,
            name=_name(self.fun),
            symbolic_zeros=self.symbolic_zeros,
        )
        return out.tree.unflatten(outs)


def _is_array(x: Any) -> bool:
    return isinstance(x, (Array, np.ndarray, np.generic, Ref))


def _input_cotangents(bwd, result, in_tree, in_avals):
    """The flat cotangents that a `bwd` rule returned; None means a tree of zeros."""
    if isinstance(result, list):
        result = tuple(result)
    zero = Zero(ShapedArray((), dtypes.float0))
    dummy = in_tree.unflatten([object()] * in_tree.num_leaves)
    if not isinstance(result, tuple) or len(result) != len(dummy):
        raise TypeError(
            f"Custom VJP bwd rule {_name(bwd)} must produce a tuple with one cotangent for each of "
            f"the {len(dummy)} arguments (None for zero), but got {result!r}."
        )
    cts: list[Any] = []

    def fill(ct, part):
        if ct is None:
            cts.extend([zero] * len(tree_util.tree_leaves(part)))
        else:
            cts.append(ct)
        return part

    try:
        tree_util.tree_map(fill, result, dummy, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise TypeError(
            f"Custom VJP bwd rule {_name(bwd)} must produce cotangents of the structure of the "
            "arguments."
            f"\n{error}"
        ) from None
    out = []
    paths = tree_util.leaf_paths(in_tree)
    for ct, aval, path in zip(cts, in_avals, paths, strict=True):
        expected = aval.tangent()
        if ct is zero or expected.dtype == dtypes.float0:
            out.append(Zero(expected))
            continue
        symbolic = type(ct) in (Zero, SymbolicZero)
        found = ct.aval if symbolic else aval_of(ct)
        # As in JAX, the cotangent of a bfloat16 argument may be float32.
        same_kind = found.dtype == expected.dtype or dtypes.issubdtype(found.dtype, np.inexact)
        fits = found.shape == expected.shape and same_kind
        if not fits and not config.disable_bwd_checks:
            raise ValueError(
                f"Custom VJP bwd rule {_name(bwd)} must produce cotangents with the shapes and "
                f"dtypes of the arguments, but at output{tree_util.keystr(path)} the bwd rule "
                f"produced an output of type {_long(found)} for an argument of type {_long(aval)}."
                + " Consider just returning a None here instead of a SymbolicZero."
                * symbolic
            )
        out.append(Zero(expected) if symbolic else ct)
    return out


def custom_gradient(fun: Callable) -> Callable:
    """A function that returns its value together with its own vjp function.

    Args:
        fun: a function that returns `(out, vjp)`, where `vjp(ct)` gives the cotangents.

    Example:
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

    Example:
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
        return isinstance(c, Tracer) and dtypes.issubdtype(c.dtype, np.inexact)

    moved = [c for c in consts if hoisted(c)]

    def converted(*args):
        own = len(args) - len(moved)
        args, given = args[:own], args[own:]
        leaves, tree = tree_util.tree_flatten(args)
        if tree != in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the structure of "
                f"the example, {in_tree}, followed by the hoisted constants, got {tree}."
            )
        rest = iter(given)
        values = [next(rest) if hoisted(c) else c for c in consts]
        return out_tree[0].unflatten(eval_jaxpr(jaxpr, values, *leaves))

    return converted, moved
