"""The difference engine: what its messages say, in every function that compares two trees."""

import collections
import dataclasses
import pickle
import re
from collections import OrderedDict, defaultdict
from typing import Any

import jax
import numpy as np
import pytest

import namoo.tree as tree
import namoo.tree_util as tree_util
from namoo.tree_util import DictKey, Partial, SequenceKey, TreeMismatchError
from tree_nodes import Bag, Dense, DictSubclass, Keyed, ListSubclass, Mode, Plain, Point

NONE_HINT = "None is an empty subtree, not a leaf; is_leaf=lambda x: x is None makes it a leaf."


@dataclasses.dataclass
class Unregistered:
    x: int


@dataclasses.dataclass
class Opaque:
    """Two of these print alike and are never equal."""

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return 0

    def __repr__(self):
        return "Opaque()"


def remade():
    """A class of the same name and module at every call, as from a notebook cell run again."""

    class Remade:
        pass

    tree_util.register_pytree_node(Remade, lambda x: ((1,), None), lambda aux, children: Remade())
    return Remade()


W = np.ones((2, 3))

# What was expected, what was found, what the message must say, and which of the two has to be a
# prefix for this to be no mismatch.
MISMATCHES: dict[str, tuple[Any, Any, list[str], str]] = {
    "missing key": ({"w": W, "b": W}, {"w": W}, ["at the root: missing key 'b'"], ""),
    "unexpected key": ({"w": W}, {"w": W, "zeta": W}, ["unexpected key 'zeta'"], ""),
    "abbreviated key": (
        {"w": W, "b": W},
        {"w": W, "bias": W},
        ["missing key 'b'; unexpected key 'bias' (did you mean 'b'?)"],
        "",
    ),
    "misspelt key": (
        {"kernel": W},
        {"kernal": W},
        ["unexpected key 'kernal' (did you mean 'kernel'?)"],
        "",
    ),
    "key of other case": ({"Dense": W}, {"dense": W}, ["'dense' (did you mean 'Dense'?)"], ""),
    "key of other type": ({0: W, 1: W}, {"0": W, "1": W}, ["'0' (did you mean 0?)"], ""),
    "no near key": ({"alpha": W}, {"zz": W}, ["missing key 'alpha'; unexpected key 'zz'"], ""),
    "many missing keys": (
        {f"k{i}": W for i in range(7)},
        {},
        ["missing keys 'k0', 'k1', 'k2', 'k3' and 3 more"],
        "",
    ),
    "nested key": (
        {"enc": [{"w": W}, {"w": W, "b": W}]},
        {"enc": [{"w": W}, {"w": W}]},
        ["at ['enc'][1]: missing key 'b'"],
        "",
    ),
    "list length": (
        {"a": [1, 2]},
        {"a": [1, 2, 3]},
        ["at ['a']: expected a list of length 2, found a list of length 3"],
        "",
    ),
    "tuple length": ((1, 2), (1,), ["expected a tuple of length 2, found a tuple of length 1"], ""),
    "empty list": ([], [1], ["expected a list of length 0, found a list of length 1"], ""),
    "list for tuple": (
        {"a": (1, 2)},
        {"a": [1, 2]},
        ["at ['a']: expected a tuple of length 2, found a list of length 2"],
        "",
    ),
    "ordered for plain dict": (
        {"a": 1},
        OrderedDict(a=1),
        ["expected a dict with key 'a', found an OrderedDict"],
        "",
    ),
    "tuple for namedtuple": (
        Point(1, 2),
        (1, 2),
        ["expected a Point, found a tuple of length 2"],
        "",
    ),
    "dict for dataclass": (
        [Dense(1, 2)],
        [{"w": 1, "b": 2}],
        ["at [0]: expected a Dense, found a dict with keys 'b', 'w'"],
        "",
    ),
    "leaf for node": (
        [1, [2, 3]],
        [1, 5],
        ["at [1]: expected a list of length 2, found a leaf"],
        "found",
    ),
    "node for leaf": ([1, 5], [1, [2, 3]], ["at [1]: expected a leaf"], "expected"),
    "None for leaf": ([1, 2], [1, None], ["expected a leaf", "found None", NONE_HINT], "expected"),
    "leaf for None": (
        [1, None],
        [1, W],
        ["at [1]: expected None, found a leaf", NONE_HINT],
        "found",
    ),
    "None for node": ([[1]], [None], ["expected a list of length 1, found None", NONE_HINT], ""),
    "subclass of dict": (
        {"p": {"a": 1}},
        {"p": DictSubclass(a=1)},
        ["at ['p']: expected a dict with key 'a', found a leaf"],
        "found",
    ),
    "static field": (
        {"m": Dense(1, 2, "relu")},
        {"m": Dense(1, 2, "tanh")},
        ["at ['m']: expected the static field 'activation' of Dense to be 'relu', found 'tanh'"],
        "",
    ),
    "aux data": (
        Plain(("x", 1), 2),
        Plain(("y", 1), 2),
        ["expected the aux_data of Plain to be ('x', 1), found ('y', 1)"],
        "",
    ),
    "aux data that prints alike": (
        [Plain(Opaque(), 2)],
        [Plain(Opaque(), 2)],
        ["at [0]", "The two print alike", "define __eq__ and __hash__?"],
        "",
    ),
    "aux data of another type": (
        Keyed(np.float32(1.5), 1, 2),
        Keyed(np.float32(2.5), 1, 2),
        ["the aux_data of Keyed to be np.float32(1.5), found np.float32(2.5)"],
        "",
    ),
    "static value": (
        [Mode("train")],
        [Mode("test")],
        ["the aux_data of Mode to be Mode(name='train'), found Mode(name='test')"],
        "",
    ),
    "default factory": (
        defaultdict(list, a=1),
        defaultdict(int, a=1),
        ["'default_factory' of defaultdict to be <class 'list'>, found <class 'int'>"],
        "",
    ),
    "order of keys": (
        OrderedDict(a=1, b=2),
        OrderedDict(b=2, a=1),
        [
            "the keys 'a', 'b' in this order, found the keys 'b', 'a' in this order",
            "part of the structure",
        ],
        "",
    ),
    "number of children": (
        [Plain(None, 1, 2)],
        [Plain(None, 1)],
        ["at [0]: expected a Plain with 2 children, found a Plain with 1 child"],
        "",
    ),
    "keys of a custom node": (
        Bag(weight=1, b=2),
        Bag(weigth=1, b=2),
        ["missing key 'weight'; unexpected key 'weigth' (did you mean 'weight'?)"],
        "",
    ),
    "other function": (
        Partial(max, 1),
        Partial(min, 1),
        ["the aux_data of Partial to be <built-in function max>, found <built-in function min>"],
        "",
    ),
    "class made twice": (
        remade(),
        remade(),
        ["expected a Remade (test_tree_diff.remade.<locals>.Remade)", "two classes of one name"],
        "",
    ),
    "below a custom node": (
        Keyed(0, {"x": 1}, 2),
        Keyed(0, {"y": 1}, 2),
        ["at .a: missing key 'x'; unexpected key 'y'"],
        "",
    ),
    "several": (
        {"a": [1], "b": (2,), "c": {"d": 3}},
        {"a": (1,), "b": (2, 2), "c": {}},
        ["3 differences", "at ['a']: ", "at ['b']: ", "at ['c']: missing key 'd'"],
        "",
    ),
}


