"""Muon: updates of matrices that are made orthogonal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from namoo import lax, tree
from namoo import numpy as jnp
from namoo.api.map import vmap
from namoo.optim import tree_utils as otu
from namoo.optim.alias import adamw
from namoo.optim.base import (
    GradientTransformation,
    MaskOrFn,
    ScalarOrSchedule,
    Updates,
    init_empty_state,
)
from namoo.optim.numerics import safe_increment
from namoo.optim.transforms.adam import first_moment
from namoo.optim.transforms.adding import add_decayed_weights
from namoo.optim.transforms.combining import chain, partition
from namoo.optim.transforms.masking import MaskedNode
from namoo.optim.transforms.scaling import scale_by_learning_rate
from namoo.optim.tree_utils.casting import canonical

__all__ = [
    "muon", "MuonDimensionNumbers", "MuonState", "orthogonalize_via_newton_schulz",
    "scale_by_muon", "scale_by_shape",
]  # fmt: skip

# Coefficients (a, b, c) of the polynomial a·x + b·x³ + c·x⁵ that maps singular values to about 1:
# one polynomial for all steps, or one for each step.
_STANDARD = (3.4445, -4.7750, 2.0315)
_PRESETS: dict[str, Any] = {
    "standard": _STANDARD,
    "dion": (
        (4.0848, -6.8946, 2.9270),
        (3.9505, -6.3029, 2.6377),
        (3.7418, -5.5913, 2.3037),
        (2.8769, -3.1427, 1.2046),
        (2.8366, -3.0525, 1.2012),
    ),
}


class MuonDimensionNumbers(NamedTuple):
    """Which axes of an array are the inputs and the outputs of the matrix that it represents.

    All other axes are batches of matrices.
    """

    reduction_axis: Sequence[int] | int = 0
    output_axis: Sequence[int] | int = 1


def _is_numbers(x: Any) -> bool:
    return isinstance(x, MuonDimensionNumbers)


def _axes(x: Any, numbers: MuonDimensionNumbers) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of inputs and outputs, counted from 0."""

    def positive(axes):
        axes = (axes,) if isinstance(axes, int) else axes
        return tuple(axis % x.ndim for axis in axes)

    if x.ndim < 2:
        raise ValueError(f"muon: arrays must have rank 2 or more, got shape {x.shape}.")
    rows, cols = positive(numbers.reduction_axis), positive(numbers.output_axis)
    if set(rows) & set(cols):
        raise ValueError(
            f"muon: an axis cannot be input and output, got {numbers} for shape {x.shape}."
        )
    return rows, cols


def _fans(x: Any, numbers: MuonDimensionNumbers) -> tuple[int, int]:
    rows, cols = _axes(x, numbers)
    return math.prod(x.shape[i] for i in rows), math.prod(x.shape[i] for i in cols)


def _newton_schulz(x, coefficients):
    """One step of the polynomial: a·X + b·(XXᵀ)X + c·(XXᵀ)²X."""
    a, b, c = coefficients
    square = x @ x.T.conj()
    return a * x + (b * square + c * square @ square) @ x


def _by_row_sums(x, eps):
    """Rows over the roots of the sums of |XXᵀ|, a bound of the singular values (AOL)."""
    sums = jnp.clip(jnp.abs(x @ x.T.conj()).sum(axis=-1), min=eps)
    return x * lax.rsqrt(sums)[:, None]


def _by_schatten_norm(x, eps):
    """X over the root of the norm of XXᵀ."""
    return x * lax.rsqrt(jnp.clip(jnp.linalg.norm(x @ x.T), min=eps))


# Preconditioners that bring singular values below 1. The last two use a fixed epsilon.
_PRECONDITIONERS: dict[str, Callable[[Any, Any], Any]] = {
    "frobenius": lambda x, eps: x / (jnp.linalg.norm(x) + eps),
    "spectral": lambda x, eps: x / (jnp.linalg.norm(x, ord=2) + eps),
    "aol": lambda x, eps: _by_row_sums(x, 1e-8),
    "schatten": lambda x, eps: _by_schatten_norm(x, 1e-8),
}


