"""Rows for the operations of `primitives.barrier`."""

import numpy as np

from conformance.harness import Sample
from namoo.primitives import barrier

token = np.zeros((0,), bool)

SAMPLES = [
    Sample(barrier.optimization_barrier_p, (np.array([1.0, 2.0]), np.array([[0.5]]))),
    Sample(barrier.create_token_p, ()),
    Sample(barrier.after_all_p, (token, token)),
    Sample(barrier.dce_sink_p, (np.array([1.0, 2.0]),)),
    # Equal bounds: the one case whose numbers are known.
    Sample(
        barrier.rng_uniform_p,
        (np.array(2.0), np.array(2.0)),
        {"shape": (3,)},
        diff=(),
        batchable=False,
    ),
]
