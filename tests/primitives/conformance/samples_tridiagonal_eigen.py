"""Rows for `namoo.primitives.linalg.tridiagonal_eigen`."""

import numpy as np
import scipy.linalg

from conformance.harness import Sample
from namoo.primitives.elementwise import mul
from namoo.primitives.linalg.tridiagonal_eigen import eigh_tridiagonal_p

rng = np.random.default_rng(0)
d, e = np.array([1.0, 3.0, -2.0, 6.0, 4.5]), rng.standard_normal(4)


def params(compute_vectors=True, subset_by_index=None):
    return dict(compute_vectors=compute_vectors, subset_by_index=subset_by_index)


class Squared(Sample):
    """A row whose eigenvectors are squared, element by element: their signs are arbitrary."""

    def run(self, *args):
        w, v = super().run(*args)
        return [w, mul(v, v)]


def values(d, e):
    return [scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True)]


SAMPLES = [
    Sample(eigh_tridiagonal_p, [d, e], params(False), oracle=values, dtypes=["float32"]),
    Sample(eigh_tridiagonal_p, [d, e], params(False, (1, 3)), name="some values"),
    Squared(eigh_tridiagonal_p, [d, e], params(), name="all", tol=1e-4),
    Squared(eigh_tridiagonal_p, [d, e], params(True, (1, 3)), name="some", tol=1e-4),
    Squared(
        eigh_tridiagonal_p,
        [np.stack([d, d[::-1]]), np.stack([e, e * e])],
        params(),
        name="stack",
        tol=1e-4,
    ),
    Squared(eigh_tridiagonal_p, [d[:1], e[:0]], params(), name="one element"),
    Sample(eigh_tridiagonal_p, [d[:0], e[:0]], params(False), name="empty", diff=()),
    Sample(eigh_tridiagonal_p, [d * np.nan, e], params(), name="NaN", diff=()),
]
