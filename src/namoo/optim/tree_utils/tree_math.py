"""Arithmetic on trees of arrays: leaf by leaf, or over all leaves together."""

from __future__ import annotations

import operator
from typing import Any

from namoo import lax, tree
from namoo import numpy as jnp
from namoo.optim.base import map_updates
from namoo.optim.numerics import abs_sq

__all__ = [
    "tree_add", "tree_add_scale", "tree_allclose", "tree_batch_shape", "tree_bias_correction",
    "tree_clip", "tree_conj", "tree_div", "tree_full_like", "tree_max", "tree_min", "tree_mul",
    "tree_norm", "tree_ones_like", "tree_real", "tree_scale", "tree_size", "tree_sub", "tree_sum",
    "tree_update_infinity_moment", "tree_update_moment", "tree_update_moment_per_elem_norm",
    "tree_vdot", "tree_where", "tree_zeros_like",
]  # fmt: skip

Array = Any
Tree = Any


def tree_add(tree_x: Tree, tree_y: Tree, *other_trees: Tree) -> Tree:
    """The sum of trees, leaf by leaf.

    Example:
        >>> tree_add({"a": 1.0}, {"a": 2.0}, {"a": 3.0})
        {'a': 6.0}
    """
    return tree.map(lambda *leaves: sum(leaves), tree_x, tree_y, *other_trees)


def tree_sub(tree_x: Tree, tree_y: Tree) -> Tree:
    """The difference of two trees, leaf by leaf.

    Example:
        >>> tree_sub([3.0], [1.0])
        [2.0]
    """
    return tree.map(operator.sub, tree_x, tree_y)


def tree_mul(tree_x: Tree, tree_y: Tree) -> Tree:
    """The product of two trees, leaf by leaf.

    Example:
        >>> tree_mul([3.0], [2.0])
        [6.0]
    """
    return tree.map(operator.mul, tree_x, tree_y)


def tree_div(tree_x: Tree, tree_y: Tree) -> Tree:
    """The quotient of two trees, leaf by leaf.

    Example:
        >>> tree_div([3.0], [2.0])
        [1.5]
    """
    return tree.map(operator.truediv, tree_x, tree_y)


def tree_scale(scalar: Any, tree_: Tree) -> Tree:
    """A tree times a number.

    Example:
        >>> tree_scale(2.0, {"a": 1.5})
        {'a': 3.0}
    """
    return tree.map(lambda x: scalar * x, tree_)


def tree_add_scale(tree_x: Tree, scalar: Any, tree_y: Tree) -> Tree:
    """`x + scalar·y`, leaf by leaf.

    Example:
        >>> tree_add_scale(jnp.array([1.0]), 0.5, jnp.array([4.0]))
        Array([3.], dtype=float32)
    """
    scalar = jnp.asarray(scalar)
    return map_updates(lambda x, y: x + scalar * y, tree_x, tree_y)


def tree_vdot(tree_x: Tree, tree_y: Tree) -> Array:
    """The inner product of two trees, conjugate in the first.

        Σ conj(x)·y  over all elements of all leaves

    Example:
        >>> tree_vdot({"a": jnp.array([1.0, 2.0])}, {"a": jnp.array([3.0, 4.0])})
        Array(11., dtype=float32)
    """
    products = tree.map(
        lambda x, y: jnp.vdot(x, y, precision=lax.Precision.HIGHEST), tree_x, tree_y
    )
    return tree.reduce(operator.add, products, 0)


def tree_sum(tree_: Tree, associative_reduction: bool = False) -> Array:
    """The sum of all elements of all leaves.

    Args:
        tree_: a tree of arrays.
        associative_reduction: add the leaves in pairs rather than one after the other.

    Example:
        >>> tree_sum([jnp.array([1.0, 2.0]), 3.0])
        Array(6., dtype=float32)
    """
    sums = tree.map(jnp.sum, tree_)
    if associative_reduction:
        return tree.reduce_associative(operator.add, sums, identity=0)
    return tree.reduce(operator.add, sums, 0)


