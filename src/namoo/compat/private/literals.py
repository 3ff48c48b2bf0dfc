"""JAX's classes for Python numbers in a trace; namoo uses the numbers themselves.

No value is an instance of them, so `isinstance` gives the right answer.
"""

import numpy as np


class TypedInt(int):
    """An integer with a dtype."""


class TypedFloat(float):
    """A floating-point number with a dtype."""


class TypedComplex(complex):
    """A complex number with a dtype."""


class TypedNdArray:
    """A NumPy array with a weak type."""


LiteralArray = np.ndarray | TypedNdArray
