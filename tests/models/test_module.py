"""Modules: trees of arrays around configuration, through every transformation."""

# Wrong arguments are given on purpose, and classes get methods that a checker does not see.
# pyright: reportArgumentType=false

import abc
import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import equinox as eqx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
from namoo import lax, nn, struct, tree

T = TypeVar("T")


class Dense(namoo.Module):
    w: Any
    b: Any
    activation: Callable = jnp.tanh

    def __call__(self, x):
        return self.activation(x @ self.w + self.b)

    def twice(self, x):
        return self(self(x))


class Net(namoo.Module):
    layers: list
    scale: Any
    name: str
    depth: int

    def __init__(self, key, sizes, name="net"):
        keys = namoo.random.split(key, len(sizes) - 1)
        rows = zip(keys, sizes[:-1], sizes[1:], strict=True)
        layers = [Dense(namoo.random.normal(k, (a, b)), jnp.zeros(b)) for k, a, b in rows]
        self.layers = [layers[0], nn.relu, *layers[1:]]
        self.scale = jnp.array(2.0)
        self.name, self.depth = name, len(sizes) - 1

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.scale


class Tied(namoo.Module):
    embed: Any
    body: Dense
    head: Dense

    def __init__(self, key):
        self.embed = namoo.random.normal(key, (3, 3))
        self.body = Dense(jnp.eye(3), jnp.zeros(3), jnp.sin)
        self.head = Dense(self.embed, jnp.ones(3), jnp.cos)

    def __call__(self, x):
        return self.head(self.body(x @ self.embed))


KEY = namoo.random.key(0)
X = namoo.random.normal(namoo.random.key(1), (5, 3))


def net():
    return Net(KEY, [3, 4, 2])


def loss(model, x):
    return jnp.sum(model(x) ** 2)


def test_leaves_are_arrays_and_paths_are_names():
    names = [namoo.tree_util.keystr(path) for path, _ in tree.leaves_with_path(net())]
    assert names == [
        ".layers[0].w",
        ".layers[0].b",
        ".layers[2].w",
        ".layers[2].b",
        ".scale",
    ]


def test_transformations_take_models():
    model = net()
    value = loss(model, X)
    assert np.allclose(namoo.jit(loss)(model, X), value)
    grads = namoo.grad(loss)(model, X)
    assert tree.structure(grads) == tree.structure(model)
    assert tree.structure(namoo.jit(namoo.grad(loss))(model, X)) == tree.structure(model)
    direction = tree.map(jnp.ones_like, model)
    _, slope = namoo.jvp(lambda m: loss(m, X), (model,), (direction,))
    assert np.allclose(slope, tree.vdot(grads, direction), rtol=1e-4)
    again = namoo.grad(namoo.checkpoint(loss))(model, X)
    assert tree.allclose(again, grads, rtol=1e-5)
    each = namoo.vmap(namoo.grad(loss), in_axes=(None, 0))(model, X)
    assert tree.allclose(tree.map(lambda g: g.sum(0), each), grads, rtol=1e-4, atol=1e-4)


def test_scan_carries_and_stacks_models():
    def step(model, x):
        grads = namoo.grad(loss)(model, x)
        return tree.map(lambda p, g: p - 0.01 * g, model, grads), loss(model, x)

    model = net()
    out, losses = namoo.jit(lambda m: lax.scan(step, m, X))(model)
    expected = model
    for x in X:
        expected, _ = step(expected, x)
    assert tree.allclose(out, expected, rtol=1e-4, atol=1e-5)
    assert losses.shape == (5,)
    # A stack of layers, one for each step.
    stack = namoo.vmap(lambda k: Dense(namoo.random.normal(k, (3, 3)), jnp.zeros(3)))(
        namoo.random.split(KEY, 4)
    )
    y, _ = lax.scan(lambda x, layer: (layer(x), None), X[0], stack)
    expected = X[0]
    for i in range(4):
        expected = tree.map(lambda a, i=i: a[i], stack)(expected)
    assert np.allclose(y, expected, rtol=1e-5)
    assert stack.activation is jnp.tanh


def test_cond_and_while_take_models():
    model = net()
    out = lax.cond(True, lambda m: m, lambda m: tree.map(lambda x: x + 1, m), model)
    assert tree.allclose(out, model)
    out = lax.fori_loop(0, 3, lambda i, m: tree.map(lambda x: x + 1, m), model)
    assert tree.allclose(out, tree.map(lambda x: x + 3, model))


