"""`Dropout`, and `inference_mode`, which turns it off."""

from __future__ import annotations

from typing import Any, TypeVar

from namoo import numpy as jnp
from namoo import random
from namoo.module.module import Module
from namoo.module.update import put_path, walk
from namoo.tree.keys import GetAttrKey

T = TypeVar("T")


class Dropout(Module):
    """Zero each element with probability p, and scale up the others.

        y = x · mask / (1 - p),    P(mask = 1) = 1 - p

    Args:
        p: the probability, a number or an array.
        inference: whether to return the input unchanged; `nn.inference_mode` sets it.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> dropout = namoo.nn.Dropout(0.5)
        >>> sorted(set(dropout(jnp.ones(100), key=namoo.random.key(0)).tolist()))
        [0.0, 2.0]
        >>> namoo.nn.inference_mode(dropout)(jnp.ones(2))
        Array([1., 1.], dtype=float32)
    """

    p: Any = 0.5
    inference: bool = False

    def __check_init__(self):
        if isinstance(self.p, (int, float)) and not 0 <= self.p <= 1:
            raise ValueError(f"p is a probability, between 0 and 1, not {self.p!r}")

    def __call__(self, x: Any, *, key: Any = None, inference: bool | None = None) -> Any:
        """Apply dropout to one example.

        Args:
            x: an array.
            key: decides which are dropped; not needed in inference.
            inference: whether to drop nothing, overriding the layer's own setting.

        Returns:
            An array of the same shape and dtype.

        Raises:
            ValueError: if there is no key.
        """
        inference = self.inference if inference is None else inference
        if inference or (isinstance(self.p, (int, float)) and self.p == 0):
            return x
        if key is None:
            raise ValueError(
                "Dropout needs a key to choose what to drop: dropout(x, key=key). To drop nothing, "
                "write dropout(x, inference=True), or model = nn.inference_mode(model)."
            )
        keep = 1 - self.p
        mask = random.bernoulli(key, keep, jnp.shape(x))
        return jnp.where(mask, x / keep, 0)


def inference_mode(model: T, value: bool = True) -> T:
    """Set the field `inference` of every layer of a model, such as `Dropout` and `BatchNorm`.

    Args:
        model: a tree with modules in it.
        value: False is for training.

    Returns:
        The model with the fields set.

    Example:
        >>> inference_mode([Dropout(), Dropout()])
        [Dropout(p=0.5, inference=True), Dropout(p=0.5, inference=True)]
    """
    for path, part in list(walk(model)):
        if isinstance(part, Module) and "inference" in type(part)._fields:
            model = put_path(model, (*path, GetAttrKey("inference")), value)
    return model
