"""Trees behave as JAX's do: what is a node, structures, key paths, maps, registration."""

import collections
import copy
import dataclasses
import functools
import itertools
import pickle
import weakref
from collections import OrderedDict, defaultdict
from typing import Any

import jax
import numpy as np
import pytest

import namoo
import namoo.tree as tree
import namoo.tree_util as tree_util
from namoo.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, Partial, SequenceKey, keystr
from tree_nodes import (
    Bag,
    Dense,
    DictSubclass,
    Keyed,
    ListSubclass,
    LooksNamed,
    Mode,
    OrderedSubclass,
    Plain,
    Point,
    PointSubclass,
    TupleSubclass,
)


def is_none(x):
    return x is None


def add(x, y):
    return x + y


def outcome(function, *args, **kwargs) -> Any:
    """The value of a call, or the exception that it raised."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


def assert_same_outcome(ours, theirs):
    """Equal values; or our exception is one that catching JAX's would catch."""
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), (ours, theirs)
    else:
        assert repr(ours) == repr(theirs)


TREES = {
    "leaf": 1.5,
    "string": "text",
    "none": None,
    "empty list": [],
    "empty tuple": (),
    "empty dict": {},
    "one-tuple": (1,),
    "dict is sorted": {"b": 1, "a": {"d": 2, "c": 3}},
    "integer keys": {1: 2, 0: 3},
    "tuple keys": {(1, "b"): 2, (0, "z"): 3},
    "nan key": {float("nan"): 1, 2.0: 3},
    "nested": [1, (2, {"x": 3, "y": [4, None]}), None],
    "namedtuple": Point(1, [2, 3]),
    "namedtuple subclass": PointSubclass(1, 2),
    "tuple with _fields": LooksNamed(1, 2),
    "ordered": OrderedDict(b=1, a=[2]),
    "defaultdict": defaultdict(list, {"b": 1, "a": (2, 3)}),
    "deque": collections.deque([1, 2]),
    "counter": collections.Counter("ab"),
    "set": frozenset([1]),
    "list subclass": ListSubclass([1, 2]),
    "dict subclass": DictSubclass(a=1),
    "tuple subclass": TupleSubclass((1, 2)),
    "ordered subclass": OrderedSubclass(a=1),
    "struct sequence": [__import__("time").gmtime(0)],
    "plain": Plain("aux", 1, [2, 3]),
    "plain empty": Plain(None),
    "keyed": Keyed(3, {"p": 1}, 2),
    "bag": Bag(z=1, a=[2]),
    "dataclass": Dense([1, 2], 3, activation="tanh"),
    "static": [Mode("train"), 1],
    "dict of empties": {"a": {}, "b": [], "c": None, "d": 1},
    "a structure is a leaf": [jax.tree.structure(1)],
    "array": {"w": np.ones((2, 3))},
}


