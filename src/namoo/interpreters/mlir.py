"""Lowering rules of primitives for compiled programs, as functions of arrays.

A primitive without a lowering rule is evaluated on the host, by its `def_impl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from namoo.control.callback import io_callback, pure_callback
from namoo.core.avals import ShapedArray, ShapeDtypeStruct
from namoo.extend.primitive import GPUS, Primitive
from namoo.extend.primitive import LoweringContext as LoweringRuleContext

__all__ = ["LoweringRuleContext", "emit_python_callback", "lower_fun", "register_lowering"]
__dir__ = __all__.copy

Rule = Callable[..., Any]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Rule:
    """Return a lowering rule, given a function of arrays.

    Args:
        fun: a function of arrays, and of the operation's parameters by name.
        multiple_results: whether `fun` returns a list.

    Example:
        >>> lower_fun(lambda x: x + 1, multiple_results=False)(None, 2)
        [3]
    """

    def rule(ctx: Any, *args: Any, **params: Any) -> list[Any]:
        out = fun(*args, **params)
        return list(out) if multiple_results else [out]

    return rule


def register_lowering(
    prim: Any,
    rule: Rule,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Register the lowering rule of a primitive.

    Args:
        prim: a user-defined primitive.
        rule: what `lower_fun` returns, or a function of `(ctx, *arrays, **params)` that calls that.
        platform: "cpu", "gpu" or "tpu"; None for all platforms without their own rule.
        inline: accepted for compatibility with JAX; engines decide what they inline.
        cacheable: accepted for compatibility with JAX; a rule is called once for each program.

    Raises:
        TypeError: the primitive is built in, or the rule is not a function.

    Example:
        >>> import namoo
        >>> twice_p = namoo.extend.core.Primitive("twice")
        >>> _ = twice_p.def_abstract_eval(lambda x: x)
        >>> register_lowering(twice_p, lower_fun(lambda x: 2 * x, multiple_results=False))
        >>> print(namoo.jit(twice_p.bind)(4.0))
        8.0
    """
    if Primitive not in type(prim).__mro__:
        raise TypeError(
            f"'{prim}' is not an operation of your own: lowerings are registered for what "
            "namoo.extend.core.Primitive made."
        )
    if not callable(rule):
        raise TypeError(f"A lowering is a function, such as mlir.lower_fun(f); got {rule!r}.")
    prim.lowerings[GPUS.get(platform or "", platform)] = rule


def emit_python_callback(
    ctx: Any,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Within a lowering rule, call a Python function when the program runs.

    Args:
        ctx, operand_avals, returns_token, partitioned, sharding: accepted for compatibility with
            JAX; the operands have types.
        callback: a function of NumPy arrays that returns a list.
        token: orders calls in JAX; it is returned unchanged.
        operands: the arrays.
        result_avals: the types of the results.
        has_side_effect: whether the call must not be removed.

    Returns:
        The results, the token, and None, where JAX returns an object that keeps `callback` alive.

    Example:
        >>> aval = ShapedArray((), "float32")
        >>> twice = lambda x: [2 * x]
        >>> outs, _, _ = emit_python_callback(
        ...     None, twice, None, [3.0], [aval], [aval], has_side_effect=False
        ... )
        >>> print(outs[0])
        6.0
    """
    types = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in result_avals]
    call = io_callback if has_side_effect else pure_callback
    return list(call(lambda *xs: list(callback(*xs)), types, *operands)), token, None


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}: rules are not written in MLIR here. "
        "Register mlir.lower_fun(function of arrays), or no lowering at all and "
        "primitive.def_impl(function of arrays), which the host then runs."
    )
