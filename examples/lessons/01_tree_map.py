"""jax.tree.map: pytree 변환 (transforming a pytree).

`tree.map` applies a function to every leaf and keeps the tree's structure.
"""

import namoo as jax
import namoo.numpy as jnp

# One pytree.
params = {"W": jnp.array([[1.0, 2.0], [3.0, 4.0]]), "b": jnp.array([0.5, -0.5])}
doubled = jax.tree.map(lambda x: x * 2, params)
assert doubled["W"].tolist() == [[2, 4], [6, 8]] and doubled["b"].tolist() == [1, -1]
norms = jax.tree.map(jnp.linalg.norm, params)
assert jnp.allclose(norms["W"], 30**0.5) and jnp.allclose(norms["b"], 0.5**0.5)

# Several pytrees of one structure, leaf beside leaf.
params = {"W": jnp.zeros((3, 4)), "b": jnp.zeros(4)}
grads = {"W": jnp.ones((3, 4)), "b": jnp.ones(4)}
new_params = jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)
assert jnp.allclose(new_params["W"], -0.01)
old_params = jax.tree.map(jnp.ones_like, params)
update = jax.tree.map(
    lambda p_old, p_new, g: 0.9 * p_old + 0.1 * (p_new - g), old_params, params, grads
)
assert jax.tree.structure(update) == jax.tree.structure(params)
assert jnp.allclose(update["b"], 0.8)


def error_of(kind, function):
    try:
        function()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


# Structures that differ are an error.
renamed = {"W": grads["W"], "bias": grads["b"]}
mismatch = error_of(ValueError, lambda: jax.tree.map(lambda p, g: p - g, params, renamed))
print(f"a key with another name raises {type(mismatch).__name__}:\n{mismatch}\n")

# Patterns: zero out, clip, add noise with a key for each leaf, statistics.
zeroed = jax.tree.map(jnp.zeros_like, params)
assert not any(x.any() for x in jax.tree.leaves(zeroed))


def clip(g, max_norm=1.0):
    norm = jnp.linalg.norm(g)
    return jnp.where(norm > max_norm, g * max_norm / norm, g)


def add_noise(p, key, scale=0.01):
    return p + scale * jax.random.normal(key, p.shape)


clipped = jax.tree.map(clip, grads)
assert all(jnp.allclose(jnp.linalg.norm(g), 1.0) for g in jax.tree.leaves(clipped))
keys = jax.random.split(jax.random.PRNGKey(0), len(jax.tree.leaves(params)))
key_tree = jax.tree.unflatten(jax.tree.structure(params), list(keys))
noisy = jax.tree.map(add_noise, params, key_tree)
assert not jnp.allclose(noisy["W"][0], noisy["b"])  # each leaf has its own noise
total = sum(x.size for x in jax.tree.leaves(params))
total_norm = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(grads)))
assert total == 16 and total_norm == 4.0

# tree.reduce, and the same with a list of leaves.
sq_sum = jax.tree.reduce(lambda acc, x: acc + jnp.sum(x**2), grads, initializer=0.0)
assert sq_sum == sum(jnp.sum(x**2) for x in jax.tree.leaves(grads)) == 16.0


# tree.map_with_path: no weight decay for a leaf whose name is "bias". A path holds key objects,
# which print as DictKey(key='W') where the lesson abbreviates them to 'W'.
def decay(path, value):
    print(f"path={path}, value.shape={value.shape}")
    return value if path[-1].key == "bias" else 0.9 * value


decayed = jax.tree.map_with_path(decay, renamed)
assert jnp.allclose(decayed["W"], 0.9) and jnp.allclose(decayed["bias"], 1.0)

# Under jit the tree is taken apart while tracing: one operation for each leaf.
for leaves in (1, 100):
    program = jax.make_jaxpr(lambda t: jax.tree.map(lambda x: x * 2.0, t))([jnp.ones(3)] * leaves)
    assert len(program.jaxpr.eqns) == leaves

params = {
    "layer1": {"w": jnp.ones((3, 4)), "b": jnp.zeros(4)},
    "layer2": {"w": jnp.ones((4, 2)), "b": jnp.zeros(2)},
}
scaled = jax.tree.map(lambda x: x * 2.0, params)
assert scaled["layer1"]["w"][0, 0] == 2.0
# The lesson's first way to count adds a dict's values() to a number, which Python refuses.
sizes = jax.tree.map(lambda x: x.size, params)
error_of(TypeError, lambda: sum(sizes.values() for layer in jax.tree.leaves(sizes)))
total = sum(x.size for x in jax.tree.leaves(params))  # its better way; the sum is 26, not 22
assert total == 3 * 4 + 4 + 4 * 2 + 2 == 26
print(f"Total parameters: {total}")


def sgd_update(params, grads, lr=0.01):
    return jax.tree.map(lambda p, g: p - lr * g, params, grads)


def loss_fn(params, x, y):
    h = jax.nn.relu(x @ params["layer1"]["w"] + params["layer1"]["b"])
    pred = h @ params["layer2"]["w"] + params["layer2"]["b"]
    return jnp.mean((pred - y) ** 2)


x, y = jnp.ones((5, 3)), jnp.ones((5, 2))
grads = jax.grad(loss_fn)(params, x, y)
new_params = sgd_update(params, grads)
assert jax.tree.structure(grads) == jax.tree.structure(new_params) == jax.tree.structure(params)
assert loss_fn(new_params, x, y) < loss_fn(params, x, y)
# The modern names and the legacy ones are the same functions.
flat, treedef = jax.tree.flatten(params)
legacy = jax.tree_util.tree_map(lambda x: x * 2.0, params)
assert len(flat) == 4 and treedef == jax.tree.structure(legacy)


# Exercise: (1) zero, (2) Gaussian noise, (3) a norm clip for each leaf, composed under jit.
@jax.jit
def exercise(params, key):
    structure = jax.tree.structure(params)
    keys = jax.tree.unflatten(structure, list(jax.random.split(key, structure.num_leaves)))
    zeros = jax.tree.map(jnp.zeros_like, params)
    noise = jax.tree.map(lambda p, k: add_noise(p, k, scale=1.0), zeros, keys)
    return jax.tree.map(clip, noise)


result = exercise(params, jax.random.PRNGKey(1))
assert jax.tree.structure(result) == jax.tree.structure(params)
norms = jax.tree.map(lambda x: round(float(jnp.linalg.norm(x)), 4), result)
assert all(norm <= 1.0 for norm in jax.tree.leaves(norms))
print("Exercise: norms of zeroed, noised and clipped leaves:", norms)
