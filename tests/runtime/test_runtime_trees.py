"""The C++ functions on trees do what the Python reference does: results, structures and errors."""

import gc
import sys
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from namoo import tree, tree_util
from namoo._base.runtime import native
from namoo.tree import fast
from namoo.tree import treedef as reference
from tree_nodes import Dense, Keyed, Plain, Point
from tree_strategies import TREES, related

pytestmark = pytest.mark.skipif(native is None, reason="the C++ part was not built")


def outcome(function, *args, **kwargs) -> Any:
    """The result, or the type and the message of the error."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


def same(mine, wanted) -> None:
    assert mine == wanted
    assert type(mine) is type(wanted)


PREDICATES = [
    None,
    lambda x: isinstance(x, list),
    lambda x: None,
    lambda x: isinstance(x, dict) and len(x) == 2,
]


@settings(max_examples=200, deadline=None)
@given(TREES, st.sampled_from(PREDICATES))
def test_flatten(value, is_leaf):
    leaves, treedef = native.flatten(value, is_leaf)
    wanted_leaves, wanted = reference.flatten(value, is_leaf)
    same(leaves, wanted_leaves)
    assert all(map(lambda a, b: a is b, leaves, wanted_leaves))
    same(treedef._structure, wanted._structure)
    assert treedef == wanted and hash(treedef) == hash(wanted)
    assert treedef.num_leaves == wanted.num_leaves
    assert repr(treedef) == repr(wanted)
    same(native.leaves(value, is_leaf), wanted_leaves)


@settings(max_examples=200, deadline=None)
@given(TREES, st.booleans())
def test_flatten_with_path(value, takes_path):
    is_leaf = (lambda path, x: len(path) == 2) if takes_path else None
    mine = native.flatten_with_path(value, is_leaf, takes_path)
    wanted = reference.flatten_with_path(value, is_leaf, takes_path)
    same(mine[0], wanted[0])
    same(mine[1]._structure, wanted[1]._structure)
    assert [tree_util.keystr(p) for p, _ in mine[0]] == [tree_util.keystr(p) for p, _ in wanted[0]]


@settings(max_examples=200, deadline=None)
@given(TREES, st.integers(-1, 1), st.sampled_from([list, tuple, iter]))
def test_unflatten(value, more, kind):
    leaves, treedef = reference.flatten(value)
    given_leaves = [object() for _ in range(max(0, len(leaves) + more))]
    mine = outcome(native.unflatten, treedef, kind(given_leaves))
    wanted = outcome(reference.unflatten, treedef, kind(given_leaves))
    same(mine, wanted)
    if more == 0:
        same(reference.flatten(mine)[1], treedef)


@settings(max_examples=300, deadline=None)
@given(related())
def test_subtrees_and_map(pair):
    first, second = pair
    treedef = reference.flatten(first)[1]
    same(
        outcome(native.subtrees_of, treedef, second),
        outcome(reference.subtrees_of, treedef, second),
    )
    mine = outcome(native.map, lambda *row: row, first, (second, first), None)
    wanted = outcome(fast._map, lambda *row: row, first, (second, first), None)
    if mine is native.MISMATCH:
        assert wanted is fast.MISMATCH
    else:
        same(mine, wanted)
    same(
        native.map(lambda x: [x], first, (), None),
        fast._map(lambda x: [x], first, (), None),
    )


class NoOrder:
    """Hashable, equal to itself, and without an order."""


def broken_flatten(result):
    class Broken:
        pass

    tree_util.register_pytree_node(Broken, lambda _: result, lambda aux, children: None)
    return Broken()


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


ERRORS = {
    "unsortable keys": lambda: {1: 0, "a": 1},
    "unsortable objects": lambda: {NoOrder(): 0, NoOrder(): 1},
    "unsortable defaultdict": lambda: defaultdict(int, {1: 0, "a": 1}),
    "not a pair": lambda: broken_flatten([1, 2]),
    "three": lambda: broken_flatten((1, 2, 3)),
    "children that are none": lambda: broken_flatten((7, None)),
    "too deep": lambda: nested(100_000),
}


@pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS)
def test_errors_of_flatten(make):
    value = make()
    mine, wanted = outcome(native.flatten, value), outcome(reference.flatten, value)
    assert mine[0] is wanted[0] and issubclass(mine[0], Exception)
    # Objects without a name are printed with their address; the rest is the same.
    assert mine[1] == wanted[1]
    same(outcome(native.leaves, value), mine)
    while isinstance(value, list) and value and isinstance(value[0], list):
        value = value[0]  # a deep list would be freed by recursion


@pytest.mark.parametrize("answer", [1, "yes", 0.0])
def test_a_predicate_must_answer(answer):
    mine = outcome(native.flatten, [1], lambda x: answer)
    assert mine == outcome(reference.flatten, [1], lambda x: answer)
    assert mine[0] is ValueError


class Rare(NamedTuple):
    a: Any

    def __len__(self):
        return 7


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": 2},
        {i: i for i in range(100)},
        {f"k{i}": i for i in reversed(range(100))},
        {(1, 2): 0, (0, 5): 1},
        {True: 1, 3: 2},
        {"": {}, "x": [], "y": ()},
        OrderedDict(z=1, a=[2]),
        defaultdict(list, b=1, a=2),
        Rare(1),
        Point(1, [2]),
        Plain("aux", 1, [2, 3]),
        Keyed(None, 1, 2),
        Dense(1.0, 2.0, "relu"),
        [None, (), [], {}, 3],
        list(range(1000)),
        [[i] for i in range(300)],
    ],
    ids=lambda value: type(value).__name__,
)
def test_kinds_of_nodes(value):
    for _ in range(2):  # what is remembered from the first time is used the second
        mine, wanted = native.flatten(value), reference.flatten(value)
        same(mine[0], wanted[0])
        same(mine[1]._structure, wanted[1]._structure)
        same(native.unflatten(mine[1], mine[0]), reference.unflatten(wanted[1], wanted[0]))
        same(native.flatten_with_path(value), reference.flatten_with_path(value))
        same(native.subtrees_of(mine[1], value), wanted[0])


def test_dicts_with_the_same_keys_in_another_order():
    first, second = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert native.flatten(first) == native.flatten(second) == reference.flatten(first)
    assert native.subtrees_of(native.flatten(first)[1], second) == [1, 2]
    equal_key = "".join(["a", "b"])  # equal to the key, but another object
    assert native.flatten({"ab": 1}) == native.flatten({equal_key: 1})


def test_a_class_met_as_a_leaf_can_become_a_node():
    class Late:
        pass

    late = Late()
    assert native.leaves([late]) == [late]
    tree_util.register_pytree_node(Late, lambda x: ((1, 2), None), lambda aux, children: late)
    assert native.leaves([late]) == [1, 2]


def test_a_node_may_change_what_is_being_flattened():
    values: list[Any] = []

    class Meddler:
        pass

    def flatten_meddler(_):
        values.clear()
        return (1,), None

    tree_util.register_pytree_node(Meddler, flatten_meddler, lambda aux, children: None)
    values += [Meddler(), [2, 3], 4]
    assert native.leaves(values) == [1, 2, 3, 4]
    box: dict[str, Any] = {"a": Meddler(), "b": [5]}
    values += [6]
    assert native.leaves(box) == [1, 5] and values == []


def test_a_dataclass_is_made_by_its_own_init_if_it_has_one():
    import dataclasses

    made = []

    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Checked:
        x: Any

        def __post_init__(self):
            made.append(self.x)

    @tree_util.register_dataclass
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        x: Any
        kind: str = tree.static(default="k")

    @tree_util.register_dataclass
    @dataclasses.dataclass(slots=True)
    class Slotted:
        x: Any

    tree.map(lambda x: x + 1, Checked(1))
    assert made == [1, 2]
    frozen = tree.map(lambda x: x + 1, Frozen(1, kind="other"))
    assert frozen == Frozen(2, "other")
    assert tree.map(lambda x: x + 1, Slotted(1)) == Slotted(2)

    original = Frozen.__init__

    def announced(self, *args, **kwargs):
        made.append("announced")
        original(self, *args, **kwargs)

    Frozen.__init__ = announced
    assert tree.map(lambda x: x, frozen) == frozen
    assert made[-1] == "announced"


def test_no_reference_is_lost_or_kept():
    leaf, key, meta = object(), "a key that is nowhere else", "metadata that is nowhere else"
    value = {
        key: [leaf, (leaf,)],
        "plain": Plain(meta, leaf),
        "point": Point(leaf, Keyed(1, leaf, 2)),
    }
    treedef = native.flatten(value)[1]

    def work():
        leaves, found = native.flatten(value)
        native.unflatten(found, leaves)
        native.subtrees_of(treedef, value)
        native.subtrees_of(treedef, {"other": 1})
        native.flatten_with_path(value)
        native.map(lambda x, y: x, value, (value,), None)
        native.map(lambda x, y: x, value, ({},), None)
        native.leaves(value, lambda x: isinstance(x, tuple))
        outcome(native.map, lambda x: 1 / 0, value, (), None)
        outcome(native.unflatten, found, leaves[1:])
        outcome(native.flatten, {1: leaf, "a": leaf})

    things = [leaf, key, meta, None, True, value, Plain, Point, list, treedef]
    work()
    gc.collect()
    before = [sys.getrefcount(x) for x in things]
    for _ in range(500):
        work()
    gc.collect()
    after = [sys.getrefcount(x) for x in things]
    assert all(abs(a - b) < 50 for a, b in zip(before, after, strict=True)), (before, after)


def test_wrong_calls_are_refused():
    for call in (
        lambda: native.flatten(),
        lambda: native.flatten(1, None, 2),
        lambda: native.flatten(1, wrong=2),
        lambda: native.flatten(1, tree=2),
        lambda: native.unflatten(1, [2]),
        lambda: native.subtrees_of("x", 1),
        lambda: native.map(1, 2),
    ):
        with pytest.raises(TypeError):
            call()
