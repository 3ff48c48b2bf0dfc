"""First and second derivatives of namoo.numpy at awkward points: kinks, ties and poles, as in JAX.

Elsewhere derivatives are limits of differences: see `gradients.py`.  Each expression here is summed
with uneven weights; its gradient, and the derivative of that gradient along a fixed direction, must
be JAX's.
"""

import functools

import jax
import numpy as np
import pytest

import namoo
import numpy_oracle as oracle

POINTS = """
jnp.sqrt(o)
jnp.abs(o)
jnp.sign(o)
jnp.where(o > 0, jnp.sqrt(jnp.where(o > 0, o, 1.0)), 0.0)
jnp.maximum(o, 0.0)
jnp.maximum(o, o * 2)
jnp.minimum(o, 0.0)
jnp.max(o)
jnp.min(o, axis=0)
jnp.clip(o, 0.0, 1.0)
o ** 2
o ** 1
o ** 0
o ** 3.0
o ** 1.0
jnp.power(o, 2.0)
jnp.cbrt(o)
jnp.sinc(o)
jnp.logaddexp(o, -jnp.inf)
jnp.logaddexp(-jnp.inf, o)
jnp.logaddexp(o, jnp.inf)
jnp.logaddexp.reduce(o)
jnp.hypot(o, 3.0)
jnp.hypot(o, o)
jnp.arctan2(o, 1.0)
jnp.prod(o)
jnp.cumprod(o)
jnp.std(o * 0 + 1.0)
jnp.abs(o * 1j)
jnp.median(o)
jnp.ptp(o)
jnp.log1p(o)
jnp.tanh(o)
jnp.nan_to_num(1 / o)
jnp.exp(o)
jnp.sort(o)
o[jnp.lexsort([o])]
jnp.interp(o, np.arange(-1.0, 3.0, dtype='float32'), np.arange(4, dtype='float32') ** 2)
""".strip().splitlines()

ZEROS = {"o": np.array([0.0, 1.0, 0.0, -1.0, 1.0], np.float32)}


def weighted_sum(jnp, out):
    """One real number from any results, in which every element counts differently."""
    total = 0.0
    for leaf in out if isinstance(out, (tuple, list)) else [out]:
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            weights = np.cos(np.arange(leaf.size, dtype=np.float32)).reshape(leaf.shape)
            total = total + jnp.sum(jnp.real(leaf) * weights)
    return total


def derivatives(package, expressions, arrays):
    """The gradients, and the gradients' derivatives along a direction, of a table."""
    jnp = package.numpy
    others = {k: v for k, v in oracle.ARRAYS.items() if k not in arrays}

    def gradient(text):
        def fun(arrays):
            return weighted_sum(jnp, eval(text, {"jnp": jnp, "np": np, **others, **arrays}))

        return package.grad(fun)

    def fun(arrays):
        direction = {k: jnp.asarray(np.sin(1 + np.asarray(v))) for k, v in START.items()}
        direction = {k: direction[k] for k in arrays}
        return [package.jvp(gradient(text), (arrays,), (direction,)) for text in expressions]

    START = arrays
    compiled = jax.jit(fun) if package is jax else fun
    return dict(zip(expressions, compiled(arrays), strict=True))


@functools.cache
def wanted():
    return derivatives(jax, tuple(POINTS), ZEROS)


@pytest.mark.parametrize("expression", POINTS)
def test_as_jax(expression):
    found = derivatives(namoo, [expression], ZEROS)[expression]
    for order, a, b in zip(("first", "second"), found, wanted()[expression], strict=True):
        x, y = np.asarray(a["o"]), np.asarray(b["o"])
        np.testing.assert_allclose(x, y, 2e-4, 2e-4, err_msg=f"{order} derivative")
