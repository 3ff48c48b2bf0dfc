"""Random trees, and pairs of slightly different trees."""

from collections import OrderedDict, defaultdict

from hypothesis import strategies as st

import namoo.tree as tree
from tree_nodes import Bag, Dense, Keyed, Mode, Plain, Point

LEAVES = st.integers(0, 9) | st.sampled_from(["text", 2.5])
NAMES = st.sampled_from("abcd")
AUX = st.sampled_from([None, "aux", 1, 1.0, (1, "x")])


def nodes(children):
    """Return a strategy for one node; few names and lengths, so that trees are often similar."""
    several = st.lists(children, max_size=3)
    by_name = st.dictionaries(NAMES, children, max_size=3)
    return st.one_of(
        several,
        several.map(tuple),
        by_name,
        st.dictionaries(st.integers(0, 3), children, max_size=2),
        by_name.map(OrderedDict),
        by_name.map(lambda items: OrderedDict(reversed(items.items()))),
        st.builds(defaultdict, st.sampled_from([list, int]), by_name),
        st.builds(Point, children, children),
        st.builds(lambda aux, items: Plain(aux, *items), AUX, several),
        st.builds(Keyed, AUX, children, children),
        by_name.map(lambda items: Bag(**items)),
        st.builds(Dense, children, children, AUX),
    )


EMPTY = st.none() | st.builds(Mode, st.sampled_from(["train", "test"]))
TREES = st.recursive(LEAVES | EMPTY, nodes, max_leaves=8)


@st.composite
def related(draw):
    """Draw a tree and another that extends it, changes one subtree, or is unrelated."""
    first = draw(TREES)
    match draw(st.sampled_from(["continued", "changed", "other"])):
        case "continued":
            second = tree.map(lambda _: draw(TREES), first)
        case "changed":
            paths = []
            tree.leaves_with_path(first, lambda path, _: bool(paths.append(path)), True)
            there, new = draw(st.sampled_from(paths)), draw(TREES)
            second = tree.map_with_path(
                lambda path, x: new if path == there else x,
                first,
                is_leaf=lambda path, _: path == there,
                is_leaf_takes_path=True,
            )
        case "other":
            second = draw(TREES)
    return first, second
