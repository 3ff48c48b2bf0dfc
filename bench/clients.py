"""Measure whole programs of libraries written for JAX, with namoo standing in for it and with JAX.

    python bench/clients.py                     # every program
    python bench/clients.py --only Equinox --k 5
    python bench/clients.py --k 1 --steps 20 --timeout 120     # the shortest run

It runs in the environment of `make clients`. Each run is a new process. The processes of the two
alternate, round after round, and the best time of each counts. Cold and warm are CPU times of the
process, which other load on the machine affects little:

- cold: import to result, without compiled programs on disk;
- warm: the same with those of an earlier run;
- step: one more call of the program's `step`, the best of many.

A process that takes longer than `--timeout` is ended. The table then says what failed, the other
programs are measured all the same, and the exit status is 1.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

# Each program defines `step`, which returns the value to wait for.
PROGRAMS = {
    "Optax regression": """
import jax, jax.numpy as jnp, optax
x = jax.random.normal(jax.random.key(0), (256, 16)); y = x @ jnp.arange(16.0)
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))
params = {"w": jnp.zeros(16), "b": jnp.zeros(())}; state = tx.init(params)
@jax.jit
def update(params, state):
    loss = lambda p: optax.l2_loss(x @ p["w"] + p["b"], y).mean()
    value, grads = jax.value_and_grad(loss)(params)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value
def step():
    global params, state
    params, state, value = update(params, state)
    return value
""",
    "Equinox MLP": """
import jax, jax.numpy as jnp, equinox as eqx, optax
model = eqx.nn.MLP(8, 1, 128, 3, key=jax.random.key(0)); tx = optax.adam(1e-3)
state = tx.init(eqx.filter(model, eqx.is_array))
x = jax.random.normal(jax.random.key(1), (256, 8)); y = jnp.sin(x.sum(1, keepdims=True))
@eqx.filter_jit
def update(model, state):
    loss = lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2)
    value, grads = eqx.filter_value_and_grad(loss)(model)
    updates, state = tx.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, value
def step():
    global model, state
    model, state, value = update(model, state)
    return value
""",
    "Flax linen CNN": """
import jax, jax.numpy as jnp, optax, flax.linen as nn
from flax.training.train_state import TrainState
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, (3, 3))(x))
        x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))
x = jax.random.normal(jax.random.key(0), (16, 16, 16, 1)); y = jnp.arange(16) % 10
net = Net(); params = net.init(jax.random.key(1), x)
state = TrainState.create(apply_fn=net.apply, params=params, tx=optax.adam(1e-3))
@jax.jit
def update(state):
    def loss(p):
        return optax.softmax_cross_entropy_with_integer_labels(state.apply_fn(p, x), y).mean()
    value, grads = jax.value_and_grad(loss)(state.params)
    return state.apply_gradients(grads=grads), value
def step():
    global state
    state, value = update(state)
    return value
""",
    "Flax NNX MLP": """
import jax, jax.numpy as jnp, optax
from flax import nnx
class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(8, 64, rngs=rngs); self.norm = nnx.BatchNorm(64, rngs=rngs)
        self.b = nnx.Linear(64, 1, rngs=rngs)
    def __call__(self, x):
        return self.b(nnx.relu(self.norm(self.a(x))))
net = Net(nnx.Rngs(0)); tx = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (64, 8)); y = x.sum(1, keepdims=True)
@nnx.jit
def update(net, tx):
    value, grads = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
    tx.update(net, grads)
    return value
def step():
    return update(net, tx)
""",
    "Haiku LSTM": """
import jax, jax.numpy as jnp, haiku as hk, optax
def forward(x):
    core = hk.LSTM(32)
    out, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
    return hk.Linear(1)(out)
net = hk.without_apply_rng(hk.transform(forward)); tx = optax.adam(1e-3)
x = jax.random.normal(jax.random.key(0), (20, 16, 4)); y = jnp.cumsum(x.sum(-1, keepdims=True), 0)
params = net.init(jax.random.key(1), x); state = tx.init(params)
@jax.jit
def update(params, state):
    value, grads = jax.value_and_grad(lambda p: jnp.mean((net.apply(p, x) - y) ** 2))(params)
    updates, state = tx.update(grads, state)
    return optax.apply_updates(params, updates), state, value
def step():
    global params, state
    params, state, value = update(params, state)
    return value
""",
    "Diffrax gradient": """
import jax, jax.numpy as jnp, diffrax
def field(t, y, mu):
    return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])
@jax.jit
@jax.value_and_grad
def solve(mu):
    out = diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 5.0, 0.1, jnp.array([2.0, 0.0]), mu,
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6), max_steps=256)
    return out.ys.sum()
def step():
    return solve(1.0)[0]
""",
    "NumPyro NUTS": """
import jax, jax.numpy as jnp, numpyro, numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
def model(x, y):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
    numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)
x = jax.random.normal(jax.random.key(0), (50, 3)); y = x @ jnp.array([1.0, -2.0, 0.5])
mcmc = MCMC(NUTS(model), num_warmup=200, num_samples=200, progress_bar=False)
def step():
    mcmc.run(jax.random.key(1), x, y)
    # Not the mean itself, which is near zero: chains that differ by rounding agree to about 1 %.
    return jnp.abs(mcmc.get_samples()["w"]).mean()