def by_structure(expected, found):
    raise tree_util.mismatch(
        "structures", tree.diff(tree.structure(expected), tree.structure(found))
    )


def by_value(expected, found):
    raise tree_util.mismatch("trees", tree.diff(expected, found))


# How each function is given the two trees, and which of them is a prefix to it.
ENTRY_POINTS = {
    "map": (lambda e, f: tree.map(lambda *x: x, e, f), "expected"),
    "map of three": (lambda e, f: tree.map(lambda *x: x, e, e, f), "expected"),
    "map_with_path": (lambda e, f: tree.map_with_path(lambda *x: x, e, f), "expected"),
    "flatten_up_to": (lambda e, f: tree.structure(e).flatten_up_to(f), "expected"),
    "transpose": (lambda e, f: tree.transpose(tree.structure(e), None, f), "expected"),
    "broadcast": (lambda e, f: tree.broadcast(f, e), "found"),
    "broadcast_prefix": (lambda e, f: tree_util.broadcast_prefix(f, tree.structure(e)), "found"),
    "structures": (by_structure, ""),
    "trees": (by_value, ""),
}


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("case", MISMATCHES)
def test_planted_mismatch(case, entry):
    expected, found, words, unseen_by = MISMATCHES[case]
    call, prefix = ENTRY_POINTS[entry]
    if prefix and prefix == unseen_by:
        # No mismatch to this function. What it does next with the subtree is not the matter here.
        assert tree.diff(expected, found, prefix=prefix) == []
        return
    with pytest.raises(ValueError) as raised:
        call(expected, found)
    assert isinstance(raised.value, TreeMismatchError)
    message = str(raised.value)
    for word in words:
        assert word in message, message
    assert len(message.splitlines()) <= 25
    assert raised.value.differences
    for difference in raised.value.differences[:5]:
        assert difference.kind in (
            "type", "length", "missing", "unexpected", "order", "metadata"
        )  # fmt: skip


