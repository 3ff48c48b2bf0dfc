"""Transformations of another array library: values cross over as NumPy arrays.

A pair `(init, update)` of Optax calls `jax.numpy`, which does not accept arrays of this package,
and a pair of this package does not accept JAX's. Both accept NumPy's arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from namoo import dtypes, random, tree
from namoo import numpy as jnp
from namoo.control.callback import pure_callback
from namoo.core.array import Array
from namoo.core.avals import ShapeDtypeStruct
from namoo.core.trace import Tracer
from namoo.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    takes_extra_args,
)

__all__ = ["from_optax", "to_optax"]


def _to_numpy(x: Any) -> Any:
    if isinstance(x, Array) and jnp.issubdtype(x.dtype, dtypes.prng_key):
        return np.asarray(random.key_data(x))
    return np.asarray(x) if hasattr(x, "__array__") else x


def _to_array(x: Any) -> Any:
    return jnp.asarray(np.asarray(x)) if hasattr(x, "__array__") else x


def from_optax(tx: Any) -> GradientTransformationExtraArgs:
    """An Optax transformation for arrays of this package, in our `chain` and under our `jit`.

    Its state is a tree of our arrays. Each call goes through NumPy, in compiled programs too, so
    it costs more than the same transformation of this package. States must not hold typed random
    keys, and nothing differentiates through it.

    Args:
        tx: a pair `(init, update)` from Optax, or of any library whose functions take NumPy arrays.

    Example:
        >>> class Doubling:
        ...     init = staticmethod(lambda params: ())
        ...     update = staticmethod(lambda g, state, params=None: (np.multiply(2, g), state))
        >>> tx = from_optax(Doubling)
        >>> tx.update(jnp.array([1.0, 2.0]), tx.init(jnp.zeros(2)))[0]
        Array([2., 4.], dtype=float32)
    """

    def init(params):
        if any(isinstance(p, Tracer) for p in tree.leaves(params)):
            # A state of zeros where the shapes are known and the values are not would be wrong
            # for transformations that keep the parameters.
            raise TypeError(
                "from_optax: call init outside of jit, grad and vmap; its state depends on values "
                "that are not known there."
            )
        return tree.map(_to_array, tx.init(tree.map(_to_numpy, params)))

    def update(updates, state, params=None, **extra_args):
        extra = extra_args if takes_extra_args(tx) else {}

        def call(updates, state, params, extra):
            args = tree.map(_to_numpy, (updates, state, params, extra))
            return tree.map(np.asarray, tx.update(*args[:3], **args[3]))

        operands = (updates, state, params, extra)
        if not any(isinstance(x, Tracer) for x in tree.leaves(operands)):
            return tree.map(_to_array, call(*operands))
        shapes = tree.map(
            lambda x: ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)), (updates, state)
        )
        return pure_callback(call, shapes, *operands)

    return GradientTransformationExtraArgs(init, update)


def to_optax(tx: GradientTransformation) -> GradientTransformation:
    """A transformation of this package for JAX's arrays, as in `optax.chain`, outside of `jax.jit`.

    Updates and states come back as NumPy arrays, which JAX takes. `optax.chain` does not know that
    ours takes extra arguments, and drops them.

    Example:
        >>> from namoo.optim import scale_by_adam
        >>> tx = to_optax(scale_by_adam())
        >>> updates, state = tx.update(np.array([1.0, -2.0]), tx.init(np.zeros(2)))
        >>> type(updates), type(state).__name__
        (<class 'numpy.ndarray'>, 'ScaleByAdamState')
    """

    def init(params):
        return tree.map(_to_numpy, tx.init(tree.map(_to_array, params)))

    def update(updates, state, params=None, **extra_args):
        args = tree.map(_to_array, (updates, state, params, extra_args))
        return tree.map(_to_numpy, tx.update(*args[:3], **args[3]))

    make = GradientTransformationExtraArgs if takes_extra_args(tx) else GradientTransformation
    return make(init, update)
