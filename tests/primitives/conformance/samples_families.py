"""Rows for `namoo.primitives.families`."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives.families import add_any_p

x = np.array([[0.5, -1.25, 2.0], [3.0, 0.125, -0.75]])

SAMPLES = [
    Sample(add_any_p, [x, x[::-1] * 2], dtypes=["float32", "bfloat16"]),
    Sample(add_any_p, [np.array(1.5), np.array(2.0)], name="scalars"),
    Sample(add_any_p, [x + 1j, x * 2j], name="complex"),
    Sample(add_any_p, [np.arange(3), np.arange(3)], name="integers"),
]
