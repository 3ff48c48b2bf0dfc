"""Rows for reductions by a program of scalars."""

import numpy as np

from conformance.harness import Sample
from conformance.samples_window import params
from namoo.control import reduce as r
from namoo.core.avals import ShapedArray
from namoo.primitives.elementwise import add, mul, tanh
from namoo.transforms.stage import stage_closed

rng = np.random.default_rng(7)
x, y = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4))
scalar = ShapedArray((), np.dtype(np.float64))


def program(fun, count):
    return stage_closed(fun, [scalar] * count)


# a + b + ab is associative, with identity 0; (a, b)·(c, d) = (ac, ad + b) with (1, 0).
joined = program(lambda a, b: [add(add(a, b), mul(a, b))], 2)
affine = program(lambda a, b, c, d: [mul(a, c), add(mul(a, d), b)], 4)
scaled = program(lambda k, a, b: [add(add(a, b), mul(tanh(k), mul(a, b)))], 3)
zero, one, k = np.float64(0.1), np.float64(1), np.float64(0.4)

WINDOWS = {
    "window": params((2, 2, 2)),
    "padded window": params((1, 2, 3), (1, 1, 2), ((0, 1), (2, 0), (-1, 1)), (1, 1, 2), (1, 2, 1)),
    "no window": params((1, 4, 1)),
}

SAMPLES = [
    *(
        Sample(r.reduce_p, [x, zero], {"jaxpr": joined, "dimensions": axes}, name=name, dtypes=())
        for axes, name in (((0,), "one axis"), ((2, 0), "two axes"), ((0, 1, 2), "all axes"))
    ),
    Sample(
        r.reduce_p,
        [np.zeros((0, 3)), zero],
        {"jaxpr": joined, "dimensions": (0,)},
        name="empty",
        dtypes=(),
    ),
    Sample(
        r.reduce_p,
        [x, y, one, zero],
        {"jaxpr": affine, "dimensions": (1,)},
        name="pairs",
        dtypes=(),
    ),
    Sample(
        r.reduce_p, [k, x, zero], {"jaxpr": scaled, "dimensions": (1,)}, name="closure", dtypes=()
    ),
    *(
        Sample(r.reduce_window_p, [x, zero], {"jaxpr": joined, **window}, name=name, dtypes=())
        for name, window in WINDOWS.items()
    ),
    Sample(
        r.reduce_window_p,
        [x, y, one, zero],
        {"jaxpr": affine, **WINDOWS["window"]},
        name="pairs",
        dtypes=(),
    ),
]
