"""Rows for `namoo.primitives.shape`."""

import ml_dtypes
import numpy as np

from conformance.harness import Sample
from namoo._base import dtypes
from namoo.primitives import shape as sh

v = np.array([0.5, -1.25, 2.0, 3.5])
m = np.arange(6.0).reshape(2, 3) - 2.25
a = np.arange(24.0).reshape(2, 3, 4) / 7 - 1
c = m + 1j * m[::-1]
i = np.arange(6, dtype=np.int32).reshape(2, 3)
b = np.array([[True, False, True], [False, False, True]])
scalar = np.array(1.75)
empty = np.zeros((0, 3))
keys = np.arange(12, dtype=np.uint32).view(dtypes.KeyDType("threefry2x32").numpy).reshape(2, 3)

everything = ["float32", "bfloat16", "float16"]


def to(dtype, weak=False):
    return {"new_dtype": np.dtype(dtype), "weak_type": weak}


def spread(shape, *dims):
    return {"shape": shape, "broadcast_dimensions": dims}


def sizes(*new_sizes, dimensions=None):
    return {"new_sizes": new_sizes, "dimensions": dimensions}


convert, broadcast = sh.convert_element_type_p, sh.broadcast_in_dim_p
reduce_sum, reshape, transpose = sh.reduce_sum_p, sh.reshape_p, sh.transpose_p

awkward = np.array([1.7, -1.7, 0.5, -0.0, np.inf, -np.inf, np.nan, 3e9, -3e9, 300.0, -1.0])

