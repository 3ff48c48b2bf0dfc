"""What a type checker knows of users' programs: pyright reads them and reports what it infers."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import namoo as jax
import namoo.numpy as jnp

x = jnp.ones(3)
reveal_type(x + 1)  # Array
reveal_type(2.0 * x)  # Array
reveal_type(x @ x)  # Array
reveal_type(-x)  # Array
reveal_type(x > 0)  # Array
reveal_type(x[0])  # Array
reveal_type(x.sum(axis=0))  # Array
reveal_type(x.T.reshape(-1))  # Array
reveal_type(float(x[0]))  # float
reveal_type([row for row in x])  # list[Array]
x.sum(dim=0)  # error


@jax.jit
def scaled(x: jax.Array, factor: int) -> jax.Array:
    return x * factor


@jax.jit(static_argnames="factor")
def static(x: jax.Array, factor: int) -> jax.Array:
    return x * factor


reveal_type(scaled(x, 2))  # Array
reveal_type(static(x, factor=2))  # Array
reveal_type(scaled.lower(x, 2).compile())  # Compiled
reveal_type(scaled.explain())  # Explanation
scaled(x)  # error
static(x, 2, 3)  # error


def loss(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum((x @ w) ** 2)


reveal_type(jax.value_and_grad(loss)(x, x)[0])  # Array
reveal_type(jax.vmap(loss)(x, x))  # Array
jax.grad(loss)(x, x, x)  # error
jax.vmap(loss)(x)  # error
jax.grad(lambda w: w**2)(1.0)
"""


STRICT = """# pyright: strict
from typing import NamedTuple

import namoo as jax
import namoo.numpy as jnp
import numpy as np
from namoo import lax, nn, optim, random, tree


class Params(NamedTuple):
    w: jax.Array
    b: jax.Array


class Net(jax.Module):
    first: nn.Linear
    scale: jax.Array

    def __init__(self, key: jax.Array):
        self.first = nn.Linear(3, 4, key=key)
        self.scale = jnp.ones(4)

    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.relu(self.first(x)) * self.scale


def init(key: jax.Array, n: int) -> Params:
    return Params(random.normal(key, (n, 1)) * 0.1, jnp.zeros(1))


def predict(params: Params, x: jax.Array) -> jax.Array:
    return x @ params.w + params.b


def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((predict(params, x) - y) ** 2)


def descend(p: jax.Array, g: jax.Array) -> jax.Array:
    return p - 0.1 * g


@jax.jit
def step(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, jax.Array]:
    value, grads = jax.value_and_grad(loss)(params, x, y)
    return tree.map(descend, params, grads), value


def train(steps: int) -> float:
    key, data = random.split(random.key(0))
    x = random.normal(data, (32, 3))
    y = x.sum(axis=1, keepdims=True)
    params = init(key, 3)
    value = jnp.array(jnp.inf)
    for _ in range(steps):
        params, value = step(params, x, y)
    return float(value)


def cumulated(x: jax.Array) -> jax.Array:
    def body(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        return carry + row, jnp.sin(carry)

    total, _ = lax.scan(body, jnp.zeros(x.shape[1:]), x)
    out: jax.Array = lax.cond(total.sum() > 0, lambda: total, lambda: -total)
    return out


def cubes(x: jax.Array) -> jax.Array:
    return jnp.sum(x**3)


net = Net(random.key(1))
rows = jax.vmap(net)(jnp.ones((5, 3)))
optimizer = optim.adam(1e-3)
state = optimizer.init(net)
values = np.asarray(rows.at[0].set(1.0))
hessian = jax.hessian(cubes)(jnp.ones(2))
params = init(random.key(2), 3)
print(train(10), cumulated(rows), values.shape, jnp.linalg.norm(hessian), jnp.fft.fft(rows[0]))
step(params, rows)  # error
"""


def test_types_of_user_programs(tmp_path: Path):
    programs = {"program.py": PROGRAM, "strict.py": STRICT}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pyright", "--outputjson", str(tmp_path)]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    found = {}
    for note in json.loads(run.stdout)["generalDiagnostics"]:
        place = Path(note["file"]).name, note["range"]["start"]["line"]
        found[place] = note["message"] if note["severity"] == "information" else note["severity"]
    for name, text in programs.items():
        for number, line in enumerate(text.splitlines()):
            _, _, expected = line.partition("  # ")
            got = found.pop((name, number), "")
            seen = got == expected or got.endswith(f'is "{expected}"')
            assert seen, f"{line!r}: {got or 'nothing'}"
    assert not found
