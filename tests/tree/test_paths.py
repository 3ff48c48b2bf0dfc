"""Patterns over paths: what matches, what is combined, what is refused."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import namoo
import namoo.numpy as jnp
from namoo import tree
from namoo.tree.paths import Paths, path_string, paths

MODEL = {
    "enc": [{"W": 1, "b": 2}, {"W": 3, "b": 4}],
    "head": {"W": 5, "bias": 6, "a/b": 7, "x*": 8},
}


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("**", [1, 2, 3, 4, 5, 7, 6, 8]),
        ("**/W", [1, 3, 5]),
        ("enc/**", [1, 2, 3, 4]),
        ("enc/0/*", [1, 2]),
        ("enc/*/b", [2, 4]),
        ("*/*/b", [2, 4]),
        ("**/b*", [2, 4, 6]),
        ("**/{W,bias}", [1, 3, 5, 6]),
        ("{enc/1,head}/W", [3, 5]),
        ("enc/[01]/W", [1, 3]),
        ("enc/[!0]/W", [3]),
        ("**/?", [1, 2, 3, 4, 5]),
        ("**/enc/**/b", [2, 4]),
        (r"head/a\/b", [7]),
        (r"head/x\*", [8]),
        ("head/x*", [8]),
        ("enc/0/W", [1]),
        ("**/**/W", [1, 3, 5]),
    ],
)
def test_pattern(pattern, chosen):
    assert list(paths(pattern).select(MODEL).values()) == chosen


@pytest.mark.parametrize(
    ("mask", "chosen"),
    [
        (~paths("**/b"), [1, 3, 5, 7, 6, 8]),
        (paths("**/W") & paths("enc/**"), [1, 3]),
        (paths("**/W") | "**/b", [1, 2, 3, 4, 5]),
        (paths("**/W") - "head/**", [1, 3]),
        (~(paths("enc/**") | paths("**/bias")), [5, 7, 8]),
        (paths("**/W", "**/b"), [1, 2, 3, 4, 5]),
        (paths(["**/W", paths("**/bias")]), [1, 3, 5, 6]),
        (paths(where=lambda x: x % 2 == 0), [2, 4, 6, 8]),
        (paths("enc/**", where=lambda x: x > 2), [3, 4]),
        (paths(lambda path, leaf: path.endswith("b") and leaf < 4), [2]),
        (paths("nothing/**", "**/W", optional=True), [1, 3, 5]),
        ("**/W" | paths("**/b"), [1, 2, 3, 4, 5]),
    ],
)
def test_combined(mask, chosen):
    flags = mask(MODEL)
    assert tree.structure(flags) == tree.structure(MODEL)
    kept = [x for x, is_in in zip(tree.leaves(MODEL), tree.leaves(flags), strict=True) if is_in]
    assert kept == chosen


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (paths("enc"), r"names a subtree. Write 'enc/\*\*'"),
        (paths("bias"), r"from the root. Write '\*\*/bias'"),
        (paths("**/wieght", where=bool), "matches no leaf"),
        (paths("**/bais"), "Near it: 'head/bias'"),
        (~paths("**/bais"), "Near it: 'head/bias'"),
        (paths("**/W") | paths("**/bais"), "optional=True"),
    ],
)
def test_a_pattern_without_match_is_an_error(mask, message):
    with pytest.raises(ValueError, match=message):
        mask(MODEL)


@pytest.mark.parametrize("pattern", ["a//b", "/a", "a/", "{a,b", "a}", "[ab"])
def test_a_pattern_that_cannot_be_read(pattern):
    with pytest.raises(ValueError, match="pattern"):
        paths(pattern)


def test_what_is_no_pattern():
    with pytest.raises(TypeError, match=r"not 3 of type int"):
        paths(3)


def test_groups():
    label = paths.groups({"head/**": "a", paths("**/b"): "b"}, default="c")
    assert tree.leaves(label(MODEL)) == ["c", "b", "c", "b", "a", "a", "a", "a"]
    with pytest.raises(ValueError, match=r"matches the leaf 'enc/0/W'"):
        paths.groups({"head/**": "a", paths("**/b"): "b"})(MODEL)


def test_map_and_partition():
    mask = paths("**/W")
    doubled = mask.map(lambda x, y: x + y, MODEL, MODEL)
    assert tree.leaves(doubled) == [2, 2, 6, 4, 10, 7, 6, 8]
    chosen, rest = mask.partition(MODEL)
    assert tree.leaves(chosen) == [1, 3, 5]
    assert tree.leaves(rest) == [2, 4, 7, 6, 8]


def test_masks_are_values():
    assert paths("a") == Paths("a") != paths("b")
    assert hash(~paths("a") & paths("b")) == hash(~paths("a") & paths("b"))
    assert repr(~(paths("a") | paths("b")) & paths("c")) == (
        "~(Paths('a') | Paths('b')) & Paths('c')"
    )
    assert eval(repr(~paths("a", "b") | paths("c", optional=True))) == (
        ~paths("a", "b") | paths("c", optional=True)
    )


def test_masks_work_inside_jit():
    decay = ~paths("**/b")

    @namoo.jit
    def f(params):
        return tree.map(lambda p, m: p * 2 if m else p, params, decay(params))

    out = f({"W": jnp.ones(2), "b": jnp.ones(2)})
    assert out["W"].tolist() == [2, 2] and out["b"].tolist() == [1, 1]


def test_a_leaf_alone():
    assert paths("**")(3) is True
    assert paths("")(3) is True
    assert paths("**/b")([]) == []


keys = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)


@given(st.lists(keys, min_size=1, max_size=4, unique=True), st.data())
def test_a_path_is_the_pattern_of_itself(names, data):
    nested = {a: {b: 0 for b in names} for a in names}
    path, _ = data.draw(st.sampled_from(tree.leaves_with_path(nested)))
    text = path_string(path)
    assert list(paths(text).select(nested)) == [text]


@given(st.text("ab*?", min_size=1, max_size=5), st.lists(st.text("ab", max_size=4), unique=True))
def test_within_a_key_it_is_a_glob(pattern, names):
    if pattern == "**":
        return
    nested = {name: 0 for name in names}
    expected = sorted(n for n in names if fnmatch.fnmatchcase(n, pattern))
    assert list(paths(pattern, optional=True).select(nested)) == expected