@pytest.mark.parametrize("case", MISMATCHES)
def test_prefix_errors(case):
    expected, found, _, unseen_by = MISMATCHES[case]
    errors = [make("in_axes") for make in tree_util.prefix_errors(found, expected)]
    if unseen_by == "found":
        assert errors == []
        return
    assert errors
    for error in errors:
        assert isinstance(error, ValueError)
        assert re.match("pytree structure error: .* at key path\n    in_axes", str(error))
        differences = error.differences  # type: ignore[attr-defined]
        if len(differences) <= 4:
            assert all(difference.message in str(error) for difference in differences)


def test_who_found_the_mismatch():
    for call, words in [
        (lambda: tree.map(max, [1], (1,)), "tree.map: the second tree"),
        (lambda: tree.map(max, [1], [1], (1,)), "tree.map: rest[1]"),
        (lambda: tree.map_with_path(max, [1], (1,)), "tree.map_with_path: the second tree"),
        (lambda: tree.structure([1]).flatten_up_to((1,)), "the treedef"),
        (lambda: tree.broadcast([1], (1,)), "tree.broadcast: prefix_tree"),
        (lambda: tree_util.broadcast_prefix([1], (1,), title="in_axes"), "in_axes (1 diff"),
        (lambda: tree.transpose(tree.structure([1, 1]), tree.structure(1), [1]), "tree.transpose"),
    ]:
        with pytest.raises(ValueError, match=re.escape(words)):
            call()


def test_transpose_raises_what_jax_raises():
    with pytest.raises(TypeError, match="expected a list of length 3, found a list of length 2"):
        tree.transpose(tree.structure([0, 0, 0]), tree.structure({"a": 0}), [{"a": 1}, {"a": 2}])


def wide(n, **changes):
    return {f"layer{i}": {"w": [i], "b": (i,)} for i in range(n // 2)} | changes


LARGE = {
    "every leaf": (wide(10_000), tree.map(lambda x: [x], wide(10_000))),
    "every node": (wide(10_000), {k: {"w": (1,), "b": [1]} for k in wide(10_000)}),
    "every key": (wide(10_000), {f"other{i}": 1 for i in range(10_000)}),
    "all missing": (wide(10_000), {}),
    "all unexpected": ({}, wide(10_000)),
    "another class": (wide(10_000), [wide(10_000)]),
    "long names": ({"k" * 10_000: 1}, {"j" * 10_000: 1}),
    "long metadata": (Plain("x" * 10_000, 1), Plain("y" * 10_000, 1)),
    "lines in metadata": (Plain("x\n" * 100, 1), Plain("y\n" * 100, 1)),
    "many lines of metadata": ([Plain(i, 1) for i in range(5000)], [Plain(-1, 1)] * 5000),
}


@pytest.mark.parametrize("case", LARGE)
def test_messages_stay_short(case):
    expected, found = LARGE[case]
    with pytest.raises(TreeMismatchError) as raised:
        raise tree_util.mismatch("large", tree.diff(expected, found))
    lines = str(raised.value).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 1000
    told = int(re.findall(r"\((\d+) differences?\)", lines[0])[0])
    assert told == len(raised.value.differences)


def test_one_difference_in_ten_thousand_leaves_is_found():
    found = wide(10_000, layer4321={"w": [1, 2], "b": (1,)})
    with pytest.raises(ValueError) as raised:
        tree.map(lambda x, y: x, wide(10_000), found)
    assert "at ['layer4321']['w']: expected a list of length 1, found a list of length 2" in str(
        raised.value
    )
    assert len(str(raised.value).splitlines()) == 5


def test_difference_is_data():
    [missing, unexpected, length] = tree.diff({"b": 1, "l": [1]}, {"bias": 1, "l": []})
    assert missing.path == (DictKey("b"),) and missing.kind == "missing"
    assert unexpected.path == (DictKey("bias"),) and unexpected.node_path == ()
    assert length.path == (DictKey("l"),) and length.kind == "length"
    assert (length.expected, length.found) == ("a list of length 1", "a list of length 0")
    assert str(length) == "at ['l']: expected a list of length 1, found a list of length 0"
    assert {missing, unexpected, length} == set(tree.diff({"b": 1, "l": [1]}, {"bias": 1, "l": []}))


def test_error_can_be_pickled():
    with pytest.raises(TreeMismatchError) as raised:
        tree.map(max, {"a": 1}, {"b": 1})
    copy = pickle.loads(pickle.dumps(raised.value))
    assert str(copy) == str(raised.value) and copy.differences == raised.value.differences


def test_leaves_can_be_compared():
    def compare(a, b):
        return None if np.shape(a) == np.shape(b) else f"{np.shape(a)} != {np.shape(b)}"

    [difference] = tree.diff(
        {"a": W, "b": [W]}, {"a": W, "b": [np.ones(3)]}, compare_leaves=compare
    )
    assert difference.kind == "leaf" and difference.path == (DictKey("b"), SequenceKey(0))
    assert str(difference) == "at ['b'][0]: (2, 3) != (3,)"


def test_is_leaf():
    assert tree.diff([1, None], [1, 2], is_leaf=lambda x: x is None) == []
    assert tree.diff([1, [2]], [1, (2,)], is_leaf=lambda x: isinstance(x, (list, tuple))) == []
    # Only of the prefix: the other tree is as it is.
    is_list = lambda x: isinstance(x, list)  # noqa: E731
    assert tree.diff({"a": [1]}, {"a": 2}, is_list, prefix="expected") == []
    assert tree.diff({"a": [1]}, {"a": 2}, is_list, prefix="found") == []
    assert tree.diff({"a": 2}, {"a": [1]}, is_list, prefix="found") == []
    assert len(tree.diff({"a": (1,)}, {"a": 2}, is_list, prefix="expected")) == 1


def test_prefix_must_be_a_side():
    with pytest.raises(ValueError, match="'expected' or 'found'"):
        tree.diff(1, 1, prefix="left")


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        (ListSubclass([1]), "ListSubclass is a subclass of list and so a leaf"),
        (Unregistered(1), "tree_util.register_dataclass makes the dataclass Unregistered a node"),
        (3.0, ""),
    ],
)
def test_hint_at_a_class_that_is_not_registered(found, hint):
    [difference] = tree.diff([[1]], [found])
    assert difference.hint.startswith(hint) and bool(difference.hint) == bool(hint)


