"""Programs whose values must be the same on every platform.

`python everywhere.py FILE` writes their values to FILE; `python everywhere.py FILE REFERENCE`
also compares them with the values of another platform, prints what differs and counts it.
It needs NumPy and namoo only, so that it runs in a browser and under emulation.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import namoo as jax
import namoo.numpy as jnp

Case = Callable[[], Any]

X = np.linspace(-2.0, 2.0, 24, dtype=np.float32).reshape(4, 6)
POSITIVE = np.linspace(0.3, 5.0, 12, dtype=np.float32)
MATRIX = np.eye(5, dtype=np.float32) * 3 + np.arange(25, dtype=np.float32).reshape(5, 5) / 25
SYMMETRIC = MATRIX @ MATRIX.T
VECTOR = np.arange(5, dtype=np.float32)
WIDE = np.sin(np.arange(64 * 96, dtype=np.float32)).reshape(64, 96)


def _key() -> Any:
    return jax.random.key(7)


def _energy(x: Any) -> Any:
    return jnp.sum(jnp.tanh(x) ** 2 * jnp.exp(-x))


def _recurrence(x: Any) -> Any:
    return jax.lax.scan(lambda c, row: (jnp.sin(c + row), c.sum()), jnp.zeros(6), x)


def _network(steps: int = 20) -> Any:
    """Train a small network on the digits by Adam."""
    (images, labels), _ = jax.data.digits()
    images, labels = jnp.asarray(images[:128]).reshape(128, -1) / 255, jnp.asarray(labels[:128])
    k1, k2 = jax.random.split(_key())
    size = images.shape[1]
    params = {
        "hidden": jax.random.normal(k1, (size, 16)) / np.sqrt(size),
        "out": jax.random.normal(k2, (16, 10)) / 4,
    }

    def loss(params):
        logits = jax.nn.relu(images @ params["hidden"]) @ params["out"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(128), labels])

    optimizer = jax.optim.adam(1e-2)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state, params)
        return jax.optim.apply_updates(params, updates), state, value

    losses = []
    for _ in range(steps):
        params, state, value = step(params, state)
        losses.append(value)
    return jnp.stack(losses)


def _batches() -> Any:
    loader = jax.data.Loader({"x": np.arange(12, dtype=np.int32)}, batch_size=4, key=_key())
    return [batch["x"] for batch in loader]


special, linalg, random = jax.scipy.special, jnp.linalg, jax.random

CASES: dict[str, Case] = {
    "operators": lambda: (X + 1, X * X - X / 3, -X // 2, X % 3),
    "grad": lambda: jax.grad(_energy)(X),
    "jit": lambda: jax.jit(_energy)(X),
    "jit of grad": lambda: jax.jit(jax.grad(_energy))(X),
    "hessian": lambda: jax.hessian(_energy)(POSITIVE[:4]),
    "vmap": lambda: jax.vmap(jax.grad(_energy))(X),
    "scan": lambda: _recurrence(X),
    "grad of scan": lambda: jax.jit(jax.grad(lambda x: _recurrence(x)[1].sum()))(X),
    "while_loop": lambda: jax.lax.while_loop(lambda c: c < 100, lambda c: c * 1.5 + 1, 1.0),
    "cond": lambda: jax.jit(lambda c, x: jax.lax.cond(c, jnp.sin, jnp.cos, x))(True, X),
    "checkpoint": lambda: jax.grad(jax.checkpoint(_energy))(X),
    "callback": lambda: jax.jit(lambda x: jax.pure_callback(lambda v: v * 2, x, x))(X),
    "bits": lambda: random.bits(_key(), (9,)),
    "uniform": lambda: random.uniform(_key(), (9,)),
    "normal": lambda: random.normal(_key(), (9,)),
    "normal of jit": lambda: jax.jit(lambda k: random.normal(k, (40,)))(_key()),
    "gamma": lambda: random.gamma(_key(), 2.0, (9,)),
    "poisson": lambda: random.poisson(_key(), 3.0, (9,)),
    "permutation": lambda: random.permutation(_key(), 10),
    "categorical": lambda: random.categorical(_key(), X),
    "solve": lambda: linalg.solve(MATRIX, VECTOR),
    "grad of solve": lambda: jax.grad(lambda a: linalg.solve(a, VECTOR).sum())(MATRIX),
    "det, inv": lambda: (linalg.det(MATRIX), linalg.inv(MATRIX)),
    "cholesky": lambda: linalg.cholesky(SYMMETRIC),
    "qr": lambda: linalg.qr(MATRIX),
    "singular values": lambda: linalg.svd(MATRIX)[1],
    "eigenvalues": lambda: linalg.eigh(SYMMETRIC)[0],
    "lu": lambda: jax.scipy.linalg.lu(MATRIX),
    "triangular": lambda: jax.scipy.linalg.solve_triangular(MATRIX, VECTOR, lower=True),
    "expm": lambda: jax.scipy.linalg.expm(MATRIX / 4),
    "fft": lambda: jnp.fft.fft(X),
    "rfft": lambda: jnp.fft.irfft(jnp.fft.rfft(X)),
    "erf": lambda: (special.erf(X), special.erfc(X), special.erfinv(X / 3)),
    "grad of erf": lambda: jax.grad(lambda x: jax.nn.gelu(x, approximate=False).sum())(X),
    "lgamma": lambda: (jax.lax.lgamma(POSITIVE), jax.lax.digamma(POSITIVE)),
    "zeta": lambda: (special.zeta(POSITIVE + 1, POSITIVE), special.polygamma(2, POSITIVE)),
    "gammainc": lambda: (special.gammainc(POSITIVE, 2.0), special.gammaincc(POSITIVE, 2.0)),
    "betainc": lambda: (special.betainc(POSITIVE, 2.0, 0.3), special.betaln(POSITIVE, 2.0)),
    "bessel": lambda: (special.i0e(X), special.i1e(X)),
    "ndtri": lambda: (special.ndtri(POSITIVE / 6), special.log_ndtr(X)),
    "einsum": lambda: jnp.einsum("ij,jk,...k->...i", MATRIX, MATRIX, VECTOR),
    "matmul": lambda: jax.jit(lambda x: jax.nn.relu(x @ x.T) @ x)(WIDE),
    "sort": lambda: jax.jit(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.cumsum(x)))(WIDE[0]),
    "float16": lambda: jax.jit(lambda x: (x.astype("float16") * 3 + 1).astype("float32"))(X),
    "integers": lambda: jax.jit(lambda x: (x // 3, x % 5, x << 2, x.astype("uint8")))(np.arange(9)),
    "convolution": lambda: jax.jit(lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), "SAME"))(
        WIDE.reshape(1, 1, 64, 96), WIDE[:3, :3].reshape(1, 1, 3, 3)
    ),
    "large reduction": lambda: jax.jit(lambda n: jnp.sin(jnp.arange(3_000_000.0) * n).sum())(1e-3),
    "digits by Adam": _network,
    "Loader": _batches,
}


def values() -> dict[str, np.ndarray]:
    """The arrays of each case, under the case's name and their number; errors are printed."""
    found = {}
    for name, case in CASES.items():
        try:
            for i, leaf in enumerate(jax.tree.leaves(case())):
                found[f"{name} {i}"] = np.asarray(leaf)
        except Exception:
            print(f"{name} raises:")
            traceback.print_exc(limit=-3, file=sys.stdout)
    return found


def differences(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> list[str]:
    """The cases whose values are missing or not close to the expected ones."""
    wrong = []
    for name, value in expected.items():
        if name not in found:
            wrong.append(f"{name}: missing")
        elif found[name].dtype != value.dtype or found[name].shape != value.shape:
            wrong.append(f"{name}: {found[name].dtype}{found[name].shape}")
        elif not np.allclose(found[name], value, rtol=2e-4, atol=2e-5, equal_nan=True):
            wrong.append(f"{name}: by {np.abs(found[name] - value).max()}")
    return wrong


def main(file: str, reference: str = "") -> int:
    """Write the values to a file, compare them, and return how many cases differ."""
    found = values()
    np.savez(file, allow_pickle=False, **found)
    if not reference:
        return 0
    with np.load(reference) as stored:
        wrong = differences(found, dict(stored))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    cases = {name.rpartition(" ")[0] for name in (line.partition(":")[0] for line in wrong)}
    print(f"{len(CASES) - len(cases)} of {len(CASES)} cases equal the reference")
    return len(cases)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
