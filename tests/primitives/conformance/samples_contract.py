"""Rows for products summed over shared axes."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives.contract import dot_general_p
from namoo.primitives.precision import DotAlgorithmPreset

rng = np.random.default_rng(0)


def array(*shape):
    return rng.normal(size=shape)


def row(x, y, contracting, batch=((), ()), name=None, preferred=None, precision=None, **fields):
    params = {
        "dimension_numbers": (contracting, batch),
        "precision": precision,
        "preferred_element_type": None if preferred is None else np.dtype(preferred),
    }
    return Sample(dot_general_p, [x, y], params, name=name, **fields)


narrow = ["float32", "float16", "bfloat16"]
integers = rng.integers(-100, 100, (3, 4)).astype(np.int8)

SAMPLES = [
    row(array(3), array(3), ((0,), (0,)), name="vectors", dtypes=narrow),
    row(array(2, 3), array(3), ((1,), (0,)), name="matrix and vector"),
    row(array(3), array(3, 2), ((0,), (0,)), name="vector and matrix"),
    row(array(2, 3), array(3, 4), ((1,), (0,)), name="matrices", dtypes=narrow),
    row(array(3, 2), array(4, 3), ((0,), (1,)), name="transposed matrices"),
    row(array(2), array(3), ((), ()), name="outer product"),
    row(np.float64(2.5), array(3), ((), ()), name="scalar"),
    row(array(2, 3), array(3, 2), ((0, 1), (1, 0)), name="all axes"),
    row(array(4, 2, 3), array(4, 3, 5), ((2,), (1,)), ((0,), (0,)), name="batch"),
    row(array(2, 4, 3), array(3, 5, 4), ((2,), (0,)), ((1,), (2,)), name="batch in the middle"),
    row(array(2, 3), array(2, 3), ((), ()), ((0, 1), (0, 1)), name="only batch"),
    row(array(2, 3), array(3, 2), ((1,), (0,)), ((0,), (1,)), name="batch of vectors"),
    row(array(2, 3, 4), array(5, 4, 3), ((1, 2), (2, 1)), name="two contracted"),
    row(array(3, 4, 2), array(3, 4, 5), ((0, 1), (0, 1)), name="contracted first"),
    row(array(0, 3), array(3, 2), ((1,), (0,)), name="no rows"),
    row(array(2, 0), array(0, 3), ((1,), (0,)), name="empty sum"),
    row(array(2, 3) + 1j * array(2, 3), array(3, 2) - 2j, ((1,), (0,)), name="complex"),
    row(
        array(2, 3) + 1j * array(2, 3),
        array(3, 2),
        ((1,), (0,)),
        name="complex and real",
        diff=(0,),
    ),
    row(array(2, 3), integers.astype(np.float32), ((1,), (0,)), name="two types", diff=(0,)),
    row(integers, integers, ((0,), (0,)), name="int8 wraps", dtypes=()),
    row(integers, integers, ((0,), (0,)), name="int8 to int32", preferred="int32", dtypes=()),
    row(integers, integers, ((0,), (0,)), name="int8 to float32", preferred="float32", dtypes=()),
    row(
        integers.astype(np.int32) * 10**7,
        integers.astype(np.int32),
        ((0,), (0,)),
        name="int32 wraps",
        dtypes=(),
    ),
    row(integers > 0, integers > 50, ((0,), (0,)), name="booleans", dtypes=()),
    row(array(2, 3), array(3, 2), ((1,), (0,)), name="to float64", preferred="float64", dtypes=()),
    row(
        array(2, 3),
        array(3, 2),
        ((1,), (0,)),
        name="rounded operands",
        precision=DotAlgorithmPreset.BF16_BF16_F32,
        diff=(),
        dtypes=(),
    ),
]
