"""Custom Pytree 노드 (custom pytree nodes).

Beside dict, list and tuple, a class of one's own can be registered as a pytree.
"""

import dataclasses
from dataclasses import dataclass

import namoo as jax
import namoo.numpy as jnp


# Way 1: register_pytree_node_class, for a class that flattens itself.
@jax.tree_util.register_pytree_node_class
@dataclass
class TrainState:
    params: dict
    opt_state: dict
    step: int

    def tree_flatten(self):
        children = (self.params, self.opt_state, self.step)
        aux_data = None  # no static metadata
        return children, aux_data

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        return cls(*children)


state = TrainState(params={"w": jnp.ones(10)}, opt_state={"momentum": jnp.ones(10)}, step=3)
zeroed = jax.tree.map(jnp.zeros_like, state)
assert isinstance(zeroed, TrainState) and zeroed.step == 0 and not zeroed.params["w"].any()
flat, treedef = jax.tree.flatten(state)
assert len(flat) == 3 and jax.tree.unflatten(treedef, flat).step == 3


# Way 2: register_pytree_node, with two functions.
class MyState:
    def __init__(self, x, y):
        self.x = x
        self.y = y


def state_flatten(s):
    return (s.x, s.y), None


def state_unflatten(aux, children):
    return MyState(*children)


jax.tree_util.register_pytree_node(MyState, state_flatten, state_unflatten)
assert jax.tree.leaves(MyState(1, {"a": 2})) == [1, 2]


# Until a class is registered, its object is a leaf.
class LinearParams:
    def __init__(self, weights, bias):
        self.weights = weights
        self.bias = bias

    def __repr__(self):
        return f"LinearParams(w={self.weights.shape}, b={self.bias.shape})"


layer = LinearParams(jnp.ones((3, 4)), jnp.zeros(4))
assert jax.tree.leaves(layer) == [layer]
print("before registration:", jax.tree.leaves(layer))


def linear_flatten(obj):
    return (obj.weights, obj.bias), None


def linear_unflatten(aux_data, children):
    return LinearParams(*children)


jax.tree_util.register_pytree_node(LinearParams, linear_flatten, linear_unflatten)
assert [x.shape for x in jax.tree.leaves(layer)] == [(3, 4), (4,)]
doubled = jax.tree.map(lambda x: x * 2, layer)
assert jnp.all(doubled.weights == 2.0)
print("after registration: ", [x.shape for x in jax.tree.leaves(layer)], "doubled:", doubled)


# Way 3 is flax.struct.dataclass and equinox.Module. What both do is shown here by
# register_dataclass alone: a frozen dataclass with `replace`, whose fields are its children.
def struct_dataclass(cls):
    cls = dataclass(frozen=True)(cls)
    cls.replace = dataclasses.replace
    fields = [field.name for field in dataclasses.fields(cls)]
    return jax.tree_util.register_dataclass(cls, data_fields=fields, meta_fields=[])


@struct_dataclass
class FrozenState:
    params: dict
    opt_state: dict
    step: int


state = FrozenState(params={"w": jnp.ones(10)}, opt_state={}, step=0)
zeroed = jax.tree.map(jnp.zeros_like, state)
assert isinstance(zeroed, FrozenState) and not zeroed.params["w"].any()
assert state.replace(step=1).step == 1 and state.step == 0


@struct_dataclass
class Linear:
    weight: jnp.ndarray
    bias: jnp.ndarray

    @classmethod
    def create(cls, key, in_dim, out_dim):
        return cls(jax.random.normal(key, (out_dim, in_dim)) / in_dim**0.5, jnp.zeros(out_dim))

    def __call__(self, x):
        return self.weight @ x + self.bias


@struct_dataclass
class MLP:
    layer1: Linear
    layer2: Linear

    @classmethod
    def create(cls, key):
        k1, k2 = jax.random.split(key)
        return cls(layer1=Linear.create(k1, 10, 20), layer2=Linear.create(k2, 20, 5))

    def __call__(self, x):
        return self.layer2(jax.nn.relu(self.layer1(x)))


model = MLP.create(jax.random.PRNGKey(0))
flat, _ = jax.tree.flatten(model)  # the model is itself a tree
assert [x.shape for x in flat] == [(20, 10), (20,), (5, 20), (5,)]
assert model(jnp.ones(10)).shape == (5,)


# aux_data is static: grad passes it through unchanged.
class DenseParams:
    def __init__(self, weights, bias, activation="relu"):
        self.weights = weights
        self.bias = bias
        self.activation = activation


def dense_flatten(obj):
    return (obj.weights, obj.bias), obj.activation


def dense_unflatten(aux_data, children):
    return DenseParams(*children, activation=aux_data)


jax.tree_util.register_pytree_node(DenseParams, dense_flatten, dense_unflatten)
layer = DenseParams(jnp.ones((3, 4)), jnp.zeros(4), activation="relu")
grads = jax.grad(lambda l: jnp.sum(l.weights))(layer)
assert jnp.all(grads.weights == 1.0) and not grads.bias.any() and grads.activation == "relu"


# aux_data is part of jit's cache key: a new one means a new trace, new data does not.
@jax.tree_util.register_pytree_node_class
@dataclass
class FixedShape:
    data: jnp.ndarray
    shape_info: tuple  # static, so it must be hashable

    def tree_flatten(self):
        return (self.data,), self.shape_info

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(children[0], aux)


traces = []


@jax.jit
def total(fixed):
    traces.append(fixed.shape_info)  # Python runs only while jit traces
    return fixed.data.reshape(fixed.shape_info).sum(axis=0)


for value, shape_info in [(1.0, (2, 3)), (2.0, (2, 3)), (3.0, (3, 2)), (4.0, (2, 3))]:
    assert total(FixedShape(jnp.full(6, value), shape_info)).shape == shape_info[1:]
assert traces == [(2, 3), (3, 2)]
print("traces of total:", traces)


# Exercise: a dataclass for the state of a tiny model, through tree.map and through jit; and, as
# the lesson says of every registered class, through grad, vmap and scan as well.
@jax.tree_util.register_pytree_node_class
@dataclass
class Tiny:
    weights: jnp.ndarray
    bias: jnp.ndarray
    name: str = "tiny"

    def tree_flatten(self):
        return (self.weights, self.bias), self.name

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        return cls(*children, name=aux_data)


@jax.jit
def predict(model, x):
    return x @ model.weights + model.bias


def step(model, x):
    grads = jax.grad(lambda m: jnp.mean((predict(m, x) - 1.0) ** 2))(model)
    return jax.tree.map(lambda p, g: p - 0.1 * g, model, grads), predict(model, x)


tiny = Tiny(jnp.zeros(2), jnp.zeros(()))
halves = jax.tree.map(lambda x: x + 0.5, tiny)
assert predict(halves, jnp.ones(2)) == 1.5
pair = jax.tree.map(lambda *leaves: jnp.stack(leaves), tiny, halves)
assert jax.vmap(predict, in_axes=(0, None))(pair, jnp.ones(2)).tolist() == [0.0, 1.5]
trained, outputs = jax.lax.scan(step, tiny, jnp.ones((20, 2)))
assert isinstance(trained, Tiny) and trained.name == "tiny"
assert abs(predict(trained, jnp.ones(2)) - 1.0) < 1e-3
print("Exercise:", jax.tree.map(lambda x: x.tolist(), trained))
