"""GaLore: an optimiser of matrices in a low-rank subspace, with a small state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from namoo import lax, tree
from namoo import numpy as jnp
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    MaskOrFn,
    ScalarOrSchedule,
    Updates,
)
from namoo.optim.numerics import safe_increment
from namoo.optim.transforms.adam import scale_by_adam
from namoo.optim.transforms.adding import add_decayed_weights
from namoo.optim.transforms.combining import chain
from namoo.optim.transforms.scaling import scale_by_learning_rate

__all__ = ["galore", "GaLoreDimensionNumbers", "GaLoreState", "scale_by_galore"]


class GaLoreDimensionNumbers(NamedTuple):
    """Which axes of an array are the rows and the columns of the matrix that it represents."""

    reduction_axis: Sequence[int] | int = 0
    output_axis: Sequence[int] | int = 1


class GaLoreState(NamedTuple):
    """The number of steps, the inner state in few directions, and these directions."""

    count: Any
    base_optimizer_state: Any
    projector: Updates


class _Layout:
    """How an array is interpreted as a matrix."""

    def __init__(self, shape: tuple[int, ...], numbers: GaLoreDimensionNumbers):
        def positive(axes):
            axes = (axes,) if isinstance(axes, int) else axes
            return tuple(axis % len(shape) for axis in axes)

        rows, cols = positive(numbers.reduction_axis), positive(numbers.output_axis)
        self.order = rows + cols
        if sorted(self.order) != list(range(len(shape))):
            raise ValueError(
                f"galore: every axis of shape {shape} must be a row or a column, got {numbers}."
            )
        self.moved = tuple(shape[i] for i in self.order)
        self.size = math.prod(shape[i] for i in rows), math.prod(shape[i] for i in cols)
        # The longer side is projected.
        self.left = self.size[0] >= self.size[1]

    def matrix(self, x):
        return jnp.transpose(x, self.order).reshape(self.size)

    def array(self, m):
        back = sorted(range(len(self.order)), key=self.order.__getitem__)
        return jnp.transpose(m.reshape(self.moved), back)


def _layouts(numbers: Any, params: Any) -> list[_Layout | None]:
    """For each leaf its layout, or None where it is not projected."""
    leaves, structure = tree.flatten(params)
    if callable(numbers):
        numbers = numbers(params)
    if numbers is None:
        wanted = [GaLoreDimensionNumbers() if p.ndim == 2 else None for p in leaves]
    elif isinstance(numbers, GaLoreDimensionNumbers):
        wanted = [numbers if p.ndim > 1 else None for p in leaves]
    else:
        wanted = structure.flatten_up_to(numbers)
    return [None if n is None else _Layout(p.shape, n) for p, n in zip(leaves, wanted, strict=True)]


def scale_by_galore(
    rank: int = 128,
    update_proj_gap: int = 200,
    scale: float = 1.0,
    base_optimizer: GradientTransformation | None = None,
    weight_dimension_numbers: Any = None,
) -> GradientTransformation:
    """Apply an optimiser to the strongest directions of each gradient.

        P = the first singular vectors of g, every few steps
        u = s·P·(update of the optimiser for Pᵀ g)

    Args:
        rank: how many directions.
        update_proj_gap: the number of steps between projections.
        scale: the factor s.
        base_optimizer: the optimiser; `scale_by_adam()` by default.
        weight_dimension_numbers: a tree of `GaLoreDimensionNumbers` with None for what is not
          projected, or a function that makes one; by default all arrays of rank 2.

    Example:
        >>> tx = scale_by_galore(rank=1)
        >>> params = jnp.array([[3.0, 0.0], [0.0, 1.0]])
        >>> tx.init(params).base_optimizer_state.mu.shape
        (1, 2)
    """
    if not isinstance(rank, int):
        raise TypeError(f"scale_by_galore: rank must be an int, got {type(rank).__name__}.")
    if rank <= 0:
        raise ValueError(f"scale_by_galore: rank must be positive, got {rank}.")
    inner = scale_by_adam() if base_optimizer is None else base_optimizer

    def init(params):
        leaves, structure = tree.flatten(params)

        def start(p, layout):
            if layout is None:
                return jnp.zeros((0, 0), p.dtype), jnp.zeros_like(p)
            (m, n), kept = layout.size, min(rank, *layout.size)
            small = (kept, n) if layout.left else (m, kept)
            return jnp.zeros((max(m, n), kept), p.dtype), jnp.zeros(small, p.dtype)

        layouts = _layouts(weight_dimension_numbers, params)
        pairs = [start(p, layout) for p, layout in zip(leaves, layouts, strict=True)]
        return GaLoreState(
            jnp.zeros([], jnp.int32),
            inner.init(tree.unflatten(structure, [small for _, small in pairs])),
            tree.unflatten(structure, [projector for projector, _ in pairs]),
        )

    def update(updates, state, params=None):
        del params
        leaves, structure = tree.flatten(updates)
        layouts = _layouts(weight_dimension_numbers, updates)
        renew = state.count % update_proj_gap == 0

        def choose(g, projector, layout):
            if layout is None:
                return projector

            def strongest():
                u, _, vh = jnp.linalg.svd(layout.matrix(g).astype(jnp.float32), full_matrices=False)
                return (u if layout.left else vh.T)[:, : projector.shape[1]].astype(g.dtype)

            return lax.cond(renew, strongest, lambda: projector)

        def reduce(g, projector, layout):
            if layout is None:
                return g
            m = layout.matrix(g)
            return projector.T @ m if layout.left else m @ projector

        def expand(u, projector, layout, g):
            if layout is None:
                return u
            m = projector @ u if layout.left else u @ projector.T
            return (scale * layout.array(m)).astype(g.dtype)

        old = tree.leaves(state.projector)
        projectors = [choose(*row) for row in zip(leaves, old, layouts, strict=True)]
        small = [reduce(*row) for row in zip(leaves, projectors, layouts, strict=True)]
        steps, inner_state = inner.update(
            tree.unflatten(structure, small), state.base_optimizer_state, None
        )
        rows = zip(tree.leaves(steps), projectors, layouts, leaves, strict=True)
        new = tree.unflatten(structure, [expand(*row) for row in rows])
        return new, GaLoreState(
            safe_increment(state.count), inner_state, tree.unflatten(structure, projectors)
        )

    return GradientTransformation(init, update)


def galore(
    learning_rate: ScalarOrSchedule,
    rank: int = 128,
    update_proj_gap: int = 200,
    scale: float = 1.0,
    base_optimizer: GradientTransformation | None = None,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn = None,
    weight_dimension_numbers: Any = None,
) -> GradientTransformationExtraArgs:
    """GaLore: Adam in the strongest directions of each gradient; see `scale_by_galore`.

    Example:
        >>> opt = galore(0.1, rank=1)
        >>> params = jnp.array([[3.0, 0.0], [0.0, 1.0]])
        >>> opt.update(params, opt.init(params), params)[0].round(3)
        Array([[-0.1, -0. ],
               [-0. , -0. ]], dtype=float32)
    """
    return chain(
        scale_by_galore(rank, update_proj_gap, scale, base_optimizer, weight_dimension_numbers),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )
