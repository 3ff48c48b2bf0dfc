"""Neural networks as pairs of functions: `(init, apply)`.

`init(key, input_shape)` returns the output's shape and the parameters, `apply(params, inputs,
**kwargs)` returns the output. Layers with randomness take `rng=key`.

Example:
    >>> from namoo import random
    >>> init, apply = serial(Dense(8), Relu, Dense(2), LogSoftmax)
    >>> shape, params = init(random.key(0), (-1, 4))
    >>> shape, apply(params, jnp.ones((3, 4))).shape
    ((-1, 2), (3, 2))
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from namoo import lax, random
from namoo import numpy as jnp
from namoo._base.source_context import make_entry_points as _guard
from namoo.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from namoo.nn.initializers import glorot_normal, normal, ones, zeros

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "glorot",
    "logsoftmax",
    "parallel",
    "randn",
    "serial",
    "shape_dependent",
]
__dir__ = __all__.copy


Layer = tuple[Callable[..., Any], Callable[..., Any]]

# Names that older programs use.
glorot, randn, logsoftmax = glorot_normal, normal, log_softmax

_glorot, _small, _tiny = glorot_normal(), normal(), normal(1e-6)


def _without_parameters(out_shape: Callable[[Any], Any], fun: Callable[[Any], Any]) -> Layer:
    """Return a layer without parameters, given functions of the input's shape and value."""

    def init_fun(rng, input_shape):
        return out_shape(input_shape), ()

    def apply_fun(params, inputs, **kwargs):
        return fun(inputs)

    return init_fun, apply_fun


def _same_shape(shape):
    return shape


def Dense(out_dim: int, W_init: Any = _glorot, b_init: Any = _small) -> Layer:
    """Return a fully connected layer: y = x W + b.

    Args:
        out_dim: the number of outputs.
        W_init: initialiser of the matrix.
        b_init: initialiser of the offset.

    Returns:
        the pair `(init, apply)`.

    Example:
        >>> init, apply = Dense(3)
        >>> init(random.key(0), (5, 2))[0]
        (5, 3)
    """

    def init_fun(rng, input_shape):
        key_w, key_b = random.split(rng)
        params = W_init(key_w, (input_shape[-1], out_dim)), b_init(key_b, (out_dim,))
        return (*input_shape[:-1], out_dim), params

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def _convolution(
    out_shape: Callable, convolve: Callable, specs: Sequence[str], out_chan, filter_shape,
    strides, padding, W_init, b_init,
) -> Layer:  # fmt: skip
    """Return a convolution layer; both kinds of convolution share this."""
    lhs, rhs, out = specs
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))

    def init_fun(rng, input_shape):
        sizes = iter(filter_shape)
        known = {"O": out_chan, "I": input_shape[lhs.index("C")]}
        kernel_shape = [known[c] if c in known else next(sizes) for c in rhs]
        shape = out_shape(input_shape, kernel_shape, strides, padding, specs)
        key_w, key_b = random.split(rng)
        offset_shape = [out_chan if c == "C" else 1 for c in out]
        return shape, (W_init(key_w, kernel_shape), b_init(key_b, offset_shape))

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return convolve(inputs, W, strides, padding, dimension_numbers=specs) + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _tiny,
) -> Layer:
    """Return a convolution with a bias per channel.

    Args:
        dimension_numbers: layouts of inputs, kernel and outputs, as ("NHWC", "HWIO", "NHWC").
        out_chan: the number of output channels.
        filter_shape: the window, without channels.
        strides: the steps of the window; 1 by default.
        padding: "VALID", "SAME" or pairs of numbers.
        W_init: initialiser of the kernel.
        b_init: initialiser of the offset.

    Returns:
        the pair `(init, apply)`; `Conv` is this for images with channels last.

    Example:
        >>> init, apply = GeneralConv(("NCH", "OIH", "NCH"), 4, (3,))
        >>> init(random.key(0), (2, 1, 10))[0]
        (2, 4, 8)
    """
    return _convolution(
        lax.conv_general_shape_tuple, lax.conv_general_dilated, dimension_numbers, out_chan,
        filter_shape, strides, padding, W_init, b_init,
    )  # fmt: skip


