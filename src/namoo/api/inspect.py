"""Inspect functions without running them: programs, types, compile-time values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from namoo import tree_util
from namoo._base.source_context import entry_point, set_name_stack, source_context
from namoo.analysis.reflection import eval_context
from namoo.api.jit import Jitted
from namoo.core.avals import ShapeDtypeStruct, aval_of
from namoo.core.jaxpr import ClosedJaxpr
from namoo.core.trace import named_axis
from namoo.dimensions.sizes import as_value
from namoo.transforms.arguments import (
    Static,
    argnums_tuple,
    argument_paths,
    as_array_type,
    function_name,
    require_callable,
    wraps,
)
from namoo.transforms.stage import stage


def _stage(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], how: str):
    """Trace a function; return its program, and the types of its result in a tree."""
    leaves, tree = tree_util.tree_flatten((args, kwargs))
    leaves = [as_array_type(x) for x in leaves]
    fixed = Static(leaves)
    paths = argument_paths(fun, args, kwargs)
    fixed.check_arguments(fun, lambda: paths)
    out_tree: Any = None
    fixed_out: Any = None

    def flat(*tracers):
        nonlocal out_tree, fixed_out
        inner_args, inner_kwargs = tree.unflatten(fixed.join(tracers))
        result = fun(*inner_args, **inner_kwargs)
        outs, out_tree = tree_util.tree_flatten(result)
        outs = [as_value(x) for x in outs]
        fixed_out = Static(outs)
        fixed_out.check_results(how, fun, result)
        fixed_out.by_position.update(
            {i: x for i, x in enumerate(outs) if type(x) is ShapeDtypeStruct}
        )
        return fixed_out.dynamic(outs)

    operands = fixed.dynamic(leaves)
    names = [p for i, p in enumerate(paths) if i not in fixed.by_position]
    avals = [aval_of(x) for x in operands]
    jaxpr, consts = stage(flat, avals, function_name(fun), names, how)
    types = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in jaxpr.out_avals]
    return ClosedJaxpr(jaxpr, consts), out_tree.unflatten(fixed_out.join(types))


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]:
    """Make a function that returns the program of `fun` for its arguments.

    Args:
        fun: a function of trees of arrays.
        static_argnums: arguments that are Python values rather than data.
        axis_env: names and sizes of axes that collectives in `fun` refer to.
        return_shape: also return the types of the result.

    Returns:
        a function of the same arguments that returns a `ClosedJaxpr`.

    Example:
        >>> import namoo.numpy as jnp
        >>> make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
        { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }
    """
    require_callable(fun, "make_jaxpr")
    nums = argnums_tuple(static_argnums, "static_argnums")

    @entry_point
    @wraps(fun)
    def make(*args, **kwargs):
        fixed = {i % len(args): args[i] for i in nums}
        dynamic = tuple(x for i, x in enumerate(args) if i not in fixed)

        @wraps(fun)
        def of_dynamic(*values, **kw):
            rest = iter(values)
            full = [fixed[i] if i in fixed else next(rest) for i in range(len(args))]
            return fun(*full, **kw)

        with contextlib.ExitStack() as stack:
            for name, size in axis_env or ():
                stack.enter_context(named_axis(name, size))
            closed, shape = _stage(of_dynamic if fixed else fun, dynamic, kwargs, "make_jaxpr")
        return (closed, shape) if return_shape else closed

    name = function_name(fun)
    make.__name__ = f"make_jaxpr({name})"
    make.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', name)})"
    return make


@entry_point
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the types of a function's result without computing anything.

    Args:
        fun: a function of trees of arrays.
        *args: arguments, arrays or `ShapeDtypeStruct`s.
        **kwargs: likewise.

    Returns:
        the result's structure, with a `ShapeDtypeStruct` for each array.

    Example:
        >>> import namoo.numpy as jnp
        >>> eval_shape(jnp.dot, jnp.zeros((2, 3)), jnp.zeros(3))
        ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    require_callable(fun, "eval_shape")
    if isinstance(fun, Jitted):  # it knows its static arguments and `out_shardings`
        return fun.eval_shape(*args, **kwargs)
    return _stage(fun, args, kwargs, "eval_shape")[1]


def typeof(x: Any) -> Any:
    """Return the type of an array: shape, dtype and weak type.

    Example:
        >>> typeof(1.0)
        ShapedArray(float32[], weak_type=True)
    """
    return aval_of(x)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Compute operations on known values at once, even while a function is traced.

    Operations on traced values become part of the program, as they do outside.

    Example:
        >>> import namoo.numpy as jnp
        >>> with ensure_compile_time_eval():
        ...     jnp.sum(jnp.arange(3))
        Array(3, dtype=int32)
    """
    with eval_context():
        yield


def is_traced(x: Any) -> bool:
    """Whether a value is traced, so that it may have no concrete value yet.

    Example:
        >>> is_traced(1.0)
        False
    """
    from namoo.core.trace import Tracer

    return isinstance(x, Tracer)


@contextlib.contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Name a part of a program; results are unchanged.

    The equations that are traced within it have the name in `source_info.name_stack`.

    Example:
        >>> import namoo.numpy as jnp
        >>> def f(x):
        ...     with named_scope("attention"):
        ...         return jnp.sin(x)
        >>> str(make_jaxpr(f)(1.0).eqns[0].source_info.name_stack)
        'attention'
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {name!r}.")
    with set_name_stack(source_context.name_stack.extend(name)):
        yield


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Name the operations of a function for profiles; see `named_scope`.

    Example:
        >>> named_call(lambda x: x + 1, name="next")(1)
        2
    """
    require_callable(fun, "named_call")

    @wraps(fun)
    def named(*args, **kwargs):
        with named_scope(name or function_name(fun)):
            return fun(*args, **kwargs)

    return named
