"""Rows for `namoo.primitives.gather`."""

import numpy as np

from conformance.harness import Sample
from namoo._base import dtypes
from namoo.primitives import gather as ga
from namoo.primitives.gather_dimensions import (
    CLIP,
    FILL_OR_DROP,
    ONE_HOT,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)

v = np.array([0.5, -1.25, 2.0, 3.5, -0.75])
m = np.arange(12.0).reshape(3, 4) / 5 - 1.1
a = np.arange(24.0).reshape(2, 3, 4) / 7 - 1.5
keys = np.arange(24, dtype=np.uint32).view(dtypes.KeyDType("threefry2x32").numpy).reshape(3, 4)


def ints(*values):
    return np.array(values, np.int32)


def read(dnums, sizes, mode=PROMISE_IN_BOUNDS, fill=None, unique=False):
    return {
        "dimension_numbers": GatherDimensionNumbers(*dnums),
        "slice_sizes": sizes,
        "indices_are_sorted": False,
        "unique_indices": unique,
        "mode": mode,
        "fill_value": fill,
    }


def write(dnums, mode=FILL_OR_DROP, unique=False):
    return {
        "dimension_numbers": ScatterDimensionNumbers(*dnums),
        "indices_are_sorted": False,
        "unique_indices": unique,
        "mode": mode,
    }


rows, columns, points = ((1,), (0,), (0,)), ((0,), (1,), (1,)), ((), (0, 1), (0, 1))
windows = ((1, 2), (), (0, 1))
three = ints([2], [0], [2])
pairs = ints([2, 1], [0, 0], [2, 1], [1, 3])
everything = ["float32", "bfloat16", "float16"]
outside = ints([2], [-1], [3])
spread = ints([[2], [0]], [[1], [1]], [[0], [2]])

GATHERS = [
    Sample(ga.gather_p, [m, three], read(rows, (1, 4)), expected=m[[2, 0, 2]], dtypes=everything),
    Sample(
        ga.gather_p, [m, three], read(columns, (3, 1)), name="columns", expected=m[:, [2, 0, 2]]
    ),
    Sample(
        ga.gather_p,
        [m, pairs],
        read(points, (1, 1)),
        name="points",
        expected=m[[2, 0, 2, 1], [1, 0, 1, 3]],
    ),
    Sample(
        ga.gather_p,
        [m, ints([1, 2], [0, 9], [-3, 1])],
        read(windows, (2, 2), CLIP),
        name="windows",
        expected=[m[1:3, 2:4], m[0:2, 2:4], m[0:2, 1:3]],
    ),
    Sample(
        ga.gather_p,
        [m, outside],
        read(rows, (1, 4), FILL_OR_DROP, 7.5),
        name="filled",
        expected=[m[2], [7.5] * 4, [7.5] * 4],
    ),
    Sample(
        ga.gather_p,
        [m, outside],
        read(rows, (1, 4), FILL_OR_DROP),
        name="filled with NaN",
        diff=(),
        expected=[m[2], [np.nan] * 4, [np.nan] * 4],
    ),
    Sample(
        ga.gather_p,
        [m, outside],
        read(rows, (1, 4), ONE_HOT),
        name="one hot",
        expected=[m[2], [0] * 4, [0] * 4],
    ),
    Sample(ga.gather_p, [m, outside], read(columns, (3, 1), CLIP), name="clipped"),
    Sample(
        ga.gather_p, [m, ints([2, 1], [9, 9])], read(points, (1, 1), CLIP), name="points clipped"
    ),
    Sample(
        ga.gather_p,
        [a, ints([1, 1], [2, 0], [0, 2])],
        read(((0, 2), (1,), (2, 1)), (2, 1, 2), CLIP),
        name="window in front and behind",
    ),
    Sample(
        ga.gather_p,
        [a, np.moveaxis(spread, 0, 1) * 1],
        read(((2,), (1,), (1,), (0,), (0,)), (1, 1, 4)),
        name="batching axes",
    ),
    Sample(
        ga.gather_p,
        [a, spread],
        read(((2,), (1,), (1,), (0,), (1,)), (1, 1, 4)),
        name="batching axes elsewhere",
    ),
    Sample(
        ga.gather_p,
        [m, np.zeros((3, 0), np.int32)],
        read(((1, 2), (), ()), (3, 2)),
        name="no index",
    ),
    Sample(ga.gather_p, [m, three], read(((1, 2), (), (0,)), (1, 3)), name="kept axis of length 1"),
    Sample(ga.gather_p, [m, ints(1)], read(((0,), (0,), (0,)), (1, 4)), name="one row"),
    Sample(
        ga.gather_p,
        [m, ints(9)],
        read(((0,), (0,), (0,)), (1, 4), FILL_OR_DROP, 2.0),
        name="one row filled",
        expected=[2.0] * 4,
    ),
    Sample(
        ga.gather_p,
        [m, ints(0, 9)],
        read(points, (1, 1), FILL_OR_DROP, 2.0),
        name="one point filled",
        expected=2.0,
    ),
    Sample(ga.gather_p, [m, three[:0]], read(rows, (1, 4)), name="nothing"),
    Sample(ga.gather_p, [m, three], read(rows, (1, 0)), name="empty windows"),
    Sample(
        ga.gather_p,
        [m, ints([2], [0], [1])],
        read(rows, (1, 4), unique=True),
        name="unique",
    ),
    Sample(ga.gather_p, [keys, outside], read(rows, (1, 4), FILL_OR_DROP), name="keys"),
    Sample(ga.gather_p, [m, three.astype(np.uint8)], read(rows, (1, 4)), name="unsigned"),
]