def test_metadata_that_cannot_be_compared_is_a_difference():
    [difference] = tree.diff(Dense(1, 2, np.ones(2)), Dense(1, 2, np.zeros(2)))
    assert difference.kind == "metadata" and "'activation'" in difference.message


def test_repr_that_fails_does_not_hide_the_difference():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    [difference] = tree.diff(Plain(Broken(), 1), Plain(2, 1))
    assert "found 2" in difference.message


def test_children_of_one_key_are_compared_by_position():
    class Twins:
        def __init__(self, *children):
            self.children = children

    tree_util.register_pytree_with_keys(
        Twins,
        lambda t: ([("twin", child) for child in t.children], None),
        lambda aux, children: Twins(*children),
    )
    [difference] = tree.diff(Twins([1], [2]), Twins([1], (2,)))
    assert difference.path == ("twin",)
    [difference] = tree.diff(Twins([1], [2]), Twins([1]))
    assert difference.kind == "length"


def test_nothing_to_tell():
    assert "no difference can be shown" in str(tree_util.mismatch("a and b differ", []))


def test_errors_of_jax_and_ours_are_found_in_the_same_places():
    prefix = [1, None, {"a": 1}, (2, 3), {"c": 1}, [1], {"e": []}]
    full = [1, 2, {"b": 1}, (4,), {"c": 1, "d": 2}, [1, 2], {"e": ()}]
    theirs = [str(e("x")) for e in jax._src.tree_util.prefix_errors(prefix, full)]  # type: ignore[attr-defined]
    ours = [str(e("x")) for e in tree_util.prefix_errors(prefix, full)]
    # JAX's first two lines: what differs, and where.
    assert [text.splitlines()[:2] for text in ours] == [text.splitlines()[:2] for text in theirs]
    assert "so the symmetric difference on key sets is\n    d" in ours[3]
    assert ours[3].splitlines()[-1] == theirs[3].splitlines()[-1]


Pair = collections.namedtuple("Pair", "a b")
Twin = collections.namedtuple("Twin", "a b")


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ([1, 2], [7]),
        ((1,), (7, 8)),
        ({"a": 1}, {"b": 7}),
        ({"a": 1}, {"a": 7, "b": 8}),
        ([[1]], [7]),
        ([[1]], [(7,)]),
        ([(1,)], [{"a": 7}]),
        ({"m": {"a": 1}}, {"m": [7]}),
        ([Pair(1, 2)], [(1, 2)]),
        (Pair(1, 2), Twin(1, 2)),
        (collections.OrderedDict(a=1), {"a": 1}),
        (None, [2]),
    ],
)
def test_flatten_up_to_says_what_jax_says(expected, found):
    with pytest.raises(ValueError) as theirs:
        jax.tree.structure(expected).flatten_up_to(found)
    with pytest.raises(ValueError) as ours:
        tree.structure(expected).flatten_up_to(found)
    assert str(theirs.value).splitlines()[0] in str(ours.value)


def test_a_map_says_what_jax_says():
    with pytest.raises(ValueError) as theirs:
        jax.tree.map(max, {"a": [1]}, {"a": [1, 2]})
    with pytest.raises(ValueError) as ours:
        tree.map(max, {"a": [1]}, {"a": [1, 2]})
    assert "\n".join(str(theirs.value).splitlines()[:2]) in str(ours.value)