def tree_max(tree_: Tree) -> Array:
    """The largest element of all leaves; -inf for a tree without elements.

    Example:
        >>> tree_max([jnp.array([1.0, 5.0]), 3.0])
        Array(5., dtype=float32)
    """
    tops = [jnp.max(x) for x in tree.leaves(tree_) if jnp.size(x)]
    return tree.reduce(jnp.maximum, tops, -float("inf"))


def tree_min(tree_: Tree) -> Array:
    """The smallest element of all leaves; inf for a tree without elements.

    Example:
        >>> tree_min([jnp.array([1.0, 5.0]), 3.0])
        Array(1., dtype=float32)
    """
    bottoms = [jnp.min(x) for x in tree.leaves(tree_) if jnp.size(x)]
    return tree.reduce(jnp.minimum, bottoms, float("inf"))


def tree_size(tree_: Tree) -> int:
    """The number of elements of all leaves.

    Example:
        >>> tree_size({"w": jnp.ones((2, 3)), "b": jnp.ones(3)})
        9
    """
    return sum(jnp.size(x) for x in tree.leaves(tree_))


def tree_conj(tree_: Tree) -> Tree:
    """The complex conjugate of every leaf.

    Example:
        >>> tree_conj([jnp.array(1 + 2j)])
        [Array(1.-2.j, dtype=complex64, weak_type=True)]
    """
    return tree.map(jnp.conj, tree_)


def tree_real(tree_: Tree) -> Tree:
    """The real part of every leaf.

    Example:
        >>> tree_real([jnp.array(1 + 2j)])
        [Array(1., dtype=float32, weak_type=True)]
    """
    return tree.map(jnp.real, tree_)


def tree_norm(tree_: Tree, ord: Any = None, squared: bool = False) -> Array:
    """The norm of a tree as one long vector.

        ord 2:  √(Σ |x|²)      ord 1:  Σ |x|      ord inf:  max |x|

    Args:
        tree_: a tree of arrays.
        ord: 2 (the default), 1, or inf, also as 'inf' or 'infinity'.
        squared: return the square of the norm.

    Example:
        >>> tree_norm({"w": jnp.array([3.0]), "b": jnp.array([4.0])})
        Array(5., dtype=float32)
    """
    if ord is None or ord == 2:
        total = tree_sum(tree.map(abs_sq, tree_))
        return jnp.array(total if squared else jnp.sqrt(total))
    if ord == 1:
        size = tree_sum(tree.map(jnp.abs, tree_))
    elif ord in (float("inf"), "inf", "infinity"):
        size = tree_max(tree.map(jnp.abs, tree_))
    else:
        raise ValueError(f"tree_norm: ord must be 1, 2 or inf, got {ord!r}.")
    return jnp.array(jnp.square(size) if squared else size)


def global_norm(updates: Tree) -> Array:
    """The Euclidean norm of a tree, `tree_norm` under its older name.

    Example:
        >>> global_norm([jnp.array([3.0]), jnp.array([4.0])])
        Array(5., dtype=float32)
    """
    return tree_norm(updates)


def tree_batch_shape(tree_: Tree, shape: tuple[int, ...] = ()) -> Tree:
    """Every leaf repeated along new leading axes.

    Example:
        >>> tree_batch_shape(jnp.array([1.0, 2.0]), (2,)).shape
        (2, 2)
    """
    return tree.map(lambda x: jnp.broadcast_to(x, (*shape, *jnp.shape(x))), tree_)


def tree_zeros_like(tree_: Tree, dtype: Any = None) -> Tree:
    """A tree of zeros with the same shapes.

    Example:
        >>> tree_zeros_like({"a": jnp.ones(2)})
        {'a': Array([0., 0.], dtype=float32)}
    """
    return tree.map(lambda x: jnp.zeros_like(x, dtype=dtype), tree_)


def tree_ones_like(tree_: Tree, dtype: Any = None) -> Tree:
    """A tree of ones with the same shapes.

    Example:
        >>> tree_ones_like([jnp.zeros(2)])
        [Array([1., 1.], dtype=float32)]
    """
    return tree.map(lambda x: jnp.ones_like(x, dtype=dtype), tree_)


