"""`namoo.api_util`: functions of trees as functions of lists of leaves.

Example:
    >>> from namoo import tree_util
    >>> from namoo.extend import linear_util as lu
    >>> leaves, structure = tree_util.tree_flatten(({"a": 1, "b": 2},))
    >>> total = lu.wrap_init(lambda t: {"sum": t["a"] + t["b"]})
    >>> flat, result = flatten_fun_nokwargs(total, structure)
    >>> flat.call_wrapped(*leaves), result()
    ([3], PyTreeDef({'sum': *}))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from namoo import tree_util
from namoo.core.avals import ShapedArray, aval_of
from namoo.core.jaxpr import DebugInfo
from namoo.extend import linear_util as lu
from namoo.tree.metadata import is_hashable

__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]
__dir__ = __all__.copy


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """`map` as a list; the sequences must have one length.

    Example:
        >>> safe_map(max, [1, 5], [4, 2])
        [4, 5]
    """
    return [f(*row) for row in zip(*args, strict=True)]


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of a value: shape, dtype and weak type.

    Example:
        >>> shaped_abstractify(1.0)
        ShapedArray(float32[], weak_type=True)
    """
    return aval_of(x)


@lu.transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: lu.Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """A function of the leaves of `(args, kwargs)` that calls `f(*args, **kwargs)`."""
    args, kwargs = tree_util.tree_unflatten(in_tree, leaves)
    results, out_tree = tree_util.tree_flatten(f(*args, **kwargs))
    store.store(out_tree)
    return results


@lu.transformation_with_aux2
def flatten_fun_nokwargs(
    f: Callable[..., Any], store: lu.Store, in_tree: Any, *leaves: Any
) -> list[Any]:
    """A function of the leaves of `args` that calls `f(*args)`."""
    results, out_tree = tree_util.tree_flatten(f(*tree_util.tree_unflatten(in_tree, leaves)))
    store.store(out_tree)
    return results


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """One axis for each leaf, from a tree that is a prefix of the leaves' tree.

    Args:
        name: what the axes are called in messages.
        treedef: the leaves' tree.
        axis_tree: a prefix of it; None is an axis here, not an empty tree.
        kws: the tree is a pair of arguments and keyword arguments, and the axes are those of the
            arguments; keyword arguments have axis 0.
        tupled_args: accepted for JAX's sake: the message always shows the path.

    Example:
        >>> from namoo import tree
        >>> flatten_axes("in_axes", tree.structure([1, (2, 3)]), [0, None])
        [0, None, None]
    """
    if kws:
        axis_tree = (axis_tree, 0)
    like = tree_util.tree_unflatten(treedef, [0] * treedef.num_leaves)
    try:
        return tree_util.broadcast_prefix(axis_tree, like, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value: {error}"
        ) from None


def argnums_partial(
    f: lu.WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[lu.WrappedFun, tuple[Any, ...]]:
    """Fix all arguments but those at the given positions; also return the arguments at those.

    Example:
        >>> f, dynamic = argnums_partial(lu.wrap_init(lambda a, b: a - b), 1, (10, 3))
        >>> f.call_wrapped(*dynamic), dynamic
        (7, (3,))
    """
    positions = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    positions = tuple(i % len(args) for i in positions)
    fixed = [None if i in positions else x for i, x in enumerate(args)]
    for i, x in enumerate(fixed):
        if require_static_args_hashable and i not in positions and not is_hashable(x):
            raise ValueError(
                f"Non-hashable static arguments are used: argument {i} is a {type(x).__name__}."
            )
    return _with_fixed(f, positions, tuple(map(_Fixed, fixed))), tuple(args[i] for i in positions)


class _Fixed:
    """An argument that is compared by identity where it cannot be by value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value) if is_hashable(self.value) else id(self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Fixed) or type(self.value) is not type(other.value):
            return False
        return self.value is other.value or is_hashable(self.value) and self.value == other.value


@lu.transformation2
def _with_fixed(
    f: Callable[..., Any],
    positions: tuple[int, ...],
    fixed: tuple[_Fixed, ...],
    *dynamic: Any,
    **kwargs: Any,
) -> Any:
    args = [x.value for x in fixed]
    for position, x in zip(positions, dynamic, strict=True):
        args[position] = x
    return f(*args, **kwargs)


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Whether each leaf of the arguments is donated.

    Example:
        >>> from namoo import tree
        >>> donation_vector((1,), (), tree.structure(((1, [2, 3]), {})))
        (False, True, True)
    """
    args, kwargs = in_tree.children() if kws else (in_tree, None)
    flags: list[bool] = []
    for position, child in enumerate(args.children()):
        flags += [position in donate_argnums] * child.num_leaves
    if kwargs is not None:
        names = kwargs.node_data()[1]
        for name, child in zip(names, kwargs.children(), strict=True):
            flags += [name in donate_argnames] * child.num_leaves
    return tuple(flags)


def rebase_donate_argnums(
    donate_argnums: Iterable[int], static_argnums: Iterable[int]
) -> tuple[int, ...]:
    """Positions of donated arguments among those that are not static.

    Example:
        >>> rebase_donate_argnums((2,), (0,))
        (1,)
    """
    static = sorted(set(static_argnums))
    if both := set(donate_argnums) & set(static):
        raise ValueError(f"Arguments {sorted(both)} cannot be both donated and static.")
    return tuple(i - sum(s < i for s in static) for i in sorted(donate_argnums))


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Callable[[], Any] | None = None,
    sourceinfo: str | None = None,
    signature: inspect.Signature | None = None,
) -> DebugInfo:
    """Names of a function's arguments, for messages.

    Example:
        >>> debug_info("jit", lambda x, y: x, (1, {"a": 2}), {}).arg_names
        ('x', "y['a']")
    """
    name = sourceinfo or getattr(fun, "__name__", repr(fun))
    if signature is None:
        try:
            signature = inspect.signature(fun)
        except (TypeError, ValueError):
            return DebugInfo(traced_for, name, None, result_paths_thunk)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return DebugInfo(traced_for, name, None, result_paths_thunk)
    static = {
        list(signature.parameters)[i] for i in static_argnums if i < len(signature.parameters)
    }
    names = [
        argument + tree_util.keystr(path)
        for argument, value in given.items()
        if argument not in static.union(static_argnames)
        for path, _ in tree_util.tree_flatten_with_path(value)[0]
    ]
    return DebugInfo(traced_for, name, tuple(names), result_paths_thunk)
