"""Programs written for JAX and its libraries run on namoo unmodified, with JAX's numbers."""

import contextlib
import io
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAMS = {
    "optax": """
import jax, jax.numpy as jnp, optax

def loss(p, x, y):
    return optax.l2_loss(x @ p["w"] + p["b"], y).mean()

x = jax.random.normal(jax.random.key(0), (32, 4))
y = x @ jnp.arange(4.0) + 1
params = {"w": jnp.zeros(4), "b": jnp.zeros(())}
schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 5, 30)
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
state = tx.init(params)

@jax.jit
def step(params, state):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value

for _ in range(30):
    params, state, value = step(params, state)
print(value, *params["w"], params["b"])
""",
    "equinox": """
import jax, jax.numpy as jnp, equinox as eqx, optax
model = eqx.nn.MLP(3, 1, 16, 2, key=jax.random.key(0))
tx = optax.sgd(0.05)
state = tx.init(eqx.filter(model, eqx.is_array))
x = jax.random.normal(jax.random.key(1), (16, 3))

@eqx.filter_jit
def step(model, state):
    def loss(model):
        return jnp.mean((jax.vmap(model)(x)[:, 0] - x.sum(1)) ** 2)
    value, grads = eqx.filter_value_and_grad(loss)(model)
    updates, state = tx.update(grads, state)
    return eqx.apply_updates(model, updates), state, value

for _ in range(20):
    model, state, value = step(model, state)
print(value, jax.vmap(model)(x).sum())
""",
    "flax": """
import jax, jax.numpy as jnp, flax.linen as nn, optax

class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(4, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.relu(x).reshape(x.shape[0], -1)
        x = nn.Dropout(0.5, deterministic=not train)(x)
        return nn.Dense(2)(nn.LayerNorm()(x))

net = Net()
x = jax.random.normal(jax.random.key(0), (4, 5, 5, 1))
variables = net.init(jax.random.key(1), x, False)

@jax.jit
def loss(params):
    rngs = {"dropout": jax.random.key(2)}
    given = {"params": params, "batch_stats": variables["batch_stats"]}
    out, changed = net.apply(given, x, True, rngs=rngs, mutable=["batch_stats"])
    return (out**2).mean(), changed

(value, changed), grads = jax.value_and_grad(loss, has_aux=True)(variables["params"])
leaves = jax.tree.leaves((grads, changed))
print(value, *[jnp.abs(g).sum() for g in leaves], net.apply(variables, x, False).sum())
""",
    "chex": """
import chex, jax, jax.numpy as jnp

@chex.dataclass
class State:
    mean: chex.Array
    count: int

state = State(mean=jnp.ones(3), count=2)
state = jax.jit(lambda s: s.replace(mean=s.mean * s.count))(state)
chex.assert_shape(state.mean, (3,))
chex.assert_trees_all_close(state.mean, 2 * jnp.ones(3))
print((state.mean + 1).sum(), state.count)
""",
}


def numbers(text):
    return np.array([float(word) for word in text.split()])


def run_as_jax(code, *way):
    """What a program prints with namoo in the place of JAX."""
    code = f"{code}\nimport sys\nassert not any(m.startswith('jax.') and 'jax/_src' in str("
    code += "getattr(sys.modules[m], '__file__', '')) for m in sys.modules), 'real JAX is loaded'"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *way, "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_libraries_give_the_numbers_of_jax(name):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(PROGRAMS[name], {"__name__": "program"})
    ours = run_as_jax(PROGRAMS[name], "-m", "namoo.compat")
    np.testing.assert_allclose(numbers(ours), numbers(printed.getvalue()), rtol=2e-4, atol=2e-5)


def test_names_of_jax():
    code = """
import jax, jax.numpy, namoo, namoo.numpy
from jax import lax
from jax._src import core
print(jax.__version__, jax.__version_info__ == (0, 10, 2), jax.numpy is namoo.numpy)
print(type(jax.jit(abs)).__name__, lax is namoo.lax, core.trace_state_clean())
print(jax._src.distributed.global_state.process_id, "numpy" in dir(jax))
print(jax.numpy.arange(3)[7])
"""
    assert run_as_jax(code, "-m", "namoo.compat").split("\n")[:-1] == [
        "0.10.2 True True",
        "PjitFunction True True",
        "0 True",
        "2",
    ]


def test_modules_that_are_not_there():
    code = """
import importlib
for name in ("jax.nothing", "jax._src.nothing", "jax.numpy.nothing"):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(error)
"""
    assert run_as_jax(code, "-m", "namoo.compat").split("\n")[:-1] == [
        "No module named 'jax.nothing'",
        "No module named 'jax._src.nothing'",
        "No module named 'jax.numpy.nothing'",
    ]


def test_the_variable_reaches_a_program_and_the_processes_it_starts():
    script = "import sys, jax; print(jax.__name__, jax.numpy.__name__, flush=True)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"
    for program in (script, child):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, "NAMOO_AS_JAX": "1"},
        )
        assert done.stdout == "jax namoo.numpy\n", done.stderr
    assert "namoo" not in subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True
    ).stdout.replace("_editable_skbc_namoo", "")


def test_install_in_a_program():
    code = """
import namoo.compat
namoo.compat.install()
namoo.compat.install()
import jax
print(jax.grad(lambda x: x**2)(3.0))
"""
    assert run_as_jax(code) == "6.0\n"


def test_install_after_real_jax():
    code = """
import jax, namoo.compat
try:
    namoo.compat.install()
except namoo.compat.RealJaxLoadedError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "already loaded" in done.stdout and "before anything imports jax" in done.stdout


def test_scripts_and_modules(tmp_path):
    (tmp_path / "other.py").write_text("import jax\nwho = jax.__version__\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, other\nprint(other.who, sys.argv[1:], __name__)\n")
    for what in ([str(script)], ["-m", "script"]):
        done = subprocess.run(
            [sys.executable, "-m", "namoo.compat", *what, "--flag", "1"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        assert done.stdout == "0.10.2 ['--flag', '1'] __main__\n", done.stderr


def test_private_modules_that_have_submodules():
    code = """
from jax._src.numpy import lax_numpy
from jax._src.lax import control_flow, lax
import jax._src.interpreters.ad, jax._src.numpy.util as util
from jax._src import checkify, public_test_util, traceback_util
import jax.numpy, jax.lax
from jax.experimental.pallas import pallas_call, triton
print(lax_numpy.sin is jax.numpy.sin, lax.sin_p is jax.lax.sin_p, control_flow.scan is jax.lax.scan)
print(jax._src.lax.lax is lax, "lax" in vars(jax.lax), util is lax_numpy)
public_test_util.check_close({"a": jax.numpy.ones(2)}, {"a": jax.numpy.ones(2) + 1e-7})
hidden = traceback_util._exclude_paths
hidden.append("/nowhere")
hidden.remove("/nowhere")
print("/nowhere" not in hidden, issubclass(checkify.JaxException, Exception))
"""
    assert run_as_jax(code, "-m", "namoo.compat") == "True True True\nTrue False True\nTrue True\n"
