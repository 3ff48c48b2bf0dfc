"""Rows for running sums, products, extremes and log-sums."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives import cumulative as c

rng = np.random.default_rng(2)
distinct = (rng.permutation(60) / 8 - 3.7).reshape(3, 4, 5)
nonzero = rng.uniform(0.5, 1.5, (3, 5)) * rng.choice([-1, 1], (3, 5))
zeros = nonzero.copy()
zeros[0, 0], zeros[1, 1], zeros[1, 3] = 0, 0, 0
integers = rng.integers(-100, 100, (4, 5)).astype(np.int8)
special = np.array([1.0, -np.inf, 2.0, np.inf, 3.0, np.nan, 0.0])
narrow = ["float32", "float16", "bfloat16"]


def rows(prim, x, *, axes, **fields):
    return [
        Sample(
            prim,
            [x],
            {"axis": axis, "reverse": reverse},
            name=f"axis {axis} {'backward' if reverse else 'forward'}",
            **fields,
        )
        for axis in axes
        for reverse in (False, True)
    ]


SAMPLES = [
    *rows(c.cumsum_p, distinct, axes=(0, 2), dtypes=narrow),
    *rows(c.cumprod_p, nonzero, axes=(0, 1), dtypes=narrow),
    *rows(c.cumprod_p, zeros, axes=(1,)),
    *rows(c.cummax_p, distinct, axes=(1, 2), dtypes=narrow),
    *rows(c.cummin_p, distinct, axes=(0,), dtypes=narrow),
    *rows(c.cumlogsumexp_p, distinct, axes=(0, 1), dtypes=narrow),
    *rows(c.cumlogsumexp_p, nonzero + 1j * zeros, axes=(1,)),
    *(
        sample
        for prim in (c.cumsum_p, c.cumprod_p, c.cummax_p, c.cummin_p)
        for sample in (*rows(prim, integers, axes=(1,), dtypes=()),)
    ),
    *(
        sample
        for prim in (c.cumsum_p, c.cummax_p, c.cummin_p, c.cumlogsumexp_p)
        for sample in rows(prim, special, axes=(0,), diff=(), dtypes=narrow)
    ),
    *rows(c.cumprod_p, np.ones((2, 0)), axes=(1,)),
    *rows(c.cumsum_p, nonzero + 1j * zeros, axes=(0,)),
]
