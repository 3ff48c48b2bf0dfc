"""Conversion of the arguments of distributions."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.elementwise import log, log1p
from namoo.primitives.shape import convert_element_type


def promote_strong(name: str, *args: Any) -> list[Array]:
    """`promote_inexact`, where arrays have types that are not weak; scalars keep theirs.

    JAX's formulas contain constants of the arrays' type, which make the result strongly typed.
    """
    return [
        convert_element_type(x, x.dtype) if x.shape else x for x in promote_inexact(name, *args)
    ]


def log_probability(p: Array, q: Array) -> Array:
    """The logarithm of the probability p, given also q = 1 - p: exact near 0 and near 1."""
    small, q = p < 0.5, convert_element_type(q, p.dtype, p.weak_type)
    return jnp.where(small, log(p), log1p(-jnp.where(small, 0, q)))