def test_ensembles():
    models = namoo.vmap(lambda k: Net(k, [3, 4, 2]))(namoo.random.split(KEY, 6))
    y = namoo.vmap(lambda m, x: m(x), in_axes=(0, None))(models, X)
    assert y.shape == (6, 5, 2)
    first = tree.map(lambda x: x[0], models)
    assert np.allclose(first(X), y[0], rtol=1e-5)


def test_models_with_functions_trace_once():
    traces = 0

    @namoo.jit
    def step(model, x):
        nonlocal traces
        traces += 1
        grads = namoo.grad(loss)(model, x)
        return tree.map(lambda p, g: p - 0.1 * g, model, grads)

    model = net()
    for _ in range(4):
        model = step(model, X)
    step(Net(namoo.random.key(7), [3, 4, 2]), X)
    assert traces == 1
    step(Net(KEY, [3, 4, 2], name="other"), X)
    assert traces == 2
    step(net().at[lambda m: m.layers[1]].set(jnp.sin), X)
    assert traces == 3


def test_equal_numbers_of_other_types_are_other_programs():
    class Power(namoo.Module):
        n: Any

        def __call__(self, x):
            return jnp.power(x, self.n)

    f = namoo.jit(lambda m, x: m(x))
    assert f(Power(2), jnp.array(3)).dtype == jnp.int32
    assert f(Power(2.0), jnp.array(3)).dtype == jnp.float32


def test_bound_methods_are_trees():
    layer = Dense(jnp.eye(3), jnp.ones(3))
    method = layer.twice
    assert len(tree.leaves(method)) == 2
    assert np.allclose(method(X), layer(layer(X)))
    call = namoo.jit(lambda f, x: f(x))
    assert np.allclose(call(method, X), layer.twice(X), rtol=1e-6)
    assert np.allclose(
        call(tree.map(lambda x: 2 * x, method), X), (tree.map(lambda x: 2 * x, layer)).twice(X)
    )
    assert call._cache_size() == 1
    assert method == layer.twice and method.__name__ == "twice"
    assert np.allclose(pickle.loads(pickle.dumps(method))(X), method(X))


def test_jit_of_a_method_traces_once():
    model, other = net(), net()
    assert namoo.jit(model.__call__)._cache is namoo.jit(model.__call__)._cache
    layer = model.layers[0]
    assert namoo.jit(layer.twice)._cache is namoo.jit(layer.twice)._cache
    assert namoo.jit(layer.twice)._cache is not namoo.jit(other.layers[0].twice)._cache
    assert namoo.jit(model)._cache is namoo.jit(model)._cache


class TestTies:
    def test_one_leaf_and_summed_gradient(self):
        model = Tied(KEY)
        assert len(tree.leaves(model)) == 4
        grads = namoo.jit(namoo.grad(loss))(model, X)

        def untied(e1, e2):
            head = Dense(e2, model.head.b, jnp.cos)
            return jnp.sum(head(model.body(X @ e1)) ** 2)

        a, b = namoo.grad(untied, argnums=(0, 1))(model.embed, model.embed)
        assert np.allclose(grads.embed, a + b, rtol=1e-4, atol=1e-4)
        assert grads.head.w is grads.embed

    def test_stay_tied(self):
        model = Tied(KEY)
        for changed in (
            tree.map(lambda x: x + 1, model),
            namoo.jit(lambda m: tree.map(lambda x: x + 1, m))(model),
            model.at[lambda m: m.head.w].set(jnp.ones((3, 3))),
            model.at[lambda m: m.embed].apply(lambda x: 2 * x),
            model.at["embed"].apply(lambda x: 2 * x),
            model.at[lambda m: m.head.activation].set(jnp.tanh),
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            namoo.combine(*namoo.partition(model, "**/b")),
        ):
            assert changed.head.w is changed.embed
            assert len(tree.leaves(changed)) == 4

    def test_untied_by_another_array(self):
        model = Tied(KEY)
        other = Dense(jnp.ones((3, 3)), jnp.ones(3))
        changed = model.at[lambda m: m.head].set(other)
        assert len(tree.leaves(changed)) == 5 and changed.head.w is other.w

    def test_masks(self):
        model = Tied(KEY)
        mask = namoo.paths("embed")(model)
        assert tree.structure(mask) == tree.structure(model)
        assert mask.head.w is True and mask.head.b is False
        mask = tree.map(lambda _: False, model).at[lambda m: m.head.w].set(True)
        assert mask.embed is True and tree.structure(mask) == tree.structure(model)

    def test_inside_another_module(self):
        class Outer(namoo.Module):
            first: Tied
            second: Any

        inner = Tied(KEY)
        outer = Outer(inner, inner.embed)
        assert len(tree.leaves(outer)) == 4
        moved = tree.map(lambda x: x + 1, outer)
        assert moved.second is moved.first.embed is moved.first.head.w


