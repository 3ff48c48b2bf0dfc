"""Differentiation rules: JVPs, and transposes of linear operations.

A rule in `primitive_jvps` is a function of `(primals, tangents, **params)` that returns the result
and its tangent; tangents may be `Zero`. A rule in `primitive_transposes` is a function of
`(cotangent, *operands, **params)` that returns a cotangent for each operand that is an
`UndefinedPrimal`, and None for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from namoo.core.primitive import Linear, Zero, is_linear, is_zero
from namoo.interpreters.rules import Rules
from namoo.primitives.families import add_any
from namoo.primitives.families import add_any_p as add_jaxvals_p
from namoo.primitives.shape import instantiate, zeros
from namoo.transforms.jvp import JVPTrace, JVPTracer

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]
__dir__ = __all__.copy


Rule = Callable[..., Any]

UndefinedPrimal = Linear
primitive_jvps = Rules("jvp")
primitive_transposes = Rules("transpose")


def is_undefined_primal(x: Any) -> bool:
    """Return whether an operand of a transpose rule needs a cotangent.

    Example:
        >>> import namoo
        >>> is_undefined_primal(UndefinedPrimal(namoo.typeof(1.0))), is_undefined_primal(1.0)
        (True, False)
    """
    return is_linear(x)


def instantiate_zeros(tangent: Any) -> Any:
    """Return a tangent as an array, with `Zero` as zeros.

    Example:
        >>> import namoo
        >>> print(instantiate_zeros(Zero(namoo.typeof(1.0))))
        0.0
    """
    return instantiate(tangent)


def zeros_like_aval(aval: Any) -> Any:
    """Return zeros of an abstract value's shape and dtype.

    Example:
        >>> import namoo
        >>> print(zeros_like_aval(namoo.core.ShapedArray((2,), "float32")))
        [0. 0.]
    """
    return zeros(aval)


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents, each of which may be `Zero`.

    Example:
        >>> import namoo
        >>> add_tangents(Zero(namoo.typeof(1.0)), 2.0)
        2.0
    """
    return add_any(x, y)


def add_jaxvals(x: Any, y: Any) -> Any:
    """Return the sum of two arrays of the same type.

    Example:
        >>> print(add_jaxvals(1.0, 2.0))
        3.0
    """
    return add_jaxvals_p.bind(x, y)


def get_primitive_transpose(p: Any) -> Rule:
    """Return the transpose rule of a primitive.

    Raises:
        NotImplementedError: it has none.

    Example:
        >>> import namoo
        >>> callable(get_primitive_transpose(namoo.lax.neg_p))
        True
    """
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented. Define "
            f"it: primitive_transposes[{p}_p] = function of (cotangent, *operands)."
        ) from None


def defjvp(primitive: Any, *jvprules: Rule | None) -> None:
    """Define the JVP of a primitive by its derivative with respect to each operand.

    Args:
        primitive: an operation with one result.
        *jvprules: for each operand, a function of `(tangent, *primals, **params)` that returns its
            contribution to the result's tangent; None if that is zero.

    Example:
        >>> import namoo
        >>> square_p = namoo.extend.core.Primitive("square")
        >>> _ = square_p.def_impl(lambda x: x * x)
        >>> defjvp(square_p, lambda t, x: 2 * t * x)
        >>> print(*namoo.jvp(square_p.bind, (3.0,), (1.0,)))
        9.0 6.0
    """

    def with_result(rule: Rule) -> Rule:
        return lambda t, out, *primals, **params: rule(t, *primals, **params)

    defjvp2(primitive, *(rule and with_result(rule) for rule in jvprules))


def defjvp2(primitive: Any, *jvprules: Rule | None) -> None:
    """Like `defjvp`, with rules that also take the result: `(tangent, result, *primals, **params)`.

    Example:
        >>> import namoo
        >>> exp_p = namoo.extend.core.Primitive("my_exp")
        >>> _ = exp_p.def_impl(namoo.numpy.exp)
        >>> defjvp2(exp_p, lambda t, out, x: t * out)
        >>> print(*namoo.jvp(exp_p.bind, (0.0,), (2.0,)))
        1.0 2.0
    """
    if primitive.multiple_results:
        raise AssertionError(
            f"'{primitive}' has several results: write its rule, primitive_jvps[{primitive}_p] = …"
        )

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        terms = [
            rule(t, out, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and not is_zero(t)
        ]
        return out, reduce(add_tangents, terms, Zero.of(out))

    primitive_jvps[primitive] = jvp


def deflinear(primitive: Any, transpose_rule: Rule) -> None:
    """Define the derivatives of a primitive that is linear in all of its operands together.

    Args:
        primitive: the operation.
        transpose_rule: a function of `(cotangent, **params)` that returns the operands' cotangents.

    Example:
        >>> import namoo
        >>> twice_p = namoo.extend.core.Primitive("twice")
        >>> _ = twice_p.def_impl(lambda x: 2 * x)
        >>> _ = twice_p.def_abstract_eval(lambda x: x)
        >>> deflinear(twice_p, lambda ct: [twice_p.bind(ct)])
        >>> print(namoo.grad(twice_p.bind)(5.0))
        2.0
    """
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Any, transpose_rule: Rule) -> None:
    """Like `deflinear`, with a rule that also takes the operands: `(ct, *operands, **params)`.

    Example:
        >>> import namoo
        >>> half_p = namoo.extend.core.Primitive("half")
        >>> _ = half_p.def_impl(lambda x: x / 2)
        >>> _ = half_p.def_abstract_eval(lambda x: x)
        >>> deflinear2(half_p, lambda ct, x: [half_p.bind(ct)])
        >>> print(namoo.grad(half_p.bind)(5.0))
        0.5
    """
    primitive_jvps[primitive] = partial(_linear_jvp, primitive)
    primitive_transposes[primitive] = transpose_rule


def _linear_jvp(primitive: Any, primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    out = primitive.bind(*primals, **params)
    if all(map(is_zero, tangents)):
        return out, [Zero.of(x) for x in out] if primitive.multiple_results else Zero.of(out)
    return out, primitive.bind(*map(instantiate, tangents), **params)


def defbilinear(prim: Any, lhs_rule: Rule, rhs_rule: Rule) -> None:
    """Define the derivatives of a primitive that is linear in each of its two operands.

    Args:
        prim: the operation.
        lhs_rule: a function of `(cotangent, x, y, **params)` that returns the cotangent of `x`,
            which is an `UndefinedPrimal`.
        rhs_rule: likewise for `y`.

    Example:
        >>> import namoo
        >>> times_p = namoo.extend.core.Primitive("times")
        >>> _ = times_p.def_impl(lambda x, y: x * y)
        >>> _ = times_p.def_abstract_eval(lambda x, y: x)
        >>> defbilinear(
        ...     times_p, lambda ct, x, y: times_p.bind(ct, y), lambda ct, x, y: times_p.bind(x, ct)
        ... )
        >>> print(*namoo.grad(times_p.bind, argnums=(0, 1))(2.0, 3.0))
        3.0 2.0
    """
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if is_linear(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    primitive_transposes[prim] = transpose