def orthogonalize_via_newton_schulz(
    x: Any,
    ns_coeffs: Any,
    ns_steps: int = 5,
    preconditioning: str = "frobenius",
    eps: Any = 1e-8,
    dimension_numbers: MuonDimensionNumbers | None = None,
) -> Any:
    """The nearest matrix with orthogonal rows or columns, nearly.

        X ← X / ‖X‖,   then repeatedly   X ← a·X + b·(XXᵀ)X + c·(XXᵀ)²X

    Args:
        x: a matrix, or an array of matrices with `dimension_numbers`.
        ns_coeffs: (a, b, c), or one such row for each step.
        ns_steps: the number of steps, for a single row.
        preconditioning: what divides X first: 'frobenius', 'spectral', 'aol' or 'schatten'.
        eps: added to the norm.
        dimension_numbers: which axes are inputs and outputs.

    Example:
        >>> x = jnp.array([[2.0, 0.0], [0.0, 1.0]])
        >>> orthogonalize_via_newton_schulz(x, jnp.array([3.4445, -4.7750, 2.0315])).round(1)
        Array([[0.7, 0. ],
               [0. , 1.1]], dtype=float32)
    """
    if x.ndim != 2 and not _is_numbers(dimension_numbers):
        raise ValueError(
            f"orthogonalize_via_newton_schulz: x has shape {x.shape}; if it is not a matrix, say "
            "with dimension_numbers=MuonDimensionNumbers(...) which axes form the matrix."
        )
    if preconditioning not in _PRECONDITIONERS:
        raise ValueError(
            f"orthogonalize_via_newton_schulz: preconditioning must be one of "
            f"{list(_PRECONDITIONERS)}, got {preconditioning!r}."
        )
    ns_coeffs = jnp.asarray(ns_coeffs)
    _check_coefficients(ns_coeffs)
    numbers = MuonDimensionNumbers() if x.ndim == 2 else dimension_numbers
    assert numbers is not None
    rows, cols = _axes(x, numbers)
    batch = tuple(i for i in range(x.ndim) if i not in rows + cols)
    order = batch + rows + cols
    moved = jnp.transpose(x, order)
    matrices = moved.reshape(math.prod(x.shape[i] for i in batch), *_fans(x, numbers))

    def orthogonalize(m):
        wide = m.T if m.shape[0] > m.shape[1] else m
        wide = _PRECONDITIONERS[preconditioning](wide, eps)
        table = ns_coeffs.astype(m.dtype)
        rounds = [table] * ns_steps if table.ndim == 1 else list(table)
        for coefficients in rounds:
            wide = _newton_schulz(wide, coefficients)
        return wide.T if m.shape[0] > m.shape[1] else wide

    back = sorted(range(x.ndim), key=order.__getitem__)
    return jnp.transpose(vmap(orthogonalize)(matrices).reshape(moved.shape), back)


def _check_coefficients(coefficients: Any) -> None:
    if coefficients.ndim not in (1, 2) or coefficients.shape[-1] != 3:
        raise ValueError(
            f"muon: ns_coeffs must have shape (3,) or (steps, 3), got {coefficients.shape}."
        )


def _resolve(numbers: Any, updates: Updates) -> Any:
    """For each update its dimension numbers; without any, those of matrices."""
    if callable(numbers):
        numbers = numbers(updates)
    if numbers is None:
        numbers = MuonDimensionNumbers()
    if _is_numbers(numbers):
        return tree.map(lambda _: numbers, updates)
    return numbers


class MuonState(NamedTuple):
    """The number of steps, the average of gradients, and the coefficients."""

    count: Any
    mu: Updates
    ns_coeffs: Any


