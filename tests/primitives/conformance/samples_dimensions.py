"""Rows for `namoo.primitives.dimensions`."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives.dimensions import dim_as_value_p

SAMPLES = [Sample(dim_as_value_p, [], {"dim": 3}, expected=np.asarray(3))]
