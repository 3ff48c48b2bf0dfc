"""Measure start-up: ``python fresh.py import|array|step FRAMEWORK`` in a new process.

Only what Python itself needs is imported before the clock starts.
"""

import importlib
import sys
import time


def import_all(framework):
    """Import a framework and return its namespace of arrays."""
    module = importlib.import_module(framework)
    if framework in ("namoo", "jax"):
        return importlib.import_module(f"{framework}.numpy")
    return module


def first_array(framework):
    """Import a framework and make an array, which loads what the import defers."""
    return import_all(framework).zeros(3)


def first_step(framework):
    """Create the lessons' network eagerly from a key, and run one training step."""
    jax = importlib.import_module(framework)
    jnp = importlib.import_module(f"{framework}.numpy")

    def init_layer(key, n_in, n_out):
        key, _ = jax.random.split(key)
        return {"W": jax.random.normal(key, (n_in, n_out)) * 0.01, "b": jnp.zeros(n_out)}

    def cross_entropy(params, x, y):
        for layer in params[:-1]:
            x = jax.nn.relu(x @ layer["W"] + layer["b"])
        logits = x @ params[-1]["W"] + params[-1]["b"]
        return -jnp.sum(y * jax.nn.log_softmax(logits))

    def batch_loss(params, x, y):
        return jax.vmap(cross_entropy, in_axes=(None, 0, 0))(params, x, y).mean()

    @jax.jit
    def train_step(params, x, y, lr):
        loss, grads = jax.value_and_grad(batch_loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), loss

    sizes = [784, 128, 64, 10]
    keys = jax.random.split(jax.random.PRNGKey(0), len(sizes) - 1)
    shapes = zip(keys, sizes[:-1], sizes[1:], strict=True)
    params = [init_layer(key, n_in, n_out) for key, n_in, n_out in shapes]
    x, y = jnp.ones((32, 784)), jnp.zeros((32, 10)).at[:, 3].set(1.0)
    params, loss = train_step(params, x, y, 0.001)
    return float(loss)


def first_step_of_torch():
    """Do the same in PyTorch, which has nothing to compile."""
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    model = torch.nn.Sequential(linear(784, 128), relu(), linear(128, 64), relu(), linear(64, 10))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.001)
    x, y = torch.ones(32, 784), torch.full((32,), 3)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimiser.step()
    return float(loss)


if __name__ == "__main__":
    measure, framework = sys.argv[1:]
    if measure == "step":
        print(first_step_of_torch() if framework == "torch" else first_step(framework), flush=True)
    else:
        start = time.perf_counter()
        {"import": import_all, "array": first_array}[measure](framework)
        print(time.perf_counter() - start, flush=True)
