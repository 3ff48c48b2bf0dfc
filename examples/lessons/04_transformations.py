"""핵심 명제: 합성 가능한 함수 변환 (composable function transformations).

A transformation takes a function and gives a function, so transformations stack freely.
"""

import time

import namoo as jax
import namoo.numpy as jnp

traces = []


def loss_fn(params, x, y):
    traces.append(x.shape)  # Python runs only while a transformation traces
    predictions = jnp.dot(x, params)
    return jnp.mean((predictions - y) ** 2)


params = jnp.array([1.0, 2.0])
x = jnp.array([[1.0, 0.5], [0.3, 0.8], [0.9, 0.1]])
y = jnp.array([1.5, 1.0, 0.8])

# jit compiles: the first call traces, the next ones do not, and the value is the same.
fast_loss = jax.jit(loss_fn)
traces.clear()
assert fast_loss(params, x, y) == fast_loss(params, x, y)
assert len(traces) == 1
assert jnp.allclose(fast_loss(params, x, y), loss_fn(params, x, y))

# grad differentiates a function with a scalar value: here 2/n X^T (X p - y).
gradient = jax.grad(loss_fn)(params, x, y)
assert jnp.allclose(gradient, 2 / 3 * x.T @ (x @ params - y))

# vmap makes a function of one example a function of a batch.
losses = jax.vmap(loss_fn, in_axes=(None, 0, 0))(params, x, y)
assert jnp.allclose(losses, jnp.array([loss_fn(params, x[i], y[i]) for i in range(3)]))

# pmap runs one copy on each device.
devices = jax.local_device_count()
copies = jnp.stack([x] * devices)
assert jax.pmap(lambda x: jnp.sum(x, axis=0))(copies).shape == (devices, 2)

# Composed: differentiate, then compile.
fast_grad = jax.jit(jax.grad(loss_fn))
assert jnp.allclose(fast_grad(params, x, y), gradient)
print("gradient:", fast_grad(params, x, y))

# Or: one gradient for each example, then compile. Their mean is the gradient of the mean.
per_example_grads = jax.jit(jax.vmap(jax.grad(loss_fn), in_axes=(None, 0, 0)))
assert per_example_grads(params, x, y).shape == (3, 2)
assert jnp.allclose(per_example_grads(params, x, y).mean(axis=0), gradient)
print("per-example gradients:", per_example_grads(params, x, y), sep="\n")

# Exercise: jit(vmap(grad)) and vmap(jit(grad)) at three batch sizes.
orders = {
    "jit(vmap(grad))": jax.jit(jax.vmap(jax.grad(loss_fn), in_axes=(None, 0, 0))),
    "vmap(jit(grad))": jax.vmap(jax.jit(jax.grad(loss_fn)), in_axes=(None, 0, 0)),
}
batches = {}
for size in (1, 100, 10_000):
    k1, k2 = jax.random.split(jax.random.PRNGKey(size))
    batches[size] = jax.random.normal(k1, (size, 2)), jax.random.normal(k2, (size,))


def milliseconds(function, *args):
    start = time.perf_counter()
    jax.block_until_ready(function(*args))
    return (time.perf_counter() - start) * 1e3


print("\nExercise: first call and best of the next 20, in ms")
counts = {}
for order, function in orders.items():
    traces.clear()
    for size, batch in batches.items():
        first = milliseconds(function, params, *batch)
        best = min(milliseconds(function, params, *batch) for _ in range(20))
        print(f"  {order}  batch {size:6,}: {first:8.3f} {best:8.3f}")
    counts[order] = len(traces)
results = [[function(params, *batch) for function in orders.values()] for batch in batches.values()]
assert all(jnp.allclose(one, other, atol=1e-6) for one, other in results)

# The values agree; the order decides what jit sees. Outside, it sees each batch size and traces
# again; inside, it sees one example, whose shape never changes.
assert counts == {"jit(vmap(grad))": 3, "vmap(jit(grad))": 1}
print("traces of the loss:", counts)
