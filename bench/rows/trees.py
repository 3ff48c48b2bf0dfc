"""Trees alone: the leaves are Python numbers, and the functions do nothing."""

import dataclasses
import functools
from typing import Any

from row import Goal, Row


@dataclasses.dataclass
class Layer:
    """A user-defined node."""

    weight: Any
    bias: Any
    scale: Any
    shift: Any


@functools.cache
def register(jax):
    """Register the class with a framework, once."""
    fields = [field.name for field in dataclasses.fields(Layer)]
    jax.tree_util.register_dataclass(Layer, data_fields=fields, meta_fields=[])


def layers(tiny):
    return range(2 if tiny else 250)


def small(tiny):
    return [{"W": 1.0, "b": 2.0}, {"W": 3.0, "b": 4.0}, {"W": 5.0, "b": 6.0}]


def large(tiny):
    return [{"W": float(i), "b": 2.0, "scale": 3.0, "shift": 4.0} for i in layers(tiny)]


def custom(tiny):
    return [Layer(float(i), 2.0, 3.0, 4.0) for i in layers(tiny)]


def flatten(jax, jnp):
    register(jax)
    return lambda tree, other: jax.tree.flatten(tree)[0]


def map_one(jax, jnp):
    register(jax)
    return lambda tree, other: jax.tree.map(lambda x: x, tree)


def map_two(jax, jnp):
    register(jax)
    return lambda tree, other: jax.tree.map(lambda x, y: x, tree, other)


WORK = {"flatten": flatten, "map": map_one, "map of two": map_two}
TREES = {"6 leaves": small, "1000 leaves": large, "1000 leaves in dataclasses": custom}

ROWS = [
    Row(
        f"tree.{work}, {what}",
        lambda tiny, make=make: (make(tiny), make(tiny)),
        program,
        goal=Goal(1.0),
        pipelined=True,
    )
    for what, make in TREES.items()
    for work, program in WORK.items()
]
