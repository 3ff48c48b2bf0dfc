"""Complex parameters as pairs of real ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from namoo import numpy as jnp
from namoo import tree
from namoo.optim.base import GradientTransformation

__all__ = ["split_real_and_imaginary", "SplitRealAndImaginaryArrays", "SplitRealAndImaginaryState"]


class SplitRealAndImaginaryArrays(NamedTuple):
    """The two parts of a complex array."""

    real: Any
    imaginary: Any


class SplitRealAndImaginaryState(NamedTuple):
    """The state of the inner transformation."""

    inner_state: Any


def _is_pair(x: Any) -> bool:
    return isinstance(x, SplitRealAndImaginaryArrays)


def _split(x: Any) -> Any:
    return SplitRealAndImaginaryArrays(x.real, x.imag) if jnp.iscomplexobj(x) else x


def split_real_and_imaginary(inner: GradientTransformation) -> GradientTransformation:
    """Apply a transformation to real and imaginary parts as to two arrays.

    Example:
        >>> from namoo.optim import scale_by_sign
        >>> tx = split_real_and_imaginary(scale_by_sign())
        >>> tx.update(jnp.array([3.0 - 4.0j]), tx.init(jnp.array([0j])))[0]
        Array([1.-1.j], dtype=complex64)
    """

    def init(params):
        return SplitRealAndImaginaryState(inner.init(tree.map(_split, params)))

    def update(updates, state, params=None):
        new, inner_state = inner.update(
            tree.map(_split, updates), state.inner_state, tree.map(_split, params)
        )
        joined = tree.map(
            lambda x: x.real + x.imaginary * 1j if _is_pair(x) else x, new, is_leaf=_is_pair
        )
        return joined, SplitRealAndImaginaryState(inner_state)

    return GradientTransformation(init, update)
