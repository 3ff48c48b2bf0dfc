"""Attention, and matrix products with scaled low-precision operands."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np

from namoo import numpy as jnp
from namoo._base import dtypes
from namoo.nn.normalize import logsumexp, softmax
from namoo.primitives.contract import dot_general
from namoo.transforms.custom import custom_vjp

Array = Any


def _check_shape(name: str, x: Array, wanted: tuple[int | None, ...]) -> None:
    """Check that axes have the expected lengths; None allows any length, and 1 broadcasts."""
    if x.ndim != len(wanted) or any(
        w is not None and size not in (w, 1) for size, w in zip(x.shape, wanted, strict=True)
    ):
        raise ValueError(
            f"dot_product_attention: {name} must have a shape that broadcasts to {wanted}, "
            f"got {x.shape}."
        )


def _allowed(
    is_causal: bool,
    window: tuple[int, int] | None,
    query_lengths: Array | None,
    key_lengths: Array | None,
    queries: int,
    keys: int,
) -> Array | None:
    """Return which query may attend to which key, with shape (batch or 1, 1, queries, keys)."""
    known = isinstance(queries, int) and isinstance(keys, int)
    np_or_jnp: Any = np if known else jnp
    t = np_or_jnp.arange(queries)[:, None]
    s = np_or_jnp.arange(keys)[None, :]
    fixed = np_or_jnp.ones((queries, keys), bool)
    if is_causal:
        fixed = fixed & (t >= s)
    if window is not None:
        left, right = window
        fixed = fixed & (s >= t - left) & (s <= t + right)
    all_allowed = fixed.all() if known else not is_causal and window is None
    mask: Any = None if all_allowed else jnp.asarray(fixed)[None, None]
    for lengths, place in ((query_lengths, t), (key_lengths, s)):
        if lengths is not None:
            own = jnp.asarray(place)[None] < jnp.asarray(lengths)[:, None, None]
            own = jnp.broadcast_to(own, (own.shape[0], queries, keys))[:, None]
            mask = own if mask is None else mask & own
    return mask


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: Literal["xla", "cudnn"] | None = None,
    return_residual: bool = False,
) -> Any:
    """Compute scaled dot-product attention for many heads at once.

        attention(Q, K, V) = softmax(Q·Kᵀ·scale + bias) · V

    Args:
        query: of shape (batch, T, heads, size), or without batch.
        key: of shape (batch, S, key heads, size); fewer key heads than heads are shared by groups.
        value: of the shape of `key`.
        bias: added to the logits; broadcasts to (batch, heads, T, S).
        mask: booleans, true where a query may look; broadcasts to (batch, heads, T, S).
        scale: factor of the logits; 1/√size if None.
        is_causal: let each query attend only to its own position and earlier ones.
        query_seq_lengths: the number of real queries of each example, of shape (batch,).
        key_value_seq_lengths: the number of real keys of each example.
        local_window_size: how many positions to its left and right a query may attend to.
        implementation: has no effect.
        return_residual: also return the logarithm of the sum of exponentials, (batch, T, heads).

    Returns:
        an array of the shape of `query`.

    Example:
        >>> import namoo.numpy as jnp
        >>> q = jnp.ones((1, 2, 1, 4))
        >>> dot_product_attention(q, q, q).shape
        (1, 2, 1, 4)
    """
    query, key, value = map(jnp.asarray, (query, key, value))
    shape = query.shape
    if query.ndim not in (3, 4) or key.ndim != query.ndim or value.ndim != query.ndim:
        raise ValueError(
            "dot_product_attention: query, key and value must have shapes (batch, length, heads, "
            f"size) or (length, heads, size), got {query.shape}, {key.shape} and {value.shape}."
        )
    if implementation not in (None, "xla", "cudnn"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    unbatched = query.ndim == 3

    def batched(x):
        return x[None] if x.ndim == 3 else x

    def in_four_axes(x):
        return None if x is None else jnp.expand_dims(x, tuple(range(4 - jnp.ndim(x))))

    query, key, value = map(batched, (query, key, value))
    bias, mask = map(in_four_axes, (bias, mask))
    batch, queries, heads, size = query.shape
    keys, key_heads = key.shape[1:3]
    _check_shape("key", key, (batch, None, None, size))
    _check_shape("value", value, (batch, keys, key_heads, size))
    if heads % key_heads:
        raise ValueError(
            "dot_product_attention: the number of query heads must be a multiple of that of key "
            f"heads, got {heads} and {key_heads}."
        )
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None:
            _check_shape(name, x, (batch, heads, queries, keys))
    if mask is not None and mask.dtype != np.bool_:
        raise ValueError(
            f"dot_product_attention: mask must be boolean, got {mask.dtype}; numbers to add to the "
            "logits go in bias."
        )
    scale = size**-0.5 if scale is None else scale
    window = (
        (local_window_size, local_window_size)
        if isinstance(local_window_size, int)
        else local_window_size
    )

    wide = dtypes.promote_types(query.dtype, np.float32)
    group = heads // key_heads
    grouped = query.reshape(batch, queries, key_heads, group, size)
    logits = jnp.einsum("btkgh,bskh->bkgts", grouped, key, preferred_element_type=wide)
    logits = logits.reshape(batch, heads, queries, keys) * jnp.asarray(scale, logits.dtype)
    if bias is not None:
        logits = (logits + bias).astype(logits.dtype)
    allowed = _allowed(is_causal, window, query_seq_lengths, key_value_seq_lengths, queries, keys)
    if mask is not None:
        allowed = mask if allowed is None else mask & allowed
    if allowed is not None:
        low = jnp.asarray(-0.7 * float(jnp.finfo(logits.dtype).max), logits.dtype)
        logits = jnp.where(allowed, logits, low)
    weights = softmax(logits, axis=-1).astype(key.dtype)
    weights = weights.reshape(batch, key_heads, group, queries, keys)
    out = jnp.einsum("bkgts,bskh->btkgh", weights, value).reshape(batch, queries, heads, size)
    if query_seq_lengths is not None:
        real = jnp.arange(queries)[None, :, None, None]
        out = jnp.where(real < jnp.asarray(query_seq_lengths)[:, None, None, None], out, 0)
        out = out.astype(query.dtype)
    out = out.reshape(shape)
    if not return_residual:
        return out
    residual = jnp.transpose(logsumexp(logits, axis=-1), (0, 2, 1)).astype(key.dtype)
    return out, residual[0] if unbatched else residual


def scaled_matmul(
    lhs: Any,
    rhs: Any,
    lhs_scales: Any,
    rhs_scales: Any,
    preferred_element_type: Any = np.float32,
) -> Array:
    """Multiply matrices whose blocks along the summed axis have their own scales.

        out[b, m, n] = Σₖ lhs[b, m, k]·lhs_scale · rhs[b, n, k]·rhs_scale

    Args:
        lhs: of shape (batch, m, k).
        rhs: of shape (batch, n, k).
        lhs_scales: of shape (batch, m, k / block).
        rhs_scales: of shape (batch, n, k / block).
        preferred_element_type: the type of the result.

    Example:
        >>> import namoo.numpy as jnp
        >>> a, b = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]])
        >>> half = jnp.array([[[0.5]]])
        >>> scaled_matmul(a, b, half, half)
        Array([[[8.]]], dtype=float32)
    """
    operands = []
    for name, x, scales in (("lhs", lhs, lhs_scales), ("rhs", rhs, rhs_scales)):
        x, scales = jnp.asarray(x), jnp.asarray(scales)
        if x.ndim != 3 or scales.ndim != 3 or x.shape[:2] != scales.shape[:2]:
            raise ValueError(
                f"scaled_matmul: {name} and {name}_scales must have three axes, of which the first "
                f"two agree, got {x.shape} and {scales.shape}."
            )
        if x.shape[2] % scales.shape[2]:
            raise ValueError(
                f"scaled_matmul: the last axis of {name} must be a multiple of that of "
                f"{name}_scales, got {x.shape[2]} and {scales.shape[2]}."
            )
        block = x.shape[2] // scales.shape[2]
        wide = scales.astype(np.float32)
        operands.append(x.astype(np.float32) * jnp.repeat(wide, block, axis=2))
    a, b = operands
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[2]:
        raise ValueError(
            "scaled_matmul: batch and summed axes of lhs and rhs must agree, got "
            f"{a.shape} and {b.shape}."
        )
    out = jnp.einsum("bmk,bnk->bmn", a, b)
    return out.astype(dtypes.canonicalize_dtype(preferred_element_type))


@dataclasses.dataclass
class BlockScaleConfig:
    """How to round an operand to few bits per element, block by block."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8"], global_scale: Any = None
) -> BlockScaleConfig:
    """Return a rounding configuration for `scaled_dot_general`.

    Example:
        >>> get_scaled_dot_general_config("mxfp8").block_size
        32
    """
    if mode == "nvfp4":
        one = jnp.ones((1,), np.float32)
        return BlockScaleConfig(
            mode,
            16,
            dtypes.float4_e2m1fn.type,
            dtypes.float8_e4m3fn.type,
            one if global_scale is None else global_scale,
        )
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, dtypes.float8_e4m3fn.type, dtypes.float8_e8m0fnu.type)
    raise ValueError(f"Unsupported mode: {mode}; use 'nvfp4' or 'mxfp8'.")


