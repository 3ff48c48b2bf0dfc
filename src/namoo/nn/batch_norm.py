"""`BatchNorm`: normalise by the statistics of a batch, with running averages in a state."""

from __future__ import annotations

from typing import Any, Literal

from namoo import lax
from namoo import numpy as jnp
from namoo.nn.layer import at_least_float32
from namoo.nn.state import State, StatefulLayer, StateIndex


class BatchNorm(StatefulLayer):
    """Normalise each channel by its mean and variance over a batch.

        y = w · (x - mean) / √(var + eps) + b

    The layer is called with one example. The mean is taken over its spatial axes and, by
    `lax.pmean`, over the axis that `vmap(…, axis_name=…)` names. In training, the statistics of the
    batch are used and their running averages updated; in inference, the averages are used:

        average ← momentum · average + (1 - momentum) · statistics

    With mode `"batch"` the averages start from zero and are divided by 1 - momentumᵗ after t steps;
    with mode `"ema"` the averages are used in training, too, and start from the first batch
    (Ioffe and Szegedy, 2015, "Batch Normalization").

    Args:
        input_size: the number of channels.
        axis_name: the name of the mapped axis, or names.
        eps: added to the variance to avoid division by zero.
        channelwise_affine: whether the layer has w and b, one of each per channel.
        momentum: the decay rate of the averages.
        inference: whether to use the averages; `nn.inference_mode` sets it.
        dtype: of w, b and the averages.
        mode: `"batch"` or `"ema"`.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> make = namoo.nn.make_with_state(namoo.nn.BatchNorm)
        >>> norm, state = make(1, axis_name="batch", eps=0.0)
        >>> batched = namoo.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        >>> y, state = batched(jnp.array([[1.0], [3.0]]), state)
        >>> y.ravel()
        Array([-1.,  1.], dtype=float32)
    """

    weight: Any
    bias: Any
    statistics: StateIndex
    axis_name: Any
    inference: bool
    input_size: int
    eps: float
    channelwise_affine: bool
    momentum: float
    mode: Literal["batch", "ema"]

    def __init__(
        self,
        input_size: int,
        axis_name: Any,
        eps: float = 1e-5,
        channelwise_affine: bool = True,
        momentum: float = 0.99,
        inference: bool = False,
        dtype: Any = None,
        mode: Literal["batch", "ema"] = "batch",
    ):
        if mode not in ("batch", "ema"):
            raise ValueError(f"mode must be 'batch' or 'ema', not {mode!r}")
        self.weight = jnp.ones(input_size, dtype) if channelwise_affine else None
        self.bias = jnp.zeros(input_size, dtype) if channelwise_affine else None
        start = jnp.zeros(input_size, dtype), jnp.ones(input_size, dtype)
        self.statistics = StateIndex((jnp.zeros((), jnp.int32), *start))
        self.axis_name = axis_name if isinstance(axis_name, str) else _hashable(axis_name)
        self.input_size, self.eps, self.momentum = input_size, eps, momentum
        self.channelwise_affine, self.inference, self.mode = channelwise_affine, inference, mode

    def __call__(
        self, x: Any, state: State, *, key: Any = None, inference: bool | None = None
    ) -> tuple[Any, State]:
        """Normalise one example of a batch.

        Args:
            x: of shape (input_size, *space).
            state: the state of the model.
            key: is not used.
            inference: whether to use the averages, overriding the layer's own setting.

        Returns:
            The normalised example, and the state with the new averages.
        """
        if x.ndim == 0 or x.shape[0] != self.input_size:
            raise ValueError(
                f"BatchNorm takes one example with {self.input_size} channels first, but got an "
                f"array of shape {x.shape}. For a batch, write vmap(norm, axis_name="
                f"{self.axis_name!r}, in_axes=(0, None), out_axes=(0, None))(x, state)."
            )
        inference = self.inference if inference is None else inference
        count, mean, var = state.get(self.statistics)
        if not inference:
            batch_mean, batch_var = self._of_batch(at_least_float32(x))
            keep = self.momentum
            new_mean = (keep * mean + (1 - keep) * batch_mean).astype(mean.dtype)
            new_var = (keep * var + (1 - keep) * batch_var).astype(var.dtype)
            if self.mode == "ema":
                new_mean = jnp.where(count == 0, batch_mean.astype(mean.dtype), new_mean)
                new_var = jnp.where(count == 0, batch_var.astype(var.dtype), new_var)
                mean, var = new_mean, new_var
            else:
                mean, var = batch_mean, batch_var
            state = state.set(self.statistics, (count + 1, new_mean, new_var))
        elif self.mode == "batch":
            # The average of the variance starts from one: no correction before the first step.
            scale = jnp.where(count == 0, 1.0, 1 - self.momentum**count)
            mean, var = mean / scale, var / scale
        return self._normalise(x, mean, var).astype(x.dtype), state

    def _of_batch(self, x: Any) -> tuple[Any, Any]:
        """Return the mean and the variance of each channel over space and batch."""
        space = tuple(range(1, x.ndim))
        mean = lax.pmean(jnp.mean(x, axis=space), self.axis_name)
        away = x - mean.reshape(-1, *(1,) * len(space))
        var = jnp.mean(jnp.real(away * jnp.conj(away)), axis=space)
        return mean, lax.pmean(var, self.axis_name)

    def _normalise(self, x: Any, mean: Any, var: Any) -> Any:
        shape = (-1, *(1,) * (x.ndim - 1))
        y = (x - mean.reshape(shape)) / jnp.sqrt(var.reshape(shape) + self.eps)
        if not self.channelwise_affine:
            return y
        return y * self.weight.reshape(shape) + self.bias.reshape(shape)


def _hashable(names: Any) -> Any:
    return tuple(names) if isinstance(names, list) else names