class TestAt:
    def test_several_places(self):
        model = net()
        out = model.at[lambda m: (m.layers[0].b, m.scale)].set((jnp.ones(4), jnp.array(3.0)))
        assert out.layers[0].b.tolist() == [1, 1, 1, 1] and out.scale == 3
        out = model.at[lambda m: [m.layers[0].b, m.layers[2].b]].apply(lambda b: b + 5)
        assert out.layers[2].b.tolist() == [5, 5]
        out = model.at[lambda m: (m.layers[0].b, m.scale)].set(None)
        assert out.scale is None and out.layers[0].b is None
        assert model.at[lambda m: m.name].get() == "net"
        assert model.at[lambda m: (m.name, m.depth)].get() == ["net", 2]

    def test_subtrees_and_configuration(self):
        model = net()
        other = Dense(jnp.zeros((3, 4)), jnp.ones(4), jnp.sin)
        out = model.at[lambda m: m.layers[0]].set(other)
        assert out.layers[0] is other and out.layers[2] is model.layers[2]
        out = model.at[lambda m: m.layers[0].activation].set(jnp.cos)
        assert out.layers[0].activation is jnp.cos and out.layers[2].activation is jnp.tanh
        out = model.at[lambda m: m.layers[2].activation].set(jnp.cos)
        assert out.layers[0].activation is jnp.tanh and out.layers[2].activation is jnp.cos
        out = model.at[lambda m: m.layers].apply(lambda layers: layers[:1])
        assert len(out.layers) == 1 and len(tree.leaves(out)) == 3
        assert model.at[lambda m: m.depth].set(9).depth == 9

    def test_none_becomes_a_parameter(self):
        layer = nn.Linear(2, 2, use_bias=False, key=KEY)
        out = layer.at[lambda m: m.bias].set(jnp.ones(2))
        assert len(tree.leaves(out)) == 2 and len(tree.leaves(layer)) == 1
        assert np.allclose(out(jnp.ones(2)), layer(jnp.ones(2)) + 1)

    def test_places_found_by_walking(self):
        model = net()

        def weights(m):
            is_dense = lambda x: isinstance(x, Dense)  # noqa: E731
            found = tree.leaves(m, is_leaf=is_dense)
            return [x.w for x in found if is_dense(x) and x.w.ndim == 2]

        out = model.at[weights].apply(jnp.zeros_like)
        assert not out.layers[0].w.any() and not out.layers[2].w.any() and out.scale == 2

    def test_patterns(self):
        model = net()
        out = model.at["**/b"].apply(lambda b: b + 1)
        assert out.layers[2].b.tolist() == [1, 1] and out.scale == 2
        assert [x.shape for x in model.at["**/w"].get()] == [(3, 4), (4, 2)]
        with pytest.raises(ValueError, match="matches no leaf"):
            _ = model.at["**/weight"]

    def test_as_equinox(self):
        class Theirs(eqx.Module):
            a: list
            b: Any

        theirs, ours = Theirs([1, 2], {"c": 3}), tree.at({"a": [1, 2], "b": {"c": 3}})
        expected = eqx.tree_at(lambda t: (t.a[1], t.b["c"]), theirs, (10, 20))
        found = ours[lambda t: (t["a"][1], t["b"]["c"])].set((10, 20))
        assert found == {"a": expected.a, "b": expected.b}

    def test_refused(self):
        model = net()
        with pytest.raises(ValueError, match="not a part of it"):
            _ = model.at[lambda m: m.scale.shape + (1,)]
        with pytest.raises(ValueError, match="3 values for 2 positions"):
            model.at[lambda m: (m.scale, m.depth)].set((1, 2, 3))
        with pytest.raises(TypeError, match="takes a function"):
            _ = model.at[0]

    @given(st.integers(0, 4), st.integers(-9, 9))
    def test_only_the_place_changes(self, place, value):
        model = net()
        path, _ = tree.leaves_with_path(model)[place]
        text = namoo.paths("**").select(model)
        name = list(text)[place]
        out = model.at[name].set(value)
        for i, (a, b) in enumerate(zip(tree.leaves(model), tree.leaves(out), strict=True)):
            assert (b == value) if i == place else (a is b)
        assert path


