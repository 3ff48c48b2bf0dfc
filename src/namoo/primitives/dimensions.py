"""Symbolic dimensions as values: an array whose number is the size that an axis will have."""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo._base import dtypes
from namoo.core.avals import ShapedArray
from namoo.core.primitive import Primitive
from namoo.dimensions.sizes import is_symbolic
from namoo.primitives.shape import convert_element_type


class DimAsValue(Primitive):
    """The value of a dimension. It has no operands; the size is known when a program is called."""

    name = "dim_as_value"
    sets_weak = True

    def evaluate(self, *, dim):
        return np.asarray(int(dim), dtypes.default_int_dtype())

    def abstract(self, *, dim):
        return ShapedArray((), dtypes.default_int_dtype(), True)

    def weak_result(self, weak, params):
        return True

    def native(self, emit, *, dim):
        return emit.dimension(dim, dtypes.default_int_dtype())

    def stablehlo(self, hlo, *, dim):
        return hlo.constant(np.asarray(int(dim), dtypes.default_int_dtype()))


dim_as_value_p = DimAsValue()


def dim_as_value(dim: Any) -> Any:
    """A size as an integer array of shape ()."""
    return dim_as_value_p.bind(dim=dim)


def size_array(size: Any, dtype: Any) -> Any:
    """A size as a scalar of a type, modulo its range: NumPy's if it is known."""
    if is_symbolic(size):
        return convert_element_type(dim_as_value(size), dtype)
    return np.asarray(size).astype(dtype)
