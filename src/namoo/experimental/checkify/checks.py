"""`check`: a condition that must hold, as an operation of a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import numpy as jnp
from namoo import tree_util
from namoo._base.source_context import entry_point, user_source
from namoo.core.array import Array
from namoo.core.avals import aval_of
from namoo.experimental.checkify.error import (
    Error,
    FailedCheckError,
    Template,
    bind_check,
    kind_of,
    update,
)
from namoo.primitives.shape import convert_element_type


def _check(name: str, debug: bool, pred: Any, msg: str, args: tuple, kwargs: dict) -> None:
    is_flag = isinstance(pred, (Array, np.ndarray, np.generic)) and (
        pred.shape == () and pred.dtype == np.bool_
    )
    if not (isinstance(pred, bool) or is_flag):
        raise TypeError(
            f"{name} takes a scalar pred, got {pred!r}, which is not a scalar boolean. Reduce "
            "an array first, with jnp.all or jnp.any."
        )
    leaves, tree = tree_util.tree_flatten((args, kwargs))
    for leaf in leaves:
        if not isinstance(leaf, (Array, np.ndarray)):
            raise TypeError(
                "Formatting arguments to check need to be trees of arrays, but got "
                f"{leaf!r} of type {type(leaf)}. Put values that are not arrays into the message "
                "itself, with an f-string."
            )
    payload = [convert_element_type(x, aval_of(x).dtype) for x in leaves]
    template = Template(FailedCheckError, (msg,), tree, user_source())
    entries = update({}, kind_of(FailedCheckError, payload), jnp.logical_not(pred), 0, payload)
    bind_check(Error(entries, (template,)), debug)


@entry_point
def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Fail with a message unless a condition holds.

    Outside of `checkify`, a failure raises when the program runs, also in `jit`. Under `checkify`,
    it becomes part of the returned error.

    Args:
        pred: the condition, a boolean scalar.
        msg: the message, with fields for the other arguments, as in `str.format`.
        *fmt_args: arrays that the message shows.
        debug: check only under `checkify`, as `debug_check` does.
        **fmt_kwargs: more arrays, by name.

    Raises:
        JaxRuntimeError: the condition does not hold; it is a ValueError.
        TypeError: `pred` is not a boolean scalar, or a value to show is not an array.

    Example:
        >>> check(True, "always holds")
        >>> check(jnp.array(1) > 2, "{} is small", jnp.array(1))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        namoo.experimental.checkify.JaxRuntimeError: 1 is small (`check` failed)
        ...
    """
    _check("debug_check" if debug else "check", debug, pred, msg, fmt_args, fmt_kwargs)


@entry_point
def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Like `check` under `checkify`; otherwise do nothing.

    Args:
        pred: the condition, a boolean scalar.
        msg: the message, with fields for the other arguments, as in `str.format`.
        *fmt_args: arrays that the message shows.
        **fmt_kwargs: more arrays, by name.

    Example:
        >>> debug_check(False, "nobody looks")
    """
    _check("debug_check", True, pred, msg, fmt_args, fmt_kwargs)
