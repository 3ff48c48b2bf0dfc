"""Rows for sorting and for the largest elements."""

import ml_dtypes
import numpy as np

from conformance.harness import Sample
from namoo.primitives import sorting as s

rng = np.random.default_rng(4)
distinct = (rng.permutation(60) / 8 - 3.7).reshape(3, 4, 5)
many = (rng.permutation(100) / 8 - 6.1).reshape(2, 50)
integers = rng.integers(-3, 3, (3, 4, 5)).astype(np.int32)
special = np.array([2.0, np.nan, -0.0, 0.0, np.inf, -np.nan, -np.inf, -0.0, 1.0])
other = rng.normal(size=(3, 4, 5))
narrow = ["float32", "float16", "bfloat16"]


def sort(*xs, dimension=0, num_keys=1, is_stable=True, **fields):
    params = {"dimension": dimension, "num_keys": num_keys, "is_stable": is_stable}
    return Sample(s.sort_p, list(xs), params, **fields)


def top_k(x, k, axis, **fields):
    return Sample(s.top_k_p, [x], {"k": k, "axis": axis}, **fields)


SAMPLES = [
    sort(distinct, dimension=1, dtypes=narrow),
    sort(distinct, dimension=2, is_stable=False, name="not stable"),
    sort(distinct, other, dimension=0, name="key and value"),
    sort(integers, other, dimension=2, name="ties"),
    sort(integers, distinct, other, dimension=1, num_keys=2, name="two keys"),
    sort(integers, dtypes=()),
    sort(
        special,
        diff=(),
        name="special",
        dtypes=narrow,
        expected=[
            [-np.inf, -0.0, 0.0, -0.0, 1.0, 2.0, np.inf, np.nan, np.nan],
        ],
    ),
    sort(distinct[0] + 1j * other[0], dimension=1, name="complex"),
    sort(integers[0].astype(ml_dtypes.int4), dimension=1, dtypes=()),
    top_k(distinct, 2, 1, dtypes=narrow),
    top_k(distinct, 5, 2, name="all"),
    top_k(many, 3, 1, name="few of many"),
    top_k(distinct, 0, 0, name="none", diff=()),
    top_k(integers, 3, 2, dtypes=()),
    top_k(integers.astype(np.uint32), 3, 2, dtypes=()),
    top_k(integers > 0, 3, 1, dtypes=()),
    top_k(
        special,
        9,
        0,
        name="special",
        diff=(),
        dtypes=narrow,
        expected=[
            [np.nan, np.inf, 2.0, 1.0, 0.0, -0.0, -0.0, -np.inf, np.nan],
            [1, 4, 0, 8, 3, 2, 7, 6, 5],
        ],
    ),
]