TREES = st.recursive(
    st.none() | st.integers(),
    lambda t: st.lists(t, max_size=3) | st.dictionaries(st.text("ab", max_size=2), t, max_size=3),
    max_leaves=12,
)


class TestFilters:
    def test_partition_and_combine(self):
        model = net()
        for spec in (
            namoo.is_array,
            "**/b",
            namoo.paths("**/b") | "scale",
            lambda x: x.ndim == 2,
            tree.map(lambda x: x.ndim == 1, model),
        ):
            yes, no = namoo.partition(model, spec)
            assert len(tree.leaves(yes)) + len(tree.leaves(no)) == 5
            assert namoo.combine(yes, no) == model == namoo.combine(no, yes)
            assert tree.leaves(namoo.filter(model, spec, inverse=True)) == tree.leaves(no)

    def test_frozen_part_gets_no_gradient(self):
        train, frozen = namoo.partition(net(), "**/w")
        grads = namoo.jit(namoo.grad(lambda a, b: loss(namoo.combine(a, b), X)))(train, frozen)
        full = namoo.grad(loss)(net(), X)
        assert len(tree.leaves(grads)) == 2
        assert np.allclose(grads.layers[2].w, full.layers[2].w, rtol=1e-4)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            (name, value)
            for name in ("is_array_like", "is_inexact_array_like")
            for value in (1, 1.0, 1j, True, "a", None, np.ones(2), np.float32(2), np.arange(2))
        ],
    )
    def test_predicates_as_equinox(self, name, value):
        assert getattr(namoo, name)(value) == getattr(eqx, name)(value)

    @given(
        st.recursive(
            st.none() | st.integers(), lambda t: st.lists(t) | st.dictionaries(st.text(), t)
        )
    )
    def test_round_trip(self, of):
        assert namoo.combine(*namoo.partition(of, lambda x: x % 2 == 0)) == of


