"""Library functions obey the strict settings of promotion in their own operations."""

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo import nn, random
from namoo.image import resize
from namoo.scipy import fft, signal, special, stats
from namoo.scipy.spatial.transform import Rotation

KEY = random.key(0)
x = jnp.arange(12.0).reshape(3, 4) / 7 + 0.1
square = jnp.eye(3) + x[:, :3]
half = x.astype("float16")

CALLS = {
    "resize": lambda: resize(x, (6, 2), "cubic"),
    "cov": lambda: jnp.cov(x, aweights=jnp.arange(4)),
    "corrcoef": lambda: jnp.corrcoef(x),
    "polyfit": lambda: jnp.polyfit(jnp.arange(4.0), x.T, 2),
    "gradient": lambda: jnp.gradient(x),
    "percentile": lambda: jnp.percentile(half, jnp.array([10.0, 50.0], "float16"), axis=1),
    "average": lambda: jnp.average(x, axis=0, weights=jnp.arange(3.0)),
    "histogram": lambda: jnp.histogram(x, bins=3),
    "interp": lambda: jnp.interp(x[0], x[1], x[2]),
    "slogdet": lambda: jnp.linalg.slogdet(square),
    "pinv": lambda: jnp.linalg.pinv(x),
    "matrix_rank": lambda: jnp.linalg.matrix_rank(x),
    "categorical": lambda: random.categorical(KEY, x, shape=(2, 3)),
    "choice": lambda: random.choice(KEY, 5, (2,), p=jnp.ones(5) / 5),
    "multivariate normal": lambda: random.multivariate_normal(KEY, jnp.zeros(3), jnp.eye(3), (2,)),
    "truncated normal": lambda: random.truncated_normal(KEY, -1.0, x),
    "dct": lambda: fft.dct(x, n=6),
    "idct": lambda: fft.idct(x, axis=0),
    "stft": lambda: signal.stft(x.ravel(), nperseg=4),
    "rotation": lambda: Rotation.from_euler("xyz", x[:, :3]).apply(x[:, 1:]),
    "logpdf": lambda: stats.multivariate_normal.logpdf(x[:, :3], jnp.zeros(3), jnp.eye(3)),
    "kde": lambda: stats.gaussian_kde(x)(x[:, :2]),
    "logsumexp": lambda: special.logsumexp(x, axis=1, b=jnp.arange(4.0)[None]),
    "softmax": lambda: nn.softmax(half, where=half > 0.5),
    "standardize": lambda: nn.standardize(half),
    "initialiser": lambda: nn.initializers.orthogonal()(KEY, (3, 4)),
    "gradient of norm": lambda: namoo.grad(lambda v: jnp.linalg.norm(v, axis=0).sum())(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_operation_inside_promotes(name):
    wanted = namoo.tree.leaves(CALLS[name]())
    with namoo.numpy_rank_promotion("raise"), namoo.numpy_dtype_promotion("strict"):
        found = namoo.tree.leaves(CALLS[name]())
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