""",
    "BlackJAX HMC": """
import jax, jax.numpy as jnp, blackjax
density = lambda z: -0.5 * jnp.sum((z - 3.0) ** 2)
kernel = blackjax.hmc(density, 0.2, jnp.ones(4), 10)
@jax.jit
def run(key):
    def body(state, key):
        state, _ = kernel.step(key, state)
        return state, state.position
    return jax.lax.scan(body, kernel.init(jnp.zeros(4)), jax.random.split(key, 300))[1]
def step():
    return run(jax.random.key(0)).mean()
""",
    "Optimistix root": """
import jax, jax.numpy as jnp, optimistix as optx
@jax.jit
@jax.grad
def solve(a):
    fun = lambda y, a: y**3 + a * y - jnp.arange(1.0, 5.0)
    out = optx.root_find(fun, optx.Newton(rtol=1e-5, atol=1e-5), jnp.ones(4), a)
    return out.value.sum()
def step():
    return solve(2.0)
""",
    "Distrax flow": """
import jax, jax.numpy as jnp, distrax, optax
x = jax.random.normal(jax.random.key(0), (256, 2)) * 2 + 1
params = {"shift": jnp.zeros(2), "scale": jnp.ones(2)}
tx = optax.adam(1e-2); state = tx.init(params)
def density(p, x):
    base = distrax.MultivariateNormalDiag(jnp.zeros(2))
    bijector = distrax.Block(distrax.ScalarAffine(p["shift"], p["scale"]), 1)
    return distrax.Transformed(base, bijector).log_prob(x).mean()
@jax.jit
def update(params, state):
    value, grads = jax.value_and_grad(lambda p: -density(p, x))(params)
    updates, state = tx.update(grads, state)
    return optax.apply_updates(params, updates), state, value
def step():
    global params, state
    params, state, value = update(params, state)
    return value
""",
}

END = """
import json, time
value = float(step())
whole = time.process_time()
times = []
for _ in range(STEPS):
    start = time.perf_counter()
    jax.block_until_ready(step())
    times.append(time.perf_counter() - start)
print(json.dumps({"value": value, "whole": whole, "step": min(times, default=0.0)}))
"""


def run(program: str, steps: int, cache: str, timeout: float, *, namoo: bool) -> dict[str, float]:
    """Run a program once, in a new process."""
    who = "namoo" if namoo else "JAX"
    environment = {
        **os.environ,
        "NAMOO_AS_JAX": "1" if namoo else "0",
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
        "JAX_PLATFORMS": "cpu",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-W", "ignore", "-c", program + END.replace("STEPS", str(steps))]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{who} took more than {timeout:g} s") from None
    if done.returncode:
        raise RuntimeError(f"{who} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(program: str, rounds: int, steps: int, timeout: float) -> dict[str, list[float]]:
    """The best times of namoo and of JAX: cold, warm and of a step; and their results."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as kept:
        for _ in range(rounds):
            for i, namoo in enumerate((True, False)):
                warm_cache = os.path.join(kept, str(i))
                with tempfile.TemporaryDirectory() as empty:
                    cold = run(program, 0, empty, timeout, namoo=namoo)
                if not os.path.exists(warm_cache):
                    run(program, 0, warm_cache, timeout, namoo=namoo)
                warm = run(program, steps, warm_cache, timeout, namoo=namoo)
                times = dict(cold=cold["whole"], warm=warm["whole"], step=warm["step"])
                for name, value in times.items():
                    best = found.setdefault(name, [math.inf, math.inf])
                    best[i] = min(best[i], value)
                found.setdefault("value", [math.nan, math.nan])[i] = warm["value"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="the programs whose names have this in them")
    parser.add_argument("--k", type=int, default=3, help="rounds")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one process")
    options = parser.parse_args()
    show = lambda *cells: print(f"| {' | '.join(cells)} |", flush=True)  # noqa: E731
    times = ("namoo", "JAX", "ratio")
    show(
        "program",
        *(f"{kind}: {who}" for kind in ("cold", "warm", "step") for who in times),
        "agree",
    )
    show(*["---"] * 11)
    ratios: dict[str, list[float]] = {"cold": [], "warm": [], "step": []}
    failed: list[str] = []
    for name, program in PROGRAMS.items():
        if options.only not in name:
            continue
        try:
            found = measure(program, options.k, options.steps, options.timeout)
        except RuntimeError as error:
            failed.append(f"{name}: {error}")
            show(name, str(error).splitlines()[0], *[""] * 9)
            continue
        cells = []
        for kind, unit, scale in (("cold", "s", 1), ("warm", "s", 1), ("step", "ms", 1e3)):
            ours, theirs = found[kind]
            ratios[kind].append(theirs / ours)
            cells += [f"{ours * scale:.2f} {unit}", f"{theirs * scale:.2f} {unit}"]
            cells.append(f"{theirs / ours:.1f}×")
        agree = math.isclose(*found["value"], rel_tol=0.02, abs_tol=1e-3)
        show(name, *cells, "yes" if agree else "no")
    if ratios["cold"]:
        means = [math.exp(sum(map(math.log, values)) / len(values)) for values in ratios.values()]
        show("geometric mean", *(cell for mean in means for cell in ("", "", f"{mean:.2f}×")), "")
    print(*failed, sep="\n", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