class TestClasses:
    def test_frozen(self):
        layer = Dense(1, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match=r"model.replace\(w="):
            layer.w = 3
        with pytest.raises(dataclasses.FrozenInstanceError):
            del layer.w
        assert layer.replace(w=3).w == 3
        with pytest.raises(TypeError, match="has no field 'v'"):
            layer.replace(v=3)

    def test_init_must_set_every_field(self):
        class Bad(namoo.Module):
            weight: Any
            bias: Any = None

            def __init__(self):
                pass

        with pytest.raises(TypeError, match=r"did not set weight.*self.weight"):
            Bad()

    def test_init_may_set_only_fields(self):
        class Bad(namoo.Module):
            weight: Any

            def __init__(self):
                self.wieght = 1

        with pytest.raises(AttributeError, match="Did you mean 'weight'"):
            Bad()

    def test_defaults_converters_and_checks(self):
        order = []

        class Base(namoo.Module):
            x: Any = struct.field(converter=jnp.asarray)
            y: Any = 2

            def __check_init__(self):
                order.append("base")
                if self.y < 0:
                    raise ValueError("negative")

        class Child(Base):
            def __init__(self, x):
                self.x = x

            def __check_init__(self):
                order.append("child")

        child = Child(1.0)
        assert isinstance(child.x, namoo.Array) and child.y == 2 and order == ["base", "child"]
        with pytest.raises(ValueError, match="negative"):
            Base(1.0, -1)
        order.clear()
        tree.map(lambda x: x, child)
        assert not order

    def test_inheritance_of_init(self):
        class Base(namoo.Module):
            x: Any

            def __init__(self, twice):
                self.x = 2 * twice

        class Same(Base):
            y: int = 3

        class Own(Base):
            z: Any

            def __init__(self):
                super().__init__(5)
                self.z = self.x + 1

        assert Same(4).x == 8 and Same(4).y == 3
        assert Own().z == 11

    def test_post_init(self):
        class Made(namoo.Module):
            x: Any
            y: Any = struct.field(init=False)

            def __post_init__(self):
                self.y = self.x + 1

        assert Made(1).y == 2
        with pytest.raises(TypeError, match="both __init__ and __post_init__"):

            class _Bad(namoo.Module):
                def __init__(self):
                    pass

                def __post_init__(self):
                    pass

    def test_abstract(self):
        class Base(namoo.Module):
            @abc.abstractmethod
            def f(self):
                pass

        class Child(Base):
            def f(self):
                return 1

        with pytest.raises(TypeError, match="abstract"):
            Base()  # type: ignore[abstract]
        assert Child().f() == 1

    @pytest.mark.parametrize("value", [[1], jnp.ones(2), {1}])
    def test_static_fields_are_checked(self, value):
        class Fixed(namoo.Module):
            shape: Any = struct.field(static=True)

        with pytest.raises(TypeError, match=r"Fixed.shape is static"):
            Fixed(value)

    def test_unhashable_configuration_is_told_at_once(self):
        with pytest.raises(TypeError, match=r"Dense.activation holds no array, so it is static"):
            Dense(1.0, 2.0, {1, 2})

    @pytest.mark.parametrize("wrap", [lambda o: o, lambda o: [1.0, o]])
    def test_configuration_that_can_change_must_be_declared(self, wrap):
        class Settings:
            scale = 2.0

        with pytest.raises(TypeError, match=r"activation holds .* Settings is not a registered"):
            Dense(1.0, 2.0, wrap(Settings()))

        class Declared(namoo.Module):
            settings: Any = struct.field(static=True)

        assert namoo.jit(lambda m: m.settings.scale)(Declared(Settings())) == 2.0

    def test_method_of_an_unfinished_object(self):
        class Bad(namoo.Module):
            f: Any

            def __init__(self):
                self.f = self.g

            def g(self):
                pass

        with pytest.raises(ValueError, match="unfinished object"):
            Bad()

    def test_equality_hash_and_repr(self):
        a, b = net(), net()
        assert a == b and a != tree.map(lambda x: x + 1, a) and a != 3
        assert hash(nn.Lambda(nn.relu)) == hash(nn.Lambda(nn.relu))
        assert {nn.Lambda(nn.relu): 1}[nn.Lambda(nn.relu)] == 1
        assert repr(Dense(jnp.ones((2, 3)), None)) == "Dense(w=f32[2,3], b=None, activation=tanh)"
        assert repr(net()).splitlines()[0] == "Net("

    def test_difference_is_named(self):
        a, b = net(), Net(KEY, [3, 4, 2], name="other")
        with pytest.raises(ValueError, match="name"):
            tree.map(lambda x, y: x, a, b)

    def test_foreign_containers_and_dicts(self):
        class Holder(namoo.Module):
            params: dict
            names: list

        holder = Holder({"w": jnp.ones(2), "act": jnp.tanh, "n": 3}, ["a", "b"])
        assert len(tree.leaves(holder)) == 1
        out = namoo.jit(lambda h: tree.map(lambda x: x + 1, h))(holder)
        assert out.params["act"] is jnp.tanh and out.params["n"] == 3 and out.names == ["a", "b"]
        mask = tree.map(lambda _: True, holder)
        assert tree.structure(mask) == tree.structure(holder)
        assert tree.leaves(mask.at[lambda m: m.names].set(["c"])) == [True]

    def test_placeholders_of_shapes(self):
        shapes = namoo.eval_shape(net)
        assert tree.structure(shapes) == tree.structure(net())
        assert tree.count(shapes) == tree.count(net())

    def test_generic_keyword_only_and_decorated(self):
        class Box(namoo.Module, Generic[T], kw_only=True):
            content: T
            key: Any = None

            @namoo.jit
            def times(self, x):
                return self.content * x

            @property
            def twice(self):
                return self.content * 2  # pyright: ignore[reportOperatorIssue]

            @classmethod
            def of(cls, x):
                return cls(content=x)

            @staticmethod
            def three():
                return 3

        box = Box[Any](content=jnp.ones(2), key=namoo.random.key(3))
        assert len(tree.leaves(box)) == 2
        assert box.times(3.0).tolist() == [3, 3] and box.twice.tolist() == [2, 2]
        assert Box.of(4).content == 4 and box.three() == 3
        moved = namoo.jit(lambda b: b)(box)
        assert namoo.random.normal(moved.key) == namoo.random.normal(box.key)

    def test_models_made_inside_jit(self):
        made = namoo.jit(lambda key: Net(key, [3, 4, 2]))(KEY)
        assert tree.structure(made) == tree.structure(net())
        assert tree.allclose(made, net(), rtol=1e-6)
        tied = namoo.jit(Tied)(KEY)
        assert tied.head.w is tied.embed and len(tree.leaves(tied)) == 4

    def test_pickle(self):
        model = net()
        again = pickle.loads(pickle.dumps(model))
        assert again == model and tree.structure(again) == tree.structure(model)
