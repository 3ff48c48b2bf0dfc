"""Rows for operations on bits."""

import ml_dtypes
import numpy as np

from conformance.harness import Sample
from namoo.primitives import bits as b

rng = np.random.default_rng(3)
TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", ml_dtypes.int4, ml_dtypes.uint4]
NARROW = [ml_dtypes.int4, ml_dtypes.uint4]


def integers(dtype, low=-(2**62), high=2**62):
    return rng.integers(low, high, (3, 4)).astype(np.int8 if dtype in NARROW else dtype)


def of(dtype, x):
    return x.astype(dtype)


truth = integers("int32", 0, 2) > 0
halves = np.array([[1.5, -2.5], [np.inf, np.nan]], np.float32)
shorts = integers("int16")[:, :2]


def shifts(dtype):
    width = np.dtype(dtype).itemsize * 8 if dtype not in NARROW else 4
    return of(dtype, rng.integers(-2, width + 3, (3, 4)).astype(np.int8))


SAMPLES = [
    *(
        Sample(prim, [of(d, integers(d)), of(d, integers(d))], dtypes=(), exact=True)
        for prim in (b.and_p, b.or_p, b.xor_p, b.mulhi_p)
        for d in TYPES
    ),
    *(
        Sample(prim, [of(d, integers(d))], dtypes=(), exact=True)
        for prim in (b.not_p, b.population_count_p, b.clz_p)
        for d in TYPES
    ),
    *(
        Sample(prim, [of(d, integers(d)), shifts(d)], dtypes=(), exact=True)
        for prim in (b.shift_left_p, b.shift_right_arithmetic_p, b.shift_right_logical_p)
        for d in TYPES
    ),
    *(
        Sample(prim, [truth, truth[::-1]], dtypes=(), name="booleans", oracle=oracle)
        for prim, oracle in (
            (b.and_p, np.logical_and),
            (b.or_p, np.logical_or),
            (b.xor_p, np.not_equal),
        )
    ),
    Sample(b.not_p, [truth], dtypes=(), name="booleans", oracle=np.logical_not),
    Sample(
        b.shift_right_logical_p,
        [np.array([-1, 5], np.int32), np.int32(31)],
        name="by one number",
        expected=[1, 0],
    ),
    *(
        Sample(
            b.bitcast_convert_type_p,
            [x],
            {"new_dtype": np.dtype(new)},
            name=f"{x.dtype} as {np.dtype(new)}",
            diff=(),
            dtypes=(),
            exact=True,
        )
        for x, new in (
            (halves, "int32"),
            (halves, "uint8"),
            (halves[0, 0], "int32"),
            (halves[0, 0], "uint16"),
            (shorts[0], "float32"),
            (halves, "float32"),
            (shorts, "float32"),
            (shorts, ml_dtypes.bfloat16),
            (of(ml_dtypes.int4, integers("int8")), "uint16"),
            (integers("uint8"), ml_dtypes.int4),
            (truth, "bool"),
        )
    ),
]
