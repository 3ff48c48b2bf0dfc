"""Shardings in types, compared with JAX on eight simulated devices.

JAX runs in a process of its own, since the number of its devices is fixed when it starts. Both
libraries run the same table of expressions: their types, their results and the kinds of errors.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp

# The programs of the table, each an expression of a function's types and results. `x` and `y` are
# float32[8@x,4@y] and float32[4,8@x], `z` is float32[8,4] on no axis, `i` int32[8@x].
CASES = """
typed(x)
typed(jax.jit(lambda x: x * 2 + 1)(x))
kind(lambda x: x * z, x)
kind(lambda x: x + jnp.ones((8, 4)), x)
kind(lambda x: x * jax.sharding.reshard(x, P("y", "x")), x)
kind(lambda x: jnp.sum(x, 0), x)
kind(lambda x: jnp.max(x), x)
kind(lambda x: jnp.argmax(x, 1), x)
kind(lambda x: x.T, x)
kind(lambda x: x[None], x)
kind(lambda x: jnp.broadcast_to(x, (3, 8, 4)), x)
kind(lambda x: x.reshape(2, 4, 4), x)
kind(lambda x: x.reshape(8, 2, 2), x)
kind(lambda x: x.reshape(32), x)
kind(lambda x: x.reshape(8, 1, 4), x)
kind(lambda x: jax.lax.reshape(x, (32,), out_sharding=P("x")), x)
kind(lambda y: y.reshape(32), y)
kind(lambda x: jnp.squeeze(x[:, None], 1), x)
kind(lambda x: x[:4], x)
kind(lambda x: x[:3], x)
kind(lambda x: jax.lax.dynamic_slice(x, (0, 0), (8, 2)), x)
kind(lambda x: jnp.concatenate([x, x], 1), x)
kind(lambda x: jnp.concatenate([x, jax.sharding.reshard(x, P("y", "x"))], 1), x)
kind(lambda x: jnp.pad(x, ((0, 2), (0, 0))), x)
kind(lambda x: jnp.pad(x, ((0, 1), (0, 0))), x)
kind(lambda x: jnp.where(x > 0, x, x), x)
kind(lambda x: jnp.sort(x, 0), x)
kind(lambda y: jnp.sort(y, 0), y)
kind(lambda y: jnp.cumsum(y, 0), y)
kind(lambda y: jnp.cumsum(y, 1), y)
kind(lambda x: jnp.fft.fft(x, axis=1), y)
kind(lambda x, y: x @ y, z, y)
kind(lambda x, y: x @ y, x, y)
kind(lambda x, y: jnp.matmul(x, y, out_sharding=P("x", None)), x, y)
kind(lambda x: jnp.einsum("ij,kj->ik", x, x, out_sharding=P(None, "y")), x)
kind(lambda x: jnp.einsum("ij,kj->ik", x, x), x)
kind(lambda z, i: z[i], z, i)
kind(lambda x, i: x[i], x, i)
kind(lambda x, i: x.at[i].get(out_sharding=P("x", None)), x, i)
kind(lambda x: x.at[:, 1:3].set(1.0), y.T)
kind(lambda x: jax.lax.bitcast_convert_type(x, jnp.int32), x)
kind(lambda x: jax.sharding.reshard(x, P(("x", "y"))), x)
kind(lambda x: jax.sharding.reshard(x, P()), x)
kind(jax.sharding.auto_axes(lambda x: x @ x.T, out_sharding=P("x")), x)
kind(jax.sharding.auto_axes(lambda x: x + 1, axes="y", out_sharding=P("x")), x)
kind(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), x)
kind(jax.grad(lambda x: jnp.sum(x[:4] * 2)), x)
kind(jax.grad(lambda x: jnp.sum(jnp.matmul(x, x.T, out_sharding=P("x", None)) ** 2)), x)
kind(jax.grad(lambda z: jnp.sum(x * z)), z)
kind(jax.vmap(lambda r: r * 2), x)
kind(jax.vmap(jnp.sum), x)
kind(jax.vmap(lambda r: (r * 2).reshape(2, 2)), jax.sharding.reshard(x, P("x", None)))
kind(jax.vmap(jnp.sum, in_axes=1), x)
kind(jax.vmap(lambda a, b: a + b), x, jax.sharding.reshard(x, P("y")))
kind(lambda y: jax.lax.scan(lambda c, r: (c + r, r * 2), jnp.zeros_like(y[0]), y)[1], y)
kind(lambda x: jax.lax.scan(lambda c, r: (c, r), 0.0, x)[1], x)
kind(lambda x: jax.lax.cond(True, lambda a: a * 2, lambda a: a, x), x)
kind(lambda x: jax.lax.fori_loop(0, 3, lambda k, c: c * 2, x), x)
kind(lambda x: jax.shard_map(lambda a: a * 2, out_specs=P("x", "y"))(x), x)
kind(lambda: jnp.zeros((8, 2), out_sharding=P("x")))
kind(lambda: jax.lax.broadcasted_iota("int32", (8, 2), 0, out_sharding=P("x", "y")))
kind(lambda: jax.random.normal(jax.random.key(0), (8, 2), out_sharding=P("x")))
kind(lambda x: jax.lax.with_sharding_constraint(x, P("x", "y")), x)
kind(lambda x: jax.lax.with_sharding_constraint(x, P("y", "x")), x)
kind(lambda x: jax.jit(lambda a: a.T)(x) * 2, x)
kind(jax.jit(jax.jit(lambda a: a + 1)), x)
""".strip().splitlines()

SETUP = """
import json, sys
import numpy as np
P = jax.sharding.PartitionSpec
explicit = (jax.sharding.AxisType.Explicit,) * 2
mesh = jax.make_mesh((2, 2), ("x", "y"), explicit, devices=jax.devices()[:4])
jax.set_mesh(mesh)
values = np.arange(32.0, dtype=np.float32)
x = jax.device_put(values.reshape(8, 4), P("x", "y"))
y = jax.device_put(values.reshape(4, 8), P(None, "x"))
z = jax.device_put(values.reshape(8, 4), P(None, None))
i = jax.device_put(np.arange(8, dtype=np.int32) % 4, P("x"))

