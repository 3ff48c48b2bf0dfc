"""What a type checker knows of a user's program: pyright reads one and reports what it infers."""

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


def test_types_of_a_user_program(tmp_path: Path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    command = [sys.executable, "-m", "pyright", "--outputjson", str(file)]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    found = {}
    for note in json.loads(run.stdout)["generalDiagnostics"]:
        line = note["range"]["start"]["line"]
        found[line] = note["message"] if note["severity"] == "information" else note["severity"]
    for number, line in enumerate(PROGRAM.splitlines()):
        _, _, expected = line.partition("  # ")
        got = found.pop(number, "")
        assert got == expected or got.endswith(f'is "{expected}"'), f"{line!r}: {got or 'nothing'}"
    assert not found