def scale_by_muon(
    ns_coeffs: Any = _STANDARD,
    ns_steps: int = 5,
    beta: Any = 0.95,
    eps: Any = 1e-8,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
    adaptive: bool = False,
    preconditioning: str = "frobenius",
    weight_dimension_numbers: Any = None,
) -> GradientTransformation:
    """Averages of gradients, made orthogonal.

        m ← β·m + (1 - β)·g,   u = orthogonal(m̂)       (adaptive: ⟨m̂, u⟩·u)

    Args:
        ns_coeffs: coefficients of `orthogonalize_via_newton_schulz`.
        ns_steps: its number of steps.
        beta: decay rate of the average.
        eps: added to the norm.
        mu_dtype: the type of the average; that of the parameters by default.
        nesterov: use Nesterov momentum.
        adaptive: scale updates to the length of the average's projection on them.
        preconditioning: what divides the matrix first.
        weight_dimension_numbers: a tree of `MuonDimensionNumbers`, or a function that makes one.

    Example:
        >>> tx = scale_by_muon()
        >>> params = jnp.array([[2.0, 0.0], [0.0, 1.0]])
        >>> tx.update(params, tx.init(params))[0].round(1)
        Array([[0.7, 0. ],
               [0. , 1.1]], dtype=float32)
    """
    mu_dtype = canonical(mu_dtype)

    def init(params):
        table = jnp.asarray(ns_coeffs)
        _check_coefficients(table)
        if table.ndim == 2:
            if table.shape[0] > ns_steps:
                raise ValueError(
                    f"muon: ns_coeffs has {table.shape[0]} rows for ns_steps={ns_steps} steps."
                )
            table = table[-ns_steps:]
        mu = otu.tree_zeros_like(params, mu_dtype)
        return MuonState(jnp.zeros([], jnp.int32), mu, table)

    def update(updates, state, params=None):
        del params
        numbers = _resolve(weight_dimension_numbers, updates)
        count = safe_increment(state.count)
        mu = otu.tree_update_moment(updates, state.mu, beta, 1)
        mu_hat = first_moment(updates, mu, beta, count, nesterov)
        new = tree.map(
            lambda m, n: orthogonalize_via_newton_schulz(
                m, state.ns_coeffs, ns_steps, preconditioning, eps, n
            ),
            mu_hat,
            numbers,
        )
        if adaptive:
            new = tree.map(lambda m, u: jnp.sum(m.conj() * u) * u, mu_hat, new)
        return new, MuonState(count, otu.tree_cast(mu, mu_dtype), state.ns_coeffs)

    return GradientTransformation(init, update)


def scale_by_shape(
    weight_dimension_numbers: Any = None, consistent_rms: Any = None
) -> GradientTransformation:
    """Updates times a factor of the matrix's shape.

        √max(1, outputs / inputs),   or with `consistent_rms` = c   c·√max(inputs, outputs)

    Example:
        >>> tx = scale_by_shape()
        >>> tx.update(jnp.ones((1, 4)), tx.init(None))[0]
        Array([[2., 2., 2., 2.]], dtype=float32)
    """

    def update(updates, state, params=None):
        del params

        def rescale(u, numbers):
            fan_in, fan_out = _fans(u, numbers)
            if consistent_rms is None:
                return math.sqrt(max(1, fan_out / fan_in)) * u
            return math.sqrt(max(fan_in, fan_out)) * consistent_rms * u

        return tree.map(rescale, updates, _resolve(weight_dimension_numbers, updates)), state

    return GradientTransformation(init_empty_state, update)


