"""Types of arguments with symbolic shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from namoo import tree_util
from namoo.core.avals import ShapeDtypeStruct, aval_of
from namoo.dimensions.scope import SymbolicScope, symbolic_shape


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Return types of arguments with symbolic shapes, for `export`.

    Args:
        args: a tree of arrays or `ShapeDtypeStruct`s.
        shapes_specs: None, a string for `symbolic_shape`, or a tree of them that is a prefix of
            `args`. `_` and `...` in a string are the sizes of the argument.
        constraints: comparisons that the sizes satisfy.
        scope: the scope of the variables; by default a new one, with `constraints`.

    Returns:
        A tree of `ShapeDtypeStruct`s.

    Example:
        >>> import namoo.numpy as jnp
        >>> symbolic_args_specs((jnp.ones((8, 3)), jnp.ones(8)), ("b, _", "b"))[0].shape
        (b, 3)
    """
    leaves, tree = tree_util.tree_flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    is_leaf = lambda x: x is None or isinstance(x, str)  # noqa: E731
    try:
        specs = tree_util.broadcast_prefix(shapes_specs, args, is_leaf=is_leaf)
    except ValueError:
        first, *_ = tree_util.prefix_errors(shapes_specs, args, is_leaf=is_leaf)
        raise first("export.symbolic_args_specs shapes_specs") from None
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    avals = [x if isinstance(x, ShapeDtypeStruct) else aval_of(x) for x in leaves]
    return tree.unflatten(
        [
            ShapeDtypeStruct(symbolic_shape(spec, like=a.shape, scope=scope), a.dtype)
            for a, spec in zip(avals, specs, strict=True)
        ]
    )
