"""Dataclasses that are trees: Flax's and Chex's spellings, and what is refused early."""

# Wrong arguments are given on purpose, and classes get methods that a checker does not see.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false

import copy
import dataclasses
import pickle
from typing import Any, Generic, TypeVar

import chex
import flax.struct
import jax
import pytest

import namoo
import namoo.numpy as jnp
from namoo import struct, tree

T = TypeVar("T")


@struct.dataclass
class State:
    params: Any
    step: int = 0
    name: str = struct.field(pytree_node=False, default="adam")


@struct.dataclass
class Longer(State):
    extra: Any = None
    mode: str = struct.field(static=True, default="train")


class Node(struct.PyTreeNode):
    x: Any
    y: Any = 2


class Below(Node):
    z: Any = 3


@struct.dataclass
class Box(Generic[T]):
    content: T


@struct.dataclass(frozen=False, mappable_dataclass=True)
class Table:
    a: Any
    b: Any = 2


@struct.mappable_dataclass
@dataclasses.dataclass
class Other:
    a: Any


@struct.dataclass(kw_only=True)
class Named:
    a: Any
    b: int = tree.static(default=1)


TREES = [
    (State({"w": 1}), [".params['w']", ".step"]),
    (Longer([1], extra=(5,)), [".params[0]", ".step", ".extra[0]"]),
    (Node(1), [".x", ".y"]),
    (Below(1), [".x", ".y", ".z"]),
    (Box([1, 2]), [".content[0]", ".content[1]"]),
    (Table(a=1), [".a", ".b"]),
    (Other(a=1), [".a"]),
    (Named(a=1), [".a"]),
]


@pytest.mark.parametrize(("value", "paths"), TREES, ids=lambda x: type(x).__name__)
def test_trees(value, paths):
    found = [namoo.tree_util.keystr(path) for path, _ in tree.leaves_with_path(value)]
    assert found == paths
    leaves, treedef = tree.flatten(value)
    assert treedef.unflatten(leaves) == value
    doubled = namoo.jit(lambda t: tree.map(lambda x: x * 2, t))(value)
    assert tree.leaves(doubled) == [2 * x for x in leaves]
    assert type(doubled) is type(value)
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_equal_to_flax_and_jax():
    @flax.struct.dataclass
    class Theirs:
        params: Any
        step: int = 0
        name: str = flax.struct.field(pytree_node=False, default="adam")

    theirs = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(Theirs([1]))]
    assert theirs == [namoo.tree_util.keystr(p) for p, _ in tree.leaves_with_path(State([1]))]
    assert Theirs(1).replace(step=3).step == State(1).replace(step=3).step == 3


def test_equal_to_chex():
    @chex.dataclass
    class Theirs:
        a: Any
        b: Any = 2

    theirs, ours = Theirs(a=1), Table(a=1)
    for f in (
        dict,
        len,
        list,
        lambda t: t["a"],
        lambda t: list(t.values()),
        lambda t: t.get("c", 9),
        lambda t: t.to_tuple(),
        lambda t: "a" in t,
        lambda t: t.replace(b=5).b,
        lambda t: type(t).from_tuple((3, 4)).a,
        lambda t: dict(type(t)({"a": 7})),
    ):
        assert f(ours) == f(theirs)
    ours.a = 10
    assert ours["a"] == 10
    with pytest.raises(ValueError, match="by name"):
        Table(1, 2)
    with pytest.raises(ValueError, match="no fields"):
        Table(a=1, c=2)
    with pytest.raises(KeyError):
        ours["replace"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (jnp.ones(3), r"State.name is static, but was given an array of shape \(3,\)"),
        ((1, jnp.ones(3)), "State.name is static"),
        (["a"], "State.name is static.*a tuple"),
        ({"a": 1}, "State.name is static"),
        ({1, 2}, "a frozenset"),
    ],
)
def test_static_values_are_checked_when_the_object_is_made(value, message):
    with pytest.raises(TypeError, match=message):
        State(1, name=value)
    with pytest.raises(TypeError, match=message):
        State(1).replace(name=value)


def test_tracers_are_refused_in_static_fields():
    with pytest.raises(TypeError, match="State.name is static, but was given an array"):
        namoo.jit(lambda x: State(1, name=x))(1.0)


def test_frozen_and_replace():
    state = State({"w": 1})
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.step = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="Did you mean 'params'"):
        state.replace(param=1)
    assert state.replace(step=4) == State({"w": 1}, 4)


def test_rebuilding_calls_no_constructor():
    @struct.dataclass
    class Strict:
        x: Any

        def __post_init__(self):
            if not isinstance(self.x, namoo.Array):
                raise TypeError(self.x)

    value = Strict(jnp.ones(2))
    assert tree.map(lambda x: x.shape, value).x == (2,)
    assert tree.structure(tree.map(lambda _: True, value)) == tree.structure(value)
    assert namoo.vmap(lambda s: s.x * 2)(value).tolist() == [2, 2]
    assert namoo.grad(lambda s: jnp.sum(s.x**2))(value).x.tolist() == [2, 2]
    out, _ = namoo.lax.scan(lambda s, _: (Strict(s.x + 1), None), value, None, length=3)
    assert out.x.tolist() == [4, 4]
    with pytest.raises(TypeError):
        value.replace(x=3)


def test_a_field_with_a_converter():
    @struct.dataclass
    class Made:
        x: Any = struct.field(converter=jnp.asarray)

    assert isinstance(Made(1.0).x, namoo.Array)


def test_decorating_twice_changes_nothing():
    assert struct.dataclass(State) is State


def test_static_fields_decide_the_program():
    f = namoo.jit(lambda s: s.step + (1 if s.name == "adam" else 2))
    assert f(State(1)) == 1 and f(State(2)) == 1 and f(State(1, name="sgd")) == 2
    assert f._cache_size() == 2
