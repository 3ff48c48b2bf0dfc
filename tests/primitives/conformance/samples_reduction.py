"""Rows for reductions."""

import ml_dtypes
import numpy as np

from conformance.harness import Sample
from namoo.primitives import reduction as r

rng = np.random.default_rng(1)
# No two elements are closer than 0.05, so that the largest stays the largest.
distinct = (rng.permutation(60) / 8 - 3.7).reshape(3, 4, 5)
nonzero = rng.uniform(0.5, 1.5, (3, 4, 5)) * rng.choice([-1, 1], (3, 4, 5))
zeros = nonzero.copy()
zeros[0, 0], zeros[1, 1, 0] = 0, 0
special = np.array([[1.0, np.nan, -np.inf], [np.inf, 2.0, -0.0]])
integers = rng.integers(-100, 100, (4, 5)).astype(np.int8)
narrow = ["float32", "float16", "bfloat16"]


def rows(prim, *axes, x: np.ndarray = distinct, **fields):
    return [Sample(prim, [x], {"axes": a}, name=f"axes {a}", **fields) for a in axes]


SAMPLES = [
    *rows(r.reduce_max_p, (0,), (1, 2), (2, 0), (), dtypes=narrow),
    *rows(r.reduce_min_p, (1,), (0, 1, 2), dtypes=narrow),
    *rows(r.reduce_prod_p, (0,), (1, 2), (2, 0), (), x=nonzero, dtypes=narrow),
    *rows(r.reduce_and_p, (0,), (0, 1), x=integers, dtypes=()),
    *rows(r.reduce_or_p, (0,), (1,), x=integers > 20, dtypes=()),
    *rows(r.reduce_xor_p, (1,), (0, 1), x=integers.astype(np.uint32), dtypes=()),
    Sample(r.reduce_prod_p, [zeros], {"axes": (1, 2)}, name="zeros"),
    Sample(r.reduce_max_p, [special], {"axes": (1,)}, name="nan", diff=(), dtypes=narrow),
    Sample(r.reduce_max_p, [integers], {"axes": (1,)}, dtypes=()),
    Sample(
        r.reduce_max_p,
        [np.zeros((0, 2))],
        {"axes": (0,)},
        name="empty",
        expected=[-np.inf, -np.inf],
        diff=(),
    ),
    Sample(
        r.reduce_min_p,
        [np.zeros((0, 2), np.int8)],
        {"axes": (0,)},
        name="empty integers",
        expected=[127, 127],
    ),
    Sample(r.reduce_prod_p, [np.zeros((0, 2))], {"axes": (0,)}, name="empty", expected=[1.0, 1.0]),
    Sample(r.reduce_max_p, [integers.astype(ml_dtypes.int4)], {"axes": (0,)}, dtypes=()),
    Sample(r.reduce_and_p, [integers.astype(ml_dtypes.int4)], {"axes": (0,)}, dtypes=()),
    *(
        Sample(prim, [x], {"axes": (a,), "index_dtype": np.dtype(index)}, dtypes=narrow)
        for prim in (r.argmax_p, r.argmin_p)
        for x, a, index in ((distinct, 1, "int32"), (special, 1, "int8"), (integers, 0, "uint16"))
    ),
    Sample(
        r.reduce_precision_p,
        [distinct],
        {"exponent_bits": 11, "mantissa_bits": 52},
        name="nothing to round",
    ),
    Sample(
        r.reduce_precision_p,
        [np.array(1.1)],
        {"exponent_bits": 5, "mantissa_bits": 10},
        name="scalar",
        expected=1.099609375,
        diff=(),
    ),
    Sample(
        r.reduce_precision_p,
        [special],
        {"exponent_bits": 5, "mantissa_bits": 10},
        name="float16",
        diff=(),
        oracle=lambda x: x.astype(np.float16).astype(np.float64),
        dtypes=narrow,
    ),
]