@pytest.mark.parametrize("value", TREES.values(), ids=TREES.keys())
class TestSameAsJax:
    def test_flatten(self, value):
        leaves, treedef = tree.flatten(value)
        jax_leaves, jax_treedef = jax.tree.flatten(value)
        assert [id(leaf) for leaf in leaves] == [id(leaf) for leaf in jax_leaves]
        assert repr(treedef) == repr(jax_treedef)
        assert treedef.num_leaves == jax_treedef.num_leaves == len(leaves)
        assert treedef.num_nodes == jax_treedef.num_nodes
        assert treedef.node_data() == jax_treedef.node_data()
        assert repr(treedef.children()) == repr(jax_treedef.children())
        assert [child.num_leaves for child in treedef.children()] == [
            child.num_leaves for child in jax_treedef.children()
        ]

    def test_unflatten(self, value):
        leaves, treedef = tree.flatten(value)
        rebuilt = treedef.unflatten(leaves)
        assert type(rebuilt) is type(value)
        assert repr(rebuilt) == repr(jax.tree.unflatten(*jax.tree.flatten(value)[::-1]))
        assert tree.structure(rebuilt) == treedef

    def test_paths(self, value):
        ours, treedef = tree.flatten_with_path(value)
        theirs, _ = jax.tree.flatten_with_path(value)
        assert repr([path for path, _ in ours]) == repr([path for path, _ in theirs])
        assert [keystr(path) for path, _ in ours] == [
            jax.tree_util.keystr(path) for path, _ in theirs
        ]
        assert treedef == tree.structure(value)
        assert repr([path for path, _ in ours]) == repr(tree_util.leaf_paths(treedef))

    def test_one_level(self, value):
        for name in ("flatten_one_level", "flatten_one_level_with_keys"):
            ours = outcome(getattr(tree_util, name), value)
            theirs = outcome(getattr(jax.tree_util, name), value)
            if isinstance(theirs, Exception):
                assert isinstance(ours, type(theirs))
            elif not (name.endswith("keys") and isinstance(value, (Point, LooksNamed))):
                # JAX gives each child of a named tuple the name of the first.
                assert repr(list(ours[0])) == repr(list(theirs[0]))
                assert ours[1] == theirs[1]
        assert tree_util.is_tree_node(type(value)) == jax.tree_util.is_tree_node(type(value))

    def test_is_leaf(self, value):
        def collect(library):
            seen = []
            is_leaf = lambda x: seen.append(x) or isinstance(x, (list, type(None)))  # noqa: E731
            return repr((library.tree_flatten(value, is_leaf), seen))

        assert collect(tree_util) == collect(jax.tree_util)

    def test_is_leaf_with_path(self, value):
        def collect(library):
            seen = []
            is_leaf = lambda path, x: seen.append((path, x)) or len(path) == 1  # noqa: E731
            flat = library.tree_flatten_with_path(value, is_leaf, is_leaf_takes_path=True)
            return repr((flat, seen))

        assert collect(tree_util) == collect(jax.tree_util)

    def test_pickle_and_copy(self, value):
        treedef = tree.structure(value)
        for other in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef)):
            if "nan" in repr(treedef):
                assert repr(other) == repr(treedef)
            else:
                assert other == treedef and hash(other) == hash(treedef)
            assert other.num_leaves == treedef.num_leaves

    def test_walk(self, value):
        leaves, treedef = tree.flatten(value)
        arguments = (lambda *args: ("node", *args), lambda leaf: ("leaf", leaf), leaves)
        assert repr(treedef.walk(*arguments)) == repr(jax.tree.structure(value).walk(*arguments))
        assert repr(treedef.walk(lambda children, data: children, None, leaves))

    def test_rebuild_from_parts(self, value):
        treedef = tree.structure(value)
        assert treedef == tree_util.PyTreeDef.from_node_data_and_children(
            tree_util.default_registry, treedef.node_data(), treedef.children()
        )


def test_every_pair_of_structures_compares_as_in_jax():
    for a, b in itertools.product(TREES.values(), repeat=2):
        ours, theirs = tree.structure(a), jax.tree.structure(a)
        assert (ours == tree.structure(b)) == (theirs == jax.tree.structure(b))
        if ours == tree.structure(b):
            assert hash(ours) == hash(tree.structure(b))


EQUALITIES = [
    ({1: 0}, {1.0: 0}, True),
    ({"a": 1, "b": 2}, {"b": 1, "a": 2}, True),
    ([1], (1,), False),
    (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), False),
    (defaultdict(list, a=1), defaultdict(int, a=1), False),
    (Plain(1, 0), Plain(1.0, 0), True),
    (Plain(1, 0), Plain(2, 0), False),
    (Plain([1], 0), Plain([1], 0), True),
    (Dense(1, 2, "relu"), Dense(3, 4, "relu"), True),
    (Dense(1, 2, "relu"), Dense(3, 4, "tanh"), False),
    (Mode("a"), Mode("a"), True),
    (Mode("a"), Mode("b"), False),
    ([1, [2]], [[1], 2], False),
    ([], [[]], False),
    (None, 1, False),
]


@pytest.mark.parametrize(("a", "b", "equal"), EQUALITIES)
def test_equality(a, b, equal):
    assert (tree.structure(a) == tree.structure(b)) is equal
    assert (tree.structure(a) != tree.structure(b)) is not equal
    assert (jax.tree.structure(a) == jax.tree.structure(b)) is equal


def test_a_structure_differs_from_other_objects():
    assert tree.structure(1) != 1
    assert not tree.structure([1]) == None  # noqa: E711


def test_a_structure_can_be_referred_to_weakly():
    treedef = tree.structure([1])
    assert weakref.ref(treedef)() is treedef


COMPOSITIONS = [([1, 2], {"a": 1}), ([1, None], None), (1, [1]), ([1, (2, 3)], 1), ({}, [1])]


@pytest.mark.parametrize(("outer", "inner"), COMPOSITIONS)
def test_compose(outer, inner):
    ours = tree.structure(outer).compose(tree.structure(inner))
    theirs = jax.tree.structure(outer).compose(jax.tree.structure(inner))
    assert repr(ours) == repr(theirs)
    assert (ours.num_leaves, ours.num_nodes) == (theirs.num_leaves, theirs.num_nodes)
    assert ours == tree.structure(tree.map(lambda _: inner, outer))