SAMPLES = [
    Sample(convert, [m], to("float32"), name="narrower", diff=(), dtypes=everything),
    Sample(convert, [m], to("float64", weak=True), name="to weak"),
    Sample(convert, [m], to("complex128"), name="to complex"),
    Sample(convert, [c], to("complex128", weak=True), name="complex to complex"),
    Sample(convert, [c], to("float64"), name="complex to real", second_order=False),
    Sample(convert, [m], to("int32"), name="to integer", diff=(), dtypes=everything),
    Sample(convert, [i], to("float64"), name="from integer"),
    Sample(convert, [b], to("float64"), name="from boolean"),
    Sample(convert, [i], to("uint8"), name="integer to integer"),
    Sample(
        convert,
        [np.array([-1, 300, 2**31 - 1], np.int32)],
        to("int8"),
        name="wraps",
        expected=[-1, 44, -1],
    ),
    Sample(
        convert,
        [awkward],
        to("int32"),
        name="saturates",
        diff=(),
        expected=[1, -1, 0, 0, 2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31), 300, -1],
        dtypes=everything,
    ),
    Sample(
        convert,
        [awkward],
        to("uint8"),
        name="saturates unsigned",
        diff=(),
        expected=[1, 0, 0, 0, 255, 0, 0, 255, 0, 255, 0],
        dtypes=everything,
    ),
    Sample(
        convert,
        [awkward],
        to("bool"),
        name="to boolean",
        diff=(),
        expected=[True] * 3 + [False] + [True] * 7,
    ),
    Sample(
        convert,
        [np.array([0, 1j, 2.0, np.nan])],
        to("bool"),
        name="complex to boolean, by the real part",
        diff=(),
        expected=[False, False, True, True],
    ),
    Sample(broadcast, [v], spread((4,), 0), name="to itself", dtypes=everything),
    Sample(broadcast, [v], spread((2, 4, 3), 1), dtypes=everything),
    Sample(broadcast, [scalar], spread((2, 3)), name="scalar"),
    Sample(broadcast, [scalar], spread(()), name="scalar to scalar"),
    Sample(broadcast, [m[:, :1]], spread((2, 5), 0, 1), name="axis of length 1"),
    Sample(broadcast, [m[:, :1]], spread((3, 2, 1), 1, 2), name="length 1 kept"),
    Sample(broadcast, [m[:1, :1]], spread((4, 2, 5), 0, 2), name="all of length 1"),
    Sample(broadcast, [c], spread((2, 3, 2), 0, 1), name="complex"),
    Sample(broadcast, [b], spread((2, 2, 3), 1, 2), name="boolean"),
    Sample(broadcast, [m], spread((3, 4, 2), 2, 0), name="axes permuted"),
    Sample(broadcast, [a[:, :1]], spread((4, 2, 5, 3), 1, 2, 0), name="permuted, length 1"),
    Sample(broadcast, [keys], spread((2, 2, 3), 1, 2), name="keys"),
    Sample(broadcast, [v], spread((0, 4), 1), name="empty result"),
    Sample(reduce_sum, [a], {"axes": (1,)}, dtypes=everything, oracle=lambda x: x.sum(1)),
    Sample(reduce_sum, [a], {"axes": (0, 2)}, dtypes=everything, oracle=lambda x: x.sum((0, 2))),
    Sample(reduce_sum, [a], {"axes": (2, 0)}, name="axes out of order"),
    Sample(reduce_sum, [a], {"axes": (0, 1, 2)}, name="all axes", dtypes=everything),
    Sample(reduce_sum, [a], {"axes": ()}, name="no axes"),
    Sample(reduce_sum, [c], {"axes": (1,)}, name="complex"),
    Sample(reduce_sum, [i], {"axes": (0,)}, name="integers"),
    Sample(reduce_sum, [empty], {"axes": (0,)}, name="empty", expected=np.zeros(3)),
    Sample(
        reduce_sum,
        [np.full(4, 100, np.int8)],
        {"axes": (0,)},
        name="wraps",
        expected=np.int8(-112),
    ),
    Sample(
        reduce_sum,
        [np.ones(5000, ml_dtypes.bfloat16)],
        {"axes": (0,)},
        name="bfloat16 in float32",
        diff=(),
        expected=ml_dtypes.bfloat16(4992.0),
    ),
    Sample(reshape, [a], sizes(6, 4), dtypes=everything),
    Sample(reshape, [a], sizes(24), name="flat"),
    Sample(reshape, [a], sizes(4, 6, dimensions=(2, 0, 1)), name="after a permutation"),
    Sample(reshape, [scalar], sizes(1, 1), name="scalar"),
    Sample(reshape, [m[:1, :1]], sizes(), name="to scalar"),
    Sample(reshape, [empty], sizes(3, 0, 2), name="empty"),
    Sample(reshape, [c], sizes(3, 2), name="complex"),
    Sample(reshape, [keys], sizes(6), name="keys"),
    Sample(sh.squeeze_p, [a[:, :1]], {"dimensions": (1,)}, dtypes=everything),
    Sample(sh.squeeze_p, [a[:1, :, :1]], {"dimensions": (0, 2)}, name="two axes"),
    Sample(sh.squeeze_p, [c[:1]], {"dimensions": (0,)}, name="complex"),
    Sample(sh.squeeze_p, [keys[:1]], {"dimensions": (0,)}, name="keys"),
    Sample(transpose, [a], {"permutation": (2, 0, 1)}, dtypes=everything),
    Sample(transpose, [a], {"permutation": (0, 1, 2)}, name="identity"),
    Sample(transpose, [scalar], {"permutation": ()}, name="scalar"),
    Sample(transpose, [c], {"permutation": (1, 0)}, name="complex"),
    Sample(transpose, [i], {"permutation": (1, 0)}, name="integers"),
    Sample(transpose, [keys], {"permutation": (1, 0)}, name="keys"),
    Sample(sh.rev_p, [a], {"dimensions": (0, 2)}, dtypes=everything),
    Sample(sh.rev_p, [a], {"dimensions": ()}, name="no axes"),
    Sample(sh.rev_p, [c], {"dimensions": (1,)}, name="complex"),
    Sample(sh.rev_p, [keys], {"dimensions": (1,)}, name="keys"),
    Sample(
        sh.iota_p,
        [],
        {"dtype": np.dtype("int32"), "shape": (2, 3), "dimension": 1},
        expected=[[0, 1, 2]] * 2,
    ),
    Sample(
        sh.iota_p,
        [],
        {"dtype": np.dtype(ml_dtypes.bfloat16), "shape": (3,), "dimension": 0},
        name="bfloat16",
        expected=np.arange(3).astype(ml_dtypes.bfloat16),
    ),
    Sample(sh.iota_p, [], {"dtype": np.dtype("f4"), "shape": (0,), "dimension": 0}, name="empty"),
    Sample(sh.copy_p, [m], dtypes=everything),
    Sample(sh.copy_p, [keys], name="keys"),
    Sample(sh.copy_p, [c], name="complex"),
    Sample(sh.stop_gradient_p, [m], diff=(), dtypes=everything),
    Sample(sh.stop_gradient_p, [i], name="integers"),
    Sample(sh.stop_gradient_p, [keys], name="keys"),
]
