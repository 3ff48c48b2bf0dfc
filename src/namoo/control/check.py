"""`check`: a condition that must hold while a program runs, or it raises an exception."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base.dtypes import issubdtype
from namoo._base.short import short
from namoo._base.source_context import at_user_line, entry_point, user_source
from namoo.analysis.checks import iterations
from namoo.core.avals import aval_of
from namoo.core.primitive import Primitive
from namoo.primitives.reduction import reduce_and
from namoo.primitives.shape import convert_element_type
from namoo.transforms.batch import batch_to


class Require(Primitive):
    """Raise an exception unless all elements of the first operand are true.

    The other operands are values for the message. The first axes of the condition are those of
    `vmap`, the outermost first; `mapped` says for each value which of these axes it has.
    """

    name, effectful, multiple_results, may_fail, takes_axis = "require", True, True, True, True
    value_params = ()

    def evaluate(self, condition, *values, message, tree, error, source, mapped, examples):
        if np.all(condition):
            return []
        place = np.unravel_index(int(np.argmin(condition)), condition.shape)
        example, element = [*map(int, place[:examples])], [*map(int, place[examples:])]
        shown = [
            np.asarray(x)[tuple(i for i, has in zip(example, axes, strict=True) if has)]
            for x, axes in zip(values, mapped, strict=True)
        ]
        args, kwargs = tree.unflatten(map(_shown, shown))
        text = message.format(*args, **kwargs)
        if element:
            text += f" (at {element} of the condition)"
        for number in example[::-1]:
            text += f", in example {number} of vmap"
        raise error(f"{text}{iterations()}{at_user_line(source)}")

    def abstract(self, *avals, **params):
        return []

    def jvp(self, primals, tangents, **params):
        self.bind(*primals, **params)
        return [], []

    def batch(self, xs, dims, *, axis, mapped, examples, **params):
        operands = [batch_to(axis, xs[0], dims[0])]
        for x, dim in zip(xs[1:], dims[1:], strict=True):
            operands.append(x if dim is None else batch_to(axis, x, dim))
        mapped = tuple((d is not None, *axes) for d, axes in zip(dims[1:], mapped, strict=True))
        return self.bind(*operands, mapped=mapped, examples=examples + 1, **params), []

    def native(self, emit, *operands, **params):
        return emit.require(operands)

    def stablehlo(self, hlo, condition, *values, **params):
        axes = range(len(condition.shape))
        holds = hlo.apply(lambda x: reduce_and(x, axes), condition)
        evaluate = functools.partial(self.evaluate, **params)
        return hlo.require([condition, *values], evaluate, holds)


require_p = Require()


def _shown(x: np.ndarray) -> Any:
    """A value for a message: a float32 of 2.7 is shown as 2.7."""
    return float(str(x)) if x.shape == () and issubdtype(x.dtype, np.floating) else x[()]


@entry_point
def check(
    condition: Any, message: str, *values: Any, error: type[Exception] = ValueError, **named: Any
) -> None:
    """Raise an exception unless a condition holds, also from compiled code.

    The condition is tested when the program runs: in `jit`, `scan`, `while_loop`, under `vmap` and
    `grad`, on every engine. The message names the line of the call, the iterations of the loops
    around it, and the example of `vmap`. Under `vmap`, a check in a branch of `cond` is for the
    examples that take it. JAX does not have this function; the checks of
    `namoo.experimental.checkify`, which are returned as values, are JAX's.

    Args:
        condition: a boolean, or an array of booleans that must all be true.
        message: the text, with fields for the other arguments, as in `str.format`.
        *values: trees of arrays that the message shows.
        error: the exception to raise, a class that is called with the text.
        **named: more of them, by name.

    Raises:
        error: the condition does not hold.
        TypeError: the condition is not boolean, or `error` is not an exception.
        ValueError: the message has a field without a value.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> @namoo.jit
        ... def log(x):
        ...     namoo.check(x > 0, "log of {x}", x=x, error=ArithmeticError)
        ...     return jnp.log(x)
        >>> log(-3.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ArithmeticError: log of -3.0
        ...
    """
    if not (isinstance(error, type) and issubclass(error, Exception)):
        raise TypeError(
            f"check: error must be a class of exceptions, such as ValueError, got {short(error)}."
            + at_user_line()
        )
    aval = aval_of(condition)
    if aval.dtype != np.bool_:
        raise TypeError(
            f"check: the condition must be boolean, got {aval.str_short()}. Write the comparison, "
            "as in check(x > 0, ...)." + at_user_line()
        )
    leaves, tree = tree_util.tree_flatten((values, named))
    avals = [aval_of(x) for x in leaves]
    sample = [np.zeros(a.shape, a.dtype)[()] for a in avals]
    args, kwargs = tree.unflatten(sample)
    try:
        message.format(*args, **kwargs)
    except (LookupError, ValueError, TypeError) as problem:
        raise ValueError(
            f"check: the message {message!r} cannot be formatted with "
            f"{len(values)} values and the names {sorted(named)}: {problem}. Write a brace of the "
            "text twice." + at_user_line()
        ) from None
    if not math.prod(aval.shape):
        return
    require_p.bind(
        convert_element_type(condition, np.bool_),
        *(convert_element_type(x, a.dtype) for x, a in zip(leaves, avals, strict=True)),
        message=message,
        tree=tree,
        error=error,
        source=user_source(),
        mapped=((),) * len(leaves),
        examples=0,
    )
