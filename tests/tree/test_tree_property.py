"""Generated trees: every function gives what JAX gives, or an error that JAX's type would catch."""

from typing import Any

import jax
import pytest
from hypothesis import given, settings

import namoo.tree as tree
import namoo.tree_util as tree_util
from tree_nodes import Point
from tree_strategies import TREES, related


def agree(call) -> Any:
    """Runs a call with both libraries: the results print alike, or ours raises what JAX does."""
    results = []
    for library in (tree_util, jax.tree_util):
        try:
            results.append(call(library))
        except Exception as error:
            results.append(error)
    ours, theirs = results
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), (ours, theirs)
    else:
        assert repr(ours) == repr(theirs)
    return ours


@given(TREES)
@settings(max_examples=150)
def test_one_tree(value):
    leaves, treedef = agree(lambda t: t.tree_flatten(value))
    agree(lambda t: t.tree_unflatten(t.tree_structure(value), range(len(leaves))))
    agree(lambda t: t.tree_flatten_with_path(value))
    agree(lambda t: [t.keystr(path) for path, _ in t.tree_leaves_with_path(value)])
    agree(lambda t: t.tree_map(lambda x: (x, None), value))
    agree(lambda t: t.tree_map_with_path(lambda path, x: (t.keystr(path), x), value))
    agree(lambda t: t.tree_structure(value).num_nodes)
    agree(lambda t: t.treedef_children(t.tree_structure(value)))
    agree(lambda t: t.tree_structure(value).compose(t.tree_structure(value)))
    agree(lambda t: t.tree_leaves(value, is_leaf=lambda x: isinstance(x, (dict, Point))))
    rebuilt = treedef.unflatten(leaves)
    assert rebuilt == value and type(rebuilt) is type(value)
    assert tree.structure(rebuilt) == treedef and hash(tree.structure(rebuilt)) == hash(treedef)
    assert repr(tree_util.leaf_paths(treedef)) == repr([p for p, _ in tree.leaves_with_path(value)])


@given(related())
@settings(max_examples=300)
def test_two_trees(pair):
    a, b = pair
    agree(lambda t: t.tree_structure(a) == t.tree_structure(b))
    agree(lambda t: t.tree_structure(a).flatten_up_to(b))
    agree(lambda t: t.tree_map(lambda x, y: (x, y), a, b))
    agree(lambda t: t.tree_map_with_path(lambda path, x, y: (t.keystr(path), x, y), a, b))
    agree(lambda t: t.tree_broadcast(a, b))
    if tree.structure(a) == tree.structure(b):
        assert hash(tree.structure(a)) == hash(tree.structure(b))


@given(related())
@settings(max_examples=300)
def test_differences_are_found_where_trees_differ(pair):
    a, b = pair
    same = jax.tree.structure(a) == jax.tree.structure(b)
    forms = [(x, y) for x in (a, tree.structure(a)) for y in (b, tree.structure(b))]
    found = [tree.diff(x, y) for x, y in forms]
    for differences in found:
        assert (differences == []) == same
        # A tree and its structure tell the same story, up to what only a value knows.
        assert [(str(d.path), d.kind) for d in differences] == [
            (str(d.path), d.kind) for d in found[0]
        ]
    try:
        jax.tree.structure(a).flatten_up_to(b)
        is_prefix = True
    except ValueError:
        is_prefix = False
    for x, y in forms:
        assert (tree.diff(x, y, prefix="expected") == []) == is_prefix
        assert (tree.diff(y, x, prefix="found") == []) == is_prefix
    assert (tree_util.prefix_errors(a, b) == []) == is_prefix


@given(TREES, TREES)
@settings(max_examples=100)
def test_transpose(outer, inner):
    value = tree.map(lambda _: inner, outer)
    if not tree.leaves(outer):
        with pytest.raises(IndexError):
            tree.transpose(tree.structure(outer), None, value)
        return
    agree(lambda t: t.tree_transpose(t.tree_structure(outer), None, value))
    turned = agree(
        lambda t: t.tree_transpose(t.tree_structure(outer), t.tree_structure(inner), value)
    )
    if tree.leaves(inner):
        back = tree.transpose(tree.structure(inner), tree.structure(outer), turned)
        assert back == value
