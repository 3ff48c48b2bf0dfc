"""Native code of data processing: integer arithmetic, counting, sorting, moving.

Each compares compiled programs with NumPy or with eager mode, over types, odd sizes and edges.
"""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import lax

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4"])
def test_integers_are_divided_exactly(dtype):
    """Quotients and remainders of all extremes, by arrays and by constants, as in eager mode."""
    kind = np.iinfo(dtype)
    edges = np.array([kind.min, kind.min + 1, 0, 1, 2, 3, 7, kind.max - 1, kind.max], dtype)
    edges = np.concatenate([edges, RNG.integers(kind.min, kind.max, 40, dtype, endpoint=True)])
    if kind.min < 0:
        edges = np.append(edges, [-1, -2, -3]).astype(dtype)
    x, y = (a.ravel() for a in np.meshgrid(edges, edges))

    def by_arrays(x, y):
        return lax.div(x, y), lax.rem(x, y), x // y, x % y

    def by_constants(x):
        return [f(x, jnp.asarray(d)) for d in edges[-14:] for f in (lax.div, lax.rem)]

    for function, arguments in ((by_arrays, (x, y)), (by_constants, (x,))):
        arguments = [jnp.asarray(a) for a in arguments]
        for found, wanted in zip(
            namoo.jit(function)(*arguments), function(*arguments), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)
