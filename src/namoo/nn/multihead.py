"""`MultiheadAttention`, with masks, grouped queries and rotary positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from namoo import numpy as jnp
from namoo import random
from namoo.api.map import vmap
from namoo.module.module import Module
from namoo.nn.dropout import Dropout
from namoo.nn.embedding import RotaryPositionalEmbedding
from namoo.nn.layer import at_least_float32, check_rank
from namoo.nn.linear import Linear
from namoo.nn.normalize import softmax


class MultiheadAttention(Module):
    """Attention of one sequence to another by several heads.

        y = W_o · concat_h softmax(Q_h K_hᵀ / √d) V_h

    with Q_h = W_q,h·query, K_h = W_k,h·key_ and V_h = W_v,h·value. With fewer heads of keys and
    values than of queries, each is shared by a group of query heads (Vaswani et al., 2017,
    "Attention is all you need"; Ainslie et al., 2023, "GQA").

    Args:
        num_heads: the number of heads.
        query_size: the length of the vectors of the query.
        key_size: of the keys; as the query, if None.
        value_size: of the values; as the query, if None.
        output_size: of the result; as the query, if None.
        qk_size: the length d of queries and keys in a head; query_size // num_heads, if None.
        vo_size: the length of values in a head; query_size // num_heads, if None.
        use_query_bias: whether the projection of the query has a bias.
        use_key_bias: whether that of the keys has one.
        use_value_bias: whether that of the values has one.
        use_output_bias: whether that of the result has one.
        dropout_p: the probability with which a weight of the attention is dropped.
        inference: whether nothing is dropped; `nn.inference_mode` sets it.
        num_kv_heads: the number of key and value heads, a divisor of num_heads.
        rotary: rotate queries and keys by their positions: True, or a `RotaryPositionalEmbedding`.
        dtype: of the projections.
        key: for the initial parameters.

    Example:
        >>> import namoo, namoo.numpy as jnp
        >>> attention = namoo.nn.MultiheadAttention(4, 8, num_kv_heads=2, key=namoo.random.key(0))
        >>> x = jnp.ones((5, 8))
        >>> attention(x, x, x, is_causal=True).shape
        (5, 8)
    """

    query_proj: Linear
    key_proj: Linear
    value_proj: Linear
    output_proj: Linear
    dropout: Dropout
    rotary: RotaryPositionalEmbedding | None
    num_heads: int
    num_kv_heads: int
    query_size: int
    key_size: int
    value_size: int
    output_size: int
    qk_size: int
    vo_size: int

    def __init__(
        self,
        num_heads: int,
        query_size: int,
        key_size: int | None = None,
        value_size: int | None = None,
        output_size: int | None = None,
        qk_size: int | None = None,
        vo_size: int | None = None,
        use_query_bias: bool = False,
        use_key_bias: bool = False,
        use_value_bias: bool = False,
        use_output_bias: bool = False,
        dropout_p: float = 0.0,
        inference: bool = False,
        num_kv_heads: int | None = None,
        rotary: bool | RotaryPositionalEmbedding = False,
        dtype: Any = None,
        *,
        key: Any,
    ):
        self.num_heads, self.query_size = num_heads, query_size
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_kv_heads must divide num_heads, but {self.num_kv_heads} does not divide "
                f"{num_heads}"
            )
        self.key_size = query_size if key_size is None else key_size
        self.value_size = query_size if value_size is None else value_size
        self.output_size = query_size if output_size is None else output_size
        self.qk_size = query_size // num_heads if qk_size is None else qk_size
        self.vo_size = query_size // num_heads if vo_size is None else vo_size
        q, k, v, o = random.split(key, 4)
        inner_k, inner_v = self.num_kv_heads * self.qk_size, self.num_kv_heads * self.vo_size
        self.query_proj = Linear(query_size, num_heads * self.qk_size, use_query_bias, dtype, key=q)
        self.key_proj = Linear(self.key_size, inner_k, use_key_bias, dtype, key=k)
        self.value_proj = Linear(self.value_size, inner_v, use_value_bias, dtype, key=v)
        self.output_proj = Linear(
            num_heads * self.vo_size, self.output_size, use_output_bias, dtype, key=o
        )
        self.dropout = Dropout(dropout_p, inference)
        self.rotary = RotaryPositionalEmbedding(self.qk_size) if rotary is True else rotary or None

    def __call__(
        self,
        query: Any,
        key_: Any,
        value: Any,
        mask: Any = None,
        *,
        is_causal: bool = False,
        process_heads: Callable[[Any, Any, Any], tuple[Any, Any, Any]] | None = None,
        key: Any = None,
        inference: bool | None = None,
    ) -> Any:
        """Attend with one sequence to another.

        Args:
            query: of shape (S, query_size).
            key_: of shape (T, key_size).
            value: of shape (T, value_size).
            mask: booleans of shape (S, T), or (num_heads, S, T); positions with False are not
                attended to.
            is_causal: whether each position sees only those up to itself.
            process_heads: takes and returns queries of shape (S, num_heads, qk_size), keys of shape
                (T, num_kv_heads, qk_size) and values of shape (T, num_kv_heads, vo_size).
            key: for dropout.
            inference: whether nothing is dropped, overriding the layer's own setting.

        Returns:
            An array of shape (S, output_size).

        Raises:
            ValueError: if shapes do not fit.
        """
        for x in (query, key_, value):
            check_rank(self, x, ["sequence", "features"])
        s, t = query.shape[0], key_.shape[0]
        if value.shape[0] != t:
            raise ValueError(
                f"there must be as many keys as values, but there are {t} and {value.shape[0]}"
            )
        heads = (
            vmap(self.query_proj)(query).reshape(s, self.num_heads, self.qk_size),
            vmap(self.key_proj)(key_).reshape(t, self.num_kv_heads, self.qk_size),
            vmap(self.value_proj)(value).reshape(t, self.num_kv_heads, self.vo_size),
        )
        if self.rotary is not None:
            heads = self.rotary(heads[0]), self.rotary(heads[1]), heads[2]
        if process_heads is not None:
            processed = process_heads(*heads)
            if any(a.shape != b.shape for a, b in zip(processed, heads, strict=True)):
                raise ValueError(
                    "process_heads may not change shapes, but it made "
                    f"{[x.shape for x in processed]} of {[x.shape for x in heads]}"
                )
            heads = processed
        weights = self._weights(heads[0], heads[1], _mask(mask, is_causal, self.num_heads, s, t))
        if key is not None:
            keys = random.split(key, self.num_heads)
            drop = vmap(lambda w, k: self.dropout(w, key=k, inference=inference))
            weights = drop(weights, keys)
        else:
            weights = self.dropout(weights, inference=inference)
        groups = weights.reshape(self.num_kv_heads, -1, s, t)
        attended = jnp.einsum("kgst,tkd->skgd", groups, heads[2]).reshape(s, -1)
        return vmap(self.output_proj)(attended)

    def _weights(self, query: Any, key_: Any, mask: Any) -> Any:
        """Return how much each head attends to each position: (num_heads, S, T)."""
        s, t = query.shape[0], key_.shape[0]
        query = (query / math.sqrt(self.qk_size)).reshape(s, self.num_kv_heads, -1, self.qk_size)
        logits = jnp.einsum("skgd,tkd->kgst", query, key_).reshape(self.num_heads, s, t)
        if mask is not None:
            logits = jnp.where(mask, logits, jnp.finfo(logits.dtype).min)
        return softmax(at_least_float32(logits)).astype(logits.dtype)


def _mask(mask: Any, is_causal: bool, heads: int, s: int, t: int) -> Any:
    if mask is not None and mask.shape not in ((s, t), (heads, s, t)):
        raise ValueError(
            f"mask must have the shape {(s, t)}, or {(heads, s, t)} for each head, not {mask.shape}"
        )
    if not is_causal:
        return mask
    causal = jnp.tril(jnp.ones((s, t), bool), t - s)
    return causal if mask is None else causal & mask
