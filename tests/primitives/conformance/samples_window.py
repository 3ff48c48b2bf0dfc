"""Rows for reductions over a sliding window."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives import reduce_window as w
from namoo.primitives.compare import ge_p, le_p

rng = np.random.default_rng(6)
# No two elements are closer than 0.1, so that the largest stays the largest.
distinct = (rng.permutation(60) / 8 - 3.7).reshape(3, 4, 5)
tangent = rng.normal(size=(3, 4, 5))
integers = rng.integers(-100, 100, (4, 5)).astype(np.int8)
narrow = ["float32", "float16", "bfloat16"]


def params(window, strides=None, padding=None, gaps=None, steps=None):
    ones = (1,) * len(window)
    return {
        "window_dimensions": window,
        "window_strides": strides or ones,
        "padding": padding or ((0, 0),) * len(window),
        "base_dilation": gaps or ones,
        "window_dilation": steps or ones,
    }


WINDOWS = {
    "plain": params((1, 2, 3)),
    "apart": params((1, 2, 2), strides=(1, 2, 2)),
    "strides": params((2, 2, 2), strides=(1, 2, 1)),
    "padding": params((1, 3, 2), padding=((0, 0), (1, 2), (0, 1)), strides=(1, 2, 1)),
    "negative padding": params((1, 2, 2), padding=((0, 0), (-1, 1), (1, -2))),
    "gaps": params((1, 2, 3), gaps=(1, 2, 3), padding=((0, 0), (1, 0), (0, 2))),
    "wide windows": params((1, 2, 2), steps=(1, 2, 3), padding=((0, 0), (1, 1), (0, 1))),
    "everything": params((2, 2, 3), (1, 2, 2), ((1, 0), (2, -1), (0, 3)), (2, 1, 2), (1, 2, 1)),
    "none fits": params((1, 5, 2)),
    "nothing to do": params((1, 1, 1)),
}


def source(numbers):
    return rng.normal(size=w.window_shape(distinct.shape, **numbers))


SAMPLES = [
    *(
        Sample(prim, [distinct], numbers, name=name, dtypes=narrow)
        for prim in (w.reduce_window_sum_p, w.reduce_window_max_p, w.reduce_window_min_p)
        for name, numbers in WINDOWS.items()
    ),
    *(
        Sample(
            w.select_and_gather_add_p,
            [tangent, distinct],
            {"select_prim": select, **numbers},
            name=f"{select} {name}",
            dtypes=narrow,
        )
        for select in (ge_p, le_p)
        for name, numbers in WINDOWS.items()
    ),
    *(
        Sample(
            w.select_and_scatter_add_p,
            [source(numbers), distinct],
            {"select_prim": select, **numbers},
            name=f"{select} {name}",
            dtypes=narrow,
        )
        for select in (ge_p, le_p)
        for name, numbers in WINDOWS.items()
    ),
    *(
        Sample(prim, [integers], params((2, 2), padding=((1, 0), (0, 1))), dtypes=())
        for prim in (w.reduce_window_sum_p, w.reduce_window_max_p, w.reduce_window_min_p)
    ),
    Sample(w.reduce_window_max_p, [integers > 0], params((2, 2)), dtypes=(), name="booleans"),
    Sample(w.reduce_window_sum_p, [tangent + 1j * distinct], WINDOWS["strides"], name="complex"),
]
