"""`EMA`: an exponential moving average of parameters."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo import struct, tree
from namoo.optim.base import incremental_update


@struct.dataclass
class EMA:
    """An exponential moving average of parameters.

        a ← d·a + (1 - d)·p,        average = a / (1 - dⁿ)

    Args:
        biased: the sum before it is corrected for its start at zero.
        count: how many trees it averages.
        decay: d.
        debias: whether it starts at zero and is corrected, or starts at the first parameters.

    Example:
        >>> import namoo.numpy as jnp
        >>> ema = EMA.create({"w": jnp.zeros(1)}, decay=0.5)
        >>> ema = ema.update({"w": jnp.array([1.0])}).update({"w": jnp.array([4.0])})
        >>> ema.average
        {'w': Array([3.], dtype=float32)}
    """

    biased: Any
    count: Any
    decay: float = struct.field(static=True, default=0.999)
    debias: bool = struct.field(static=True, default=True)

    @classmethod
    def create(cls, params: Any, decay: float = 0.999, debias: bool = True) -> EMA:
        """Return the average before the first update.

        Raises:
            ValueError: if the decay is not in [0, 1).
        """
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be at least 0 and below 1, not {decay}.")
        start = tree.map(jnp.zeros_like, params) if debias else params
        return cls(start, jnp.zeros((), jnp.int32), decay, debias)

    def update(self, params: Any) -> EMA:
        """Return the average after one more tree."""
        biased = incremental_update(params, self.biased, 1 - self.decay)
        return EMA(biased, self.count + 1, self.decay, self.debias)

    @property
    def average(self) -> Any:
        """The averaged parameters; before the first update, the initial ones."""
        if not self.debias:
            return self.biased
        weight = 1 - self.decay ** jnp.maximum(self.count, 1).astype(jnp.float32)
        return tree.map(lambda a: (a / weight).astype(a.dtype), self.biased)
