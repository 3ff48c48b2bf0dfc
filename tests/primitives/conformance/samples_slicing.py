"""Rows for `namoo.primitives.slicing` and `namoo.primitives.split`."""

import numpy as np

from conformance.harness import Sample
from namoo._base import dtypes
from namoo.primitives import slicing as sl
from namoo.primitives.split import split_p

v = np.array([0.5, -1.25, 2.0, 3.5, -0.75])
m = np.arange(12.0).reshape(3, 4) / 5 - 1
c = m + 1j * m[::-1]
i = np.arange(12, dtype=np.int32).reshape(3, 4)
keys = np.arange(24, dtype=np.uint32).view(dtypes.KeyDType("threefry2x32").numpy).reshape(3, 4)
zero = np.array(0.0)

everything = ["float32", "bfloat16", "float16", "float8_e4m3fn"]


def box(starts, limits, strides=None):
    return {"start_indices": starts, "limit_indices": limits, "strides": strides}


def around(*config):
    return {"padding_config": config}


def at(*starts):
    return [np.int32(s) for s in starts]


def parts(axis, *sizes):
    return {"axis": axis, "sizes": sizes}


SAMPLES = [
    Sample(sl.slice_p, [v], box((1,), (4,)), expected=v[1:4], dtypes=everything),
    Sample(sl.slice_p, [m], box((0, 1), (3, 4), (2, 3)), name="strides", expected=m[::2, 1::3]),
    Sample(sl.slice_p, [m], box((1, 2), (2, 2)), name="empty"),
    Sample(sl.slice_p, [c], box((1, 0), (3, 3), (1, 2)), name="complex"),
    Sample(sl.slice_p, [keys], box((1, 0), (3, 2)), name="keys", expected=keys[1:, :2]),
    Sample(sl.slice_p, [np.array(2.0)], box((), ()), name="scalar"),
    Sample(
        sl.pad_p,
        [v, np.array(1.5)],
        around((1, 2, 0)),
        expected=np.pad(v, (1, 2), constant_values=1.5),
        dtypes=everything,
    ),
    Sample(
        sl.pad_p,
        [v, zero],
        around((0, 1, 2)),
        name="interior",
        expected=[0.5, 0, 0, -1.25, 0, 0, 2, 0, 0, 3.5, 0, 0, -0.75, 0],
    ),
    Sample(
        sl.pad_p,
        [v, np.array(9.0)],
        around((-2, -3, 1)),
        name="negative and interior",
        expected=[-1.25, 9, 2, 9],
    ),
    Sample(sl.pad_p, [m, zero], around((-1, 3, 0), (2, -3, 1)), name="two axes"),
    Sample(sl.pad_p, [m, zero], around((-3, 0, 0), (0, 0, 0)), name="all cut off"),
    Sample(sl.pad_p, [m, zero], around((-5, 4, 0), (0, 0, 0)), name="more than all cut off"),
    Sample(sl.pad_p, [m, zero], around((4, -6, 0), (0, -6, 1)), name="padding cut off"),
    Sample(sl.pad_p, [np.zeros((0, 2)), zero], around((1, 1, 3), (0, 1, 0)), name="of nothing"),
    Sample(sl.pad_p, [i, np.int32(7)], around((1, 0, 0), (0, 0, 1)), name="integers"),
    Sample(sl.pad_p, [keys, keys[0, :1].reshape(())], around((1, 0, 0), (0, 0, 0)), name="keys"),
    Sample(
        sl.concatenate_p,
        [m, m[:1] * 2, m[:0]],
        {"dimension": 0},
        expected=np.concatenate([m, m[:1] * 2]),
        dtypes=everything,
    ),
    Sample(sl.concatenate_p, [m, m[:, :2]], {"dimension": 1}, name="columns"),
    Sample(sl.concatenate_p, [keys, keys], {"dimension": 1}, name="keys"),
    Sample(split_p, [m], parts(1, 1, 0, 3), expected=[m[:, :1], m[:, :0], m[:, 1:]]),
    Sample(split_p, [m], parts(0, 3), name="one part"),
    Sample(split_p, [keys], parts(0, 1, 2), name="keys"),
    Sample(
        sl.dynamic_slice_p,
        [m, *at(1, 1)],
        {"slice_sizes": (2, 3)},
        expected=m[1:, 1:],
        dtypes=everything,
    ),
    Sample(
        sl.dynamic_slice_p,
        [m, *at(7, -3)],
        {"slice_sizes": (2, 3)},
        name="moved inside",
        expected=m[1:, :3],
    ),
    Sample(
        sl.dynamic_slice_p,
        [m, *at(0, 0)],
        {"slice_sizes": (2, 3)},
        name="different starts",
        make=lambda rng: [rng.normal(size=(3, 4)), *rng.integers(-2, 5, 2, np.int32)],
    ),
    Sample(sl.dynamic_slice_p, [m, *at(1, 2)], {"slice_sizes": (0, 1)}, name="empty"),
    Sample(sl.dynamic_slice_p, [zero], {"slice_sizes": ()}, name="scalar"),
    Sample(sl.dynamic_slice_p, [keys, *at(1, 2)], {"slice_sizes": (1, 2)}, name="keys"),
    Sample(
        sl.dynamic_update_slice_p,
        [m, m[:2, :2] * 3 + 1, *at(1, 2)],
        expected=np.block([[m[:1]], [m[1:, :2], m[:2, :2] * 3 + 1]]),
        dtypes=everything,
    ),
    Sample(sl.dynamic_update_slice_p, [m, m[:2, :2] * 3, *at(9, -9)], name="moved inside"),
    Sample(
        sl.dynamic_update_slice_p,
        name="different starts",
        make=lambda rng: [
            rng.normal(size=(3, 4)),
            rng.normal(size=(2, 3)),
            *rng.integers(-2, 5, 2, np.int32),
        ],
    ),
    Sample(sl.dynamic_update_slice_p, [m, m[:0], *at(1, 1)], name="empty"),
    Sample(sl.dynamic_update_slice_p, [keys, keys[:1], *at(2, 0)], name="keys"),
]