def typed(x):
    total = float(np.abs(np.asarray(x)).astype(float).sum())
    return str(jax.typeof(x)), str(x.sharding.spec), total

def kind(f, *xs):
    types = []
    def traced(*xs):
        out = f(*xs)
        types.append(str(jax.typeof(out)))
        return out
    try:
        out = jax.jit(traced)(*xs)
    except Exception as error:
        return type(error).__name__
    return types[-1], *typed(out)

print(json.dumps([eval(line) for line in json.loads(sys.argv[1])]))
"""
OURS = "import namoo as jax, namoo.numpy as jnp; jax.cpu_devices(8)"
THEIRS = "import jax, jax.numpy as jnp"


def answers(imports):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    out = subprocess.run(
        [sys.executable, "-c", imports + SETUP, json.dumps(CASES)],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr[-3000:]
    return json.loads(out.stdout.splitlines()[-1])


def same(ours, theirs):
    if isinstance(ours, str) or isinstance(theirs, str):
        return ours == theirs
    return ours[:-1] == theirs[:-1] and ours[-1] == pytest.approx(theirs[-1], rel=1e-4)


def test_types_results_and_errors_are_those_of_jax():
    both = zip(CASES, answers(OURS), answers(THEIRS), strict=True)
    differ = [
        f"{case}\n  {ours}\n  {theirs}" for case, ours, theirs in both if not same(ours, theirs)
    ]
    assert not differ, "\n".join(differ)


@pytest.mark.usefixtures("eight_devices")
def test_results_that_axes_do_not_divide():
    """A join with an array of no mesh has any length; JAX raises ValueError, too."""
    where = namoo.sharding.NamedSharding(namoo.make_mesh((8,), ("x",)), namoo.P("x"))
    x = namoo.device_put(np.arange(16.0, dtype=np.float32), where)
    joined = jnp.append(x, jnp.ones(8))
    assert str(namoo.typeof(joined)) == "float32[24@x]" and joined.sum() == 128
    for how in (lambda f: f, namoo.jit):
        with pytest.raises(ValueError, match="partitioned 8 times, but does not evenly divide"):
            how(lambda x: jnp.append(x, 1.0))(x)
