"""From functions of trees to programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from namoo import tree_util
from namoo.core.avals import ShapedArray
from namoo.core.jaxpr import ClosedJaxpr, Jaxpr
from namoo.core.trace import context
from namoo.transforms.refs import refuse_aliases
from namoo.transforms.stage import ArgNames, stage


def staged(
    fun: Callable,
    in_tree: Any,
    avals: Sequence[ShapedArray],
    how: str,
    of: Callable | None = None,
    *variant: Any,
    arg_names: ArgNames = None,
) -> Staged:
    """The program of a function of trees; the memory may know it.

    Args:
        fun: the function.
        in_tree, avals: the structure and the types of its arguments.
        how: what traces it, for messages.
        of: the user's function, if `fun` only calls it.
        variant: everything else that `fun` depends on.
        arg_names: the names of the leaves, for messages; by default those of the parameters.
    """
    key = how, variant, in_tree, tuple(avals)
    make = lambda: Staged(fun, in_tree, avals, how, arg_names)  # noqa: E731
    return context.trace.memory.program_of(fun if of is None else of, key, make)


class Staged:
    """The program of a function of trees, its constants, and the structure of its result."""

    out_tree: Any

    def __init__(
        self,
        fun: Callable,
        in_tree: Any,
        avals: Sequence[ShapedArray],
        how: str,
        arg_names: ArgNames = None,
    ):
        self.name = getattr(fun, "__name__", type(fun).__name__)
        self.how = how

        def flat(*leaves):
            outs, self.out_tree = tree_util.tree_flatten(fun(*in_tree.unflatten(leaves)))
            return outs

        names = arg_names or (lambda: argument_names(fun, in_tree))
        self.jaxpr, self.consts = stage(flat, avals, self.name, names, how)

    def refuse_aliases(self, fun: Callable, in_tree: Any, leaves: Sequence[Any]) -> None:
        """Refuse arguments that are references, and are among its constants, too."""
        names = lambda: argument_names(fun, in_tree)  # noqa: E731
        refuse_aliases(self.name, self.how, leaves, names, self.consts)

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.jaxpr.out_avals

    @cached_property
    def closed(self) -> ClosedJaxpr:
        """The program with its constants as leading inputs."""
        return ClosedJaxpr(with_consts(self.jaxpr))

    def out_types(self) -> Any:
        """The result's types, as a tree."""
        return self.out_tree.unflatten(self.out_avals)


def argument_names(fun: Callable, in_tree: Any) -> list[str]:
    """The names of the leaves of a function's arguments, for messages."""
    labels = parameter_names(fun, len(in_tree.children()))
    paths = tree_util.leaf_paths(in_tree)
    return [labels[p[0].idx] + tree_util.keystr(p[1:]) for p in paths]


def parameter_names(fun: Callable, count: int) -> list[str]:
    """The names of a function's positional arguments."""
    try:
        names = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        names = []
    return [*names[:count], *(f"args[{i}]" for i in range(len(names), count))]


def with_consts(jaxpr: Jaxpr) -> Jaxpr:
    """The program with its constants as leading inputs."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
