"""Updates that are not too large: by value, by norm, relative to the parameters."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo import tree
from namoo.api.map import vmap
from namoo.optim import tree_utils as otu
from namoo.optim.base import (
    EmptyState,
    GradientTransformation,
    init_empty_state,
    map_updates,
    require_params,
)
from namoo.optim.numerics import abs_sq

__all__ = [
    "adaptive_grad_clip", "AdaptiveGradClipState", "clip", "clip_by_block_rms",
    "clip_by_global_norm", "clip_by_leaf_norm", "ClipByGlobalNormState", "ClipState",
    "per_example_global_norm_clip", "per_example_layer_norm_clip", "unitwise_clip",
    "unitwise_norm",
]  # fmt: skip

ClipState = EmptyState
ClipByGlobalNormState = EmptyState
AdaptiveGradClipState = EmptyState


def clip(max_delta: Any) -> GradientTransformation:
    """Every element of the updates within `±max_delta`.

    Example:
        >>> tx = clip(1.0)
        >>> tx.update(jnp.array([-3.0, 0.5]), tx.init(None))[0]
        Array([-1. ,  0.5], dtype=float32)
    """

    def update(updates, state, params=None):
        del params
        return otu.tree_clip(updates, -max_delta, max_delta), state

    return GradientTransformation(init_empty_state, update)


def clip_by_global_norm(max_norm: Any) -> GradientTransformation:
    """Updates whose norm, as one vector, is at most `max_norm`.

        u = g·min(1, max_norm / ‖g‖)

    Example:
        >>> tx = clip_by_global_norm(1.0)
        >>> tx.update({"w": jnp.array([3.0]), "b": jnp.array([4.0])}, tx.init(None))[0]
        {'b': Array([0.8], dtype=float32), 'w': Array([0.6], dtype=float32)}
    """

    def update(updates, state, params=None):
        del params
        size = otu.tree_norm(updates)

        def shrink(g):
            return jnp.where(size < max_norm, g, (g / size.astype(g.dtype)) * max_norm)

        return tree.map(lambda g: shrink(g).astype(g.dtype), updates), state

    return GradientTransformation(init_empty_state, update)


def clip_by_leaf_norm(max_norm: Any) -> GradientTransformation:
    """Updates each array of which has a norm of at most `max_norm`.

        u = g·min(1, max_norm / ‖g‖)   for each array by itself

    Example:
        >>> tx = clip_by_leaf_norm(1.0)
        >>> tx.update({"w": jnp.array([3.0]), "b": jnp.array([0.5])}, tx.init(None))[0]
        {'b': Array([0.5], dtype=float32), 'w': Array([1.], dtype=float32)}
    """
    whole = clip_by_global_norm(max_norm)

    def update(updates, state, params=None):
        del params
        return tree.map(lambda g: whole.update(g, state)[0], updates), state

    return GradientTransformation(init_empty_state, update)


def clip_by_block_rms(threshold: Any) -> GradientTransformation:
    """Updates each array of which has a root mean square of at most `threshold`.

        u = g / max(1, √mean(g²) / threshold)

    Example:
        >>> tx = clip_by_block_rms(1.0)
        >>> tx.update(jnp.array([2.0, -2.0]), tx.init(None))[0]
        Array([ 1., -1.], dtype=float32)
    """

    def update(updates, state, params=None):
        del params

        def shrink(g):
            return g / jnp.maximum(1.0, jnp.sqrt(jnp.mean(abs_sq(g))) / threshold)

        return tree.map(shrink, updates), state

    return GradientTransformation(init_empty_state, update)


# The axes that one unit (an output of a layer) sums over, by the rank of a layer's weights.
_UNIT_AXES = {2: (0,), 3: (0,), 4: (0, 1, 2), 5: (0, 1, 2, 3)}


def unitwise_norm(x: Any, axis: Any = None) -> Any:
    """The norm of each unit of a layer, repeated to the shape of its weights.

    Args:
        x: weights of shape `(*inputs, outputs)`; vectors and scalars are one unit.
        axis: the axes to sum over, if not those of `(*inputs, outputs)`.

    Example:
        >>> unitwise_norm(jnp.array([[3.0, 1.0], [4.0, 0.0]]))
        Array([[5., 1.],
               [5., 1.]], dtype=float32)
    """
    if axis is None and jnp.squeeze(x).ndim > 1:
        if x.ndim not in _UNIT_AXES:
            raise ValueError(
                f"unitwise_norm: no rule for weights of shape {x.shape}. Name the axes that one "
                "unit sums over with axis=(...)."
            )
        axis = _UNIT_AXES[x.ndim]
    return jnp.broadcast_to(jnp.sqrt(jnp.sum(abs_sq(x), axis=axis, keepdims=True)), x.shape)


def unitwise_clip(g_norm: Any, max_norm: Any, grad: Any, div_eps: Any = 1e-6) -> Any:
    """A gradient whose units have at most the norms `max_norm`.

    Args:
        g_norm: the norms of the gradient, in its shape.
        max_norm: the largest norms, in its shape.
        grad: the gradient.
        div_eps: the smallest norm to divide by.

    Example:
        >>> unitwise_clip(jnp.array([2.0]), jnp.array([1.0]), jnp.array([-2.0]))
        Array([-1.], dtype=float32)
    """
    if not jnp.shape(g_norm) == jnp.shape(max_norm) == jnp.shape(grad):
        raise ValueError(
            "unitwise_clip: norms and gradient must have one shape, got "
            f"{jnp.shape(g_norm)}, {jnp.shape(max_norm)} and {jnp.shape(grad)}."
        )
    return jnp.where(g_norm < max_norm, grad, grad * (max_norm / jnp.maximum(g_norm, div_eps)))


def adaptive_grad_clip(clipping: Any, eps: Any = 1e-3, axis: Any = None) -> GradientTransformation:
    """Updates that are small relative to the parameters, unit by unit.

        u = g·min(1, clipping·max(‖p‖, ε) / ‖g‖)

    Args:
        clipping: the largest ratio of the norms of a unit's update and weights.
        eps: the smallest norm of the weights.
        axis: the axes that one unit sums over; see `unitwise_norm`.

    Example:
        >>> tx = adaptive_grad_clip(0.1)
        >>> params = jnp.array([[3.0], [4.0]])
        >>> tx.update(10 * params, tx.init(params), params)[0]
        Array([[0.29999998],
               [0.39999998]], dtype=float32)
    """

    def update(updates, state, params=None):
        require_params("adaptive_grad_clip", params)

        def shrink(g, p):
            most = clipping * jnp.maximum(unitwise_norm(p, axis), eps)
            return unitwise_clip(unitwise_norm(g, axis), most, g)

        return map_updates(shrink, updates, params), state

    return GradientTransformation(init_empty_state, update)


def per_example_global_norm_clip(grads: Any, l2_norm_clip: Any) -> tuple[Any, Any]:
    """The sum of gradients, after each example's is clipped by its norm.

    Args:
        grads: a tree of gradients with examples along the first axis.
        l2_norm_clip: the largest norm of one example's gradient.

    Returns:
        the sum of the clipped gradients, and how many were clipped.

    Example:
        >>> per_example_global_norm_clip([jnp.array([[3.0], [0.5]])], 1.0)
        ([Array([1.5], dtype=float32)], Array(1, dtype=int32))
    """
    leaves = tree.leaves(grads)
    if any(g.ndim < 1 or g.shape[0] != leaves[0].shape[0] for g in leaves):
        raise ValueError(
            "per_example_global_norm_clip: every gradient needs one first axis, the examples; "
            f"got shapes {[g.shape for g in leaves]}."
        )
    norms = vmap(otu.tree_norm)(grads)
    factors = jnp.nan_to_num(jnp.minimum(l2_norm_clip / norms, 1.0), nan=1.0)
    total = tree.map(lambda g: jnp.tensordot(factors, g, axes=1), grads)
    return total, jnp.sum(factors < 1.0)


def per_example_layer_norm_clip(
    grads: Any, global_l2_norm_clip: Any, uniform: bool = True
) -> tuple[Any, Any]:
    """The sum of gradients, after each array of each example's is clipped by its norm.

    Args:
        grads: a tree of gradients with examples along the first axis.
        global_l2_norm_clip: the largest norm of one example's gradient, shared among the arrays.
        uniform: every array gets the same share; False shares in proportion to √size.

    Returns:
        the sum of the clipped gradients, and a tree of how many were clipped.

    Example:
        >>> per_example_layer_norm_clip([jnp.array([[3.0], [0.5]])], 1.0)
        ([Array([1.5], dtype=float32)], [Array(1, dtype=int32)])
    """
    leaves, structure = tree.flatten(grads)
    total = sum(g[0].size for g in leaves)
    shares = [1.0 / len(leaves) if uniform else g[0].size / total for g in leaves]
    clipped = [
        per_example_global_norm_clip(g, global_l2_norm_clip * share**0.5)
        for g, share in zip(leaves, shares, strict=True)
    ]
    sums, counts = zip(*clipped, strict=True)
    return tree.unflatten(structure, sums), tree.unflatten(structure, counts)
