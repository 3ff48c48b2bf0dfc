"""The nearest point of a set: boxes, simplices, balls, planes."""

from __future__ import annotations

from typing import Any

from namoo import nn, tree
from namoo import numpy as jnp
from namoo.flatten_util import ravel_pytree
from namoo.optim import tree_utils as otu
from namoo.transforms.custom import custom_jvp

__all__ = [
    "projection_box",
    "projection_halfspace",
    "projection_hypercube",
    "projection_hyperplane",
    "projection_l1_ball",
    "projection_l1_sphere",
    "projection_l2_ball",
    "projection_l2_sphere",
    "projection_linf_ball",
    "projection_non_negative",
    "projection_simplex",
    "projection_vector",
]
__dir__ = __all__.copy


Array = Any
Tree = Any


def projection_non_negative(tree_: Tree) -> Tree:
    """The nearest tree without negative elements.

    Example:
        >>> projection_non_negative(jnp.array([-1.0, 2.0]))
        Array([0., 2.], dtype=float32)
    """
    return tree.map(nn.relu, tree_)


def projection_box(tree_: Tree, lower: Any, upper: Any) -> Tree:
    """The nearest tree between two bounds.

    Args:
        tree_: a tree of arrays.
        lower: a tree like it, or a prefix of it such as one number.
        upper: the same.

    Example:
        >>> projection_box(jnp.array([-1.0, 2.0]), 0.0, 1.0)
        Array([0., 1.], dtype=float32)
    """
    return tree.map(jnp.clip, tree_, tree.broadcast(lower, tree_), tree.broadcast(upper, tree_))


def projection_hypercube(tree_: Tree, scale: Any = 1) -> Tree:
    """The nearest tree with elements between 0 and `scale`.

    Example:
        >>> projection_hypercube(jnp.array([-1.0, 0.5, 2.0]))
        Array([0. , 0.5, 1. ], dtype=float32)
    """
    return projection_box(tree_, 0, scale)


@custom_jvp
def _unit_simplex(values):
    largest_first = jnp.sort(values)[::-1]
    sums = jnp.cumsum(largest_first)
    counts = jnp.arange(values.shape[0]) + 1
    kept = jnp.count_nonzero(1 / counts + (largest_first - sums / counts) > 0)
    return nn.relu(1 / kept + (values - sums[kept - 1] / kept))


@_unit_simplex.defjvp
def _unit_simplex_jvp(primals, tangents):
    (values,), (dot,) = primals, tangents
    out = _unit_simplex(values)
    support = out > 0
    mean = jnp.dot(support, dot) / jnp.count_nonzero(support)
    return out, support * dot - mean * support


def projection_simplex(tree_: Tree, scale: Any = 1) -> Tree:
    """The nearest tree without negative elements whose sum is `scale`.

    Example:
        >>> projection_simplex(jnp.array([1.0, 0.5, -1.0]))
        Array([0.75, 0.25, 0.  ], dtype=float32)
    """
    values, unravel = ravel_pytree(tree_)
    return unravel(scale * _unit_simplex(values / scale))


def projection_l1_sphere(tree_: Tree, scale: Any = 1) -> Tree:
    """The nearest tree whose absolute values sum to `scale`.

    Example:
        >>> projection_l1_sphere(jnp.array([1.0, -0.5]))
        Array([ 0.75, -0.25], dtype=float32)
    """
    sizes = projection_simplex(tree.map(jnp.abs, tree_), scale)
    return tree.map(lambda x, size: jnp.sign(x) * size, tree_, sizes)


def projection_l1_ball(tree_: Tree, scale: Any = 1) -> Tree:
    """The nearest tree whose absolute values sum to at most `scale`.

    Example:
        >>> projection_l1_ball(jnp.array([0.25, -0.5]))
        Array([ 0.25, -0.5 ], dtype=float32)
    """
    inside = otu.tree_norm(tree_, ord=1) <= scale
    return otu.tree_where(inside, tree_, projection_l1_sphere(tree_, scale))


def projection_l2_sphere(tree_: Tree, scale: Any = 1) -> Tree:
    """The nearest tree of norm `scale`.

    Example:
        >>> projection_l2_sphere(jnp.array([3.0, 4.0]), 10.0)
        Array([6., 8.], dtype=float32)
    """
    return otu.tree_scale(scale / otu.tree_norm(tree_), tree_)


def projection_l2_ball(tree_: Tree, scale: Any = 1) -> Tree:
    """The nearest tree of norm at most `scale`.

    Example:
        >>> projection_l2_ball(jnp.array([3.0, 4.0]), 10.0)
        Array([3., 4.], dtype=float32)
    """
    square = otu.tree_norm(tree_, squared=True)
    return otu.tree_scale(scale / jnp.sqrt(jnp.maximum(square, scale**2)), tree_)


def projection_linf_ball(tree_: Tree, scale: Any = 1) -> Tree:
    """The nearest tree with elements between `-scale` and `scale`.

    Example:
        >>> projection_linf_ball(jnp.array([-3.0, 0.5]))
        Array([-1. ,  0.5], dtype=float32)
    """
    return projection_box(tree_, -scale, scale)


def projection_vector(x: Tree, a: Tree) -> Tree:
    """The nearest multiple of `a`.

        (⟨x, a⟩ / ⟨a, a⟩)·a

    Example:
        >>> projection_vector(jnp.array([1.0, 2.0]), jnp.array([2.0, 0.0]))
        Array([1., 0.], dtype=float32)
    """
    return otu.tree_scale(otu.tree_vdot(x, a) / otu.tree_vdot(a, a), a)


def projection_hyperplane(x: Tree, a: Tree, b: Any) -> Tree:
    """The nearest point with ⟨a, x⟩ = b.

    Example:
        >>> projection_hyperplane(jnp.array([1.0, 2.0]), jnp.array([2.0, 0.0]), 6.0)
        Array([3., 2.], dtype=float32)
    """
    return otu.tree_add_scale(x, (b - otu.tree_vdot(x, a)) / otu.tree_vdot(a, a), a)


def projection_halfspace(x: Tree, a: Tree, b: Any) -> Tree:
    """The nearest point with ⟨a, x⟩ ≤ b.

    Example:
        >>> projection_halfspace(jnp.array([1.0, 2.0]), jnp.array([2.0, 0.0]), 6.0)
        Array([1., 2.], dtype=float32)
    """
    excess = (b - otu.tree_vdot(x, a)) / otu.tree_vdot(a, a)
    return otu.tree_add_scale(x, jnp.clip(excess, max=0), a)