KEYS = [
    (SequenceKey(3), jax.tree_util.SequenceKey(3)),
    (DictKey("a"), jax.tree_util.DictKey("a")),
    (DictKey(3), jax.tree_util.DictKey(3)),
    (GetAttrKey("x"), jax.tree_util.GetAttrKey("x")),
    (FlattenedIndexKey(2), jax.tree_util.FlattenedIndexKey(2)),
]


@pytest.mark.parametrize(("ours", "theirs"), KEYS)
def test_keys(ours, theirs):
    assert (repr(ours), str(ours)) == (repr(theirs), str(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    [name] = ours.__match_args__
    assert getattr(ours, name) == getattr(theirs, name)
    assert type(ours)(**{name: getattr(ours, name)}) == ours
    assert pickle.loads(pickle.dumps(ours)) == ours
    assert hash(copy.copy(ours)) == hash(ours)
    with pytest.raises(AttributeError):
        setattr(ours, name, 0)
    assert [ours == other for other, _ in KEYS].count(True) == 1


def test_keys_refuse_what_they_cannot_hold():
    for make in (
        lambda: SequenceKey("a"),  # type: ignore[arg-type]
        lambda: GetAttrKey(1),  # type: ignore[arg-type]
        lambda: FlattenedIndexKey("a"),  # type: ignore[arg-type]
        lambda: hash(DictKey([])),
    ):
        with pytest.raises(TypeError):
            make()


@pytest.mark.parametrize("options", [{}, {"simple": True}, {"simple": True, "separator": "/"}])
def test_keystr(options):
    ours, theirs = zip(*KEYS, strict=True)
    expected = jax.tree_util.keystr((*theirs, "text", 5), **options)
    assert keystr((*ours, "text", 5), **options) == expected
    assert keystr((), **options) == ""


CALLS = {
    "map": lambda t: t.tree_map(add, {"a": [1, 2]}, {"a": [3, 4]}),
    "map subtrees": lambda t: t.tree_map(lambda x, y: (x, y), [1, 2], [[3], None]),
    "map none": lambda t: t.tree_map(add, [1, None], [2, None]),
    "map none as leaf": lambda t: t.tree_map(
        lambda x, y: (x, y), [1, None], [2, 3], is_leaf=is_none
    ),
    "map none against leaf": lambda t: t.tree_map(add, [1, None], [2, 3]),
    "map other keys": lambda t: t.tree_map(add, {"a": 1}, {"b": 1}),
    "map other unsortable keys": lambda t: t.tree_map(add, {"a": 1}, {"a": 1, 2: 3}),
    "map calls none": lambda t: t.tree_map(None, [1]),
    "map with path": lambda t: t.tree_map_with_path(
        lambda path, x, y: (t.keystr(path), x, y), {"a": [1, 2]}, {"a": [3, {"z": 4}]}
    ),
    "map with path, empty": lambda t: t.tree_map_with_path(add, {}, {}),
    "map with path mismatch": lambda t: t.tree_map_with_path(add, {}, {"a": 1}),
    "map with path, is_leaf": lambda t: t.tree_map_with_path(
        lambda path, x: (t.keystr(path), x), {"a": [1, 2]}, is_leaf=lambda x: isinstance(x, list)
    ),
    "map with path, is_leaf of path": lambda t: t.tree_map_with_path(
        lambda path, x, y: (x, y),
        {"a": [1, 2]},
        {"a": 3},
        is_leaf=lambda path, x: len(path) == 1,
        is_leaf_takes_path=True,
    ),
    "leaves with path": lambda t: t.tree_leaves_with_path({"a": [1, 2]}),
    "is_leaf says None": lambda t: t.tree_leaves([1, [2]], lambda x: None),
    "is_leaf says 1": lambda t: t.tree_leaves([1, [2]], lambda x: 1),
    "is_leaf says np.True_": lambda t: t.tree_leaves([1, [2]], lambda x: np.True_),
    "is_leaf with path says 1": lambda t: t.tree_leaves_with_path([1, [2]], lambda x: 1),
    "is_leaf raises": lambda t: t.tree_leaves([1, [2]], lambda x: 1 / 0),
    "reduce": lambda t: t.tree_reduce(add, {"a": [1, 2], "b": 3}),
    "reduce from": lambda t: t.tree_reduce(add, {"a": [1, 2], "b": 3}, 10),
    "reduce from None": lambda t: t.tree_reduce(add, [], None),
    "reduce nothing": lambda t: t.tree_reduce(add, []),
    "reduce is_leaf": lambda t: t.tree_reduce(add, [[1], [2]], is_leaf=lambda x: x in ([1], [2])),
    "associative": lambda t: t.tree_reduce_associative(
        lambda a, b: f"({a}{b})", list("abcdefg"), identity="-"
    ),
    "associative of none": lambda t: t.tree_reduce_associative(add, [], identity=3),
    "associative of none without": lambda t: t.tree_reduce_associative(add, []),
    "all": lambda t: [t.tree_all(x) for x in ([1, 0], [], [None, 1], {"a": True})],
    "all is_leaf": lambda t: t.tree_all([None, 1], is_leaf=is_none),
    "transpose": lambda t: t.tree_transpose(
        t.tree_structure([0, 0]), t.tree_structure({"a": 0, "b": 0}), [{"a": 1, "b": 2}] * 2
    ),
    "transpose, inner found": lambda t: t.tree_transpose(
        t.tree_structure([0, 0]), None, [{"a": 1, "b": [2, 3]}] * 2
    ),
    "transpose, equal count": lambda t: t.tree_transpose(
        t.tree_structure((0, 0)), t.tree_structure({"b": 0}), [{"a": 1}, {"a": 2}]
    ),
    "transpose mismatch": lambda t: t.tree_transpose(
        t.tree_structure([0, 0, 0]), t.tree_structure({"a": 0}), [{"a": 1}, {"a": 2}]
    ),
    "transpose mismatch, inner found": lambda t: t.tree_transpose(
        t.tree_structure([0, 0, 0]), None, [{"a": 1}, {"a": 2}]
    ),
    "transpose nothing": lambda t: t.tree_transpose(t.tree_structure([]), None, []),
    "broadcast": lambda t: t.tree_broadcast([1, 2], [{"a": 1, "b": 2}, (3, None)]),
    "broadcast mismatch": lambda t: t.tree_broadcast([1, 2, 3], [{"a": 1, "b": 2}, (3,)]),
    "broadcast None": lambda t: t.tree_broadcast([None, 2], [{"a": 1, "b": 2}, (3,)]),
    "broadcast None as leaf": lambda t: t.tree_broadcast(
        [None, 2], [{"a": 1, "b": 2}, (3,)], is_leaf=is_none
    ),
    "unflatten a generator": lambda t: t.tree_unflatten(
        t.tree_structure([0, {"a": 0}]), iter("ab")
    ),
    "unflatten trees": lambda t: t.tree_unflatten(t.tree_structure([0, 0]), [{}, None]),
    "unflatten too few": lambda t: t.tree_unflatten(t.tree_structure([0, 0]), [1]),
    "unflatten too many": lambda t: t.tree_unflatten(t.tree_structure([0, 0]), [1, 2, 3]),
    "unflatten endless": lambda t: t.tree_unflatten(t.tree_structure([0]), itertools.count()),
    "unflatten a number": lambda t: t.tree_unflatten(t.tree_structure([0]), 3),
    "unflatten swapped": lambda t: t.tree_unflatten([1], t.tree_structure([0])),
    "walk too few": lambda t: t.tree_structure([0]).walk(lambda *a: a, lambda x: x, []),
    "walk too many": lambda t: t.tree_structure([0]).walk(lambda *a: a, lambda x: x, [1, 2]),
    "flatten up to None": lambda t: t.tree_structure(None).flatten_up_to(1),
    "flatten None up to": lambda t: t.tree_structure(1).flatten_up_to(None),
    "unsortable": lambda t: t.tree_leaves({"a": 1, 2: 3}),
    "unsortable with path": lambda t: t.tree_leaves_with_path({"a": 1, 2: 3}),
    "unsortable defaultdict": lambda t: t.tree_leaves(defaultdict(int, {"a": 1, 2: 3})),
    "all_leaves": lambda t: [t.all_leaves(x) for x in ([1, 2], [1, None], [], iter([1, [2]]))],
    "all_leaves is_leaf": lambda t: t.all_leaves([1, None], is_leaf=is_none),
    "treedef_tuple": lambda t: t.treedef_tuple(iter([t.tree_structure(1), t.tree_structure([1])])),
    "treedef_tuple empty": lambda t: t.treedef_tuple([]),
    "treedef_children": lambda t: t.treedef_children(t.tree_structure([1, (2, 3)])),
    "treedef_is_leaf": lambda t: [
        t.treedef_is_leaf(t.tree_structure(x)) for x in (1, None, [], [1])
    ],
    "from_iterable_tree": lambda t: t.tree_structure(
        [1, (2, {"a": 3, "b": 4}), None]
    ).from_iterable_tree([10, [20, iter([30, 40])], ()]),
    "from_iterable_tree short": lambda t: t.tree_structure([1, 2]).from_iterable_tree([1]),
    "from_iterable_tree leaf": lambda t: t.tree_structure([1, 2]).from_iterable_tree(3),
    "not a node class": lambda t: t.PyTreeDef.from_node_data_and_children(
        t.default_registry, (int, None), []
    ),
    "leaf from node data": lambda t: t.PyTreeDef.from_node_data_and_children(
        t.default_registry, None, []
    ),
    "registry flatten": lambda t: t.default_registry.flatten([1, None], is_none),
    "registry paths": lambda t: t.default_registry.flatten_with_path(
        [1], lambda path, x: bool(path)
    ),
    "registry one level": lambda t: [t.default_registry.flatten_one_level(x) for x in (1, [2])],
    "registry one level, keys": lambda t: [
        t.default_registry.flatten_one_level_with_keys(x) for x in (1, Plain(0, 1))
    ],
    "registry is_node": lambda t: [t.default_registry.is_node(x) for x in (int, list)],
    "registry pickle": lambda t: (
        pickle.loads(pickle.dumps(t.default_registry)) is t.default_registry
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_same_result_or_error_as_jax(call):
    assert_same_outcome(outcome(call, tree_util), outcome(call, jax.tree_util))


def test_public_names():
    for ours, theirs in ((tree, jax.tree), (tree_util, jax.tree_util)):
        names = {name for name in dir(theirs) if not name.startswith("_")}
        assert names <= set(ours.__all__) <= set(dir(ours))
    assert tree_util.tree_map is tree.map


def test_unsortable_keys_are_named():
    with pytest.raises(ValueError, match=r"'a' \(str\), 2 \(int\)"):
        tree.leaves({"a": 1, "b": 2, 2: 3})
    with pytest.raises(ValueError, match="cannot be: 1j, 2j"):
        tree.leaves({1j: 1, 2j: 2})


def test_missing_leaf_is_named():
    with pytest.raises(ValueError, match=r"has 3, but 1 were given.*\['b'\]\[0\]") as raised:
        tree.structure({"a": 0, "b": [0, 0]}).unflatten([1])
    assert [keystr(d.path) for d in raised.value.differences] == ["['b'][0]", "['b'][1]"]  # type: ignore[attr-defined]


def test_stop_iteration_in_a_mapped_function_is_not_swallowed():
    with pytest.raises(StopIteration):
        tree.map(lambda x: next(iter(())), [1, 2])


class TestDepth:
    def nest(self, depth, make, x: Any = 0):
        for _ in range(depth):
            x = make(x)
        return x

    @pytest.mark.parametrize(
        "make",
        [lambda x: [x], lambda x: {"k": x}, lambda x: Plain(None, x), lambda x: Dense(x, 1)],
        ids=["list", "dict", "custom", "dataclass"],
    )
    def test_deep(self, make):
        deep = self.nest(600, make, 41)
        leaves, treedef = tree.flatten(deep)
        assert leaves == jax.tree.leaves(deep)
        assert treedef == tree.structure(self.nest(600, make))
        assert hash(treedef) == hash(tree.structure(self.nest(600, make)))
        assert repr(treedef) == repr(jax.tree.structure(deep))
        assert pickle.loads(pickle.dumps(treedef)) == treedef
        assert tree.leaves(tree.map(lambda x, y: x + y, deep, deep)) == [2 * x for x in leaves]
        assert len(tree.leaves_with_path(deep)[0][0]) == 600
        assert tree.structure([0]).compose(treedef).num_nodes == treedef.num_nodes + 1
        with pytest.raises(ValueError, match="1 difference"):
            tree.map(lambda x, y: x, deep, self.nest(300, make, None))

    @pytest.mark.parametrize("function", [tree.flatten, tree.flatten_with_path])
    def test_too_deep_raises(self, function):
        with pytest.raises(RecursionError, match="nested more deeply"):
            function(self.nest(20_000, lambda x: [x]))

    def test_cycle_raises(self):
        cycle: list = []
        cycle.append(cycle)
        with pytest.raises(RecursionError, match="contains itself"):
            tree.flatten(cycle)

    def test_difference_far_down(self):
        a, b = self.nest(700, lambda x: [x], (1,)), self.nest(700, lambda x: [x], (1, 2))
        [difference] = tree.diff(a, b)
        assert len(difference.path) == 700
        assert len(str(difference)) < 400


def new_class() -> Any:
    return type("Fresh", (), {})


class TestRegistration:
    def test_only_once(self):
        cls = new_class()
        tree_util.register_pytree_node(cls, lambda x: ((), None), lambda aux, children: cls())
        for again in (
            lambda: tree_util.register_pytree_node(cls, lambda x: x, lambda *args: args),
            lambda: tree_util.register_dataclass(cls, [], []),
            lambda: tree_util.register_static(cls),
            lambda: tree_util.register_pytree_node(list, lambda x: x, lambda *args: args),
            lambda: tree_util.register_pytree_node(type(None), lambda x: x, lambda *args: args),
            lambda: tree_util.register_pytree_node(OrderedDict, lambda x: x, lambda *args: args),
        ):
            with pytest.raises(ValueError, match="already registered"):
                again()

    def test_only_classes_and_functions(self):
        with pytest.raises(TypeError, match="only a class"):
            tree_util.register_pytree_node(3, lambda x: x, lambda *args: args)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="two functions"):
            tree_util.register_pytree_node(new_class(), None, None)  # type: ignore[arg-type]

    def test_a_class_seen_as_leaf_becomes_a_node(self):
        cls = new_class()
        assert tree.leaves([cls()]) != []
        tree_util.register_static(cls)
        assert tree.leaves([cls()]) == []

    def test_a_namedtuple_can_be_registered(self):
        pair: Any = collections.namedtuple("pair", "a b")
        assert tree.leaves(pair(1, 2)) == [1, 2]
        tree_util.register_pytree_node(
            pair, lambda p: ((p.a,), p.b), lambda b, children: pair(*children, b)
        )
        assert tree.flatten(pair(1, 2))[0] == [1]
        assert tree.map(lambda x: 10 * x, pair(1, 2)) == (10, 2)

    def test_forgotten_classes_are_met_again(self):
        new = {"__new__": lambda cls, *args: tuple.__new__(cls, args)}
        many: list[Any] = [type(f"T{i}", (tuple,), {"_fields": ("a",), **new}) for i in range(5000)]
        treedefs = [tree.structure(cls(1)) for cls in many]
        for treedef, cls in zip(treedefs, many, strict=True):
            assert treedef.unflatten([2]) == (2,)
            assert treedef == tree.structure(cls(3))
        leaves = [type(f"L{i}", (), {})() for i in range(5000)]
        assert tree.leaves(leaves) == leaves

    def test_subclasses_are_leaves(self):
        sub: Any = type("Sub", (Plain,), {})
        assert tree.structure(sub(None, 1)).num_nodes == 1

    def test_unflatten_gets_a_tuple(self):
        seen = []
        cls = new_class()
        tree_util.register_pytree_node(
            cls, lambda x: (iter([1, 2]), "aux"), lambda *args: seen.append(args)
        )
        tree.map(lambda x: x, cls())
        assert seen == [("aux", (1, 2))]

    @pytest.mark.parametrize(
        ("result", "leaves"),
        [
            (5, None),
            ((1,), None),
            ((1, 2), None),
            (((1, 2), 3, 4), None),
            ([(1, 2), 3], None),
            ((None, 1), None),
            ((iter([1, 2]), 3), [1, 2]),
            (([1, 2], 3), [1, 2]),
            (({"a": 1}, 2), ["a"]),
            (("ab", 2), ["a", "b"]),
        ],
    )
    def test_what_flatten_may_return(self, result, leaves):
        cls = new_class()
        tree_util.register_pytree_node(cls, lambda x: result, lambda aux, children: cls())
        if leaves is None:
            with pytest.raises(ValueError, match="Fresh"):
                tree.leaves([cls()])
        else:
            assert tree.leaves([cls()]) == leaves

    @pytest.mark.parametrize("result", [5, ([1, 2], None), ([("a", 1, 2)], None), (3, None)])
    def test_what_flatten_with_keys_may_not_return(self, result):
        cls = new_class()
        tree_util.register_pytree_node(
            cls, lambda x: ((), None), lambda aux, children: cls(), lambda x: result
        )
        with pytest.raises(ValueError, match="Fresh"):
            tree.leaves_with_path([cls()])

    def test_errors_of_the_class_pass_through(self):
        cls = new_class()
        tree_util.register_pytree_node(cls, lambda x: {}["boom"], lambda aux, children: 1 / 0)
        with pytest.raises(KeyError, match="boom"):
            tree.leaves([cls()])

    @pytest.mark.parametrize("keys", [False, True])
    def test_class_decorators(self, keys):
        class Line:
            def __init__(self, *ends):
                self.ends = ends

            def tree_flatten(self):
                return self.ends, "meta"

            def tree_flatten_with_keys(self):
                return [(f"end{i}", end) for i, end in enumerate(self.ends)], "meta"

            @classmethod
            def tree_unflatten(cls, aux_data, children):
                assert aux_data == "meta"
                return cls(*children)

        name = "register_pytree_with_keys_class" if keys else "register_pytree_node_class"
        assert getattr(tree_util, name)(Line) is Line
        getattr(jax.tree_util, name)(Line)
        assert tree.map(lambda x: -x, Line(1, 2)).ends == (-1, -2)
        assert repr(tree.leaves_with_path(Line(1, 2))) == repr(
            jax.tree.leaves_with_path(Line(1, 2))
        )

    def test_keys_that_cannot_be_known_without_an_instance(self):
        class Strict:
            def __init__(self, a):
                if not isinstance(a, int):
                    raise TypeError("an int, please")
                self.a = a

        tree_util.register_pytree_with_keys(
            Strict,
            lambda s: (((GetAttrKey("a"), s.a),), None),
            lambda aux, children: Strict(*children),
        )
        assert tree_util.leaf_paths(tree.structure(Strict(1))) == [(FlattenedIndexKey(0),)]
        assert tree.leaves_with_path(Strict(1)) == [((GetAttrKey("a"),), 1)]


@dataclasses.dataclass
class Fields:
    x: int
    y: int = 5
    z: int = dataclasses.field(init=False, default=3)


class TestDataclass:
    REFUSED = {
        "one of two": dict(data_fields=["x"]),
        "missing": dict(data_fields=["x"], meta_fields=[]),
        "unexpected": dict(data_fields=["x", "y", "w"], meta_fields=[]),
        "overlap": dict(data_fields=["x", "y"], meta_fields=["x"]),
        "not in the constructor": {},
    }

    @pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED.keys())
    def test_refused_as_in_jax(self, arguments):
        ours = outcome(tree_util.register_dataclass, Fields, **arguments)
        theirs = outcome(jax.tree_util.register_dataclass, Fields, **arguments)
        assert isinstance(theirs, Exception) and type(ours) is type(theirs)
        assert not tree_util.is_tree_node(Fields)

    def test_not_a_dataclass(self):
        with pytest.raises(TypeError, match="is not a dataclass"):
            tree_util.register_dataclass(new_class())

    def test_like_a_dataclass(self):
        class Pair:
            def __init__(self, a, b):
                self.a, self.b = a, b

        tree_util.register_dataclass(Pair, ["b", "a"], [])
        assert tree.leaves_with_path(Pair(1, 2)) == [
            ((GetAttrKey("b"),), 2),
            ((GetAttrKey("a"),), 1),
        ]
        assert tree.map(lambda x: x, Pair(1, 2)).b == 2
        empty = Pair(1, 2)
        del empty.a
        with pytest.raises(AttributeError):
            tree.leaves(empty)

    @pytest.mark.parametrize(
        "arguments",
        [
            dict(data_fields=["x"], meta_fields=[], drop_fields=["y"]),
            dict(drop_fields=["y", "z"]),
        ],
    )
    def test_dropped_fields_get_their_default(self, arguments):
        cls = dataclasses.make_dataclass(
            "Fields", [("x", int), ("y", int, 5), ("z", int, dataclasses.field(init=False))]
        )
        tree_util.register_dataclass(cls, **arguments)
        assert tree.leaves(cls(1, 2)) == [1]
        assert tree.map(lambda x: x, cls(1, 2)).y == 5

    def test_the_constructor_runs(self):
        @tree_util.register_dataclass
        @dataclasses.dataclass
        class Post:
            x: int

            def __post_init__(self):
                self.ready = True

        assert tree.map(lambda x: x, Post(1)).ready

    def test_static_field(self):
        @tree_util.register_dataclass
        @dataclasses.dataclass
        class Op:
            x: float
            name: str = tree.static(default="add", metadata={"unit": "m"})

        field = dataclasses.fields(Op)[1]
        assert dict(field.metadata) == {"static": True, "unit": "m"}
        assert tree.leaves(Op(1.0)) == [1.0]
        assert tree.structure(Op(1.0)) != tree.structure(Op(1.0, "mul"))


class TestPartial:
    def both(self, *args, **kwargs):
        return Partial(*args, **kwargs), jax.tree_util.Partial(*args, **kwargs)

    def test_call_and_flatten(self):
        ours, theirs = self.both(dict, [("a", 1)], b=2)
        assert ours() == theirs() == {"a": 1, "b": 2}
        assert repr(tree.flatten(ours)) == repr(jax.tree.flatten(theirs))
        assert repr(tree.leaves_with_path(ours)) == repr(jax.tree.leaves_with_path(theirs))
        assert tree.map(lambda x: 10 * x if isinstance(x, int) else x, ours)()["b"] == 20

    @pytest.mark.parametrize("inner", [functools.partial(max, 3), Partial(max, 3)])
    def test_a_partial_inside_is_not_merged(self, inner):
        ours, theirs = self.both(inner, 5)
        assert ours(1) == theirs(1) == 5
        assert tree.leaves(ours) == jax.tree.leaves(theirs) == [5]
        assert ours.func is inner
        assert tree.map(lambda x: -x, ours)(1) == 3
        assert tree.structure(ours) == tree.structure(Partial(inner, 6))
        assert pickle.loads(pickle.dumps(ours))(1) == 5

    def test_function_is_static(self):
        assert tree.structure(Partial(max, 1)) == tree.structure(Partial(max, 2))
        assert tree.structure(Partial(max, 1)) != tree.structure(Partial(min, 1))

    def test_subclass_is_a_leaf(self):
        sub = type("Sub", (Partial,), {})
        assert tree.structure(sub(max, 1)).num_nodes == 1

    def test_must_be_callable(self):
        for arguments in ((), (3,)):
            with pytest.raises(TypeError):
                Partial(*arguments)


class TestMetadata:
    """Metadata is part of the structure: what cannot be hashed or compared is refused by name."""

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (Dense(1, 2, np.ones(2)), ["Dense.activation", "numpy.ndarray", "data fields"]),
            (Dense(1, 2, (0, [np.ones(2)])), ["Dense.activation[1][0]", "numpy.ndarray"]),
            (Plain(np.ones(2), 2), ["the aux_data of Plain", "numpy.ndarray"]),
            (Plain({"a": np.ones(2)}, 2), ["the aux_data of Plain['a']", "numpy.ndarray"]),
            ({"m": [1, Dense(1, 2, np.ones(2))]}, ["Dense.activation", "(at ['m'][1])"]),
        ],
    )
    def test_unhashable(self, value, words):
        treedef = tree.structure(value)
        for _ in range(2):
            with pytest.raises(TypeError) as raised:
                hash(treedef)
            for word in words:
                assert word in str(raised.value)

    @pytest.mark.parametrize(
        ("meta", "other"),
        [
            ([3], [4]),
            ({3}, {4}),
            ({3: 4}, {3: 5}),
            ({"a": [1, {2}]}, {"a": [1, {3}]}),
            ((0, [1]), (0, [2])),
            (Dense(1, 2), Dense(1, 3)),
        ],
    )
    @pytest.mark.parametrize("make", [lambda m: Dense(1.0, 2.0, m), lambda m: [Plain(m, 1.0)]])
    def test_containers_are_hashed_by_their_content(self, make, meta, other):
        first, same = tree.structure(make(meta)), tree.structure(make(copy.deepcopy(meta)))
        assert first == same and hash(first) == hash(same)
        assert first != tree.structure(make(other))

    @pytest.mark.parametrize("meta", [{"scale": 2.0}, [2.0], Dense(2.0, None)])
    def test_a_structure_that_was_hashed_does_not_change_with_its_metadata(self, meta):
        value = Plain(meta, 1.0)
        treedef, seen = tree.structure(value), []
        hash(treedef)
        compiled = namoo.jit(lambda p: seen.append(1) or p.children[0] * 2.0)
        for _ in range(3):
            compiled(value)
        if isinstance(meta, Dense):
            meta.w = 3.0
        else:
            meta["scale" if isinstance(meta, dict) else 0] = 3.0
        assert tree.structure(value) != treedef
        compiled(value)
        assert len(seen) == 2

    @pytest.mark.parametrize(
        ("a", "b", "words"),
        [
            (
                {"m": [1, Dense(1, 2, np.ones(2))]},
                {"m": [1, Dense(1, 2, np.ones(2))]},
                ["the field Dense.activation (at ['m'][1])", "numpy.ndarray"],
            ),
            ([Plain("x", 1), Plain((1, np.ones(2)), 1)], None, ["aux_data of Plain[1] (at [1])"]),
            (Dense(1, 2, "relu"), Dense(1, 2, np.ones(2)), ["Dense.activation", "numpy.ndarray"]),
        ],
    )
    def test_incomparable(self, a, b, words):
        b = copy.deepcopy(a) if b is None else b
        with pytest.raises(ValueError) as raised:
            bool(tree.structure(a) == tree.structure(b))
        for word in words:
            assert word in str(raised.value)

    def test_incomparable_in_flatten_up_to(self):
        with pytest.raises(ValueError, match="the field Dense.activation is static"):
            tree.map(add, Dense(1, 2, np.ones(2)), Dense(1, 2, np.ones(2)))

    def test_identical_metadata_needs_no_comparison(self):
        array = np.ones(2)
        assert tree.structure(Dense(1, 2, array)) == tree.structure(Dense(3, 4, array))