def GeneralConvTranspose(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _tiny,
) -> Layer:
    """Return a transposed convolution with a bias per channel.

    Args:
        dimension_numbers: layouts of inputs, kernel and outputs.
        out_chan: the number of output channels.
        filter_shape: the window, without channels.
        strides: the distance between two windows; 1 by default.
        padding: "VALID", "SAME" or pairs of numbers.
        W_init: initialiser of the kernel.
        b_init: initialiser of the offset.

    Returns:
        the pair `(init, apply)`; `ConvTranspose` and `Conv1DTranspose` have channels last.

    Example:
        >>> init, apply = GeneralConvTranspose(("NHC", "HIO", "NHC"), 4, (3,), strides=(2,))
        >>> init(random.key(0), (2, 5, 1))[0]
        (2, 11, 4)
    """
    return _convolution(
        lax.conv_transpose_shape_tuple, lax.conv_transpose, dimension_numbers, out_chan,
        filter_shape, strides, padding, W_init, b_init,
    )  # fmt: skip


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Return a layer that normalises over axes of the batch: y = γ·(x - mean)/√(variance + ε) + β.

    Args:
        axis: the axes to take mean and variance over.
        epsilon: ε, keeps the division finite.
        center: whether the layer has β.
        scale: whether the layer has γ.
        beta_init: initialiser of β.
        gamma_init: initialiser of γ.

    Returns:
        the pair `(init, apply)`.

    Example:
        >>> init, apply = BatchNorm(axis=0)
        >>> _, params = init(random.key(0), (2, 1))
        >>> apply(params, jnp.array([[1.0], [3.0]])).round(3)
        Array([[-1.],
               [ 1.]], dtype=float32)
    """
    axes = (axis,) if jnp.isscalar(axis) else axis

    def init_fun(rng, input_shape):
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        key_beta, key_gamma = random.split(rng)
        beta = beta_init(key_beta, shape) if center else ()
        gamma = gamma_init(key_gamma, shape) if scale else ()
        return input_shape, (beta, gamma)

    def apply_fun(params, x, **kwargs):
        beta, gamma = params
        spread = tuple(None if i in axes else slice(None) for i in range(jnp.ndim(x)))
        z = standardize(x, axes, epsilon=epsilon)
        if scale:
            z = gamma[spread] * z
        return z + beta[spread] if center else z

    return init_fun, apply_fun


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """Return a layer that applies a function to each element.

    Example:
        >>> elementwise(jnp.square)[1]((), jnp.array([1.0, 2.0]))
        Array([1., 4.], dtype=float32)
    """
    return _without_parameters(_same_shape, lambda x: fun(x, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


def _pool(reducer, start, window_shape, strides, padding, spec, average=False) -> Layer:
    """Return a layer that reduces windows over all axes except those of examples and channels."""
    rank = len(window_shape) + 2
    outer = (0, rank - 1) if spec is None else (spec.index("N"), spec.index("C"))
    spatial = [i for i in range(rank) if i not in outer]
    strides = strides or (1,) * len(window_shape)

    def everywhere(sizes):
        by_axis = dict(zip(spatial, sizes, strict=True))
        return tuple(by_axis.get(i, 1) for i in range(rank))

    window, steps, one = everywhere(window_shape), everywhere(strides), (1,) * rank

    def out_shape(shape):
        pads = lax.padtype_to_pads(shape, window, steps, padding)
        return lax.reduce_window_shape_tuple(shape, window, steps, pads, one, one)

    def apply(inputs):
        out = lax.reduce_window(inputs, start, reducer, window, steps, padding)
        if not average:
            return out
        # At the borders, a window contains fewer elements than its size.
        unit = jnp.ones(everywhere([inputs.shape[i] for i in spatial]), inputs.dtype)
        return out / lax.reduce_window(unit, start, reducer, window, steps, padding)

    return _without_parameters(out_shape, apply)


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return a layer that takes the maximum of each window.

    Args:
        window_shape: the window, without examples and channels.
        strides: the steps of the window; 1 by default.
        padding: "VALID", "SAME" or pairs of numbers.
        spec: the layout, as "NCHW"; examples first and channels last by default.

    Returns:
        the pair `(init, apply)`.

    Example:
        >>> MaxPool((2,), strides=(2,))[1]((), jnp.arange(4.0).reshape(1, 4, 1)).ravel()
        Array([1., 3.], dtype=float32)
    """
    return _pool(lax.max, -jnp.inf, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return a layer that sums each window; arguments as for `MaxPool`.

    Example:
        >>> SumPool((2,), strides=(2,))[1]((), jnp.arange(4.0).reshape(1, 4, 1)).ravel()
        Array([1., 5.], dtype=float32)
    """
    return _pool(lax.add, 0.0, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return a layer that averages each window, without padding; arguments as for `MaxPool`.

    Example:
        >>> AvgPool((2,), strides=(2,))[1]((), jnp.arange(4.0).reshape(1, 4, 1)).ravel()
        Array([0.5, 2.5], dtype=float32)
    """
    return _pool(lax.add, 0.0, window_shape, strides, padding, spec, average=True)


Flatten = _without_parameters(
    lambda shape: (shape[0], math.prod(shape[1:])), lambda x: jnp.reshape(x, (x.shape[0], -1))
)
Identity = _without_parameters(_same_shape, lambda x: x)
FanInSum = _without_parameters(lambda shapes: shapes[0], sum)


def FanOut(num: int) -> Layer:
    """Return a layer that repeats its input `num` times, for `parallel`.

    Example:
        >>> FanOut(2)[1]((), 1)
        [1, 1]
    """
    return _without_parameters(lambda shape: [shape] * num, lambda x: [x] * num)


def FanInConcat(axis: int = -1) -> Layer:
    """Return a layer that concatenates its inputs.

    Example:
        >>> FanInConcat()[1]((), [jnp.ones(1), jnp.zeros(1)])
        Array([1., 0.], dtype=float32)
    """

    def out_shape(shapes):
        at = axis % len(shapes[0])
        total = sum(shape[at] for shape in shapes)
        return (*shapes[0][:at], total, *shapes[0][at + 1 :])

    return _without_parameters(out_shape, lambda inputs: jnp.concatenate(inputs, axis))


DROPOUT_NEEDS_KEY = """\
Dropout needs a random key, but apply_fun was called without one.
Instead of apply_fun(params, inputs) write apply_fun(params, inputs, rng=key), where key comes from
namoo.random.key or namoo.random.split."""


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Return a layer that sets random elements to zero and scales up the others.

    Args:
        rate: the probability that an element is *kept*.
        mode: "train"; with anything else the layer does nothing.

    Returns:
        the pair `(init, apply)`; apply needs `rng=key`.

    Raises:
        ValueError: by `apply`, if there is no `rng`.

    Example:
        >>> Dropout(1.0)[1]((), jnp.ones(2), rng=random.key(0))
        Array([1., 1.], dtype=float32)
    """

    def init_fun(rng, input_shape):
        return input_shape, ()

    def apply_fun(params, inputs, **kwargs):
        key = kwargs.get("rng")
        if key is None:
            raise ValueError(DROPOUT_NEEDS_KEY)
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(key, rate, inputs.shape), inputs / rate, 0)

    return init_fun, apply_fun


def _keys(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """Return layers in sequence: each takes the output of the one before.

    Args:
        *layers: pairs `(init, apply)`.

    Returns:
        A layer; its parameters are a list of the layers' parameters.

    Example:
        >>> serial(Relu, elementwise(jnp.sqrt))[1]([(), ()], jnp.array([-1.0, 4.0]))
        Array([0., 2.], dtype=float32)
    """
    inits, applies = zip(*layers, strict=True)

    def init_fun(rng, input_shape):
        params = []
        for init in inits:
            rng, key = random.split(rng)
            input_shape, param = init(key, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, *, rng=None, **kwargs):
        # JAX stops at the shorter of layers and parameters; programs rely on it to run some layers.
        for fun, param, key in zip(applies, params, _keys(rng, len(layers)), strict=False):
            inputs = fun(param, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Return layers in parallel: each takes one input of a list and makes one output.

    Use it between `FanOut` and `FanInSum` or `FanInConcat`.

    Args:
        *layers: pairs `(init, apply)`.

    Returns:
        A layer from lists to lists.

    Example:
        >>> parallel(Identity, Relu)[1]([(), ()], [-jnp.ones(1), -jnp.ones(1)])
        [Array([-1.], dtype=float32), Array([0.], dtype=float32)]
    """
    inits, applies = zip(*layers, strict=True)

    def init_fun(rng, input_shape):
        keys = random.split(rng, len(layers))
        made = [f(k, shape) for f, k, shape in zip(inits, keys, input_shape, strict=False)]
        shapes, params = zip(*made, strict=True)
        return shapes, params

    def apply_fun(params, inputs, *, rng=None, **kwargs):
        parts = zip(applies, params, inputs, _keys(rng, len(layers)), strict=False)
        return [f(p, x, rng=key, **kwargs) for f, p, x, key in parts]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Return a layer that is created once the input's shape is known.

    Args:
        make_layer: a function of the input's shape that returns a pair `(init, apply)`.

    Returns:
        a pair `(init, apply)` that acts as the one made for each shape.

    Example:
        >>> halve = shape_dependent(lambda shape: Dense(shape[-1] // 2))
        >>> halve[0](random.key(0), (3, 8))[0]
        (3, 4)
    """

    def init_fun(rng, input_shape):
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params, inputs, **kwargs):
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun


_guard(globals())