def _quantize(x: Array, config: BlockScaleConfig) -> tuple[Array, Array]:
    """Return an array of shape (batch, m, k) rounded by blocks along k, and the blocks' scales."""
    batch, m, k = x.shape
    if k % config.block_size:
        raise ValueError(
            f"scaled_dot_general: the summed axis must be a multiple of {config.block_size} for "
            f"mode {config.mode!r}, got {k}."
        )
    blocks = x.astype(np.float32).reshape(batch, m, k // config.block_size, config.block_size)
    largest = float(jnp.finfo(config.data_type).max)
    top = jnp.max(jnp.abs(blocks), axis=-1)
    if config.mode == "mxfp8":
        # A power of two that is large enough to avoid overflow.
        ratio = jnp.where(top == 0, largest, top) / largest
        scales = jnp.exp2(jnp.ceil(jnp.log2(ratio)))
    else:
        scales = top / largest / config.global_scale
    scales = scales.astype(config.scale_type)
    wide = scales.astype(np.float32)
    if config.mode == "nvfp4":
        wide = wide * config.global_scale
    rounded = blocks / jnp.where(wide == 0, 1.0, wide)[..., None]
    rounded = jnp.clip(rounded, -largest, largest).astype(config.data_type)
    return rounded.reshape(batch, m, k), scales


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: list[BlockScaleConfig] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:
    """Compute `lax.dot_general` of operands that are first rounded to few bits, block by block.

    Args:
        lhs: an array.
        rhs: an array.
        dimension_numbers: axes to sum over and batch axes, as for `lax.dot_general`.
        preferred_element_type: the type of the result.
        configs: how to round the operands and the gradient, from `get_scaled_dot_general_config`;
            with None nothing is rounded.
        implementation: has no effect.

    Example:
        >>> import namoo.numpy as jnp
        >>> x = jnp.ones((1, 2, 32))
        >>> configs = [get_scaled_dot_general_config("mxfp8")] * 3
        >>> scaled_dot_general(x, x, (((2,), (2,)), ((0,), (0,))), configs=configs)
        Array([[[32., 32.],
                [32., 32.]]], dtype=float32)
    """
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    if configs is None:
        return dot_general(
            lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type
        )
    (lc, rc), (lb, rb) = (
        ([*map(int, axes)] for axes in dimension_numbers[0]),
        ([*map(int, axes)] for axes in dimension_numbers[1]),
    )
    dtype = dtypes.canonicalize_dtype(preferred_element_type)

    def as_matrices(x, contracted, batched):
        free = [i for i in range(x.ndim) if i not in (*contracted, *batched)]
        moved = jnp.transpose(x, (*batched, *free, *contracted))
        sizes = [int(np.prod([x.shape[i] for i in axes])) for axes in (batched, free, contracted)]
        return moved.reshape(sizes), [x.shape[i] for i in free]

    a, a_free = as_matrices(lhs, lc, lb)
    b, b_free = as_matrices(rhs, rc, rb)
    out = _rounded_product(configs, dtype)(a, b)
    return out.reshape([*(lhs.shape[i] for i in lb), *a_free, *b_free])


def _rounded_product(configs: list[BlockScaleConfig], dtype: Any):
    """Return the product (b, m, k) · (b, n, k) -> (b, m, n); its gradients are rounded, too."""

    def multiply(x, y, x_config, y_config):
        if any(z.shape[2] % c.block_size for z, c in ((x, x_config), (y, y_config))):
            return jnp.einsum("bmk,bnk->bmn", x, y).astype(dtype)
        (x, x_scales), (y, y_scales) = _quantize(x, x_config), _quantize(y, y_config)
        out = scaled_matmul(x, y, x_scales, y_scales, np.float32)
        for config in (x_config, y_config):
            if config.mode == "nvfp4":
                out = out * config.global_scale
        return out.astype(dtype)

    @custom_vjp
    def product(a, b):
        return multiply(a, b, configs[0], configs[1])

    def fwd(a, b):
        return product(a, b), (a, b)

    def bwd(residuals, ct):
        a, b = residuals
        grad_a = multiply(ct, jnp.swapaxes(b, 1, 2), configs[2], configs[1])
        grad_b = multiply(jnp.swapaxes(ct, 1, 2), jnp.swapaxes(a, 1, 2), configs[2], configs[0])
        return grad_a.astype(a.dtype), grad_b.astype(b.dtype)

    product.defvjp(fwd, bwd)
    return product
