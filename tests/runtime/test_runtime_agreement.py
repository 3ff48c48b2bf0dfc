"""The C++ runtime and the Python one do the same: results, traces, errors of generated calls."""

import os
import subprocess
import sys

import pytest

from namoo._base.runtime import native

pytestmark = pytest.mark.skipif(native is None, reason="the C++ part was not built")

PROGRAM = """
import random, re, sys, warnings
import numpy as np
import namoo, namoo.numpy as jnp
from namoo import tree_util

warnings.simplefilter("ignore")
rng = random.Random(int(sys.argv[1]))
namoo.config.update("engine", "interpreter" if int(sys.argv[1]) % 2 else "native")


@tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag

    def tree_flatten(self):
        return (self.a, self.b), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(*children, tag)

    def __repr__(self):
        return f"Pair({self.a!r}, {self.b!r}, {self.tag!r})"


def number():
    return rng.choice([0, 1, 2, -3, 1.5, True, 2j])


LEAVES = [
    number,
    lambda: jnp.asarray(number()),
    lambda: jnp.arange(rng.randrange(3)) * number(),
    lambda: np.full((rng.randrange(3), 2), rng.random(), rng.choice(["f4", "i4", "f8", "?"])),
    lambda: np.float32(rng.random()),
    lambda: np.arange(6.0, dtype="f4")[::2],
    lambda: rng.choice(["relu", "tanh"]),  # no array: static
    lambda: None,
    lambda: jnp.ones(2).astype(rng.choice(["float16", "bfloat16", "int8"])),
]


def grown(depth):
    kind = rng.randrange(7 if depth else 1)
    if kind < 2:
        return rng.choice(LEAVES)()
    parts = [grown(depth - 1) for _ in range(rng.randrange(3))]
    if kind == 2:
        return parts
    if kind == 3:
        return tuple(parts)
    if kind == 4:
        names = rng.sample("abcdef", len(parts))
        return dict(zip(names, parts, strict=True))
    return Pair(grown(depth - 1), grown(depth - 1), rng.choice(["x", "y"]))


traces = []


def double(x):
    return x * 2 if hasattr(x, "dtype") else x


def body(x, y=0, *, mode="a"):
    traces.append(mode)
    if mode == "bad":
        raise ValueError("no such mode")
    return tree_util.tree_map(double, x), y, mode


FUNCTIONS = [
    namoo.jit(body),
    namoo.jit(body, static_argnames="mode"),
    namoo.jit(body, static_argnums=1),
    namoo.jit(body, donate_argnums=0),
    namoo.grad(namoo.jit(lambda x, **_: jnp.sin(x).sum())),
    namoo.vmap(namoo.jit(body)),
]
POOL = [grown(3) for _ in range(12)]


def shown(value):
    text = re.sub(r"0x[0-9a-f]+", "0x", repr(value))
    return re.sub(r"\\n.*", "", text) if isinstance(value, BaseException) else text


for _ in range(70):
    call = rng.choice(FUNCTIONS)
    x = rng.choice(POOL) if rng.random() < 0.7 else grown(2)
    args, kwargs = [x], {}
    if rng.random() < 0.4:
        args.append(rng.choice([0, 1, 1.5, "static", [1], jnp.ones(1)]))
    if rng.random() < 0.4:
        kwargs["mode"] = rng.choice(["a", "b", "bad"])
    if rng.random() < 0.1:
        kwargs["unknown"] = 1
    if rng.random() < 0.1:
        args = []
    for _ in range(2):  # the second time it may be recognised
        before = len(traces)
        try:
            out = call(*args, **kwargs)
        except Exception as error:
            out = error
        print(len(traces) - before, shown(out))
"""


@pytest.mark.parametrize("seed", range(4))
def test_generated_calls(seed, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    outputs = []
    for runtime in ("native", "python"):
        environment = {**os.environ, "NAMOO_RUNTIME": runtime, "PYTHONHASHSEED": "0"}
        run = subprocess.run(
            [sys.executable, str(file), str(seed)], capture_output=True, text=True, env=environment
        )
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout.splitlines())
    compiled, reference = outputs
    assert compiled == reference
    # It is no test of errors alone, nor of calls that always trace.
    assert sum(" (" in line for line in compiled) > 20
    assert sum(line.startswith("0 (") for line in compiled) > 5
