"""Token embeddings and rotary position embeddings."""

from __future__ import annotations

from typing import Any

from namoo import numpy as jnp
from namoo import random
from namoo.module.module import Module


class Embedding(Module):
    """A table with one vector per token.

        y = W[i],    W of shape (num_embeddings, embedding_size)

    W is initialised from the standard normal distribution.

    Args:
        num_embeddings: the number of tokens.
        embedding_size: the length of the vectors.
        weight: the table, instead of a random one.
        dtype: of the table.
        key: for the initial table; not needed with a given one.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> table = namoo.nn.Embedding(weight=jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> table(1), namoo.vmap(table)(jnp.array([0, 0, 1])).shape
        (Array([3., 4.], dtype=float32), (3, 2))
    """

    weight: Any
    num_embeddings: int
    embedding_size: int

    def __init__(
        self,
        num_embeddings: int | None = None,
        embedding_size: int | None = None,
        weight: Any = None,
        dtype: Any = None,
        *,
        key: Any = None,
    ):
        if weight is None:
            if num_embeddings is None or embedding_size is None or key is None:
                raise ValueError(
                    "Embedding needs num_embeddings, embedding_size and key=…, or the table as "
                    "weight=…"
                )
            dtype = jnp.zeros((), dtype).dtype
            weight = random.normal(key, (num_embeddings, embedding_size), dtype)
        wanted = (num_embeddings, embedding_size)
        if weight.ndim != 2 or any(
            n not in (None, size) for n, size in zip(wanted, weight.shape, strict=True)
        ):
            raise ValueError(
                f"the table of an Embedding must have the shape (num_embeddings, embedding_size), "
                f"but got {weight.shape} for {wanted}"
            )
        self.weight = weight
        self.num_embeddings, self.embedding_size = weight.shape

    def __call__(self, x: Any, *, key: Any = None) -> Any:
        """Return the vector of one token; `key` is not used."""
        if jnp.shape(x) != ():
            raise ValueError(
                f"Embedding takes one token, a number without axes, but got an array of shape "
                f"{jnp.shape(x)}. For several, write vmap(embedding)(x)."
            )
        return self.weight[x]


class RotaryPositionalEmbedding(Module):
    """Rotate pairs of elements of each vector by an angle that depends on its position.

        y = x·cos(mθ) + rotate(x)·sin(mθ),    θ_j = theta^(-2j/d)

    where m is the position and rotate takes (x₁, x₂), the halves of x, to (-x₂, x₁). The inner
    product of two vectors then depends on the distance of their positions (Su et al., 2021,
    "RoFormer").

    Args:
        embedding_size: the length d of the vectors, even.
        theta: the base of the frequencies.
        dtype: of sines and cosines; that of the input, but at least float32, if None.

    Example:
        >>> import namoo.numpy as jnp
        >>> RotaryPositionalEmbedding(2)(jnp.array([[1.0, 0.0], [1.0, 0.0]])).round(3)
        Array([[1.   , 0.   ],
               [0.54 , 0.841]], dtype=float32)
    """

    embedding_size: int
    theta: float = 10_000.0
    dtype: Any = None

    def __check_init__(self):
        if self.embedding_size < 0 or self.embedding_size % 2:
            raise ValueError(
                f"embedding_size must be even and not negative, not {self.embedding_size}"
            )

    def __call__(self, x: Any, *, offset: Any = 0, key: Any = None) -> Any:
        """Return the rotated sequence.

        Args:
            x: of shape (length, embedding_size), or with axes between for heads.
            offset: the position of the first vector.
            key: is not used.

        Returns:
            An array of the same shape and dtype.
        """
        size = self.embedding_size
        if x.ndim < 2 or x.shape[-1] != size:
            raise ValueError(
                f"RotaryPositionalEmbedding takes a sequence of vectors of length {size}, but got "
                f"an array of shape {x.shape}"
            )
        dtype = self.dtype or jnp.promote_types(x.dtype, jnp.float32)
        frequencies = 1.0 / self.theta ** (jnp.arange(0.0, size, 2) / size)
        positions = jnp.arange(float(x.shape[0])) + offset
        angles = jnp.tile(positions[:, None] * frequencies, (1, 2))
        angles = angles.reshape(x.shape[0], *(1,) * (x.ndim - 2), size)
        turned = jnp.concatenate([-x[..., size // 2 :], x[..., : size // 2]], axis=-1)
        y = x * jnp.cos(angles).astype(dtype) + turned * jnp.sin(angles).astype(dtype)
        return y.astype(x.dtype)
