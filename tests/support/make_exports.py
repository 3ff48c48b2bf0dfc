"""Write the files of `tests/data/exports`: one of each version of the format, kept for ever.

Run it only for a new version of the format, `python tests/support/make_exports.py 2`; the files of
older versions are what tests are about. Beside each file are the arguments of a call and the
results at that time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import namoo
import namoo.numpy as jnp
from namoo import lax
from namoo.export import export, symbolic_args_specs

FOLDER = Path(__file__).parents[1] / "data" / "exports"


def functions() -> dict[str, tuple[Any, Any, list[np.ndarray]]]:
    """Functions, the symbolic shapes of their arguments, and arguments."""
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    weights = [jnp.asarray(normal(4, 1, 3, 3)), jnp.asarray(normal(64, 10))]

    def cnn(x):
        x = namoo.nn.relu(lax.conv_general_dilated(x, weights[0], (1, 1), "SAME"))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return namoo.nn.log_softmax(x.reshape((x.shape[0], -1)) @ weights[1])

    def attention(x, w):
        q, k, v = jnp.split(x @ w, 3, axis=-1)
        mask = jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool))
        return jnp.where(mask, namoo.nn.softmax(q @ k.T), 0.0) @ v

    def ode(y, steps):
        def step(i, state):
            t, y = state
            return t + 0.1, y + 0.1 * jnp.stack([y[1], -jnp.sin(y[0]) * jnp.exp(-t)])

        return lax.fori_loop(0, steps, step, (0.0, y))[1]

    def mixed(x, i):
        key = namoo.random.key(5)
        noise = namoo.random.uniform(key, x.shape)
        rows = lax.cond(i[0] > 1, lambda v: v[i], lambda v: v[i] * 2, x)
        scanned = lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.zeros(x.shape[1]), x)
        return {"rows": rows, "scan": scanned, "sorted": jnp.sort(x + noise), "n": x.shape[0] * i}

    def algebra(a, b):
        c = a @ a.T + 3 * jnp.eye(3)
        return jnp.linalg.solve(c, b), jnp.linalg.eigh(c)[0], jnp.fft.rfft(b), b.astype("bfloat16")

    return {
        "cnn": (cnn, ("b, ...",), [normal(2, 1, 8, 8)]),
        "attention": (attention, ("n, _", None), [normal(5, 4), normal(4, 12)]),
        "ode": (ode, (None, None), [normal(2), np.asarray(20, np.int32)]),
        "mixed": (mixed, ("n, m", None), [normal(5, 3), np.array([2, 0], np.int32)]),
        "algebra": (algebra, (None, None), [normal(3, 3), normal(3)]),
    }


def main(version: str) -> None:
    for name, (fun, shapes, args) in functions().items():
        exported = export(namoo.jit(fun))(*symbolic_args_specs(tuple(args), shapes))
        order = 0 if name == "ode" else 1
        (FOLDER / f"{name}.v{version}.bin").write_bytes(exported.serialize(vjp_order=order))
        results = namoo.tree.leaves(exported.call(*args))
        results = [np.asarray(x, np.float32) if x.dtype == "bfloat16" else x for x in results]
        arrays = {f"arg{i}": x for i, x in enumerate(args)}
        arrays |= {f"result{i}": np.asarray(x) for i, x in enumerate(results)}
        np.savez(FOLDER / f"{name}.v{version}.npz", **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