def tree_full_like(tree_: Tree, fill_value: Any, dtype: Any = None) -> Tree:
    """A tree of one value with the same shapes.

    Example:
        >>> tree_full_like([jnp.zeros(2)], 0.5)
        [Array([0.5, 0.5], dtype=float32)]
    """
    return tree.map(lambda x: jnp.full_like(x, fill_value, dtype=dtype), tree_)


def tree_clip(tree_: Tree, min_value: Any = None, max_value: Any = None) -> Tree:
    """Every element moved into `[min_value, max_value]`.

    Example:
        >>> tree_clip(jnp.array([-3.0, 0.5]), -1.0, 1.0)
        Array([-1. ,  0.5], dtype=float32)
    """
    return tree.map(lambda x: jnp.clip(x, min_value, max_value), tree_)


def tree_update_moment(updates: Tree, moments: Tree, decay: Any, order: int) -> Tree:
    """An exponential moving average of powers of the updates.

        m ← (1 - decay)·gᵒʳᵈᵉʳ + decay·m

    Example:
        >>> tree_update_moment(jnp.array([2.0]), jnp.array([1.0]), 0.5, 1)
        Array([1.5], dtype=float32)
    """
    return map_updates(lambda g, m: (1 - decay) * g**order + decay * m, updates, moments)


def tree_update_infinity_moment(updates: Tree, moments: Tree, decay: Any, eps: Any) -> Tree:
    """A decaying maximum of the updates' sizes.

        m ← max(|g| + ε, decay·m)

    Example:
        >>> tree_update_infinity_moment(jnp.array([2.0]), jnp.array([8.0]), 0.5, 0.0)
        Array([4.], dtype=float32)
    """
    return map_updates(lambda g, m: jnp.maximum(jnp.abs(g) + eps, decay * m), updates, moments)


def tree_update_moment_per_elem_norm(updates: Tree, moments: Tree, decay: Any, order: int) -> Tree:
    """Like `tree_update_moment`, with the absolute values of complex updates.

        m ← (1 - decay)·|g|ᵒʳᵈᵉʳ + decay·m

    Example:
        >>> tree_update_moment_per_elem_norm(jnp.array([3 + 4j]), jnp.array([0.0]), 0.5, 2)
        Array([12.5], dtype=float32)
    """

    def power(g):
        if jnp.isrealobj(g):
            return g**order
        return abs_sq(g) ** (order // 2 if order % 2 == 0 else order / 2)

    return map_updates(lambda g, m: (1 - decay) * power(g) + decay * m, updates, moments)


def tree_bias_correction(moment: Tree, decay: Any, count: Any) -> Tree:
    """A moving average, corrected for the bias of its start at zero.

        m / (1 - decayᶜᵒᵘⁿᵗ)

    Example:
        >>> tree_bias_correction(jnp.array([0.5]), 0.5, jnp.array(1))
        Array([1.], dtype=float32)
    """
    weight = jnp.asarray(1 - decay ** jnp.asarray(count))
    return tree.map(lambda m: m / weight.astype(m.dtype), moment)


def tree_where(condition: Any, tree_x: Tree, tree_y: Tree) -> Tree:
    """One tree where the condition holds, the other elsewhere.

    Example:
        >>> tree_where(True, [1.0], [2.0])
        [Array(1., dtype=float32, weak_type=True)]
    """
    return tree.map(lambda x, y: jnp.where(condition, x, y), tree_x, tree_y)


def tree_allclose(
    a: Tree, b: Tree, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Array:
    """Whether two trees are equal up to rounding.

    Example:
        >>> tree_allclose([1.0], [1.0 + 1e-7])
        Array(True, dtype=bool)
    """
    same = tree.map(lambda x, y: jnp.allclose(x, y, rtol, atol, equal_nan), a, b)
    return tree.reduce(operator.and_, same, jnp.array(True))
