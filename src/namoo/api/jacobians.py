"""Whole Jacobians and Hessians: derivatives along every element, by `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from namoo import tree_util
from namoo._base import dtypes
from namoo._base.lazy import later
from namoo._base.source_context import entry_point
from namoo.api.grad import check_input, is_index, jvp, select_args, vjp
from namoo.api.map import vmap
from namoo.core.array import EagerArray
from namoo.core.avals import aval_of
from namoo.primitives.shape import reshape
from namoo.transforms.arguments import require_callable, wraps
from namoo.tree_util import keystr

slicing = later("namoo.primitives.slicing")


def _basis(tree: Any) -> Any:
    """Return a standard basis of a tree of arrays: each leaf has one more leading axis."""
    leaves, treedef = tree_util.tree_flatten(tree)
    sizes = [aval_of(x).size for x in leaves]
    total, start, out = sum(sizes), 0, []
    for x, size in zip(leaves, sizes, strict=True):
        aval = aval_of(x)
        block = np.zeros((total, size), aval.dtype)
        block[start : start + size] = np.eye(size, dtype=aval.dtype)
        out.append(EagerArray(block.reshape((total, *aval.shape)), aval.weak_type))
        start += size
    return treedef.unflatten(out)


def _unbatch(tree: Any, stacked: Any, axis: int) -> Any:
    """Split an axis that runs over a basis of `tree` into that tree's leaves and shapes."""
    leaves, treedef = tree_util.tree_flatten(tree)
    parts, start = [], 0
    for x in leaves:
        aval = aval_of(x)
        piece = slicing.slice_in_dim(stacked, start, start + aval.size, axis=axis)
        shape = list(aval_of(piece).shape)
        shape[axis : axis + 1] = aval.shape
        parts.append(reshape(piece, shape))
        start += aval.size
    return treedef.unflatten(parts)


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Compute the Jacobian column by column, in forward mode: efficient for few inputs.

    Args:
        fun: a function of trees of arrays.
        argnums: the argument, or arguments, to differentiate with respect to.
        has_aux: the function returns a pair `(value, aux)`.
        holomorphic: the function is holomorphic, and its inputs are complex.

    Returns:
        a function that returns a tree of the result's structure, whose leaves are trees of the
        argument's structure; shapes are those of result and argument, joined.

    Example:
        >>> import namoo.numpy as jnp
        >>> jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    require_callable(fun, "jacfwd")

    @entry_point
    @wraps(fun)
    def jacobian_f(*args, **kwargs):
        of_selected, selected, nums = select_args(fun, args, argnums, "jacfwd")
        selected = tuple(selected)
        for path, leaf in tree_util.tree_leaves_with_path(selected):
            check_input(leaf, f"argument{keystr(path)}", "jacfwd", holomorphic, False)
            if not holomorphic and dtypes.issubdtype(aval_of(leaf).dtype, np.complexfloating):
                raise TypeError(
                    "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of "
                    f"np.floating), but got {aval_of(leaf).dtype}: argument{keystr(path)}. For "
                    " holomorphic functions pass holomorphic=True; otherwise use jvp."
                )
        run = functools.partial(of_selected, **kwargs)
        push = lambda t: jvp(run, selected, t, has_aux)  # noqa: E731
        results = vmap(push, out_axes=(None, -1, None) if has_aux else (None, -1))(_basis(selected))
        example = selected[0] if is_index(argnums) else selected
        jacobian = tree_util.tree_map(
            lambda y: _unbatch(example, y, aval_of(y).ndim - 1), results[1]
        )
        return (jacobian, results[2]) if has_aux else jacobian

    return jacobian_f


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Compute the Jacobian row by row, in reverse mode: efficient for few outputs.

    Args:
        fun: a function of trees of arrays.
        argnums: the argument, or arguments, to differentiate with respect to.
        has_aux: the function returns a pair `(value, aux)`.
        holomorphic: the function is holomorphic, and its outputs are complex.
        allow_int: allow integer inputs; their derivatives have dtype float0.

    Returns:
        a function that returns a tree of the result's structure, whose leaves are trees of the
        argument's structure; shapes are those of result and argument, joined.

    Example:
        >>> import namoo.numpy as jnp
        >>> jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    require_callable(fun, "jacrev")

    @entry_point
    @wraps(fun)
    def jacobian_f(*args, **kwargs):
        of_selected, selected, nums = select_args(fun, args, argnums, "jacrev")
        for path, leaf in tree_util.tree_leaves_with_path(tuple(selected)):
            check_input(leaf, f"argument{keystr(path)}", "jacrev", holomorphic, allow_int)
        run = functools.partial(of_selected, **kwargs)
        out, pull, *aux = vjp(run, *selected, has_aux=has_aux)
        for leaf in tree_util.tree_leaves(out):
            dtype = aval_of(leaf).dtype
            if not holomorphic and not dtypes.issubdtype(dtype, np.floating):
                raise TypeError(
                    "jacrev requires real-valued outputs (output dtype that is a sub-dtype of "
                    f"np.floating), but got {dtype}. For holomorphic functions pass "
                    "holomorphic=True."
                )
        rows = vmap(pull)(_basis(out))
        rows = rows[0] if is_index(argnums) else rows
        by_input = tree_util.tree_map(lambda g: _unbatch(out, g, 0), rows)
        structure = tree_util.tree_structure(rows)
        jacobian = tree_util.tree_transpose(structure, tree_util.tree_structure(out), by_input)
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacobian_f


jacobian = jacrev


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Compute the Hessian of a function: forward mode over reverse mode.

    Args:
        fun: a function of trees of arrays.
        argnums: the argument, or arguments, to differentiate with respect to.
        has_aux: the function returns a pair `(value, aux)`.
        holomorphic: the function is holomorphic.

    Returns:
        a function that returns, for each result, a tree of trees of second derivatives.

    Example:
        >>> import namoo.numpy as jnp
        >>> hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0]))
        Array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )
