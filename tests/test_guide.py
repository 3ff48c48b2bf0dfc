"""The guides run as they are written."""

import doctest
from pathlib import Path

import pytest

GUIDES = sorted((Path(__file__).parents[1] / "docs").glob("models.md"))


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_guide(path):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(path), module_relative=False, optionflags=flags)
    assert found.attempted > 10 and found.failed == 0