u3 = np.arange(12.0).reshape(3, 4) / 3 + 0.7
u4 = np.array([1.5, -0.5, 0.25, 2.0])
uw = np.arange(8.0).reshape(2, 2, 2) + 0.3


def scatters(prim, **more):
    """Rows that every way of writing must pass; `more` for those that are not smooth."""
    return [
        Sample(prim, [m, three, u3], write(rows), name="rows", dtypes=everything, **more),
        Sample(prim, [m, pairs, u4], write(points), name="points", **more),
        Sample(prim, [m, three, u3.T[:3, :3]], write(columns), name="columns", **more),
        Sample(prim, [m, outside, u3], write(rows), name="dropped", **more),
        Sample(prim, [m, outside, u3], write(rows, CLIP), name="clipped", **more),
        Sample(prim, [m, ints([0, 1], [1, 2]), uw], write(windows), name="windows", **more),
        Sample(
            prim,
            [m, ints([9, 1], [-2, 0]), uw],
            write(windows, CLIP),
            name="windows clipped",
            **more,
        ),
        Sample(prim, [m, ints(1), u4], write(((0,), (0,), (0,))), name="one row", **more),
        Sample(prim, [m, ints(9), u4], write(((0,), (0,), (0,))), name="one row dropped", **more),
        Sample(
            prim,
            [a, spread, np.arange(24.0).reshape(3, 2, 4) / 9 + 0.31],
            write(((2,), (1,), (1,), (0,), (1,))),
            name="batching axes",
            **more,
        ),
        Sample(
            prim,
            [m, ints([2], [0], [1]), u3],
            write(rows, unique=True),
            name="unique",
            make=lambda rng: [
                rng.normal(size=(3, 4)),
                rng.permutation(3).astype(np.int32)[:, None],
                rng.normal(size=(3, 4)),
            ],
            **more,
        ),
        Sample(prim, [m, three[:0], u3[:0]], write(rows), name="nothing", **more),
        Sample(
            prim,
            [m, np.zeros((2, 0), np.int32), np.stack([u3, -u3])],
            write(((1, 2), (), ())),
            name="no index",
            **more,
        ),
    ]


def added(x, index, u):
    out = np.array(x)
    np.add.at(out, index, u)
    return out


SAMPLES = [
    *GATHERS,
    *scatters(ga.scatter_p),
    *scatters(ga.scatter_add_p),
    *scatters(ga.scatter_sub_p),
    *scatters(ga.scatter_mul_p),
    *scatters(ga.scatter_min_p),
    *scatters(ga.scatter_max_p),
    Sample(
        ga.scatter_p,
        [v, ints([1], [3], [1]), np.array([7.0, 8.0, 9.0])],
        write(((), (0,), (0,))),
        name="the last one stays",
        expected=[0.5, 9, 2, 8, -0.75],
    ),
    Sample(
        ga.scatter_add_p,
        [v, ints([1], [3], [1]), np.array([7.0, 8.0, 9.0])],
        write(((), (0,), (0,))),
        name="both are added",
        expected=[0.5, 14.75, 2, 11.5, -0.75],
    ),
    Sample(
        ga.scatter_add_p,
        [v, ints([0], [1], [3], [-1]), np.array([[1.0, 10], [2, 20], [3, 30], [4, 40]])],
        write(((1,), (), (0,))),
        name="windows overlap",
        expected=[1.5, 10.75, 22, 6.5, 29.25],
    ),
    Sample(
        ga.scatter_mul_p,
        [v, ints([1], [3], [1], [3], [3]), np.array([7.0, 0.0, 9.0, 2.0, 0.0])],
        write(((), (0,), (0,))),
        name="zeros",
        expected=[0.5, -1.25 * 63, 2, 0, -0.75],
        second_order=False,
    ),
    Sample(
        ga.scatter_mul_p,
        [np.array([2.0, 11.0]), np.zeros((3, 0), np.int32), np.array([[3.0], [5.0], [7.0]])],
        write(((1,), (), ())),
        name="windows without an index",
        expected=[210, 11],
    ),
    Sample(
        ga.scatter_max_p,
        [np.array([False, True, False]), ints([2], [1]), np.array([True, False])],
        write(((), (0,), (0,))),
        name="booleans",
        expected=[False, True, True],
    ),
    Sample(ga.scatter_p, [keys, three, keys], write(rows), name="keys"),
]
