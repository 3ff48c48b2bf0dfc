"""Arguments of distributions made ready."""

from __future__ import annotations

from typing import Any

from namoo.core.array import Array
from namoo.numpy.promote import promote_inexact
from namoo.primitives.shape import convert_element_type


def settled(name: str, *args: Any) -> list[Array]:
    """`promote_inexact`, where arrays have types that are not weak; scalars keep theirs.

    JAX's formulas hold constants of the arrays' own type, which settle the type of the result.
    """
    return [
        convert_element_type(x, x.dtype) if x.shape else x for x in promote_inexact(name, *args)
    ]
