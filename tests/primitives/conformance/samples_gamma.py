"""Rows for `primitives/gamma.py`.

The derivative is that of the sample at fixed probability, not at fixed bits: it is compared with
JAX's in `tests/random/test_random_transforms.py`.
"""

import numpy as np

from conformance.harness import Sample
from conformance.samples_prng import keys
from namoo.primitives.random.gamma import random_gamma_p

ALPHA = np.array([0.3, 1.0, 2.5, 40.0])

SAMPLES = [
    Sample(random_gamma_p, [keys(), ALPHA], {"log_space": False}, diff=(), dtypes=()),
    Sample(random_gamma_p, [keys(), ALPHA], {"log_space": True}, diff=(), dtypes=(), name="log"),
    Sample(
        random_gamma_p,
        [keys("philox4x32", (2,)), ALPHA.reshape(2, 2)],
        {"log_space": False},
        diff=(),
        dtypes=(),
        name="keys",
    ),
]
