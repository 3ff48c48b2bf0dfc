"""Rows for the operations of `primitives.dimensions`."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives import dimensions

SAMPLES = [
    Sample(dimensions.dim_as_value_p, (), {"dim": 3}, expected=np.asarray(3)),
]