def muon(
    learning_rate: ScalarOrSchedule,
    ns_coeffs: Any = _STANDARD,
    ns_steps: int = 5,
    beta: Any = 0.95,
    eps: Any = 1e-8,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn = None,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
    adaptive: bool = False,
    preconditioning: str = "frobenius",
    adam_b1: Any = 0.9,
    adam_b2: Any = 0.999,
    adam_eps_root: Any = 0.0,
    adam_weight_decay: ScalarOrSchedule = 0.0,
    adam_learning_rate: ScalarOrSchedule | None = None,
    muon_weight_dimension_numbers: Any = None,
    consistent_rms: Any = None,
) -> GradientTransformation:
    """Muon for matrices, AdamW for all other parameters.

        m ← β·m + (1 - β)·g,   u = -α·(√max(1, outputs / inputs)·orthogonal(m̂) + λ·p)

    Args:
        learning_rate: a number or a schedule.
        ns_coeffs: coefficients of `orthogonalize_via_newton_schulz`, or 'standard' or 'dion'.
        ns_steps: its number of steps.
        beta: decay rate of the average.
        eps: added to norms and roots.
        weight_decay: the factor λ for matrices.
        weight_decay_mask: which parameters decay.
        mu_dtype: the type of the averages.
        nesterov: use Nesterov momentum.
        adaptive: scale updates to the length of the average's projection on them.
        preconditioning: what divides the matrix first.
        adam_b1: b1 of AdamW.
        adam_b2: b2 of AdamW.
        adam_eps_root: ε_root of AdamW.
        adam_weight_decay: λ of AdamW.
        adam_learning_rate: the learning rate of AdamW; the same by default.
        muon_weight_dimension_numbers: a tree of `MuonDimensionNumbers`, with None for arrays that
          go to AdamW, or a function that makes one; by default all arrays of rank 2.
        consistent_rms: see `scale_by_shape`.

    Example:
        >>> opt = muon(0.1)
        >>> params = {"w": jnp.array([[2.0, 0.0], [0.0, 1.0]]), "b": jnp.array([1.0, 2.0])}
        >>> updates, state = opt.update(params, opt.init(params), params)
        >>> updates["b"]
        Array([-0.14736743, -0.14736743], dtype=float32)
    """
    if isinstance(ns_coeffs, str):
        if ns_coeffs not in _PRESETS:
            raise ValueError(f"muon: ns_coeffs must be one of {list(_PRESETS)}, got {ns_coeffs!r}.")
        ns_coeffs = _PRESETS[ns_coeffs]

    def numbers_of(params):
        """For each array its dimension numbers, or None where it goes to AdamW."""
        numbers = muon_weight_dimension_numbers
        if numbers is None:
            return tree.map(lambda p: MuonDimensionNumbers() if p.ndim == 2 else None, params)
        numbers = numbers(params) if callable(numbers) else numbers
        return tree.map(
            lambda n, part: tree.map(lambda _: n, part),
            numbers,
            params,
            is_leaf=lambda x: x is None or _is_numbers(x),
        )

    def is_end(x):
        return x is None or _is_numbers(x)

    def labels(params):
        return tree.map(
            lambda n: "adam" if n is None else "muon", numbers_of(params), is_leaf=is_end
        )

    def masked_numbers(params):
        # Inside the mask other arrays are `MaskedNode`, which has no leaves to map.
        return tree.map(
            lambda n: MaskedNode() if n is None else n, numbers_of(params), is_leaf=is_end
        )

    matrices = chain(
        scale_by_muon(
            ns_coeffs,
            ns_steps,
            beta,
            eps,
            mu_dtype,
            nesterov=nesterov,
            adaptive=adaptive,
            preconditioning=preconditioning,
            weight_dimension_numbers=masked_numbers,
        ),
        scale_by_shape(masked_numbers, consistent_rms),
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_learning_rate(learning_rate),
    )
    others = adamw(
        learning_rate if adam_learning_rate is None else adam_learning_rate,
        adam_b1,
        adam_b2,
        eps,
        adam_eps_root,
        mu_dtype,
        adam_weight_decay,
        nesterov=nesterov,
    )
    return partition({"muon": matrices, "adam": others}, labels)
