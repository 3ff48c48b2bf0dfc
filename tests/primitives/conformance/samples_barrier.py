"""Rows for the operations of `primitives.barrier`."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives import barriers

token = np.zeros((0,), bool)

SAMPLES = [
    Sample(barriers.optimization_barrier_p, (np.array([1.0, 2.0]), np.array([[0.5]]))),
    Sample(barriers.create_token_p, ()),
    Sample(barriers.after_all_p, (token, token)),
    Sample(barriers.dce_sink_p, (np.array([1.0, 2.0]),)),
    # Equal bounds: the one case whose numbers are known.
    Sample(
        barriers.rng_uniform_p,
        (np.array(2.0), np.array(2.0)),
        {"shape": (3,)},
        diff=(),
        batchable=False,
    ),
]
