"""`accumulate`: compute the gradient of a large batch in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from namoo import lax, tree
from namoo import numpy as jnp
from namoo.api.inspect import eval_shape
from namoo.train.metrics import Metric


def accumulate(value_and_grad: Callable[..., Any], parts: int) -> Callable[..., Any]:
    """Compute the gradient of a large batch in parts, sequentially, to use less memory.

        grad = (1/k)·Σ grad(part),  which is that of the batch if the loss is a mean

    Args:
        value_and_grad: a function `(params, batch, …)` that returns `(value, grads)`, as
            `namoo.value_and_grad` makes. The value may be a tree, as with `has_aux`.
        parts: how many parts the first axes of the batch are split into.

    Returns:
        A function of the same arguments with the same results: numbers of the value are averaged
        over the parts, metrics are merged, and integers keep their last value. To split over calls
        instead, use `namoo.optim.MultiSteps`.

    Raises:
        ValueError: when called, if an axis cannot be split into that many parts.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> loss = lambda w, x: jnp.mean((w - x) ** 2)
        >>> grad = accumulate(namoo.value_and_grad(loss), parts=2)
        >>> grad(1.0, jnp.arange(4.0))
        (Array(1.5, dtype=float32), Array(-1., dtype=float32))
    """

    def split(x: Any) -> Any:
        size = jnp.shape(x)[0] if jnp.ndim(x) else 0
        if size % parts or not size:
            raise ValueError(
                f"a batch with an array of shape {jnp.shape(x)} cannot be split into {parts} "
                "equal parts along its first axis."
            )
        return jnp.reshape(x, (parts, size // parts, *jnp.shape(x)[1:]))

    def merged(x: Any) -> Any:
        if isinstance(x, Metric):
            return x.sum()
        return jnp.mean(x, 0) if jnp.issubdtype(x.dtype, jnp.inexact) else x[-1]

    def in_parts(params: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        def of_part(part: Any) -> Any:
            return value_and_grad(params, part, *args, **kwargs)

        def step(total: Any, part: Any) -> Any:
            value, grads = of_part(part)
            return tree.map(jnp.add, total, grads), value

        pieces = tree.map(split, batch)
        _, shapes = eval_shape(of_part, tree.map(lambda x: x[0], pieces))
        zeros = tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        total, values = lax.scan(step, zeros, pieces)
        value = tree.map(merged, values, is_leaf=lambda x: isinstance(x, Metric))
        return value, tree.map(lambda g: g / parts, total)

    return in_parts
