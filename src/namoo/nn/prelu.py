"""`PReLU`: a leaky rectifier with a learned slope."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo.module.module import Module


class PReLU(Module):
    """Keep positive elements, and scale negative ones by a parameter.

        y = x if x ≥ 0 else a·x

    (He et al., 2015, "Delving Deep into Rectifiers").

    Args:
        init_alpha: the initial slope a; an array of the input's shape gives each element its own.

    Example:
        >>> import namoo.numpy as jnp
        >>> PReLU(0.25)(jnp.array([2.0, -2.0]))
        Array([ 2. , -0.5], dtype=float32)
    """

    negative_slope: Any

    def __init__(self, init_alpha: Any = 0.25):
        self.negative_slope = jnp.asarray(init_alpha)

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the rectified input; `key` is not used."""
        return jnp.where(x >= 0, x, self.negative_slope * x)
