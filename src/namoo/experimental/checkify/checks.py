"""`check`: a condition that must hold, as an operation of a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import errors, tree_util
from namoo import numpy as jnp
from namoo.core.array import Array
from namoo.core.avals import aval_of
from namoo.core.primitive import Primitive
from namoo.experimental.checkify.error import (
    Entry,
    Error,
    FailedCheckError,
    Kind,
    Template,
    kind_of,
    update,
)
from namoo.primitives.shape import convert_element_type
from namoo.transforms.batch import batch_size, to_front


class JaxRuntimeError(ValueError):
    """A check that failed while a program ran."""


class Check(Primitive):
    """Raise the error among the operands, if there is one; `checkify` takes it away.

    A `debug` check does nothing unless `checkify` finds it.
    """

    name, effectful, multiple_results = "check", True, True

    def evaluate(self, *leaves, err_tree, debug):
        exception = None if debug else err_tree.unflatten(leaves).get_exception()
        if exception is not None:
            where = errors.at_user_line(exception.source) if exception.source else ""
            raise JaxRuntimeError(f"{exception}{where}") from exception
        return []

    def abstract(self, *avals, **params):
        return []

    def jvp(self, primals, tangents, **params):
        self.bind(*primals, **params)
        return [], []

    def batch(self, xs, dims, *, err_tree, debug):
        size = batch_size(xs, dims)
        xs, batched = to_front(xs, dims)
        full = [
            x if b else jnp.broadcast_to(x, (size, *jnp.shape(x)))
            for x, b in zip(xs, batched, strict=True)
        ]
        self.bind(
            *tree_util.tree_leaves(in_one(err_tree.unflatten(full))),
            err_tree=err_tree,
            debug=debug,
        )
        return [], []


check_p = Check()


def in_one(error: Error) -> Error:
    """One error for all examples and devices: of each kind that of the last which failed."""
    entries: dict[Kind, Entry] = {}
    for kind, entry in error.entries.items():
        ndim, count = jnp.ndim(entry.failed), jnp.size(entry.failed)
        if not count:
            continue
        if ndim:
            last = count - 1 - jnp.argmax(jnp.flip(jnp.ravel(entry.failed)))
            entry = tree_util.tree_map(
                lambda x, i=last, n=ndim: jnp.take(
                    jnp.reshape(x, (-1, *jnp.shape(x)[n:])), i, axis=0
                ),
                entry,
            )
        kind = kind._replace(mapped=())
        if before := entries.get(kind):
            first = entry.failed & (~before.failed | (entry.code < before.code))
            entry = tree_util.tree_map(lambda x, y, c=first: jnp.where(c, x, y), entry, before)
        entries[kind] = entry
    return Error(entries, error.templates)


def _bind(error: Error, debug: bool) -> None:
    leaves, tree = tree_util.tree_flatten(in_one(error))
    check_p.bind(*leaves, err_tree=tree, debug=debug)


def _check(name: str, debug: bool, pred: Any, msg: str, args: tuple, kwargs: dict) -> None:
    is_flag = isinstance(pred, (Array, np.ndarray, np.generic)) and (
        pred.shape == () and pred.dtype == np.bool_
    )
    if not (isinstance(pred, bool) or is_flag):
        raise TypeError(
            f"{name} takes a scalar pred, got {pred!r}, and no scalar boolean. Reduce "
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
    template = Template(FailedCheckError, (msg,), tree, errors.user_source())
    entries = update({}, kind_of(FailedCheckError, payload), jnp.logical_not(pred), 0, payload)
    _bind(Error(entries, (template,)), debug)


@errors.boundary
def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Fail with a message unless a condition holds.

    Outside of `checkify` a failure raises when the program runs, within `jit` too; under `checkify`
    it becomes part of the error that is returned.

    Args:
      pred: the condition, a boolean scalar.
      msg: the message, which may name the other arguments as `str.format` does.
      *fmt_args: arrays that the message shows.
      debug: check only under `checkify`, as `debug_check` does.
      **fmt_kwargs: more arrays, by name.

    Raises:
      JaxRuntimeError: the condition does not hold; it is a ValueError.
      TypeError: `pred` is no boolean scalar, or a value to show is no array.

    >>> check(True, "always holds")
    >>> check(jnp.array(1) > 2, "{} is small", jnp.array(1))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    namoo.experimental.checkify.checks.JaxRuntimeError: 1 is small (`check` failed)
    ...
    """
    _check("debug_check" if debug else "check", debug, pred, msg, fmt_args, fmt_kwargs)


@errors.boundary
def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check` under `checkify`, and nothing otherwise.

    Args:
      pred: the condition, a boolean scalar.
      msg: the message, which may name the other arguments as `str.format` does.
      *fmt_args: arrays that the message shows.
      **fmt_kwargs: more arrays, by name.

    >>> debug_check(False, "nobody looks")
    """
    _check("debug_check", True, pred, msg, fmt_args, fmt_kwargs)


@errors.boundary
def check_error(error: Error) -> None:
    """Raise if an error value says that a check failed: the inverse of `checkify`.

    Args:
      error: what a function under `checkify` returned first.

    Raises:
      JaxRuntimeError: a check had failed.
      TypeError: the argument is no `Error`.

    >>> from namoo.experimental import checkify
    >>> error, _ = checkify.checkify(lambda x: 1 / x, checkify.div_checks)(jnp.zeros(1))
    >>> check_error(error)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    namoo.experimental.checkify.checks.JaxRuntimeError: division by zero
    ...
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error takes an Error as argument, got {type(error)} instead: pass the first of "
            "the two results of a function under checkify."
        )
    _bind(error, debug=False)
